"""Runs, from Python as from the command line."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal

import p4cc._hosts  # noqa: F401  # isort: split
from harness.measure import results as stored
from harness.measure.inputs import How, inputs
from harness.measure.output_folder import new_folder
from harness.plan import sweep as sweeps
from harness.plan.experiment import plan
from harness.plan.scenario import anchored, check, find, merge, nested, read
from harness.worlds import workers
from harness.worlds.interpreted import tell_interpreted
from harness.worlds.mininet import package
from p4cc.results import CheckError, Result, Results
from p4switch.errors import UserError

if TYPE_CHECKING:
    from harness.measure.recording import World
    from harness.plan.experiment import Run

__all__ = ["load", "run", "sweep"]

Scenario = str | PathLike[str] | Mapping[str, Any]
Names = str | Sequence[str]


def run(
    scenario: Scenario,
    *,
    cc: Names | None = None,
    lb: Names | None = None,
    seeds: int | Sequence[int] | None = None,
    set: Mapping[str, Any] | None = None,
    out: str | PathLike[str] | None = None,
    world: Literal["virtual", "mininet"] = "virtual",
    compiler: str = "builtin",
    pcap: bool = False,
    trace: int | None = None,
    coverage: bool = False,
    switch: str | None = None,
    dilation: int | None = None,
    strict: bool = False,
) -> Results:
    """Every combination of protocol, load balancer and seed of a scenario: its name, a .toml file, or its tables.

    `cc`, `lb` and `seeds` stand instead of the scenario's; `set` has values for any of its keys, dotted or as tables.
    Paths in any of them are relative to the working directory. `out` names a folder to keep the results in, which must
    not exist yet. `pcap` adds hosts.pcapng to each run's folder; `trace` (a flow's number) trace.txt and trace.jsonl;
    `coverage` coverage.json, what the packets reached of the P4 program. The last two are of the virtual world.
    `switch` and `dilation` are of the Mininet world, which needs root.

    Checks that do not hold, and flows that are not done, are a warning, or CheckError with `strict`. Raises UserError
    for what cannot be run, before anything starts.
    """
    name, tables, folder = _tables(scenario)
    given = {"cc": cc, "lb": lb, "seeds": seeds}
    several = {key: _listed(value) for key, value in given.items() if value is not None}
    for changes in (_nested(set or {}), several):
        tables = merge(tables, anchored(changes, Path.cwd()))
    runs = plan(name, check(tables), folder)
    options = {"compiler": compiler, "capture": pcap, "trace": trace, "coverage": coverage or None, "switch": switch,
               "dilation": dilation}  # fmt: skip
    make = _maker(world, options)
    tell_interpreted([one.protocol.name for one in runs], [one.load_balancing.name for one in runs])
    how = How(world, compiler, switch or {"mininet": "builtin"}.get(world), dilation, pcap, trace, coverage)
    with _target(out) as (target, temporary):
        for one in runs:
            made_of = inputs(one)
            made = make(one)
            recording = made.run()
            stored.write(target / one.label, stored.files(one, recording, how, made_of))
            made.write_more(target / one.label)
            del made, recording
            gc.collect()  # a network is one large cycle, and there are others to come
    place = Path(out) if out is not None else target
    found = Results([Result(stored.load(place / one.label)) for one in runs], place, temporary)
    return _checked(found, strict)


def load(folder: str | PathLike[str]) -> Results:
    """The results in a folder that `run`, `Results.save` or the command line has written. Raises UserError."""
    found = stored.load_all(Path(folder))
    for line in dict.fromkeys(line for kept in found for line in kept.load_extensions()):
        warnings.warn(line, stacklevel=2)
    return Results([Result(kept) for kept in found], Path(folder))


def sweep(
    file: Scenario,
    *,
    set: Mapping[str, Any] | None = None,
    out: str | PathLike[str] | None = None,
    jobs: int | None = None,
    scheduler: str | None = None,
    strict: bool = False,
) -> Results:
    """Every run of a sweep: its name, a .toml file, or its tables; a row's axes are columns of the results.

    They run on `jobs` local processes (none: one a core), so that a script needs `if __name__ == "__main__":`, or on
    the Dask cluster at `scheduler`, tls://HOST:PORT, with the keys that Dask's configuration names
    (docs/security.md). The rest is as for `run`; `set` is for the scenario, below what the sweep says.
    """
    if isinstance(file, Mapping):
        found, folder = sweeps.made(file, Path.cwd()), Path.cwd()
    else:
        found, folder = sweeps.load(str(file))
    points = sweeps.points(found, folder, anchored(_nested(set or {}), Path.cwd()))
    tell_interpreted(*([point.tables[key][0] for point in points] for key in ("cc", "lb")))
    where = jobs if scheduler is None else workers.Cluster(scheduler)
    work = workers.carry_out(sweeps.carry_out, points, where)
    with _target(out) as (target, temporary), closing(work) as done:
        for i, files in done:
            stored.write(target / sweeps.folder_name(i, points[i]), files)
    place = Path(out) if out is not None else target
    runs = [Result(stored.load(place / sweeps.folder_name(i, point)), point.values) for i, point in enumerate(points)]
    return _checked(Results(runs, place, temporary), strict)


def _tables(scenario: Scenario) -> tuple[str, dict[str, Any], Path]:
    """Name, tables, and the folder that relative paths in them start from."""
    if isinstance(scenario, Mapping):
        return "scenario", dict(scenario), Path.cwd()
    path = find(str(scenario))
    return path.stem, read(path), path.parent


def _nested(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Dotted keys as tables."""
    tables: dict[str, Any] = {}
    for key, value in changes.items():
        tables = merge(tables, nested(key.split("."), value))
    return tables


def _listed(value: Any) -> list[Any]:
    return [value] if isinstance(value, str | int) else list(value)


def _maker(world: str, options: Mapping[str, Any]) -> Callable[[Run], World]:
    """What makes a world of a run. Raises UserError for a world there is not, or an option that it does not have."""
    foreign = {"virtual": ("switch", "dilation"), "mininet": ("trace", "coverage")}
    if world not in foreign:
        raise UserError(f"world {world!r}: expected one of {', '.join(foreign)}")
    given = {name: value for name, value in options.items() if value is not None}
    for name in foreign[world]:
        if name in given:
            raise UserError(f"{name}: the {world} world has no such thing")
    if world == "virtual":
        from harness.worlds.virtual import VirtualWorld

        return lambda one: VirtualWorld(one, **given)
    package.require()
    from harness.worlds.mininet.world import MininetWorld

    return lambda one: MininetWorld(one, **given)


@contextmanager
def _target(out: str | PathLike[str] | None) -> Iterator[tuple[Path, TemporaryDirectory[str] | None]]:
    """A folder to write to, whole or not at all."""
    if out is None:
        temporary = TemporaryDirectory(prefix="p4cc-")
        yield Path(temporary.name), temporary
    else:
        with new_folder(Path(out)) as folder:
            yield folder, None


def _checked(found: Results, strict: bool) -> Results:
    failed = [*found.failed, *(f"{run.name}: {run.unfinished}" for run in found if run.unfinished)]
    if failed and strict:
        raise CheckError("; ".join(failed))
    for line in failed:
        warnings.warn(line, stacklevel=3)
    return found
