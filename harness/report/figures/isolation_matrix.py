"""Who gains what by which attack: a heat map of protocols and scopes against attacks (thesis, table 3.2)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import pandas as pd
from matplotlib import figure as matplotlib_figure
from matplotlib.axes import Axes

from harness.measure.results import Result
from harness.report.figures.base import Figure, register
from harness.report.groups import Comparison, Variant
from harness.report.plots import plain, styled

BASELINE = "none"  # the variant without an attack
VULNERABLE = 1.2  # gain from which on an attack counts as one
_MOST = 2.0  # gain of the darkest colour


def gains(results: Sequence[Result]) -> pd.DataFrame:
    """The attackers' throughput over what they have without an attack, same protocol, scope and seed: mean over seeds.

    One row a protocol and scope, one column an attack; NaN where there is no such run.
    """
    found: dict[tuple[str, str, int], dict[str, float]] = defaultdict(dict)
    order: dict[str, None] = {}
    for result in results:
        summary = result.summary
        attack = summary["variant"].removeprefix(f"{summary['protocol']}, ")
        of = (summary["protocol"], result.cc_scope, summary["seed"])
        found[of][attack] = summary["isolation"]["attackers"]["throughput_bps"] or np.nan
        order[attack] = None
    rows = [
        {"protocol": protocol, "scope": scope, **{a: bps / run[BASELINE] for a, bps in run.items() if a != BASELINE}}
        for (protocol, scope, _), run in found.items()
        if BASELINE in run
    ]
    attacks = [attack for attack in order if attack != BASELINE]
    table = pd.DataFrame(rows, columns=["protocol", "scope", *attacks])
    return table.groupby(["protocol", "scope"], sort=False)[attacks].mean()


@register("isolation-matrix")
class Matrix(Figure):
    """Needs variants that attack, and one called `none`."""

    needs = ("pieces",)
    order = 4
    of_sweeps: ClassVar[bool] = True

    def fits(self, comparison: Comparison) -> bool:
        return gains(comparison.results).size > 1

    def caption(self, comparison: Comparison) -> str:
        return f"Attackers' throughput over theirs without an attack; from {VULNERABLE} on they gain (bold)"

    def plot(self, comparison: Comparison) -> matplotlib_figure.Figure:
        rows, columns = gains(comparison.results).shape
        with styled():
            figure = matplotlib_figure.Figure(figsize=(2.2 + 1.1 * columns, 1.2 + 0.28 * rows), layout="constrained")
            self.draw(figure.subplots(), comparison.variants)
        return figure

    def draw(self, axes: Axes, variants: Sequence[Variant]) -> None:
        table = gains([result for variant in variants for result in variant.results])
        values = table.to_numpy(float)
        axes.imshow(values, cmap="RdYlBu_r", vmin=2 - _MOST, vmax=_MOST, aspect="auto")
        for (row, column), gain in np.ndenumerate(values):
            if not np.isnan(gain):
                weight = "bold" if gain >= VULNERABLE else "normal"
                colour = "white" if abs(gain - 1) > 0.8 * (_MOST - 1) else "black"
                axes.text(column, row, f"{gain:.2f}", ha="center", va="center", weight=weight, color=colour, size=8)
        axes.set_xticks(range(len(table.columns)), [plain(name) for name in table.columns], rotation=30, ha="right")
        axes.set_yticks(range(len(table)), [plain(f"{protocol}, {scope}") for protocol, scope in table.index])
        axes.grid(False)
