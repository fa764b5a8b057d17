"""Puts the compiled hosts in place."""

from __future__ import annotations

import threading

import click

from host_agents import native
from host_agents.errors import NativeBuildError
from p4switch import native as tools
from p4switch.errors import UserError

_PATIENCE_S = 2.0


def prefer_native_hosts() -> None:
    """Use the compiled hosts, unless hosts are in use already, compiled or not."""
    if not native.in_use():
        use_native_hosts()


def use_native_hosts() -> bool:
    """Use the compiled hosts, before anything imports their modules.

    Raises UserError.
    """
    # Pipelines need both, too, so there is no use in what the hosts would say: that Python will do.
    tools.compiler()
    tools.python_include()
    notice = threading.Timer(_PATIENCE_S, click.echo, ["compiling the hosts (once, about a minute)"], {"err": True})
    notice.daemon = True
    notice.start()
    try:
        return native.activate()
    except NativeBuildError as error:
        raise UserError(str(error)) from None
    finally:
        notice.cancel()
