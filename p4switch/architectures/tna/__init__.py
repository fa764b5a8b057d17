"""The Tofino Native Architecture: so far its declarations, so that programs are type-checked."""

from __future__ import annotations

from pathlib import Path

from p4switch.architectures.architecture import ARCHITECTURES, Architecture
from p4switch.architectures.package import Package
from p4switch.registry import Registry

COMPILER = {"__p4c__": "1", "__p4c_major__": "9", "__p4c_minor__": "13", "__p4c_patchlevel__": "0"}
"""Macros by which programs ask how old the chip's compiler is: here, as new as any that they know."""

PACKAGES: Registry[type[Package]] = Registry(
    "package", group="p4cc.tna_packages", package="p4switch.architectures.tna", base=Package
)

TNA = Architecture(
    "tna", Path(__file__).parent, ("tna.p4", "tofino.p4"), PACKAGES, (), {"__TARGET_TOFINO__": "1", **COMPILER}
)
ARCHITECTURES.add(TNA.name, TNA)
