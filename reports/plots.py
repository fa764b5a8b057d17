"""Style and output of all plots.

A colour has one meaning on a page. A variant has a colour of `COLOURS` in every figure. Parts of a
variant (flows, places, groups of traffic, kinds of ports) have colours of `part_colours`, or their
variant's colour and a line style each.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator

from reports.figure_data import figure_table

# Okabe and Ito's palette, distinguishable with any colour vision. Its yellow is left out, because
# it is hard to see on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES = ("-", "--", ":", "-.")  # each for seven variants
MARKERS = ("o", "^", "s", "D")
PAPER: dict[str, Any] = {"color": "black", "mfc": "none", "ms": 5, "ls": "none"}  # style of papers' numbers
MAX_POINTS = 1500  # limit of a line's points; more are not visible, but an SVG would contain each of them
STYLE = Path(__file__).with_name("report.mplstyle")

_styles: ContextVar[tuple[Path, ...]] = ContextVar("_styles", default=(STYLE,))
_side_by_side: ContextVar[int] = ContextVar("_side_by_side", default=2)

_NO_METADATA = dict.fromkeys(("Date", "Creator", "Format", "Type"))


def plain(name: str) -> str:
    """Return a user's name for matplotlib, in which a dollar sign starts no formula."""
    return name.replace("$", r"\$")


def colour(index: int) -> str:
    return COLOURS[index % len(COLOURS)]


def line(index: int) -> dict[str, Any]:
    """Return the line style of a variant by its number, the same in every plot."""
    return {"color": colour(index), "ls": DASHES[index // len(COLOURS) % len(DASHES)]}


def part_colours(count: int) -> list[str]:
    """Return colours for the parts of a variant, from dark to light, none of which is a variant's."""
    return [to_hex(mpl.colormaps["viridis"](at)) for at in np.linspace(0, 0.92, count)]


def marker(index: int) -> str:
    return MARKERS[index // len(COLOURS) % len(MARKERS)]


def thinned(times: pd.Series[Any], values: pd.Series[Any]) -> tuple[Any, Any]:
    """Return at most MAX_POINTS points: the largest of each interval, so that peaks are kept."""
    step = -(-len(times) // MAX_POINTS)
    if step <= 1:
        return times, values
    groups = np.arange(len(times)) // step
    return times.groupby(groups).first(), values.groupby(groups).max()


@contextmanager
def for_paper(file: Path) -> Iterator[None]:
    """Style figures for a column of a paper during the block.

    This matplotlib style is applied on top of p4cc's own, and panels are below each other.
    """
    style, panels = _styles.set((*_styles.get(), file)), _side_by_side.set(1)
    try:
        yield
    finally:
        _styles.reset(style)
        _side_by_side.reset(panels)


def side_by_side() -> int:
    """Return how many panels may stand beside each other."""
    return _side_by_side.get()


@contextmanager
def styled() -> Iterator[None]:
    """Set the style of figures during the block, independent of a `matplotlibrc` in the working folder."""
    with mpl.rc_context():
        mpl.rcdefaults()
        for file in _styles.get():
            mpl.rc_file(file, use_default_template=False)
        yield


def draw_paper(
    axes: Axes, place: float, number: tuple[float | None, float | None] | None, fill: str = "none"
) -> None:
    """Draw a paper's range as a line with both ends, or a single bound as a triangle on the open side."""
    if number is None:
        return
    least, most = number
    ends = sorted({end for end in number if end is not None})
    shape = "v" if least is None else "^" if most is None else "D"
    look = {**PAPER, "mfc": fill, **({"ls": "-", "lw": 0.8} if len(ends) > 1 else {})}
    axes.plot([place] * len(ends), ends, marker=shape, zorder=4, label="paper", **look)


def plain_logarithmic(axis: Axis) -> None:
    """Format the ticks of a logarithmic axis as plain numbers: 200, not 2 x 10^2."""
    number = FuncFormatter(lambda value, _: f"{value:,g}" if value < 1e6 else f"{value:g}")
    axis.set_major_formatter(number)
    axis.set_minor_locator(LogLocator(subs=(2, 5)))
    axis.set_minor_formatter(number)


def name_scales(axes: Axes) -> None:
    """Add a note to the label of a logarithmic axis, since readers may overlook the scale."""
    for axis in (axes.xaxis, axes.yaxis):
        label = axis.get_label_text()
        if axis.get_scale() in ("log", "symlog") and label:
            axis.set_label_text(f"{label}, logarithmic")


def svg(figure: Figure, file: Path | None = None) -> str:
    """Return the figure as an SVG element for a page, drawn once.

    The complete document is written to `file`, and the numbers are written as CSV beside it.
    """
    text = io.StringIO()
    with styled(), warnings.catch_warnings():
        # The viewer of the SVG renders text with its own fonts.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure.savefig(text, format="svg", metadata=_NO_METADATA)
    document = text.getvalue()
    if file is not None:
        file.write_text(document, encoding="utf-8")
        figure_table(figure).to_csv(file.with_suffix(".csv"), index=False)
    return document[document.index("<svg") :]
