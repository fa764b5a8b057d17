"""The benchmarks measure what they say; their figures are not tested."""

from __future__ import annotations

import subprocess

import pytest

from harness.commands import bench
from harness.measure import cost
from host_agents import registry
from p4switch.engine import pipeline_cost


def test_the_command_offers_the_parts_there_are() -> None:
    assert tuple(cost.PARTS) == bench.PARTS


def test_one_run_of_the_matrix() -> None:
    found = cost.run("eqds", "spray", 2, 20_000)
    assert (found.hosts, found.data_packets) == (2, 40)
    assert found.packet_hops >= 6 * 40  # five switches between the two


def test_one_all_reduce() -> None:
    found = cost.all_reduce("3cpo-fig10", 1)
    assert (found.hosts, found.frames_received) == (64, 2 * 64 * 64 + 2 * 64)


def test_the_matrix_has_every_pair_and_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def measure(protocol: str, k: int, extent: cost.Extent, load_balancer: str) -> cost.EndToEnd:
        if (protocol, load_balancer) == ("sperc", "spray"):
            raise subprocess.CalledProcessError(2, "p4cc", stderr="Traceback\nUserError: by packets\n")
        if (protocol, load_balancer) == ("none", "reps"):
            raise subprocess.TimeoutExpired("p4cc", extent.time_limit_s)
        return cost.EndToEnd(protocol, load_balancer, k, 16, 100, 1000, 0.0, 1e-3, 1 << 20)

    monkeypatch.setattr(cost, "measure", measure)
    told: list[str] = []
    found = cost.matrix(cost.QUICK, told.append)
    pairs = {(protocol, lb) for protocol in registry.protocols() for lb in registry.load_balancers()}
    assert {(row["protocol"], row["load_balancer"]) for row in found} == pairs - {("sperc", "spray"), ("none", "reps")}
    assert len(told) == len(pairs)
    assert "permutation, sperc, spray, k = 4: not measured: UserError: by packets" in told
    assert "permutation, none, reps, k = 4: not measured: took over 120 s" in told
    assert {row["ns_per_packet_hop"] for row in found} == {1000.0}


def test_what_tracing_costs_while_it_is_off_is_told_and_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of each program, as times as long: a pipeline that can tell is to be as fast as one that cannot."""
    speed = {"ecn": (100.0, 80.0), "int": (300.0, 200.0), "collective": (120.0, 80.0)}
    silent = {"ecn": (100.0, 101.0), "int": (300.0, 315.0), "collective": (120.0, 120.0)}
    monkeypatch.setattr(pipeline_cost, "measure", lambda name, _: pipeline_cost.PipelineSpeed(name, *speed[name]))
    monkeypatch.setattr(pipeline_cost, "silent_ns", lambda name, _: silent[name])
    for other in ("contribution_ns", "control_packet_ns", "data_packet_ns"):
        monkeypatch.setattr(pipeline_cost, other, lambda *_: 50.0)
    told: list[str] = []
    rows = [row for row in cost.pipelines(cost.QUICK, told.append) if "silent_ns" in row]
    assert [(row["program"], row["silent_ns"]) for row in rows] == [(name, silent[name][1]) for name in speed]
    assert [row["silent_ratio"] for row in rows] == [1.01, 1.05, 1.0]
    said = [line for line in told if "with tracing off" in line]
    assert [line.split()[1:3] for line in said] == [["ecn:", "1.01"], ["int:", "1.05"], ["collective:", "1.00"]]
