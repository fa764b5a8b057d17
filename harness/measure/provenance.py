"""Provenance of results, in `provenance.json` of each run's folder.

It says which version made them from which inputs, where and when. It is kept apart from the tables
and from `summary.json`, which are the same for the same scenario and seed.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import platform
import shlex
import subprocess
import sys
from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from functools import cache
from pathlib import Path
from typing import Any

from p4switch import native
from p4switch.errors import UserError

_ROOT = Path(__file__).parents[2]
_PACKAGES = ("control_plane", "harness", "host_agents", "p4src", "p4switch", "topologies", "wireformats")
_SOURCES = {".py", ".c", ".h", ".p4", ".toml", ".txt"}
_GIT_TIMEOUT_S = 20


def of_run(inputs: Mapping[str, Any], how: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Return the provenance of one run: its inputs (`harness.measure.inputs`), and where and when it was made."""
    return {
        "version": importlib.metadata.version("p4cc"),
        "commit": commit(_ROOT),
        **inputs,
        "how": dict(how),
        "seed": seed,
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "machine": {
            "system": platform.platform(),
            "processor": _processor(),
        },
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "compiler": _compiler(),
    }


def digest(content: bytes) -> str:
    """Return the SHA-256 of a content."""
    return hashlib.sha256(content).hexdigest()


def command_line(*more: str) -> str:
    """Return the command line, ready to be typed again, with `more` options."""
    given = sys.argv[1:]
    end = given.index("--") if "--" in given else len(given)  # end of the options
    return shlex.join([Path(sys.argv[0]).name, *given[:end], *more, *given[end:]])


@cache
def commit(folder: Path) -> str | None:
    """Return the commit of a work tree, with `+` if files were changed; None for other folders."""
    if not (folder / ".git").exists():
        return None
    head = _git(folder, "rev-parse", "HEAD")
    changed = _git(folder, "status", "--porcelain", "--untracked-files=no")
    return head and (f"{head}+" if changed else head)


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        command = ["git", "-C", str(folder), *arguments]
        finished = subprocess.run(command, capture_output=True, text=True, timeout=_GIT_TIMEOUT_S, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return finished.stdout.strip()


@cache
def sources_digest() -> str:
    """Return the SHA-256 over the names and contents of all sources of p4cc."""
    total = hashlib.sha256()
    for package in _PACKAGES:
        for path in sorted((_ROOT / package).rglob("*")):
            if path.suffix in _SOURCES and path.is_file():
                total.update(f"{path.relative_to(_ROOT)}\0{file_digest(path)}\0".encode())
    return total.hexdigest()


def is_ours(path: Path) -> bool:
    """Return whether a path is one of the sources of p4cc."""
    return any(path.is_relative_to(_ROOT / package) for package in _PACKAGES)


def file_digest(path: Path) -> str | None:
    """Return the SHA-256 of a file; None if it cannot be read."""
    try:
        return digest(path.read_bytes())
    except OSError:
        return None


@cache
def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


@cache
def _compiler() -> str | None:
    try:
        lines = native.compiler_version().splitlines()
    except UserError:
        return None
    return next((line for line in lines if " version " in line), None)


_TELLING = {"version": "versions of p4cc", "sources": "sources of p4cc", "compiler": "C compilers"}
_SHOWN = 40  # characters of a difference that are shown


def differences(provenances: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return a line for each difference between runs of one report that may change results."""
    known = [each for each in provenances if each]
    values = {key: list(dict.fromkeys(str(each.get(key))[:_SHOWN] for each in known)) for key in _TELLING}
    return [f"different {_TELLING[key]}: {', '.join(several)}" for key, several in values.items() if len(several) > 1]
