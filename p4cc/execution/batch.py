"""The planned runs of one request: those of scenarios, or those of a sweep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.plan.portable import PortableRun
from harness.plan.resolve import plan_tables
from harness.plan.run import Run
from harness.plan.scenario import anchored, find, override, read, retitled
from p4cc.execution import sweep
from p4cc.execution.planned_run import PlannedRun
from p4cc.execution.selection import ScenarioSelection, SweepSelection
from p4switch.errors import UserError


@dataclass(frozen=True)
class Batch:
    """Runs whose results go into one folder, in their order.

    Parameters
    ----------
    name
        Default name of the folder.
    runs
        The runs, at least one.
    sweep
        The sweep of the runs. None: they are runs of scenarios.
    """

    name: str
    runs: Sequence[PlannedRun]
    sweep: sweep.Sweep | None = None


def batch_of(selection: ScenarioSelection | SweepSelection) -> Batch:
    """Return every selected run after checking it.

    Raises UserError for runs that are not possible.
    """
    if isinstance(selection, SweepSelection):
        loaded, folder = sweep.load(selection.file)
        points = sweep.points(loaded, folder, override({}, selection.settings))
        return Batch(Path(selection.file).stem, points, loaded)
    runs = planned(selection.scenarios, selection.settings, selection.several)
    name = "-".join(dict.fromkeys(run.name for run in runs))
    return Batch(name, [PlannedRun(run.label, run.label, PortableRun.of(run), resolved=run) for run in runs])


def planned(scenarios: Sequence[str], settings: Sequence[str], several: Mapping[str, Sequence[str | int]]) -> list[Run]:
    """Return every run of scenarios; `several` has values by key that replace the scenario's.

    Raises UserError, which names the scenario if there are several.
    """
    runs: list[Run] = []
    for name in scenarios:
        path = find(name)
        tables = read(path)
        try:
            runs += _of_one(path, tables, settings, several)
        except UserError as error:
            if len(scenarios) == 1 or error.starts_with_place:
                raise
            raise UserError(f"{name}: {error}") from error
    if len({run.label for run in runs}) < len(runs):
        raise UserError("scenarios of the same name cannot share an output folder")
    return runs


def _of_one(
    path: Path, tables: Mapping[str, Any], settings: Sequence[str], several: Mapping[str, Sequence[str | int]]
) -> list[Run]:
    """Return the runs of the scenario whose file has these tables.

    Raises UserError if one of them is not possible.
    """
    changed = retitled(override(tables, settings), path.stem, override({}, settings))
    changed.update(anchored({key: list(values) for key, values in several.items() if values}, Path.cwd()))
    return plan_tables(path.stem, changed, path.parent)
