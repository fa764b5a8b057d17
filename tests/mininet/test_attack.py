"""An attack in both worlds has the same pieces, benefits the same flows, and gives similar latencies."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from harness.measure.results import Result
from tests.mininet.conftest import Both
from tests.mininet.margins import expected
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
PACKET_NS = 1_100 * 0.8  # of a data packet with telemetry at 10 Gb/s


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
    assert min(victims) > attacker
    assert virtual.flows["max_latency_ns"].max() > 15_000  # of which the links take 3,000
    quantities: tuple[tuple[Callable[[Result], float], float], ...] = (
        (lambda result: result.flows["fct_ns"].iloc[0], 0),
        (lambda result: result.flows["fct_ns"].iloc[1:].sum(), 0),  # one packet decides which of the two comes first
        (lambda result: result.flows["max_latency_ns"].max(), PACKET_NS),  # a packet more or less is ahead
    )
    for quantity, resolution_ns in quantities:
        low_ns, high_ns = expected([str(file)], mininet, quantity, resolution_ns)
        assert low_ns <= quantity(mininet) <= high_ns
