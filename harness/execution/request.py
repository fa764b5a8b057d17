"""Requests of the command line: which runs, how and where they are made, and what is kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness.execution.pool import Cluster
from harness.plan.how import How
from harness.plan.selection import ScenarioSelection, SweepSelection
from harness.worlds.mininet.prompt import Prompt


@dataclass(frozen=True)
class RunRequest:
    """Request that `p4cc run` and `p4cc sweep` execute, and that their dry runs describe.

    Parameters
    ----------
    selection
        Which runs.
    how
        How each of them is carried out.
    where
        Other processes that make the runs: so many at a time, or a cluster's. None: this one, run by run.
    workers
        What `--workers` says: by how many processes each run is shared. None: what its scenario says, or as many
        as pay. With `where` each run is one process's.
    out
        The folder to write. None: one of the batch's name in `runs`.
    resume
        A folder that has some of the runs, and gets the others.
    reuse
        Folders from which runs of the same inputs are taken.
    strict
        Flows that are not done, or a machine that did not keep up, are failures.
    report
        A report is written on all runs.
    watch
        A page on loopback shows the network while a run goes on.
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
