"""Base class of architectures, and the choice of the architecture for a program.

An architecture is a folder with an include file, packages and externs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from p4switch.architectures import core
from p4switch.architectures.extern import Extern, ExternType, KeyMasks
from p4switch.architectures.front_panel import FrontPanel, PortGroups
from p4switch.architectures.package import Package
from p4switch.registry import Registry

if TYPE_CHECKING:
    from p4switch.compiler import ast


@dataclass(frozen=True)
class TableProperties:
    """Names of the table properties whose values are objects or time-outs, with the types they accept."""

    profile: str
    profiles: tuple[str, ...]
    counter: str
    counters: tuple[str, ...]
    meter: str
    meters: tuple[str, ...]
    idle_timeout: str
    layouts: tuple[str, ...] = ()
    """Further types that `profile` accepts. They affect the layout of a table, but not its results."""
    direct: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Types that the other properties with objects accept, by the name of the property.

    Objects of direct types have a cell for each entry.
    """


@dataclass(frozen=True, eq=False)
class Architecture:
    """Architecture of P4 programs.

    `name` is the name of its folder, the value of `--arch`, and the field `arch` of the P4Info.
    """

    name: str
    folder: Path
    """Folder of the include files that declare the architecture."""
    includes: tuple[str, ...]
    packages: Registry[type[Package]]
    externs: tuple[Registry[type[Extern]], ...]
    """Registries of externs in the order in which they are searched; that of `core.p4` follows them."""
    properties: TableProperties
    defines: Mapping[str, str] = field(default_factory=dict)
    """Macros that are predefined if `--arch` names the architecture."""
    match_kinds: Mapping[str, str] = field(default_factory=dict)
    """The target's equivalent of each match kind that only this architecture has."""
    fixed_tables: tuple[Mapping[str, Any], ...] = ()
    """Tables that BfRuntime has for every program, as in `bf-rt.json`."""
    pads_headers: bool = False
    """True if headers whose length is not a whole number of bytes are padded at the end."""
    superseded: Mapping[str, str] = field(default_factory=dict)
    """Replacement for each obsolete name; a member has the name `TYPE.MEMBER`."""
    front_panel: FrontPanel | None = None
    """Port numbers that programs use; None: ports are numbered from 1."""
    port_groups: PortGroups | None = None
    """Groups of ports whose queues the control plane configures; None: it configures none."""
    key_masks: str = ""
    """Name of the `KeyMasks` type for exact keys; empty: tables have no key masks."""
    clock_hz: int = 0
    """Clock frequency of a chip's pipelines, which limits the rates of meters; 0: no limit."""

    def extern(self, name: str) -> type[Extern] | None:
        """Return the function or type that has this name in P4."""
        candidates = (registry.get(name) for registry in (*self.externs, core.EXTERNS))
        return next((extern for extern in candidates if extern is not None), None)

    def extern_type(self, name: str) -> ExternType | None:
        """Return the type of that name, if the architecture has one."""
        extern = self.extern(name)
        return extern() if extern is not None and issubclass(extern, ExternType) else None

    def masks_of(self, table: ast.TableDecl) -> KeyMasks | None:
        """Return the type of a table's key masks, or None if the table has none."""
        kind = self.extern_type(self.key_masks) if self.key_masks else None
        if not isinstance(kind, KeyMasks):
            return None
        given = [a.tokens for a in table.annotations if a.name == kind.annotation]
        return kind if ["1"] in given else None

    def package(self, decl: ast.PackageDecl) -> type[Package] | None:
        """Return the package that `decl` declares, or None if the architecture does not have it."""
        return self.packages.get(decl.name) if _named_architecture(decl) in ("", self.name) else None

    def package_of(self, program: ast.Program) -> type[Package] | None:
        """Return the package of `main`, or None if the architecture does not have it."""
        decl = program.facts.package(program.main)
        return None if decl is None else self.package(decl)


ARCHITECTURES: Registry[Architecture] = Registry(
    "architecture", group="p4cc.architectures", package="p4switch.architectures", base=Architecture
)


def _named_architecture(decl: ast.PackageDecl) -> str:
    """Return the name of the architecture in `@pkginfo` of a package's declaration, or an empty text."""
    pairs = [pair for a in decl.annotations if a.name == "pkginfo" for pair in a.key_values()]
    return next((text.strip('"').lower() for key, text in pairs if key == "arch"), "")


def architecture_with(decl: ast.PackageDecl) -> Architecture | None:
    """Return the architecture named by the declaration of a package, or else the one that defines the package."""
    named = ARCHITECTURES.get(_named_architecture(decl))
    return named or next((a for a in ARCHITECTURES.all().values() if a.package(decl) is not None), None)


def include_folders() -> list[Path]:
    """Return the folders with the include files of all architectures."""
    return [a.folder for a in ARCHITECTURES.all().values()]


def include_files() -> tuple[str, ...]:
    """Return the names of the include files of all architectures."""
    return tuple(name for a in ARCHITECTURES.all().values() for name in a.includes)


def extern_files() -> list[Path]:
    """Return the files outside of p4cc that have registered architectures or externs."""
    registries: list[Registry[Any]] = [ARCHITECTURES, core.EXTERNS]
    for architecture in ARCHITECTURES.all().values():
        registries += [architecture.packages, *architecture.externs]
    origins = {origin for registry in registries for origin in registry.origins()}
    return [Path(origin) for origin in sorted(origins) if origin != "__main__"]
