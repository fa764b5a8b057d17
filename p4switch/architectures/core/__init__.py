"""What all architectures have: `core.p4`, and the externs that it declares."""

from __future__ import annotations

from pathlib import Path

from p4switch.architectures.extern import Extern
from p4switch.registry import Registry

INCLUDE = "core.p4"
FOLDER = Path(__file__).parent

EXTERNS: Registry[type[Extern]] = Registry(
    "extern", group="p4cc.core_externs", package="p4switch.architectures.core.externs", base=Extern
)
