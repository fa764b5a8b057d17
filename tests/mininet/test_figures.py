"""Fidelity, dilation, samples and state: tests that need no network."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from harness.plan.resolve import plan
from harness.plan.run import Run
from harness.plan.scenario import check
from harness.worlds.mininet import dilation, fidelity, ledger, package, state
from harness.worlds.mininet.interfaces import interface_name
from p4cc.cli import main
from p4switch.errors import UserError
from tests.e2e.runs import forked
from tests.margins import TWO_DIGITS
from topologies import Topology, build
from topologies.model import Builder


def histogram(**frames: int) -> list[int]:
    """Return a histogram: b3=5 means five values in [8, 16)."""
    buckets = [0] * 40
    for name, count in frames.items():
        buckets[int(name[1:])] = count
    return buckets


def test_percentiles_of_a_histogram() -> None:
    assert fidelity.percentile_ns(histogram(), 0.99) == 0
    assert fidelity.percentile_ns(histogram(b10=100), 0.5) == 1024 + 512
    assert fidelity.percentile_ns(histogram(b4=99, b20=1), 0.99) == 32
    assert fidelity.percentile_ns(histogram(b4=98, b20=2), 0.99) == 2**20 + 2**19


def judged(mean_ns: int, lost: dict[str, int], least_share: float = 1.0) -> dict[str, Any]:
    """Return the fidelity of a round trip over two links of hosts, with 1% late frames, and six of switches."""
    hosts = fidelity.Lateness("hosts", 2, histogram(b0=99, b21=1), 100 * mean_ns)
    switches = fidelity.Lateness("switches", 6, histogram(b10=100), 100 * 1000)
    meter = fidelity.Meter([os.getpid()])
    meter.stop()
    return fidelity.judge(
        dilation=1000, base_rtt_ns=10_000, least_share=least_share, lateness=[hosts, switches], lost=lost, meter=meter,
        set_up_s=1.0,
    )  # fmt: skip


def test_a_machine_kept_up_where_lateness_makes_no_round_trip_longer_by_much() -> None:
    in_time = judged(20_000, {"a ring was full": 0})
    assert in_time["kept_up"]
    assert in_time["dilation_to_use"] is None
    assert in_time["late_of_base_rtt"] == pytest.approx((2 * 20_000 + 6 * 1000) / 10e6)
    assert judged(20_000, {"a ring was full": 3})["reasons"] == ["3 frames lost: a ring was full"]
    late = judged(200_000, {})
    assert not late["kept_up"]
    assert late["reasons"] == [
        "frames were late by 4.1% of the base RTT in a round trip, which may make the mean FCT longer by 4.1% "
        "(limit 2%)"
    ]
    assert late["dilation_to_use"] == 3000  # 1.5 * 4.06 / 2 times as slow, to two digits, but 3 times at most


def test_no_queue_takes_up_much_lateness() -> None:
    figures = judged(2_000_000, {}, least_share=0.01)
    assert figures["drift"] < fidelity.DRIFT_LIMIT
    assert figures["reasons"] == ["frames were late by 40% of the base RTT in a round trip (limit 30%)"]
    assert figures["dilation_to_use"] == 2100  # 1.5 * 40.06 / 30 times as slow


def test_lateness_that_queues_take_up_does_not_count() -> None:
    """Flows that wait in queues for nine tenths of their time can become longer by one tenth."""
    assert judged(200_000, {}, least_share=0.1)["kept_up"]
    assert judged(200_000, {}, least_share=0.1)["drift"] == pytest.approx(0.1 * judged(200_000, {})["drift"])


def test_what_did_not_keep_up_would_with_the_dilation_that_it_names() -> None:
    for mean_ns in (120_000, 150_000, 190_000):
        figures = judged(mean_ns, {})
        assert not figures["kept_up"]
        assert figures["drift"] * 1000 / figures["dilation_to_use"] < fidelity.DRIFT_LIMIT


def test_interfaces_are_called_as_mininet_calls_them() -> None:
    names = interface_names(build("fat-tree", {"k": 4}))
    assert {"h0-0-2-eth0", "tor0-0-eth1"} <= set(names)
    assert len(set(names)) == len(names) == 96


def test_interfaces_of_nodes_with_long_names_differ() -> None:
    builder = Builder("long")
    spines = [builder.switch(f"spine-switch-{number}", 1) for number in range(20)]
    for number, spine in enumerate(spines):
        builder.host(f"10.0.{number}.2", spine, 10**9, 0)
    names = interface_names(builder.build({}))
    assert len(set(names)) == len(names) == 40
    assert max(map(len, names)) == 15


def interface_names(topology: Topology) -> list[str]:
    return [
        interface_name(topology, node, port)
        for link in topology.links
        for node, port in ((link.a, link.a_port), (link.b, link.b_port))
    ]


def planned(workload: str) -> Run:
    tables = {"cc": "dcqcn", "topology": {"name": "fat-tree", "k": 4}, "workload": {"name": workload}}
    return plan("x", check(tables), Path())[0]


def test_the_dilation_follows_the_work_and_the_lag() -> None:
    machine = dilation.Machine(round_trip_ns=10_000, lag_p99_ns=100_000, processors=2)
    incast = dilation.choose(planned("incast"), machine)
    assert 2000 < incast < 10_000
    assert 10 * incast < dilation.choose(planned("permutation"), machine) < 20 * incast
    slow = dilation.Machine(20_000, 100_000, 2)
    assert dilation.choose(planned("incast"), slow) == pytest.approx(2 * incast, rel=TWO_DIGITS)
    # A tenth of the base RTT is about 1.2 us of model time.
    late = dilation.Machine(1, 10_000_000, 2)
    assert dilation.choose(planned("incast"), late) == pytest.approx(24_000, rel=TWO_DIGITS)
    stalled = dilation.Machine(1, 60e9, 2)
    assert dilation.choose(planned("incast"), stalled) == pytest.approx(120_000, rel=TWO_DIGITS)


def test_samples_are_the_depths_before_their_instants() -> None:
    port = {"port": 1, "depths": ([1000, 2500, 4000], [100, 300, 0])}  # wall clock, since 500
    samples = ledger.queue_samples(
        [("s", 1, "h")], {"s": {"origin_ns": 500, "ports": [port]}},
        interval_ns=100, end_ns=500, epoch_ns=500, dilation=10,
    )  # fmt: skip
    assert samples.times_ns.tolist() == [0, 100, 200, 300, 400, 500]
    assert np.array_equal(samples.at(switch="s", port=1), [0, 0, 100, 300, 300, 0])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("P4CC_RUN", str(tmp_path))
    return tmp_path


def test_switches_are_found_by_name_while_their_run_lives(folder: Path) -> None:
    with pytest.raises(UserError, match="no switch 's1': no network is running"):
        state.find_switch("s1")
    with state.RunFolder("one") as run:
        run.record([], {"s1": ("unix:/a", 1), "s2": ("unix:/b", 2)})
        assert state.find_switch("s2") == ("unix:/b", 2)
        with pytest.raises(UserError, match="no switch 's9': the running networks have s1, s2"):
            state.find_switch("s9")
        with state.RunFolder("two") as other:
            other.record([], {"s1": ("unix:/c", 1)})
            with pytest.raises(UserError, match="several running networks have a switch 's1'"):
                state.find_switch("s1")
    assert list(folder.iterdir()) == []


def test_clean_ends_processes_of_runs_without_owner(folder: Path) -> None:
    code = "from subprocess import *; print(Popen(['sleep', '600'], stdout=DEVNULL, stderr=DEVNULL).pid)"
    victim = int(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
    assert psutil.Process(victim).is_running()
    run = state.RunFolder("gone")
    run.state.owner = state.ProcessId(1, 0.0)  # that number, but another process
    run.record([victim], {})
    alive = state.RunFolder("alive")
    assert [line.split(":")[1].strip() for line in state.clean()] == [f"ended 1 processes, removed {run.path}"]
    assert not psutil.pid_exists(victim) or psutil.Process(victim).status() == psutil.STATUS_ZOMBIE
    assert list(folder.iterdir()) == [alive.path]
    with alive:
        assert state.clean() == []


def test_clean_removes_only_folders_of_runs_that_are_gone(folder: Path) -> None:
    for name in ("documents", ".ssh", "1-notes", "x-abcdefgh"):
        (folder / name).mkdir()
    number = subprocess.Popen(["true"])
    number.wait()
    gone = [folder / f".{number.pid}-abcdefgh", folder / f"{number.pid}-abcdefgh"]
    starting = folder / f".{os.getpid()}-abcdefgh"  # between its making and its state
    for path in (*gone, starting):
        path.mkdir()
    (gone[1] / "state.json").write_text("{")
    assert state.clean() == [f"removed {path}" for path in gone]
    left = {path.name for path in folder.iterdir()}
    assert left == {"documents", ".ssh", "1-notes", "x-abcdefgh", starting.name}


def test_without_root_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(UserError, match="needs root: run p4cc with sudo, or use --world virtual"):
        package.require()


def test_without_mininet_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(package, "_importable", lambda: False)
    monkeypatch.setattr(package, "_TOOLS", {"no-such-tool": "some-package"})
    with pytest.raises(UserError, match=r"apt-get install mininet some-package$"):
        package.require()


def test_where_the_kernel_refuses_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(package, "_importable", lambda: True)
    monkeypatch.setattr(package, "_TOOLS", {})
    monkeypatch.setattr(package, "_refusal", lambda: "Operation not permitted")
    with pytest.raises(UserError, match=r"refused here \(Operation not permitted\): in a container"):
        package.require()


def test_the_command_line_says_it_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(SystemExit) as ended:
        main(["run", "incast", "--world", "mininet"])
    assert ended.value.code == 2
    assert capsys.readouterr().err == (
        "p4cc: error: the Mininet world needs root: run p4cc with sudo, or use --world virtual\n"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--switch", "bmv2"), "--switch: the virtual world has no such option; expected --world mininet with it"),
        (("--dilation", "9"), "--dilation: the virtual world has no such option; expected --world mininet with it"),
    ],
)
def test_options_of_the_other_world_are_refused(arguments: tuple[str, ...], message: str) -> None:
    done = forked("run", "incast", *arguments)
    assert done.returncode == 2
    assert done.stderr == f"p4cc: error: {message}\n"
