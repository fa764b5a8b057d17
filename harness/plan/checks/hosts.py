"""Checks of hosts: the limits of a NIC, and the methods of protocols from outside."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from inspect import isasyncgenfunction, iscoroutinefunction, isgeneratorfunction
from typing import Any

from harness.plan.host_errors import as_user_error
from harness.plan.run import Run
from host_agents import registry
from host_agents.errors import HostError
from p4switch.errors import UserError, raised_at, suggest

_MAX_RTT_NS = 10**12


def nics(run: Run) -> None:
    """Check that the scenario's values fit a NIC.

    Raises UserError for a value that does not fit, and if a base RTT is too long.
    """
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
    """Check that the protocol supports the way in which losses are repaired.

    Raises UserError if it does not.
    """
    as_user_error(lambda: run.protocol.check_reliability(run.reliability))


def extensions(run: Run) -> None:
    """Check that protocols and load balancers from outside can open a queue pair.

    Raises UserError for one that cannot.
    """
    cc, lb = run.protocol.info.name, run.load_balancing.name
    outside = [registry.KINDS[key].described(name) for key, name in registry.outside([cc], [lb])]
    if not outside:
        return
    from host_agents.nic import Nic  # imported here, because the compiled hosts have to be in place before

    try:
        nic = Nic(run.nic_config(run.topology.hosts[0]), run.protocol, run.load_balancing)
        qp = nic.open_qp(str(run.topology.hosts[1].address), 2, 2)
        # First access to a property creates the part.
        parts = (qp.reaction_point, qp.notification_point, qp.load_balancer)
    except (Exception, SystemExit) as error:
        raise UserError(f"{' or '.join(outside)} does not fit: {raised_at(error)}") from None
    for part in parts:
        _hooks(part, " or ".join(outside))


def _hooks(part: object, whose: str) -> None:
    """Check the methods of a part of a protocol.

    Raises UserError if a NIC calls no `on_...` method of that name, or if a method cannot be called with the parameters
    of the one that it overrides.
    """
    own = [cls for cls in type(part).__mro__ if not cls.__module__.startswith("host_agents.") and cls is not object]
    ours = [cls for cls in type(part).__mro__ if cls not in own and cls is not object]
    hooks = {name for cls in ours for name in vars(cls) if name.startswith("on_")}
    for cls in own:
        for name, value in vars(cls).items():
            method = f"{whose}: {cls.__name__}.{name}"
            if name.startswith("on_") and callable(value) and name not in hooks:
                raise UserError(f"{method} is not a method that a NIC calls; {suggest(name, hooks)}")
            declared = next((vars(one)[name] for one in ours if name in vars(one)), None)
            if callable(declared) and not name.startswith("__"):
                _expect_callable(getattr(part, name), declared, method, name)


def _expect_callable(own: Any, ours: Callable[..., Any], method: str, name: str) -> None:
    """Raise UserError unless the attribute `own` of an object can be called like `ours`, a method's function.

    Compiled hosts pass arguments by position, except for keyword-only parameters of `ours`.
    `method` is the method's name in the message.
    """
    _, *given = inspect.signature(ours).parameters.values()  # parameters without self
    expected = f"expected {name}{_shown(given)}"
    if not callable(own):
        raise UserError(f"{method} is not a method; {expected}")
    if any(kind(own) for kind in (iscoroutinefunction, isgeneratorfunction, isasyncgenfunction)):
        raise UserError(f"{method} is asynchronous, or yields, so that a call does nothing; {expected}")
    by_name = [parameter.name for parameter in given if parameter.kind is parameter.KEYWORD_ONLY]
    taken = inspect.signature(own)
    try:
        taken.bind(*[None] * (len(given) - len(by_name)), **dict.fromkeys(by_name))
    except TypeError:
        raise UserError(f"{method}{_shown(taken.parameters.values())}; {expected}") from None


def _shown(parameters: Iterable[inspect.Parameter]) -> str:
    """Return the parameters of a method without types, in the form of its definition."""
    untyped = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in parameters]
    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return str(inspect.Signature([own, *untyped]))
