"""Checks of the P4 program: whether it, the protocol and the links suit each other."""

from __future__ import annotations

from collections import Counter

from control_plane import programs
from control_plane.programs import Program, ProgramParameters
from control_plane.programs.base import NO_DSCP
from harness.plan.run import Run
from harness.plan.traffic_summary import TrafficSummary
from host_agents import registry
from host_agents.registry import Protocol
from p4switch.errors import UserError
from p4switch.quantities import doubts


def architecture(run: Run) -> None:
    """Check that each program can be compiled for the architecture that the scenario asks for.

    Raises UserError if one cannot.
    """
    for each in run.switch_programs:
        program, balancer = each.program, each.load_balancer
        parts = {f"program {program.name!r}": None if program.outside else program.parameters.architectures}
        parts[f"load balancer {balancer.name!r}"] = balancer.architectures
        for part, known in parts.items():
            if each.architecture is not None and known is not None and each.architecture not in known:
                raise UserError(
                    f"{each.key_of('architecture')}: {part} is not written for {each.architecture!r}; expected "
                    f"{' or '.join(map(repr, known))}"
                )


def loopback(run: Run) -> None:
    """Check that loopback ports have no link, and that none is named twice.

    Raises UserError otherwise.
    """
    for each in run.switch_programs:
        key, ports = each.key_of("loopback.ports"), each.loopback.ports
        if twice := [port for port, count in Counter(ports).items() if count > 1]:
            raise UserError(f"{key}: {twice[0]} is listed more than once")
        for port in ports:
            for switch in each.switches:
                if there := run.topology.ports[switch].get(port):
                    raise UserError(
                        f"{key}: port {port} of {switch!r} leads to {there.node!r}; expected a port without a link"
                    )


def telemetry(run: Run) -> None:
    """Check that packets carry the shim that the program writes, and that the program writes it.

    Raises UserError if only one of the two is true. Programs from outside that do not declare
    `telemetry` are not checked.
    """
    info = run.protocol.info
    needed = programs.program(info.program)
    writes = needed.parameters.telemetry
    which = registry.KINDS["cc"].described(info.name)
    if writes and not info.telemetry:
        raise UserError(
            f"{which}: program {needed.name!r} writes telemetry into the INT shim of data packets, and they have none; "
            "expected telemetry=True in its ProtocolInfo"
        )
    if info.telemetry and not writes and not needed.outside:
        raise UserError(
            f"{which}: telemetry=True, and program {needed.name!r} writes none; expected program='int' in its "
            "ProtocolInfo"
        )


def agreement(run: Run) -> None:
    """Check parameters that must be equal in the protocol and each program, or in all programs.

    Raises UserError if they differ.
    """
    for each in run.switch_programs:
        _agreement(run.protocol, each.program, each.parameters)
    marks = {each.parameters.last_hop_dscp: each.name for each in run.switch_programs}
    marks.pop(NO_DSCP, None)
    if len(marks) > 1:
        listed = " and ".join(f"{dscp} by {name!r}" for dscp, name in marks.items())
        raise UserError(f"switches: trimmed packets have DSCP {listed} at their last hop; expected the same")


def _agreement(protocol: Protocol, program: Program, parameters: ProgramParameters) -> None:
    theirs, own = protocol.resolved(), parameters.model_dump()
    for key in dict.fromkeys((*protocol.info.agrees, *parameters.agrees)):
        in_protocol, in_program = f"protocols.{protocol.name}.{key}", f"programs.{program.name}.{key}"
        for wanted, there, of in ((in_protocol, theirs, in_program), (in_program, own, in_protocol)):
            if key not in there:
                raise UserError(f"{wanted}: there is no such parameter; {of} needs it, with the same value")
        if theirs[key] != own[key]:
            raise UserError(f"{in_protocol}: should be {in_program}, {own[key]}, got {theirs[key]}")


def link_rates(run: Run, traffic: TrafficSummary) -> None:
    """Check that each program supports the rates of its switches' links, and warn of doubtful rates.

    Raises UserError for a rate that a program does not support.
    """
    try:
        for each in run.switch_programs:
            links = (there.rate_bps for switch in each.switches for there in run.topology.ports[switch].values())
            for rate_bps in sorted(set(links)):
                each.parameters.check_link_rate(rate_bps)
    except UserError as error:
        raise UserError("; ".join([str(error), *doubts({"topology": run.scenario.topology})])) from None


def time_outs(run: Run, traffic: TrafficSummary) -> None:
    """Check that switches keep their state as long as a sender may rely on it.

    Raises UserError for state that is forgotten too early.
    """
    key = "nic.rto_ns" if run.scenario.nic.rto_base_rtts is None else "nic.rto_base_rtts"
    for each in run.switch_programs:
        for name in each.parameters.outlast_rto:
            timeout_ns = getattr(each.parameters, name)
            if 0 < timeout_ns < run.rto_ns:
                raise UserError(
                    f"programs.{each.name}.{name}: should be at least the {run.rto_ns} ns of {key}, or 0 for never, "
                    f"got {timeout_ns}"
                )
