"""PFC: frames bit by bit, no loss with enough headroom, and reports of storms and deadlocks."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.p4switch.fabric.stub import GBPS, NEVER, Host, Star, balance, columns, examples, frame, load

if TYPE_CHECKING:
    from p4switch.fabric import Fabric

RATE = 100 * GBPS


def headroom(delay_ns: int, reaction_ns: int = 0, mtu: int = 1000, rate_bps: int = RATE) -> int:
    """Return the bytes that may still arrive after the threshold is crossed.

    The pause waits for a frame, is sent and crosses the link, while frames come the other way; the
    peer reacts and ends its frame. The frame that crossed the threshold is added.
    """
    wait_ns = 2 * delay_ns + reaction_ns + (mtu + 60) * 8 * GBPS // rate_bps + 2
    return wait_ns * rate_bps // (8 * GBPS) + 2 * mtu + 60


def incast(n: int, count: int, priority: int = 3, **star: Any) -> Star:
    senders = [Host([(0, frame(i, n, 1000, priority=priority, mark=k)) for k in range(count)], obeys_pfc_of=RATE)
               for i in range(n)]
    return Star([*senders, Host()], **star)


def test_the_frames_are_802_1qbb() -> None:
    from scapy.contrib.mac_control import MACControlClassBasedFlowControl
    from scapy.layers.l2 import Ether

    star = incast(2, 100)
    star.fabric.set_pfc(star.switch, priorities=[3], xoff_bytes=10_000, quanta=500)
    star.run()
    pauses = [data for _, data in star.hosts[0].pauses]
    assert len(pauses) >= 2
    kinds = set()
    for data in pauses:
        assert len(data) == 60
        ether = Ether(data)
        assert (ether.dst, ether.type) == ("01:80:c2:00:00:01", 0x8808)
        pfc = MACControlClassBasedFlowControl(data[14:])
        assert data[14:16] == b"\x01\x01"
        assert [getattr(pfc, f"c{i}_enabled") for i in range(8)] == [int(i == 3) for i in range(8)]
        assert [getattr(pfc, f"c{i}_pause_time") for i in range(8) if i != 3] == [0] * 7
        kinds.add(pfc.c3_pause_time)
    assert kinds == {0, 500}


@pytest.mark.parametrize("n", [2, 16])
def test_lossless_with_headroom_for_the_delay(n: int) -> None:
    need = headroom(1000, reaction_ns=300)
    star = incast(n, 600, buffer_bytes=n * (20_000 + need) + 100_000)
    star.fabric.set_pfc(star.switch, priorities=[3], xoff_bytes=20_000, xon_gap_bytes=2000, headroom_bytes=need)
    star.run()
    terms = balance(star.fabric)
    assert (terms["delivered"], terms["drop_buffer"]) == (600 * n, 0)
    pfc = columns(star.fabric.pfc_stats())
    assert max(pfc["headroom_max_bytes"]) <= need
    assert max(pfc["ingress_max_bytes"]) <= 20_000 + need
    times = [time for time, _ in star.hosts[-1].got]
    assert np.diff(times).max() == 80, "the bottleneck never waits: the threshold covers the way back"


def test_without_headroom_there_is_loss() -> None:
    star = incast(4, 600)
    star.fabric.set_pfc(star.switch, priorities=[3], xoff_bytes=20_000, headroom_bytes=3000)
    star.run()
    assert balance(star.fabric)["drop_buffer"] > 0


def test_a_priority_that_is_not_lossless_is_dropped() -> None:
    star = incast(4, 100, priority=2, queue_bytes=20_000)
    star.fabric.set_pfc(star.switch, priorities=[3], xoff_bytes=2000)
    star.run()
    assert balance(star.fabric)["drop_buffer"] > 0
    assert columns(star.fabric.pfc_stats())["node"] == []


def test_dynamic_threshold_is_lossless() -> None:
    need = headroom(1000)
    star = incast(16, 400, buffer_bytes=17 * need + 300_000)
    star.fabric.set_pfc(star.switch, priorities=[3], alpha=0.125, xon_gap_bytes=2000, headroom_bytes=need)
    star.run()
    terms = balance(star.fabric)
    assert (terms["delivered"], terms["drop_buffer"]) == (6400, 0)
    assert columns(star.fabric.pfc_stats())["pauses_sent"][0] > 0


def two_switches(
    host_frames: list[list[tuple[int, bytes]]], slow_bps: int, **pfc: int
) -> tuple[Fabric, list[Host], int, tuple[int, int]]:
    """Return hosts 0, 1 - switch A (port 9) - (port 9) switch B - hosts 2, 3, where host 2's link is slow."""
    engine = load()
    hosts = [Host(f, obeys_pfc_of=RATE) for f in host_frames]
    network = engine.Fabric()
    for host in hosts:
        network.add_host(host)
    a = network.add_switch(engine.Switch({0: [0], 1: [1], 2: [9], 3: [9]}))
    b = network.add_switch(engine.Switch({0: [9], 1: [9], 2: [2], 3: [3]}))
    for i in range(4):
        network.connect(i, 0, (a, a, b, b)[i], i, rate_bps=slow_bps if i == 2 else RATE, delay_ns=1000)
    link = network.connect(a, 9, b, 9, rate_bps=RATE, delay_ns=1000)
    for node in (a, b):
        network.set_pfc(node, priorities=[3], xoff_bytes=20_000, **pfc)
    return network, hosts, link, (a, b)


def test_a_switch_pauses_its_neighbour_and_victims_wait() -> None:
    slow = [(0, frame(0, 2, 1000, priority=3)) for _ in range(200)]
    other = [(0, frame(1, 3, 1000, priority=5, mark=i)) for i in range(200)]
    network, hosts, _, (a, b) = two_switches([slow, other, [], []], 10 * GBPS)
    network.run()
    terms = balance(network)
    assert terms["delivered"] == 400
    assert terms["drop_buffer"] == 0
    pfc = columns(network.pfc_stats())
    rows = {(node, port): i for i, (node, port) in enumerate(zip(pfc["node"], pfc["port"], strict=True))}
    assert pfc["pauses_sent"][rows[b, 9]] == pfc["pauses_received"][rows[a, 9]] > 0
    assert pfc["resumes_sent"][rows[b, 9]] == pfc["pauses_sent"][rows[b, 9]]
    assert pfc["paused_ns"][rows[a, 9]] > 100_000
    assert pfc["pauses_sent"][rows[a, 0]] > 0, "the pause spreads to the host"
    assert max(time for time, _ in hosts[3].got) < 40_000, "another priority is not paused"


def test_reaction_time_delays_the_pause() -> None:
    slow = [(0, frame(0, 2, 1000, priority=3)) for _ in range(100)]
    most = []
    for reaction_ns in (0, 2000):
        network, _, _, (_, b) = two_switches([slow, [], [], []], 10 * GBPS, reaction_ns=reaction_ns)
        network.run()
        pfc = columns(network.pfc_stats())
        most.append(pfc["ingress_max_bytes"][pfc["node"].index(b)])
    assert most[1] - most[0] == pytest.approx(2000 * (100 - 10) // 8, abs=1000), "a frame is all or nothing"


def test_a_pause_times_out_after_its_quanta() -> None:
    """A host sends one pause frame: 100 quanta of 512 bits at 100 Gb/s are 512 ns."""
    pause = bytes.fromhex("0180c2000001") + b"\x02" * 6 + b"\x88\x08\x01\x01\x00\x08" + b"\x00\x00" * 3 + b"\x00\x64"
    pause += bytes(60 - len(pause))
    sink = Host([(0, pause)])
    star = Star([Host([(0, frame(0, 1, 1000, priority=3)) for _ in range(3)]), sink], delay_ns=0)
    star.fabric.capture(star.links[1])
    star.run()
    paused_at = 5
    assert [time for time, *_ in star.fabric.captured()] == [0, paused_at + 512, paused_at + 592, paused_at + 672]
    pfc = columns(star.fabric.pfc_stats())
    assert (pfc["pauses_received"], pfc["paused_ns"], pfc["longest_ns"]) == ([1], [512], [512])
    assert balance(star.fabric)["pfc_received"] == 1


def test_pauses_are_refreshed_while_the_cause_lasts() -> None:
    """The slow link needs 1 ms; a pause of 1000 quanta lasts 5.12 us, so there are many."""
    slow = [(0, frame(0, 2, 1000, priority=3)) for _ in range(100)]
    network, hosts, _, (_, b) = two_switches([slow, [], [], []], 800_000_000, quanta=1000, xon_gap_bytes=15_000)
    network.run()
    pfc = columns(network.pfc_stats())
    row = pfc["node"].index(b)
    assert pfc["refreshes_sent"][row] > 100
    assert pfc["ingress_max_bytes"][row] <= 20_000 + headroom(1000)
    assert len(hosts[2].got) == 100
    assert columns(network.queue_stats())["dropped_packets"] == [0, 0]


def ring(n: int, count: int, hops: int, **pfc: int) -> tuple[Fabric, list[Host], list[int]]:
    """Return switches in a ring with a host each; host i sends to the one `hops` further on, clockwise."""
    engine = load()
    network = engine.Fabric()
    hosts = [Host([(0, frame(i, (i + hops) % n, 1000, priority=3)) for _ in range(count)], obeys_pfc_of=RATE)
             for i in range(n)]
    for host in hosts:
        network.add_host(host)
    switches = [
        network.add_switch(engine.Switch({j: [0 if j == i else 1] for j in range(n)}), name=f"s{i}") for i in range(n)
    ]
    for i in range(n):
        network.connect(i, 0, switches[i], 0, rate_bps=RATE, delay_ns=1000)
        network.connect(switches[i], 1, switches[(i + 1) % n], 2, rate_bps=RATE, delay_ns=1000)
        network.set_pfc(switches[i], priorities=[3], **pfc)
    return network, hosts, switches


def test_a_cyclic_buffer_dependency_is_found() -> None:
    network, hosts, switches = ring(3, 3000, 2, xoff_bytes=30_000, xon_gap_bytes=2000)
    assert network.run(10_000_000) == "deadlock"
    balance(network)
    [(time, kind, _, queues)] = network.pfc_events()
    assert kind == "deadlock"
    assert time < 1_000_000
    assert sorted(queues) == [(node, 1, 3) for node in switches]
    order = [switches.index(node) for node, _, _ in queues]
    assert all((b - a) % 3 == 1 for a, b in pairwise(order)), "each waits for the next one"
    delivered = sum(len(host.got) for host in hosts)
    network.watch_pfc(stop_on_deadlock=False)
    assert network.run(20_000_000) == "until"
    assert sum(len(host.got) for host in hosts) == delivered < 9000, "and it was one: nothing ever moved again"
    assert [kind for _, kind, _, _ in network.pfc_events()].count("deadlock") == 1


@settings(deadline=None, max_examples=examples(25))
@given(
    n=st.integers(3, 6), hops=st.integers(1, 5), xoff=st.integers(2000, 60_000), gap=st.integers(0, 30_000),
    count=st.integers(100, 1500),
)
def test_what_is_reported_as_deadlock_is_one_and_what_is_one_is_reported(
    n: int, hops: int, xoff: int, gap: int, count: int
) -> None:
    network, hosts, _ = ring(n, count, 1 + hops % (n - 1), xoff_bytes=xoff, xon_gap_bytes=gap)
    network.watch_pfc(interval_ns=20_000, stop_on_deadlock=False)
    network.run(3_000_000)
    balance(network)
    then = sum(len(host.got) for host in hosts)
    found = any(kind == "deadlock" for _, kind, _, _ in network.pfc_events())
    network.run(6_000_000)
    after = sum(len(host.got) for host in hosts)
    assert found == (after < n * count), network.pfc_events()
    assert not found or then == after


def test_a_storm_is_reported_once_for_each_pause() -> None:
    """A host pauses its link permanently."""

    class Mad(Host):
        def next_frame(self, now_ns: int) -> bytes | None:
            if now_ns < self.due:
                return None
            self.due = now_ns + 100_000
            data = bytes.fromhex("0180c2000001") + b"\x02" * 6 + b"\x88\x08\x01\x01\x00\x08"
            return data + bytes(6) + b"\xff\xff" + bytes(34)

        def next_wakeup_ns(self) -> int:
            return self.due

        due = 0

    star = Star([Host([(0, frame(0, 1, 1000, priority=3)) for _ in range(3)]), Mad()])
    star.fabric.watch_pfc(storm_ns=500_000)
    assert star.run(5_000_000) == "until"
    [(time, kind, _, queues)] = star.fabric.pfc_events()
    assert (kind, queues) == ("storm", [(star.switch, 1, 3)])
    assert 500_000 < time < 700_000
    assert columns(star.fabric.pfc_stats())["longest_ns"][-1] > 4_900_000
    assert NEVER > 0


def test_a_busy_network_without_cycles_raises_no_alarm() -> None:
    star = incast(16, 3000)
    star.fabric.set_pfc(star.switch, priorities=[3], xoff_bytes=20_000)
    star.fabric.watch_pfc(interval_ns=1000)
    star.run()
    assert star.fabric.pfc_events() == []


def test_headroom_must_fit_into_the_buffer() -> None:
    star = incast(4, 1, buffer_bytes=100_000)
    with pytest.raises(ValueError, match="headroom"):
        star.fabric.set_pfc(star.switch, priorities=[3], xoff_bytes=1000, headroom_bytes=30_000)
    star.fabric.set_pfc(star.switch, priorities=[3], xoff_bytes=1000, headroom_bytes=20_000)
    with pytest.raises(ValueError, match="headroom"):
        star.fabric.set_pfc(star.switch, priorities=[3, 4], xoff_bytes=1000, headroom_bytes=20_000)


def test_a_packet_counts_in_the_class_it_came_with() -> None:
    """A program moves packets of priority 3 to lane 4; the peers' queues of priority 3 have to stop."""
    lane = {dscp: dscp >> 3 for dscp in range(64)}
    frames = [[(0, frame(i, 2, 1000, priority=4, mark=k)) for k in range(100)] for i in (0, 1)]
    senders = [Host(sent, obeys_pfc_of=RATE) for sent in frames]
    came_with = [3 if priority == 4 else priority for priority in lane.values()]  # as if the switch had turned 3 into 4
    star = Star([*senders, Host()], dscp_classes=came_with)
    star.fabric.set_pfc(star.switch, priorities=[3, 4], xoff_bytes=10_000)
    star.run()
    assert senders[0].pauses
    assert {data[17] for _, data in senders[0].pauses} == {1 << 3}
    held = columns(star.fabric.pfc_stats())
    assert set(held["priority"]) == {3}


def test_lossless_classes_are_paused_each_for_itself() -> None:
    need = headroom(1000)
    frames = [[(0, frame(i, 3, 1000, priority=3 + i % 2, mark=k)) for k in range(300)] for i in range(3)]
    senders = [Host(sent, obeys_pfc_of=RATE) for sent in frames]
    star = Star([*senders, Host()], buffer_bytes=8 * (20_000 + need))
    star.fabric.set_pfc(star.switch, priorities=[3, 4], xoff_bytes=20_000, headroom_bytes=need)
    star.run()
    terms = balance(star.fabric)
    assert (terms["delivered"], terms["drop_buffer"]) == (900, 0)
    assert {data[17] for _, data in senders[0].pauses} == {1 << 3}
    assert {data[17] for _, data in senders[1].pauses} <= {1 << 4}
