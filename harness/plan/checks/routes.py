"""Checks of paths and routes: whether the protocol and the program support those of the network."""

from __future__ import annotations

from functools import lru_cache

import topologies
from control_plane.controller import Settings, switch_view
from control_plane.lanes import waiting_cycle
from control_plane.programs import ProgramParameters
from harness.plan.run import Run
from harness.plan.switch_programs import SwitchProgram
from host_agents.config import SCOPE_QP
from p4switch.errors import UserError
from topologies import Topology
from topologies.path_ids import path_ids


def joined(topology: Topology) -> None:
    """Check that a path joins each pair of hosts, because base RTTs, windows and time-outs depend on it.

    Raises UserError otherwise.
    """
    apart = topologies.routing.apart(topology)
    if apart is not None:
        first, second = apart
        raise UserError(
            f"topology {topology.name!r}: no path from {first.name} to {second.name}; "
            "expected a network that joins all hosts (events can take a link down later)"
        )


def cycles(run: Run) -> None:
    """Check that packets cannot wait for each other in a cycle, unless lanes break the cycle.

    Lanes break a cycle only at a turn from down to up. Some cycles have no such turn: those of
    routes alone, and those of deflections between switches of the same tier. Raises UserError for a
    cycle that remains.
    """
    every = [each.parameters for each in run.switch_programs]
    if not every[0].equal_priorities or not run.scenario.switch.pfc.enabled:
        return
    deflecting = any(parameters.cycle_free for parameters in every)
    written = tuple(
        (each.switches, type(each.parameters), each.parameters.model_dump_json()) for each in run.switch_programs
    )
    cycle = _cycle(run.topology, written, every[0].equal_priorities, deflecting)
    if cycle:
        deflected = ", or deflected from them," * deflecting
        raise UserError(
            f"topology {run.topology.name!r}: packets on its routes{deflected} can wait for each other in a cycle "
            f"({' - '.join(cycle[:6])}); {run.program_names!r} expects a network without"
        )


@lru_cache(maxsize=16)
def _cycle(
    topology: Topology,
    written: tuple[tuple[tuple[str, ...], type[ProgramParameters], str], ...],
    lanes: tuple[int, ...],
    deflecting: bool,
) -> tuple[str, ...]:
    """Return switches whose packets can wait for each other.

    `written` has names of switches, with the class and the JSON of their program's parameters.
    """
    entries = {}
    for switches, model, values in written:
        parameters = model.model_validate_json(values)
        for name in switches:
            view = switch_view(topology, topology.switch_by_name[name], Settings())
            entries[name] = list(parameters.entries(view))
    return tuple(waiting_cycle(topology, entries, lanes, deflecting=deflecting))


def paths(run: Run) -> None:
    """Check that the protocol supports the network's paths, as the switches' load balancers choose among them.

    Raises UserError if it does not.
    """
    info = run.protocol.info
    by_packets = [f"lb {run.load_balancing.name!r}"] * run.load_balancing.info.per_packet
    for each in run.switch_programs:
        if each.load_balancer.per_packet:
            by_packets.append(f"{each.key_of('load_balancing')} {each.load_balancer.name!r}")
    if info.single_path and by_packets:
        raise UserError(
            f"{by_packets[0]}: chooses by packets; cc {info.name!r} expects one that keeps a flow on its path"
        )
    if info.telemetry and (run.per_packet or run.cc_scope != SCOPE_QP):
        shared = path_ids(run.topology).shared
        if shared is not None:
            raise UserError(
                f"topology {run.topology.name!r}: two paths from {shared[0]} to {shared[1]} may have the same id in "
                f"telemetry, by which cc {info.name!r} tells them apart; expected load balancing that keeps each flow "
                "on its path, and nic.cc_scope 'qp'"
            )
    if info.symmetric_paths and run.topology.detours:
        raise UserError(
            f"topology.routing: cc {info.name!r} expects answers on the links of their packets, and each direction "
            "has detours of its own; expected 'shortest' or 'minimal'"
        )
    for each in run.switch_programs:
        _balanced(run, each)
    longest = len(run.base_rtts_ns) - 1
    if info.max_switches and longest > info.max_switches:
        raise UserError(f"cc {info.name!r}: a path over {longest} switches; expected at most {info.max_switches}")


def _balanced(run: Run, each: SwitchProgram) -> None:
    """Check that a program and its switches' load balancer suit the protocol and the network's paths.

    Raises UserError otherwise.
    """
    info, balancer, key = run.protocol.info, each.load_balancer, each.key_of("load_balancing")
    if balancer.detours and not run.topology.detours:
        raise UserError(
            f"{key}: {balancer.name!r} sends packets through other groups of switches; topology "
            f"{run.topology.name!r} has none; expected a dragonfly with routing = 'valiant' or 'ugal'"
        )
    if run.topology.detours and each.parameters.equal_priorities:
        raise UserError(
            f"topology.routing: {each.name!r} knows of routes by the destination alone; expected 'shortest' or "
            "'minimal'"
        )
    if info.symmetric_paths and not balancer.symmetric and topologies.routing.has_choices(run.topology):
        raise UserError(
            f"{key}: {balancer.name!r} sends answers over other links than their packets; cc {info.name!r} expects "
            "'symmetric' on a network with several paths"
        )
    routing = run.topology.routing
    if run.topology.detours and not (balancer.detours and balancer.adaptive == (routing == "ugal")):
        raise UserError(
            f"{key}: {balancer.name!r} does not take the paths of topology.routing = {routing!r}; expected "
            f"{routing!r}, or another topology.routing"
        )
