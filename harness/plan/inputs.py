"""Inputs that decide a run's results: p4cc's sources, the scenario, the user's own files.

Runs with equal inputs have equal results if their world is deterministic. `p4cc run --reuse` relies
on that.
"""

from __future__ import annotations

import glob
import hashlib
import os
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from harness.plan import scenario
from harness.plan.resolve import resolved
from harness.plan.run import Run
from p4switch.compiler import preprocess
from p4switch.compiler.source import SourceMap

ROOT = Path(__file__).parents[2]
"""Folder of p4cc's packages."""

_PACKAGES = ("control_plane", "harness", "host_agents", "p4src", "p4switch", "topologies", "wireformats")
_SOURCES = {".py", ".c", ".h", ".p4", ".toml", ".txt"}
_SWITCH = "{switch}"  # stands for the name of each switch in a file's name
_PIPE = "{pipe}"  # stands for the number of each pipe
_RANK = "{rank}"  # stands for a number


def resolved_text(run: Run) -> bytes:
    """Return the content of scenario.toml."""
    return scenario.dump(resolved(run)).encode()


def program_files(run: Run) -> frozenset[str]:
    """Return the files of the run's P4 programs, under the names that coverage uses.

    Raises UserError if a P4 file cannot be read or preprocessed.
    """
    return frozenset(os.path.normpath(piece.file.path) for text in _preprocessed(run) for piece in text.pieces)


def _preprocessed(run: Run) -> list[SourceMap]:
    """Return the preprocessed programs of the switches."""
    builds = dict.fromkeys(map(run.build, run.switch_programs))
    return [preprocess(build.source, build.include_dirs, dict(build.defines)) for build in builds]


def inputs(run: Run) -> dict[str, Any]:
    """Return digests of the current content of all inputs of the run.

    Raises UserError for an unreadable P4 file.
    """
    programs = _preprocessed(run)
    paths = {Path(piece.file.path) for text in programs for piece in text.pieces} | set(_named(run)) | set(_beside(run))
    own = sorted({str(path.resolve()) for path in paths if not _is_ours(path)})
    return {
        "sources": _sources_digest(),
        "scenario": _digest(resolved_text(run)),
        "program": _digest("".join(program.text for program in programs).encode()),
        "files": {path: _file_digest(Path(path)) for path in own if os.path.isfile(path)},
    }


def _named(run: Run) -> Iterator[Path]:
    """Yield the files that values of the scenario name: workloads, distributions, entries."""
    pipes = run.pipes.values()
    for text in _strings(resolved(run).model_dump()):
        if _RANK in text:
            pattern = "*".join(map(glob.escape, text.split(_RANK)))
            yield from map(Path, glob.iglob(os.path.join(glob.escape(str(run.folder)), pattern)))
        several = _SWITCH in text or _PIPE in text
        named = (text.replace(_SWITCH, pipe.switch).replace(_PIPE, str(pipe.number)) for pipe in pipes)
        for name in dict.fromkeys(named) if several else [text]:
            for folder in {run.folder, *(each.program.source.parent for each in run.switch_programs)}:
                if os.path.isfile(folder / name):  # Path.is_file may raise an exception
                    yield folder / name


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for below in value.values():
            yield from _strings(below)
    elif isinstance(value, list | tuple):
        for below in value:
            yield from _strings(below)


def _beside(run: Run) -> Iterator[Path]:
    """Yield P4 files, files that share the program's name, and Python modules that may be imported."""
    python = [Path(file) for file in run.scenario.extensions]
    for each in run.switch_programs:
        yield each.load_balancer.source
        if each.program.outside:
            source = each.program.source
            yield from source.parent.glob(f"{glob.escape(source.stem)}.*")
            python.append(source)
    for folder in {file.parent for file in python}:
        yield from folder.glob("*.py")
        for package in folder.glob("*/__init__.py"):
            yield from package.parent.rglob("*.py")


def _digest(content: bytes) -> str:
    """Return the SHA-256 of a content."""
    return hashlib.sha256(content).hexdigest()


@cache
def _sources_digest() -> str:
    """Return the SHA-256 over the names and contents of all sources of p4cc."""
    total = hashlib.sha256()
    for package in _PACKAGES:
        for path in sorted((ROOT / package).rglob("*")):
            if path.suffix in _SOURCES and path.is_file():
                total.update(f"{path.relative_to(ROOT)}\0{_file_digest(path)}\0".encode())
    return total.hexdigest()


def _is_ours(path: Path) -> bool:
    """Return whether a path is one of the sources of p4cc."""
    return any(path.is_relative_to(ROOT / package) for package in _PACKAGES)


def _file_digest(path: Path) -> str | None:
    """Return the SHA-256 of a file; None if it cannot be read."""
    try:
        return _digest(path.read_bytes())
    except OSError:
        return None
