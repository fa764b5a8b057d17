"""Checks of lanes: the priorities among which a program moves packets."""

from __future__ import annotations

from harness.plan.run import Run
from p4switch.errors import UserError


def lanes(run: Run) -> None:
    """Check that hosts and switches suit the programs' lanes, and that all programs have the same lanes.

    Raises UserError otherwise.
    """
    every = {each.parameters.equal_priorities: each.name for each in run.switch_programs}
    if len(every) > 1:
        listed = ", ".join(f"{list(lanes)} of {name!r}" for lanes, name in every.items())
        raise UserError(f"switches: packets change between the priorities {listed}; expected the same at all switches")
    (lanes,) = every
    if not lanes:
        return
    key, nic, switch = f"programs.{every[lanes]}.lane_priorities", run.scenario.nic, run.scenario.switch
    if lanes[0] != nic.data_priority:
        raise UserError(f"{key}: should begin with nic.data_priority, {nic.data_priority}, got {lanes[0]}")
    if nic.control_priority in lanes:
        raise UserError(f"{key}: {nic.control_priority} is nic.control_priority; expected priorities that are free")
    if switch.pfc.enabled and (lossy := sorted(set(lanes) - set(switch.pfc.priorities))):
        raise UserError(f"switch.pfc.priorities: should have all of {key}; {lossy[0]} is missing")
    if switch.classes != "oldest":
        raise UserError(f"switch.classes: should be 'oldest' for the lanes of {key}, got {switch.classes!r}")
    if not set(lanes) <= set(switch.equal_priorities):
        raise UserError(f"switch.equal_priorities: should have all of {key}, {list(lanes)}")
