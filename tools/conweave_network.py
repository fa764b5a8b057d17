"""Run native_dcqcn of conweave-p4, unchanged, and p4cc's ecn.p4 on a leaf-spine of 100 Gb/s.

    python -m tools.conweave_network FOLDER

FOLDER is native_dcqcn/p4src of the fetched sources. Entries are those of its cp/setup.py: MAC addresses to ports, the
probability of a mark by depth in 51 steps from 1,250 to 3,000 cells, and the draws that mark. It routes by MAC address,
so each host has one way through the network. Each workload has a row for each program.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from textwrap import dedent

import click
import pandas as pd

import p4cc
from tools.conweave_entries import CELL_BYTES, KMAX_CELLS, KMIN_CELLS, PMAX, NativeDcqcn, program_file

_SCENARIO = f"""
    cc = "dcqcn"

    [topology]
    name = "leaf-spine"

    [programs.ecn]
    kmin_bytes = {KMIN_CELLS * CELL_BYTES}
    kmax_bytes = {KMAX_CELLS * CELL_BYTES}
    pmax = {PMAX}
    reference_rate_bps = "none"
"""
_WORKLOADS = {
    "8 to 1, 1 MB each": 'name = "incast"\nsenders = 8\nsize_bytes = "1 MB"',
    "permutation, 2 MB each": 'name = "permutation"\nsize_bytes = "2 MB"',
}


def runs(sources: Path, folder: Path) -> pd.DataFrame:
    """Return a row for each workload and program, of three seeds."""
    shutil.copytree(sources, folder, dirs_exist_ok=True)
    (folder / "native_dcqcn.py").write_text(program_file("native_dcqcn", NativeDcqcn.__name__))
    rows = []
    for workload, table in _WORKLOADS.items():
        for program in ("native_dcqcn.p4", "ecn"):
            scenario = folder / "scenario.toml"
            scenario.write_text(f'program = "{program}"\n{dedent(_SCENARIO)}\n[workload]\n{table}\n')
            results = p4cc.run(scenario, seeds=[1, 2, 3])
            flows = pd.concat([result.flows for result in results])
            rows.append(
                {
                    "workload": workload,
                    "program": program,
                    "flows not done": int((flows["completed_ns"] < 0).sum()),
                    "mean FCT, us": flows["fct_ns"].mean() / 1e3,
                    "99%, us": flows["fct_ns"].quantile(0.99) / 1e3,
                    "packets marked": sum(result.summary["ecn_marked"] for result in results) / len(results),
                    "largest queue, KB": max(
                        result.summary["queues"]["worst"][0]["queue_max_bytes"] for result in results
                    ) / 1e3,
                }
            )  # fmt: skip
    return pd.DataFrame(rows)


@click.command(help=__doc__)
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
def main(folder: Path) -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory(prefix="p4cc-conweave-") as scratch:
        click.echo(runs(folder, Path(scratch)).to_string(index=False, float_format="{:.1f}".format))


if __name__ == "__main__":
    main()
