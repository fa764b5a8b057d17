"""Kinds of switches for `--switch`."""

from __future__ import annotations

from harness.worlds.mininet.bmv2_switch import Bmv2Switch
from harness.worlds.mininet.switches import BuiltinSwitch, PlannedSwitch
from p4switch.errors import lookup


def switch_class(name: str) -> type[PlannedSwitch]:
    """Return the class that `--switch` names.

    Raises UserError for an unknown class, and for one that cannot be used.
    """
    cls: type[PlannedSwitch] = lookup("switch", name, {"builtin": BuiltinSwitch, "bmv2": Bmv2Switch})
    cls.require()
    return cls
