"""The benchmarks measure what their names say; their figures are not tested."""

from __future__ import annotations

import math
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, replace
from itertools import chain, cycle, repeat
from pathlib import Path
from typing import Any

import pytest

from harness.plan.resolve import plan
from host_agents import registry
from p4cc.bench import cost
from p4cc.bench.training_cost import KINDS, FlowRun
from p4cc.commands import bench
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
    """Check ratios to C code, to the same program without tracing, to v1model, and to a frame of ecn.p4."""
    ns = {"ecn": (100.0, 80.0, 101.0), "int": (300.0, 200.0, 315.0), "collective": (120.0, 80.0, 120.0)}

    def measure(loads: Mapping[str, pipeline_cost.Load]) -> dict[str, float]:
        known = {name + what: ns[name][i] for name in ns for i, what in enumerate(("", " by hand", " silent"))}
        known |= {"ecn for tna": 150.0, "int for tna": 150.0}
        return {name: known.get(name, 50.0) for name in loads}

    monkeypatch.setattr(pipeline_cost, "measure", measure)
    told: list[str] = []
    rows = cost.pipelines(cost.QUICK, told.append)
    assert [(row["packets"], row["ns"]) for row in rows[:3]] == [(name, ns[name][0]) for name in ns]
    assert [row["ratio_to_hand_written"] for row in rows[:3]] == [1.25, 1.5, 1.5]
    assert [row["silent_ratio"] for row in rows[:3]] == [1.01, 1.05, 1.0]
    assert [row["ratio_to_v1model"] for row in rows[3:5]] == [1.5, 0.5]
    assert [row["ratio_to_ecn"] for row in rows[5:]] == [0.5] * 4
    assert "pipeline int: 3.33 M packets/s, 1.50 x hand-written C" in told
    assert "pipeline ecn for tna: 6.67 M packets/s, 1.50 x as long as for v1model" in told
    assert "pipeline dart, a data packet that finds the table full: 50 ns, 0.50 x ecn" in told


def _flow_runs(slower: Iterator[float]) -> Callable[..., list[dict[str, Any]]]:
    """Return runs of 2 us a packet (the permutation's: 1 us), and 30 us and 4 KiB a flow.

    Two workers take half as long. Each run takes longer by the next of the factors.
    """
    larger = [kind.sizes[1] for kind in KINDS.values()]

    def runs(extent: cost.Extent, function: str, *arguments: Any) -> list[dict[str, Any]]:
        _, _, size, workers, permutation = arguments
        assert (extent.repeats, function) == (1, "flow_run")
        flows, packets = (10, 10_000) if permutation else (1000, 60_000 if size in larger else 20_000)
        cpu_s = packets * (1e-6 if permutation else 2e-6) + (0 if permutation else flows * 30e-6)
        cpu_s *= next(slower)
        return [asdict(FlowRun(flows, packets, cpu_s, cpu_s / workers, 1_000_000, 1_000_000 + 4096 * flows))]

    return runs


def test_packets_and_flows_are_told_apart_by_runs_of_two_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cost, "_runs", _flow_runs(repeat(1.0)))
    told: list[str] = []
    rows = cost.training(cost.QUICK, told.append)
    assert [row["workload"] for row in rows] == list(KINDS)
    for row in rows:
        assert row["us_per_data_packet"] == pytest.approx(2)
        assert row["us_per_flow"] == pytest.approx(30)
        assert row["us_per_flow_error"] is None
        assert row["bytes_per_flow"] == 4096
        assert row["packet_ratio"] == pytest.approx(2)
        assert row["wall_ratio"] == 0.5
    assert "2.00 us a data packet (2.00 x permutation), 30 us and 4.0 KiB a flow besides" in told[0]


def test_the_error_of_a_flows_cost_follows_from_how_much_runs_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    """The small runs take 70 ms, and 0.7 ms more in the second fastest run; the flows take 1.5 small less 0.5 large."""
    rounds = [(1.01, 1.0, 1.0, 1.2, 1.0), (1.0, 1.0, 1.1, 1.3, 1.0)]  # small, permutation, large, small, two workers
    monkeypatch.setattr(cost, "_runs", _flow_runs(cycle(chain.from_iterable(rounds))))
    told: list[str] = []
    row = cost.training(replace(cost.QUICK, repeats=2), told.append)[0]
    assert row["us_per_flow"] == pytest.approx(30)
    assert row["us_per_flow_error"] == pytest.approx(math.hypot(1.5 * 0.7, 0.5 * 15))
    assert "30 ± 8 us" in told[0]


@pytest.mark.parametrize("workload", KINDS)
def test_workloads_of_many_flows_run(workload: str) -> None:
    """The sizes differ in the number of data packets, not of flows."""
    kind = KINDS[workload]
    scenarios = [kind.scenario(kind.quick_k, size) for size in kind.sizes]
    small, large = (plan("x", scenario, Path())[0] for scenario in scenarios)
    assert len(small.traffic().flows) == len(large.traffic().flows) > 0
    if workload == "moe":
        found = cost.flow_run(workload, kind.quick_k, kind.sizes[0], 1, False)
        assert (found.flows, found.data_packets) == (12, 12 * 16)
