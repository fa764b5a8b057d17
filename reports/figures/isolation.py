"""Figures of attackers and victims separately: shares of the network, and completion times of flows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from harness.measure.summary import ROLES
from reports.figures.base import Figure, register
from reports.groups import Comparison, Estimate, Variant, by_size, over_seeds
from reports.plots import colour, marker, part_colours, plain, plain_logarithmic

_SIZE_BINS = 10
_PERCENTILE = 0.99


@register("isolation")
class Shares(Figure):
    """Bars side by side, means over seeds with their confidence interval."""

    needs = ("pieces",)
    order = 5

    def fits(self, comparison: Comparison) -> bool:
        return any(_throughput(variant, role) for variant in comparison.variants for role in ROLES)

    def caption(self, comparison: Comparison) -> str:
        return "Throughput of attackers and victims on receivers' links, second half of the run"

    def draw(self, axes: Axes, variants: Sequence[Variant]) -> None:
        places = np.arange(len(variants))
        shades = part_colours(len(ROLES))
        for i, role in enumerate(ROLES):
            throughputs = [_throughput(variant, role) for variant in variants]
            means = [np.nan if value is None else value.mean / 1e9 for value in throughputs]
            half = [0 if value is None else (value.half_width or 0) / 1e9 for value in throughputs]
            axes.bar(places + (i - 0.5) * 0.4, means, 0.4, yerr=half, color=shades[i], label=f"{role}s")
        names = [plain(variant.name) for variant in variants]
        several = len(variants) > 2
        axes.set_xticks(places, names, rotation=30 if several else 0, ha="right" if several else "center")
        axes.set(ylabel="throughput (Gb/s)")


def _throughput(variant: Variant, role: str) -> Estimate | None:
    return over_seeds(variant, lambda summary: summary["isolation"][f"{role}s"]["throughput_bps"])


def _victims(variant: Variant) -> pd.DataFrame:
    """Return the victims' flows that were delivered."""
    flows = pd.concat([result.flows for result in variant.results])
    return flows[(flows["role"] == "victim") & flows["fct_ns"].notna()]


@register("victims")
class VictimsSlowdown(Figure):
    needs = ("pieces",)
    order = 21

    def fits(self, comparison: Comparison) -> bool:
        return any(_victims(variant)["size_bytes"].nunique() > 2 for variant in comparison.variants)

    def caption(self, comparison: Comparison) -> str:
        return "Slowdown of victims by flow size, 99th percentile; dashed: of attackers"

    def draw(self, axes: Axes, variants: Sequence[Variant]) -> None:
        for variant in variants:
            flows = pd.concat([r.flows for r in variant.results]).dropna(subset=["slowdown"])
            look: dict[str, Any] = {"color": colour(variant.number), "marker": marker(variant.number), "ms": 3}
            for role, dash in (("victim", "-"), ("attacker", "--")):
                own = flows[flows["role"] == role]
                if own.empty:
                    continue
                bins = by_size(own, _SIZE_BINS)
                label = plain(variant.name) if role == "victim" else None
                axes.plot(
                    bins["size_bytes"].median(), bins["slowdown"].quantile(_PERCENTILE), dash, **look, label=label
                )
        axes.set(xscale="log", yscale="log", xlabel="flow size (bytes)", ylabel="FCT slowdown")
        plain_logarithmic(axes.yaxis)
