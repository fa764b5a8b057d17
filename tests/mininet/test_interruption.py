"""Ends of runs: each run reports why it ended, and leaves no processes or files."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from harness.worlds.mininet.isolation import private_network
from harness.worlds.mininet.network import RawHost
from harness.worlds.mininet.state import State, runs
from p4cc.mininet import P4Host
from p4switch.p4runtime.client import GrpcClient
from p4switch.p4runtime.messages import p4runtime_pb2
from tests.e2e.runs import MAIN
from tests.mininet.networks import Running, namespaces, needs_mininet, nothing_left, p4cc, running

pytestmark = needs_mininet


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_in_one_line(tmp_path: Path, number: signal.Signals) -> None:
    with running(tmp_path) as run:
        path, state = run.state()
        spaces = namespaces(state)
        status, errors = run.end(number)
        assert (status, errors.strip()) == (1, "p4cc: error: interrupted")
        assert nothing_left(path, state, spaces) == []
    assert list(tmp_path.iterdir()) == []


def _command(process: psutil.Process) -> str:
    """Return the command line of a process; "" after it has ended."""
    try:
        return " ".join(process.cmdline()) if process.is_running() else ""
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return ""


def test_a_signal_while_the_network_is_being_built(tmp_path: Path) -> None:
    with running(tmp_path, k=4) as run:
        own = psutil.Process(run.process.pid)
        run.wait_for(lambda: any("mininet:" in _command(child) for child in own.children()))
        children = own.children(recursive=True)
        status, errors = run.end(signal.SIGINT)
        assert (status, errors.strip()) == (1, "p4cc: error: interrupted")
        # A shell that was being started ends by itself, as its terminal has gone.
        _, left = psutil.wait_procs(children, timeout=20)
        assert [_command(child) for child in left] == []


@pytest.mark.parametrize("make", [RawHost, P4Host])
def test_a_signal_while_a_node_is_being_made(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mininet does not know that node yet, which already has a shell."""

    def interrupted(node: Any, *_: object) -> None:
        made.append(psutil.Process(node.shell.pid))
        raise KeyboardInterrupt

    made: list[psutil.Process] = []
    monkeypatch.setattr(make, "cmd", interrupted)
    with private_network(), pytest.raises(KeyboardInterrupt):
        make("h1")
    assert [_command(process) for process in made] == [""]


@pytest.mark.parametrize("kind", ["switch", "host"])
def test_it_names_the_process_that_died(tmp_path: Path, kind: str) -> None:
    with running(tmp_path) as run:
        path, state = run.state()
        spaces = namespaces(state)
        name, log = ("tor1-0", "tor1-0.log") if kind == "switch" else ("h1-0-2", "h1-0-2.log")
        (path / log).write_text("what it said last\n")
        victim = _process(run, state, name)
        victim.kill()
        status, errors = run.end()
        assert status == 1
        assert errors.splitlines()[-2:] == [
            f"p4cc: error: {kind} {name} (process {victim.pid}) died: killed by SIGKILL; the end of its log:",
            "    what it said last",
        ]
        assert nothing_left(path, state, spaces) == []


def test_it_tells_of_a_sigterm_to_what_forks_its_processes(tmp_path: Path) -> None:
    """Otherwise a user who ends the network by this signal would wait forever."""
    with running(tmp_path) as run:
        path, state = run.state()
        spaces = namespaces(state)
        (zygote,) = (process for process in psutil.Process(run.process.pid).children() if "zygote" in _command(process))
        zygote.terminate()
        status, errors = run.end()
        assert status == 1
        assert errors.splitlines()[-2:] == [
            f"p4cc: error: process zygote (process {zygote.pid}) died: exit status 0; the end of its log:",
            "    ended by SIGTERM",
        ]
        assert nothing_left(path, state, spaces) == []


def test_it_names_the_process_that_was_stopped(tmp_path: Path) -> None:
    with running(tmp_path) as run:
        path, state = run.state()
        spaces = namespaces(state)
        victim = _process(run, state, "h1-0-2")
        victim.suspend()
        status, errors = run.end()
        line = f"p4cc: error: host h1-0-2 (process {victim.pid}) was stopped (SIGSTOP)"
        assert (status, errors.splitlines()[-1]) == (1, line)
        assert nothing_left(path, state, spaces) == []


def test_nobody_waits_for_a_switch_that_stops_before_it_answers(tmp_path: Path) -> None:
    """Otherwise its controller would wait for a minute, and the command for its controller."""
    with running(tmp_path) as run:

        def listening() -> bool:
            owned = [path for path, state in runs() if state.owner.pid == run.process.pid]
            return any(file.is_socket() and "tor" in file.name for path in owned for file in path.iterdir())

        run.wait_for(listening, 0.001)
        processes = psutil.Process(run.process.pid).children(recursive=True)
        for switch in (process for process in processes if "zygote" in _command(process)):
            switch.suspend()
        _, errors = run.process.communicate(timeout=45)
        assert "was stopped (SIGSTOP)" in errors


def test_clean_removes_what_kill_leaves_and_nothing_else(tmp_path: Path) -> None:
    with running(tmp_path) as run:
        path, state = run.state()
        spaces = namespaces(state)
        p4cc("clean")
        assert run.process.poll() is None  # a run that is going on is left alone
        assert path.exists()
        (half_written,) = tmp_path.iterdir()
        run.process.kill()
        run.process.wait()
        done = subprocess.run([*MAIN, "clean"], capture_output=True, text=True, timeout=60, check=True)
        assert f"run {path.name} (incast)" in done.stdout
        assert f"removed {half_written}" in done.stdout
        assert list(tmp_path.iterdir()) == []
        end = time.monotonic() + 20
        while (left := nothing_left(path, state, spaces)) and time.monotonic() < end:
            time.sleep(0.1)
        assert left == []


def test_two_runs_at_a_time_do_not_meet(tmp_path: Path) -> None:
    with running(tmp_path) as run:
        run.state()
        small = ("--set", "workload.senders=1", "--set", "topology.k=2", "--set", "workload.size_bytes=20000")
        run_other = ("run", "incast", "--world", "mininet", "--cc", "hpcc", "--no-report", *small)
        p4cc(*run_other, "--out", str(tmp_path / "other"))
        assert run.process.poll() is None


def test_a_switch_of_a_running_network_is_found_by_its_name(tmp_path: Path) -> None:
    from harness.worlds.mininet.state import find_switch

    with running(tmp_path) as run:
        _, state = run.state()
        address, device_id = find_switch("agg1-0")
        assert (address, device_id) == state.switches["agg1-0"]
        request = p4runtime_pb2.GetForwardingPipelineConfigRequest(device_id=device_id)
        with GrpcClient(address, device_id, election_id=1, timeout_s=30) as client:
            answer = client.call(
                "GetForwardingPipelineConfig", request, p4runtime_pb2.GetForwardingPipelineConfigResponse
            )
        assert {table.preamble.alias for table in answer.config.p4info.tables} >= {"ipv4_lpm", "port_telemetry"}


def _process(run: Running, state: State, name: str) -> psutil.Process:
    """Return a process. Switches come before hosts at the end, each in the topology's order."""
    from topologies import build

    topology = build("fat-tree", {"k": 2})
    names = [switch.name for switch in topology.switches] + [host.name for host in topology.hosts]
    process = state.processes[names.index(name) - len(names)].find()
    assert process is not None
    return process
