"""Runs from Python with the options of the command line."""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import p4cc._hosts  # noqa: F401  # isort: split
from harness.measure import results as stored
from harness.measure.output_folder import new_folder
from harness.measure.summary import not_kept_up
from harness.plan.how import How, Tracing
from harness.plan.portable import PortableRun
from harness.plan.resolve import plan_tables
from harness.plan.run import Run
from harness.plan.scenario import anchored, find, merge, nested, read, retitled
from harness.worlds.mininet import package
from harness.worlds.parallel import workers_of
from p4cc.execution import sweep as sweeps
from p4cc.execution.interpreted import tell_interpreted
from p4cc.execution.make_world import maker
from p4cc.execution.pool import Cluster
from p4cc.execution.runners import at_once, one_by_one
from p4cc.results import CheckError, Result, Results
from p4switch.errors import UserError
from p4switch.extensions import load as load_extension

__all__ = ["Tracing", "load", "run", "sweep"]

Scenario = str | PathLike[str] | Mapping[str, Any]
Names = str | Sequence[str]


def run(
    scenario: Scenario,
    *,
    cc: Names | None = None,
    lb: Names | None = None,
    seeds: int | str | Sequence[int | str] | None = None,
    set: Mapping[str, Any] | None = None,
    out: str | PathLike[str] | None = None,
    world: Literal["virtual", "mininet"] = "virtual",
    compiler: str = "builtin",
    pcap: bool = False,
    trace: int | Tracing | None = None,
    coverage: bool = False,
    switch: str | None = None,
    dilation: int | None = None,
    workers: int | Literal["auto"] | None = None,
    jobs: int | None = None,
    scheduler: str | None = None,
    strict: bool = False,
) -> Results:
    """Run every combination of protocol, load balancer and seed of a scenario.

    Parameters
    ----------
    scenario
        Name, .toml file, or tables of the scenario. Paths in these and other arguments are relative to the
        working directory.
    cc, lb, seeds
        Values that replace the scenario's; seeds as 1, [1, 2] or "1-100".
    set
        Values of any keys of the scenario, dotted or as tables.
    out
        Folder to keep the results in, which must not exist yet. None: a temporary one.
    world
        "virtual", or "mininet" on real frames, which needs root.
    compiler
        "builtin" or "p4c".
    pcap
        Add hosts.pcapng to each run's folder.
    trace
        Number of a flow, or a `p4cc.Tracing`: add trace.txt and trace.jsonl. Virtual world only.
    coverage
        Add coverage.json, the coverage of the P4 program. Virtual world only.
    switch
        "builtin" or "bmv2". Mininet world only.
    dilation
        Wall-clock time of a unit of model time. Mininet world only.
    workers
        Processes that share each run, in the virtual world. None: as the scenario says, or one.
    jobs
        Runs at the same time, in one process each.
    scheduler
        Address of a Dask cluster that makes the runs, as for `sweep`.
    strict
        Raise for failed checks, unfinished flows and a machine that did not keep up, instead of a warning.

    Returns
    -------
    Results
        Results of all runs, in the order of the scenario.

    Raises
    ------
    UserError
        For runs that are not possible, before anything starts.
    CheckError
        For failures with `strict`.
    """
    name, tables, folder = _tables(scenario)
    given = {"cc": cc, "lb": lb, "seeds": seeds}
    several = {key: _listed(value) for key, value in given.items() if value is not None}
    changes = _nested(set or {})
    for values in (changes, several):
        tables = merge(tables, anchored(values, Path.cwd()))
    tables = retitled(tables, name, changes)
    runs = plan_tables(name, tables, folder)
    how = _how(world, compiler, switch, dilation, pcap, trace, coverage)
    where = _where(jobs, scheduler)
    _check_shared(world, workers, where)
    tell_interpreted([one.protocol.name for one in runs], [one.load_balancing.name for one in runs])
    with _target(out) as (target, temporary):
        folders = [target / one.label for one in runs]
        if where in (None, 1):
            make = maker(how, lambda one: _workers_of(one, workers, trace is not None))
            own = ((one, folder, lambda: None) for one, folder in zip(runs, folders, strict=True))
            deque(one_by_one(own, make, how), maxlen=0)
        else:
            portable = [(PortableRun.of(one), folder) for one, folder in zip(runs, folders, strict=True)]
            with closing(at_once(portable, how, where)) as done:
                deque(done, maxlen=0)
        stored.note_order(target, [one.label for one in runs])
    place = Path(out) if out is not None else target
    kept = [stored.load(place / one.label) for one in runs]
    for each in kept:
        if empty := each.note_on_empty_trace(how.trace):
            warnings.warn(f"{each.folder.name}: {empty}", stacklevel=2)
    return _checked(Results([Result(each) for each in kept], place, temporary), strict)


def load(folder: str | PathLike[str], *, extensions: Sequence[str | PathLike[str]] = ()) -> Results:
    """Return the results in a folder written by `run`, `Results.save` or the command line.

    Parameters
    ----------
    folder
        Folder of one run or of several.
    extensions
        Python files to load for their figures in reports. The default is each file that the results
        name, if this user has run it before and it has not changed since. A warning names the
        others.

    Returns
    -------
    Results
        Results in the order of the scenario.

    Raises
    ------
    UserError
        For a folder without results, and for damaged files.
    """
    for file in extensions:
        load_extension(Path(file))
    kept_results = stored.load_all(Path(folder))
    for line in dict.fromkeys(line for kept in kept_results for line in kept.load_extensions()):
        warnings.warn(line, stacklevel=2)
    return Results([Result(kept) for kept in kept_results], Path(folder))


def sweep(
    file: Scenario,
    *,
    set: Mapping[str, Any] | None = None,
    out: str | PathLike[str] | None = None,
    jobs: int | None = None,
    scheduler: str | None = None,
    strict: bool = False,
) -> Results:
    """Run a sweep, and return results with its axes as columns.

    A script that uses local processes needs `if __name__ == "__main__":`.

    Parameters
    ----------
    file
        Name, .toml file, or tables of the sweep.
    set
        Values of any keys of the scenario, overridden by those of the sweep.
    out
        Folder to keep the results in, which must not exist yet. None: a temporary one.
    jobs
        Number of local processes. None: one for each core.
    scheduler
        Address of a Dask cluster, tls://HOST:PORT, with the keys of Dask's configuration (docs/security.md).
    strict
        Raise for failures, as in `run`.

    Returns
    -------
    Results
        Results of all runs.

    Raises
    ------
    UserError
        For runs that are not possible, before anything starts.
    CheckError
        For failures with `strict`.
    """
    if isinstance(file, Mapping):
        loaded, folder = sweeps.sweep_of(file, Path.cwd()), Path.cwd()
    else:
        loaded, folder = sweeps.load(str(file))
    points = sweeps.points(loaded, folder, anchored(_nested(set or {}), Path.cwd()))
    tell_interpreted(*zip(*(point.portable.names for point in points), strict=True))
    with _target(out) as (target, temporary):
        wanted = [(point.portable, target / point.folder_name) for point in points]
        with closing(at_once(wanted, How(), _where(jobs, scheduler))) as done:
            deque(done, maxlen=0)
        stored.note_order(target, [folder.name for _, folder in wanted])
    place = Path(out) if out is not None else target
    runs = [Result(stored.load(place / point.folder_name), point.values) for point in points]
    return _checked(Results(runs, place, temporary), strict)


def _tables(scenario: Scenario) -> tuple[str, dict[str, Any], Path]:
    """Return name and tables, and the base folder of relative paths in them."""
    if isinstance(scenario, Mapping):
        return "scenario", dict(scenario), Path.cwd()
    path = find(str(scenario))
    return path.stem, read(path), path.parent


def _nested(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return dotted keys as tables."""
    tables: dict[str, Any] = {}
    for key, value in changes.items():
        tables = merge(tables, nested(key.split("."), value))
    return tables


def _listed(value: Any) -> list[Any]:
    return [value] if isinstance(value, str | int) else list(value)


def _how(
    world: str,
    compiler: str,
    switch: str | None,
    dilation: int | None,
    pcap: bool,
    trace: int | Tracing | None,
    coverage: bool,
) -> How:
    """Return how runs are executed.

    Raises UserError for an unknown world, or for an option that the world does not have.
    """
    foreign: dict[str, dict[str, object]] = {
        "virtual": {"switch": switch, "dilation": dilation},
        "mininet": {"trace": trace, "coverage": coverage or None},
    }
    if world not in foreign:
        raise UserError(f"world {world!r}: expected one of {', '.join(foreign)}")
    for name, value in foreign[world].items():
        if value is not None:
            raise UserError(f"{name}: the {world} world has no such option")
    if world == "mininet":
        package.require()
        switch = switch or "builtin"
    traced = Tracing(trace) if isinstance(trace, int) else trace
    return How(world, compiler, switch, dilation, pcap, traced, coverage)


def _where(jobs: int | None, scheduler: str | None) -> Cluster | int | None:
    """Return where runs are executed.

    Raises UserError if both are given.
    """
    if jobs is not None and jobs < 1:
        raise UserError(f"jobs {jobs}: expected 1 or more")
    if scheduler is None:
        return jobs
    if jobs is not None:
        raise UserError("jobs: a cluster has workers of its own; expected it without scheduler")
    return Cluster(scheduler)


def _workers_of(one: Run, wanted: int | str | None, traced: bool) -> int:
    """Return the number of worker processes of a run; without a request there is one.

    Raises UserError for an invalid number of workers.
    """
    return workers_of(str(wanted or one.scenario.workers or 1), traced)(one)


def _check_shared(world: str, workers: int | str | None, where: Cluster | int | None) -> None:
    """Raise UserError for a combination of processes that is not supported."""
    if world == "mininet" and (workers not in (None, 1) or where not in (None, 1)):
        raise UserError("workers, jobs, scheduler: the mininet world has no such options")
    if workers not in (None, 1) and where not in (None, 1):
        raise UserError(f"workers {workers}: with jobs or a scheduler each run is one process's; expected one of them")


@contextmanager
def _target(out: str | PathLike[str] | None) -> Iterator[tuple[Path, TemporaryDirectory[str] | None]]:
    """Yield a folder to write to, which is removed if the block fails."""
    if out is None:
        temporary = TemporaryDirectory(prefix="p4cc-")
        yield Path(temporary.name), temporary
    else:
        with new_folder(Path(out)) as folder:
            yield folder, None


def _checked(results: Results, strict: bool) -> Results:
    failed = [*results.failed, *(f"{run.name}: {run.unfinished}" for run in results if run.unfinished)]
    failed += [f"{run.name}: {doubt}" for run in results if (doubt := not_kept_up(run.summary))]
    if failed and strict:
        raise CheckError("; ".join(failed))
    for line in failed:
        warnings.warn(line, stacklevel=3)
    return results
