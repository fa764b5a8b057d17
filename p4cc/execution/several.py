"""Several runs in one folder: known results are taken, the others are made, and completed runs are kept."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from pathlib import Path

from harness.measure import results
from harness.measure.output_folder import copy_content
from harness.measure.results import Result
from harness.measure.summary import delivered, disagreement
from harness.plan.how import How
from harness.plan.inputs import inputs
from p4cc.execution.planned_run import PlannedRun
from p4switch import interruption
from p4switch.errors import UserError

Made = Generator[tuple[int, Result], None, None]


def known(runs: Sequence[PlannedRun], reuse: Sequence[Path], resume: Path | None, how: How) -> dict[int, Result]:
    """Return existing results of the same inputs in `resume` and `reuse`, by number of the run.

    Raises UserError if `resume` has runs that are not in `runs`. The folder would then have some
    runs twice, or runs that are in no report.
    """
    resumed = results.load_all(resume) if resume is not None else []
    kept = [*resumed, *(result for earlier in reuse for result in results.load_all(earlier))]
    if not kept:
        return {}
    existing = ((number, results.one_that_serves(kept, inputs(run.run()), how)) for number, run in enumerate(runs))
    taken = {number: earlier for number, earlier in existing if earlier is not None}
    if any(result.folder == resume for result in resumed):
        raise UserError(f"--resume {resume}: it is the folder of one run; expected the one that has it")
    in_place = {result.folder for number, result in taken.items() if result.folder.name == runs[number].folder_name}
    if others := {result.folder for result in resumed} - in_place:
        raise UserError(
            f"--resume {resume}: its {min(others).name} has other inputs or options; expected the folder of the same "
            "command"
        )
    return taken


def complete(
    folders: Sequence[Path],
    taken: Mapping[int, Result],
    make: Callable[[Sequence[int]], Made],
    tell: Callable[[int, str], object],
) -> tuple[dict[int, Result], BaseException | None]:
    """Return the results of each run in order, and make those that are not in `taken`.

    `make` gets the numbers of these runs and yields each number with its results. `tell` is called
    for each run that is done, with its outcome. If an exception ends this early, it is returned
    along with the completed runs; it is raised if there are none.
    """
    result_of: dict[int, Result] = {}
    early: BaseException | None = None
    try:
        for number, earlier in taken.items():
            folders[number].mkdir()
            copy_content(earlier.folder, folders[number])
            result_of[number] = results.load(folders[number])
            tell(number, f"taken from {earlier.folder}")
        with closing(make([number for number in range(len(folders)) if number not in taken])) as completed:
            for number, result in completed:
                result_of[number] = result
                tell(number, _ending(result))
    except (Exception, KeyboardInterrupt) as error:
        if not result_of:
            raise
        interruption.heard()
        early = error
        for number in set(range(len(folders))) - set(result_of):
            shutil.rmtree(folders[number], ignore_errors=True)
    results.note_order(folders[0].parent, [folders[number].name for number in sorted(result_of)])
    return dict(sorted(result_of.items())), early


def _ending(result: Result) -> str:
    """Return the outcome of a run and its cost in one line."""
    summary, performance = result.summary, result.performance
    fidelity = summary.get("fidelity")
    cost = f"{performance['set_up_cpu_s'] + performance['run_cpu_s']:.1f} s of CPU"
    if fidelity is not None:
        cost = f"{fidelity['run_s']:.1f} s of wall clock at 1:{fidelity['dilation']}"
        if fidelity["given_up"]:
            cost += f" (too fast for this machine: {', '.join(f'1:{factor}' for factor in fidelity['given_up'])})"
        cost += f", {fidelity['set_up_s']:.1f} s of set-up"
    if agreement := summary.get("agreement"):
        cost += f"; {disagreement(agreement)}"
    return f"{delivered(summary)} in {summary['end_ns'] / 1e3:,.0f} µs of model time, {cost}"
