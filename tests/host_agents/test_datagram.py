"""UDP: each packet is sent once, at a rate, and a message ends with the answer to its last packet."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from host_agents import wire
from host_agents.messages import Message
from host_agents.qp import QueuePair
from p4cc._link import Trouble, Wire, connect, pair

LINE_BPS = 100e9


def sent(size_bytes: int, loss: float = 0.0, messages: int = 1, **parameters: Any) -> tuple[Any, QueuePair, QueuePair]:
    a, b = pair("udp", parameters, rto_ns=50_000)
    here, there = connect(a, b)
    done: list[Message] = []
    a.on_complete = done.append
    arrivals: list[tuple[int, bytes]] = []

    def note(now_ns: int, frame: bytes) -> bytes:
        arrivals.append((now_ns, frame))
        return frame

    link = Wire(a, b, trouble=Trouble(loss=loss, seed=3), hook=note)
    for _ in range(messages):
        here.post(size_bytes)
    link.run(10_000_000)
    data = [(now_ns, frame) for now_ns, frame in arrivals if frame[wire.BTH] <= wire.SEND_ONLY]
    return (done, data, arrivals), here, there


def test_it_sends_at_its_rate_and_is_answered_once() -> None:
    (done, data, arrivals), here, there = sent(100_000, rate_bps=10e9)
    assert len(data) == 100
    assert len(arrivals) == 101  # with one answer, to the last
    gaps = {later - earlier for (earlier, _), (later, _) in itertools.pairwise(data)}
    assert all(abs(gap - wire.wire_bytes(data[1][1]) * 8 / 10) <= 1 for gap in gaps)
    assert (len(done), there.stats.bytes_delivered, here.stats.bytes_acked) == (1, 100_000, 100_000)
    assert {frame[wire.TOS] & 3 for _, frame in data} == {wire.NOT_ECT}


def test_what_is_lost_is_not_sent_again_but_for_the_end() -> None:
    (done, _data, _), here, there = sent(20_000, loss=0.3, messages=20, rate_bps=50e9)
    assert len(done) == 20
    lost = 20 * 20_000 - there.stats.bytes_delivered
    assert 60_000 < lost < 180_000
    assert here.stats.timeouts == here.stats.packets_retransmitted > 0
    assert here.reaction_point.traffic.inflight_bytes == 0
    assert there.receiver.messages == 20


def test_on_and_off() -> None:
    (done, data, _), _, _ = sent(200_000, rate_bps=10e9, on_ns=20_000, off_ns=30_000)
    assert len(done) == 1
    first_ns = data[0][0]
    phases = {(now_ns - first_ns) % 50_000 for now_ns, _ in data}
    assert max(phases) <= 20_000 + 1_000
    (_, data, _), _, _ = sent(200_000, rate_bps=10e9, on_ns=20_000, off_ns=30_000, exponential=True)
    assert max((now_ns - data[0][0]) % 50_000 for now_ns, _ in data) > 21_000


@pytest.mark.parametrize("size_bytes", [1, 15, 16, 17, 18, 19, 20, 33, 999, 1_000])
def test_frames_are_as_long_as_those_of_udp(size_bytes: int) -> None:
    """Ethernet has 14 bytes, IPv4 20 and UDP 8; the shortest frame has 60 without FCS."""
    (done, data, arrivals), _, there = sent(size_bytes)
    assert [wire.wire_bytes(frame) for _, frame in data] == [max(60, 42 + size_bytes)]
    assert len(wire.materialize(data[0][1])) == max(60, 42 + size_bytes)
    assert (len(done), there.stats.bytes_delivered) == (1, size_bytes)
    assert [wire.wire_bytes(frame) for _, frame in arrivals if frame[wire.BTH] == wire.ACKNOWLEDGE] == [62]


def test_a_short_packet_that_says_too_much_is_malformed() -> None:
    (_, data, _), _, there = sent(5)
    frame = bytearray(data[0][1])
    frame[wire.AFTER_BTH + 1] = 19
    there.nic.receive(20_000_000, bytes(frame))
    assert there.nic.stats.malformed == 1
    assert there.stats.bytes_delivered == 5


@pytest.mark.parametrize(("size_bytes", "told"), [(23, False), (24, True), (1_000, True)])
def test_latency_is_told_where_the_payload_has_room_for_it(size_bytes: int, told: bool) -> None:
    a, b = pair("udp", {}, rto_ns=50_000, stamps=True)
    here, there = connect(a, b)
    here.post(size_bytes)
    Wire(a, b).run(1_000_000)
    assert there.stats.bytes_delivered == size_bytes
    assert (there.stats.max_latency_ns > 0) == told
