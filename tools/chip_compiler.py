"""p4c's open-source back end for switch chips: `p4c-barefoot`, and its assembler `bfas`.

Both have to be in PATH, and the folder of their core.p4, tna.p4, t2na.p4 and v1model.p4 in P4C_16_INCLUDE_PATH.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

COMPILER, ASSEMBLER = "p4c-barefoot", "bfas"
_ERROR = re.compile("error: |Bug|BUG", re.IGNORECASE)
_STAGE = re.compile(r"stage (\d+) (\w+):")
_CONTENT = re.compile(r"  (?:\w+_match|gateway|hash_action|always_run_action)\b")


def require(*tools: str) -> None:
    """Raise click.UsageError for the first of `tools` that is not in PATH."""
    for tool in tools:
        if shutil.which(tool) is None:
            raise click.UsageError(f"{tool!r} is not in PATH")


def compile_to(
    folder: Path,
    program: Path,
    chip: str,
    arch: str,
    include: Sequence[Path],
    defines: Mapping[str, str],
    seconds: float,
) -> str:
    """Compile `program` for `chip` into `folder`; return the reason if that fails, else "".

    The folder then has `bf-rt.json`, and an assembly of each pipeline.
    """
    command = [COMPILER, "--target", chip, "--arch", arch, "-o", str(folder)]
    if arch != "v1model":
        command += ["--bf-rt-schema", str(folder / "bf-rt.json")]
    command += [f"-D{name}={value}" for name, value in defines.items()]
    problem = _run([*command, *(f"-I{path}" for path in include), str(program)], folder, seconds)
    return problem or ("" if assemblies(folder) else "no assembly")


def assemblies(folder: Path) -> list[Path]:
    """Return the assemblies that the compiler has written, one for each pipeline."""
    return sorted(folder.rglob("*.bfa"))


def stages(assembly: str) -> dict[str, int]:
    """Return the number of used stages of ingress and of egress, up to the last used one.

    A stage is used if it has a table, condition or action.
    """
    last: Counter[str] = Counter()
    here: tuple[int, str] | None = None
    for line in assembly.splitlines():
        if not line.startswith(" "):
            match = _STAGE.match(line)
            here = (int(match[1]) + 1, match[2]) if match else None
        elif here is not None and _CONTENT.match(line):
            last[here[1]] = max(last[here[1]], here[0])
    return dict(last)


def assembled(assembly: Path, chip: str, folder: Path, seconds: float) -> tuple[dict[str, int], str]:
    """Assemble a pipeline for `chip` into `folder`.

    Returns the stages of ingress, egress and ghost, and the reason if the assembler refuses the
    pipeline. Stages count up to the last one with a table in the assembler's report.
    """
    problem = _run([ASSEMBLER, "--target", chip, "--no-bin", "-o", str(folder), str(assembly)], folder, seconds)
    if problem:
        return {}, problem
    last: Counter[str] = Counter()
    for table in json.loads((folder / "context.json").read_text())["tables"]:
        for stage in _stage_numbers(table):
            last[table["direction"]] = max(last[table["direction"]], stage + 1)
    return dict(last), ""


def _stage_numbers(value: Any) -> Iterator[int]:
    """Yield the numbers of all stages in a table of the assembler's report."""
    if isinstance(value, dict):
        if isinstance(value.get("stage_number"), int):
            yield value["stage_number"]
        value = list(value.values())
    if isinstance(value, list):
        for inner in value:
            yield from _stage_numbers(inner)


def _run(command: Sequence[str], folder: Path, seconds: float) -> str:
    """Run `command` in `folder`, and return its first error, or "" if it succeeds."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=seconds)
    except subprocess.TimeoutExpired:
        return f"not done after {seconds:g} s"
    if not done.returncode:
        return ""
    said = [line for line in (done.stderr + done.stdout).splitlines() if _ERROR.search(line)]
    return (said or [f"exit status {done.returncode}"])[0].strip()
