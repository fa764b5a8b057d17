"""Data of a run's page: the numbers of its tables, and a traced flow's packets."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np
import pytest

import topologies
from harness.measure import results
from p4switch.errors import UserError
from reports.replay.network import NO_PART, Network
from reports.replay.pack import packed, unpacked
from reports.replay.packets import HOPS, packets
from reports.replay.recorded import Recorded
from tests.reports.replay.runs import DOWN_NS, TRACED, UP_NS, watched


def test_arrays_come_back_as_they_were_in_as_few_bytes_as_they_need() -> None:
    arrays = {
        "small": np.arange(250),
        "wide": np.array([[0, 70_000], [3, 4]]),
        "below": np.array([-1, 5]),
        "long": np.array([0, 2**40]),
        "broken": np.array([0.5, np.nan]),
        "none": np.empty(0, np.int64),
    }
    head, found = unpacked(packed({"title": "ü"}, arrays))
    assert head == {"title": "ü"}
    assert {name: values.dtype.str for name, values in found.items()} == {
        "small": "|u1", "wide": "<u4", "below": "<i4", "long": "<f8", "broken": "<f8", "none": "|u1",
    }  # fmt: skip
    for name, values in arrays.items():
        np.testing.assert_array_equal(found[name], values.ravel())


def test_a_fat_tree_is_tiers_and_pods() -> None:
    network = Network(topologies.build("fat-tree", {"k": 4}))
    nodes = {name: (tier, pod) for name, tier, pod in network.drawn()["nodes"]}
    assert nodes["h2-1-3"] == (0, 2)
    assert nodes["tor2-1"] == (1, 2)
    assert nodes["agg2-0"] == (2, 2)
    assert network.drawn()["pods"] == 4
    assert nodes["spine1"] == (3, 4)  # a plane: both spines have links to the first aggregation switch of each pod
    assert nodes["spine3"] == (3, 5)


def test_what_differs_above_pods_is_in_no_plane() -> None:
    """Each of two spines has links to other leaves, so they are separate."""
    network = Network(topologies.build("fat-tree", {"k": 4}))
    network.topology = replace(network.topology, links=tuple(
        link for link in network.topology.links if {link.a, link.b} != {"agg0-0", "spine1"}
    ))  # fmt: skip
    nodes = {name: part for name, _, part in network.drawn()["nodes"]}
    assert nodes["spine0"] == nodes["spine1"] == NO_PART
    assert nodes["spine2"] == nodes["spine3"] == 4


def test_a_network_in_one_piece_has_no_pods_and_nic_switches_are_a_tier() -> None:
    for name, values in {"dumbbell": {}, "single-switch": {"hosts": 3, "nic_switches": True}}.items():
        drawn = Network(topologies.build(name, values)).drawn()
        assert {part for _, _, part in drawn["nodes"]} == {NO_PART}
    assert {node: tier for node, tier, _ in drawn["nodes"]}["s0"] == 2


@pytest.mark.parametrize("joined", [1, 4])
def test_numbers_are_those_of_the_tables(joined: int) -> None:
    """Counts of joined intervals add up, and the largest depth is kept."""
    result = watched()
    recorded = Recorded(result)
    found = recorded.arrays(joined)
    links, times = result.table("links"), found["link_time"]
    assert times[-1] == result.summary["end_ns"]
    assert len(times) == -(-links["time_ns"].nunique() // joined)
    assert found["link_interval"].sum() == times[-1]
    assert links["paused_ns"].sum() > 0
    assert links["dropped"].sum() > 0
    row_of = {direction: row for row, direction in enumerate(found["link"])}
    for place, of in links.groupby(["node", "port"], observed=True):
        node, port = cast(tuple[str, int], place)
        row, interval = row_of.pop(recorded.network.direction(node, port)), np.searchsorted(times, of["time_ns"])
        for name in ("tx_bytes", "busy_ns", "paused_ns", "marked", "dropped"):
            expected = np.bincount(interval, of[name], len(times))
            assert found[f"link_{name}"][row].tolist() == expected.tolist()
    assert not row_of
    assert found["queue_depth"].max() == result.queues["depth_bytes"].max() > 0
    assert found["slowdown"].tolist() == result.flows["slowdown"].tolist()


def test_rates_of_joined_intervals_are_their_means(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reports.replay.recorded._MOST_RATES", 1)
    recorded = Recorded(watched())
    one, four = recorded.arrays(1), recorded.arrays(4)
    for found in (one, four):
        times = found["rate_time"]
        assert found["rate_first"].tolist() == [0, *np.flatnonzero(np.diff(times) < 0) + 1, len(times)]
    last_ns = one["rate_time"].max()
    assert last_ns % 4000 == 2000  # the last joined interval is two recorded ones
    assert four["rate_time"].max() == last_ns <= recorded.head(4)["end_ns"]
    covered = (four["rate_time"] - 1) % 4000 // 1000 + 1
    sums = one["rate_throughput_bps"].sum()
    assert (four["rate_throughput_bps"] * covered).sum() == pytest.approx(sums, rel=1e-5)
    assert recorded.head(4)["joined_rates"] == 4


def test_the_head_says_that_few_rates_stay_as_they_are() -> None:
    recorded = Recorded(watched())
    assert (recorded.head(4)["joined"], recorded.head(4)["joined_rates"]) == (4, 1)
    assert recorded.arrays(4)["rate_time"].tolist() == recorded.arrays(1)["rate_time"].tolist()


def test_the_largest_of_joined_samples_holds_where_they_were() -> None:
    recorded = Recorded(watched())
    one, four = recorded.arrays(1), recorded.arrays(4)
    row, sample = np.unravel_index(one["queue_depth"].argmax(), one["queue_depth"].shape)
    shown = np.searchsorted(four["queue_time"], one["queue_time"][sample], side="right") - 1
    assert four["queue_depth"][row, shown] == one["queue_depth"][row, sample] > 0
    assert four["queue_time"].tolist() == one["queue_time"][::4].tolist()


def test_a_table_of_another_network_is_told(tmp_path: Path) -> None:
    result = watched()
    folder = Path(shutil.copytree(result.folder, tmp_path / "run"))
    links = result.table("links").astype({"node": str})
    links.assign(node=links["node"].replace("s0", "s9")).to_parquet(folder / "links.parquet")
    with pytest.raises(UserError, match=r"links\.parquet: damaged: port \d+ of 's9'; expected ports of the topology"):
        Recorded(results.load(folder)).arrays(1)


def test_every_packet_of_the_flow_is_followed_from_host_to_host_or_to_where_it_was_lost() -> None:
    result = watched()
    recorded = Recorded(result)
    trace = packets(result.folder / "trace.jsonl", recorded.network)
    assert trace is not None
    flow = result.flows.iloc[TRACED]
    names = recorded.network.names
    data = [packet for packet in trace.packets if names[packet.events[0][1]] == flow["source"]]
    assert len(data) == flow["packets_sent"]
    ends = []
    for packet in data:
        hops = [(names[node], HOPS[kind]) for _, node, kind, *_ in packet.events if kind < len(HOPS)]
        assert [time for time, *_ in packet.events] == sorted(time for time, *_ in packet.events)
        ends.append(hops[-1])
        if hops[-1] == (flow["destination"], "receive"):
            forwarded = [(switch, what) for switch in ("s1", "s0") for what in ("receive", "enqueue", "transmit")]
            assert hops == [(flow["source"], "send"), *forwarded, hops[-1]]
            told = [trace.texts[text] for *_, text in packet.events]
            assert sum("forwarding.ipv4_lpm: dst_addr=0x0a000002 hits" in text for text in told) == 2
    assert set(ends) == {(flow["destination"], "receive"), ("s1", "drop")}
    lost = [packet for packet, end in zip(data, ends, strict=True) if end[1] == "drop"]
    assert all(DOWN_NS <= packet.events[-1][0] < UP_NS for packet in lost)
    links = result.table("links")
    assert len(lost) == links.loc[links["node"] == "s1", "dropped"].sum()  # no other flow comes by
    arrived = {packet.psn for packet, end in zip(data, ends, strict=True) if end[1] == "receive"}
    assert arrived == set(range(60))


def test_the_packet_that_a_hop_is_told_of_is_the_one_that_its_parser_saw() -> None:
    """PSNs are read at the first switch, and are the same at the second."""
    result = watched()
    network = Recorded(result).network
    lines = [json.loads(line) for line in (result.folder / "trace.jsonl").read_text().splitlines()]
    seen = [
        (line["time_ns"], network.index[line["node"]], int(line["fields"][-1]["value"], 16))
        for line in lines
        if line["event"] == "Extracted" and line["header"] == "hdr.bth"
    ]
    trace = packets(result.folder / "trace.jsonl", network)
    assert trace is not None
    told = [
        (time_ns, node, packet.psn)
        for packet in trace.packets
        for time_ns, node, kind, *_ in packet.events
        if HOPS[kind : kind + 1] == ("receive",) and node >= len(network.topology.hosts)
    ]
    assert sorted(told) == sorted(seen)


def test_a_long_trace_is_cut_at_a_packet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reports.replay.packets.MOST_EVENTS", 100)
    result = watched()
    trace = packets(result.folder / "trace.jsonl", Recorded(result).network)
    assert trace is not None
    assert sum(len(packet.events) for packet in trace.packets) <= 100
    assert trace.left_out > 0


def test_a_damaged_trace_is_told(tmp_path: Path) -> None:
    network = Recorded(watched()).network
    assert packets(tmp_path / "none", network) is None
    lines = (watched().folder / "trace.jsonl").read_text().splitlines()
    sent = lines[0]
    told = next(json.loads(line) for line in lines if json.loads(line)["event"] == "PipelineEntered")
    in_the_middle = json.dumps({**told, "id": 999})
    timeless = json.dumps({**json.loads(sent), "time_ns": "soon"})
    for text in ("{", "[]", '{"node": "s0"}', '{"node": "s9", "event": "send"}', in_the_middle, timeless):
        (tmp_path / "trace.jsonl").write_text(f"{sent}\n{text}\n")
        told = r"trace\.jsonl: damaged: line 2: .*; expected what p4cc run --trace writes"
        with pytest.raises(UserError, match=told):
            packets(tmp_path / "trace.jsonl", network)
