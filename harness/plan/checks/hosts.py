"""Hosts: what a NIC can hold, and what protocols from outside do with it."""

from __future__ import annotations

from harness.plan.host_errors import as_user_error
from harness.plan.run import Run
from host_agents import registry
from host_agents.errors import HostError
from p4switch.errors import UserError, raised_at, suggest

_MAX_RTT_NS = 10**12


def nics(run: Run) -> None:
    """What the scenario's values come to must be what a NIC can hold. Raises UserError."""
    rtt_ns = run.base_rtt_ns()
    if rtt_ns > _MAX_RTT_NS:
        raise UserError(
            f"topology: a base RTT of {rtt_ns / 1e9:,.0f} s, expected at most {_MAX_RTT_NS // 10**9} s: "
            "links are too slow or too long, or switch.latency_ns too large"
        )
    alike = {run.topology.uplink(host).rate_bps: host for host in run.topology.hosts}
    try:
        for host in alike.values():
            run.nic_config(host)
    except HostError as error:
        raise UserError(f"nic.{error}") from None


def reliability(run: Run) -> None:
    """Whether the protocol can do with the way in which what is lost is sent again. Raises UserError."""
    as_user_error(lambda: run.protocol.check_reliability(run.reliability))


def extensions(run: Run) -> None:
    """What does not come with p4cc has to open a queue pair. Raises UserError."""
    cc, lb = run.protocol.info.name, run.load_balancing.name
    outside = [registry.KINDS[key].described(name) for key, name in registry.outside([cc], [lb])]
    if not outside:
        return
    from host_agents.nic import Nic  # here: the compiled hosts have to be in place before it is imported

    try:
        nic = Nic(run.nic_config(run.topology.hosts[0]), run.protocol, run.load_balancing)
        qp = nic.open_qp(str(run.topology.hosts[1].address), 2, 2)
        parts = (qp.reaction_point, qp.notification_point, qp.load_balancer)  # made when they are first needed
    except Exception as error:
        raise UserError(f"{' or '.join(outside)} does not fit: {raised_at(error)}") from None
    for part in parts:
        _hooks(part, " or ".join(outside))


def _hooks(part: object, whose: str) -> None:
    """Whether a NIC calls each of its `on_...` methods: another one is misspelt, or of another kind of object.

    Raises UserError.
    """
    own = [cls for cls in type(part).__mro__ if not cls.__module__.startswith("host_agents.") and cls is not object]
    hooks = {name for cls in type(part).__mro__ if cls not in own for name in vars(cls) if name.startswith("on_")}
    for cls in own:
        for name, value in vars(cls).items():
            if name.startswith("on_") and callable(value) and name not in hooks:
                raise UserError(
                    f"{whose}: {cls.__name__}.{name} is none of the methods that a NIC calls; {suggest(name, hooks)}"
                )
