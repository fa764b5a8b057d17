"""The benchmarks measure what they say; their figures are not tested."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping

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


def test_what_pipelines_cost_is_told_and_recorded_as_ratios(monkeypatch: pytest.MonkeyPatch) -> None:
    """To C by hand; when built for tracing, with tracing off; and to a plain frame of ecn.p4."""
    ns = {"ecn": (100.0, 80.0, 101.0), "int": (300.0, 200.0, 315.0), "collective": (120.0, 80.0, 120.0)}

    def measure(loads: Mapping[str, pipeline_cost.Load]) -> dict[str, float]:
        known = {name + what: ns[name][i] for name in ns for i, what in enumerate(("", " by hand", " silent"))}
        return {name: known.get(name, 50.0) for name in loads}

    monkeypatch.setattr(pipeline_cost, "measure", measure)
    told: list[str] = []
    rows = cost.pipelines(cost.QUICK, told.append)
    assert [(row["packets"], row["ns"]) for row in rows[:3]] == [(name, ns[name][0]) for name in ns]
    assert [row["ratio_to_hand_written"] for row in rows[:3]] == [1.25, 1.5, 1.5]
    assert [row["silent_ratio"] for row in rows[:3]] == [1.01, 1.05, 1.0]
    assert [row["ratio_to_ecn"] for row in rows[3:]] == [0.5] * 4
    assert "pipeline int: 3.33 M packets/s, 1.50 x hand-written C" in told
    assert "pipeline dart, a data packet that finds the table full: 50 ns, 0.50 x ecn" in told
