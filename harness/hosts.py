"""Puts the compiled hosts in place."""

from __future__ import annotations

from p4switch.errors import UserError


def use_native_hosts() -> bool:
    """As `host_agents.use_native`, before anything imports a module of `host_agents`. Raises UserError."""
    import host_agents

    try:
        return host_agents.use_native()
    except ValueError as error:
        from host_agents.errors import NativeBuildError

        if not isinstance(error, NativeBuildError):
            raise
        raise UserError(str(error)) from None
