"""Protocols and load balancers that run in plain Python although the hosts are compiled."""

from __future__ import annotations

from collections.abc import Iterable

import click

from host_agents import native, registry


def tell_interpreted(cc: Iterable[str], lb: Iterable[str]) -> None:
    """Print a line for each protocol and load balancer that the compiled hosts run in plain Python."""
    if not native.active():
        return
    for key, name in registry.outside(cc, lb):
        click.echo(f"{registry.KINDS[key].described(name)} runs interpreted on the compiled hosts", err=True)
