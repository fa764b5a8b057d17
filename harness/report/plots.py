"""How plots look, in every figure, and how they are written."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

# Okabe and Ito's palette, told apart with any colour vision, without its yellow, which is hard to see on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_DASHES = ("-", "--", ":", "-.")  # for the second seven, and so on
_MARKERS = ("o", "^", "s", "D")
MAX_POINTS = 1500  # of a line: more are not seen, and an SVG keeps every one
STYLE = Path(__file__).with_name("report.mplstyle")

_NO_METADATA = dict.fromkeys(("Date", "Creator", "Format", "Type"))


def plain(name: str) -> str:
    """A user's name as matplotlib is to write it: a dollar sign begins no formula."""
    return name.replace("$", r"\$")


def colour(index: int) -> str:
    return COLOURS[index % len(COLOURS)]


def line(index: int) -> dict[str, Any]:
    """How the lines of the variant of that number look, in every plot."""
    return {"color": colour(index), "ls": _DASHES[index // len(COLOURS) % len(_DASHES)]}


def marker(index: int) -> str:
    return _MARKERS[index // len(COLOURS) % len(_MARKERS)]


def thinned(times: pd.Series[Any], values: pd.Series[Any]) -> tuple[Any, Any]:
    """At most MAX_POINTS points: the largest of each stretch, so that no peak is lost."""
    step = -(-len(times) // MAX_POINTS)
    if step <= 1:
        return times, values
    groups = np.arange(len(times)) // step
    return times.groupby(groups).first(), values.groupby(groups).max()


def svg(figure: Figure, file: Path | None = None) -> str:
    """The figure as an SVG element that can stand in a page, drawn once; `file` is written with the whole document."""
    text = io.StringIO()
    with mpl.rc_context(fname=STYLE):
        figure.savefig(text, format="svg", metadata=_NO_METADATA)
    document = text.getvalue()
    if file is not None:
        file.write_text(document, encoding="utf-8")
    return document[document.index("<svg") :]
