"""Checks of groups: collectives of the workload, and the protocols and programs that support them."""

from __future__ import annotations

from control_plane.controller import Settings, switch_view
from harness.plan.run import Run, named
from harness.plan.traffic_summary import TrafficSummary
from host_agents import registry
from p4switch.errors import UserError


def work(run: Run, traffic: TrafficSummary) -> None:
    """Check that program and protocol suit the workload, which has either collectives or only flows.

    Raises UserError otherwise.
    """
    in_protocol = run.protocol.info.injection is not None
    if not traffic.assignments:
        if in_protocol:
            name, _ = named("workload", run.scenario.workload)
            raise UserError(
                f"cc {run.protocol.name!r}: is for collectives only, and workload {name!r} has none; "
                "expected a protocol for flows, or workload 'collectives'"
            )
        return
    for each in run.switch_programs:
        if not each.program.does_the_work_of("collective"):
            raise UserError(f"program {each.name!r}: the workload has collectives; expected 'collective'")
    if not in_protocol:
        having = ", ".join(name for name, info in registry.protocols().items() if info.injection is not None)
        raise UserError(f"cc {run.protocol.name!r}: the workload has collectives; expected one of: {having}")


def collectives(run: Run, traffic: TrafficSummary) -> None:
    """Check that the switches can serve the workload's groups in its classes.

    Raises UserError otherwise.
    """
    if not run.collectives:
        return
    settings = Settings(collectives=run.collectives)
    for each in run.switch_programs:
        in_program = each.parameters.model_dump().get("answer_priority")
        for assignment in traffic.assignments.values():
            in_workload = assignment.config.response_priority
            if in_program is not None and in_workload != in_program:
                raise UserError(
                    f"workload.response_priority: should be programs.{each.name}.answer_priority, {in_program}, "
                    f"got {in_workload}"
                )
        for name in each.switches:
            switch = run.topology.switch_by_name[name]
            list(each.parameters.entries(switch_view(run.topology, switch, settings, each.loopback.ports)))
