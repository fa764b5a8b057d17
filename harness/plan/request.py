"""From what a command line asks for to runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from harness.plan.resolve import plan_tables
from harness.plan.run import Run
from harness.plan.scenario import anchored, find, override, read, retitled
from p4switch.errors import UserError


def planned(scenarios: Sequence[str], settings: Sequence[str], several: Mapping[str, Sequence[str | int]]) -> list[Run]:
    """Every run of what a command line asks for, `several` by the scenario's key. Raises UserError."""
    runs: list[Run] = []
    for name in scenarios:
        path = find(name)
        tables = retitled(override(read(path), settings), path.stem, override({}, settings))
        tables.update(anchored({key: list(values) for key, values in several.items() if values}, Path.cwd()))
        runs += plan_tables(path.stem, tables, path.parent)
    if len({run.label for run in runs}) < len(runs):
        raise UserError("scenarios of the same name cannot share an output folder")
    return runs
