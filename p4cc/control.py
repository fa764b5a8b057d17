"""State of a running P4 program through P4Runtime: on a switch in this process or in another."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path

import p4cc._hosts  # noqa: F401  # isort: split
from control_plane import controller, program_state
from control_plane.programs import program
from control_plane.programs.entries import Entry
from p4switch.compiler import Compiled, compile_program
from p4switch.errors import UserError
from p4switch.p4runtime.bytestring import canonical
from p4switch.p4runtime.client import Client
from p4switch.p4runtime.errors import P4RuntimeError
from p4switch.p4runtime.messages import p4runtime_pb2
from p4switch.sources import SOURCE_DIRECTORY

__all__ = ["Control"]

Named = str | PathLike[str] | Compiled  # a P4 file, the name of one of p4cc's programs, or a compiled program


def compiled(named: Named) -> Compiled:
    """Return the compiled program of a name, a file or a compilation result.

    Raises UserError with all errors of the program.
    """
    if isinstance(named, Compiled):
        return named
    path = Path(named)
    return compile_program(path if path.suffix == ".p4" else program(str(named)).source, [SOURCE_DIRECTORY])


class Control:
    """Entries, registers, counters and meters of one switch. Names are those of the P4 source: P4Info's aliases."""

    def __init__(self, client: Client, known: controller.Program) -> None:
        self._client = client
        self._known = known

    def write(self, *entries: Entry) -> None:
        """Insert entries.

        Parameters
        ----------
        *entries
            Entries of `p4cc.programs`; a `DefaultAction` replaces the default action.

        Raises
        ------
        UserError
            For entries that do not fit the program, and for existing ones.
        """
        controller.write(self._client, self._known, entries)

    def register(self, name: str, indices: Sequence[int] | None = None) -> list[int]:
        """Return the cells of a register.

        Parameters
        ----------
        name
            Name in the P4 source.
        indices
            Cells to read. None: all.

        Returns
        -------
        list[int]
            Value of each cell.

        Raises
        ------
        UserError
            For an unknown register or index.
        """
        return self._read_register(self._found("register", name), indices)

    def _read_register(self, cells: program_state.CellArray, indices: Sequence[int] | None) -> list[int]:
        return [value for _, value in program_state.read(self._client, cells, indices)]

    def counter(self, name: str, indices: Sequence[int] | None = None) -> list[dict[str, int]]:
        """Return the cells of a counter.

        Parameters
        ----------
        name
            Name in the P4 source.
        indices
            Cells to read. None: all.

        Returns
        -------
        list[dict[str, int]]
            "packets", "bytes" or both of each cell.

        Raises
        ------
        UserError
            For an unknown counter or index.
        """
        return self._cells("counter", name, indices)

    def meter(self, name: str, indices: Sequence[int] | None = None) -> list[dict[str, int]]:
        """Return the cells of a meter.

        Parameters
        ----------
        name
            Name in the P4 source.
        indices
            Cells to read. None: all.

        Returns
        -------
        list[dict[str, int]]
            "cir", "cburst", "pir" and "pburst" of each cell, all 0 without rates.

        Raises
        ------
        UserError
            For an unknown meter or index.
        """
        return self._cells("meter", name, indices)

    def set_meter(
        self,
        name: str,
        index: int,
        *,
        cir: int | None = None,
        cburst: int | None = None,
        pir: int | None = None,
        pburst: int | None = None,
    ) -> None:
        """Set the rates of one cell of a meter (RFC 2698); without rates all packets are green.

        Parameters
        ----------
        name
            Name in the P4 source.
        index
            Cell, from 0.
        cir, pir
            Committed and peak rate, in packets or bytes a second, as the meter counts.
        cburst, pburst
            Bursts, in packets or bytes.

        Raises
        ------
        UserError
            For a name, an index or rates that do not fit.
        """
        rates = {"cir": cir, "cburst": cburst, "pir": pir, "pburst": pburst}
        given = {key: value for key, value in rates.items() if value is not None}
        if given and len(given) < len(rates):
            raise UserError(f"meter {name!r}: expected cir, cburst, pir and pburst, or none of them")
        update = p4runtime_pb2.Update(type=p4runtime_pb2.Update.MODIFY)
        entry = update.entity.meter_entry
        entry.meter_id = self._found("meter", name).id
        entry.index.index = index
        try:
            for key, value in given.items():
                setattr(entry.config, key, value)
            self._client.write([update])
        except (P4RuntimeError, ValueError, OverflowError) as error:
            raise UserError(f"meter {name!r}, cell {index}: {error}") from None

    def _cells(self, kind: str, name: str, indices: Sequence[int] | None) -> list[dict[str, int]]:
        """Return the values of each cell by name."""
        cells = self._found(kind, name)
        return [
            dict(zip(cells.values, values, strict=True))
            for _, *values in program_state.read(self._client, cells, indices)
        ]

    def set_register(self, name: str, index: int, value: int) -> None:
        """Write one cell of a register.

        Parameters
        ----------
        name
            Name in the P4 source.
        index
            Cell, from 0.
        value
            Unsigned value that fits the cell.

        Raises
        ------
        UserError
            For a name, an index or a value that does not fit.
        """
        self._write_register(self._found("register", name), name, index, value)

    def _write_register(self, cells: program_state.CellArray, name: str, index: int, value: int) -> None:
        update = p4runtime_pb2.Update(type=p4runtime_pb2.Update.MODIFY)
        entry = update.entity.register_entry
        entry.register_id = cells.id
        entry.index.index = index
        try:
            entry.data.bitstring = canonical(value)
            self._client.write([update])
        except (P4RuntimeError, ValueError, OverflowError) as error:
            raise UserError(f"register {name!r}, cell {index}: {error}") from None

    def _found(self, kind: str, name: str) -> program_state.CellArray:
        return program_state.find(kind, name, self._known.p4info, "of the switch")
