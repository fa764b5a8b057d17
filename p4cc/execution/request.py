"""Requests of the command line: which runs, how and where they are made, and what is kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness.plan.how import How
from harness.worlds.mininet.prompt import Prompt
from p4cc.execution.pool import Cluster
from p4cc.execution.selection import ScenarioSelection, SweepSelection


@dataclass(frozen=True)
class RunRequest:
    """Request that `p4cc run` and `p4cc sweep` execute, and that their dry runs describe.

    Parameters
    ----------
    selection
        The runs.
    how
        Options of each run's execution.
    where
        Processes that make the runs: a number of local ones, or a cluster. None: this process makes
        one run after the other.
    workers
        Value of `--workers`: the number of processes that share each run. None: the scenario's
        number, or as many as are worthwhile. With `where` each run has one process.
    out
        The folder to write. None: a folder in `runs` with the name of the batch.
    resume
        A folder with some of the runs, to which the others are added.
    reuse
        Folders from which runs of the same inputs are taken.
    strict
        Whether unfinished flows or a machine that was too slow are failures.
    report
        Whether a report on all runs is written.
    watch
        Whether a page on loopback shows the network during a run.
    prompt
        When Mininet's own prompt opens. None: never.
    """

    selection: ScenarioSelection | SweepSelection
    how: How = field(default_factory=How)
    where: Cluster | int | None = None
    workers: str | None = None
    out: Path | None = None
    resume: Path | None = None
    reuse: Sequence[Path] = ()
    strict: bool = False
    report: bool = True
    watch: bool = False
    prompt: Prompt | None = None
