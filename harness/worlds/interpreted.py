"""What runs in plain Python though the hosts are compiled."""

from __future__ import annotations

from collections.abc import Iterable

import click

from host_agents import native, registry


def tell_interpreted(cc: Iterable[str], lb: Iterable[str]) -> None:
    """One line for each of these protocols and load balancers from outside that the compiled hosts run in plain Python,
    and for each file of theirs that was edited since they were compiled.
    """
    if not native.active():
        return
    told = [registry.KINDS[key].described(name) for key, name in registry.outside(cc, lb)]
    told += [f"{file}, edited since the hosts were compiled," for file in native.edited()]
    for what in told:
        click.echo(f"{what} runs interpreted on the compiled hosts", err=True)
