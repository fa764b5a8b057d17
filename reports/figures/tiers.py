"""Figures of a tiered network: tiers of marked packets, and traffic on links (Dart, VI-B, table II)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from matplotlib.axes import Axes

from harness.measure.results import Result
from harness.plan.probes import CounterProbe, Probe, QueueProbe
from reports.figures.base import Figure, register
from reports.groups import Comparison, Variant
from reports.plots import part_colours, plain

_KINDS = ("to hosts", "down, to switches", "up")
"""Groups of switches' ports, by the tier behind them."""


class _ByTier(Figure):
    """Bars for each variant, over all seeds, of a probe's readings of ports at the end of each run."""

    reads: ClassVar[str]
    port: ClassVar[str]
    """The column of the probe's table that has the port."""
    value: ClassVar[str]
    unit: ClassVar[str]

    def fits(self, comparison: Comparison) -> bool:
        return all(self._probe(result) and len(result.topology.switches) > 1 for result in comparison.results)

    def _probe(self, result: Result) -> Probe | None:
        matching = (probe for probe in result.probes if probe.name in result.tables and self._counts(probe))
        return next(matching, None)

    def _counts(self, probe: Probe) -> bool:
        """Return whether a probe has read the quantity once, for all ports of all switches."""
        if isinstance(probe, CounterProbe):
            whole = (probe.switches, probe.indices) == ("*", None)
        elif isinstance(probe, QueueProbe):
            whole = (probe.switches, probe.port, probe.leads_to, probe.priority) == ("*", None, "*", None)
        else:
            whole = False
        return whole and probe.reads == self.reads and probe.interval_ns == 0

    def _of(self, result: Result) -> dict[str, float]:
        probe = self._probe(result)
        assert probe is not None
        table, topology = result.table(probe.name), result.topology
        sums = dict.fromkeys(_KINDS, 0.0)
        for switch, port, value in zip(table["switch"], table[self.port], table[self.value], strict=True):
            above = topology.switch_by_name.get(topology.ports[switch][port].node)
            if above is None:
                kind = "to hosts"
            else:
                kind = "up" if above.tier > topology.switch_by_name[switch].tier else "down, to switches"
            sums[kind] += value
        return sums

    def scaled(self, total: float) -> float:
        """Return the factor that scales the parts of a bar, given the total of the bar."""
        raise NotImplementedError

    def draw(self, axes: Axes, variants: Sequence[Variant]) -> None:
        below = np.zeros(len(variants))
        shades = part_colours(len(_KINDS))
        of = [[self._of(result) for result in variant.results] for variant in variants]
        sums = [{kind: sum(by_kind[kind] for by_kind in each) for kind in _KINDS} for each in of]
        scales = [self.scaled(sum(each.values())) for each in sums]
        for i, kind in enumerate(_KINDS):
            heights = np.array([each[kind] * scale for each, scale in zip(sums, scales, strict=True)])
            axes.bar(range(len(variants)), heights, 0.7, bottom=below, color=shades[i], label=kind)
            below += heights
        axes.set_xticks(range(len(variants)), [plain(variant.name) for variant in variants], rotation=30, ha="right")
        axes.set(ylabel=self.unit)


@register("marks-by-tier")
class Marks(_ByTier):
    order = 63
    reads, port, value, unit = "ecn_marked", "index", "packets", "share of marks (%)"

    def caption(self, comparison: Comparison) -> str:
        return "Which ports marked packets"

    def scaled(self, total: float) -> float:
        return 100 / total if total else 0


@register("carried-by-tier")
class Carried(_ByTier):
    """Bytes that switches have sent, by kind of port.

    A packet counts once for each link that it crosses, so detours add to the bytes.
    """

    order = 64
    reads, port, value, unit = "tx_bytes", "port", "tx_bytes", "sent by switches (MB)"

    def caption(self, comparison: Comparison) -> str:
        return "What switches' ports have sent: bytes times links"

    def scaled(self, total: float) -> float:
        return 1e-6
