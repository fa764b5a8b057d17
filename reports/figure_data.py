"""Data of a figure as a table, read from the drawn figure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection, QuadMesh
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.patches import Rectangle
from matplotlib.ticker import FixedLocator, FuncFormatter

Row = dict[str, Any]
COLUMNS = ("panel", "series", "x", "y", "x_axis", "y_axis")


def figure_table(figure: Figure) -> pd.DataFrame:
    """Return a row for each point, bar or cell: panel, series, and x and y in the units of the axes.

    A bar gives one row, with its height at its middle. A band gives its outline. For a cell of a
    heat map, `y` is the value, x is the column, and the series is the row. If the ticks of the x
    axis have names, x is the nearest name.
    """
    rows = [row for axes in figure.axes if axes.get_label() != "<colorbar>" for row in _rows(axes)]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _rows(axes: Axes) -> Iterator[Row]:
    common = {"panel": axes.get_label() or axes.get_title(), "x_axis": axes.get_xlabel(), "y_axis": axes.get_ylabel()}
    for line in axes.lines:
        yield from _points(common, str(line.get_label()), _named(axes, line.get_xdata()), line.get_ydata())
    for artist in axes.collections:
        if isinstance(artist, QuadMesh):
            yield from _mesh(common, axes, artist)
        elif isinstance(artist, PolyCollection):
            for outline in artist.get_paths():
                vertices = np.asarray(outline.vertices)
                yield from _points(common, "band", vertices[:, 0], vertices[:, 1])
    for image in axes.images:
        yield from _image(common, axes, image)
    for container in axes.containers:
        bars = [bar for bar in container if isinstance(bar, Rectangle)]
        middles = [bar.get_x() + bar.get_width() / 2 for bar in bars]
        heights = [bar.get_height() for bar in bars]
        yield from _points(common, str(container.get_label()), _named(axes, middles), heights)


def _named(axes: Axes, x: Any) -> Any:
    """Return `x`, or the nearest named tick: the bars of several series stand around it."""
    formatter, fixed = axes.xaxis.get_major_formatter(), isinstance(axes.xaxis.get_major_locator(), FixedLocator)
    # The locator and formatter that `set_xticks` makes from names.
    if not isinstance(formatter, FuncFormatter) or not fixed:
        return x
    places = axes.get_xticks()
    names = formatter.format_ticks(places.tolist())
    distances = np.abs(np.subtract.outer(np.asarray(x, np.float64), places))
    return [names[nearest] for nearest in distances.argmin(axis=1)]


def _points(common: Row, series: str, x: Any, y: Any) -> Iterator[Row]:
    name = "" if series.startswith("_") else series
    for one, other in zip(np.asarray(x), np.asarray(y), strict=True):
        yield {**common, "series": name, "x": one, "y": other}


def _mesh(common: Row, axes: Axes, mesh: QuadMesh) -> Iterator[Row]:
    edges = np.asarray(mesh.get_coordinates())[0, :, 0]
    values = np.asarray(mesh.get_array()).reshape(-1, len(edges) - 1)
    yield from _cells(common, axes, edges[1:].tolist(), values)


def _image(common: Row, axes: Axes, image: AxesImage) -> Iterator[Row]:
    names = [label.get_text() for label in axes.get_xticklabels()]
    values = np.asarray(image.get_array())
    yield from _cells(common, axes, names if len(names) == values.shape[1] else list(range(values.shape[1])), values)


def _cells(common: Row, axes: Axes, x: list[Any], values: Any) -> Iterator[Row]:
    names = [label.get_text() for label in axes.get_yticklabels()]
    for number, row in enumerate(values):
        series = names[number] if len(names) == len(values) else str(number)
        yield from _points(common, series, x, row)
