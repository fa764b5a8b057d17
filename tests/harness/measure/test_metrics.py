"""Figures computed from recordings."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import topologies
from harness.measure.metrics import (
    empty_network_fct_ns,
    fair_from,
    flows_table,
    jain_index,
    jain_table,
    messages_table,
)
from harness.plan import resolve, scenario
from harness.worlds.virtual import VirtualWorld
from host_agents.lengths import ROCE, TCP, UDP, Lengths
from topologies.model import Neighbour
from topologies.routing import base_rtt_ns, path, transit_ns

links = st.lists(
    st.builds(
        Neighbour, st.just("n"), st.just(1), st.sampled_from([10**9, 10**10, 25 * 10**9, 10**11]), st.integers(0, 2000)
    ),
    min_size=1,
    max_size=6,
)


def send_packets_one_by_one(
    path: list[Neighbour], size: int, mtu: int, lengths: Lengths, more: int, growth: int
) -> float:
    """Return the definition's value: each packet waits for its own arrival and for the packet before it."""
    sizes = [mtu] * ((size - 1) // mtu) + [(size - 1) % mtu + 1]
    arrivals = [0.0] * len(sizes)
    for hop, link in enumerate(path):
        free = 0.0
        for i, payload in enumerate(sizes):
            wire_bytes = max(lengths.least_bytes, lengths.header_bytes + payload + -payload % lengths.align_bytes)
            wire_bytes += more + hop * growth
            free = max(free, arrivals[i]) + wire_bytes * 8e9 / link.rate_bps
            arrivals[i] = free + link.delay_ns
    return arrivals[-1]


@given(
    links,
    st.integers(1, 20_000),
    st.integers(64, 4096),
    st.sampled_from([ROCE, TCP, UDP]),
    st.integers(0, 42),
    st.sampled_from([0, 8]),
)
def test_empty_network_fct_is_that_of_packets_sent_back_to_back(
    path: list[Neighbour], size: int, mtu: int, lengths: Lengths, more: int, growth: int
) -> None:
    expected = send_packets_one_by_one(path, size, mtu, lengths, more, growth)
    assert empty_network_fct_ns(path, size, mtu, lengths.data_bytes, more, growth) == pytest.approx(expected, rel=1e-9)


def test_a_flow_of_one_packet_takes_a_transit() -> None:
    topology = topologies.build("fat-tree", {"k": 4})
    there = path(topology, topology.hosts[0], topology.hosts[-1])
    assert empty_network_fct_ns(there, 1000, 1000, ROCE.data_bytes, 192, 0) == transit_ns(there, 1250)


@given(st.lists(st.floats(0, 1e11), min_size=1, max_size=20))
def test_jain_index_lies_between_1_over_n_and_1(rates: list[float]) -> None:
    index = jain_index(np.array(rates))
    assert 1 / len(rates) - 1e-9 <= index <= 1 + 1e-9 or (math.isnan(index) and not np.square(rates).any())


@pytest.mark.parametrize(
    ("rates", "index"), [([5, 5, 5], 1), ([9, 0, 0], 1 / 3), ([1, 3], 0.8), ([0, 0], math.nan), ([], math.nan)]
)
def test_jain_index(rates: list[float], index: float) -> None:
    assert jain_index(np.array(rates, float)) == pytest.approx(index, nan_ok=True)


def test_fairness_of_nothing_is_empty() -> None:
    flows = pd.DataFrame({"qp": [1, 2], "start_ns": [0, 0], "delivered_ns": [-1, -1]})
    rates = pd.DataFrame({"time_ns": [10, 10, 20, 20], "qp": [1, 2, 1, 2], "throughput_bps": [0.0, 0.0, 1.0, 1.0]})
    assert jain_table(flows, rates, 10)["time_ns"].tolist() == [20]


def test_fairness_counts_flows_that_were_active_throughout_an_interval() -> None:
    flows = pd.DataFrame({"qp": [1, 2, 3], "start_ns": [0, 10, 0], "delivered_ns": [30, 35, -1]})
    rates = pd.DataFrame(
        {
            "time_ns": [10, 10, 20, 20, 20, 30, 30, 30, 40, 40],
            "qp": [1, 3, 1, 2, 3, 1, 2, 3, 2, 3],
            "throughput_bps": [1.0, 3.0, 2.0, 2.0, 2.0, 9.0, 0.0, 0.0, 1.0, 1.0],
        }
    )
    table = jain_table(flows, rates, 10)
    assert table["time_ns"].tolist() == [10, 20, 30]  # at 40 flow 2 was done, and one alone is not compared
    assert table["qps"].tolist() == [2, 3, 3]
    assert table["jain"].tolist() == pytest.approx([0.8, 1.0, 1 / 3])


def test_fair_from_the_first_of_three_samples_over_the_limit_after_the_last_start() -> None:
    times = range(10, 100, 10)
    index = [0.95, 0.95, 0.95, 0.5, 0.92, 0.89, 0.91, 0.95, 0.99]
    jain = pd.DataFrame({"time_ns": times, "jain": index, "qps": range(9, 0, -1)})
    assert fair_from(jain, 0, 10) == (10, 9)
    assert fair_from(jain, 20, 10) == (70, 3)
    assert fair_from(jain, 61, 10) is None
    assert fair_from(jain[:0], 0, 10) is None


def test_a_sample_that_began_before_the_last_start_is_none_of_all_flows() -> None:
    times = range(140, 260, 20)
    jain = pd.DataFrame({"time_ns": times, "jain": [0.95] * 6, "qps": [14, 16, 16, 16, 16, 16]})
    assert fair_from(jain, 130, 20) == (160, 16)
    assert fair_from(jain, 140, 20) == (160, 16)
    assert fair_from(jain, 141, 20) == (180, 16)


def test_each_flow_has_the_base_rtt_of_its_own_path() -> None:
    """Two hosts under one switch have a shorter base RTT than hosts across the network; no RTT is below it."""
    tables: dict[str, Any] = {
        "cc": "dcqcn",
        "topology": {"name": "fat-tree", "k": 4},
        "workload": {"name": "permutation", "size_bytes": 20_000},
        "record": {"rate_interval_ns": 1000},
    }
    (run,) = resolve.plan("x", scenario.check(tables), Path())
    recording = VirtualWorld(run).run()
    flows = flows_table(run, recording, messages_table(run, recording))
    hosts = {host.name: host for host in run.topology.hosts}
    links = {len(path(run.topology, hosts[a], hosts[b])) for a, b in zip(flows.source, flows.destination, strict=True)}
    assert len(links) > 1
    for flow in flows.itertuples():
        ends = hosts[str(flow.source)], hosts[str(flow.destination)]
        data_bytes, ack_bytes = (run.scenario.link_bytes(length) for length in (1_058, 62))
        latency_ns = run.scenario.switch.latency_ns
        assert flow.base_rtt_ns == base_rtt_ns(run.topology, *ends, data_bytes, ack_bytes, latency_ns)
    assert flows["base_rtt_ns"].max() == run.base_rtt_ns()
