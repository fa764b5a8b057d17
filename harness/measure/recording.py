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
IDLE, STALLED = "idle", "stalled"  # ends of a run in which nothing moves
STANDSTILLS = (IDLE, STALLED)
Progress = Callable[[float, int, int, int], object]  # share of the run that is done, flows done, flows known, now_ns
Writing = Callable[[float], object]  # share of a trace that is written


class Rate(NamedTuple):
    """Sample of a connection in the interval that ends at `time_ns`."""

    time_ns: int
    qp: int
    values: tuple[float, ...]  # of the sampled columns of `rates`, in their order
    delivered_bytes: int  # on the wire, in the interval


@dataclass(frozen=True)
class Series:
    """A quantity sampled at many places: `values[i, j]` is that of place j at `times_ns[i]`."""

    quantity: str
    places: pd.DataFrame  # one row a place: its columns say where it is
    times_ns: Integers
    values: Integers
    # By columns, then by what they say: of hundreds of thousands of places most are asked for.
    _rows: dict[tuple[str, ...], dict[tuple[object, ...], int]] = field(default_factory=dict, repr=False, compare=False)

    def at(self, **place: object) -> Integers:
        """Return the values of the place whose columns have these values; empty if there is none."""
        columns = tuple(place)
        if columns not in self._rows:
            places = zip(*(self.places[column].tolist() for column in columns), strict=True)
            rows = self._rows[columns] = {}
            for row, values in enumerate(places):
                rows.setdefault(values, row)
        found = self._rows[columns].get(tuple(place.values()))
        return np.empty(0, np.int64) if found is None else self.values[:, found]

    def table(self) -> pd.DataFrame:
        """Return a row for each time and place, for places with values other than 0.

        Names are categories: of a long run of a large network there are many million rows.
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
    """Return the places of a table's values, a row each, as the table declares them."""
    types = {column.name: column.type for column in table.places}
    found = pd.DataFrame(rows, columns=list(types))
    return found.astype({name: kind for name, kind in types.items() if kind is not None})


class World(Protocol):
    """World in which a run takes place: built for one run, which it makes once."""

    def run(self, progress: Progress | None = None) -> Recording:
        """Run until every flow is acknowledged, or until the scenario's limit."""

    def write_more(self, folder: Path, writing: Writing | None = None) -> None:
        """Write what was requested beyond the recording: captures, traces.

        `writing` is told how far a trace is.
        """


@dataclass
class Recording:
    """Recording of one run.

    `ended` says why it ended: "done", "failed", "limit", "idle", "stalled" or "deadlock".

    A run is idle when nothing is under way any more and never will be; it is stalled when no flow and no collective
    has got any further for long, though something still goes on: timers that only repeat, say.

    What is measured over time has a name: the `queues` of switch ports are a series, the `rates` of queue pairs a
    table (`metrics.rates_table`), and so is what each of the scenario's probes read. All are kept in the run's folder.
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
    workload: dict[str, Any]  # what the workload measured
    failed_asserts: dict[str, tuple[int, str]]  # by switch: how many asserts of its program failed, and the first
    # Of flows that have all ended: "register of switch" and what is left in its cells. None: not looked for.
    residue: dict[str, int] | None
    cpu_s: float
    set_up_s: float
    peak_memory_bytes: int
    still_since_ns: int | None = None  # of a run that is idle or stalled: when anything got further last
    world: str = "virtual"
    switch: str = "builtin"
    compiler: str = "builtin"  # of the programs
    fidelity: dict[str, Any] | None = None  # of a world that runs in real time: whether the machine kept up
    agreement: dict[str, Any] | None = None  # of such a world: how far it is from the virtual one
