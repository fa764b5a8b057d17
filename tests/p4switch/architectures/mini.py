"""Architecture outside of p4cc: v1model's blocks and externs in a package with another name."""

from __future__ import annotations

from pathlib import Path

from p4switch.architectures.architecture import ARCHITECTURES, Architecture
from p4switch.architectures.package import Package
from p4switch.architectures.v1model import EXTERNS, PROPERTIES
from p4switch.architectures.v1model.package import V1Switch
from p4switch.registry import Registry

PACKAGES: Registry[type[Package]] = Registry("package", group="mini", package="p4switch.architectures", base=Package)


@PACKAGES.register("MiniSwitch")
class MiniSwitch(V1Switch):
    include = "mini.p4i"


MINI = Architecture("mini", Path(__file__).parent, ("mini.p4i",), PACKAGES, (EXTERNS,), PROPERTIES, {"MINI_TTL": "7"})
ARCHITECTURES.add(MINI.name, MINI)
