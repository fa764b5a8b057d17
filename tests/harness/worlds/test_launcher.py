"""The processes of a Mininet run."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from harness.worlds.mininet.launcher import Launcher, ProcessDiedError


def test_processes_have_numbers_as_soon_as_anybody_asks(tmp_path: Path) -> None:
    """The zygote reports a fork later, and on a busy machine after the process has begun its work."""
    with Launcher(tmp_path) as launcher:
        for name in ("a", "b"):
            launcher.fork(name, "host", ["--help"])
        assert [process.pid for process in launcher.processes.values()] == [-1, -1]
        assert min(launcher.pids()) > 0
        assert len(set(launcher.pids())) == 2


def test_the_death_of_a_process_that_others_have_started_is_told(tmp_path: Path) -> None:
    """Mininet's shells hold the namespaces, so a run must not continue without them."""
    with Launcher(tmp_path) as launcher, subprocess.Popen(["sleep", "60"]) as shell:
        launcher.watch("the shell of h1", shell)
        launcher.check()
        shell.kill()
        shell.wait()
        with pytest.raises(ProcessDiedError, match=rf"^the shell of h1 \(process {shell.pid}\) was ended by SIGKILL$"):
            launcher.check()
