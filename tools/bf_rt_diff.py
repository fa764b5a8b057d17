"""Comparison of `bf-rt.json` files: the built-in compiler's for a program, and p4c's.

    python -m tools.bf_rt_diff PROGRAM.p4 EXPECTED.json [-I FOLDER] [-D MACRO] [--arch tna]
    python -m tools.bf_rt_diff MINE.json EXPECTED.json

Each table or learn filter that is missing, not expected or different has a line, with the path of
the difference. Snapshots and debug counters belong to a chip's stages, which the built-in compiler
does not model; they are skipped.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from p4switch.compiler import compile_program
from p4switch.sources import arch_option, define_option, include_option

OF_STAGES = {"SnapshotCfg", "SnapshotTrigger", "SnapshotData", "SnapshotLiveness", "TblDbgCnt"}


def _named(items: list[Any]) -> dict[str, Any]:
    """Return items by their names, or by their positions if they have none."""
    return {str(_name(item) or place): item for place, item in enumerate(items)}


def _name(item: Any) -> Any:
    """Return the name of a field, of a singleton's only field, or of an annotation."""
    return item.get("name") or _name(item.get("singleton")) if isinstance(item, dict) else None


def differences(expected: Any, actual: Any, path: str = "") -> Iterator[str]:
    """Yield one line for each value that is missing, unexpected or different; the order of lists is ignored."""
    if isinstance(expected, list) and isinstance(actual, list) and all(isinstance(e, dict) for e in expected + actual):
        yield from differences(_named(expected), _named(actual), path)
    elif isinstance(expected, dict) and isinstance(actual, dict):
        for key in sorted({*expected, *actual}):
            inner = f"{path}/{key}"
            if key not in actual:
                yield f"{inner}: missing"
            elif key not in expected:
                yield f"{inner}: not expected"
            else:
                yield from differences(expected[key], actual[key], inner)
    elif (
        isinstance(expected, list)
        and isinstance(actual, list)
        and sorted(map(repr, expected)) == sorted(map(repr, actual))
    ):
        return
    elif expected != actual:
        yield f"{path}: expected {expected!r}, got {actual!r}"


def compared(content: dict[str, Any]) -> dict[str, Any]:
    """Return the part of `content` that both compilers describe, without the tables of a chip's stages."""
    return content | {"tables": [t for t in content["tables"] if t["table_type"] not in OF_STAGES]}


@click.command(help=__doc__)
@click.argument("mine", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("expected", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@include_option
@define_option
@arch_option
def main(mine: Path, expected: Path, include: tuple[Path, ...], define: dict[str, str], arch: str | None) -> None:
    content = (
        json.loads(mine.read_text()) if mine.suffix == ".json" else compile_program(mine, include, define, arch).bf_rt
    )
    lines = list(differences(compared(json.loads(expected.read_text())), compared(content)))
    for line in lines:
        print(line)
    tables = len(compared(content)["tables"])
    print(f"{tables} tables, {len(lines)} differences")
    sys.exit(1 if lines else 0)


if __name__ == "__main__":
    main()
