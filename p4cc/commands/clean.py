"""`p4cc clean`: remove the leftovers of commands that were killed."""

from __future__ import annotations

import click

from harness.measure import output_folder
from harness.worlds.mininet import state


@click.command()
def command() -> None:
    """Remove the leftovers of commands that were killed.

    Leftovers of Mininet runs are processes, networks and logs. Leftovers of any run or sweep are
    results in a hidden folder. Commands that are still running are not affected.
    """
    done = [*state.clean(), *output_folder.clean()]
    for line in done:
        click.echo(line)
    if not done:
        click.echo("nothing to clean")
