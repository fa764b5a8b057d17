"""Choice of a run's world from `How`: with workers, or with the ranks of an MPI program."""

from __future__ import annotations

import platform
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import numpy

from harness.plan.how import How
from harness.plan.inputs import inputs
from harness.plan.run import Run
from harness.worlds.ranks import Ranks, differences
from p4cc.execution.batch import batch_of
from p4switch.errors import UserError

if TYPE_CHECKING:
    from harness.measure.recording import World
    from harness.worlds.mininet.prompt import Prompt
    from harness.worlds.mininet.watching import Watcher
    from harness.worlds.virtual import VirtualWorld
    from p4cc.execution.request import RunRequest

MakeWorld: TypeAlias = "Callable[[Run], World]"


def maker(
    how: How,
    workers: Callable[[Run], int | Ranks] = lambda run: 1,
    watcher: Watcher | None = None,
    prompt: Prompt | None = None,
) -> MakeWorld:
    """Return a maker of virtual worlds with that many workers, or of Mininet worlds if requested.

    Mininet worlds report their progress to a `watcher` and open a `prompt`.
    """
    if how.world == "virtual":
        return lambda run: _made(run, how, workers(run))
    from harness.worlds.mininet.world import MininetWorld

    assert how.switch is not None
    switch = how.switch
    return lambda run: MininetWorld(
        run, capture=how.pcap, switch=switch, dilation=how.dilation, compiler=how.compiler, watcher=watcher,
        prompt=prompt,
    )  # fmt: skip


def _made(run: Run, how: How, workers: int | Ranks) -> VirtualWorld:
    """Return a virtual world; the other ranks of an MPI program make their own at the same time."""
    if isinstance(workers, int):
        return _virtual(run, how, workers)
    return workers.lead(_task(run, how), lambda: _virtual(run, how, workers))


def _virtual(run: Run, how: How, workers: int | Ranks) -> VirtualWorld:
    from harness.worlds.virtual import VirtualWorld

    return VirtualWorld(
        run, trace=how.trace, capture=how.pcap, compiler=how.compiler, coverage=how.coverage, workers=workers
    )


def _task(run: Run, how: How) -> tuple[str, dict[str, str]]:
    """Return a run's label and the values that decide its results, which ranks compare."""
    made_of = inputs(run)
    return run.label, {
        "p4cc's sources": made_of["sources"],
        "scenario": made_of["scenario"],
        "P4 program": made_of["program"],
        "files of the scenario": " ".join(sorted(filter(None, made_of["files"].values()))),
        "options": str(how),
        "Python": platform.python_version(),
        "numpy": numpy.__version__,
        "processor": platform.machine(),
    }


def follow(ranks: Ranks, request: RunRequest) -> None:
    """Take part in a request's runs as a rank other than the first.

    Raises UserError if the ranks were not given the same runs.
    """
    runs = {run.portable.label: run.run() for run in batch_of(request.selection).runs}

    def build(task: tuple[str, dict[str, str]]) -> VirtualWorld:
        label, expected = task
        if label not in runs:
            raise UserError(f"no run {label!r} here; expected the same command at all ranks")
        differences(_task(runs[label], request.how)[1], expected)
        return _virtual(runs[label], request.how, ranks)

    ranks.follow(build)
