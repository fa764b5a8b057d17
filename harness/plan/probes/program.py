"""Probe of all state of the P4 program: registers, counters, meters.

Runs with a program from outside get such a probe, which is read at their end.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pandas as pd

from control_plane import program_state
from control_plane.pipelines import compiled
from harness.plan.probes.base import SwitchProbe, Values, register

if TYPE_CHECKING:
    from harness.plan.run import Run
    from harness.plan.switch_programs import Pipe
    from p4switch.p4runtime.client import Client


@register("program")
class ProgramProbe(SwitchProbe):
    """Probe of a program's state: a row for each number (`control_plane.program_state.Cell`) that was not always 0."""

    reads: str = "everything"  # "everything", or the names of objects
    name: str = "program_state"  # name of the table

    @property
    def places(self) -> tuple[str, ...]:
        return ("switch", "kind", "object", "index", "entry", "field")

    def values(self, run: Run) -> tuple[str, ...]:
        return ("value",)

    def read(self, run: Run, pipe: Pipe, client: Client) -> Iterator[Values]:
        p4info = compiled(run.build_of(pipe)).p4info
        return (cell for cell in program_state.everything(client, p4info) if cell.value)

    def table(self, run: Run, rows: list[tuple[Any, ...]]) -> pd.DataFrame:
        return super().table(run, rows).astype({"index": "int64", "value": "uint64"})

    def check(self, run: Run) -> None:
        """Accept any program, including one without state."""
