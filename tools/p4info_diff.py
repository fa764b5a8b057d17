"""Comparison of the built-in compiler's P4Info with files that p4c wrote, object by object, ids included.

    python tools/p4info_diff.py PROGRAMS [--expected FOLDER] [-j N] [NAME ...]

PROGRAMS is a folder of .p4 files, such as p4c's testdata/p4_16_samples; the expected P4Info of `x.p4` is
`x.p4.p4info.txtpb` in FOLDER (by default PROGRAMS with `_outputs` appended). Programs for architectures that
the compiler does not have are passed over.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import click
from google.protobuf import text_format

from p4switch.architectures.architecture import ARCHITECTURES
from p4switch.compiler import compile_program
from p4switch.errors import UserError
from p4switch.p4runtime.messages import parse_p4info

OBJECTS = (
    "tables", "actions", "action_profiles", "counters", "direct_counters", "meters", "direct_meters",
    "controller_packet_metadata", "value_sets", "registers", "digests",
)  # fmt: skip


def _objects(info: Any) -> dict[str, str]:
    """Return the contents of a P4Info: label and text of every object and type."""
    result: dict[str, str] = {"pkg_info": text_format.MessageToString(info.pkg_info)}
    for kind in OBJECTS:
        for message in getattr(info, kind):
            label = f"{kind} {message.preamble.name}"
            while label in result:
                label += "'"
            result[label] = text_format.MessageToString(message)
    for descriptor, value in info.type_info.ListFields():
        if descriptor.name == "error":
            result["type_info error"] = text_format.MessageToString(value)
        else:
            for name in value:
                result[f"type_info {descriptor.name} {name}"] = text_format.MessageToString(value[name])
    return result


def differences(expected: Any, actual: Any) -> Iterator[str]:
    """Yield one line for each object that is missing, unexpected or different."""
    ours, theirs = _objects(actual), _objects(expected)
    for label in sorted({*ours, *theirs}):
        a, b = theirs.get(label), ours.get(label)
        if a is None:
            yield f"{label}: not expected"
        elif b is None:
            yield f"{label}: missing"
        elif a != b:
            mine, wanted = b.splitlines(), a.splitlines()
            lost = [line.strip() for line in wanted if line not in mine]
            extra = [line.strip() for line in mine if line not in wanted]
            yield f"{label}: expected {lost[:4]}, got {extra[:4]}"


def check(program: Path, expected_folder: Path) -> list[str] | None:
    """Return the differences; None if there is nothing to compare with."""
    stored = expected_folder / f"{program.name}.p4info.txtpb"
    if not stored.is_file():
        return None
    expected = parse_p4info(stored.read_text())
    if expected.pkg_info.arch not in ARCHITECTURES.names():
        return None
    try:
        actual = compile_program(program, [program.parent]).p4info
    except UserError as error:
        return [f"does not compile: {str(error).splitlines()[0]}"]
    except Exception as error:
        return [f"the compiler crashes: {type(error).__name__}: {error}"]
    return list(differences(expected, actual))


@click.command(help=__doc__)
@click.argument("programs", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("names", nargs=-1)
@click.option("--expected", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("-j", "--jobs", default=1, show_default=True)
def main(programs: Path, names: tuple[str, ...], expected: Path | None, jobs: int) -> None:
    folder = expected or programs.with_name(programs.name + "_outputs")
    files = [p for p in sorted(programs.glob("*.p4")) if not names or any(n in p.name for n in names)]
    equal = different = 0
    with ProcessPoolExecutor(jobs) as pool:
        for program, lines in zip(files, pool.map(partial(check, expected_folder=folder), files), strict=True):
            if lines:
                different += 1
                print(f"{program.name}: " + f"\n{' ' * 4}".join(lines), flush=True)
            elif lines is not None:
                equal += 1
    print(f"{equal} equal, {different} different")
    sys.exit(1 if different else 0)


if __name__ == "__main__":
    main()
