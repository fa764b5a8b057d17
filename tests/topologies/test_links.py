"""Properties of single links in any topology."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import topologies
from p4switch.errors import UserError
from topologies import routing

GBPS = 10**9


def build(name: str, *rules: dict[str, Any], **parameters: Any) -> topologies.Topology:
    return topologies.build(name, {**parameters, "links": list(rules)})


def test_rules_are_for_tiers_patterns_and_single_links() -> None:
    topology = build(
        "fat-tree",
        {"tiers": ["hosts", 0], "rate_bps": 25 * GBPS},
        {"nodes": ["h0-*", "h1-0-2"], "delay_ns": 7},
        {"between": ["spine*", "agg0-1"], "loss": 0.25},
        k=4,
    )
    for link in topology.links:
        host = next((end for end in (link.a, link.b) if end.startswith("h")), "")
        assert link.rate_bps == (25 if host else 100) * GBPS
        assert link.delay_ns == (7 if host.startswith("h0-") or host == "h1-0-2" else 1000)
        lossy = {link.a, link.b} & {"agg0-1"} and any(end.startswith("spine") for end in (link.a, link.b))
        assert link.loss == (0.25 if lossy else 0.0)


def test_the_last_rule_for_a_link_holds_and_ports_know_it() -> None:
    topology = build(
        "single-switch", {"rate_bps": 50 * GBPS}, {"between": ["h0-0-3", "s0"], "rate_bps": 10 * GBPS}, hosts=3
    )
    assert [topology.uplink(host).rate_bps // GBPS for host in topology.hosts] == [50, 10, 50]
    assert {port: there.rate_bps // GBPS for port, there in topology.ports["s0"].items()} == {1: 50, 2: 10, 3: 50}


def test_one_of_parallel_links() -> None:
    topology = build("leaf-spine", {"between": ["leaf0", "spine1"], "parallel": 1, "delay_ns": 5}, links_per_spine=3)
    delays = [link.delay_ns for link in topology.links if {link.a, link.b} == {"leaf0", "spine1"}]
    assert delays == [1000, 5, 1000]


def test_a_nics_own_switch_has_the_hosts_rate_and_the_loss_is_on_the_cable() -> None:
    topology = build("single-switch", {"nodes": ["h*2"], "rate_bps": 25 * GBPS, "loss": 0.1}, nic_switches=True)
    (host,) = (host for host in topology.hosts if host.name == "h0-0-2")
    assert topology.uplink(host).rate_bps == 25 * GBPS
    assert topology.uplink(host).loss == 0
    assert topology.ports["nic-h0-0-2"][2].loss == 0.1


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ({"between": ["tor*", "h*"], "rate_bps": 1e9}, "topology.links.0: topology 'single-switch' has no such link"),
        ({"nodes": ["s0"]}, "should have rate_bps, delay_ns, loss or framing_bytes"),
        ({"loss": 1.0}, "topology.links.0.loss"),
        ({"rate_bps": 0}, "topology.links.0.rate_bps"),
        ({"between": ["s0"], "delay_ns": 1}, "topology.links.0.between"),
        ({"tiers": ["spine", 0], "delay_ns": 1}, "topology.links.0.tiers"),
    ],
)
def test_mistaken_rules(rule: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError) as error:
        build("single-switch", rule)
    assert message in str(error.value)


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 2**32 - 1), st.lists(st.sampled_from([1, 10, 25, 100]), min_size=1, max_size=3))
def test_base_rtts_by_kinds_of_links_are_those_of_the_pairs(seed: int, gbps: list[int]) -> None:
    topology = topologies.build(
        "random", {"seed": seed, "hosts": 8, "rates_bps": [rate * GBPS for rate in gbps], "switches": 4}
    )
    rtts = routing.base_rtts(topology, 1058, 62, 300)
    expected: dict[tuple[int, int], dict[int, int]] = {}
    for a, b in permutations(topology.hosts, 2):
        switches = len(routing.path(topology, a, b)) - 1
        of_pair = expected.setdefault((rtts.kinds[a.index], rtts.kinds[b.index]), {})
        rtt_ns = routing.base_rtt_ns(topology, a, b, 1058, 62, 300)
        of_pair[switches] = max(rtt_ns, of_pair.get(switches, 0))
    found = {
        pair: {switches: rtt for switches, rtt in enumerate(rtts_ns) if rtt} for pair, rtts_ns in rtts.between.items()
    }
    assert found == expected
    for host in topology.hosts:
        assert rtts.rates_bps[rtts.kinds[host.index]] == topology.uplink(host).rate_bps


def test_who_fills_a_link() -> None:
    """A host at 1 Gb/s has the longest base RTT, and can fill only its own link."""
    topology = build("single-switch", {"nodes": ["h0-0-2"], "rate_bps": GBPS}, hosts=4)
    slow, fast, other, _ = topology.hosts
    rtts = routing.base_rtts(topology, 1058, 62)
    assert rtts.filling[None] == routing.base_rtt_ns(topology, fast, other, 1058, 62)
    assert rtts.filling[rtts.kinds[fast.index]] == rtts.filling[None]
    assert rtts.filling[rtts.kinds[slow.index]] == routing.base_rtt_ns(topology, slow, fast, 1058, 62)
    assert max(rtts.by_switches.values()) == rtts.filling[rtts.kinds[slow.index]]
