"""`p4cc init`: write a new scenario with comments."""

from __future__ import annotations

from pathlib import Path

import click

from p4switch.errors import UserError

TEXT = """\
# A scenario of p4cc: `p4cc run {name}`. Omitted keys take defaults.
title = "8 to 1 incast, 1 MB each"

# Each combination of protocol, load balancer and seed is a run; several seeds give confidence intervals.
cc = ["dcqcn", "hpcc"]  # p4cc list cc
lb = "ecmp"             # p4cc list lb
seeds = [1, 2, 3]

# The run ends when all is acknowledged, or here.
limit_ns = "20 ms"

[topology]
name = "fat-tree"       # p4cc list topologies
k = 4
link_rate_bps = "100 Gb/s"
link_delay_ns = "1 us"

[workload]
name = "incast"         # p4cc list workloads
senders = 8
size_bytes = "1 MB"
interval_ns = "20 us"   # every so often some more start

[switch]
buffer_bytes = "32 MB"  # shared by all ports

[switch.pfc]
enabled = true          # false: what finds no room is dropped

[record]
queue_interval_ns = "1 us"
rate_interval_ns = "10 us"

# A protocol's own parameters.
[protocols.hpcc]
eta = 0.95
"""


@click.command()
@click.argument("file", type=click.Path(path_type=Path), default=Path("scenario.toml"), required=False)
def command(file: Path) -> None:
    """Write a scenario with comments, to start from.

    FILE is the file to write; it must not exist. Default: scenario.toml.
    """
    if file.suffix != ".toml":
        raise UserError(f"{str(file)!r}: expected a name that ends in .toml")
    try:
        with file.open("x", encoding="utf-8") as target:
            target.write(TEXT.format(name=file))
    except FileExistsError:
        raise UserError(f"{str(file)!r} exists; expected a name that does not") from None
    except OSError as error:
        raise UserError(f"{str(file)!r}: {error.strerror}") from None
    click.echo(f"{file}: run it with 'p4cc run {file}'")
