"""Runs of the command line, as a user makes them."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from harness.measure.results import Result, load_all

MAIN = (sys.executable, "-c", "from harness.cli import main; main()")
_folders: list[TemporaryDirectory[str]] = []  # removed when the tests are over


def p4cc(
    *arguments: str, cwd: Path | None = None, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """`p4cc ARGUMENTS` in a process of its own."""
    command = [*MAIN, *arguments]
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=550, check=False)


@cache
def run(*arguments: str) -> tuple[Result, ...]:
    """The results of `p4cc run ARGUMENTS`, made once a process."""
    folder = TemporaryDirectory()
    _folders.append(folder)
    target = Path(folder.name) / "out"
    done = p4cc("run", *arguments, "--out", str(target))
    assert done.returncode == 0, done.stderr
    return tuple(load_all(target))
