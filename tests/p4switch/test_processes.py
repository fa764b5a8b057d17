"""Ends of the processes that p4cc runs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from p4switch import processes
from tests.e2e.runs import MAIN

# It leaves the number of a process that it started, as gcc starts cc1, and waits for it.
COMPILER = "#!/bin/sh\nsleep 1000 &\necho $! > {0}.new; mv {0}.new {0}\nwait\n"


@pytest.fixture
def slow_compiler(tmp_path: Path) -> Path:
    """Return a C compiler that never ends; the file `child` beside it will have the id of its child."""
    path = tmp_path / "cc"
    path.write_text(COMPILER.format(tmp_path / "child"))
    path.chmod(0o755)
    return path


def child_of(compiler: Path) -> psutil.Process:
    file = compiler.with_name("child")
    end = time.monotonic() + 60
    while not file.exists():
        assert time.monotonic() < end
        time.sleep(0.02)
    return psutil.Process(int(file.read_text()))


def gone(process: psutil.Process) -> bool:
    _, alive = psutil.wait_procs([process], timeout=60)
    return not alive or process.status() == psutil.STATUS_ZOMBIE  # nobody may be there to reap it


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_no_compiler_outlives_an_interrupted_command(
    slow_compiler: Path, tmp_path: Path, number: signal.Signals
) -> None:
    environment = os.environ | {"CC": str(slow_compiler), "P4CC_NATIVE": "0", "P4CC_CACHE": str(tmp_path / "cache")}
    command = subprocess.Popen(
        [*MAIN, "run", "incast-star", "--out", str(tmp_path / "out")],
        env=environment, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    child = child_of(slow_compiler)
    command.send_signal(number)
    _, errors = command.communicate(timeout=60)
    assert (command.returncode, errors.strip()) == (1, "p4cc: error: interrupted")  # click ends the line of ^C
    assert gone(child)


def test_nor_the_compiler_of_the_hosts(slow_compiler: Path, tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from host_agents import native; "
        f"sys.executable = {str(slow_compiler)!r}; native._compile(Path({str(tmp_path)!r}), 'cc')"
    )
    command = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL)
    child = child_of(slow_compiler)
    command.send_signal(signal.SIGINT)
    command.wait(60)
    assert gone(child)


def test_nor_what_takes_too_long(slow_compiler: Path) -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        processes.run([str(slow_compiler)], timeout_s=1)
    assert gone(child_of(slow_compiler))


def test_the_time_in_which_all_are_stopped_does_not_count() -> None:
    """The command stops the process that waits for it, which continues only after the limit."""
    code = (
        "from p4switch import processes; processes.run(['sh', '-c', "
        "'sleep 0.5; kill -STOP $PPID; sleep 4; kill -CONT $PPID; sleep 0.5'], timeout_s=3)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_a_stopped_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([10.0, 10.5, 11.0, 1000.0, 1000.25])
    monkeypatch.setattr(processes, "time", SimpleNamespace(monotonic=lambda: next(times)))
    clock = processes.AwakeClock()
    assert [clock.seconds() for _ in range(4)] == [0.5, 1.0, 2.0, 2.25]


def test_a_signal_that_comes_while_the_command_starts_ends_it_too(
    slow_compiler: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = vars(subprocess.Popen)["_execute_child"]
    children: list[psutil.Process] = []

    def start_and_interrupt(*arguments: object) -> None:
        start(*arguments)
        children.append(child_of(slow_compiler))
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(subprocess.Popen, "_execute_child", start_and_interrupt)
    handler = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        processes.run([str(slow_compiler)], timeout_s=60)
    assert gone(children[0])
    assert signal.getsignal(signal.SIGINT) is handler


def test_a_signal_when_the_command_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(process: subprocess.Popen[str], timeout: float) -> None:
        process.wait(timeout)
        raise KeyboardInterrupt

    monkeypatch.setattr(subprocess.Popen, "communicate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        processes.run(["true"], timeout_s=60)


def test_a_limited_command_that_is_not_there() -> None:
    with pytest.raises(FileNotFoundError):
        processes.run(["no-such-command"], timeout_s=60, cpu_s=60)
