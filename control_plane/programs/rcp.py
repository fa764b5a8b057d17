"""Forwarding with ECMP and RCP's rate of every link: `p4src/rcp.p4`.

Source: Dukkipati et al., "Processor Sharing Flows in the Internet", IWQoS 2005.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import exp, log, log1p
from typing import Annotated, ClassVar

from pydantic import Field

from control_plane.programs.base import ProgramParameters, SwitchView, register
from control_plane.programs.entries import Action, DefaultAction, Entry, Exact, Lpm, PathCell, TableEntry
from control_plane.programs.forwarding import forwarding_entries
from p4switch.architectures.front_panel import FrontPanel
from p4switch.architectures.tna.state import PktgenBufferState, Trigger
from p4switch.errors import UserError

_WORD = 1 << 32
_MOST = _WORD - 1
_MOST_EXCESS = _WORD // 2 - 1  # the excess has a sign

# Constants of the form for chips (p4src/include/tofino/rate_control.p4).
STEPS = 1 << 12  # number of rates from the link's to the lowest
SIGNIFICANT_BITS = 7  # bits of the numbers that its tables multiply
_MOST_CLASSES = 4  # number of classes of links; the table link_rate has STEPS entries for each
_ETHERTYPE = 0x88B5
_HIGHEST_PRIORITY = 7
_ADDRESS_BYTES, _UPDATE_BYTES, _FRAME_BYTES = 6, 5, 60


@register("rcp")
class RcpParameters(ProgramParameters):
    """Constants of RCP.

    `alpha` and `beta` are those of published scripts; other scripts have (0.4, 0.4) and (0.4, 1).
    """

    architectures: ClassVar[tuple[str, ...]] = ("v1model", "tna", "t2na")

    alpha: float = Field(0.1, gt=0, le=10)  # share of the spare capacity that is distributed in an RTT
    beta: float = Field(1.0, ge=0, le=10)  # share of the queue that is drained in an RTT
    # Least time between two updates of the rate; in the form for chips, the time between them.
    interval_base_rtts: float = Field(0.25, gt=0, le=1)
    min_share: float = Field(0.001, gt=0, le=1)  # lowest announced rate, as a share of the link's
    data_priority: Annotated[int, Field(ge=0, le=7)] = 3  # the class whose queue is counted

    def entries(self, switch: SwitchView) -> list[Entry]:
        rtt_ticks = round(switch.base_rtt_ns / switch.tick_ns)
        interval_ticks = round(self.interval_base_rtts * switch.base_rtt_ns / switch.tick_ns)
        if interval_ticks < 1:
            raise UserError(
                f"interval_base_rtts: should make at least a tick of the switch's clock ({switch.tick_ns} ns), "
                f"got {self.interval_base_rtts} of {switch.base_rtt_ns} ns"
            )
        entries = forwarding_entries(switch)
        if (panel := switch.front_panel) is not None:
            return [*entries, *self._chip_entries(switch, panel, round(interval_ticks * switch.tick_ns))]
        for port, rate_bps in sorted(switch.port_rates_bps.items()):
            bdp_bytes = max(1, round(switch.bdp_bytes(port)))
            bytes_per_tick = rate_bps * float(switch.tick_ns) / 8e9
            link = {
                "capacity_kbps": rate_bps // 1000,
                "min_kbps": max(1, round(rate_bps * self.min_share / 1000)),
                "capacity": round(bytes_per_tick * (1 << 16)),
                "bdp_bytes": bdp_bytes,
                "inverse_bdp": min(_WORD - 1, _WORD // bdp_bytes),
                "interval_ticks": interval_ticks,
                "rtt_ticks": rtt_ticks,
                "alpha": round(self.alpha * (1 << 16)),
                "beta_per_rtt": round(self.beta * _WORD / rtt_ticks),
                "priority": self.data_priority,
                "overhead_bytes": switch.overhead_word(port),
            }
            for name in ("capacity_kbps", "capacity", "bdp_bytes", "beta_per_rtt"):
                if link[name] >= _WORD:
                    raise UserError(f"rcp: {name} of port {port} is {link[name]}; expected less than 2^32")
            entries.append(TableEntry("rate_control", {"port": Exact(port)}, Action("control_rate", link)))
        return entries

    def _chip_entries(self, switch: SwitchView, panel: FrontPanel, interval_ns: int) -> Iterator[Entry]:
        """Yield the entries of the form for chips, which has the equation's products in its tables."""
        if len(switch.program_pipes) > 1:
            raise UserError("rcp: bytes are counted in each pipe by itself; expected a switch of one pipe")
        links = {port: (rate_bps, switch.bdp_bytes(port)) for port, rate_bps in switch.port_rates_bps.items()}
        classes = {link: number for number, link in enumerate(sorted(set(links.values())), start=1)}
        if len(classes) > _MOST_CLASSES:
            raise UserError(
                f"rcp: links of switch {switch.name} have {len(classes)} different pairs of a rate and a base RTT; "
                f"expected at most {_MOST_CLASSES}"
            )
        overheads = {switch.overhead_bytes(port) for port in links}
        if len(overheads) > 1:
            raise UserError(
                f"rcp: links of switch {switch.name} charge {sorted(overheads)} bytes beyond a frame's; "
                "expected the same for all"
            )
        for overhead_bytes in overheads:
            overhead = Action("add_overhead", {"overhead_bytes": overhead_bytes & 0xFFFF})
            yield DefaultAction("frame_overhead", overhead)
        for is_update, priority, name in (0, self.data_priority, "keep_depth"), (1, _HIGHEST_PRIORITY, "ask_depth"):
            key = {"is_update": Exact(is_update), "priority": Exact(priority)}
            yield TableEntry("queue_depth", key, Action(name))
        for number, (port, link) in enumerate(sorted(links.items())):
            of_class = Action("set_class", {"link_class": classes[link]})
            yield TableEntry("class_of_port", {"port": Exact(port)}, of_class)
            update = {
                "port": port,
                "priority": _HIGHEST_PRIORITY,
                "link_class": classes[link],
                "capacity_bytes": round(link[0] * interval_ns / 8e9),
            }
            yield TableEntry("port_of_update", {"number": Exact(number)}, Action("update", update))
        # An excess has its largest effect from BDP / (2 alpha) on: R is halved, even if nothing has arrived.
        most_bytes = max(bdp_bytes / (2 * self.alpha) + rate_bps * interval_ns / 8e9 for rate_bps, bdp_bytes in classes)
        arriving_bytes = sum(rate_bps for rate_bps, _ in links.values()) * interval_ns / 8e9
        if most_bytes + arriving_bytes > _MOST_EXCESS:
            raise UserError(
                f"rcp: excess bytes of switch {switch.name} reach {most_bytes + arriving_bytes:.0f}, because alpha is "
                f"{self.alpha:g}; expected at most {_MOST_EXCESS}"
            )
        weight = self.beta * interval_ns / (self.alpha * switch.base_rtt_ns) * switch.cell_bytes
        if weight:
            for prefix, cells in prefixes(round(most_bytes / weight) + 1):
                queued = Action("add_queue", {"excess_bytes": min(round(weight * cells), round(most_bytes))})
                yield TableEntry("queue_excess", {"cells": prefix}, queued)
        for (rate_bps, bdp_bytes), number in classes.items():
            yield from self._rates(number, rate_bps)
            for rises, most_change in ((0, -0.5), (1, 1.0)):
                share = (1 if rises else -1) * self.alpha / bdp_bytes  # relative change of R per byte of the excess
                for prefix, excess_bytes in prefixes(min(round(most_change / share) + 1, _MOST_EXCESS)):
                    change = share * excess_bytes if prefix.prefix_len else most_change
                    log_change = Action("set_change", {"log_change": self._reduction(change)})
                    sign = {"link_class": Exact(number), "rises": Exact(rises)}
                    yield TableEntry("log_change", {**sign, "excess": prefix}, log_change)
        yield from self._timer(panel, len(links), interval_ns)

    def _reduction(self, change: float) -> int:
        """Return the change of the register if R changes by this share; 2^32 - 1 stands for `min_share`."""
        most = -log(self.min_share)
        return min(round(abs(log1p(change)) / most * _MOST), _MOST) if most else _MOST

    def _rates(self, number: int, rate_bps: int) -> Iterator[TableEntry]:
        """Yield the rates of a class of links. In the middle of a step R is exact."""
        for step in range(STEPS):
            share = exp(log(self.min_share) * (step + 0.5) / STEPS) if step else 1.0
            key = {"link_class": Exact(number), "reduction": Exact(step)}
            rate_kbps = max(1, round(rate_bps * share / 1000))
            if rate_kbps >= _WORD:
                raise UserError(f"rcp: a link has {rate_kbps} kb/s; expected less than 2^32")
            yield TableEntry("link_rate", key, Action("lower_to", {"rate_kbps": rate_kbps}))

    @staticmethod
    def _timer(panel: FrontPanel, ports: int, interval_ns: int) -> Iterator[PathCell]:
        """Yield the cells with which the packet generator makes an update for each port in every interval."""
        frame = bytes(_ADDRESS_BYTES) + _ETHERTYPE.to_bytes(2, "big") + bytes(_UPDATE_BYTES)
        frame += bytes(_FRAME_BYTES - _ADDRESS_BYTES - len(frame))
        cell_bytes = PktgenBufferState.BYTES
        for index, start in enumerate(range(0, len(frame), cell_bytes)):
            part = frame[start : start + cell_bytes].ljust(cell_bytes, b"\0")
            yield PathCell("$pktgen_buffer", index, {"bytes": int.from_bytes(part, "big")})
        timer = {"trigger": Trigger.PERIODIC, "timer_ns": interval_ns, "batches": 1, "packets": ports}
        yield PathCell("$pktgen", 0, {**timer, "length": len(frame), "enabled": 1, "port": panel.recirculation[0]})


def prefixes(most: int) -> Iterator[tuple[Lpm, int]]:
    """Yield prefixes of 32 bits for the numbers up to `most`, each with the middle of its numbers.

    A prefix fixes SIGNIFICANT_BITS of its numbers, and the lower bits are free. The prefix of
    length 0 is for all larger numbers.
    """
    yield Lpm(0, 0), most
    for number in range(1 << SIGNIFICANT_BITS):
        yield Lpm(number, 32), number
    for free in range(1, 33 - SIGNIFICANT_BITS):
        for head in range(1 << (SIGNIFICANT_BITS - 1), 1 << SIGNIFICANT_BITS):
            if head << free > most:
                return
            yield Lpm(head << free, 32 - free), (head << free) + (1 << (free - 1))
