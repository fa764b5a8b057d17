"""`p4cc clean`: removes what a crashed Mininet run left behind."""

from __future__ import annotations

import click


@click.command()
def command() -> None:
    """Remove what a Mininet run that was killed left behind: processes, and with them networks; its folder.

    Runs that are still going on are left alone.
    """
    from harness.worlds.mininet.state import clean

    done = clean()
    for line in done:
        click.echo(line)
    if not done:
        click.echo("nothing to clean")
