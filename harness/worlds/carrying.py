"""Runs carried out: one after the other in this process, or at the same time by others, with the same files."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing
from dataclasses import asdict
from functools import partial
from pathlib import Path

from harness.measure import results
from harness.measure.inputs import How, inputs
from harness.measure.recording import Progress, Writing
from harness.measure.results import Result
from harness.plan.portable import PortableRun
from harness.plan.run import Run
from harness.worlds import elsewhere, workers
from harness.worlds.building import Building, told_to
from harness.worlds.garbage import collect_what_was_left, rare_collection
from harness.worlds.makers import MakeWorld
from harness.worlds.workers import Cluster


def one_by_one(
    runs: Iterable[tuple[Run, Path]],
    make: MakeWorld,
    how: How,
    begin: Callable[[Run], Progress | None],
    writing: Writing | None = None,
    building: Building | None = None,
) -> Generator[Result, None, None]:
    """Carries out each run in a world that `make` makes as `how` says, and writes it to a new folder.

    `begin` is told of each before it is made, and gives whom its progress is told to; `building` is told how far
    its network is built, `writing` how far its trace is, which may take longer than the run. Raises what worlds raise.
    """
    for run, folder in runs:
        collect_what_was_left()
        progress = begin(run)
        made_of = inputs(run)
        with rare_collection():
            with told_to(building):
                world = make(run)
            recording = world.run(progress)
            result = results.write(folder, results.files(run, recording, how, made_of))
            world.write_more(folder, writing)
            del world, recording
        yield result


def at_once(
    runs: Sequence[tuple[PortableRun, Path]], how: How, where: Cluster | int | None
) -> Generator[tuple[int, Result], None, None]:
    """(index, results) of each run, as they are done by `where` (see `workers.carry_out`) in the virtual world.

    Each is written to a new folder. Close the iterator if it is not used up. Raises as `workers.carry_out` does.
    """
    told, names = asdict(how), [folder.name for _, folder in runs]
    if isinstance(where, Cluster):
        sent = workers.carry_out(partial(elsewhere.files, how=told), [run for run, _ in runs], where, names)
        with closing(sent) as made:
            for i, files in made:
                yield i, results.write(runs[i][1], files)
        return
    wanted = [(run, folder.resolve()) for run, folder in runs]
    with closing(workers.carry_out(partial(elsewhere.write, how=told), wanted, where, names)) as done:
        for i, _ in done:
            yield i, results.load(runs[i][1])
