"""Include files of architectures that a program reads, and the macros that they define."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from p4switch.architectures.architecture import Architecture, include_folders
from p4switch.compiler.preprocessor import Preprocessor

CORE = Path(__file__).parent / "include" / "core.p4"


def preprocessor(
    include_dirs: Sequence[Path], defines: Mapping[str, str], architecture: Architecture | None
) -> Preprocessor:
    """Return a preprocessor that finds the includes of all architectures behind those in `include_dirs`.

    `architecture`: the one that was asked for, whose macros are predefined.
    """
    given = {} if architecture is None else architecture.defines
    return Preprocessor([*include_dirs, CORE.parent, *include_folders()], {**given, **defines})
