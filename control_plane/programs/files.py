"""Parameters of a P4 program that has no Python file, and whose entries are in files."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from pydantic import Field

from control_plane.programs.base import ProgramParameters, SwitchView
from control_plane.programs.entries import BfRuntimeScript, Entry, EntryFile
from control_plane.programs.forwarding import TABLES, forwarding_entries
from p4switch.errors import UserError

_BESIDE = (".entries.json", ".entries.txtpb")  # suffixes that replace .p4
_SWITCH, _PIPE = "{switch}", "{pipe}"


class FileParameters(ProgramParameters):
    """Files with the entries of a program.

    `entry_files` are relative to the program. `{switch}` in a name is replaced by the name of each
    switch, and `{pipe}` by the number of each pipe. The default is the files beside `my.p4` that are
    called `my.entries.json` or `my.entries.txtpb`. A program that includes `forwarding.p4` also gets
    its routes. `bfrt_script` is a Python program that writes entries of a TNA or T2NA program over
    BfRuntime. It is run once for each switch, with the server's address and the switch's name.
    """

    source: ClassVar[Path]

    entry_files: tuple[str, ...] | None = Field(None, strict=False)
    bfrt_script: str | None = None

    def entries(self, switch: SwitchView) -> list[Entry]:
        routed = forwarding_entries(switch) if switch.tables >= TABLES else []
        return [*routed, *map(EntryFile, self._files(switch)), *self._scripts(switch)]

    def _scripts(self, switch: SwitchView) -> list[BfRuntimeScript]:
        if self.bfrt_script is None:
            return []
        script = self.source.parent / self.bfrt_script
        if not script.is_file():
            raise UserError(f"programs.{self.source.stem}.bfrt_script: no file {str(script)!r}")
        return [BfRuntimeScript(script, switch.name, switch.pipe, tuple(switch.program_pipes))]

    def _files(self, switch: SwitchView) -> list[Path]:
        if self.entry_files is None:
            return [path for end in _BESIDE if (path := self.source.with_suffix(end)).is_file()]
        names = [name.replace(_SWITCH, switch.name).replace(_PIPE, str(switch.pipe)) for name in self.entry_files]
        files = [self.source.parent / name for name in names]
        for file in files:
            if not file.is_file():
                raise UserError(f"programs.{self.source.stem}.entry_files: no file {str(file)!r}")
        return files


def parameters_of(source: Path) -> type[ProgramParameters]:
    """Return the parameter class of one program."""
    return type("FileParameters", (FileParameters,), {"source": source, "__module__": __name__})
