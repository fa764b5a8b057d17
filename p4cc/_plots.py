"""Plots of results into matplotlib's axes, for notebooks and papers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from matplotlib.axes import Axes

from harness.report.figures.base import Figure
from harness.report.figures.fct import CompletionTimes
from harness.report.figures.queue import WorstQueue
from harness.report.groups import Comparison, compare
from harness.report.plots import line, plain, thinned
from p4switch.errors import UserError, suggest

if TYPE_CHECKING:
    from p4cc.results import Result, Results

_TIME = "time_ns"


class Plots:
    """Plots of all runs of one scenario. Each method takes axes to draw into, or makes some, and returns them.

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

    def timeseries(self, table: str, column: str, by: str | Sequence[str] = (), ax: Axes | None = None) -> Axes:
        """Draw a column of a table over time in µs.

        Parameters
        ----------
        table
            A table with a column `time_ns`: "queues", "rates", or a probe's name.
        column
            What to draw, in the column's own unit.
        by
            Columns whose values tell lines apart, besides the run: `["switch", "port"]` of queues.
        ax
            Axes to draw into.

        Raises
        ------
        UserError
            For a table or a column that a run does not have, and where one line would have several values at a time.
        """
        axes = ax or _new_axes()
        places = [by] if isinstance(by, str) else list(by)
        number = 0
        for run in self._results:
            rows = run.table(table)
            for name in (_TIME, column, *places):
                if name not in rows.columns:
                    raise UserError(f"table {table!r}: no column {name!r}; {suggest(name, list(rows.columns))}")
            groups = rows.groupby(places, observed=True) if places else [((), rows)]
            for place, of_place in groups:
                if of_place[_TIME].duplicated().any():
                    others = [name for name in rows.columns if name not in (_TIME, column, *places)]
                    raise UserError(
                        f"table {table!r}: several values of {column!r} at the same time; expected by= with columns "
                        f"that tell them apart, of {', '.join(others)}"
                    )
                ordered = of_place.sort_values(_TIME).reset_index(drop=True)
                times, values = thinned(ordered[_TIME], ordered[column])
                label = " ".join([_named(run), *map(str, place if isinstance(place, tuple) else (place,))])
                axes.plot(times / 1e3, values, **line(number), label=plain(label))
                number += 1
        axes.set(xlabel="time (µs)", ylabel=plain(column))
        if number > 1:
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
        found = compare([run._kept for run in self._results])
        if len(found) != 1:
            names = ", ".join(each.scenario for each in found)
            raise UserError(f"results: they are of {len(found)} scenarios; expected select(scenario=) of {names}")
        return found[0]


def _named(run: Result) -> str:
    return f"{run.summary['variant']}, seed {run.seed}"


def _new_axes() -> Axes:
    """Return axes of a new figure of pyplot's, which notebooks show."""
    from matplotlib import pyplot  # it picks a backend when it is imported

    return pyplot.subplots()[1]
