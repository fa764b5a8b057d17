"""A run as it is handed to another process, which may be another machine's: what it is planned from anew."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.plan.scenario import check

if TYPE_CHECKING:
    from harness.plan.run import Run


@dataclass(frozen=True)
class PortableRun:
    """The scenario's tables with all of one run set, and no other run's: all that is in them can be pickled."""

    name: str  # of the scenario
    tables: Mapping[str, Any]
    folder: Path  # where the scenario's relative paths start
    label: str  # the run's

    @classmethod
    def of(cls, run: Run) -> PortableRun:
        tables = run.scenario.model_dump(mode="json", exclude_unset=True)
        # A plan of several runs drops what one of them has nothing for; a plan of this run alone would refuse it.
        own = {"probes": [probe.model_dump(exclude_none=True) for probe in run.probes], "columns": list(run.columns)}
        tables["record"] = {**tables.get("record", {}), **own}
        return cls(run.name, tables, run.folder.resolve(), run.label)

    @property
    def seed(self) -> int:
        seed: int = self.tables["seeds"][0]
        return seed

    @property
    def names(self) -> tuple[str, str]:
        """Names of its protocol and its load balancer."""
        return self.tables["cc"][0], self.tables["lb"][0]

    def run(self) -> Run:
        """Return the run.

        Raises UserError if it could not be run here.
        """
        from harness.plan.resolve import plan

        return plan(self.name, check(self.tables), self.folder)[0]
