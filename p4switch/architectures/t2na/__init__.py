"""The second Tofino Native Architecture: so far its declarations, so that programs are type-checked."""

from __future__ import annotations

from pathlib import Path

from p4switch.architectures.architecture import ARCHITECTURES, Architecture
from p4switch.architectures.package import Package
from p4switch.architectures.tna import COMPILER
from p4switch.registry import Registry

PACKAGES: Registry[type[Package]] = Registry(
    "package", group="p4cc.t2na_packages", package="p4switch.architectures.t2na", base=Package
)

T2NA = Architecture(
    "t2na", Path(__file__).parent, ("t2na.p4",), PACKAGES, (), {"__TARGET_TOFINO__": "2", **COMPILER}
)
ARCHITECTURES.add(T2NA.name, T2NA)
