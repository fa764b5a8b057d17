"""Forwarding with ECMP, RED/ECN marking at dequeue and packet trimming: `p4src/trim.p4`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator
from typing_extensions import Self

from control_plane.programs.base import DSCP_OF_PRIORITY, NO_DSCP, ProgramParameters, SwitchView, register
from control_plane.programs.entries import Action, Entry, Exact, TableEntry
from control_plane.programs.forwarding import forwarding_entries
from control_plane.programs.marking import Probability, marking_entries, red
from p4switch.errors import UserError
from p4switch.tables import Table
from p4switch.traffic.settings import Trimming

Priority = Annotated[int, Field(ge=0, le=7)]
Fraction01 = Annotated[float, Field(ge=0, le=1)]

LIMITS_IN_CELLS = "queue_limit_cells"  # table with the queue limits where the program reads queue depths in cells
MIN_TRIM_SIZE_BYTES = 54  # Ethernet, IPv4, UDP and BTH: a receiver needs these to identify the packet


class SmallerQueue(Table):
    """Port of `switch` that leads to `towards`. `fraction` scales its queue and thresholds."""

    switch: str  # name of the switch that has the port
    towards: str  # name of the node that the port leads to
    fraction: float = Field(gt=0, le=1)  # factor of the queue and its thresholds


@dataclass(frozen=True)
class _PortQueues:
    """Queues of one port: their limits, and the DSCP of packets that are trimmed there."""

    data_bytes: int
    header_bytes: int
    dscp: int


@register("trim")
class TrimParameters(ProgramParameters):
    """Queue limits, RED thresholds as fractions of them, and the treatment of packets at a full queue.

    The parameters follow SONiC's packet trimming: `trim_size_bytes`, `trim_dscp`, `trim_priority`
    (its queue). With `trimming` off a packet at a full queue is dropped. The defaults of the queue
    and its thresholds are SMaRTT's: one BDP, 20% and 80% of it.
    """

    architectures: ClassVar[tuple[str, ...]] = ("v1model", "t2na")
    contains: ClassVar[tuple[str, ...]] = ("ecn",)
    limits_queues: ClassVar[bool] = True

    # Limit of a port's queue of data; None: one BDP, which is the port's rate times the network's
    # largest base RTT.
    queue_bytes: int | None = Field(None, gt=0)
    # Limit of a port's queue of trimmed packets; None: twice that of its data, as in Ultra
    # Ethernet.
    header_queue_bytes: int | None = Field(1_000_000, gt=0)
    # Rate of a port for which queue sizes and thresholds are given; they scale with a port's rate.
    # None: they are the same for all ports.
    reference_rate_bps: int | None = Field(None, gt=0)
    kmin_fraction: Fraction01 = 0.2  # share of the queue limit from which on packets are marked with a probability
    kmax_fraction: Fraction01 = 0.8  # share of the queue limit from which on all packets are marked
    pmax: Probability = 1.0  # probability of a mark just below Kmax
    # Whether ports to hosts mark. Turn it off where receivers control their arrivals by credits,
    # because marks would then also report traffic that a receiver does not control.
    mark_host_ports: bool = True
    trimming: bool = True  # off: packets that find the queue full are dropped
    # Part that trims or drops: the program, in ingress, which can only take the newest packet, or the
    # traffic manager, which takes either that packet or the youngest one of the queue, each with
    # probability 1/2. BMv2's traffic manager does not trim.
    trimmed_by: Literal["program", "traffic-manager"] = "program"
    # Share of the queue limit from which on packets are trimmed at random. The probability grows to
    # 1 at the full queue. Otherwise, if flows send in step, the packets of the same flow would
    # always be trimmed. 1: only at the full queue.
    trim_from_fraction: Fraction01 = 0.875
    data_priorities: tuple[Priority, ...] = Field((3,), strict=False)  # the classes that are trimmed
    trim_size_bytes: int = Field(64, ge=MIN_TRIM_SIZE_BYTES, le=65535)  # length of a trimmed packet
    trim_priority: Priority = 6  # the class of trimmed packets
    trim_dscp: int = Field(6 * DSCP_OF_PRIORITY + 1, ge=0, le=63)  # the DSCP of trimmed packets
    # DSCP of packets that are trimmed on a port to a host, so that receivers can distinguish them;
    # None: trim_dscp.
    trim_last_hop_dscp: int | None = Field(None, ge=0, le=63)
    # Ports whose queue and thresholds are a fraction of those of other ports, for example of slower
    # links.
    smaller_queues: tuple[SmallerQueue, ...] = Field((), strict=False)
    # A queue is taken to be empty if no packet has left it for this many times the drain time of
    # both queues.
    stale_drain_times: int = Field(10, gt=0)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.kmin_fraction > self.kmax_fraction:
            raise ValueError(f"kmin_fraction should not exceed kmax_fraction ({self.kmax_fraction})")
        if self.trimming and any(priority >= self.trim_priority for priority in self.data_priorities):
            raise ValueError(f"data_priorities should be below trim_priority ({self.trim_priority})")
        if self.trim_last_hop_dscp == self.trim_dscp:
            raise ValueError(f"trim_last_hop_dscp should differ from trim_dscp ({self.trim_dscp})")
        return self

    def entries(self, switch: SwitchView) -> list[Entry]:
        if self.trimmed_by == "traffic-manager" and LIMITS_IN_CELLS in switch.tables:
            raise UserError("programs.trim.trimmed_by: T2NA's traffic manager does not trim; expected 'program'")
        self._check_dscp("trim_dscp", self.trim_dscp, switch)
        if self.trim_last_hop_dscp is not None:
            self._check_dscp("trim_last_hop_dscp", self.trim_last_hop_dscp, switch)
        for smaller in self.smaller_queues:
            ports = {} if switch.network is None else switch.network.ports.get(smaller.switch, {})
            if switch.network is not None and smaller.towards not in {there.node for there in ports.values()}:
                raise UserError(f"smaller_queues: no port of {smaller.switch!r} leads to {smaller.towards!r}")
        entries = forwarding_entries(switch)
        if self.trimming and self.trim_dscp not in switch.priority_of_dscp:
            priority = Action("set_priority", {"priority": self.trim_priority})
            entries.append(TableEntry("dscp_to_priority", {"dscp": Exact(self.trim_dscp)}, priority))
        thresholds = {}
        host_ports = switch.host_ports
        for port, queues in self._queues(switch).items():
            kmin, kmax = self.kmin_fraction * queues.data_bytes, self.kmax_fraction * queues.data_bytes
            thresholds[port] = red(kmin, kmax, self.pmax, switch.cell_bytes)
            if not self.mark_host_ports and port in host_ports:
                thresholds[port] = Action("no_marking")
            if self.trimmed_by == "program":
                entries += self._limits(switch, port, queues)
            elif self.trimming:
                trimmed = Action("trimmed_dscp", {"dscp": queues.dscp})
                entries.append(TableEntry("traffic_manager_trims", {"port": Exact(port)}, trimmed))
        return [*entries, *marking_entries(switch, thresholds)]

    def trimming_ports(self, switch: SwitchView) -> dict[int, Trimming]:
        if self.trimmed_by == "program":
            return {}
        return {
            port: Trimming(
                priorities=self.data_priorities,
                limit_bytes=queues.data_bytes,
                trim_priority=self.trim_priority,
                trim_limit_bytes=queues.header_bytes,
                trim_size_bytes=self.trim_size_bytes if self.trimming else None,
                victim="newest_or_youngest",
                seed=switch.seed << 32 | switch.device_id << 16 | port,
            )
            for port, queues in self._queues(switch).items()
        }

    def _queues(self, switch: SwitchView) -> dict[int, _PortQueues]:
        """Return the queues of each port."""
        queues = {}
        host_ports = switch.host_ports
        for port, rate_bps in sorted(switch.port_rates_bps.items()):
            scale = rate_bps / self.reference_rate_bps if self.reference_rate_bps else 1.0
            part = self._part(switch, port)
            usual = self.queue_bytes * scale if self.queue_bytes else switch.bdp_bytes(port)
            headers = self.header_queue_bytes * scale if self.header_queue_bytes else 2 * usual
            dscp = self.trim_dscp
            if self.trim_last_hop_dscp is not None and port in host_ports:
                dscp = self.trim_last_hop_dscp
            queues[port] = _PortQueues(round(usual * part), round(headers * part), dscp)
        return queues

    @property
    def last_hop_dscp(self) -> int:
        return NO_DSCP if self.trim_last_hop_dscp is None or not self.trimming else self.trim_last_hop_dscp

    def _part(self, switch: SwitchView, port: int) -> float:
        """Return the factor by which a port's queue is scaled."""
        for each in self.smaller_queues:
            there = switch.neighbours.get(port)
            if each.switch == switch.name and there is not None and there.node == each.towards:
                return each.fraction
        return 1.0

    def _check_dscp(self, key: str, dscp: int, switch: SwitchView) -> None:
        """Raise UserError unless `dscp` has the priority of trimmed packets or no priority."""
        known = switch.priority_of_dscp.get(dscp, self.trim_priority)
        if known != self.trim_priority:
            raise UserError(
                f"{key} {dscp} has priority {known} in this network; expected one of priority {self.trim_priority}, "
                "or of none"
            )

    def _limits(self, switch: SwitchView, port: int, queues: _PortQueues) -> list[Entry]:
        """Return the entries with which the program limits the queues of a port."""
        both_bytes = queues.data_bytes + queues.header_bytes
        drain_ns = self.stale_drain_times * both_bytes * 8 * 10**9 / switch.port_rates_bps[port]
        drain_ticks = max(1, round(drain_ns / switch.tick_ns))
        spread_bytes = round(queues.data_bytes * (1 - self.trim_from_fraction))
        table, unit, unit_bytes, spread = "queue_limit", "bytes", 1, spread_bytes
        if LIMITS_IN_CELLS in switch.tables:
            table, unit, unit_bytes = LIMITS_IN_CELLS, "cells", switch.cell_bytes
            spread = _mask(spread_bytes // unit_bytes)
        limit, trim_limit = queues.data_bytes // unit_bytes, queues.header_bytes // unit_bytes
        headers = Action("drop_when_full", {f"limit_{unit}": trim_limit, "drain_ticks": drain_ticks})
        data = Action("drop_when_full", {f"limit_{unit}": limit, "drain_ticks": drain_ticks})
        if self.trimming:
            data = Action(
                "trim_when_full",
                {
                    f"limit_{unit}": limit,
                    f"spread_{unit}": spread,
                    "trim_size_bytes": self.trim_size_bytes,
                    "trim_dscp": queues.dscp,
                    "trim_priority": self.trim_priority,
                    f"trim_limit_{unit}": trim_limit,
                    "drain_ticks": drain_ticks,
                },
            )
        actions = dict.fromkeys(self.data_priorities, data)
        actions[self.trim_priority] = headers
        return [
            TableEntry(table, {"port": Exact(port), "priority": Exact(priority)}, action)
            for priority, action in sorted(actions.items())
        ]


def _mask(most: int) -> int:
    """Return the largest number of ones in a row, from bit 0 on, that is at most `most`."""
    return (1 << (most + 1).bit_length() - 1) - 1
