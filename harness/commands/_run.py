"""What `p4cc run` does; hosts are in place, compiled or not."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import click
from rich.console import Console

from harness.commands._attempt import attempt
from harness.commands._progress import RunProgress
from harness.errors import CheckError
from harness.measure import results
from harness.measure.output_folder import new_folder, unused
from harness.measure.recording import World
from harness.measure.summary import delivered, unfinished
from harness.plan.experiment import Run
from harness.plan.request import planned
from harness.report import write_report
from harness.worlds.interpreted import tell_interpreted
from harness.worlds.virtual import COVERAGE_FILE, VirtualWorld
from p4switch.coverage import Coverage, table
from p4switch.coverage import write as write_coverage

MakeWorld = Callable[[Run], World]


def virtual(pcap: bool, trace: int | None, compiler: str, coverage: bool = False) -> MakeWorld:
    """Makes virtual worlds."""
    return lambda run: VirtualWorld(run, trace=trace, capture=pcap, compiler=compiler, coverage=coverage)


def mininet(pcap: bool, switch: str, dilation: int | None, compiler: str) -> MakeWorld:
    """Makes worlds of Mininet, which has to be installed."""
    from harness.worlds.mininet.world import MininetWorld

    return lambda run: MininetWorld(run, capture=pcap, switch=switch, dilation=dilation, compiler=compiler)


def carry_out(
    scenarios: Sequence[str],
    settings: Sequence[str],
    several: Mapping[str, Sequence[str | int]],
    make: MakeWorld,
    out: Path | None,
    strict: bool,
) -> None:
    """Every run, and the report. Raises UserError, and CheckError if a check failed."""
    runs = planned(scenarios, settings, several)
    tell_interpreted([run.protocol.name for run in runs], [run.load_balancing.name for run in runs])
    target = out or unused(Path("runs") / "-".join(dict.fromkeys(run.name for run in runs)))
    with new_folder(target) as folder, RunProgress(len(runs)) as progress:
        failed = [check for run in runs for check in _one(run, make, folder, progress, strict)]
        found = [results.load(folder / run.label) for run in runs]
        failed += attempt(lambda: write_report(found, folder / "report.html", folder / "plots"), folder)
        _write_coverage(folder)
    click.echo(f"{len(found)} run{'s' if len(found) > 1 else ''}: {target / 'report.html'}")
    if failed:
        raise CheckError("; ".join(failed))


def _write_coverage(folder: Path) -> None:
    """Of all runs that counted what their packets reached, in one page."""
    files = sorted(folder.rglob(COVERAGE_FILE))
    if not files:
        return
    total = Coverage()
    for file in files:
        total.merge(Coverage.load(file))
    write_coverage(total, folder / "coverage")
    Console().print(table(total))


def _one(run: Run, make: MakeWorld, folder: Path, progress: RunProgress, strict: bool) -> list[str]:
    """One run, written to a folder of its own; returns the checks that failed."""
    progress.begin(run.label)
    world = make(run)
    recording = world.run(progress.update)
    target = folder / run.label
    summary = results.write(target, results.files(run, recording)).summary
    world.write_more(target)
    fidelity = recording.fidelity
    cost = f"{recording.set_up_s + recording.cpu_s:.1f} s of CPU"
    if fidelity is not None:
        cost = f"{fidelity['run_s']:.1f} s of wall clock at 1:{fidelity['dilation']}"
        if fidelity["given_up"]:
            cost += f" (too fast for this machine: {', '.join(f'1:{factor}' for factor in fidelity['given_up'])})"
        cost += f", {fidelity['set_up_s']:.1f} s of set-up"
    progress.end(f"{delivered(summary)} in {recording.end_ns / 1e3:,.0f} µs of model time, {cost}")
    failed = [f"{check['name']}: {check['detail']}" for check in summary["checks"] if not check["holds"]]
    warnings = {}  # what they say, and what may help
    if told := unfinished(summary):
        warnings[told] = ""
    if fidelity is not None and not fidelity["trusted"]:
        text = f"its times cannot be trusted: {'; '.join(fidelity['caveats'] + fidelity['reasons'])}"
        warnings[text] = "; a larger --dilation may help" if fidelity["reasons"] else ""
    if strict:
        failed += warnings
    else:
        for text, help_ in warnings.items():
            click.echo(f"warning: {run.label}: {text}{help_}", err=True)
    return [f"{run.label}: {text}" for text in failed]
