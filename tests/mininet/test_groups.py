"""Groups with protocols of their own, TCP and UDP among them, on real frames as in the virtual world."""

from __future__ import annotations

from pathlib import Path

from harness.measure.results import Result
from tests.mininet.conftest import Both
from tests.mininet.margins import expected
from tests.mininet.networks import needs_mininet

SCENARIO = """
title = "HPCC, TCP and UDP share a switch"
cc = ["hpcc"]
[topology]
name = "single-switch"
hosts = 4
[workload]
name = "permutation"
size_bytes = 200_000
[[groups]]
name = "tcp"
cc = "tcp-cubic"
priority = 1
workload = { name = "incast", size_bytes = 100_000 }
[[groups]]
name = "udp"
cc = "udp"
parameters = { rate_bps = "20 Gb/s" }
priority = 0
workload = { name = "permutation", size_bytes = 100_000 }
"""


@needs_mininet
def test_groups_are_the_same_in_both_worlds(both: Both, tmp_path: Path) -> None:
    scenario = tmp_path / "groups.toml"
    scenario.write_text(SCENARIO)
    (virtual,), (mininet,) = both(str(scenario))
    for result in (virtual, mininet):
        assert result.summary["conservation"]["balance"] == 0
        assert {name: group["flows_delivered"] for name, group in result.summary["groups"].items()} == {
            "workload": 4,
            "tcp": 3,
            "udp": 4,
        }
    for name in virtual.summary["groups"]:
        def mean_of_group_ns(result: Result, name: str = name) -> float:
            return float(result.summary["groups"][name]["fct_ns"]["mean"])

        low_ns, high_ns = expected([str(scenario)], mininet, mean_of_group_ns)
        assert low_ns <= mean_of_group_ns(mininet) <= high_ns


PLANES = """
title = "two planes, and servers with a NIC in each"
cc = ["hpcc"]
[topology]
name = "multi-plane"
of = { name = "single-switch", hosts = 3 }
[workload]
name = "alltoall"
size_bytes = 50_000
"""


@needs_mininet
def test_servers_with_a_nic_in_each_plane_are_the_same_in_both_worlds(both: Both, tmp_path: Path) -> None:
    scenario = tmp_path / "planes.toml"
    scenario.write_text(PLANES)
    (virtual,), (mininet,) = both(str(scenario))
    for result in (virtual, mininet):
        assert result.summary["flows_delivered"] == result.summary["flows"] == 6
        assert result.summary["conservation"]["balance"] == 0
    ends = [result.flows[["source", "destination"]].to_numpy().tolist() for result in (virtual, mininet)]
    assert sorted(ends[0]) == sorted(ends[1])
