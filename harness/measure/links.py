"""Samples of each direction of each link: time busy, bytes sent, queue, marks and losses.

Counters are read at multiples of an interval, which doubles whenever there are too many samples. So
a run of any length has a few hundred samples. No event is lost, because counters are cumulative.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from harness.columns.links import LINKS, counted
from harness.measure.recording import Integers, places
from topologies import Topology

MOST_SAMPLES = 512
_MOST_CELLS = 500_000  # largest number of samples of all ports together, so large networks are sampled at fewer times
_FEWEST_SAMPLES = 32


class LinkSamples:
    """Samples of the cumulative counters of all ports; when there are too many, the interval doubles."""

    def __init__(self, ports: pd.DataFrame, interval_ns: int) -> None:
        """Prepare the samples.

        `ports` is the table of the ports' places. Counters are in the same order.
        """
        self._ports = ports
        self._interval_ns = interval_ns
        self._most = min(MOST_SAMPLES, max(_FEWEST_SAMPLES, _MOST_CELLS // max(len(ports), 1)))
        self._times_ns: list[int] = []
        self._values: list[Integers] = []  # of shape (ports, columns) each

    def is_due(self, now_ns: int) -> bool:
        return now_ns % self._interval_ns == 0

    def add(self, now_ns: int, columns: Mapping[str, Integers]) -> None:
        """Add the counters at one time, with a row for each port.

        The last time is the end of the run.
        """
        if now_ns in self._times_ns[-1:]:
            return
        self._times_ns.append(now_ns)
        self._values.append(np.stack([columns[source.name] for _, source in counted()], axis=1))
        if len(self._times_ns) > self._most:
            self._interval_ns *= 2
            kept = [i for i, time_ns in enumerate(self._times_ns) if time_ns % self._interval_ns == 0]
            self._times_ns = [self._times_ns[i] for i in kept]
            self._values = [self._values[i] for i in kept]

    def table(self) -> pd.DataFrame:
        """Return one row for each port and interval, with the columns of `LINKS`.

        Ports that neither sent nor held anything are left out.
        """
        ports, columns, count = self._ports, counted(), len(self._times_ns)
        values = np.stack(self._values) if count else np.zeros((0, len(ports), len(columns)), np.int64)
        growing = [i for i, (_, source) in enumerate(columns) if source.grows]
        values[:, :, growing] = np.diff(values[:, :, growing], axis=0, prepend=0)
        used = np.flatnonzero(values.any(axis=(0, 2)))
        names = ports.select_dtypes(exclude="number").columns
        kept = ports.iloc[used].astype(dict.fromkeys(names, "category"))
        table = kept.loc[kept.index.repeat(count)].reset_index(drop=True)
        times_ns = np.array(self._times_ns, np.int64)
        table.insert(0, "time_ns", np.tile(times_ns, len(used)))
        table.insert(1, "interval_ns", np.tile(np.diff(times_ns, prepend=0), len(used)))
        for i, (column, _) in enumerate(columns):
            table[column.name] = values[:, used, i].T.ravel()
        return table


def ports_of(topology: Topology) -> pd.DataFrame:
    """Return a row for each direction of each link, with the port that sends; a host's port has number 0."""
    rows = [
        (node, 0 if node in topology.host_by_name else port, there.node, there.rate_bps)
        for node, ports in topology.ports.items()
        for port, there in ports.items()
    ]
    return places(LINKS, rows)


class LinkCounters:
    """Counters of a network's links, in the order of their places."""

    def __init__(self, places: pd.DataFrame, nodes: Mapping[str, int], first: Mapping[str, Integers]) -> None:
        """Prepare the order of the ports.

        `first` has the counters at any one time; only the order of the ports is taken from it,
        which does not change during a run.
        """
        row_of = {key: row for row, key in enumerate(zip(first["node"].tolist(), first["port"].tolist(), strict=True))}
        keys = zip((nodes[str(node)] for node in places["node"]), places["port"].tolist(), strict=True)
        self._rows = np.array([row_of[key] for key in keys], np.int64)

    def in_order(self, counters: Mapping[str, Integers]) -> dict[str, Integers]:
        """Return the recorded counters, by name.

        The result is empty in a process that has no part of the network.
        """
        return {source.name: counters[source.name][self._rows] for _, source in counted() if source.name in counters}
