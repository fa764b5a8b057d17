"""The processes of a Mininet run."""

from __future__ import annotations

from pathlib import Path

from harness.worlds.mininet.launcher import Launcher


def test_processes_have_numbers_as_soon_as_anybody_asks(tmp_path: Path) -> None:
    """The zygote tells of a fork when it gets to it, on a busy machine later than the process gets to work."""
    with Launcher(tmp_path) as launcher:
        for name in ("a", "b"):
            launcher.fork(name, "host", ["--help"])
        assert [process.pid for process in launcher.processes.values()] == [-1, -1]
        assert min(launcher.pids()) > 0
        assert len(set(launcher.pids())) == 2
