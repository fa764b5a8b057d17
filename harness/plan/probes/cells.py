"""Registers and indexed counters of the P4 program."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from control_plane import program_state
from control_plane.pipelines import compiled
from harness.plan.probes.base import Index, SwitchProbe, Values, register
from p4switch.errors import UserError

if TYPE_CHECKING:
    from harness.plan.run import Run
    from harness.plan.switch_programs import Pipe
    from p4switch.p4runtime.client import Client


class CellProbe(SwitchProbe):
    """Probe of a register or counter by name (`reads`), in the cells `indices` or in all cells."""

    indices: list[Index] | None = None  # indices of cells; none: all

    def arrays(self, run: Run) -> list[program_state.CellArray]:
        """Return the array of this name in each distinct program of the selected switches.

        Programs without the array are left out. Raises UserError if none has it.
        """
        covered = {run.build_of(pipe): pipe for pipe in run.pipes.values() if self.covers(pipe.switch)}
        if not covered:
            raise UserError(f"switches: topology {run.topology.name!r} has no switch {self.switches!r}")
        found, missing = [], []
        for each in covered.values():
            try:
                found.append(self._array(run, each))
            except UserError as error:
                missing.append(error)
        if not found:
            raise missing[0]
        return found

    def _array(self, run: Run, pipe: Pipe) -> program_state.CellArray:
        return program_state.find(self.kind, self.reads, compiled(run.build_of(pipe)).p4info, pipe.program.name)

    @property
    def places(self) -> tuple[str, ...]:
        return ("switch", "index")

    def values(self, run: Run) -> tuple[str, ...]:
        return self.arrays(run)[0].values

    def read(self, run: Run, pipe: Pipe, client: Client) -> Iterator[Values]:
        return self.read_by(program_state.ByP4Runtime(client), run, pipe)

    def read_by(self, reader: program_state.Reader, run: Run, pipe: Pipe) -> Iterator[Values]:
        """Yield the rows of one pipe through a reader; none if its program does not have the array.

        Raises UserError if the switch refuses.
        """
        try:
            array = self._array(run, pipe)
        except UserError:
            return iter(())
        return reader.cells(array, self.indices)

    def check(self, run: Run) -> None:
        arrays = self.arrays(run)
        for cells in arrays:
            if self.indices and (most := max(self.indices)) >= cells.size:
                raise UserError(f"indices: {cells.kind} {cells.name!r} has {cells.size} cells; there is no {most}")
        if len({cells.values for cells in arrays}) > 1:
            raise UserError(
                f"reads: {self.kind} {self.reads!r} counts packets in one program, bytes in another; expected the same"
            )


@register("register")
class RegisterProbe(CellProbe):
    """Probe of a register whose cells are integers of up to 64 bits."""


@register("counter")
class CounterProbe(CellProbe):
    """Probe of a counter: packets, bytes or both, according to its type in the program."""
