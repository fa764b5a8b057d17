"""Heat maps of gains by attacks, and of penalties for short flows by scope (thesis, table 3.2)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import pandas as pd
from matplotlib import figure as matplotlib_figure
from matplotlib.axes import Axes

from harness.measure.results import Result
from reports.figures.base import Figure, register
from reports.groups import Comparison, Variant
from reports.plots import plain, styled

BASELINE = "none"  # name of the variant without an attack
VULNERABLE = 1.2  # smallest gain of a successful attack
SHORT_BYTES = (20_000, 110_000)  # sizes of flows that suffer from a shared reaction point (figure 3.12)
PAYS = 1.5  # smallest penalty that counts as one
_MOST = 2.0  # gain that has the darkest colour
_PER_QP = "qp"
_TAIL = 0.999


def gains(results: Sequence[Result]) -> pd.DataFrame:
    """Return the attackers' throughput relative to that without an attack: mean over seeds.

    Both have the same protocol, scope and seed. There is a row for each protocol and scope, and a
    column for each attack; NaN if there is no such run.
    """
    throughputs: dict[tuple[str, str, int], dict[str, float]] = defaultdict(dict)
    order: dict[str, None] = {}
    for result in results:
        summary = result.summary
        attack = summary["variant"].removeprefix(f"{summary['protocol']}, ")
        of = (summary["protocol"], result.cc_scope, summary["seed"])
        throughputs[of][attack] = summary["isolation"]["attackers"]["throughput_bps"] or np.nan
        order[attack] = None
    rows = [
        {"protocol": protocol, "scope": scope, **{a: bps / run[BASELINE] for a, bps in run.items() if a != BASELINE}}
        for (protocol, scope, _), run in throughputs.items()
        if BASELINE in run
    ]
    attacks = [attack for attack in order if attack != BASELINE]
    table = pd.DataFrame(rows, columns=["protocol", "scope", *attacks])
    return table.groupby(["protocol", "scope"], sort=False)[attacks].agg(_over_seeds)


def penalties(results: Sequence[Result]) -> pd.DataFrame:
    """Return the 99.9% slowdown of short flows relative to that with scope "qp": mean over seeds.

    Both have the same protocol and seed. There is a row for each protocol, and a column for each
    scope; NaN if there is no such run. The result is empty if runs have an attack, or differ in
    anything else than protocol, scope and seed.
    """
    tails: dict[tuple[str, int], dict[str, float]] = defaultdict(dict)
    runs = {(result.summary["protocol"], result.summary["seed"], result.cc_scope): result for result in results}
    if len(runs) == len(results) and not any("pieces" in result.tables for result in results):
        for (protocol, seed, scope), result in runs.items():
            short = result.flows["size_bytes"].between(*SHORT_BYTES)
            tails[protocol, seed][scope] = float(result.flows.loc[short, "slowdown"].quantile(_TAIL))
    rows = [
        {"protocol": protocol, **{scope: tail / of[_PER_QP] for scope, tail in of.items() if scope != _PER_QP}}
        for (protocol, _), of in tails.items()
        if _PER_QP in of
    ]
    scopes = list(dict.fromkeys(scope for row in rows for scope in row if scope != "protocol"))
    return pd.DataFrame(rows, columns=["protocol", *scopes]).groupby("protocol", sort=False)[scopes].agg(_over_seeds)


def _over_seeds(values: pd.Series[float]) -> float:
    """Return the mean over seeds; NaN if one of them has no value."""
    return float(values.mean(skipna=False))


@register("short-flow-penalty")
class Penalty(Figure):
    """Penalties of scopes for short flows. The figure needs variants of several scopes without an attack."""

    needs = ("flows",)
    order = 4
    of_sweeps: ClassVar[bool] = True

    def fits(self, comparison: Comparison) -> bool:
        return bool(penalties(comparison.results).notna().any(axis=None))

    def caption(self, comparison: Comparison) -> str:
        least, most = (size // 1000 for size in SHORT_BYTES)
        return f"99.9% slowdown of flows of {least} to {most} KB over that per QP; from {PAYS} on they pay (bold)"

    def plot(self, comparison: Comparison) -> matplotlib_figure.Figure:
        return _plotted(self, comparison, penalties(comparison.results))

    def draw(self, axes: Axes, variants: Sequence[Variant]) -> None:
        table = penalties([result for variant in variants for result in variant.results])
        _heat_map(axes, table, PAYS, [str(protocol) for protocol in table.index])


@register("isolation-matrix")
class Matrix(Figure):
    """Gains of attacks. The figure needs variants that attack, and one called `none`."""

    needs = ("pieces",)
    order = 4
    of_sweeps: ClassVar[bool] = True

    def fits(self, comparison: Comparison) -> bool:
        return gains(comparison.results).size > 1

    def caption(self, comparison: Comparison) -> str:
        return f"Attackers' throughput over theirs without an attack; from {VULNERABLE} on they gain (bold)"

    def plot(self, comparison: Comparison) -> matplotlib_figure.Figure:
        return _plotted(self, comparison, gains(comparison.results))

    def draw(self, axes: Axes, variants: Sequence[Variant]) -> None:
        table = gains([result for variant in variants for result in variant.results])
        _heat_map(axes, table, VULNERABLE, [f"{protocol}, {scope}" for protocol, scope in table.index])


def _plotted(figure: Figure, comparison: Comparison, table: pd.DataFrame) -> matplotlib_figure.Figure:
    rows, columns = table.shape
    with styled():
        plotted = matplotlib_figure.Figure(figsize=(2.2 + 1.1 * columns, 1.2 + 0.28 * rows), layout="constrained")
        figure.draw(plotted.subplots(), comparison.variants)
    return plotted


def _heat_map(axes: Axes, table: pd.DataFrame, bold_from: float, rows: Sequence[str]) -> None:
    values = table.to_numpy(float)
    axes.imshow(values, cmap="RdYlBu_r", vmin=2 - _MOST, vmax=_MOST, aspect="auto")
    for (row, column), gain in np.ndenumerate(values):
        if not np.isnan(gain):
            weight = "bold" if gain >= bold_from else "normal"
            colour = "white" if abs(gain - 1) > 0.8 * (_MOST - 1) else "black"
            axes.text(column, row, f"{gain:.2f}", ha="center", va="center", weight=weight, color=colour, size=8)
    axes.set_xticks(range(len(table.columns)), [plain(name) for name in table.columns], rotation=30, ha="right")
    axes.set_yticks(range(len(table)), [plain(name) for name in rows])
    axes.grid(False)
