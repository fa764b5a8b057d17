"""`p4cc diff`: the differences between two result folders."""

from __future__ import annotations

import filecmp
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from p4switch.printable import tell

if TYPE_CHECKING:
    from harness.measure.results import Result

_MOST = 12  # figures of a run that are shown
_ALIKE = 1e-12


@click.command()
@click.argument("a", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.argument("b", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--all", "show_all", is_flag=True, help="Show every figure that differs.")
@click.pass_context
def command(context: click.Context, a: Path, b: Path, show_all: bool) -> None:
    """Compare two result folders, run by run.

    Prints which tables are identical to the byte, which figures of summary.json differ and by how
    much, and the provenance of the runs. Status 1 if any figure or table differs.
    """
    from harness.measure.results import load_all
    from reports import damage_named

    ones, others = (_by_key(load_all(folder)) for folder in (a, b))
    if len(ones) == len(others) == 1:  # single runs are compared whatever their names are
        others = dict(zip(ones, others.values(), strict=True))
    with damage_named([*ones.values(), *others.values()]):
        differ = _differ(ones, others, (a, b), None if show_all else _MOST)
    context.exit(1 if differ else 0)


def _differ(
    ones: Mapping[str, Result], others: Mapping[str, Result], folders: tuple[Path, Path], most: int | None
) -> bool:
    """Print the differences of runs, at most `most` figures each; return whether there are any."""
    from harness.measure.provenance import differences

    differ = False
    for key in sorted({*ones, *others}):
        if key not in ones or key not in others:
            differ = True
            tell(f"{key}: only in {folders[key not in ones]}")
            continue
        differing = list(_compared(ones[key], others[key], most))
        differ = differ or bool(differing)
        tell(f"{key}: {'differs' if differing else 'the same'}")
        for line in [*differing, *differences([ones[key].provenance, others[key].provenance])]:
            tell(f"  {line}")
    return differ


def _by_key(results: Sequence[Result]) -> dict[str, Result]:
    """Return runs by key.

    Runs of a sweep that differ only in an axis are distinguished by their folders.
    """
    keys = [_key(result) for result in results]
    alike = Counter(keys)
    return {
        key if alike[key] == 1 else f"{key} ({result.folder.name})": result
        for key, result in zip(keys, results, strict=True)
    }


def _key(result: Result) -> str:
    summary = result.summary
    return f"{summary['scenario']}, {summary['variant']}, seed {summary['seed']}"


def _compared(one: Result, other: Result, most: int | None) -> Iterator[str]:
    for name in sorted(one.tables | other.tables):
        paths = [result.folder / f"{name}.parquet" for result in (one, other)]
        if name not in one.tables & other.tables:
            yield f"{name}: only in {(one if name in one.tables else other).folder}"
        elif not filecmp.cmp(paths[0], paths[1], shallow=False):
            rows = [len(result.table(name)) for result in (one, other)]
            yield f"{name}: other rows ({rows[0]:,} and {rows[1]:,})"
    figures, theirs = (dict(_figures(result.summary)) for result in (one, other))
    changed = [key for key in {**figures, **theirs} if not _same(figures.get(key), theirs.get(key))]
    for key in changed[:most]:
        pair = figures.get(key), theirs.get(key)
        yield f"{key}: {_written(pair[0])} and {_written(pair[1])}{_by(*pair)}"
    if most is not None and len(changed) > most:
        yield f"and {len(changed) - most} further figures (--all)"


def _figures(value: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the dotted key and the value of each leaf."""
    if isinstance(value, Mapping):
        for name, below in value.items():
            yield from _figures(below, f"{key}.{name}" if key else str(name))
    elif isinstance(value, list):
        for i, below in enumerate(value):
            yield from _figures(below, f"{key}.{i}")
    else:
        yield key, value


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return abs(one - other) <= _ALIKE * max(abs(one), abs(other))
    return bool(one == other)


def _written(value: Any) -> str:
    return f"{value:,.6g}" if isinstance(value, float) else "nothing" if value is None else str(value)


def _by(one: Any, other: Any) -> str:
    """Return the relative difference as text; empty if there is none."""
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in (one, other))
    return f" ({(other - one) / one:+.2%})" if numbers and one else ""
