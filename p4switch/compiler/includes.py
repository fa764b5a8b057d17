"""Include files of architectures that a program reads, and the macros that the files define."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from p4switch.architectures.architecture import Architecture, include_folders
from p4switch.compiler.preprocessor import Preprocessor

CORE = Path(__file__).parent / "include" / "core.p4"


def preprocessor(
    include_dirs: Sequence[Path], defines: Mapping[str, str], architecture: Architecture | None
) -> Preprocessor:
    """Return a preprocessor that searches `include_dirs` before the include folders of all architectures.

    `architecture` is the requested architecture, whose macros are predefined.
    """
    given = {} if architecture is None else architecture.defines
    return Preprocessor([*include_dirs, CORE.parent, *include_folders()], {**given, **defines})
