"""Runs of the command line, each in its own process. Most are forked from one that has loaded p4cc."""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from harness.measure.results import Result, load_all

MAIN = (sys.executable, "-c", "from p4cc.cli import main; main()")
_TIMEOUT_S = 400
_TO_TELL_S = 10  # before that, what hangs says where it is
_FORKING = multiprocessing.get_context("forkserver")
_FORKING.set_forkserver_preload(["tests.e2e.preloaded"])
_folders: list[TemporaryDirectory[str]] = []  # removed when the tests are over


def p4cc(
    *arguments: str, cwd: Path | None = None, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run `p4cc ARGUMENTS` as a user would."""
    command = [*MAIN, *arguments]
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)


def forked(
    *arguments: str, cwd: Path | None = None, variables: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run `p4cc` in a fork that has imported the modules of all runs: importing takes longer than most runs.

    `variables` are added to its environment.
    """
    with TemporaryDirectory() as folder:
        told = [Path(folder) / "stdout", Path(folder) / "stderr"]
        process = _FORKING.Process(target=_main, args=(arguments, cwd, variables or {}, *told))
        process.start()
        process.join(_TIMEOUT_S)
        if process.exitcode is None:
            process.kill()
            process.join()
            raise TimeoutError(f"p4cc {arguments} has not ended in {_TIMEOUT_S} s: {told[1].read_text()}")
        return subprocess.CompletedProcess(arguments, process.exitcode, *(path.read_text() for path in told))


def _main(
    arguments: tuple[str, ...], cwd: Path | None, variables: Mapping[str, str], stdout: Path, stderr: Path
) -> None:
    from p4cc.cli import main

    os.environ.update(variables)
    if cwd is not None:
        os.chdir(cwd)
    for number, path in enumerate((stdout, stderr), 1):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), number)
    faulthandler.dump_traceback_later(_TIMEOUT_S - _TO_TELL_S, file=2)
    main(arguments)


@cache
def run(*arguments: str, report: bool = False) -> tuple[Result, ...]:
    """Return the results of `p4cc run ARGUMENTS`, made once in a process, without a report: it would take longer."""
    folder = TemporaryDirectory()
    _folders.append(folder)
    target = Path(folder.name) / "out"
    done = forked("run", *arguments, "--report" if report else "--no-report", "--out", str(target))
    assert done.returncode == 0, done.stderr
    return tuple(load_all(target))
