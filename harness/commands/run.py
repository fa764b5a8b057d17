"""`p4cc run`: carries out scenarios, and compares the protocols and seeds that they are run with."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.errors import CheckError
from p4switch.errors import UserError

if TYPE_CHECKING:
    from harness.experiment import Run
    from harness.progress import RunProgress


@click.command()
@click.argument("scenarios", nargs=-1, required=True, metavar="SCENARIO...")
@click.option("--cc", multiple=True, help="Congestion control; several are compared. Default: the scenario's.")
@click.option("--lb", multiple=True, help="Load balancer; several are compared.")
@click.option("--seed", "seeds", multiple=True, type=click.IntRange(0), help="Seed; several give confidence intervals.")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Override, e.g. topology.k=8.")
@click.option("--out", type=click.Path(path_type=Path), help="Folder to write; must not exist. Default: runs/SCENARIO.")
@click.option("--world", type=click.Choice(["virtual"]), default="virtual", show_default=True)
@click.option("--pcap", is_flag=True, help="Also write the frames on every host's link, as pcap-ng.")
@click.option("--trace", type=click.IntRange(0), metavar="FLOW", help="Tell what each hop did with a flow's packets.")
def command(
    scenarios: tuple[str, ...],
    cc: tuple[str, ...],
    lb: tuple[str, ...],
    seeds: tuple[int, ...],
    settings: tuple[str, ...],
    out: Path | None,
    world: str,
    pcap: bool,
    trace: int | None,
) -> None:
    """Run scenarios (names from `p4cc list scenarios`, or .toml files) and write results and a report.

    Every combination of protocol, load balancer and seed is a run; the report compares them.
    """
    from harness.hosts import use_native_hosts

    use_native_hosts()

    from harness import results
    from harness.experiment import plan
    from harness.progress import RunProgress
    from harness.report import write_report
    from harness.scenario import check, find, override, read

    runs: list[Run] = []
    for name in scenarios:
        path = find(name)
        tables = override(read(path), settings)
        for key, values in (("cc", cc), ("lb", lb), ("seeds", seeds)):
            if values:
                tables[key] = list(values)
        runs += plan(path.stem, check(tables), path.parent)
    if len({run.label for run in runs}) < len(runs):
        raise UserError("scenarios of the same name cannot share an output folder")
    target = out or unused(Path("runs") / "-".join(dict.fromkeys(run.name for run in runs)))
    with results.new_folder(target) as folder, RunProgress(len(runs)) as progress:
        failed = [check for run in runs for check in _carry_out(run, folder, progress, pcap, trace)]
        found = results.load_all(folder)
        write_report([results.load(folder / run.label) for run in runs], folder / "report.html", folder / "plots")
    click.echo(f"{len(found)} run{'s' if len(found) > 1 else ''}: {target / 'report.html'}")
    if failed:
        raise CheckError("; ".join(failed))


def unused(path: Path) -> Path:
    """`path`, or the first of path-2, path-3, ... that does not exist."""
    candidate, number = path, 1
    while candidate.exists():
        number += 1
        candidate = path.with_name(f"{path.name}-{number}")
    return candidate


def _carry_out(run: Run, folder: Path, progress: RunProgress, pcap: bool, trace: int | None) -> list[str]:
    """One run, written to a folder of its own; returns the checks that failed."""
    from harness import results
    from harness.worlds.virtual import VirtualWorld

    progress.begin(run.label)
    world = VirtualWorld(run, trace=trace, capture=pcap)
    recording = world.run(progress.update)
    target = folder / run.label
    target.mkdir()
    summary = results.write(target, run, recording)
    if pcap:
        from harness.pcap import write_pcap

        write_pcap(target / "hosts.pcapng", world.captured())
    if trace is not None:
        from harness.tracing import explain

        with (target / "trace.txt").open("w", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in explain(world.trace_records(), world.names))
    progress.end(
        f"{summary['flows_delivered']}/{summary['flows']} flows in {recording.end_ns / 1e3:,.0f} µs of model time, "
        f"{recording.set_up_s + recording.cpu_s:.1f} s of CPU"
    )
    return [f"{run.label}: {check['name']}: {check['detail']}" for check in summary["checks"] if not check["holds"]]
