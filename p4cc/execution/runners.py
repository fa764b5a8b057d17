"""Runs carried out one after the other in this process, or at the same time by other processes.

Both ways write the same files.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing
from dataclasses import asdict
from functools import partial
from pathlib import Path

from harness.measure import results
from harness.measure.recording import Progress, Writing
from harness.measure.results import Result
from harness.plan.how import How
from harness.plan.inputs import inputs
from harness.plan.portable import PortableRun
from harness.plan.run import Run
from harness.worlds.building import Building, reported_to
from harness.worlds.garbage_collection import collect_what_was_left, rare_collection
from p4cc.execution import pool, pool_task
from p4cc.execution.make_world import MakeWorld
from p4cc.execution.pool import Cluster


def one_by_one(
    runs: Iterable[tuple[Run, Path, Callable[[], Progress | None]]],
    make: MakeWorld,
    how: How,
    writing: Writing | None = None,
    building: Building | None = None,
) -> Generator[Result, None, None]:
    """Execute each run in a world from `make`, write its results to a new folder, and yield them.

    `runs` has, for each run, its folder and a function that is called before the run and returns
    the receiver of its progress. `how` is stored with the results. `building` receives the share of
    the network that is built. `writing` receives the share of the trace that is written, because
    writing a trace may take longer than the run. Raises the exceptions of worlds.
    """
    for run, folder, begin in runs:
        collect_what_was_left()
        progress = begin()
        made_of = inputs(run)
        with rare_collection():
            with reported_to(building):
                world = make(run)
            recording = world.run(progress)
            folder.mkdir()
            world.write_more(folder, writing)
            result = results.write(folder, results.files(run, recording, how, made_of))
            del world, recording
        yield result


def at_once(
    runs: Sequence[tuple[PortableRun, Path]], how: How, where: Cluster | int | None
) -> Generator[tuple[int, Result], None, None]:
    """Yield (index, results) of runs in the virtual world as `where` completes them (see `pool.distribute`).

    Each is written to a new folder. Close the iterator if it is not used up. Raises as `pool.distribute` does.
    """
    options, names = asdict(how), [folder.name for _, folder in runs]
    if isinstance(where, Cluster):
        sent = pool.distribute(partial(pool_task.files, how=options), [run for run, _ in runs], where, names)
        with closing(sent) as completed:
            for i, files in completed:
                yield i, results.write(runs[i][1], files)
        return
    wanted = [(run, folder.resolve()) for run, folder in runs]
    with closing(pool.distribute(partial(pool_task.write, how=options), wanted, where, names)) as done:
        for i, _ in done:
            yield i, results.load(runs[i][1])
