"""Recorded network over time, as arrays for the page.

A direction of a link is a number (`Network.direction`), and so is a node. A table over time becomes
a matrix for each quantity, with a row for each used direction and a column for each time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.columns.flows import of_session, replayed
from harness.columns.links import counted
from harness.columns.rates import RATES, sampled
from harness.measure.folder_values import most_bytes
from harness.measure.results import Result
from harness.plan.how import TRACE_LINES
from p4switch.errors import UserError
from reports.replay.network import Network
from reports.replay.pack import Array
from reports.replay.packets import Trace, packets

Integers = NDArray[np.int64]
_MOST_RATES = 1_000_000  # largest number of rows; if there are more, intervals are joined
_MEASURED = ("fct_ns", "ideal_fct_ns", "slowdown")


def is_recorded(result: Result) -> bool:
    """Return whether anything over time was recorded."""
    return "links" in result.tables or not (result.queues.empty and result.rates.empty)


def choose(results: Sequence[Result], folder: Path, name: str | None) -> Result:
    """Return the run called `name`; with None, the only one.

    Raises UserError, also for a run without recordings.
    """
    by_name = {result.folder.name: result for result in results}
    short = {key.removeprefix(f"{result.summary['scenario']}-"): result for key, result in by_name.items()}
    known = ", ".join(by_name)
    if name is None:
        if len(results) > 1:
            raise UserError(f"{str(folder)!r} has {len(results)} runs; expected --run with one of {known}")
        chosen = results[0]
    elif name not in by_name and name not in short:
        raise UserError(f"--run {name}: {str(folder)!r} has no such run; expected one of {known}")
    else:
        chosen = by_name.get(name) or short[name]
    if not is_recorded(chosen):
        raise UserError(
            f"{str(chosen.folder)!r}: nothing was recorded over time; expected a run with record.rate_interval_ns "
            "or record.queue_interval_ns over 0"
        )
    return chosen


def cells(result: Result) -> int:
    """Return the number of values over time at full resolution."""
    tables = [result.table(name) for name in ("links", "queues", "rates") if name in result.tables]
    return sum(len(table) * (len(table.columns) - 3) for table in tables)


class Recorded:
    """Recorded run, read once; `head` and `arrays` are computed for a given resolution."""

    def __init__(self, result: Result, traced: bool = True) -> None:
        """Read a run; without `traced`, packets are left out.

        Raises UserError for unreadable files.
        """
        self.network = Network(result.topology)
        self.trace: Trace | None = packets(result.folder / TRACE_LINES, self.network) if traced else None
        self._result = result
        # Older results may lack one of the tables.
        self._counts = [column for column in replayed() if column.name in result.messages.columns]

    def head(self, joined: int) -> dict[str, Any]:
        summary = self._result.summary
        return {
            "title": summary["title"] or summary["scenario"],
            "scenario": summary["scenario"],
            "variant": summary["variant"],
            "seed": summary["seed"],
            "world": summary["world"],
            "ended": summary["ended"],
            "end_ns": summary["end_ns"],
            "network": self.network.drawn(),
            "changes": [astuple(each) for each in self._result.link_changes],
            "texts": [] if self.trace is None else self.trace.texts,
            "left_out": 0 if self.trace is None else self.trace.left_out,
            "counts": [[column.name, column.replayed] for column in self._counts],
            "joined": joined,
            "joined_rates": self._joined_rates(joined),
        }

    def arrays(self, joined: int) -> dict[str, Array]:
        """Return arrays with `joined` intervals combined into one: sums of counts, maxima of depths."""
        by_name = {**self.flows(), **({} if self.trace is None else self.trace.arrays)}
        if "links" in self._result.tables:
            by_name |= self._links(joined)
        by_name |= self._queues(joined)
        by_name |= self._rates(joined)
        return by_name

    def _directions(self, name: str, node: str) -> Integers:
        """Return the direction of each row of a table.

        There are far fewer ports than rows. Raises UserError for a missing one.
        """
        ports = self._result.table(name).groupby([node, "port"], observed=True, sort=False)
        of = []
        for place, port in ports.size().index:
            try:
                of.append(self.network.direction(str(place), int(port)))
            except KeyError:
                file = self._result.folder / f"{name}.parquet"
                raise UserError(
                    f"{file}: damaged: port {port} of {place!r}; expected ports of the topology "
                    f"{self.network.topology.name}"
                ) from None
        return np.array(of, np.int64)[ports.ngroup().to_numpy()]

    def _links(self, joined: int) -> dict[str, Array]:
        table = self._result.table("links")
        rows = self._directions("links", "node")
        used, row = np.unique(rows, return_inverse=True)
        times, column = np.unique(table["time_ns"].to_numpy(), return_inverse=True)
        intervals = np.diff(times, prepend=0)
        ends, starts = _bins(len(times), joined)
        arrays: dict[str, Array] = {
            "link": used,
            "link_time": times[ends],
            "link_interval": np.add.reduceat(intervals, starts) if len(times) else intervals,
        }
        for each, source in counted():
            if each.name not in table.columns:
                continue  # older results do not have it
            matrix = _matrix(self._result, len(used), len(times))
            matrix[row, column] = table[each.name].to_numpy()
            arrays[f"link_{each.name}"] = _reduced(matrix, starts, np.add if source.grows else None, ends)
        return arrays

    def _queues(self, joined: int) -> dict[str, Array]:
        """Return the queues; each group of joined samples has the time of its first one."""
        table = self._result.queues
        rows = self._directions("queues", "switch")
        used, row = np.unique(rows, return_inverse=True)
        times, column = np.unique(table["time_ns"].to_numpy(), return_inverse=True)
        matrix = _matrix(self._result, len(used), len(times))
        matrix[row, column] = table["depth_bytes"].to_numpy()
        ends, starts = _bins(len(times), joined)
        return {"queue": used, "queue_time": times[starts], "queue_depth": _reduced(matrix, starts, np.maximum, ends)}

    def _joined_rates(self, joined: int) -> int:
        """Return the number of rate intervals to join if `joined` intervals of links are joined.

        Tables of rates with few rows are not joined.
        """
        return joined if len(self._result.rates) > _MOST_RATES // joined else 1

    def _rates(self, joined: int) -> dict[str, Array]:
        """Return rows by queue pair and time, with the values of the last joined interval.

        Throughput is the mean over the joined intervals. The last group ends with the last
        interval, and so may be shorter.
        """
        table = self._result.rates
        if (joined := self._joined_rates(joined)) > 1:
            interval_ns = self._result.rate_interval_ns
            width_ns = interval_ns * joined
            ends_ns = -(-table["time_ns"] // width_ns) * width_ns
            kept = table.assign(time_ns=ends_ns.clip(upper=table["time_ns"].max()))
            of = kept.groupby(["qp", "time_ns"], sort=True)
            known = [(column.name, source) for column, source in sampled() if column.name in table.columns]
            how = {name: "sum" if source.grows else "last" for name, source in known}
            table = of.agg(how).assign(throughput_bps=of["throughput_bps"].sum() * interval_ns).reset_index()
            table["throughput_bps"] /= (table["time_ns"] - 1) % width_ns + 1
        table = table.sort_values(["qp", "time_ns"], kind="stable")
        qps, first = np.unique(table["qp"].to_numpy(), return_index=True)
        arrays: dict[str, Array] = {"rate_qp": qps, "rate_first": np.append(first, len(table))}
        arrays["rate_time"] = table["time_ns"].to_numpy()
        for column in RATES.columns:
            # Older results may lack a column.
            if column.name in table.columns and column.name not in ("qp", "time_ns"):
                values = table[column.name].to_numpy()
                arrays[f"rate_{column.name}"] = values.astype(np.float32) if column.type == "float64" else values
        return arrays

    def flows(self) -> dict[str, Array]:
        table = self._result.messages
        counts = [column.name for column in self._counts]
        whole = [*(column.name for column, _ in of_session()), *counts]
        arrays: dict[str, Array] = {name: table[name].to_numpy(np.int64) for name in whole}
        arrays |= {name: table[name].to_numpy(float) for name in _MEASURED}
        index = self.network.index
        for end in ("source", "destination"):
            arrays[end] = table[end].map(lambda name: index.get(name, -1)).to_numpy(np.int64)  # -1: a group
        return arrays


def _matrix(result: Result, rows: int, columns: int) -> Integers:
    """Return a matrix of zeros with a row for each direction and a column for each time.

    Raises UserError if its size exceeds the limit of a table.
    """
    size_bytes = rows * columns * 8
    if size_bytes > (most := most_bytes()):
        raise UserError(
            f"{str(result.folder)!r}: {rows:,} ports at {columns:,} times take {size_bytes / 2**30:.2f} GiB; expected "
            f"at most {most / 2**30:.2f} GiB"
        )
    return np.zeros((rows, columns), np.int64)


def _bins(count: int, joined: int) -> tuple[Integers, Integers]:
    """Return the indices of the last and of the first of each group of `joined` intervals."""
    starts = np.arange(0, count, joined)
    return np.append(starts[1:], count)[: len(starts)] - 1, starts


def _reduced(matrix: Integers, starts: Integers, how: np.ufunc | None, ends: Integers) -> Array:
    """Return the matrix reduced by `how` over the joined intervals; with None, the last of each."""
    if how is None or not matrix.size:
        return matrix[:, ends]
    reduced: Array = how.reduceat(matrix, starts, axis=1)
    return reduced
