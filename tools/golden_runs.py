"""Digests of the tables of small runs of every protocol, to compare two revisions byte for byte.

    python -m tools.golden_runs --out FOLDER [--against FILE]

If a change keeps behaviour, the digests before and after it are the same. They depend on the
versions of the libraries, so both are made on one machine. `FOLDER/digests.txt` has one line per
table: run, table, SHA-256 of its columns and rows as CSV.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import click
import pandas as pd

PERMUTATION = ("permutation", "topology.k=4", "workload.size_bytes=300000")
INCAST = ("incast", "workload.size_bytes=200000")
WINDOWED = ["bbr", "dcqcn", "dcqcn-paper", "dctcp", "hpcc", "infiniband", "mprdma", "reno", "smartt", "swift", "timely"]
CREDIT = ["accurate", "dart", "dart-paper", "eqds", "expresspass", "none", "pause-only", "rcp", "sperc"]
BYTES = ("nic.ack_every_bytes=16384", "programs.trim.trim_last_hop_dscp=50")
UEC = [("nscc", "mixed", PERMUTATION), ("rccc", "bitmap", INCAST), ("rccc+nscc", "uec-reps", PERMUTATION)]
COLLECTIVE = ["3cpo", "collective-aimd", "collective-none", "collective-window"]

Golden = tuple[str, str, tuple[str, ...], tuple[str, ...]]  # name, scenario, --set, further options


def _of(prefix: str, case: tuple[str, ...], cc: str, *options: str, sets: tuple[str, ...] = ()) -> Golden:
    scenario, *settings = case
    if cc == "expresspass":
        sets = (*sets, "switch.load_balancing=symmetric")
    return f"{prefix}-{cc}", scenario, (*settings, *sets), ("--cc", cc, *options)


def golden_runs() -> list[Golden]:
    """Return the golden runs.

    Every protocol has a permutation and an incast. Further runs have sprayed and lossy traffic,
    Ultra Ethernet's ACKs by bytes, collectives, and a training step.
    """
    runs = [_of("permutation", PERMUTATION, cc) for cc in WINDOWED + CREDIT]
    runs += [_of("incast", INCAST, cc) for cc in WINDOWED + CREDIT]
    runs += [_of("spray", PERMUTATION, cc, "--lb", "spray") for cc in ("dctcp", "eqds", "mprdma", "smartt", "swift")]
    runs += [_of("reps", PERMUTATION, cc, "--lb", "reps") for cc in ("smartt", "swift")]
    runs += [_of("plb", PERMUTATION, "dctcp", "--lb", "plb"), _of("hpcc-spray", PERMUTATION, "hpcc", "--lb", "spray")]
    lossy = ("nic.reliability=selective-repeat", "switch.loss=1e-3")
    runs += [_of("lossy", PERMUTATION, cc, sets=lossy) for cc in ("dcqcn", "swift")]
    runs += [_of("uec", case, cc, "--lb", lb, sets=BYTES) for cc, lb, case in UEC]
    sleek = (*BYTES, "nic.sleek.windows=1.5", "programs.trim.trimming=false", "programs.trim.queue_bytes=20000")
    runs += [_of("uec-sleek", PERMUTATION, "nscc", "--lb", "mixed", sets=sleek)]
    runs += [_of("collective", ("collective-small",), cc) for cc in COLLECTIVE]
    training = ("llm-step", "topology.k=4", "workload.data=2", "workload.tensor=4", "workload.pipeline=2")
    runs += [_of("training", training, "hpcc")]
    runs += [_of("alltoall", ("alltoall",), "dcqcn"), _of("allreduce", ("allreduce",), "hpcc")]
    return runs


def _carry_out(run: Golden, out: Path) -> list[str]:
    """Run one golden run with `p4cc run` and return its digest lines; raise `ClickException` when it fails."""
    name, scenario, settings, options = run
    folder = out / name
    command = [sys.executable, "-c", "from p4cc.cli import main; main()", "run", scenario]
    command += ["--no-report", "--workers", "1", "--out", str(folder), *options]
    for setting in settings:
        command += ["--set", setting]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode:
        raise click.ClickException(f"{name}: {' '.join(command)}\n{done.stderr.strip() or done.stdout.strip()}")
    lines: list[str] = []
    for table in sorted(folder.rglob("*.parquet")):
        rows = pd.read_parquet(table).to_csv(index=False).encode()
        lines.append(f"{name} {table.relative_to(folder)} {hashlib.sha256(rows).hexdigest()}")
    if not lines:
        raise click.ClickException(f"{name}: {folder} has no tables")
    return lines


@click.command()
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Folder for the runs and digests.txt.")
@click.option("--against", type=click.Path(exists=True, path_type=Path), help="digests.txt of the other revision.")
@click.option("--jobs", default=2, show_default=True, help="Runs at the same time.")
@click.option("--only", multiple=True, help="Runs whose name contains this text.")
def main(out: Path, against: Path | None, jobs: int, only: tuple[str, ...]) -> None:
    """Execute the golden runs and compare their tables with those of another revision."""
    runs = [run for run in golden_runs() if not only or any(text in run[0] for text in only)]
    out.mkdir(parents=True)
    with ThreadPoolExecutor(jobs) as pool:
        lines = [line for differences in pool.map(lambda run: _carry_out(run, out), runs) for line in differences]
    (out / "digests.txt").write_text("\n".join(lines) + "\n")
    click.echo(f"{len(runs)} runs, {len(lines)} tables: {out / 'digests.txt'}")
    if against is not None:
        names = {run[0] for run in runs}
        before = [line for line in against.read_text().splitlines() if line.split()[0] in names]
        known = {line.split()[0] for line in before}
        added = sorted(names - known)
        if added:
            click.echo(f"The other revision has no run {', '.join(added)}.")
        compared = {line for line in lines if line.split()[0] in known}
        differing = sorted({" ".join(line.split()[:2]) for line in set(before) ^ compared})
        if differing:
            raise click.ClickException(f"{len(differing)} tables differ: {', '.join(differing)}")
        click.echo("All tables are the same.")


if __name__ == "__main__":
    main()
