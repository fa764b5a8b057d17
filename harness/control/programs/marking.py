"""Entries of `p4src/include/ecn.p4`: RED/ECN marking."""

from __future__ import annotations

from collections import Counter
from typing import Annotated

from pydantic import Field

from harness.control.programs.base import SwitchView
from harness.control.programs.entries import Action, DefaultAction, Entry, Exact, TableEntry

PRIORITIES = 8
MAX_DEPTH_CELLS = (1 << 19) - 1

Probability = Annotated[float, Field(gt=0, le=1)]


def red(kmin_bytes: float, kmax_bytes: float, pmax: float, cell_bytes: int) -> Action:
    """Return the action for these thresholds.

    Depths beyond what v1model can show are never reached, so nothing is marked.
    """
    kmin = min(round(kmin_bytes / cell_bytes), MAX_DEPTH_CELLS)
    kmax = min(round(kmax_bytes / cell_bytes), MAX_DEPTH_CELLS)
    span = max(1, round((kmax_bytes - kmin_bytes) / cell_bytes / pmax))
    return Action("red", {"kmin_cells": kmin, "kmax_cells": kmax, "span": span})


def marking_entries(switch: SwitchView, red_of_port: dict[int, Action]) -> list[Entry]:
    """Return a default action for the most common thresholds, and entries for the other ports' priorities."""
    keys = {port: (action.name, *sorted(action.params.items())) for port, action in red_of_port.items()}
    if not keys:
        return []
    common = Counter(keys.values()).most_common(1)[0][0]
    first = next(port for port, key in sorted(keys.items()) if key == common)
    entries: list[Entry] = [DefaultAction("ecn_threshold", red_of_port[first])]
    for port, key in sorted(keys.items()):
        if key != common:
            entries += [
                TableEntry("ecn_threshold", {"port": Exact(port), "priority": Exact(priority)}, red_of_port[port])
                for priority in range(PRIORITIES)
            ]
    return entries
