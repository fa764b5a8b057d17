"""Sweeps: a TOML file with the values and variants that a scenario is run with.

    scenario = "accurate-fig5"           # by name, or a .toml file beside this one

    [axes]                               # every combination of their values ...
    workload.load = [0.05, 0.1, 0.15]

    [set]                                # in all runs; a variant may have something else
    nic.mtu_bytes = 1_000

    [[variants]]                         # ... is run as each variant
    name = "lossless Reno"
    set = { cc = "reno", switch.pfc.enabled = true }

    [[without]]                          # combinations that are left out: those with such a value of each of these axes
    workload.load = [0.15]

Runs are independent, so they go to processes of this machine, or of a cluster: `p4cc.execution.pool`.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from harness import papers
from harness.plan.portable import PortableRun
from harness.plan.scenario import Variant, anchored, find, find_file, merge, nested, read
from p4cc.execution.planned_run import PlannedRun
from p4switch.errors import UserError, validate
from p4switch.extensions import readable
from p4switch.quantities import with_numbers
from p4switch.tables import Table

_MOST_OF_VALUES = 100  # largest length of the values in a folder's name


class Sweep(Table):
    """Sweep file.

    Without variants the scenario's own protocols, load balancers and seeds are compared.
    """

    title: str = ""  # title in reports
    claims: list[str] = []  # ids of the papers' claims that it belongs to
    scenario: str  # name of the scenario, or a .toml file beside this one
    # Keys of the scenario, each with a list of values: every combination is a run.
    axes: Annotated[dict[str, Any], Field(min_length=1)]
    set: dict[str, Any] = {}  # keys of the scenario, with their values in all runs whose variant does not set them
    variants: list[Variant] = []  # ways to run each combination
    without: list[dict[str, Any]] = []  # combinations that are left out


def _planned(number: int, values: Mapping[str, Any], variant: str, portable: PortableRun) -> PlannedRun:
    """Return a run of a sweep.

    The name of its folder has its number, the values of its axes if there is room, and its label.
    """
    settings = "-".join(f"{key.rpartition('.')[2]}={value}" for key, value in values.items())
    folder_name = "-".join([f"{number:03d}", re.sub(r"[^\w+.=-]+", "_", settings)[:_MOST_OF_VALUES], portable.label])
    title = ", ".join([variant, *(f"{key} {value}" for key, value in values.items()), f"seed {portable.seed}"])
    return PlannedRun(folder_name, title, portable, values, variant)


def built_in() -> dict[str, Path]:
    """Return the sweeps that come with p4cc, by name."""
    return papers.files("sweeps")


def load(name: str) -> tuple[Sweep, Path]:
    """Return a sweep by name or from a .toml file, and the base folder of its relative paths.

    Raises UserError if there is none, and for invalid keys or values.
    """
    path = find_file("sweep", name, built_in())
    return sweep_of(read(path), path.parent), path.parent


def sweep_of(tables: Mapping[str, Any], folder: Path) -> Sweep:
    """Return the sweep of a file's tables.

    Python files are relative to `folder`, wherever the scenario is.

    Raises UserError for invalid keys or values.
    """
    changed = anchored(with_numbers(tables), folder)  # values are compared and become axes of plots
    for key in ("axes", "set"):
        if isinstance(changed.get(key), Mapping):
            changed[key] = anchored(changed[key], folder)
    return validate(Sweep, changed, "")


def axes_of(
    tables: Mapping[str, Any], where: str, above: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], list[Any]]]:
    """Yield (key, values) of each axis.

    Raises UserError for one that is not a list.
    """
    for name, value in tables.items():
        key = (*above, name)
        if isinstance(value, Mapping):
            yield from axes_of(value, where, key)
        elif isinstance(value, list) and value:
            yield key, value
        else:
            raise UserError(f"{where}.{'.'.join(key)}: should be a list of values, got {value!r}")


def _left_out(sweep: Sweep, axes: Mapping[tuple[str, ...], list[Any]]) -> list[dict[tuple[str, ...], list[Any]]]:
    """Return the excluded combinations of the sweep.

    Raises UserError for a value that its axis does not have.
    """
    combinations = []
    for i, tables in enumerate(sweep.without):
        one = dict(axes_of(tables, f"without.{i}"))
        for key, values in one.items():
            for value in values:
                if value not in axes.get(key, []):
                    raise UserError(f"without.{i}.{'.'.join(key)}: {value!r} is not a value of an axis of that name")
        combinations.append(one)
    return combinations


def _has(tables: Mapping[str, Any], key: tuple[str, ...]) -> bool:
    """Return whether there is a value or a table at `key`."""
    below: Any = tables
    for name in key:
        if not isinstance(below, Mapping) or name not in below:
            return False
        below = below[name]
    return True


def points(sweep: Sweep, folder: Path, changes: Mapping[str, Any] | None = None) -> list[PlannedRun]:
    """Return every checked run of a sweep; `changes` are tables that are applied to the scenario first.

    Raises UserError for runs that are not possible.
    """
    from harness.plan.resolve import plan_tables
    from harness.plan.traffic_summary import TrafficSummary

    path = find(str(folder / sweep.scenario) if sweep.scenario.endswith(".toml") else sweep.scenario)
    axes = dict(axes_of(sweep.axes, "axes"))
    for key in axes:
        if _has(sweep.set, key):
            raise UserError(f"set.{'.'.join(key)}: is an axis, too; expected it in axes alone")
    tables = merge(merge(read(path), changes or {}), sweep.set)
    without = _left_out(sweep, axes)
    planned: list[PlannedRun] = []
    summaries: dict[str, TrafficSummary] = {}
    for variant in sweep.variants or [Variant(name="")]:
        for values in itertools.product(*axes.values()):
            chosen = dict(zip(axes, values, strict=True))
            if any(all(chosen[key] in values for key, values in one.items()) for one in without):
                continue
            changed = merge(tables, variant.set)
            for key, value in chosen.items():
                changed = merge(changed, nested(key, value))
            named = {".".join(key): readable(value) for key, value in chosen.items()}
            for run in plan_tables(path.stem, changed, path.parent, summaries):
                own = run.variant if run.scenario.variants or not variant.name else ""
                title = ", ".join(filter(None, [variant.name, own]))
                planned.append(_planned(len(planned), named, title, PortableRun.of(run)))
    if not planned:
        raise UserError("without: excludes every run of the sweep")
    return planned
