"""Base of figures: one plot of a comparison, in a file of its own that names the tables it needs.

@register("credit")
class Credit(Figure):
    needs = ("credit",)                 # the table of a probe of that name

    def caption(self, comparison: Comparison) -> str:
        return "Credit of each receiver"

    def draw(self, axes: Axes, variants: Sequence[Variant]) -> None:
        for variant in variants:
            table = variant.results[0].table("credit")
            times_us, kb = table["time_ns"] / 1e3, table["credit_bytes"] / 1e3
            axes.plot(times_us, kb, **line(variant.number), label=plain(variant.name))
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from matplotlib import figure as matplotlib_figure
from matplotlib.axes import Axes

from p4switch.registry import Registry
from reports.groups import Comparison, Part, Variant, parts
from reports.plots import (
    DASHES,
    MARKERS,
    colour,
    line,
    marker,
    name_scales,
    part_colours,
    plain,
    side_by_side,
    styled,
)

_SHORT = 24  # characters; if names are longer, a legend has them below each other
MAX_LINES = 128  # limit beyond which flows cannot be distinguished


class Figure(ABC):
    """Figure with one pair of axes for all variants of a scenario."""

    needs: ClassVar[tuple[str, ...]] = ()
    """Tables that every run must have, or there is no such figure."""

    order: ClassVar[int] = 100
    """Its place on the page."""

    of_sweeps: ClassVar[bool] = False
    """True if it is also drawn for all runs of a sweep."""

    def fits(self, comparison: Comparison) -> bool:
        """Return whether there is data to draw; called only if the needed tables exist."""
        return True

    def wide(self, comparison: Comparison) -> bool:
        """Return whether the figure takes the page's whole width."""
        return False

    @abstractmethod
    def caption(self, comparison: Comparison) -> str: ...

    @abstractmethod
    def draw(self, axes: Axes, variants: Sequence[Variant]) -> None: ...

    def plot(self, comparison: Comparison) -> matplotlib_figure.Figure:
        """Return the whole figure, with its legend below, where it covers nothing."""
        with styled():
            figure = matplotlib_figure.Figure(layout="constrained")
            axes = figure.subplots()
            self.draw(axes, comparison.variants)
            name_scales(axes)
            names = axes.get_legend_handles_labels()[1]
            columns = 2 if max(map(len, names), default=0) <= _SHORT else 1
            figure.set_size_inches(5.4, 3.3 + 0.17 * -(-len(names) // columns))
            figure.legend(loc="outside lower center", ncols=columns, fontsize="small")
        return figure


class FigurePerVariant(Figure):
    """Figure with axes of equal scale for each variant, side by side.

    Each shows the first seed only.
    """

    from_zero: ClassVar[bool] = True
    """True if the y axis begins at 0."""

    def wide(self, comparison: Comparison) -> bool:
        return sum(map(self.has, comparison.variants)) > 1

    def draw(self, axes: Axes, variants: Sequence[Variant]) -> None:
        (variant,) = variants
        self.draw_one(axes, variant)

    @abstractmethod
    def draw_one(self, axes: Axes, variant: Variant) -> None: ...

    def has(self, variant: Variant) -> bool:
        """Return whether this variant has data to draw; other variants get no axes."""
        return True

    def plot(self, comparison: Comparison) -> matplotlib_figure.Figure:
        variants = [variant for variant in comparison.variants if self.has(variant)]
        columns = min(side_by_side(), len(variants))
        rows = -(-len(variants) // columns)
        with styled():
            figure = matplotlib_figure.Figure(figsize=(5.4 * columns, 3.3 * rows), layout="constrained")
            grid = figure.subplots(rows, columns, sharey=True, sharex=True, squeeze=False)
            for axes, variant in zip(grid.flat, variants, strict=False):
                self.draw_one(axes, variant)
                name_scales(axes)
                axes.set_title(plain(variant.name), color=colour(variant.number))
            if self.from_zero:
                grid.flat[0].set_ylim(bottom=0)  # the limits of all shared axes, once all have data
            for axes in grid.flat[len(variants) :]:
                axes.remove()
            for axes in grid.flat[: max(0, len(variants) - columns)]:
                axes.set_xlabel("")
            for axes in grid.flat[max(0, len(variants) - columns) : len(variants)]:
                axes.tick_params(labelbottom=True)  # the lowest axes of a column in which the last row is not full
        return figure


@dataclass(frozen=True)
class Style:
    """Keywords of `plot` for one part of the traffic: for its lines, and for its points."""

    line: dict[str, Any]
    points: dict[str, Any]


def styles_of_parts(variants: Sequence[Variant]) -> list[tuple[Part, Style]]:
    """Return the parts of these variants, each with its style.

    Groups of a single variant differ by colour. Groups of several variants have their variant's
    colour, and differ by line style and marker.
    """
    styled = parts(variants)
    count = max((part.group for part in styled), default=0) + 1
    if count == 1:
        looks = [(line(part.variant.number), marker(part.variant.number)) for part in styled]
    elif len(variants) == 1:
        looks = [({"color": shade, "ls": "-"}, MARKERS[0]) for shade in part_colours(count)]
    else:
        looks = [
            (
                {"color": colour(part.variant.number), "ls": DASHES[part.group % len(DASHES)]},
                MARKERS[part.group % len(MARKERS)],
            )
            for part in styled
        ]
    return [
        (part, Style(lines, {"color": lines["color"], "marker": shape}))
        for part, (lines, shape) in zip(styled, looks, strict=True)
    ]


def which_seed(comparison: Comparison) -> str:
    """Return a caption's note on which of several seeds the figure shows; "" if there is only one."""
    seeds = sorted({result.summary["seed"] for result in comparison.results})
    if len(seeds) < 2:
        return ""
    shown = {variant.results[0].summary["seed"] for variant in comparison.variants}
    which = "seed" if len(shown) == 1 else "seeds"
    return f" ({which} {', '.join(map(str, sorted(shown)))}; the runs have {len(seeds)} seeds)"


REGISTRY: Registry[type[Figure]] = Registry(
    "figure", group="p4cc.figures", package="reports.figures", base=Figure
)
register = REGISTRY.register
