"""Readings of probes: rows by probe, before they become tables."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import pandas as pd

from harness.plan.probes.base import Probe, Values, probes_of

if TYPE_CHECKING:
    from harness.plan.run import Run


class Readings:
    """Readings of one run, in order of time for each probe."""

    def __init__(self) -> None:
        self._rows: dict[str, list[tuple[Any, ...]]] = defaultdict(list)

    def add(self, probe: Probe, time_ns: int, node: str, rows: Iterable[Values]) -> None:
        """Add the readings at one node.

        Each row has the other columns of the place, such as the port, and then the values.
        """
        self._rows[probe.name] += [(time_ns, node, *row) for row in rows]

    def tables(self, run: Run) -> dict[str, pd.DataFrame]:
        """Return a table for each of the run's probes."""
        return {probe.name: probe.table(run, self._rows[probe.name]) for probe in probes_of(run)}
