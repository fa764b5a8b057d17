"""Compiled programs of a run's switches, by switch."""

from __future__ import annotations

from collections.abc import Mapping

from control_plane.controller import SwitchSetup
from control_plane.pipelines import Pipeline, pipeline
from harness.plan.run import Run


def pipelines_of(run: Run, compiler: str, traced: bool = False) -> dict[str, Pipeline]:
    """Return the pipeline of each switch.

    Raises UserError for a program that cannot be compiled.
    """
    by_switch: dict[str, Pipeline] = {}
    for each in run.switch_programs:
        by_switch |= dict.fromkeys(each.switches, pipeline(run.build(each), traced, compiler))
    return by_switch


def setups_of(run: Run, pipelines: Mapping[str, Pipeline]) -> dict[str, SwitchSetup]:
    """Return what the controller installs on each switch."""
    by_switch: dict[str, SwitchSetup] = {}
    for each in run.switch_programs:
        program = pipelines[each.switches[0]].program
        by_switch |= dict.fromkeys(each.switches, SwitchSetup(program, each.parameters, each.loopback.ports))
    return by_switch
