"""Resolution of scenarios into runs: each combination of protocol, load balancer and seed.

All runs are checked.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel

import topologies
from control_plane import load_balancing as switch_load_balancing
from control_plane import pipelines, programs
from control_plane.programs import Program, ProgramParameters
from harness import workloads
from harness.plan import checks, needs
from harness.plan.checks.routes import joined
from harness.plan.host_errors import as_user_error
from harness.plan.recorded import with_columns, with_probes
from harness.plan.references import loaded
from harness.plan.run import Run, named
from harness.plan.scenario import Scenario, SwitchGroup, TrafficGroup, Variant, check, merge, sound_part
from harness.plan.switch_programs import Place, SwitchProgram, selected, settings_of, table_of
from harness.plan.traffic_summary import TrafficSummary
from host_agents import registry
from host_agents.registry import LoadBalancing, Protocol
from p4switch import extensions
from p4switch.architectures.architecture import Architecture
from p4switch.architectures.front_panel import FrontPanel
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
    summaries = {} if summaries is None else summaries  # summaries by traffic, which variants can share
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
    known = {}
    if resolved.program and (own := mistakes.attempt(partial(programs.program, resolved.program))):
        known[own.name] = own
    for place, switches in enumerate(resolved.switches):
        if own := mistakes.attempt(partial(_check_switches, place, switches)):
            known[own.name] = own
    for name, values in resolved.programs.items():
        mistakes.attempt(partial(_check_program, known.get(name), name, values))
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


def _check_switches(place: int, group: SwitchGroup) -> Program:
    try:
        program = programs.program(group.program)
    except UserError as error:
        raise UserError(f"switches.{place}.program: {error}") from None
    program.checked(group.parameters, f"switches.{place}.parameters")
    return program


def _check_program(known: Program | None, name: str, values: Mapping[str, Any]) -> None:
    (known or programs.program(name)).checked(values, f"programs.{name}")


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
    every_protocol = [protocol, *(own for own, _ in senders.values())]
    places = selected(scenario, topology)
    chosen = {place: _program_of(scenario, place, every_protocol) for place in places}
    parameters = {place: _program_parameters(scenario, place, program) for place, program in chosen.items()}
    agreed: needs.Needs = {}
    for place, program in chosen.items():
        agreed |= needs.agreement(protocol, program.name, parameters[place])
    if agreed:
        scenario = needs.supplied(scenario, agreed)
        protocol = _protocol(scenario, cc)
        parameters = {place: _program_parameters(scenario, place, program) for place, program in chosen.items()}
    scenario = needs.supplied(scenario, needs.of_scenario(protocol, parameters.values(), topology))
    scenario = needs.supplied(scenario, needs.without_limit(scenario))
    switch_programs = tuple(
        _switch_program(scenario, folder, place, pipes, chosen[place], parameters[place])
        for place, pipes in places.items()
    )
    run = Run(name, scenario, folder, topology, protocol, load_balancing, switch_programs, names, senders)
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
    are flits and a link has its own value.
    """
    framed_topology = framed(topology, scenario.framing_bytes)
    if framed_topology is not topology and scenario.framing == "flits":
        raise UserError("framing: 'flits', and links have framing_bytes of their own; expected one of the two")
    return framed_topology


def _switch_program(
    scenario: Scenario,
    folder: Path,
    place: Place,
    pipes: Mapping[str, tuple[int, ...]],
    program: Program,
    parameters: ProgramParameters,
) -> SwitchProgram:
    settings = settings_of(scenario, place)
    key = f"{table_of(place)}.load_balancing"
    settings["load_balancer"] = switch_load_balancing.find(settings.pop("load_balancing"), folder, key)
    return SwitchProgram(place, pipes, program, parameters, **settings)


def _numbered(run: Run) -> Topology:
    """Return the run's network with the port numbers of the chips that its switches are compiled for.

    Raises UserError for a switch with several pipes that is not a chip, and for a switch whose
    pipes have programs for different architectures.
    """
    ports: dict[str, tuple[int, ...]] = {}
    architectures = {each.place: _architecture(run, each) for each in run.switch_programs}
    for switch, pipes in itertools.groupby(run.pipes.values(), key=lambda pipe: pipe.switch):
        numbers = {pipe.number: pipe.program for pipe in pipes}
        first = architectures[numbers[0].place]
        for pipe, each in numbers.items():
            if (own := architectures[each.place]) is not first:
                names = " and ".join("v1model" if a is None else a.name for a in (first, own))
                raise UserError(
                    f"switches: pipes 0 and {pipe} of {switch!r} have programs for {names}; expected one architecture"
                )
        panel = None if first is None else first.front_panel
        without = tuple(run.loops[switch])
        if panel is None and len(numbers) > 1:
            raise UserError(
                f"switches: {switch!r} has {len(numbers)} pipes, and program {numbers[0].name!r} is not for a chip; "
                "expected pipes = 1, or a program for TNA or T2NA"
            )
        if panel is not None and len(numbers) == 1:
            ports[switch] = _device_ports(panel, without)
        elif panel is not None:
            ports[switch] = tuple(panel.divided_ports(len(run.topology.ports[switch]), len(numbers), without))
    return renumbered(run.topology, ports)


@lru_cache(maxsize=16)
def _device_ports(panel: FrontPanel, without: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(panel.device_ports(without))


def _architecture(run: Run, of: SwitchProgram) -> Architecture | None:
    """Return the architecture of a switch program; None for p4cc's own programs for BMv2."""
    if of.architecture is None and not of.program.outside:
        return None
    return pipelines.architecture(run.build(of), of.key_of("architecture"))


def _program_of(scenario: Scenario, place: Place, protocols: Sequence[Protocol]) -> Program:
    """Return the program at a place of the scenario.

    If the scenario gives none, it is a program that can replace the programs of all protocols.
    Raises UserError for a program that does not fit the protocols.
    """
    if place is None:
        return _fitting(scenario.program, protocols)
    try:
        return _fitting(scenario.switches[place].program, protocols)
    except UserError as error:
        raise UserError(f"switches.{place}: {error}") from None


def _fitting(given: str | None, protocols: Sequence[Protocol]) -> Program:
    needed = list(dict.fromkeys(protocol.info.program for protocol in protocols))
    program = programs.program(given or needed[0])
    lacking = [need for need in needed if not program.does_the_work_of(need)]
    if not lacking:
        return program
    fitting = [name for name in programs.names() if all(map(programs.program(name).contains, needed))]
    if fitting and given is None:
        return programs.program(fitting[0])
    whose = next(protocol.name for protocol in protocols if protocol.info.program == lacking[0])
    if len(needed) == 1 or fitting:
        raise UserError(
            f"program {program.name!r} does not fit protocol {whose!r}; expected {' or '.join(map(repr, fitting))}"
        )
    raise UserError(
        f"groups: cc {protocols[0].name!r} needs program {needed[0]!r}, and cc {whose!r} {lacking[0]!r}; no program "
        "serves both"
    )


def _program_parameters(scenario: Scenario, place: Place, program: Program) -> ProgramParameters:
    """Return the parameters of the program at a place, including those of programs that it contains."""
    values: dict[str, Any] = {}
    for name in program.parameters.contains:
        if issubclass(program.parameters, programs.program(name).parameters):
            values |= scenario.programs.get(name, {})
    values |= scenario.programs.get(program.name, {})
    if place is None:
        return program.checked(values, f"programs.{program.name}")
    return program.checked({**values, **scenario.switches[place].parameters}, f"switches.{place}.parameters")


def resolved(run: Run) -> Scenario:
    """Return the run's scenario with the parameters of everything that it names written out."""
    topology_name, _ = named("topology", run.scenario.topology)
    workload_name, values = named("workload", run.scenario.workload)
    workload = as_written(workloads.parameters(workload_name).model_validate(values))
    attack, given = run.attack, run.scenario.attack
    return run.scenario.model_copy(
        update={
            **_resolved_programs(run),
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
            "workers": None,  # the results do not depend on it
        }
    )


def _resolved_programs(run: Run) -> dict[str, Any]:
    """Return the scenario's keys about programs, with all values.

    Entries of `switches` have all parameters of their program. `programs` has those of the scenario's
    own.
    """
    values: dict[str, Any] = {"program": None, "programs": {}, "switches": []}
    for each in run.switch_programs:
        name = str(each.program.source) if each.program.outside else each.name
        if each.place is None:
            values |= {"program": name, "programs": {each.name: as_written(each.parameters)}}
            continue
        update = {**settings_of(run.scenario, each.place), "program": name, "parameters": as_written(each.parameters)}
        values["switches"].append(run.scenario.switches[each.place].model_copy(update=update))
    return values


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
