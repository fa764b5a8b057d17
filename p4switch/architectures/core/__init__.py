"""Externs that all architectures have: those of `core.p4`, which the language defines."""

from __future__ import annotations

from p4switch.architectures.extern import Extern
from p4switch.registry import Registry

EXTERNS: Registry[type[Extern]] = Registry(
    "extern", group="p4cc.core_externs", package="p4switch.architectures.core.externs", base=Extern
)
