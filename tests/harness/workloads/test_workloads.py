"""Workloads: sources, destinations and starts of flows, and flows that start after others."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import topologies
from harness import workloads
from harness.plan.resolve import plan, resolved
from harness.plan.scenario import check, dump, parse
from harness.workloads import Flow, Traffic, base, files
from harness.workloads.poisson import distributions, read_distribution
from p4switch.errors import Doubt, UserError
from tests import margins
from topologies import Topology

TREE = topologies.build("fat-tree", {"k": 4})


def build(name: str, topology: Topology = TREE, seed: int = 1, folder: Path = Path(), **values: object) -> Traffic:
    return workloads.build(name, values, topology, seed, folder)


def play(traffic: Traffic) -> list[Flow]:
    """Return the flows in the order of their starts, if each takes 1 ns for each byte and is alone in the network."""
    waiting = list(traffic.flows)
    started: list[Flow] = []
    while waiting:
        flow = min(waiting, key=lambda f: f.start_ns + f.size_bytes)
        waiting.remove(flow)
        started.append(flow)
        end = flow.start_ns + flow.size_bytes
        waiting += [*traffic.on_delivered(flow, end), *traffic.on_completed(flow, end)]
    return started


@pytest.mark.parametrize(
    ("name", "values"),
    [("incast", {"senders": 15}), ("alltoall", {"hosts": 5, "window": 2}), ("allreduce", {"hosts": 5})],
)
def test_what_all_flows_send_is_known_before(name: str, values: dict[str, Any]) -> None:
    traffic = build(name, **values)
    known = traffic.flow_bytes
    assert known == sum(flow.size_bytes for flow in play(traffic))


def test_incast_starts_two_flows_every_20_us() -> None:
    flows = build("incast", senders=15).flows
    assert [flow.start_ns for flow in flows] == [i // 2 * 20_000 for i in range(15)]
    assert {flow.destination for flow in flows} == {0}
    assert [flow.source for flow in flows] == list(range(1, 16))
    assert {flow.size_bytes for flow in flows} == {1_000_000}


@given(st.integers(0, 1000))
def test_a_permutation_sends_and_receives_once_and_never_to_itself(seed: int) -> None:
    flows = build("permutation", seed=seed).flows
    assert sorted(flow.source for flow in flows) == list(range(16))
    assert sorted(flow.destination for flow in flows) == list(range(16))
    assert all(flow.source != flow.destination for flow in flows)


@given(st.integers(0, 1000), st.sampled_from([("racks", 8), ("pods", 16)]))
def test_a_permutation_may_have_to_leave_racks_or_pods(seed: int, across: tuple[str, int]) -> None:
    where, bits = across
    traffic = build("permutation", seed=seed, across=where, size_bytes=10, first_size_bytes=20)
    place = [int(host.address) >> bits for host in TREE.hosts]
    assert sorted(flow.destination for flow in traffic.flows) == list(range(16))
    assert all(place[flow.source] != place[flow.destination] for flow in traffic.flows)
    assert [flow.size_bytes for flow in traffic.flows] == [20] + 15 * [10]


def test_a_permutation_cannot_leave_the_only_rack() -> None:
    star = topologies.build("single-switch", {"hosts": 5})
    with pytest.raises(UserError, match=r"workload\.across: 5 of 5 hosts share one of the racks"):
        build("permutation", topology=star, across="racks")


def test_incast_from_senders_at_random() -> None:
    flows = build("incast", senders=6, order="random").flows
    sources = [flow.source for flow in flows]
    assert len(set(sources)) == 6
    assert sources != sorted(sources)
    assert 0 not in sources
    assert sources != [flow.source for flow in build("incast", senders=6, order="random", seed=2).flows]


def test_a_ring_of_racks_in_turn_leaves_the_rack_at_every_step() -> None:
    leaves = topologies.build("leaf-spine", {"leaves": 2, "hosts_per_leaf": 3})
    flows = play(build("allreduce", topology=leaves, size_bytes=60, order="racks in turn"))
    rack = [int(host.address) >> 8 for host in leaves.hosts]
    assert all(rack[flow.source] != rack[flow.destination] for flow in flows)
    assert {flow.source for flow in flows} == set(range(6))


def test_random_workloads_depend_on_the_seed_and_on_nothing_else() -> None:
    for name in ("permutation", "poisson"):
        assert build(name, seed=3).flows == build(name, seed=3).flows
        assert build(name, seed=3).flows != build(name, seed=4).flows


def test_all_to_all_has_every_pair_once_and_a_window_of_transfers() -> None:
    traffic = build("alltoall", window=3, size_bytes=10)
    assert Counter(flow.source for flow in traffic.flows) == dict.fromkeys(range(16), 3)
    flows = play(traffic)
    pairs = Counter((flow.source, flow.destination) for flow in flows)
    assert pairs == {(a, b): 1 for a in range(16) for b in range(16) if a != b}
    # 15 transfers in threes, all alike: five rounds.
    assert traffic.summary()["job_completion_ns"] == 5 * 10


def test_ring_all_reduce_takes_2_n_minus_1_steps_of_a_chunk() -> None:
    traffic = build("allreduce", hosts=4, size_bytes=4000)
    flows = play(traffic)
    assert len(flows) == 4 * 6
    assert {flow.size_bytes for flow in flows} == {1000}
    assert traffic.summary()["job_completion_ns"] == 6 * 1000
    assert {(flow.source, flow.destination) for flow in flows} == {(0, 1), (1, 2), (2, 3), (3, 0)}


def test_several_rings_share_the_vector() -> None:
    traffic = build("allreduce", hosts=4, size_bytes=6000, rings=3)
    assert traffic.flow_bytes == 3 * 4 * 6 * 500
    flows = play(traffic)
    assert len(flows) == 3 * 4 * 6
    assert {flow.size_bytes for flow in flows} == {500}
    assert Counter(flow.qp for flow in flows) == {f"{ring} ring{host}": 6 for ring in range(3) for host in range(4)}
    assert traffic.summary()["job_completion_ns"] == 6 * 500
    (unfinished, *_) = build("allreduce", hosts=4, rings=2).flows
    assert unfinished.start_ns == 0
    assert build("allreduce", hosts=4, rings=2).summary()["job_completion_ns"] is None


def test_a_ring_waits_for_the_slowest() -> None:
    traffic = build("allreduce", hosts=2, size_bytes=20)
    first, second = traffic.flows
    assert list(traffic.on_delivered(first, 10)) == []  # host 1 has not sent its own yet
    assert list(traffic.on_completed(first, 12)) == []  # host 0 has not received
    assert [flow.source for flow in traffic.on_delivered(second, 50)] == [0]
    assert [(flow.source, flow.start_ns) for flow in traffic.on_completed(second, 52)] == [(1, 52)]


@pytest.mark.parametrize("name", distributions())
def test_samples_follow_the_distribution(name: str) -> None:
    distribution = read_distribution(name, Path())
    rng = random.Random(1)
    sizes = [distribution.sample(rng.random()) for _ in range(50_000)]
    # The few largest sizes decide a mean: 5% is less than `margins.mean` for two of the distributions.
    assert sum(sizes) / len(sizes) == pytest.approx(
        distribution.mean_bytes, abs=min(0.05 * distribution.mean_bytes, margins.mean(sizes))
    )
    for size, fraction in zip(distribution.sizes, distribution.fractions, strict=True):
        found = sum(s <= size for s in sizes) / len(sizes)
        assert found == pytest.approx(fraction, abs=margins.share(fraction, len(sizes)))


@pytest.mark.parametrize(("u", "size"), [(0.0, 1), (0.5, 100), (0.75, 150), (1.0, 200)])
def test_a_sample_lies_between_two_lines(tmp_path: Path, u: float, size: int) -> None:
    (tmp_path / "d.txt").write_text("0 0\n100 50\n200 100\n")
    assert read_distribution("d.txt", tmp_path).sample(u) == size


def test_where_the_percentage_stays_there_is_no_size(tmp_path: Path) -> None:
    (tmp_path / "d.txt").write_text("19 0\n20 80\n999 80\n1000 100\n")
    distribution = read_distribution("d.txt", tmp_path)
    assert {distribution.sample(u / 1000) for u in range(1, 1001)} == {20, 1000}
    assert distribution.mean_bytes == pytest.approx(0.8 * 19.5 + 0.2 * 999.5)


@pytest.mark.parametrize(
    "text", ["", "0 0\n", "0 0\n1 50\n", "5 10\n9 100\n", "0 0\n9 80\n5 100\n", "0 0\n9 9\n9 9\n11 100\n", "a b\n"]
)
def test_files_that_are_no_distributions(tmp_path: Path, text: str) -> None:
    (tmp_path / "d.txt").write_text(text)
    with pytest.raises(UserError, match=r"d\.txt"):
        read_distribution("d.txt", tmp_path)


def test_poisson_gives_the_load_that_was_asked_for() -> None:
    flows = build("poisson", load=0.4, duration_ns=20_000_000, distribution="storage").flows
    offered = sum(flow.size_bytes for flow in flows) * 8e9 / 20_000_000
    assert offered / (16 * 100e9) == pytest.approx(0.4, rel=0.03)
    assert [flow.start_ns for flow in flows] == sorted(flow.start_ns for flow in flows)
    assert all(flow.source != flow.destination for flow in flows)
    mean_gap = 20_000_000 / len(flows)
    gaps = [b.start_ns - a.start_ns for a, b in itertools.pairwise(flows)]
    longer = 1 / math.e  # share of gaps that are longer than the mean
    found = sum(gap > mean_gap for gap in gaps) / len(gaps)
    assert found == pytest.approx(longer, abs=margins.share(longer, len(gaps)))


CM = """Nodes 16
Connections 4
Triggers 2
# a comment
0->1 id 1 start 2000 size 500 send_done_trigger 1
1->2 id 2 trigger 1 size 600 recv_done_trigger 2
2->3 id 3 trigger 2 size 700
3->4 id 4 start 5000000 size 800
trigger id 1 oneshot
trigger id 2 oneshot
"""


def test_htsim_matrices_start_flows_by_time_and_by_trigger(tmp_path: Path) -> None:
    (tmp_path / "x.cm").write_text(CM)
    traffic = build("htsim", folder=tmp_path, file="x.cm")
    assert [(f.source, f.destination, f.size_bytes, f.start_ns) for f in traffic.flows] == [
        (0, 1, 500, 2),
        (3, 4, 800, 5000),
    ]
    known = traffic.flow_bytes
    started = play(traffic)
    assert [(f.source, f.start_ns) for f in started] == [(0, 2), (1, 502), (2, 1102), (3, 5000)]
    assert known == sum(f.size_bytes for f in started)


def test_a_flow_of_size_0_of_htsim_sends_until_the_run_ends(tmp_path: Path) -> None:
    (tmp_path / "x.cm").write_text("0->1 start 7000 size 0\n")
    (flow,) = build("htsim", folder=tmp_path, file="x.cm").flows
    assert (flow.size_bytes, flow.start_ns, flow.stop_ns) == (base.ENDLESS_BYTES, 7, None)


def test_priorities_of_files_become_classes_if_the_scenario_says_which(tmp_path: Path) -> None:
    (tmp_path / "x.cm").write_text("0->1 start 0 size 1 prio 2\n1->2 start 0 size 1 prio 7\n2->3 start 0 size 1\n")
    (tmp_path / "flow.txt").write_text("2\n0 1 3 100 1 0\n1 2 0 100 1 0\n")
    htsim = build("htsim", folder=tmp_path, file="x.cm", classes={"2": 5, "0": 1}).flows
    ns3 = build("ns3", folder=tmp_path, file="flow.txt", classes={"3": 4}).flows
    assert [flow.priority for flow in htsim] == [5, None, 1]
    assert [flow.priority for flow in ns3] == [4, None]
    assert {flow.priority for flow in build("ns3", folder=tmp_path, file="flow.txt").flows} == {None}
    with pytest.raises(UserError, match="classes"):
        build("ns3", folder=tmp_path, file="flow.txt", classes={"x": 4})


def test_htsim_barriers_wait_for_all(tmp_path: Path) -> None:
    text = "0->1 id 1 start 0 size 5 send_done_trigger 1\n1->2 id 2 start 0 size 9 send_done_trigger 1\n"
    text += "2->3 id 3 trigger 1 size 1\ntrigger id 1 barrier count 2\n"
    (tmp_path / "x.cm").write_text(text)
    assert [f.start_ns for f in play(build("htsim", folder=tmp_path, file="x.cm"))] == [0, 0, 9]


def test_htsim_multishot_starts_one_at_a_time(tmp_path: Path) -> None:
    text = "0->1 id 1 start 0 size 5 send_done_trigger 1\n1->2 id 2 trigger 1 size 9 send_done_trigger 1\n"
    text += "2->3 id 3 trigger 1 size 1\ntrigger id 1 multishot\n"
    (tmp_path / "x.cm").write_text(text)
    assert [f.start_ns for f in play(build("htsim", folder=tmp_path, file="x.cm"))] == [0, 5, 14]


@pytest.mark.parametrize(
    "text",
    [
        "0->99 start 0 size 1",
        "0->1 start 0",
        "0->1 size 1",
        "0->1 start 0 size x",
        "0->1 start 0 size 1 speed 3",
        "0->1 start 0 size 1 trigger 1",
        "0->1 start 0 size 1 send_done_trigger 1",
        "hello",
        "Connections 2\n0->1 start 0 size 1",
        "Failures 1\n0->1 start 0 size 1",
        "0->1 start 0 size 1\nfailure switch_type CORE switch_id 0 link_id 0",
        "0->1 start 0 size 1\nfailure switch_type AGG switch_id 8 link_id 0",
        "0->1 start 0 size 1\nfailure switch_type AGG switch_id 0 link_id 2",
        "0->1 start 0 size 1\nfailure switch_type AGG switch_id 0",
        "trigger id 1",
        "",
    ],
)
def test_htsim_mistakes(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.cm").write_text(text)
    with pytest.raises(UserError) as error:
        build("htsim", folder=tmp_path, file="x.cm")
    assert "\n" not in str(error.value)


def test_ns3_flow_files(tmp_path: Path) -> None:
    (tmp_path / "flow.txt").write_text("2\n2 1 3 100 200000000 2\n3 1 3 100 5 0.0000015\n")
    traffic = build("ns3", folder=tmp_path, file="flow.txt", first_host=1)
    assert [(f.source, f.destination, f.size_bytes, f.start_ns) for f in traffic.flows] == [
        (1, 0, 200_000_000, 2_000_000_000),
        (2, 0, 5, 1500),
    ]


@pytest.mark.parametrize(
    "text", ["", "x", "2\n0 1 3 100 5 0\n", "1\n0 99 3 100 5 0\n", "1\n0 1 3 100 5\n", "1\n0 1 3 1 0 0\n"]
)
def test_ns3_mistakes(tmp_path: Path, text: str) -> None:
    (tmp_path / "flow.txt").write_text(text)
    with pytest.raises(UserError, match=r"flow\.txt"):
        build("ns3", folder=tmp_path, file="flow.txt")


def test_ns3_flow_files_of_packets(tmp_path: Path) -> None:
    (tmp_path / "flow.txt").write_text("1\n2 1 3 10000 2.0 9.5\n")
    (flow,) = build("ns3", folder=tmp_path, file="flow.txt", packet_bytes=1000).flows
    assert (flow.source, flow.destination, flow.size_bytes, flow.start_ns) == (2, 1, 10_000_000, 2_000_000_000)
    with pytest.raises(UserError, match=r"got '2\.0'; of a list with packets.* workload\.packet_bytes"):
        build("ns3", folder=tmp_path, file="flow.txt")
    (tmp_path / "flow.txt").write_text("1\n2 1 3 0 2.0 9.5\n")
    with pytest.raises(UserError, match="expected packets of a flow in bytes from 1"):
        build("ns3", folder=tmp_path, file="flow.txt", packet_bytes=1000)


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(UserError, match="No such file"):
        build("htsim", file="nowhere.cm")


@pytest.mark.parametrize("workload", ["htsim", "ns3"])
def test_a_file_that_never_ends_is_refused(workload: str) -> None:
    star = topologies.build("single-switch", {"hosts": 5})
    with pytest.raises(UserError, match=r"workload\.file: /dev/zero: expected a regular file"):
        workloads.build(workload, {"file": "/dev/zero"}, star, 1, Path("/"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0 0\n0 100", "expected a size over 0"),
        ("0 0\ninf 100", ":2: expected a size"),
        ("-5 0\n5 100", ":1: expected a size"),
        ("0 0\n1e300 100", ":2: expected a size"),
        ("0 nan\n5 100", ":1: expected a size"),
    ],
)
def test_absurd_distributions_are_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "sizes.txt").write_text(text)
    star = topologies.build("single-switch", {"hosts": 5})
    with pytest.raises(UserError, match=message):
        workloads.build("poisson", {"distribution": "sizes.txt"}, star, 1, tmp_path)


def test_streams_may_be_of_messages_and_belong_to_an_incast() -> None:
    flows = build(
        "streams",
        flows=[
            {"name": "long", "source": 1, "destination": 0, "size_bytes": 65_536, "messages": 3},
            {"name": "a", "source": 2, "destination": 0, "size_bytes": 1, "incast": 7},
            {"name": "b", "source": 3, "destination": 0, "size_bytes": 1, "incast": 7},
        ],
    ).flows
    assert [(flow.group, flow.size_bytes) for flow in flows[:3]] == [("long", 65_536)] * 3
    assert len({flow.qp for flow in flows[:3]}) == 1
    assert [flow.incast for flow in flows] == [None, None, None, (7, (2, 3)), (7, (2, 3))]
    with pytest.raises(UserError, match="'long' should have size_bytes, that of each of its messages"):
        build("streams", flows=[{"name": "long", "source": 1, "destination": 0, "stop_ns": 9, "messages": 3}])


def test_an_incast_that_is_announced_has_at_most_255_senders() -> None:
    many = topologies.build("fat-tree", {"k": 12})
    ends = {"name": "a", "destination": 0, "size_bytes": 1, "incast": 1}
    streams = [{**ends, "source": source} for source in range(1, 257)]
    for name, key, values in (
        ("incast-mix", "senders", {"senders": 256}),
        ("incasts", "senders", {"senders": 256, "announced": True}),
        ("streams", "flows", {"flows": streams}),
    ):
        with pytest.raises(UserError, match=rf"^workload\.{key}: an incast of 256 senders; expected at most 255$"):
            build(name, topology=many, **values)
    assert len(build("incasts", topology=many, senders=256, announced=False, background=False, count=1).flows) == 256
    assert len(build("streams", topology=many, flows=streams[1:] + streams[1:]).flows) == 510


def test_incasts_come_one_after_the_other_beside_a_long_flow() -> None:
    given: Any = {"senders": 4, "size_bytes": 100, "interval_ns": 1_000_000, "jitter_ns": 1_000, "count": 3}
    flows = build("incasts", announced=True, **given).flows
    assert [(flow.source, flow.group) for flow in flows if flow.stop_ns is not None] == [(1, "background")]
    starts = sorted((flow.start_ns, flow.source) for flow in flows if flow.group == "incast")
    assert [start // 1_000_000 for start, _ in starts] == [1] * 4 + [2] * 4 + [3] * 4
    assert all(start % 1_000_000 <= 1_000 for start, _ in starts)
    assert {flow.incast for flow in flows if flow.group == "incast"} == {(n, (2, 3, 4, 5)) for n in (1, 2, 3)}
    assert len(build("incasts", background=False, **given).flows) == 12


TENANT = {"name": "a", "hosts": [3, 0, 2, 1], "overlays": [1, 3]}


def test_overlays_at_once_are_rings_over_a_tenants_hosts() -> None:
    flows = build("overlays", tenants=[TENANT], duration_ns=50).flows
    assert [(f.source, f.destination) for f in flows] == [
        *((3, 0), (0, 2), (2, 1), (1, 3)),
        *((3, 1), (0, 3), (2, 0), (1, 2)),
    ]
    assert {(f.start_ns, f.stop_ns, f.group, f.qp) for f in flows} == {(0, 50, "a", None)}


def test_overlays_in_turn_last_for_a_gap_each() -> None:
    flows = build("overlays", tenants=[{**TENANT, "gap_ns": 20}], duration_ns=50).flows
    assert [(f.source, f.destination, f.start_ns, f.stop_ns) for f in flows[::4]] == [
        (3, 0, 0, 20),
        (3, 1, 20, 40),
        (3, 0, 40, 50),
    ]


def test_what_has_a_size_is_sent_in_each_turn_and_goes_on_behind_it() -> None:
    flows = build("overlays", tenants=[{**TENANT, "gap_ns": 20, "size_bytes": 7}], duration_ns=50).flows
    assert [(f.destination, f.size_bytes, f.start_ns, f.stop_ns) for f in flows[::4]] == [
        (0, 7, 0, None),
        (1, 7, 20, None),
        (0, 7, 40, None),
    ]


def test_overlays_of_a_size_have_no_end() -> None:
    other = {"name": "b", "hosts": [4, 5], "size_bytes": 7}
    flows = build("overlays", tenants=[TENANT, other], duration_ns=50).flows
    assert [(f.size_bytes, f.stop_ns) for f in flows if f.group == "b"] == [(7, None)] * 2


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"overlays": [4]}, "tenant 'a' of 4 hosts has overlays 1 to 3"),
        ({"hosts": [1, 1, 2]}, "tenant 'a' should have each host once"),
        ({"hosts": [1, 99]}, "workload.tenants: needs 100 hosts"),
        ({"gap_ns": 0}, "workload.tenants.0.gap_ns"),
    ],
)
def test_overlays_that_cannot_be(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError) as caught:
        build("overlays", tenants=[{**TENANT, "overlays": [1], **changed}], duration_ns=50)
    assert message in str(caught.value)


CLOS_4_TO_1 = topologies.build("clos", {
    "pods": 2, "tors_per_pod": 2, "hosts_per_tor": 8, "aggs_per_pod": 2, "spines_per_agg": 2,
    "link_rate_bps": 10e9, "fabric_rate_bps": 10e9,
})  # fmt: skip


def test_incasts_and_long_flows_load_the_uplinks_as_asked() -> None:
    """Check over 40 ms that 40% of the uplinks are used, 60% of that by short messages."""
    duration_ns = 40_000_000
    mix: Any = {"load": 0.4, "short_share": 0.6, "senders": 5, "duration_ns": duration_ns}
    flows = build("incast-mix", topology=CLOS_4_TO_1, **mix).flows
    rack = [int(host.address) >> 8 for host in CLOS_4_TO_1.hosts]
    leaving = [flow for flow in flows if rack[flow.source] != rack[flow.destination]]
    uplinks_bps = 4 * 2 * 10e9
    total = sum(flow.size_bytes for flow in leaving)
    short = sum(flow.size_bytes for flow in leaving if flow.group == "short")
    assert total * 8e9 / duration_ns / uplinks_bps == pytest.approx(0.4, rel=0.1)
    assert short / total == pytest.approx(0.6, abs=0.06)
    assert {flow.size_bytes for flow in flows} == {2048, 4096, 8192, 1_000_000}


def test_an_incast_is_of_so_many_senders_within_the_jitter() -> None:
    mix: Any = {"short_share": 1.0, "senders": 7, "jitter_ns": 5_000, "short_priority": 4}
    flows = build("incast-mix", topology=CLOS_4_TO_1, **mix).flows
    by_incast: dict[tuple[int, tuple[int, ...]], list[Flow]] = {}
    for flow in flows:
        assert flow.incast is not None
        by_incast.setdefault(flow.incast, []).append(flow)
    for (_, sources), members in by_incast.items():
        assert sorted(flow.source for flow in members) == sorted(sources)
        assert len(members) == 7
        assert len({flow.destination for flow in members}) == 1
        assert max(flow.start_ns for flow in members) - min(flow.start_ns for flow in members) <= 5_000
        assert {flow.priority for flow in members} == {4}


def test_incasts_of_persistent_groups_share_hosts_and_queue_pairs() -> None:
    mix: Any = {"short_share": 1.0, "senders": 5, "duration_ns": 4_000_000}
    flows = build("incast-mix", topology=CLOS_4_TO_1, persistent_groups=3, **mix).flows
    assert len({flow.incast for flow in flows}) > 10
    groups = {(flow.destination, flow.incast[1]) for flow in flows if flow.incast is not None}
    assert len(groups) == 3
    assert {flow.qp for flow in flows} == {"short"}
    drawn = build("incast-mix", topology=CLOS_4_TO_1, **mix).flows
    assert {flow.qp for flow in drawn} == {None}


def test_a_load_of_uplinks_needs_uplinks() -> None:
    star = topologies.build("single-switch", {"hosts": 20})
    with pytest.raises(UserError, match=r"workload\.load: is the load of the uplinks .* 'single-switch' has none"):
        build("incast-mix", topology=star)


# Foreign files: numbers

_LARGE = "1" * 5000
_NO_NUMBERS = ("1e999999", _LARGE, "inf", "nan", "-5000000", "²", "٣", "1_0", "0x1", "+1", "1e31", "--1", "1.2.3", "e5")


@pytest.mark.parametrize("word", _NO_NUMBERS)
def test_what_is_no_number_is_told_with_file_and_line(tmp_path: Path, word: str) -> None:
    """Check that each format reports each place in one line of bounded length."""
    ns3 = ["0", "1", "3", "100", "5", "0"]
    cm = ["0->1", "id", "1", "start", "0", "size", "5", "prio", "1", "send_done_trigger", "1"]
    texts = [("ns3", "flow.txt", f"{word}\n", 1)]
    texts += [("ns3", "flow.txt", f"1\n{' '.join([*ns3[:i], word, *ns3[i + 1 :]])}\n", 2) for i in range(6)]
    texts += [("htsim", "x.cm", " ".join([*cm[:i], word, *cm[i + 1 :]]), 1) for i in (2, 4, 6, 8, 10)]
    texts += [("htsim", "x.cm", f"\n{line}", 2) for line in (f"{word}->1 start 0 size 5", f"Connections {word}")]
    triggers = (f"trigger id 1 barrier count {word}", f"trigger id {word} oneshot")
    texts += [("htsim", "x.cm", line, 1) for line in triggers]
    goal = "num_ranks 2\nrank 0 {{\n{}\n}}\n"
    for line in ("calc {}", "send {}b to 1", "send 1b to {}", "recv 1b from 1 tag {}", "calc 5 cpu {}"):
        texts.append(("goal", "x.goal", goal.format(line.format(word)), 3))
    for workload, file, text, number in texts:
        (tmp_path / file).write_text(text, encoding="utf-8")
        with pytest.raises(UserError) as error:
            build(workload, folder=tmp_path, file=file)
        told = str(error.value)
        assert f"{file}:{number}: " in told, (text[:80], told[:200])
        assert len(told) < 400 + 2 * len(str(tmp_path))
        assert "\n" not in told


@pytest.mark.parametrize("word", ["1e999999", _LARGE, "inf", "-1", "²", "٣", "1_0"])
def test_so_are_those_of_a_distribution(tmp_path: Path, word: str) -> None:
    (tmp_path / "x.txt").write_text(f"1 0\n{word} 100\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"x\.txt:2: expected a size"):
        build("poisson", folder=tmp_path, distribution="x.txt", load=0.1, duration_ns=1000)


@given(st.integers(0, 10**9), st.integers(0, 9), st.integers(-9, 9))
def test_times_are_exact(whole: int, decimal: int, exponent: int) -> None:
    """Compare with fractions, which are exact."""
    word = f"{whole}.{decimal}e{exponent}"
    exact = Fraction(word) * 10**9
    if exact < base.MAX_TIME_NS:
        assert files.time_ns("here", word, Decimal(10**9)) == int(exact)
    else:
        with pytest.raises(UserError, match=r"here: expected a time"):
            files.time_ns("here", word, Decimal(10**9))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("0->0 start 0 size 1", "a flow from host 0 to itself"),
        ("trigger id 1 barrier count 0", "expected a count from 1"),
        ("trigger id 1 barrier", "expected a count from 1"),
        ("trigger id 1 oneshot multishot", "expected 'trigger id N'"),
        ("trigger id 1 oneshot later", "expected 'trigger id N'"),
        ("trigger id 1 oneshot\ntrigger id 1 oneshot", "trigger 1 is declared twice"),
        ("Triggers 2\n0->1 start 0 size 1\ntrigger id 1 oneshot", "says 2 triggers; there are 1"),
        ("Connections 3000000", "expected at most 2000000"),
        ("0->1 start 0 start 1 size 1", "expected pairs"),
        ("0->1 start 0 size", "expected pairs"),
    ],
)
def test_what_htsim_would_not_take_either(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "x.cm").write_text(text)
    with pytest.raises(UserError, match=told):
        build("htsim", folder=tmp_path, file="x.cm")


@pytest.mark.parametrize("words", ["msg size 7", "size 7 msg", "msg 3 size 7", "size 7"])
def test_a_message_may_stand_without_a_number(tmp_path: Path, words: str) -> None:
    (tmp_path / "x.cm").write_text(f"0->1 start 0 {words}")
    (flow,) = build("htsim", folder=tmp_path, file="x.cm").flows
    assert flow.size_bytes == 7


def test_of_more_lines_than_an_ns3_file_says_the_first_are_flows(tmp_path: Path) -> None:
    """Check that further lines are ignored, as in HPCC's simulator; they may be comments."""
    (tmp_path / "flow.txt").write_text("2\n0 1 3 100 5 0\n1 2 3 100 6 0\n\n2 3 3 100 7 0\nwhat was left out\n")
    with pytest.warns(Doubt, match=r"flow\.txt: says 2 flows; 2 more lines are not read"):
        traffic = build("ns3", folder=tmp_path, file="flow.txt")
    assert [flow.size_bytes for flow in traffic.flows] == [5, 6]
    (tmp_path / "flow.txt").write_text("3000000\n0 1 3 100 5 0\n")
    with pytest.raises(UserError, match="expected at most 2000000"):
        build("ns3", folder=tmp_path, file="flow.txt")


def test_comments_without_an_end_are_in_proportion(tmp_path: Path) -> None:
    """Check a million bytes of them: a search for each end up to the last byte would take quadratic time."""
    (tmp_path / "x.goal").write_text("num_ranks 2\n" + "/* " * 500_000)
    with pytest.raises(UserError, match="has no flows"):
        build("goal", folder=tmp_path, file="x.goal")


def test_failures_of_a_matrix_are_link_events(tmp_path: Path) -> None:
    """Check that links are down from the start, and that the resolved scenario lists each once."""
    text = "Failures 2\n0->12 id 1 start 0 size 5000\n"
    text += "failure switch_type AGG switch_id 3 link_id 1\nfailure switch_type AGG switch_id 0 link_id 0\n"
    (tmp_path / "x.cm").write_text(text)
    tables = {
        "cc": ["none", "dcqcn"],
        "topology": {"name": "fat-tree", "k": 4},
        "workload": {"name": "htsim", "file": "x.cm"},
        "events": [{"time_ns": 7, "link": ["tor0-0", "agg0-0"], "up": False}],
    }
    runs = plan("failed", check(tables), tmp_path)
    for run in runs:
        assert [(event.time_ns, event.link, event.up) for event in run.scenario.events] == [
            (0, ["agg1-1", "spine3"], False),  # the second pod's second switch has links to the last two
            (0, ["agg0-0", "spine0"], False),
            (7, ["tor0-0", "agg0-0"], False),
        ]
        assert [change.up for change in run.link_changes()] == [False] * 3
        assert [(change.time_ns, len(change.now)) for change in run.route_changes()] == [(0, 2), (7, 3)]
    (again,) = plan("again", check(parse(dump(resolved(runs[0])))), tmp_path)
    assert again.scenario.events == runs[0].scenario.events
    assert again.scenario.reroute_after_ns == 0


def test_routes_around_failures_of_a_matrix_are_the_scenarios_where_it_says_so(tmp_path: Path) -> None:
    text = "0->12 id 1 start 0 size 5000\nfailure switch_type AGG switch_id 3 link_id 1\n"
    (tmp_path / "x.cm").write_text(text)
    tables = {"topology": {"name": "fat-tree", "k": 4}, "workload": {"name": "htsim", "file": "x.cm"}}
    for written, after_ns in (("none", None), (5, 5)):
        run = plan("failed", check({**tables, "reroute_after_ns": written}), tmp_path)[0]
        assert run.scenario.reroute_after_ns == after_ns
        (again,) = plan("again", check(parse(dump(resolved(run)))), tmp_path)
        assert again.scenario.reroute_after_ns == after_ns
