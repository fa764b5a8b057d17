"""Checks of paths and routes: whether the protocol and the program support those of the network."""

from __future__ import annotations

from functools import lru_cache

import topologies
from harness.control.controller import Settings, switch_view
from harness.control.lanes import circle
from harness.control.programs import ProgramParameters
from harness.plan.run import Run
from host_agents.config import SCOPE_QP
from p4switch.errors import UserError
from topologies import Topology
from topologies.path_ids import path_ids


def joined(topology: Topology) -> None:
    """Check that there is a path between all pairs of hosts, for base RTTs, windows and time-outs.

    Raises UserError.
    """
    apart = topologies.routing.apart(topology)
    if apart is not None:
        first, second = apart
        raise UserError(
            f"topology {topology.name!r}: no path from {first.name} to {second.name}; "
            "expected a network that joins all hosts (events can take a link down later)"
        )


def circles(run: Run) -> None:
    """Check that there is no cycle of waiting packets that lanes do not break.

    Lanes break cycles with turns from down to up. They do not break cycles of routes alone, nor
    those of deflections between switches of a tier, which are no turns. Raises UserError.
    """
    parameters = run.program_parameters
    if not parameters.equal_priorities or not run.scenario.switch.pfc.enabled:
        return
    circle = _circle(run.topology, type(parameters), parameters.model_dump_json())
    if circle:
        deflected = ", or deflected from them," * parameters.free_of_circles
        raise UserError(
            f"topology {run.topology.name!r}: packets on its routes{deflected} can wait for each other in a circle "
            f"({' - '.join(circle[:6])}); {run.program.name!r} expects a network without"
        )


@lru_cache(maxsize=16)
def _circle(topology: Topology, model: type[ProgramParameters], values: str) -> tuple[str, ...]:
    """Return switches whose packets can wait for each other, with the parameters given in JSON."""
    parameters = model.model_validate_json(values)
    entries = {
        switch.name: list(parameters.entries(switch_view(topology, switch, Settings()))) for switch in topology.switches
    }
    return tuple(circle(topology, entries, parameters.equal_priorities, deflecting=parameters.free_of_circles))


def paths(run: Run) -> None:
    """Check that the protocol supports the network's paths.

    Raises UserError.
    """
    info, balancer = run.protocol.info, run.switch_load_balancer
    if balancer.detours and not run.topology.detours:
        raise UserError(
            f"switch.load_balancing: {balancer.name!r} sends packets through other groups of switches; topology "
            f"{run.topology.name!r} has none; expected a dragonfly with routing = 'valiant' or 'ugal'"
        )
    if run.topology.detours and run.program_parameters.equal_priorities:
        raise UserError(
            f"topology.routing: {run.program.name!r} knows of routes by the destination alone; expected 'shortest' or "
            "'minimal'"
        )
    if info.single_path and run.per_packet:
        by_hosts = run.load_balancing.info.per_packet
        key = f"lb {run.load_balancing.name!r}" if by_hosts else f"switch.load_balancing {balancer.name!r}"
        raise UserError(f"{key}: chooses by packets; cc {info.name!r} expects one that keeps a flow on its path")
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
            f"topology.routing: cc {info.name!r} expects what answers a packet on the same links, and each direction "
            "has detours of its own; expected 'shortest' or 'minimal'"
        )
    if info.symmetric_paths and not balancer.symmetric and topologies.routing.has_choices(run.topology):
        raise UserError(
            f"switch.load_balancing: {balancer.name!r} sends what answers a packet over other links; cc {info.name!r} "
            "expects 'symmetric' on a network with several paths"
        )
    routing = run.topology.routing
    if run.topology.detours and not (balancer.detours and balancer.adaptive == (routing == "ugal")):
        raise UserError(
            f"switch.load_balancing: {balancer.name!r} does not take the paths of topology.routing = {routing!r}; "
            f"expected {routing!r}, or another topology.routing"
        )
    longest = len(run.base_rtts_ns) - 1
    if info.max_switches and longest > info.max_switches:
        raise UserError(f"cc {info.name!r}: a path over {longest} switches; expected at most {info.max_switches}")
