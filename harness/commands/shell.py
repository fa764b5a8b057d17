"""`p4cc shell`: p4runtime-shell at a running switch."""

from __future__ import annotations

import sys

import click


@click.command()
@click.argument("switch", metavar="HOST:PORT")
@click.option("--device-id", type=click.IntRange(0), default=1, show_default=True)
@click.option("--election-id", type=click.IntRange(0), default=0, help="0: read only, beside the primary controller.")
def command(switch: str, device_id: int, election_id: int) -> None:
    """Start p4runtime-shell at the P4Runtime server of a switch, by its address.

    The shell is installed into an environment of its own when it is first asked for.
    """
    from p4switch.p4runtime import shell

    sys.exit(shell.run(switch, device_id, election_id))
