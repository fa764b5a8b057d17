"""Runs in comparison with results of other simulators on the same files (docs/networks.md describes those runs)."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.plan.resolve import plan
from harness.plan.scenario import check
from harness.worlds.virtual import VirtualWorld
from host_agents.cc.hpcc import HpccParameters

HOSTS = 65  # around one switch
HPCC_NS = {"h2": 36_685_006, "h3": 35_669_855}  # from a flow's start to its last ACK, by its sender


def test_hpccs_sample_flow_by_flow(tmp_path: Path) -> None:
    """HPCC keeps a link's use between eta and 1, so two implementations differ by at most 1 - eta."""
    links = "".join(f"0 {host} 100Gbps 0.001ms 0\n" for host in range(1, HOSTS + 1))
    (tmp_path / "topology.txt").write_text(f"{HOSTS + 1} 1 {HOSTS}\n0\n{links}")
    (tmp_path / "flow.txt").write_text("2\n2 1 3 100 200000000 2\n3 1 3 100 200000000 2\n")
    scenario = {
        "cc": "hpcc",
        "limit_ns": 4_000_000_000,
        "topology": {"name": "ns3", "file": str(tmp_path / "topology.txt")},
        "workload": {"name": "ns3", "file": str(tmp_path / "flow.txt")},
        "record": {"queue_interval_ns": 0, "rate_interval_ns": 0},
    }
    (run,) = plan("sample", check(scenario), tmp_path)
    hosts = run.topology.hosts
    flows = VirtualWorld(run).run().flows
    eta = HpccParameters().eta
    found = {hosts[record.flow.source].name: record.completed_ns - record.flow.start_ns for record in flows}
    assert found == {host: pytest.approx(there_ns, rel=1 - eta) for host, there_ns in HPCC_NS.items()}
