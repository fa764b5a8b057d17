"""Forwarding with ECMP, RED/ECN marking at dequeue, packet trimming: `p4src/trim.p4`."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field, model_validator
from typing_extensions import Self

from harness.control.programs.base import DSCP_OF_PRIORITY, ProgramParameters, SwitchView, register
from harness.control.programs.entries import Action, Entry, Exact, TableEntry
from harness.control.programs.forwarding import forwarding_entries
from harness.control.programs.marking import Probability, marking_entries, red
from p4switch.errors import UserError
from p4switch.tables import Table

Priority = Annotated[int, Field(ge=0, le=7)]
Fraction01 = Annotated[float, Field(ge=0, le=1)]

MIN_TRIM_SIZE_BYTES = 54  # Ethernet, IPv4, UDP and BTH: what a receiver needs to know which packet it was


class SmallerQueue(Table):
    """The port of `switch` to `towards`, whose queue and thresholds are `fraction` of what they would be."""

    switch: str  # name of the switch that has the port
    towards: str  # name of the node that the port leads to
    fraction: float = Field(gt=0, le=1)  # of the queue and its thresholds


@register("trim")
class TrimParameters(ProgramParameters):
    """Queue limits, RED thresholds as fractions of them, and what becomes of a packet that finds its queue full.

    SONiC's packet-trimming knobs are the model: `trim_size_bytes`, `trim_dscp`, `trim_priority` (its queue). With
    `trimming` off such a packet is dropped. The defaults of the queue and its thresholds are SMaRTT's: one BDP, 20% and
    80% of it.
    """

    contains: ClassVar[tuple[str, ...]] = ("ecn",)
    limits_queues: ClassVar[bool] = True

    # What a port's data may hold; None: one BDP, which is its rate times the network's largest base RTT.
    queue_bytes: int | None = Field(None, gt=0)
    # What a port's trimmed packets may hold; None: twice what its data may, as in Ultra Ethernet.
    header_queue_bytes: int | None = Field(1_000_000, gt=0)
    # Queue sizes and thresholds are for a port of this rate and grow with a port's rate; None: the same for all ports.
    reference_rate_bps: int | None = Field(None, gt=0)
    kmin_fraction: Fraction01 = 0.2  # of the queue limit, from which on packets are marked by lot
    kmax_fraction: Fraction01 = 0.8  # of the queue limit, from which on all packets are marked
    pmax: Probability = 1.0  # probability of a mark just below Kmax
    # Whether ports to hosts mark; off: where receivers draw what comes, marks tell of what is not theirs to draw.
    mark_host_ports: bool = True
    trimming: bool = True  # off: what finds its queue full is dropped
    # From this part of the queue on a packet is trimmed by lot, ever more likely up to the full queue, where all are:
    # else, of flows that send in step, always the same one would be. 1: at the full queue only.
    trim_from_fraction: Fraction01 = 0.875
    data_priorities: tuple[Priority, ...] = Field((3,), strict=False)  # the classes that are trimmed
    trim_size_bytes: int = Field(64, ge=MIN_TRIM_SIZE_BYTES, le=65535)  # what is left of a trimmed packet
    trim_priority: Priority = 6  # the class of trimmed packets
    trim_dscp: int = Field(6 * DSCP_OF_PRIORITY + 1, ge=0, le=63)  # the DSCP of trimmed packets
    # That of packets trimmed on a port to a host, by which receivers tell them apart; None: trim_dscp.
    trim_last_hop_dscp: int | None = Field(None, ge=0, le=63)
    # Ports whose queue and thresholds are a part of the others', as where a link is slower.
    smaller_queues: tuple[SmallerQueue, ...] = Field((), strict=False)
    # A queue that nothing has left for so many times the time it takes to drain both queues is taken to be empty.
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
        host_ports = switch.ports_to_tier(None)
        for port, rate_bps in sorted(switch.port_rates_bps.items()):
            scale = rate_bps / self.reference_rate_bps if self.reference_rate_bps else 1.0
            part = self._part(switch, port)
            usual = self.queue_bytes * scale if self.queue_bytes else switch.bdp_bytes(port)
            limit = round(usual * part)
            kmin, kmax = self.kmin_fraction * limit, self.kmax_fraction * limit
            thresholds[port] = red(kmin, kmax, self.pmax, switch.cell_bytes)
            if not self.mark_host_ports and port in host_ports:
                thresholds[port] = Action("no_marking")
            dscp = self.trim_dscp
            if self.trim_last_hop_dscp is not None and port in host_ports:
                dscp = self.trim_last_hop_dscp
            headers = self.header_queue_bytes * scale if self.header_queue_bytes else 2 * usual
            header_limit = round(headers * part)
            entries += self._limits(switch, port, limit, header_limit, rate_bps, dscp)
        return [*entries, *marking_entries(switch, thresholds)]

    @property
    def last_hop_dscp(self) -> int:
        return -1 if self.trim_last_hop_dscp is None or not self.trimming else self.trim_last_hop_dscp

    def _part(self, switch: SwitchView, port: int) -> float:
        """Return the part of its usual size that a port's queue has."""
        for each in self.smaller_queues:
            there = switch.neighbours.get(port)
            if each.switch == switch.name and there is not None and there.node == each.towards:
                return each.fraction
        return 1.0

    def _check_dscp(self, key: str, dscp: int, switch: SwitchView) -> None:
        """Raise UserError unless `dscp` says the priority of trimmed packets, or none."""
        known = switch.priority_of_dscp.get(dscp, self.trim_priority)
        if known != self.trim_priority:
            raise UserError(
                f"{key} {dscp} has priority {known} in this network; expected one of priority {self.trim_priority}, "
                "or of none"
            )

    def _limits(
        self, switch: SwitchView, port: int, limit: int, header_limit: int, rate_bps: int, dscp: int
    ) -> list[Entry]:
        drain_ns = self.stale_drain_times * (limit + header_limit) * 8 * 10**9 / rate_bps
        drain_ticks = max(1, round(drain_ns / switch.tick_ns))
        headers = Action("drop_when_full", {"limit_bytes": header_limit, "drain_ticks": drain_ticks})
        data = Action("drop_when_full", {"limit_bytes": limit, "drain_ticks": drain_ticks})
        if self.trimming:
            data = Action(
                "trim_when_full",
                {
                    "limit_bytes": limit,
                    "spread_bytes": round(limit * (1 - self.trim_from_fraction)),
                    "trim_size_bytes": self.trim_size_bytes,
                    "trim_dscp": dscp,
                    "trim_priority": self.trim_priority,
                    "trim_limit_bytes": header_limit,
                    "drain_ticks": drain_ticks,
                },
            )
        actions = dict.fromkeys(self.data_priorities, data)
        actions[self.trim_priority] = headers
        return [
            TableEntry("queue_limit", {"port": Exact(port), "priority": Exact(priority)}, action)
            for priority, action in sorted(actions.items())
        ]
