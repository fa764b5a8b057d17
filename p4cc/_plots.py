"""Plots of results in matplotlib's axes, for notebooks and papers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import pandas as pd
from matplotlib.axes import Axes

from p4switch.errors import UserError, suggest
from reports.figures.base import Figure
from reports.figures.fct import CompletionTimes
from reports.figures.queue import WorstQueue
from reports.groups import Comparison, compare
from reports.plots import line as line_style
from reports.plots import plain, thinned

if TYPE_CHECKING:
    from p4cc.results import Result, Results

_TIME = "time_ns"
_PLACES = {"queues": ("switch", "port"), "rates": ("qp",)}  # columns that identify a row besides its time
_MOST_NAMED = 20  # largest number of lines with a legend


class Plots:
    """Plots of all runs of one scenario. Each method draws into the given axes, or into new ones, and returns them.

    Raises
    ------
    UserError
        For results of several scenarios (`select` one), and for data that the runs do not have.
    """

    def __init__(self, results: Results) -> None:
        self._results = results

    def fct(self, ax: Axes | None = None) -> Axes:
        """Draw the cumulative distribution of flow completion times in µs, all seeds of a variant as one line."""
        return self._drawn(CompletionTimes(), ax)

    def queues(self, ax: Axes | None = None) -> Axes:
        """Draw the depth in KB of each variant's most congested queue over time, of its first seed."""
        return self._drawn(WorstQueue(), ax)

    def timeseries(self, table: str, column: str, ax: Axes | None = None, **where: object) -> Axes:
        """Draw a column of a table over time in µs, with a line for each run and each place in the table.

        Parameters
        ----------
        table
            "queues" (places are a switch and its port), "rates" (places are queue pairs), or a probe's name.
        column
            Column to draw, in its own unit.
        ax
            Axes to draw into.
        **where
            Values of columns that rows must have: `switch="tor0-0", port=1`.

        Raises
        ------
        UserError
            For a table or a column that a run does not have, and if no row has these values.
        """
        axes = ax or _new_axes()
        lines = [line for run in self._results for line in _series(run, table, column, where)]
        if not lines:
            raise UserError(f"table {table!r}: no row has {where}")
        for number, (label, rows) in enumerate(lines):
            times, values = thinned(rows[_TIME], rows[column])
            axes.plot(times / 1e3, values, **line_style(number), label=plain(label))
        axes.set(xlabel="time (µs)", ylabel=plain(column))
        if 1 < len(lines) <= _MOST_NAMED:
            axes.legend()
        return axes

    def _drawn(self, figure: Figure, ax: Axes | None) -> Axes:
        comparison = self._comparison()
        if not figure.fits(comparison):
            raise UserError(f"results: no run has data for {figure.caption(comparison)!r}")
        axes = ax or _new_axes()
        figure.draw(axes, comparison.variants)
        if len(comparison.variants) > 1:
            axes.legend()
        return axes

    def _comparison(self) -> Comparison:
        comparisons = compare([run._kept for run in self._results])
        if len(comparisons) != 1:
            names = ", ".join(each.scenario for each in comparisons)
            raise UserError(f"results: they are of {len(comparisons)} scenarios; expected select(scenario=) of {names}")
        return comparisons[0]


def _series(run: Result, table: str, column: str, where: Mapping[str, object]) -> Iterator[tuple[str, pd.DataFrame]]:
    """Return a label, and rows in order of time, for each place of a run's table."""
    rows = run.table(table)
    probes = {probe.name: tuple(probe.places) for probe in run._kept.probes}
    places = list({**_PLACES, **probes}.get(table, ()))
    for name in (_TIME, column, *where):
        if name not in rows.columns:
            raise UserError(f"table {table!r}: no column {name!r}; {suggest(name, list(rows.columns))}")
    for name, value in where.items():
        rows = rows[rows[name] == value]
    named = f"{run.summary['variant']}, seed {run.seed}"
    if not places:
        yield named, rows.sort_values(_TIME).reset_index(drop=True)
        return
    for place, of_place in rows.groupby(places, observed=True):
        yield " ".join([named, *map(str, place)]), of_place.sort_values(_TIME).reset_index(drop=True)


def _new_axes() -> Axes:
    """Return axes of a new figure of pyplot, which notebooks show."""
    from matplotlib import pyplot  # it chooses a backend when it is imported

    return pyplot.subplots()[1]
