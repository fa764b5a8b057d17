"""Entries of `p4src/include/ecn.p4`: RED/ECN marking."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Annotated

from pydantic import Field

from control_plane.programs.base import SwitchView
from control_plane.programs.entries import Action, DefaultAction, Entry, Exact, Match, Range, TableEntry, Ternary

PRIORITIES = 8
MAX_DEPTH_CELLS = (1 << 19) - 1
LOTTERY = "red_probability"
"""Table of programs whose target cannot draw a number below any other: `p4src/include/tofino/target.p4`."""
_STEPS = 32  # number of probability steps between Kmin and Kmax
_CHANCES = 1 << 16
_PORT_MASK = (1 << 9) - 1

Probability = Annotated[float, Field(gt=0, le=1)]


def red(kmin_bytes: float, kmax_bytes: float, pmax: float, cell_bytes: int) -> Action:
    """Return the action for these thresholds.

    Depths beyond the range of v1model's field are never reached, so such thresholds mark nothing.
    """
    kmin = min(round(kmin_bytes / cell_bytes), MAX_DEPTH_CELLS)
    kmax = min(round(kmax_bytes / cell_bytes), MAX_DEPTH_CELLS)
    span = max(1, round((kmax_bytes - kmin_bytes) / cell_bytes / pmax))
    return Action("red", {"kmin_cells": kmin, "kmax_cells": kmax, "span": span})


def marking_entries(switch: SwitchView, red_of_port: dict[int, Action]) -> list[Entry]:
    """Return the most common thresholds as the default action, and entries for the ports with other thresholds."""
    keys = {port: (action.name, *sorted(action.params.items())) for port, action in red_of_port.items()}
    if not keys:
        return []
    common = Counter(keys.values()).most_common(1)[0][0]
    first = next(port for port, key in sorted(keys.items()) if key == common)
    entries: list[Entry] = [DefaultAction("ecn_threshold", red_of_port[first])]
    if LOTTERY in switch.tables:
        entries += _lottery_entries(Ternary(0, 0), red_of_port[first], priority=1)
    for port, key in sorted(keys.items()):
        if key != common:
            entries += [
                TableEntry("ecn_threshold", {"port": Exact(port), "priority": Exact(priority)}, red_of_port[port])
                for priority in range(PRIORITIES)
            ]
            if LOTTERY in switch.tables:
                entries += _lottery_entries(Ternary(port, _PORT_MASK), red_of_port[port], priority=2)
    return entries


def _lottery_entries(port: Ternary, action: Action, priority: int) -> list[Entry]:
    """Return the probability of a mark by depth, in steps; each step has the probability of its middle."""
    kmin, kmax, span = (action.params[name] for name in ("kmin_cells", "kmax_cells", "span"))
    steps = min(_STEPS, kmax - kmin)
    bounds = [kmin + (kmax - kmin) * step // steps for step in range(steps + 1)] if steps else []
    entries: list[Entry] = []
    for low, high in pairwise(bounds):
        chance = min(round(((low + 1 + high) / 2 - kmin) / span * _CHANCES), _CHANCES - 1)
        match: dict[str, Match] = {"port": port, "depth": Range(low + 1, high)}
        entries.append(TableEntry(LOTTERY, match, Action("chance", {"of_65536": chance}), priority))
    return entries
