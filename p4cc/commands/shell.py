"""`p4cc shell`: p4runtime-shell on a running switch."""

from __future__ import annotations

import sys

import click

from harness.worlds.mininet.state import find_switch
from p4switch import interruption
from p4switch.errors import UserError
from p4switch.p4runtime import shell

_PATIENCE_S = 3.0


@click.command()
@click.argument("switch", metavar="SWITCH")
@click.option("--device-id", type=click.IntRange(0), help="Default: the switch's, or 1 at an address.")
@click.option("--election-id", type=click.IntRange(0), default=0, help="0: read only, not primary.")
def command(switch: str, device_id: int | None, election_id: int) -> None:
    """Start p4runtime-shell on a running switch.

    SWITCH is the name of a switch in a running Mininet network, or HOST:PORT of any P4Runtime
    server. The shell is installed into an environment of its own at its first use.
    """
    address, number = switch, 1
    if ":" not in switch:
        address, number = find_switch(switch)
    _reach(address)
    interruption.once()  # Ctrl-C ends a statement, not the shell
    sys.exit(shell.run(address, number if device_id is None else device_id, election_id))


def _reach(address: str) -> None:
    """Raise UserError if nothing answers; the shell would report that in several lines."""
    import grpc

    with grpc.insecure_channel(address, options=[("grpc.enable_http_proxy", 0)]) as channel:
        try:
            grpc.channel_ready_future(channel).result(timeout=_PATIENCE_S)
        except grpc.FutureTimeoutError:
            text = f"no P4Runtime server answers at {address}; expected a switch's name, or HOST:PORT"
            raise UserError(text) from None
