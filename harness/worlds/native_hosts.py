"""Installation of the compiled hosts for import."""

from __future__ import annotations

import threading

import click

from host_agents import native
from host_agents.errors import NativeBuildError
from p4switch import native as tools
from p4switch.errors import UserError

_PATIENCE_S = 2.0


def prefer_native_hosts() -> None:
    """Use the compiled hosts, unless host modules are already imported, compiled or not."""
    if not native.in_use():
        use_native_hosts()


def use_native_hosts() -> bool:
    """Use the compiled hosts, before anything imports their modules.

    Raises UserError if they cannot be compiled.
    """
    # Pipelines need both tools, too, so these errors come first. The error of the hosts would
    # suggest to run them as plain Python, which would not help.
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
