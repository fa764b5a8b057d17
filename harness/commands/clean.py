"""`p4cc clean`: removes what commands that were killed left behind."""

from __future__ import annotations

import click

from harness.measure import output_folder
from harness.worlds.mininet import state


@click.command()
def command() -> None:
    """Remove what commands that were killed left behind.

    Of Mininet runs processes, and with them networks, and logs; of any run or sweep the results that it had written so
    far, in a hidden folder. What is still going on is left alone.
    """
    done = [*state.clean(), *output_folder.clean()]
    for line in done:
        click.echo(line)
    if not done:
        click.echo("nothing to clean")
