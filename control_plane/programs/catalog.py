"""P4 programs by name or file, with their parameters.

The parameter class of `my.p4` is registered as "my" by `my.py` beside it. Without such a file the
parameters are those of `FileParameters`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from control_plane.programs.base import REGISTRY, ProgramParameters
from control_plane.programs.files import parameters_of
from p4switch import extensions
from p4switch.errors import UserError, validate
from p4switch.sources import SOURCE_DIRECTORY


@dataclass(frozen=True)
class Program:
    """P4 program and its parameters."""

    name: str
    parameters: type[ProgramParameters]
    source: Path

    @property
    def outside(self) -> bool:
        """True if the program does not come with p4cc."""
        return self.source.parent != SOURCE_DIRECTORY

    def does_the_work_of(self, other: str) -> bool:
        """Return whether the program can replace another one.

        A program from outside without `contains` is not checked.
        """
        return self.contains(other) or (self.outside and not self.parameters.contains)

    def contains(self, other: str) -> bool:
        """Return whether the program is the other one or declares that it includes it (`contains`)."""
        return other in (self.name, *self.parameters.contains)

    def checked(self, values: Mapping[str, Any], where: str) -> ProgramParameters:
        """Return the program's parameters.

        Raises UserError that names the wrong key as `where.key`.
        """
        return validate(self.parameters, values, where)


def program(name: str) -> Program:
    """Return the program of that name, or that of a `.p4` file.

    Raises UserError if there is none.
    """
    if name.endswith(".p4"):
        return _of_file(Path(name).resolve())
    cls, origin = REGISTRY.find(name), REGISTRY.origin(name)
    folder = SOURCE_DIRECTORY if origin is None else Path(origin).parent
    source = folder / f"{name}.p4"
    if not source.is_file():
        raise UserError(f"{REGISTRY.described(name)}: no file {str(source)!r}")
    return Program(name, cls, source)


def _of_file(source: Path) -> Program:
    name, beside = source.stem, source.with_suffix(".py")
    if not source.is_file():
        raise UserError(f"no P4 program {str(source)!r}")
    if source.parent == SOURCE_DIRECTORY:
        return program(name)
    if not beside.is_file():
        if REGISTRY.get(name) is not None:
            raise UserError(f"{source}: there is a {REGISTRY.described(name)}; expected a name of its own")
        return Program(name, _parameters_of(source), source)
    extensions.load(beside)
    if name not in REGISTRY.names_from(str(beside)):
        raise UserError(f"{beside} registers no program {name!r}; expected the parameters of {source.name}")
    return Program(name, REGISTRY.find(name), source)


_parameters_of = lru_cache(parameters_of)  # the class of a file is cached, so that equal programs compare as equal


def parameters(name: str, values: Mapping[str, Any], where: str = "program") -> ProgramParameters:
    """Return a program's parameters.

    Raises UserError that names the wrong key as `where.key`.
    """
    return program(name).checked(values, where)
