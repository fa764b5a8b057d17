"""Resolution of scenarios into runs: each combination of protocol, load balancer and seed.

All runs are checked.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel

import topologies
from harness import workloads
from harness.control import load_balancing as switch_load_balancing
from harness.control import pipelines, programs
from harness.control.programs import Program, ProgramParameters
from harness.plan import checks, needs
from harness.plan.checks.routes import joined
from harness.plan.host_errors import as_user_error
from harness.plan.recorded import with_columns, with_probes
from harness.plan.references import loaded
from harness.plan.run import Run, named
from harness.plan.scenario import Scenario, TrafficGroup, Variant, check, merge, sound_part
from harness.plan.traffic_summary import TrafficSummary
from host_agents import registry
from host_agents.registry import LoadBalancing, Protocol
from p4switch import extensions
from p4switch.errors import Mistakes, UserError, validate
from p4switch.tables import as_written
from topologies import Topology
from topologies.model import framed, renumbered

_T = TypeVar("_T")
_MAX_LABEL_BYTES = 200


def plan_tables(
    name: str, tables: Mapping[str, Any], folder: Path, summaries: dict[str, TrafficSummary] | None = None
) -> list[Run]:
    """Return the runs of the scenario in a file's tables; `summaries` as in `plan`.

    Raises UserError, which lists all mistakes.
    """
    mistakes = Mistakes()
    scenario = sound_part(tables, mistakes)
    if mistakes and scenario is not None:
        checked(scenario, folder, mistakes)
    mistakes.tell()
    assert scenario is not None
    return plan(name, scenario, folder, summaries)


def plan(name: str, scenario: Scenario, folder: Path, summaries: dict[str, TrafficSummary] | None = None) -> list[Run]:
    """Return the runs of one scenario.

    Raises UserError for runs that are not possible.

    `summaries` is shared by scenarios of one folder that are planned together, because many have
    the same traffic, and some traffic takes seconds to generate.
    """
    if len({variant.name for variant in scenario.variants}) < len(scenario.variants):
        raise UserError("variants: should have different names")
    built: dict[str, Topology] = {}
    summaries = {} if summaries is None else summaries  # by traffic, which variants can share
    runs: list[Run] = []
    for variant in scenario.variants or [Variant(name="")]:
        tables = {key: value for key, value in scenario.model_dump(exclude_unset=True).items() if key != "variants"}
        mistakes = Mistakes()
        varied = checked(check(merge(tables, variant.set)), folder, mistakes)
        mistakes.tell()
        topology_name, values = named("topology", varied.topology)
        key = repr(varied.topology)
        if key not in built:
            built[key] = _framed(varied, topologies.build(topology_name, values))
            joined(built[key])
        topology = built[key]
        combined = list(itertools.product(_distinct(varied.cc), _distinct(varied.lb), _distinct(varied.seeds)))
        several = len(varied.cc) > 1 or len(varied.lb) > 1
        for cc, lb, seed in combined:
            names = [cc, *([] if lb == "ecmp" else [lb])] if several or not variant.name else []
            own = (*names, variant.name) if variant.name else tuple(names)
            only = {
                "cc": [cc],
                "lb": [lb],
                "seeds": [seed],
                "variants": [Variant(name=", ".join(own))] if variant.name else [],
            }
            runs.append(_resolve(name, varied.model_copy(update=only), folder, topology, own))
        first = runs[-len(combined)]
        if len(first.label.encode()) > _MAX_LABEL_BYTES:
            raise UserError(f"{first.label[:40]}...: should be a folder's name, of at most {_MAX_LABEL_BYTES} bytes")
        for network_check in checks.NETWORK:
            network_check(first)
        key = repr((varied.topology, varied.workload, varied.groups, first.attack, first.seed))
        if key not in summaries:
            summaries[key] = TrafficSummary.of(first.traffic())
        if failed := [event for event in summaries[key].failed if event not in varied.events]:
            changes: dict[str, Any] = {"events": [*failed, *varied.events]}
            if "reroute_after_ns" not in varied.model_fields_set:
                # Htsim's matrices may declare links that are absent from the network.
                changes["reroute_after_ns"] = 0
            runs[-len(combined) :] = [
                replace(run, scenario=run.scenario.model_copy(update=changes)) for run in runs[-len(combined) :]
            ]
            first = runs[-len(combined)]
        for traffic_check in checks.TRAFFIC:
            for run in runs[-len(combined) :]:
                traffic_check(run, summaries[key])
        for both_check in checks.NETWORK_TRAFFIC:
            both_check(first, summaries[key])
    return with_columns(with_probes(runs))


def checked(scenario: Scenario, folder: Path, mistakes: Mistakes) -> Scenario:
    """Return the scenario with names for its references, after checking every name and parameter.

    Tables of protocols and programs that do not run are checked, too; `mistakes` collects all
    errors.
    """

    def is_file(name: object) -> bool:
        """Return whether a name is a file that could not be loaded; loaded files have become names."""
        return isinstance(name, str) and extensions.reference(name, folder) is not None

    resolved = mistakes.attempt(lambda: loaded(scenario, folder)) or scenario
    for key, of_named in (("topology", topologies.parameters), ("workload", workloads.parameters)):
        if not is_file(getattr(resolved, key).get("name")):
            mistakes.attempt(partial(_check_table, key, getattr(resolved, key), of_named))
    for cc in dict.fromkeys((*resolved.cc, *resolved.protocols)):
        if not is_file(cc):
            mistakes.attempt(partial(_protocol, resolved, cc))
    for lb in dict.fromkeys((*resolved.lb, *resolved.load_balancers)):
        if not is_file(lb):
            mistakes.attempt(partial(_load_balancing, resolved, lb))
    for group in resolved.groups:
        mistakes.attempt(partial(_check_group, resolved, group))
    own = mistakes.attempt(partial(programs.program, resolved.program)) if resolved.program else None
    for name, values in resolved.programs.items():
        mistakes.attempt(partial(_check_program, own, name, values))
    return resolved


def _check_group(scenario: Scenario, group: TrafficGroup) -> None:
    where = f"groups.{group.name}"
    _check_table(f"{where}.workload", group.workload, workloads.parameters)
    _sender(scenario, group, scenario.cc[0], scenario.lb[0])


def _sender(scenario: Scenario, group: TrafficGroup, cc: str, lb: str) -> tuple[Protocol, LoadBalancing]:
    """Return a group's protocol and load balancer, by default the run's.

    Raises UserError, which mentions the group if the group names one of the two itself.
    """
    try:
        if group.parameters:
            assert group.cc is not None
            own = scenario.model_copy(update={"protocols": {**scenario.protocols, group.cc: group.parameters}})
            return _protocol(own, group.cc), _load_balancing(scenario, group.lb or lb)
        return _protocol(scenario, group.cc or cc), _load_balancing(scenario, group.lb or lb)
    except UserError as error:
        if group.cc is None and group.lb is None:
            raise
        raise UserError(f"groups.{group.name}: {error}") from None


def _check_table(key: str, table: Mapping[str, Any], of_named: Callable[[str], type[BaseModel]]) -> None:
    name, values = named(key, table)
    validate(of_named(name), values, key)


def _check_program(own: Program | None, name: str, values: Mapping[str, Any]) -> None:
    program = own if own is not None and own.name == name else programs.program(name)
    program.checked(values, f"programs.{name}")


def _protocol(scenario: Scenario, name: str) -> Protocol:
    registry.KINDS["cc"].find(name.partition("+")[0])
    return as_user_error(lambda: registry.resolve(name, scenario.protocols.get(name)))


def _load_balancing(scenario: Scenario, name: str) -> LoadBalancing:
    registry.KINDS["lb"].find(name)
    return as_user_error(lambda: registry.resolve_load_balancer(name, scenario.load_balancers.get(name)))


def _distinct(values: Sequence[_T]) -> list[_T]:
    return list(dict.fromkeys(values))


def _resolve(
    name: str,
    scenario: Scenario,
    folder: Path,
    topology: Topology,
    names: tuple[str, ...],
) -> Run:
    cc, lb = scenario.cc[0], scenario.lb[0]
    protocol = _protocol(scenario, cc)
    as_user_error(lambda: protocol.scope(scenario.nic.cc_scope))
    load_balancing = _load_balancing(scenario, lb)
    senders = {group.name: _sender(scenario, group, cc, lb) for group in scenario.groups}
    program = _program_of(scenario, [protocol, *(own for own, _ in senders.values())])
    parameters = _program_parameters(scenario, program)
    if agreed := needs.agreement(scenario, protocol, program, parameters):
        scenario = needs.supplied(scenario, agreed)
        protocol, parameters = _protocol(scenario, cc), _program_parameters(scenario, program)
    scenario = needs.supplied(scenario, needs.of_scenario(protocol, parameters, topology))
    scenario = needs.supplied(scenario, needs.without_limit(scenario))
    balancer = switch_load_balancing.find(scenario.switch.load_balancing, folder)
    run = Run(name, scenario, folder, topology, protocol, load_balancing, program, parameters, balancer, names, senders)
    run = replace(run, topology=_numbered(run))
    for check_run in checks.RUN:
        check_run(run)
    for group, (own, own_balancing) in senders.items():
        try:
            for check_run in checks.RUN:
                check_run(replace(run, protocol=own, load_balancing=own_balancing))
        except UserError as error:
            raise UserError(f"groups.{group}: {error}") from None
    return run


def _framed(scenario: Scenario, topology: Topology) -> Topology:
    """Return the network with the framing bytes that its links charge.

    A link's own value has precedence over the scenario's. Raises UserError if the scenario's frames
    are flits, which are charged for their payload only.
    """
    framed_topology = framed(topology, scenario.framing_bytes)
    if framed_topology is not topology and scenario.framing == "flits":
        raise UserError("framing: 'flits', and links have framing_bytes of their own; expected one of the two")
    return framed_topology


def _numbered(run: Run) -> Topology:
    """Return the run's network with the port numbers of the chip that its switches are compiled for."""
    if run.scenario.switch.architecture is None and not run.program.outside:
        return run.topology
    architecture = pipelines.architecture(run.build)
    if architecture is None:
        return run.topology
    return renumbered(run.topology, architecture.front_panel, frozenset(run.scenario.switch.loopback.ports))


def _program_of(scenario: Scenario, protocols: Sequence[Protocol]) -> Program:
    """Return the program of a run: the scenario's, or one that can replace the programs of all protocols."""
    needed = list(dict.fromkeys(protocol.info.program for protocol in protocols))
    wanted = scenario.program or needed[0]
    program = programs.program(wanted)
    lacking = [need for need in needed if not program.does_the_work_of(need)]
    if not lacking:
        return program
    fitting = [p for p in programs.names() if all(map(programs.program(p).does_the_work_of, needed))]
    if fitting and scenario.program is None:
        return programs.program(fitting[0])
    whose = next(protocol.name for protocol in protocols if protocol.info.program == lacking[0])
    if len(needed) == 1 or fitting:
        raise UserError(
            f"program {program.name!r} does not fit protocol {whose!r}; expected {' or '.join(map(repr, fitting))}"
        )
    raise UserError(
        f"groups: cc {protocols[0].name!r} needs program {needed[0]!r}, and cc {whose!r} {lacking[0]!r}; no program "
        "does the work of both"
    )


def _program_parameters(scenario: Scenario, program: Program) -> ProgramParameters:
    """Return a program's parameters, including those of programs that it contains."""
    values: dict[str, Any] = {}
    for name in program.parameters.contains:
        if issubclass(program.parameters, programs.program(name).parameters):
            values |= scenario.programs.get(name, {})
    return program.checked({**values, **scenario.programs.get(program.name, {})}, f"programs.{program.name}")


def resolved(run: Run) -> Scenario:
    """Return the run's scenario with the parameters of everything that it names written out."""
    topology_name, _ = named("topology", run.scenario.topology)
    workload_name, values = named("workload", run.scenario.workload)
    workload = as_written(workloads.parameters(workload_name).model_validate(values))
    attack, given = run.attack, run.scenario.attack
    return run.scenario.model_copy(
        update={
            "program": str(run.program.source) if run.program.outside else run.program.name,
            "topology": {"name": topology_name, **run.topology.parameters},
            "workload": {"name": workload_name, **workload},
            "attack": given and attack and given.model_copy(update=attack.resolved()),
            "nic": run.scenario.nic.model_copy(update={"reliability": run.reliability, "cc_scope": run.cc_scope}),
            "record": run.scenario.record.model_copy(
                update={
                    "probes": [probe.model_dump(exclude_none=True) for probe in run.probes],
                    "columns": list(run.columns),
                }
            ),
            "groups": [_resolved_group(run, group) for group in run.scenario.groups],
            "protocols": {run.protocol.name: run.protocol.resolved()},
            "load_balancers": {run.load_balancing.name: _parameters(run.load_balancing.parameters)},
            "programs": {run.program.name: as_written(run.program_parameters)},
            "workers": None,  # the results do not depend on it
        }
    )


def _resolved_group(run: Run, group: TrafficGroup) -> TrafficGroup:
    """Return a group with all values that it inherits from the run."""
    protocol, balancing = run.group_senders[group.name]
    name, values = named(f"groups.{group.name}.workload", group.workload)
    workload = as_written(workloads.parameters(name).model_validate(values))
    return group.model_copy(
        update={
            "cc": protocol.name,
            "parameters": protocol.resolved(),
            "lb": balancing.name,
            "workload": {"name": name, **workload},
        }
    )


def _parameters(parameters: object) -> dict[str, Any]:
    return dict(vars(parameters)) if hasattr(parameters, "__dict__") else {}
