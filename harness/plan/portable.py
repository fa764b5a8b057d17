"""Form of a run that is passed to another process, possibly on another machine.

The other process plans the run again.
"""

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
    """Scenario of a single run as tables, which can be pickled."""

    name: str  # name of the scenario
    tables: Mapping[str, Any]
    folder: Path  # base of the scenario's relative paths
    label: str  # label of the run

    @classmethod
    def of(cls, run: Run) -> PortableRun:
        tables = run.scenario.model_dump(mode="json", exclude_unset=True)
        # A plan of several runs drops probes that do not apply to one of them; a plan of this run
        # alone would refuse them.
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
