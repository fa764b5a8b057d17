"""An attack in both worlds: the same pieces, the same order of who gains, latencies that agree."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mininet.conftest import Both
from tests.mininet.networks import needs_mininet

SCENARIO = """
title = "An attacker and two victims"
cc = ["dcqcn"]
[topology]
name = "single-switch"
hosts = 4
link_rate_bps = 10e9
[workload]
name = "incast"
senders = 3
starts_together = 3
size_bytes = 200_000
[attack]
kind = "parallel"
hosts = [1]
pieces = 4
[record]
columns = ["max_latency_ns"]
"""


@needs_mininet
def test_an_attack_in_both_worlds(both: Both, tmp_path: Path) -> None:
    file = tmp_path / "attack.toml"
    file.write_text(SCENARIO)
    ((virtual,), (mininet,)) = both(str(file))
    for result in (virtual, mininet):
        assert result.flows["pieces"].tolist() == [4, 1, 1]
        assert result.flows["role"].tolist() == ["attacker", "victim", "victim"]
        pieces = result.table("pieces")
        assert pieces.groupby("flow")["size_bytes"].sum().tolist() == [200_000] * 3
        assert pieces.groupby("flow")["delivered_ns"].max().tolist() == result.flows["delivered_ns"].tolist()
    assert mininet.flows["fct_ns"].tolist() == pytest.approx(virtual.flows["fct_ns"].tolist(), rel=0.15)
    latencies = [result.flows["max_latency_ns"].max() for result in (virtual, mininet)]
    assert latencies[0] > 100_000  # 400 KB of what the others send wait before it
    assert latencies[1] == pytest.approx(latencies[0], rel=0.15)
