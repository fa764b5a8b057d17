"""What a figure is: one plot of a comparison, in a file of its own that says which tables it needs.

@register("credit")
class Credit(Figure):
    needs = ("credit",)                 # the table of a probe of that name

    def caption(self, comparison: Comparison) -> str:
        return "Credit of each receiver"

    def draw(self, axes: Axes, variants: Sequence[Variant]) -> None:
        for i, variant in enumerate(variants):
            table = variant.results[0].table("credit")
            axes.plot(table["time_ns"] / 1e3, table["credit_bytes"], **line(i), label=plain(variant.name))
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import matplotlib as mpl
from matplotlib import figure as matplotlib_figure
from matplotlib.axes import Axes

from harness.report.groups import Comparison, Variant
from harness.report.plots import STYLE, colour, plain
from p4switch.registry import Registry

MAX_INSIDE = 4  # variants: a longer legend stands below the plot
MAX_LINES = 128  # flows: more are not told apart


class Figure(ABC):
    """One pair of axes with all variants of a scenario."""

    needs: ClassVar[tuple[str, ...]] = ()
    """Tables that every run must have, or there is no such figure."""

    order: ClassVar[int] = 100
    """Its place on the page."""

    of_sweeps: ClassVar[bool] = False
    """Whether it is drawn of all runs of a sweep, too."""

    def fits(self, comparison: Comparison) -> bool:
        """Whether there is something to be seen; what it needs is there."""
        return True

    def wide(self, comparison: Comparison) -> bool:
        """Whether it takes the page's whole width."""
        return False

    @abstractmethod
    def caption(self, comparison: Comparison) -> str: ...

    @abstractmethod
    def draw(self, axes: Axes, variants: Sequence[Variant]) -> None: ...

    def plot(self, comparison: Comparison) -> matplotlib_figure.Figure:
        """The whole figure, with its legend."""
        variants = comparison.variants
        with mpl.rc_context(fname=STYLE):
            below = -(-len(variants) // 2) if len(variants) > MAX_INSIDE else 0  # lines of the legend
            figure = matplotlib_figure.Figure(figsize=(5.4, 3.3 + 0.17 * below), layout="constrained")
            axes = figure.subplots()
            self.draw(axes, variants)
            if below:
                figure.legend(loc="outside lower center", ncols=2, fontsize=7)
            else:
                axes.legend()
        return figure


class FigurePerVariant(Figure):
    """Axes for each variant, side by side, of equal scale."""

    def wide(self, comparison: Comparison) -> bool:
        return len(comparison.variants) > 1

    def draw(self, axes: Axes, variants: Sequence[Variant]) -> None:
        (variant,) = variants
        self.draw_one(axes, variant)

    @abstractmethod
    def draw_one(self, axes: Axes, variant: Variant) -> None: ...

    def plot(self, comparison: Comparison) -> matplotlib_figure.Figure:
        variants = comparison.variants
        rows, columns = -(-len(variants) // 2), min(2, len(variants))
        with mpl.rc_context(fname=STYLE):
            figure = matplotlib_figure.Figure(figsize=(5.4 * columns, 3.3 * rows), layout="constrained")
            grid = figure.subplots(rows, columns, sharey=True, sharex=True, squeeze=False)
            for i, (axes, variant) in enumerate(zip(grid.flat, variants, strict=False)):
                self.draw_one(axes, variant)
                axes.set_title(plain(variant.name), color=colour(i))
            for axes in grid.flat[len(variants) :]:
                axes.remove()
        return figure


REGISTRY: Registry[type[Figure]] = Registry(
    "figure", group="p4cc.figures", package="harness.report.figures", base=Figure
)
register = REGISTRY.register
