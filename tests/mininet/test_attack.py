"""An attack in both worlds: the same pieces, the same order of who gains, latencies that agree."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mininet.conftest import Both
from tests.mininet.networks import needs_mininet

SCENARIO = """
title = "An attacker and two victims"
cc = ["hpcc"] # without luck: under DCQCN random marks decide how far 50 packets of a piece get
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
    attacker, *victims = mininet.flows["fct_ns"]
    expected, *others = virtual.flows["fct_ns"]
    assert attacker == pytest.approx(expected, rel=0.15)
    assert min(victims) > attacker
    assert sum(victims) == pytest.approx(sum(others), rel=0.15)  # one packet decides which of the two comes first
    latencies = [result.flows["max_latency_ns"].max() for result in (virtual, mininet)]
    assert latencies[0] > 15_000  # of which the links take 3,000
    assert latencies[1] == pytest.approx(latencies[0], rel=0.15)
