"""What runs in plain Python though the hosts are compiled."""

from __future__ import annotations

from collections.abc import Iterable

import click

from host_agents import native, registry


def tell_interpreted(cc: Iterable[str], lb: Iterable[str]) -> None:
    """One line for each of these protocols and load balancers that the compiled hosts run in plain Python."""
    if not native.active():
        return
    for key, name in registry.outside(cc, lb):
        click.echo(f"{registry.KINDS[key].described(name)} runs interpreted on the compiled hosts", err=True)
