"""`p4cc bench`: the benchmarks of docs/performance.md."""

from __future__ import annotations

import json
from pathlib import Path

import click

from harness.worlds.native_hosts import use_native_hosts
from p4switch.errors import UserError
from p4switch.output_file import check_writable, write_files

# Written here, because `p4cc.bench.cost` needs the compiled hosts in place when imported.
PARTS = (
    "memory", "pipelines", "hosts", "switch-process", "end-to-end", "workers", "windows", "scale", "training",
    "collectives", "matrix",
)  # fmt: skip


@click.command()
@click.argument("parts", nargs=-1, type=click.Choice(PARTS), metavar="[PART]...")
@click.option("--json", "json_file", type=click.Path(path_type=Path), metavar="FILE", help="Write the figures as JSON.")
@click.option("--quick", is_flag=True, help="Make smaller runs, which show that it works; compare no figures.")
@click.option("--k", "matrix_k", type=click.IntRange(4, 64), help="Size of the matrix's fat-tree.  [default: 8]")
def command(parts: tuple[str, ...], json_file: Path | None, quick: bool, matrix_k: int | None) -> None:
    """Measure the cost of packets on this machine, in CPU time.

    PARTs, by default all: memory (loads that miss the caches), pipelines (P4 programs and C written
    by hand), hosts (every protocol), switch-process (`p4cc switch` on veth pairs), end-to-end
    (permutations on fat-trees of several sizes), workers (the largest of these with two processes),
    windows (waiting and exchange of several processes, and the predicted gain of more), scale
    (8,192 and 65,536 hosts with two processes), training (the cost of a flow apart from its
    packets, for many short and dependent flows), collectives (all-reduces of 64 and 128 hosts in
    the network), matrix (a permutation with every protocol and every load balancer).
    """
    if json_file is not None:
        check_writable(json_file, "--json")
    if matrix_k is not None and matrix_k % 2:
        raise UserError(f"--k {matrix_k}: expected an even number")
    use_native_hosts()

    from p4cc.bench import cost

    figures = cost.measure_all(parts or PARTS, quick, click.echo, matrix_k)
    if json_file is not None:
        write_files({json_file: (json.dumps(figures, indent=2) + "\n").encode()})
