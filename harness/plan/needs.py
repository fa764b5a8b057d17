"""Needs of a protocol and its P4 program, which are defaults for keys that the scenario does not set.

The plan's checks (`harness.plan.checks`) refuse a scenario that contradicts a need. They see the
scenario with these defaults, so they refuse only values that the user has written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce
from typing import Any

from pydantic import BaseModel

import topologies
from control_plane.programs import ProgramParameters
from harness.plan.scenario import Scenario
from host_agents.registry import Protocol
from topologies import Topology

PRIORITIES = range(8)
_SYMMETRIC = "symmetric"  # the load balancer of switches that uses the same path in both directions

Path = tuple[str, ...]
Needs = dict[Path, Any]


def agreement(protocol: Protocol, program: str, parameters: ProgramParameters) -> Needs:
    """Return the values of parameters that a protocol and its program must have in common.

    `program` is the program's name. A value that is given to one of them is the default of the
    other. If neither is given, the protocol's default holds.
    """
    theirs, own = protocol.resolved(), parameters.model_dump()
    needs: Needs = {}
    for key in dict.fromkeys((*protocol.info.agrees, *parameters.agrees)):
        if key not in theirs or key not in own or theirs[key] == own[key]:
            continue
        if key in parameters.model_fields_set:
            needs["protocols", protocol.name, key] = own[key]
        else:
            needs["programs", program, key] = theirs[key]
    return needs


def of_scenario(protocol: Protocol, parameters: Iterable[ProgramParameters], topology: Topology) -> Needs:
    """Return the settings of switches and NICs that the protocol and the switches' programs need."""
    needs: Needs = {}
    if protocol.info.symmetric_paths and topologies.routing.has_choices(topology):
        needs["switch", "load_balancing"] = _SYMMETRIC
    elif topology.detours:
        needs["switch", "load_balancing"] = topology.routing
    for lanes in filter(None, (each.equal_priorities for each in parameters)):
        needs["nic", "data_priority"] = lanes[0]
        needs["nic", "control_priority"] = max(set(PRIORITIES) - set(lanes), default=0)
        needs["switch", "pfc", "priorities"] = lanes
        needs["switch", "classes"] = "oldest"
        needs["switch", "equal_priorities"] = lanes
    return needs


def without_limit(scenario: Scenario) -> Needs:
    """Return the settings for switches without a buffer limit, which need no PFC."""
    switch = scenario.switch
    return {("switch", "pfc", "enabled"): False} if switch.buffer_bytes is None else {}


def says(scenario: Scenario, path: Path) -> bool:
    """Return whether the scenario sets this key itself; an empty list does not."""
    below: Any = scenario
    for name in path:
        written = below.model_fields_set if isinstance(below, BaseModel) else below
        if name not in written:
            return False
        below = getattr(below, name) if isinstance(below, BaseModel) else below[name]
    return below is not None and below != ()


def supplied(scenario: Scenario, needs: Mapping[Path, Any]) -> Scenario:
    """Return the scenario with the needs as values of keys that it does not set itself."""
    open_ones = {path: value for path, value in needs.items() if not says(scenario, path)}
    return reduce(lambda tables, path: _with(tables, path, open_ones[path]), open_ones, scenario)


def _with(table: Any, path: Path, value: Any) -> Any:
    name, *rest = path
    if isinstance(table, BaseModel):
        below = _with(getattr(table, name), tuple(rest), value) if rest else value
        return table.model_copy(update={name: below})
    return {**table, name: _with(table.get(name, {}), tuple(rest), value) if rest else value}
