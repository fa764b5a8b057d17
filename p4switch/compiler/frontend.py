"""From a P4-16 file to a checked program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from p4switch.compiler.ast import Program


def parse_and_check(
    path: str | Path, include_dirs: Sequence[str | Path] = (), defines: Mapping[str, str] | None = None
) -> Program:
    """Read, preprocess, parse and check the program in file `path`.

    `include_dirs` are searched for includes before the compiler's own (which have `core.p4` and `v1model.p4`); `defines`
    maps macro names to their text. Warnings are in `Program.warnings`.

    Raises `CompileError` with all errors found, `UserError` if the file cannot be read.
    """
    raise NotImplementedError
