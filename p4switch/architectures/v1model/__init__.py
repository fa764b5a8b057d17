"""The architecture v1model, as BMv2's simple_switch has it."""

from __future__ import annotations

from pathlib import Path

from p4switch.architectures.architecture import ARCHITECTURES, Architecture
from p4switch.architectures.extern import Extern
from p4switch.architectures.package import Package
from p4switch.registry import Registry

EXTERNS: Registry[type[Extern]] = Registry(
    "extern", group="p4cc.externs", package="p4switch.architectures.v1model.externs", base=Extern
)
PACKAGES: Registry[type[Package]] = Registry(
    "package", group="p4cc.packages", package="p4switch.architectures.v1model", base=Package
)

V1MODEL = Architecture("v1model", Path(__file__).parent, ("v1model.p4",), PACKAGES, (EXTERNS,))
ARCHITECTURES.add(V1MODEL.name, V1MODEL)
