"""Settings of a traffic manager.

The keys are the same in a scenario, in the file of a switch process, and as keyword arguments of `Fabric.add_switch`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from p4switch.tables import Bytes, Table

Priority = Annotated[int, Field(ge=0, le=7)]
Alpha = Annotated[float, Field(gt=0, le=1e6)]  # ratio of a dynamic threshold to the free buffer


class TrafficManager(Table):
    """Queues and buffer of a switch. Sizes include Ethernet header and ICRC; None stands for no limit."""

    buffer_bytes: Bytes | None = None  # shared by all ports
    queue_bytes: Bytes | None = None  # limit of the queue of one priority at a port
    # Limit of a queue for arriving yellow packets. Programs for chips set the colours of packets.
    yellow_bytes: Bytes | None = None
    red_bytes: Bytes | None = None  # limit of a queue for arriving red packets
    port_bytes: Bytes | None = None  # limit of the sum of all queues of a port
    # Limit of a lossy queue: alpha times the free part of the shared buffer.
    alpha: Alpha | None = None
    # Order within a queue: first in, first out, or the ingress ports in turn.
    scheduler: Literal["fifo", "round_robin"] = "fifo"
    # Order of a port's queues: the highest priority first. Among equal_priorities, it is the queue
    # whose head was enqueued first (lanes), or the queue that was served least recently.
    classes: Literal["strict", "oldest", "least_recent"] = "strict"
    equal_priorities: tuple[Priority, ...] = Field(default=(), strict=False)  # see `classes`
    cell_bytes: Annotated[Bytes, Field(le=1 << 16)] = 80  # unit of the depths that programs see; 0: packets

    def traffic(self) -> dict[str, Any]:
        """Return these settings as keyword arguments of `Fabric.add_switch` and `Live.set_traffic`."""
        return {name: getattr(self, name) for name in TrafficManager.model_fields}


class Trimming(Table):
    """Trimming by the traffic manager at one port; see `Fabric.set_trimming`. A limit of None is no limit."""

    # Priorities whose packets are trimmed when their queue is full.
    priorities: tuple[Priority, ...] = Field(strict=False)
    limit_bytes: Bytes | None  # limit of each of these queues
    trim_priority: Priority  # queue of the trimmed packets
    trim_limit_bytes: Bytes | None  # limit of the queue of trimmed packets
    trim_size_bytes: Annotated[int, Field(ge=1, le=65535)] | None  # length of a trimmed packet; None: it is dropped
    # Packet that is trimmed: the arriving packet, or, with probability 1/2, the last packet of the
    # queue instead.
    victim: Literal["newest", "newest_or_youngest"] = "newest"
    seed: Annotated[int, Field(ge=0, lt=2**62)] = 0  # seed of the random choice


def dscp_classes(priority_of_dscp: Mapping[int, int]) -> list[int]:
    """Return the PFC class of each of the 64 DSCPs. Pauses of 802.1Qbb name the class of arriving packets."""
    return [priority_of_dscp.get(dscp, 0) for dscp in range(64)]
