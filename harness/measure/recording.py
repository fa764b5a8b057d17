"""Recording of one run by any world."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from harness.columns.column import Table
from harness.measure.flow_record import FlowRecord

Integers = NDArray[np.int64]
IDLE, STALLED = "idle", "stalled"  # ends of runs without progress
STANDSTILLS = (IDLE, STALLED)
# Completed share of the run, completed flows, known flows, now_ns.
Progress = Callable[[float, int, int, int], object]
Writing = Callable[[float], object]  # written share of a trace


class Rate(NamedTuple):
    """Sample of a connection for the interval that ends at `time_ns`."""

    time_ns: int
    qp: int
    values: tuple[float, ...]  # values of the sampled columns of `rates`, in the same order
    delivered_bytes: int  # received on the wire in the interval


@dataclass(frozen=True)
class Series:
    """Quantity sampled at many places: `values[i, j]` is that of place j at `times_ns[i]`."""

    quantity: str
    places: pd.DataFrame  # one row for each place, with columns that identify it
    times_ns: Integers
    values: Integers
    # Row of each place, by columns and then by their values. It is an index, because most of
    # several hundred thousand places are looked up.
    _rows: dict[tuple[str, ...], dict[tuple[object, ...], int]] = field(default_factory=dict, repr=False, compare=False)

    def at(self, **place: object) -> Integers:
        """Return the values of the place whose columns have these values; empty if there is none."""
        columns = tuple(place)
        if columns not in self._rows:
            places = zip(*(self.places[column].tolist() for column in columns), strict=True)
            rows = self._rows[columns] = {}
            for row, values in enumerate(places):
                rows.setdefault(values, row)
        index = self._rows[columns].get(tuple(place.values()))
        return np.empty(0, np.int64) if index is None else self.values[:, index]

    def table(self) -> pd.DataFrame:
        """Return a row for each time and place, except for places whose values are all 0.

        Names are categories, because a long run of a large network has many million rows.
        """
        used = np.flatnonzero(self.values.any(axis=0))
        places = self.places.iloc[used]
        names = places.select_dtypes(exclude="number").columns
        rows = places.astype(dict.fromkeys(names, "category"))
        table = rows.loc[rows.index.repeat(len(self.times_ns))].reset_index(drop=True)
        table.insert(0, "time_ns", np.tile(self.times_ns, len(places)))
        table[self.quantity] = self.values[:, used].T.ravel()
        return table


def places(table: Table, rows: Sequence[tuple[Any, ...]]) -> pd.DataFrame:
    """Return a row for each place of a table's values, with the columns that the table declares."""
    types = {column.name: column.type for column in table.places}
    frame = pd.DataFrame(rows, columns=list(types))
    return frame.astype({name: kind for name, kind in types.items() if kind is not None})


class World(Protocol):
    """World in which a run takes place.

    It is built for one run, and executes it once.
    """

    def run(self, progress: Progress | None = None) -> Recording:
        """Run until every flow is acknowledged, or until the scenario's limit."""

    def write_more(self, folder: Path, writing: Writing | None = None) -> None:
        """Write requested outputs beyond the recording: captures and traces.

        `writing` receives the written share of a trace.
        """


@dataclass
class Recording:
    """Recording of one run.

    `ended` is the reason for its end: "done", "failed", "limit", "idle", "stalled" or "deadlock".

    A run is idle when no event is left that could cause progress. It is stalled when no flow and no
    collective has made progress for a long time, although there still are events, such as repeating
    timers.

    Each measurement over time has a name. The `queues` of switch ports are a series. The `rates` of
    queue pairs are a table (`metrics.rates_table`), like the readings of each of the scenario's
    probes. All are kept in the run's folder.
    """

    ended: str
    end_ns: int
    events: int
    flows: list[FlowRecord]
    series: dict[str, Series]
    tables: dict[str, pd.DataFrame]
    port_stats: dict[str, Integers]  # by column; `node` is a name in `node_names`
    queue_stats: dict[str, Integers]
    pfc_stats: dict[str, Integers]
    node_names: list[str]
    conservation: dict[str, int]
    pfc_events: list[dict[str, Any]]
    nic_totals: dict[str, int]
    workload: dict[str, Any]  # measurements of the workload
    # Number of failed asserts of the program, and the first one, by switch.
    failed_asserts: dict[str, tuple[int, str]]
    # State of ended flows that remains in registers, by "register of switch"; None if it was not
    # checked.
    residue: dict[str, int] | None
    cpu_s: float
    set_up_s: float
    peak_memory_bytes: int
    still_since_ns: int | None = None  # time of the last progress in a run that is idle or stalled
    world: str = "virtual"
    switch: str = "builtin"
    compiler: str = "builtin"  # compiler of the programs
    fidelity: dict[str, Any] | None = None  # for a world in real time: whether the machine kept up
    agreement: dict[str, Any] | None = None  # for a world in real time: difference from the virtual world
