"""Puts the compiled hosts in place."""

from __future__ import annotations

import threading
from collections.abc import Iterable

import click

from p4switch.errors import UserError

_PATIENCE_S = 2.0


def prefer_native_hosts() -> None:
    """As `use_native_hosts`, unless hosts are in use already, compiled or not."""
    from host_agents import native

    if not native.in_use():
        use_native_hosts()


def tell_interpreted(cc: Iterable[str], lb: Iterable[str]) -> None:
    """One line for each of these protocols and load balancers that the compiled hosts run in plain Python."""
    from host_agents import native, registry

    if not native.active():
        return
    for key, name in registry.outside(cc, lb):
        click.echo(f"{registry.KINDS[key].described(name)} runs interpreted on the compiled hosts", err=True)


def use_native_hosts() -> bool:
    """As `host_agents.use_native`, before anything imports its compiled modules. Raises UserError."""
    import host_agents
    from host_agents.errors import NativeBuildError
    from p4switch import native

    # Pipelines need both, too, so there is no use in what the hosts would say: that Python will do.
    native.compiler()
    native.python_include()
    notice = threading.Timer(_PATIENCE_S, click.echo, ["compiling the hosts (once, about a minute)"], {"err": True})
    notice.daemon = True
    notice.start()
    try:
        return host_agents.use_native()
    except NativeBuildError as error:
        raise UserError(str(error)) from None
    finally:
        notice.cancel()
