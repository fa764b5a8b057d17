"""Checks of the P4 program: whether it, the protocol and the links suit each other."""

from __future__ import annotations

from collections import Counter

from harness.control import programs
from harness.plan.run import Run
from harness.plan.traffic_summary import TrafficSummary
from host_agents import registry
from p4switch.errors import UserError
from p4switch.quantities import doubts


def architecture(run: Run) -> None:
    """Check that the program can be compiled for the architecture that the scenario asks for.

    Raises UserError.
    """
    wanted, program = run.scenario.switch.architecture, run.program
    if wanted is None:
        return
    balancer = run.switch_load_balancer
    parts = {f"program {program.name!r}": None if program.outside else program.parameters.architectures}
    parts[f"load balancer {balancer.name!r}"] = balancer.architectures
    for part, known in parts.items():
        if known is not None and wanted not in known:
            raise UserError(
                f"switch.architecture: {part} is not written for {wanted!r}; expected {' or '.join(map(repr, known))}"
            )


def loopback(run: Run) -> None:
    """Check that no link is at a loopback port, and that each of these is named once.

    Raises UserError.
    """
    ports = run.scenario.switch.loopback.ports
    if twice := [port for port, count in Counter(ports).items() if count > 1]:
        raise UserError(f"switch.loopback.ports: {twice[0]} is there more than once")
    for port in ports:
        for switch in run.topology.switches:
            if there := run.topology.ports[switch.name].get(port):
                raise UserError(
                    f"switch.loopback.ports: port {port} of {switch.name!r} leads to {there.node!r}; expected a port "
                    "without a link"
                )


def telemetry(run: Run) -> None:
    """Check that packets carry the shim that the program writes, and that the program writes it.

    Raises UserError.

    It is not checked for a program from outside that does not declare `telemetry`.
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
    """Check that protocol and program agree where they have to.

    Raises UserError.
    """
    protocol, program, parameters = run.protocol, run.program, run.program_parameters
    theirs, own = protocol.resolved(), parameters.model_dump()
    for key in dict.fromkeys((*protocol.info.agrees, *parameters.agrees)):
        in_protocol, in_program = f"protocols.{protocol.name}.{key}", f"programs.{program.name}.{key}"
        for wanted, there, of in ((in_protocol, theirs, in_program), (in_program, own, in_protocol)):
            if key not in there:
                raise UserError(f"{wanted}: there is no such parameter; {of} needs it, with the same value")
        if theirs[key] != own[key]:
            raise UserError(f"{in_protocol}: should be {in_program}, {own[key]}, got {theirs[key]}")


def link_rates(run: Run, traffic: TrafficSummary) -> None:
    """Check that the program supports the link rates; warn of doubtful ones.

    Raises UserError.
    """
    try:
        for rate_bps in sorted({link.rate_bps for link in run.topology.links}):
            run.program_parameters.check_link_rate(rate_bps)
    except UserError as error:
        raise UserError("; ".join([str(error), *doubts({"topology": run.scenario.topology})])) from None


def time_outs(run: Run, traffic: TrafficSummary) -> None:
    """Check that switches forget no state that a sender may still rely on.

    Raises UserError.
    """
    parameters = run.program_parameters
    key = "nic.rto_ns" if run.scenario.nic.rto_base_rtts is None else "nic.rto_base_rtts"
    for name in parameters.outlast_rto:
        timeout_ns = getattr(parameters, name)
        if 0 < timeout_ns < run.rto_ns:
            raise UserError(
                f"programs.{run.program.name}.{name}: should be at least the {run.rto_ns} ns of {key}, or 0 for never, "
                f"got {timeout_ns}"
            )
