"""Registers and indexed counters of the P4 program."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from harness.control import program_state
from harness.control.pipelines import compiled
from harness.plan.probes.base import Index, SwitchProbe, Values, register
from p4switch.errors import UserError

if TYPE_CHECKING:
    from harness.plan.run import Run
    from p4switch.p4runtime.client import Client


class CellProbe(SwitchProbe):
    """Probe of a register or counter by name (`reads`), in the cells `indices` or in all cells."""

    indices: list[Index] | None = None  # indices of cells; none: all

    def cells(self, run: Run) -> program_state.CellArray:
        """Return the array of the probe.

        Raises UserError if the run's program does not have it.
        """
        return program_state.find(self.kind, self.reads, compiled(run.build).p4info, run.program.name)

    @property
    def places(self) -> tuple[str, ...]:
        return ("switch", "index")

    def values(self, run: Run) -> tuple[str, ...]:
        return self.cells(run).values

    def read(self, run: Run, client: Client) -> Iterator[Values]:
        return self.read_by(program_state.ByP4Runtime(client), run)

    def read_by(self, reader: program_state.Reader, run: Run) -> Iterator[Values]:
        """Yield the rows of one switch through a reader.

        Raises UserError.
        """
        return reader.cells(self.cells(run), self.indices)

    def check(self, run: Run) -> None:
        cells = self.cells(run)
        if self.indices and (most := max(self.indices)) >= cells.size:
            raise UserError(f"indices: {cells.kind} {cells.name!r} has {cells.size} cells; there is no {most}")
        if not any(self.covers(switch.name) for switch in run.topology.switches):
            raise UserError(f"switches: topology {run.topology.name!r} has no switch {self.switches!r}")


@register("register")
class RegisterProbe(CellProbe):
    """Probe of a register whose cells are integers of up to 64 bits."""


@register("counter")
class CounterProbe(CellProbe):
    """Probe of a counter: packets, bytes or both, according to its type in the program."""
