"""Provenance of results, in `provenance.json` of each run's folder.

It has the version of p4cc, the inputs, and the place and time of the run. The tables and
`summary.json` do not contain it, because they are identical for equal scenarios and seeds.
"""

from __future__ import annotations

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

from harness.plan.inputs import ROOT
from p4switch import native
from p4switch.errors import UserError

_GIT_TIMEOUT_S = 20


def of_run(inputs: Mapping[str, Any], how: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Return the provenance of one run: its inputs (`harness.plan.inputs`), and the run's place and time."""
    return {
        "version": importlib.metadata.version("p4cc"),
        "commit": commit(ROOT),
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
