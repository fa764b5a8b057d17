"""The architecture v1model, as BMv2's simple_switch has it."""

from __future__ import annotations

from p4switch.architectures.extern import Extern
from p4switch.registry import Registry

EXTERNS: Registry[type[Extern]] = Registry(
    "extern", group="p4cc.externs", package="p4switch.architectures.v1model.externs", base=Extern
)
