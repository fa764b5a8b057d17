"""`p4cc bench`: the benchmarks of docs/performance.md."""

from __future__ import annotations

import json
from pathlib import Path

import click

from harness.worlds.native_hosts import use_native_hosts
from p4switch.output_file import check_writable, write_files


@click.command()
@click.option("--json", "json_file", type=click.Path(path_type=Path), metavar="FILE", help="Write the figures as JSON.")
@click.option("--quick", is_flag=True, help="Smaller runs: to see that it works, not to compare figures.")
def command(json_file: Path | None, quick: bool) -> None:
    """Measure what packets cost on this machine.

    In CPU time: the pipelines of the P4 programs, end-to-end runs of both worlds, the switch as a process.
    """
    if json_file is not None:
        check_writable(json_file, "--json")
    use_native_hosts()

    from harness.measure import cost

    figures = cost.measure_all(quick, click.echo)
    if json_file is not None:
        write_files({json_file: (json.dumps(figures, indent=2) + "\n").encode()})
