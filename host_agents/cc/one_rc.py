"""Hosts' part of 1RC (Snyder's thesis, 5.2 and 5.4): a flow's first packets leave before it has a rate.

They are speculative: sent at line rate, numbered from 0, up to one BDP. A switch forwards as many
as the rates of the flow's epoch allow (`p4src/sperc.p4`), drops the rest, and reports the number in
the flow's control packet. The host then continues with the first dropped one, so that a receiver
sees neither gaps nor duplicates. The NIC's own link forwards all of them; packets that exceed its
rate wait in the host.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from host_agents.cc.base import Host, Path
from host_agents.cc.sperc_link import MAX_WEIGHT
from host_agents.packets import Field, Header, Packet
from host_agents.ranges import POSITIVE
from host_agents.registry import MechanismInfo, register
from host_agents.template import Wrapper

SPECULATIVE: Final = Packet(
    "speculative",
    0xF0,
    (
        Header(
            "speculative",
            (
                Field("epoch", 16, "of the flow's start"),
                Field("weight", 16, "n for speculative packets", initial=1),
                Field("sequence", 24, "the packet's place among the speculative ones, from 0"),
                Field("reserved", 8),
            ),
            "Speculative data packet of 1RC.",
        ),
    ),
    opcodes=8,
    wraps=True,
    meaning="data that a switch may drop; RC opcode n is sent as 0xF0 + n",
)
EPOCH_MASK: Final = 0xFFFF
DATA_PRIORITY: Final = -1

_CLASS: Final[Mapping[str, float]] = {"ge": -1, "le": 7}


@dataclass(frozen=True)
class OneRcParameters:
    epoch_rtts: float = field(default=1.0, metadata=POSITIVE)  # length of an epoch, in base RTTs of the network
    clock_error_ns: int = 100  # largest error of a host's clock (section 5.1.3)
    # Class of speculative packets, below that of data (section 5.1.2); -1: they share data's queue
    # (5.5.2).
    speculative_priority: int = field(default=DATA_PRIORITY, metadata=_CLASS)


class Epoch:
    """State shared by the flows of a host that start in the same epoch."""

    def __init__(self, number: int, weight: int) -> None:
        self.number = number  # number of the epoch by the network's clock, modulo 2^16
        self.weight = weight  # n for speculative packets: the host's number of flows at its start, at least 1
        self.sequence = 0  # number of the next speculative packet, if the flows share the numbers


class HostFlows:
    """Flows of a host, and its clock, which is nearly synchronous with other hosts' clocks."""

    def __init__(self, host: Host, epoch_ns: int, clock_error_ns: int) -> None:
        self.active = 0
        self._weight_ns = 0.0  # integral of 1/n over time until its last change
        self._changed_ns = 0
        self._epoch_ns = epoch_ns
        self._offset_ns = host.random.randint(-clock_error_ns, clock_error_ns)
        self._epoch_index = -2  # epochs since the clock's zero; initially before any epoch
        self._epoch = Epoch(0, 1)

    def number(self, now_ns: int) -> int:
        """Return the epoch's number in packets."""
        return (now_ns + self._offset_ns) // self._epoch_ns & EPOCH_MASK

    def epoch(self, now_ns: int) -> Epoch:
        """Return the current epoch; it has to be called before flows start or leave."""
        index = (now_ns + self._offset_ns) // self._epoch_ns
        if index != self._epoch_index:
            self._epoch_index = index
            self._epoch = Epoch(index & EPOCH_MASK, min(max(1, self.active), MAX_WEIGHT))
        return self._epoch

    def weight_ns(self, now_ns: int) -> float:
        """Return the integral of 1/n over time.

        The difference of two values, divided by the time between, is the mean.
        """
        return self._weight_ns + float(now_ns - self._changed_ns) / float(min(max(1, self.active), MAX_WEIGHT))

    def start(self, now_ns: int) -> None:
        self._change(now_ns, 1)

    def leave(self, now_ns: int) -> None:
        self._change(now_ns, -1)

    def _change(self, now_ns: int, more: int) -> None:
        self.epoch(now_ns)
        self._weight_ns = self.weight_ns(now_ns)
        self._changed_ns = now_ns
        self.active += more


class Speculation:
    """Speculative packets of a flow."""

    def __init__(self, parameters: OneRcParameters, path: Path, weighted: bool, shared: bool) -> None:
        self.priority = parameters.speculative_priority
        self.under_way = False  # whether data leaves as speculative packets
        self.passed: int | None = None  # number of packets that passed, from the last response
        self.limit = max(1, int(path.bdp_bytes / float(path.wire_bytes)))  # packets
        self._weighted = weighted  # whether packets are weighted by the number of the host's flows
        self._shared = shared  # whether the flows of a host and an epoch share the numbers
        self._epoch = Epoch(0, 1)
        self._wrapper = Wrapper(SPECULATIVE)
        # Number of each packet that has left, and its place in order of first sending.
        self._sequences: list[int] = []
        self._places: list[int] = []

    @property
    def weight(self) -> int:
        return self._epoch.weight if self._weighted else 1

    @property
    def is_over(self) -> bool:
        """True if the limit of speculative packets is reached."""
        return len(self._places) >= self.limit

    def start(self, epoch: Epoch) -> None:
        self.under_way = True
        self._epoch = epoch
        self._sequences.clear()
        self._places.clear()

    def headers(self, headers: bytes, place: int) -> bytes:
        """Return the headers of the leaving speculative packet, given those of a data packet."""
        epoch = self._epoch
        sequence = len(self._places)
        if self._shared:
            sequence = epoch.sequence
            epoch.sequence = sequence + 1
        self._sequences.append(sequence)
        self._places.append(place)
        body = (epoch.number << 48 | self.weight << 32 | sequence << 8).to_bytes(8, "big")
        return self._wrapper.wrap(headers, body)

    def end(self, let_through: int) -> int:
        """End the speculation after packets with numbers below `let_through` have passed.

        Returns the place of the first packet that has not passed; -1 if all have.
        """
        self.under_way = False
        for index, sequence in enumerate(self._sequences):
            if sequence >= let_through:
                self.passed = index
                return min(self._places[index:])
        self.passed = len(self._sequences)
        return -1


register(
    MechanismInfo(
        name="1rc",
        summary="speculative packets at line rate from the start, dropped in order beyond an epoch's allowance",
        source="Snyder, thesis, sections 5.2 and 5.4, algorithms 4 and 5",
        parameters=OneRcParameters,
    )
)
