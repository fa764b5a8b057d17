"""Go-back-N and selective repeat: each rule alone, then every byte once and in order under all kinds of faults."""

import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from host_agents import headers, wire
from host_agents.errors import ParameterError
from host_agents.go_back_n import GoBackNSender
from host_agents.messages import Delivery, Message
from host_agents.nic import Nic
from host_agents.qp import QueuePair
from host_agents.selective_repeat import SelectiveRepeatReceiver, SelectiveRepeatSender
from host_agents.sender import ENTRY, INFLIGHT, ORDER
from p4cc._link import Trouble, Wire, connect, pair, trimmed
from tests.host_agents.narrow import due_frame, of_kind, replace_method

RELIABILITIES = ("go-back-n", "selective-repeat")


def psn_of(frame: bytes) -> int:
    return int.from_bytes(frame[51:54], "big")


def drain(nic: Nic, now_ns: int) -> list[bytes]:
    """Return all packets that the NIC may send now. Its link is infinitely fast; a paced NIC sends one packet."""
    out = []
    while (frame := nic.next_frame(now_ns)) is not None:
        out.append(frame)
    return out


def send(nic: Nic, count: int, now_ns: int = 0) -> tuple[list[bytes], int]:
    """Return the next `count` data frames, and the time after them."""
    frames = []
    for _ in range(count):
        frames.append(due_frame(nic, now_ns))
        now_ns += 100
    return frames, now_ns


def marked(frame: bytes) -> bytes:
    out = bytearray(frame)
    out[wire.TOS] |= 3
    return wire.checksummed(out)


class TestEcho:
    """An ACK for every fourth packet. Marked arrivals are `x`, unmarked ones `o`, and lost packets `-`."""

    @staticmethod
    def arrive(reliability: str, fates: str) -> tuple[Nic, QueuePair, Nic, list[bytes]]:
        a, b = pair(ack_every_packets=4, reliability=reliability)
        qa, _ = connect(a, b)
        qa.post(1000 * len(fates))
        frames, now = send(a, len(fates))
        for frame, fate in zip(frames, fates, strict=True):
            now += 1000
            if fate != "-":
                b.receive(now, marked(frame) if fate == "x" else frame)
        return a, qa, b, drain(b, now)

    @staticmethod
    def told(answers: Sequence[bytes]) -> list[tuple[int, bool]]:
        """Return PSN and mark."""
        return [(psn_of(answer), answer[wire.BECN] & 0x40 != 0) for answer in answers]

    @pytest.mark.parametrize("reliability", RELIABILITIES)
    def test_as_many_bytes_are_acknowledged_with_a_mark_as_were_marked(self, reliability: str) -> None:
        a, qa, _, answers = self.arrive(reliability, "xxxoxxxo")
        assert self.told(answers) == [(2, True), (3, False), (6, True), (7, False)]
        acked = []
        for answer in answers:
            before = qa.stats.bytes_acked
            a.receive(20_000, answer)
            acked.append(qa.stats.bytes_acked - before)
        assert acked == [3000, 1000, 3000, 1000]

    @pytest.mark.parametrize("reliability", RELIABILITIES)
    def test_as_few_acks_as_ever_while_all_packets_are_alike(self, reliability: str) -> None:
        for fate in "xo":
            assert self.told(self.arrive(reliability, fate * 8)[3]) == [(3, fate == "x"), (7, fate == "x")]

    def test_what_arrives_out_of_order_does_not_speak_for_those_that_wait(self) -> None:
        assert self.told(self.arrive("go-back-n", "xx-oo")[3]) == [(1, True), (2, False)]  # the NAK is for packet 2
        assert self.told(self.arrive("selective-repeat", "xx-oo")[3]) == [(1, True), (3, False), (4, False)]
        assert self.told(self.arrive("selective-repeat", "xx-x")[3]) == [(3, True)]

    @pytest.mark.parametrize("reliability", RELIABILITIES)
    @pytest.mark.parametrize("again", [marked, trimmed])
    def test_nor_does_a_duplicate(self, reliability: str, again: Callable[[bytes], bytes]) -> None:
        a, b = pair(ack_every_packets=4, reliability=reliability)
        qa, _ = connect(a, b)
        qa.post(8000)
        frames, now = send(a, 2)
        for frame in (*frames, again(frames[0])):
            b.receive(now, frame)
        if again is marked or reliability == "selective-repeat":
            assert [mark for _, mark in self.told(drain(b, now))] == [False, True]
        else:
            assert drain(b, now) == []

    @pytest.mark.parametrize("reliability", RELIABILITIES)
    def test_the_rtt_of_a_packet_whose_ack_has_waited_is_not_known(self, reliability: str) -> None:
        a, qa, _, answers = self.arrive(reliability, "xxxoxxxo")
        rtts = []
        for answer in answers:
            a.receive(20_000, answer)
            rtts.append(qa.take_rtt_ns())
        assert [rtt > 0 for rtt in rtts] == [False, True, False, True]

    @pytest.mark.parametrize("reliability", RELIABILITIES)
    def test_no_packet_waits_for_its_ack_longer_than_a_base_rtt(self, reliability: str) -> None:
        a, b = pair(ack_every_packets=4, reliability=reliability, base_rtt_ns=5_000)
        qa, _ = connect(a, b)
        qa.post(8000)
        frames, _ = send(a, 7)
        for now, frame in enumerate(frames[:3]):
            b.receive(now, frame)
        assert b.next_wakeup_ns() == 5_000
        assert drain(b, 4_999) == []
        assert self.told(drain(b, 5_000)) == [(2, False)]
        b.receive(6_000, frames[3])  # which asks
        b.receive(7_000, frames[4])
        assert self.told(drain(b, 11_000)) == [(3, False)]
        b.receive(11_500, frames[5])
        (late,) = drain(b, 12_000)
        assert psn_of(late) == 5
        a.receive(13_000, late)
        assert qa.stats.bytes_acked == 6_000
        assert qa.take_rtt_ns() == -1  # its answer has waited

    @pytest.mark.parametrize("reliability", RELIABILITIES)
    def test_a_slow_flow_has_no_more_acks_if_packets_may_wait_for_longer(self, reliability: str) -> None:
        a, b = pair(ack_every_packets=4, reliability=reliability, base_rtt_ns=5_000, ack_wait_ns=20_000)
        qa, _ = connect(a, b)
        qa.post(8000)
        frames, _ = send(a, 6)
        for place, frame in enumerate(frames[:3]):
            b.receive(6_000 * place, frame)
            assert drain(b, 6_000 * place + 5_999) == []
        b.receive(18_000, frames[3])
        assert self.told(drain(b, 18_000)) == [(3, False)]
        b.receive(24_000, frames[4])
        assert drain(b, 43_999) == []
        assert self.told(drain(b, 44_000)) == [(4, False)]

    @pytest.mark.parametrize("reliability", RELIABILITIES)
    @pytest.mark.parametrize(("ack_wait_ns", "requests"), [(None, [0, 0, 0]), (20_000, [0, 0, 1])])
    def test_the_packet_that_uses_up_the_window_requests_an_ack_that_may_wait(
        self, reliability: str, ack_wait_ns: int | None, requests: list[int]
    ) -> None:
        """If such packets always requested one, senders that wait for ACKs would get one for almost each packet."""
        a, b = pair(ack_every_packets=4, reliability=reliability, ack_wait_ns=ack_wait_ns)
        qa, _ = connect(a, b)
        qa.reaction_point.window_bytes = 3 * 1058.0
        qa.post(8000)
        frames, _ = send(a, 3)
        assert drain(a, 10_000) == []
        assert [frame[wire.ACK_PSN] >> 7 for frame in frames] == requests

    @pytest.mark.parametrize("reliability", RELIABILITIES)
    def test_nothing_is_answered_for_a_queue_pair_that_is_closed(self, reliability: str) -> None:
        a, b = pair(ack_every_packets=4, reliability=reliability, base_rtt_ns=5_000)
        qa, qb = connect(a, b)
        qa.post(8000)
        frames, _ = send(a, 1)
        b.receive(0, frames[0])
        b.close_qp(qb)
        assert b.next_wakeup_ns() == 1 << 61
        assert drain(b, 10_000) == []


class TestCoalescedSacks:
    """An ACK for every n-th packet, on several paths, so that an early arrival does not mean a loss."""

    @staticmethod
    def arrive(order: Iterable[int], count: int, **config: Any) -> list[tuple[int, int]]:
        """Deliver packets of one message in this order (`x`: marked); return PSNs and first missing PSNs of SACKs."""
        a, b = pair(reliability="selective-repeat", **{"loss_packets": 0, "ack_every_packets": 4} | config)
        qa, qb = connect(a, b)
        qa.post(1000 * count)
        frames, now = send(a, count)
        for number in order:
            now += 1000
            b.receive(now, frames[number] if number >= 0 else marked(frames[-number]))
        sacks = drain(b, now)
        assert qb.stats.acks_sent == len(sacks)
        return [(psn_of(sack), int.from_bytes(sack[58:61], "big")) for sack in sacks]

    def test_early_packets_wait_unless_they_ask(self) -> None:
        assert self.arrive([1, 2, 0, 4, 3], 8) == [(3, 5)]
        assert self.arrive([3, 0, 1], 8) == [(3, 0)]

    def test_what_asked_early_is_answered_again_when_it_is_delivered(self) -> None:
        assert self.arrive([3, 0, 2, 1], 8) == [(3, 0), (1, 4)]
        assert self.arrive([3, 7, 0, 2, 1], 9) == [(3, 0), (7, 0), (1, 4)]  # though a later one has asked, too
        assert self.arrive([7, 0, 1, 2, 3, 4, 5, 6], 8) == [(7, 0), (3, 4), (6, 8)]

    def test_what_one_map_cannot_name_with_all_that_waits_is_answered_at_once(self) -> None:
        assert self.arrive([80], 100) == []
        assert self.arrive([2, 65], 100) == []
        assert self.arrive([2, 66], 100) == [(66, 0)]
        assert self.arrive([65, 2], 100) == []
        assert self.arrive([66, 2], 100) == [(2, 0)]

    def test_those_that_wait_are_answered_where_marks_begin_or_end(self) -> None:
        assert self.arrive([1, -2, 4, 5], 8) == [(1, 0), (2, 0)]
        assert self.arrive([0, 2, -4, -1], 8) == [(2, 1)]
        assert self.arrive([1, 2, -3], 8) == [(2, 0), (3, 0)]

    def test_elsewhere_each_is_answered_at_once(self) -> None:
        order = [1, 2, 0, 4, 3]
        assert len(self.arrive(order, 8, loss_packets=3)) == 5
        assert len(self.arrive(order, 8, ack_every_packets=1)) == 5

    @pytest.mark.parametrize("seed", range(5))
    def test_two_sacks_for_n_packets_at_most(self, seed: int) -> None:
        rng = random.Random(seed)
        order = sorted(range(64), key=lambda number: number + rng.random() * 6)
        assert order != sorted(order)
        assert len(self.arrive(order, 64)) <= 64 * 2 // 4

    @settings(max_examples=150, deadline=None)
    @given(
        sizes=st.lists(st.integers(0, 60_000), min_size=1, max_size=4),
        ack_every_packets=st.sampled_from([1, 2, 4, 7, 64]),
        spread=st.sampled_from([1, 4, 30, 300]),
        cut=st.sampled_from([0.0, 0.1, 0.6]),
        marks=st.sampled_from([0.0, 0.1, 0.5]),
        rng=st.randoms(use_true_random=False),
    )
    def test_all_is_acknowledged_in_time_in_any_order_of_arrival(
        self, sizes: list[int], ack_every_packets: int, spread: int, cut: float, marks: float, rng: random.Random
    ) -> None:
        a, b = pair(reliability="selective-repeat", loss_packets=0, ack_every_packets=ack_every_packets, rto_ns=1 << 39)
        qa, qb = connect(a, b)
        completed: list[Message] = []
        a.on_complete = completed.append
        told = []
        replace_method(
            qa.reaction_point, "on_ack", lambda feedback: told.append((feedback.marked, feedback.acked_bytes))
        )
        for size in sizes:
            qa.post(size)
        on_the_way = []
        now = marked_bytes = 0
        while True:
            while (frame := a.next_frame(now)) is not None:
                on_the_way.append((now, frame))
                now += 100
            if not on_the_way:
                break
            sent_ns, frame = on_the_way.pop(rng.randrange(min(spread, len(on_the_way))))
            now += 1
            if rng.random() < cut:
                b.receive(now, trimmed(frame))
            elif rng.random() < marks:
                marked_bytes += wire.wire_bytes(frame)
                b.receive(now, marked(frame))
            else:
                b.receive(now, frame)
            for answer in drain(b, now):
                a.receive(now, answer)
                assert qa.take_rtt_ns() in (-1, now - sent_ns)  # of what has just arrived
        assert [message.size_bytes for message in completed] == sizes
        assert qa.stats.timeouts == qa.inflight_bytes == 0
        assert b.next_frame(now + 10_000_000) is None  # nothing waits for its ACK
        assert a.next_wakeup_ns() == b.next_wakeup_ns() == 1 << 61
        assert qb.stats.bytes_delivered == qa.stats.bytes_acked == sum(sizes)
        assert sum(acked_bytes for mark, acked_bytes in told if mark) == marked_bytes


PACKET = 1058  # bytes of a frame with 1000 of payload


class TestAcksByBytes:
    """An ACK for the bytes of 4 packets, on several paths (Ultra Ethernet)."""

    @staticmethod
    def opened(**config: Any) -> tuple[Nic, QueuePair, Nic, QueuePair]:
        a, b = pair(
            reliability="selective-repeat",
            **{"loss_packets": 0, "ack_every_bytes": 4 * PACKET - 100} | config,
        )
        qa, qb = connect(a, b)
        return a, qa, b, qb

    def arrive(self, order: Iterable[int], count: int, **config: Any) -> list[tuple[int, int, bool]]:
        """Deliver packets like `TestCoalescedSacks`; SACKs also report which were marked."""
        a, qa, b, _ = self.opened(**config)
        qa.post(1000 * count)
        frames, now = send(a, count)
        for number in order:
            now += 1000
            b.receive(now, frames[number] if number >= 0 else marked(frames[-number]))
        return [
            (psn_of(sack), int.from_bytes(sack[58:61], "big"), sack[wire.BECN] & 0x40 != 0)
            for sack in drain(b, now)
        ]

    def test_the_first_and_then_every_fourth_full_packet_are_answered(self) -> None:
        assert self.arrive(range(12), 20) == [(0, 1, False), (4, 5, False), (8, 9, False)]

    def test_a_marked_packet_is_answered_at_once_and_its_mark_is_for_it_alone(self) -> None:
        told = self.arrive([0, 1, -2, 3, 4, 5, 6, 7], 20)
        assert told == [(0, 1, False), (2, 3, True), (6, 7, False)]

    def test_the_last_packet_that_waits_to_be_sent_asks_for_an_answer(self) -> None:
        assert self.arrive([0, 1, 2], 3) == [(0, 1, False), (2, 3, False)]

    def test_early_packets_count_and_a_duplicate_is_answered_at_once(self) -> None:
        assert self.arrive([0, 5, 6, 7, 8], 20) == [(0, 1, False), (8, 1, False)]
        assert self.arrive([0, 5, 5], 20) == [(0, 1, False), (5, 1, False)]

    @pytest.mark.parametrize(
        ("order", "answers"),
        [
            ([0, 3, 5, 1, 2, 7, 4, 6], [(0, 1), (3, 1), (6, 8)]),  # the request is delivered before the last gap
            ([0, 1, 2, 5, 7, 3, 4, 6], [(0, 1), (3, 4), (6, 8)]),  # it fills a gap itself
        ],
    )
    def test_a_request_is_answered_again_once_no_packet_is_held_early(
        self, order: list[int], answers: list[tuple[int, int]]
    ) -> None:
        a, qa, b, _ = self.opened(ack_every_bytes=20 * PACKET)
        qa.post(20_000)
        qa.reaction_point.set_window(3.5 * PACKET)  # packet 3 asks, as it is the last of its window
        frames, now = send(a, 4)
        qa.reaction_point.set_window(100.0 * PACKET)
        frames += send(a, 4, now)[0]
        for number in order:
            b.receive(now, frames[number])
        assert [(psn_of(sack), int.from_bytes(sack[58:61], "big")) for sack in drain(b, now)] == answers

    def test_messages_that_wait_are_answered_together(self) -> None:
        a, qa, b, _ = self.opened()
        for _ in range(8):
            qa.post(1000)
        frames, now = send(a, 8)
        for frame in frames:
            b.receive(now, frame)
        assert [psn_of(sack) for sack in drain(b, now)] == [0, 4, 7]

    def test_a_packet_that_uses_the_window_up_asks_for_an_answer(self) -> None:
        a, qa, _, _ = self.opened()
        qa.post(20_000)
        qa.reaction_point.set_window(2.5 * PACKET)
        frames, _ = send(a, 3)
        assert [frame[wire.ACK_PSN] & 0x80 != 0 for frame in frames] == [False, False, True]

    def test_a_packet_that_is_sent_again_asks_for_an_answer(self) -> None:
        a, qa, b, _ = self.opened()
        qa.post(20_000)
        frames, now = send(a, 5)
        b.receive(now, frames[0])
        b.receive(now, trimmed(frames[1]))
        for answer in drain(b, now):
            a.receive(now, answer)
        (again,), _ = send(a, 1, now)
        assert (psn_of(again), again[wire.ACK_PSN] & 0x80) == (1, 0x80)

    def test_what_waits_for_a_base_rtt_is_answered_and_no_packet_has_caused_it(self) -> None:
        """Such an answer gives no RTT, which would be too long, and no path."""
        a, qa, b, _ = self.opened(base_rtt_ns=5_000)
        qa.post(20_000)
        frames, now = send(a, 3)
        for frame in frames:
            b.receive(now, frame)
        a.receive(now + 10, drain(b, now)[0])
        assert qa.take_rtt_ns() > 0
        (answer,) = drain(b, now + 5_000)
        assert (psn_of(answer), int.from_bytes(answer[58:61], "big")) == (3, 3)
        told = []
        replace_method(qa.reaction_point, "on_ack", lambda feedback: told.append(
            (feedback.rtt_ns, feedback.acked_bytes, feedback.unsolicited)
        ))
        a.receive(now + 5_010, answer)
        assert told == [(-1, 2 * PACKET, True)]
        assert qa.stats.bytes_acked == 3000

    @settings(max_examples=100, deadline=None)
    @given(
        sizes=st.lists(st.integers(0, 60_000), min_size=1, max_size=4),
        ack_every_bytes=st.sampled_from([1, 2 * PACKET, 16_384, 200_000]),
        window_packets=st.sampled_from([1, 3, 1000]),
        spread=st.sampled_from([1, 4, 30, 300]),
        cut=st.sampled_from([0.0, 0.1, 0.6]),
        marks=st.sampled_from([0.0, 0.1, 0.5]),
        rng=st.randoms(use_true_random=False),
    )
    def test_all_is_acknowledged_before_the_timer_and_rtts_are_those_of_what_came_last(
        self,
        sizes: list[int],
        ack_every_bytes: int,
        window_packets: int,
        spread: int,
        cut: float,
        marks: float,
        rng: random.Random,
    ) -> None:
        a, qa, b, qb = self.opened(
            ack_every_bytes=ack_every_bytes, rto_ns=1 << 39, base_rtt_ns=1 << 38
        )
        qa.reaction_point.set_window(window_packets * PACKET)
        told = []
        replace_method(qa.reaction_point, "on_ack", lambda feedback: told.append(feedback.acked_bytes))
        for size in sizes:
            qa.post(size)
        on_the_way = []
        now = sent_bytes = 0
        while True:
            while (frame := a.next_frame(now)) is not None:
                assert qa.inflight_bytes < (window_packets + 1) * PACKET
                on_the_way.append((now, frame))
                now += 100
            if not on_the_way:
                break
            sent_ns, frame = on_the_way.pop(rng.randrange(min(spread, len(on_the_way))))
            now += 1
            if rng.random() < cut:
                b.receive(now, trimmed(frame))
            else:
                sent_bytes += wire.wire_bytes(frame)
                b.receive(now, marked(frame) if rng.random() < marks else frame)
            for answer in drain(b, now):
                a.receive(now, answer)
                assert qa.take_rtt_ns() in (-1, now - sent_ns)
        assert qa.stats.timeouts == qa.inflight_bytes == 0
        assert qb.stats.bytes_delivered == qa.stats.bytes_acked == sum(sizes)
        assert sum(told) == sent_bytes

    def test_it_needs_selective_repeat(self) -> None:
        with pytest.raises(ParameterError, match="ack_every_bytes 5 with go-back-n: expected 0, or"):
            pair(ack_every_bytes=5)


class TestNack:
    """Content of a NACK about the trimmed packet."""

    @pytest.mark.parametrize("last_hop", [False, True])
    @pytest.mark.parametrize("mark", [False, True])
    def test_mark_and_last_hop_reach_the_reaction_point_and_the_load_balancer(self, mark: bool, last_hop: bool) -> None:
        a, b = pair(reliability="selective-repeat", loss_packets=0, last_hop_dscp=50)
        qa, _ = connect(a, b)
        told, paths = [], []
        replace_method(qa.reaction_point, "on_trimmed", lambda cut: told.append(
            (cut.now_ns, cut.wire_bytes, cut.rtt_ns, cut.marked, cut.last_hop)
        ))
        replace_method(qa.load_balancer, "on_ack", lambda now_ns, entropy, marked: paths.append(("ack", marked)))
        replace_method(qa.load_balancer, "on_nack", lambda now_ns, entropy: paths.append(("nack", False)))
        qa.post(5000)
        frames, _ = send(a, 1)
        cut = bytearray(trimmed(marked(frames[0]) if mark else frames[0]))
        cut[wire.TOS] = (50 if last_hop else 49) << 2 | cut[wire.TOS] & 3
        b.receive(1_000, wire.checksummed(cut))
        (nack,) = drain(b, 1_000)
        a.receive(7_000, nack)
        assert told == [(7_000, PACKET, 7_000, mark, last_hop)]
        assert paths == [("ack", mark) if last_hop else ("nack", False)]

    def test_the_rtt_of_a_packet_that_was_sent_twice_is_not_known(self) -> None:
        a, b = pair(reliability="selective-repeat", loss_packets=0)
        qa, _ = connect(a, b)
        told = []
        replace_method(qa.reaction_point, "on_trimmed", lambda cut: told.append(cut.rtt_ns))
        qa.post(1000)
        for now in (0, 10_000):
            frames, _ = send(a, 1, now)
            b.receive(now + 1_000, trimmed(frames[0]))
            a.receive(now + 2_000, drain(b, now + 1_000)[0])
        assert told == [2_000, -1]


class TestGoBackN:
    def test_packets_of_a_message(self) -> None:
        a, b = pair()
        qa, _ = connect(a, b)
        for size in (2500, 800, 0):
            qa.post(size)
        frames, _ = send(a, 5)
        assert [f[wire.BTH] for f in frames] == [0, 1, 2, 4, 4]  # first, middle, last, only, only
        assert [psn_of(f) for f in frames] == [0, 1, 2, 3, 4]
        assert [wire.wire_bytes(f) - 58 for f in frames] == [1000, 1000, 500, 800, 0]
        assert drain(a, 10_000) == []

    def test_an_ack_for_every_packet(self) -> None:
        a, b = pair()
        qa, _ = connect(a, b)
        qa.post(3000)
        frames, _ = send(a, 3)
        for frame in frames:
            b.receive(1000, frame)
        assert [psn_of(f) for f in drain(b, 1000)] == [0, 1, 2]

    def test_an_ack_for_every_third_packet_and_the_last(self) -> None:
        a, b = pair(ack_every_packets=3)
        qa, _ = connect(a, b)
        qa.post(8000)
        frames, _ = send(a, 8)
        for frame in frames:
            b.receive(1000, frame)
        assert [psn_of(f) for f in drain(b, 1000)] == [2, 5, 7]
        for frame in drain(b, 1000):
            a.receive(2000, frame)

    def test_one_nak_for_a_gap_then_everything_again(self) -> None:
        a, b = pair()
        qa, qb = connect(a, b)
        qa.post(10_000)
        frames, now = send(a, 6)
        for frame in (frames[0], frames[2], frames[3], frames[4]):  # 1 is lost, 5 is on its way
            b.receive(now, frame)
        ack, nak = drain(b, now)
        assert (psn_of(ack), ack[54]) == (0, 0x1F)
        assert (psn_of(nak), nak[54]) == (1, 0x60)
        assert qb.stats.out_of_order == 3
        assert qa.inflight_bytes == 6 * 1058
        a.receive(now, ack)
        a.receive(now, nak)
        assert qa.inflight_bytes == 0
        frames, now = send(a, 3, now)
        assert [psn_of(f) for f in frames] == [1, 2, 3]
        assert qa.stats.packets_retransmitted == 3
        b.receive(now, frames[0])
        b.receive(now, frames[2])  # the gap is closed, and there is another
        assert [(psn_of(f), f[54]) for f in drain(b, now)] == [(1, 0x1F), (2, 0x60)]

    def test_a_duplicate_is_acknowledged_again(self) -> None:
        a, b = pair()
        qa, qb = connect(a, b)
        qa.post(2000)
        frames, now = send(a, 2)
        for frame in (frames[0], frames[1], frames[0]):
            b.receive(now, frame)
        assert [psn_of(f) for f in drain(b, now)] == [0, 1, 1]
        assert qb.stats.duplicates == 1
        assert qb.stats.bytes_delivered == 2000

    def test_an_old_nak_changes_nothing(self) -> None:
        a, b = pair()
        qa, _ = connect(a, b)
        qa.post(10_000)
        frames, now = send(a, 3)
        b.receive(now, frames[1])
        (nak,) = drain(b, now)
        for frame in frames:
            b.receive(now, frame)
        for ack in drain(b, now):
            a.receive(now, ack)
        a.receive(now, nak)
        frames, now = send(a, 1, now)
        assert psn_of(frames[0]) == 3
        assert qa.stats.packets_retransmitted == 0

    def test_time_out_sends_again_from_the_first_unacknowledged(self) -> None:
        a, b = pair(rto_ns=50_000)
        qa, _ = connect(a, b)
        qa.post(3000)
        send(a, 3)
        assert a.next_wakeup_ns() == 50_000  # from the first packet
        assert a.next_frame(49_999) is None
        assert psn_of(due_frame(a, 50_000)) == 0
        assert qa.stats.timeouts == 1

    def test_progress_restarts_the_time_out(self) -> None:
        a, b = pair(rto_ns=50_000)
        qa, _ = connect(a, b)
        qa.post(3000)
        frames, _ = send(a, 3)
        b.receive(1000, frames[0])
        a.receive(20_000, due_frame(b, 1000))
        assert a.next_frame(69_999) is None
        assert a.next_wakeup_ns() == 70_000
        assert a.next_frame(70_000) == frames[1]
        for frame in frames[1:]:
            b.receive(80_000, frame)
        for ack in drain(b, 80_000):
            a.receive(81_000, ack)
        assert a.next_frame(81_000) is None
        assert a.next_wakeup_ns() == 1 << 61
        assert qa.stats.bytes_acked == 3000

    def test_rtt_is_not_taken_from_packets_sent_twice(self) -> None:
        rtts = []
        a, b = pair(rto_ns=50_000)
        qa, _ = connect(a, b)
        replace_method(qa.reaction_point, "on_ack", lambda feedback: rtts.append(feedback.rtt_ns))
        qa.post(2000)
        (first, second), _ = send(a, 2)
        b.receive(1000, first)
        a.receive(2000, due_frame(b, 1000))
        again = a.next_frame(60_000)
        assert again == second
        b.receive(61_000, again)
        a.receive(62_000, due_frame(b, 61_000))
        assert rtts == [2000, -1]

    def test_a_trimmed_packet_is_asked_for_at_once(self) -> None:
        a, b = pair()
        qa, qb = connect(a, b)
        qa.post(2000)
        frames, now = send(a, 2)
        b.receive(now, trimmed(frames[0]))
        b.receive(now, trimmed(frames[1]))
        (nak,) = drain(b, now)
        assert (psn_of(nak), nak[54]) == (0, 0x60)
        assert qb.stats.trimmed_received == 2

    def test_the_last_packet_is_asked_for_if_it_is_trimmed_among_those_that_a_nak_requested(self) -> None:
        a, b = pair()
        qa, qb = connect(a, b)
        qa.post(2000)
        frames, now = send(a, 2)
        b.receive(now, trimmed(frames[0]))
        (nak,) = drain(b, now)
        a.receive(now, nak)
        frames, now = send(a, 2, now)
        b.receive(now, trimmed(frames[1]))  # the header overtakes the packet before it
        assert drain(b, now) == []
        b.receive(now, frames[0])
        (nak,) = drain(b, now)
        assert (psn_of(nak), nak[54]) == (1, 0x60)
        a.receive(now, nak)
        (last,), now = send(a, 1, now)
        b.receive(now, last)
        (ack,) = drain(b, now)
        assert (psn_of(ack), ack[54]) == (1, 0x1F)
        assert qb.stats.bytes_delivered == 2000
        assert qa.stats.timeouts == 0

    def test_a_packet_that_is_trimmed_again_is_asked_for_again(self) -> None:
        a, b = pair()
        qa, qb = connect(a, b)
        qa.post(3000)
        now = 0
        for round_ in range(1, 4):
            frames, now = send(a, 3, now)
            b.receive(now, trimmed(frames[0]))
            b.receive(now, frames[1])
            (nak,) = drain(b, now)
            assert (psn_of(nak), nak[54]) == (0, 0x60)
            assert qb.stats.naks_sent == round_
            a.receive(now, nak)


class TestSelectiveRepeat:
    def test_sack_names_packet_first_missing_and_bitmap(self) -> None:
        a, b = pair(reliability="selective-repeat")
        qa, qb = connect(a, b)
        qa.post(10_000)
        frames, now = send(a, 6)
        for i in (0, 3, 5):
            b.receive(now, frames[i])
        sacks = drain(b, now)
        assert [f[wire.BTH] for f in sacks] == [wire.SACK] * 3
        assert [psn_of(f) for f in sacks] == [0, 3, 5]
        told = [headers.SACK_HEADER.decode(f, 58) for f in sacks]
        assert [sack["first_missing_psn"] for sack in told] == [1, 1, 1]
        assert [sack["map_psn"] for sack in told] == [2, 2, 2]
        assert [sack["map"] for sack in told] == [0, 0b010, 0b1010]
        assert qb.stats.out_of_order == 2
        assert all(wire.wire_bytes(f) == len(f) + 4 for f in sacks)

    @settings(max_examples=60, deadline=None)
    @given(
        st.lists(st.integers(0, 189), max_size=250),
        st.sampled_from([0, 100, 2**23 - 90, 2**24 - 90]),
        st.randoms(use_true_random=False),
    )
    def test_sacks_name_what_arrived_and_tell_it_in_any_order(
        self, arrivals: list[int], first_psn: int, rng: random.Random
    ) -> None:
        a, b = pair(reliability="selective-repeat", loss_packets=0)
        qa, _ = connect(a, b, first_psn=first_psn)
        qa.post(190_000)
        frames, now = send(a, 190)
        told = []
        arrived = set()
        before = 0
        for i in arrivals:
            b.receive(now, frames[i])
            arrived.add(i)
            (sack,) = drain(b, now)
            missing = next(n for n in range(191) if n not in arrived)
            map_from = max((i if abs(i - before) < 64 else before) - 63, missing + 1)
            before = i
            mapped = [n for n in arrived if map_from <= n < map_from + 64]
            assert headers.SACK_HEADER.decode(sack, 58) == {
                "first_missing_psn": (first_psn + missing) & wire.PSN_MASK,
                "map_psn": (first_psn + map_from) & wire.PSN_MASK,
                "map": sum(1 << n - map_from for n in mapped),
            }
            told.append((sack, {i, *range(missing), *mapped}))
        rng.shuffle(told)
        known = set()
        for sack, named in told:
            a.receive(now, sack)
            known |= named
            assert qa.stats.bytes_acked == 1000 * len(known)

    def test_only_the_missing_packet_is_sent_again(self) -> None:
        a, b = pair(reliability="selective-repeat", loss_packets=3)
        qa, qb = connect(a, b)
        qa.post(6000)
        frames, now = send(a, 6)
        for i in (0, 2, 3, 4):
            b.receive(now, frames[i])
        sacks = drain(b, now)
        for sack in sacks[:3]:
            a.receive(now, sack)
        assert drain(a, now) == []  # a packet sent two after the missing one has arrived: not yet
        a.receive(now, sacks[3])
        (again,) = drain(a, now)
        assert again == frames[1]
        b.receive(now, again)
        b.receive(now, frames[5])
        assert qb.stats.bytes_delivered == 6000
        for sack in drain(b, now):
            a.receive(now, sack)
        assert (qa.stats.packets_retransmitted, qa.stats.bytes_acked, qa.inflight_bytes) == (1, 6000, 0)
        assert a.next_wakeup_ns() == 1 << 61

    def test_without_loss_detection_only_the_time_out_repairs(self) -> None:
        a, b = pair(reliability="selective-repeat", loss_packets=0, rto_ns=50_000)
        qa, _ = connect(a, b)
        qa.post(20_000)
        frames, now = send(a, 20)
        for frame in frames[1:]:
            b.receive(now, frame)
        for sack in drain(b, now):
            a.receive(now, sack)
        assert a.next_wakeup_ns() == 50_000
        assert drain(a, 49_999) == []
        assert drain(a, 50_000) == frames[:1]
        assert qa.stats.timeouts == 1

    def test_each_packet_has_its_own_time_out(self) -> None:
        a, b = pair(reliability="selective-repeat", rto_ns=50_000)
        qa, _ = connect(a, b)
        qa.post(2000)
        first = a.next_frame(0)
        second = a.next_frame(10_000)
        assert drain(a, 50_000) == [first]
        assert a.next_wakeup_ns() == 60_000
        assert drain(a, 60_000) == [second]
        assert a.next_wakeup_ns() == 100_000

    def test_a_lost_sack_is_made_good_by_the_next(self) -> None:
        a, b = pair(reliability="selective-repeat")
        qa, _ = connect(a, b)
        qa.post(4000)
        frames, now = send(a, 4)
        for i in (0, 2, 3):
            b.receive(now, frames[i])
        a.receive(now, drain(b, now)[-1])
        assert qa.stats.bytes_acked == 3000

    def test_lost_sacks_are_made_good_however_far_behind_a_missing_packet(self) -> None:
        a, b = pair(reliability="selective-repeat")
        qa, _ = connect(a, b)
        qa.post(1_000_000)
        frames, now = send(a, 600)
        for frame in frames[1:]:
            b.receive(now, frame)
        for number, sack in enumerate(drain(b, now), start=1):
            if number % 50 == 49:  # so few get through
                a.receive(now, sack)
        assert qa.inflight_bytes == 0
        assert qa.stats.bytes_acked == 599_000
        assert a.next_frame(now) == frames[0]  # the only one that is lost

    def test_a_packet_that_is_known_to_have_arrived_is_not_marked_again(self) -> None:
        """Check the packet that caused a SACK, and packets of a map that a later SACK has overtaken."""
        a, b = pair(reliability="selective-repeat", loss_packets=0)
        qa, _ = connect(a, b)
        qa.post(100_000)
        frames, now = send(a, 100)
        for frame in frames[1:]:
            b.receive(now, frame)
        sacks = drain(b, now)
        sender = of_kind(qa.sender, SelectiveRepeatSender)
        marked = []
        mark = sender._mark

        def counted(now_ns: int, number: int) -> int:
            marked.append(number)
            return mark(now_ns, number)

        replace_method(sender, "_mark", counted)
        for sack in sacks[:50]:
            a.receive(now, sack)
        assert marked == list(range(1, 51))
        for sack in (sacks[59], sacks[54], sacks[60]):
            a.receive(now, sack)
        assert marked[50:] == [60, *range(51, 60), 55, 61]
        assert qa.stats.bytes_acked == 61_000

    def test_a_map_of_packets_that_were_never_sent_marks_none_of_them(self) -> None:
        a, b = pair(reliability="selective-repeat", loss_packets=0)
        qa, _ = connect(a, b)
        qa.post(100_000)
        frames, now = send(a, 40)
        for frame in frames[1:]:
            b.receive(now, frame)
        (*_, sack) = drain(b, now)
        forged = bytearray(sack)
        forged[wire.AFTER_BTH + 10 : wire.AFTER_BTH + 18] = b"\xff" * 8
        a.receive(now, bytes(forged))
        assert qa.stats.bytes_acked == 39_000
        more, now = send(a, 60, now)
        for frame in more:
            b.receive(now, frame)
        a.receive(now, drain(b, now)[-1])
        assert qa.stats.bytes_acked == 99_000

    def test_the_ack_of_an_earlier_copy_tells_nothing_of_what_was_sent_since(self) -> None:
        a, b = pair(reliability="selective-repeat", base_rtt_ns=4_000)
        qa, _ = connect(a, b)
        qa.post(1_000_000)
        frames, now = send(a, 80)
        for frame in frames[1:]:
            b.receive(now, frame)
        sacks = drain(b, now)
        a.receive(20_000, sacks[-1])  # its map begins with 16
        again, now = send(a, 16, 20_000)
        assert again == frames[:16]  # the first is lost, the others' SACKs are
        fresh, now = send(a, 10, now)
        in_flight = qa.inflight_bytes
        a.receive(now, sacks[14])  # that of packet 15, which was late; the RTT is 20 us
        assert qa.inflight_bytes == in_flight - 15 * 1058
        assert [psn_of(frame) for frame in send(a, 2, now)[0]] == [90, 91]
        b.receive(now, again[0])
        for frame in fresh:
            b.receive(now, frame)
        for sack in drain(b, now):
            a.receive(42_000, sack)
        assert qa.stats.packets_retransmitted == 16
        assert qa.stats.bytes_acked == 90_000

    @settings(max_examples=40, deadline=None)
    @given(
        rate_bps=st.sampled_from([10_000_000_000, 100_000_000_000, 400_000_000_000]),
        delay_ns=st.sampled_from([1_000, 4_000, 20_000]),
        loss=st.sampled_from([1e-3, 1e-2, 5e-2]),
        ack_loss=st.sampled_from([0.0, 1e-2, 5e-2, 0.2]),
        protocol=st.sampled_from(["none", "dcqcn", "swift"]),
        seed=st.integers(0, 1 << 32),
    )
    def test_what_is_sent_again_is_what_was_lost(
        self, rate_bps: int, delay_ns: int, loss: float, ack_loss: float, protocol: str, seed: int
    ) -> None:
        """Each retransmitted packet was lost, or its own SACK was.

        Few of the losses that later packets report are wrong: at least two SACKs name each packet,
        and 64 SACKs name nearly every packet in a row of new ones.
        """
        a, b = pair(
            protocol, reliability="selective-repeat", line_rate_bps=rate_bps, base_rtt_ns=2 * delay_ns, rto_ns=1_000_000
        )
        qa, qb = connect(a, b)
        qa.post(1_000_000)
        lost: Counter[bool] = Counter()
        rng = random.Random(seed)

        def lose(now_ns: int, frame: bytes) -> bytes | None:
            is_ack = frame[wire.BTH] == wire.SACK
            if rng.random() >= (ack_loss if is_ack else loss):
                return frame
            lost[is_ack] += 1
            return None

        expired = []
        replace_method(qa.reaction_point, "on_expired", lambda now_ns, wire_bytes: expired.append(now_ns))
        Wire(a, b, delay_ns=delay_ns, hook=lose).run(1_000_000_000)
        assert qa.stats.bytes_acked == qb.stats.bytes_delivered == 1_000_000
        assert qa.stats.packets_retransmitted == lost[False] + qb.stats.duplicates
        assert qa.stats.packets_retransmitted <= 1.2 * lost.total()
        assert qb.stats.duplicates <= lost[True]
        assert qb.stats.duplicates - len(expired) <= 0.1 * lost[False] + 3

    def test_a_trimmed_packet_is_sent_again_at_once(self) -> None:
        losses = []
        a, b = pair(reliability="selective-repeat", loss_packets=0)
        qa, _ = connect(a, b)
        replace_method(
            qa.reaction_point,
            "on_nack",
            lambda now_ns, wire_bytes, cut: losses.append((now_ns, wire_bytes, cut)),
        )
        qa.post(4000)
        frames, now = send(a, 4)
        b.receive(now, trimmed(frames[1]))
        (nack,) = drain(b, now)
        assert (nack[wire.BTH], psn_of(nack), nack[34:36]) == (wire.NACK, 1, frames[1][34:36])
        a.receive(now, nack)
        a.receive(now, nack)  # told twice, sent once
        assert drain(a, now) == [frames[1]]
        assert losses == [(now, 1058, True)]

    def test_what_is_kept_of_sends_is_no_more_than_twice_what_is_in_flight(self) -> None:
        """While the first packet waits in a queue, the others are trimmed repeatedly."""
        a, b = pair(reliability="selective-repeat", loss_packets=1000)
        qa, _ = connect(a, b)
        qa.post(4000)
        frames, now = send(a, 4)
        for _ in range(100):
            for frame in frames[1:]:
                b.receive(now, trimmed(frame))
            for nack in drain(b, now):
                a.receive(now, nack)
            assert qa.inflight_bytes == 1058
            again, now = send(a, 3, now)
            assert again == frames[1:]
            sender = of_kind(qa.sender, SelectiveRepeatSender)
            assert sender._oldest() == 0
            assert sender._sends.size <= 16

    @settings(max_examples=40, deadline=None)
    @given(
        loss=st.sampled_from([0.0, 0.05, 0.3]),
        reorder=st.sampled_from([0.0, 0.5]),
        cut=st.sampled_from([0.0, 0.3, 0.8]),
        loss_packets=st.sampled_from([3, 1000]),
        protocol=st.sampled_from(["none", "dctcp"]),
        scope=st.sampled_from(["qp", "pair"]),
        rng=st.randoms(use_true_random=False),
    )
    def test_the_oldest_send_is_that_of_the_packet_in_flight_sent_first(
        self, loss: float, reorder: float, cut: float, loss_packets: int, protocol: str, scope: str, rng: random.Random
    ) -> None:
        a, b = pair(protocol, reliability="selective-repeat", loss_packets=loss_packets, rto_ns=60_000, cc_scope=scope)
        # They may share a reaction point.
        senders = [of_kind(connect(a, b, qpn)[0].sender, SelectiveRepeatSender) for qpn in (1, 2)]

        def look(now_ns: int, frame: bytes) -> bytes:
            for sender in senders if rng.random() < 0.3 else ():
                outstanding = range(sender.unacked, sender.fresh)
                in_flight = [number for number in outstanding if sender.state_of(number) & INFLIGHT]
                orders = {sender._entries[(number & sender._mask) * ENTRY + ORDER]: number for number in in_flight}
                assert sender._oldest() == (orders[min(orders)] if orders else -1)
            return trimmed(frame) if frame[wire.BTH] <= wire.SEND_ONLY and rng.random() < cut else frame

        for qpn in (1, 2):
            a.queue_pairs[qpn].post(60_000)
        Wire(a, b, trouble=Trouble(loss=loss, reorder=reorder, seed=rng.randrange(1000)), hook=look).run(400_000_000)

    @pytest.mark.parametrize("loss_packets", [0, 1000])
    def test_time_outs_come_in_the_order_of_the_last_sending(self, loss_packets: int) -> None:
        a, b = pair(reliability="selective-repeat", loss_packets=loss_packets, rto_ns=100_000)
        qa, _ = connect(a, b)
        qa.post(3000)
        first, _ = send(a, 2)
        now = 1_000  # so late that two packets may leave at once
        second = a.next_frame(now)
        b.receive(now, trimmed(first[0]))
        a.receive(now, drain(b, now)[0])
        assert a.next_frame(now) == first[0]
        assert send(a, 3, now + 100_000)[0] == [first[1], second, first[0]]

    def test_the_rtt_of_a_packet_sent_again_counts_from_its_last_copy(self) -> None:
        a, b = pair(reliability="selective-repeat", loss_packets=0, base_rtt_ns=4_000)
        qa, _ = connect(a, b)
        seen = []
        replace_method(qa.reaction_point, "on_ack", lambda feedback: seen.append(feedback.rtt_ns))
        qa.post(1000)
        (frame,) = drain(a, 0)
        b.receive(2_000, trimmed(frame))
        a.receive(4_000, drain(b, 2_000)[0])
        (again,) = drain(a, 5_000)
        b.receive(7_000, again)
        a.receive(9_500, drain(b, 7_000)[0])
        assert seen == [4_500]

    def test_an_ack_that_comes_too_soon_is_of_an_earlier_copy(self) -> None:
        a, b = pair(reliability="selective-repeat", loss_packets=0, rto_ns=50_000)
        qa, _ = connect(a, b)
        seen, told = [], []
        replace_method(qa.reaction_point, "on_ack", lambda feedback: seen.append(feedback.rtt_ns))
        replace_method(qa.reaction_point, "on_expired", lambda now_ns, wire_bytes: told.append((now_ns, wire_bytes)))
        replace_method(qa.reaction_point, "on_timeout", told.append)
        qa.post(1500)
        first, last = drain(a, 0) + drain(a, 1_000)
        assert len(drain(a, 51_000) + drain(a, 52_000)) == 2
        assert told == [(50_000, 1058), 50_000, (51_000, 558), 51_000]
        b.receive(53_000, first)
        b.receive(53_000, last)
        acks = drain(b, 53_000)
        a.receive(58_999, acks[0])  # 7,999 ns after its second copy; the base RTT is 8 us
        a.receive(59_000, acks[1])
        assert seen == [-1, 8_000]

    def test_the_notification_point_sees_trimmed_packets(self) -> None:
        a, b = pair(reliability="selective-repeat")
        qa, qb = connect(a, b)
        seen = []
        replace_method(
            qb.notification_point,
            "on_trimmed",
            lambda now_ns, missing, frame: seen.append((psn_of(frame), missing)),
        )
        qa.post(2000)
        frames, now = send(a, 2)
        b.receive(now, trimmed(frames[1]))
        b.receive(now, frames[1])
        b.receive(now, trimmed(frames[1]))
        assert seen == [(1, True), (1, False)]

    def test_a_trimmed_copy_of_what_has_arrived_is_acknowledged(self) -> None:
        a, b = pair(reliability="selective-repeat")
        qa, _ = connect(a, b)
        qa.post(2000)
        frames, now = send(a, 2)
        b.receive(now, frames[1])
        b.receive(now, trimmed(frames[1]))
        assert [(f[wire.BTH], psn_of(f)) for f in drain(b, now)] == [(wire.SACK, 1), (wire.SACK, 1)]


@pytest.mark.parametrize("reliability", RELIABILITIES)
@pytest.mark.parametrize("protocol", ["none", "hpcc", "dcqcn"])
def test_psn_wraps(reliability: str, protocol: str) -> None:
    a, b = pair(protocol, reliability=reliability)
    qa, qb = connect(a, b, first_psn=2**24 - 5)
    qa.post(40_000)
    link = Wire(a, b, trouble=Trouble(loss=0.05, seed=3))
    link.run(50_000_000)
    assert qb.stats.bytes_delivered == qa.stats.bytes_acked == 40_000
    psns = [psn_of(f) for _, side, f in link.sent if side == 0]
    assert psns[0] == 2**24 - 5
    assert {0, 34} <= set(psns)


@pytest.mark.parametrize("reliability", RELIABILITIES)
def test_after_more_packets_than_there_are_psns(reliability: str) -> None:
    # The numbers are unbounded: start far beyond the first wrap, as a long-lived queue pair would be.
    a, b = pair(reliability=reliability)
    qa, qb = connect(a, b)
    for half in (qa.sender, qb.receiver):
        half.psn_base = 123
    offset = 3 * 2**24 + 7
    qa.sender.unacked = qa.sender.fresh = qa.sender.end = qb.receiver.expected = offset
    if reliability == "go-back-n":
        of_kind(qa.sender, GoBackNSender).next = offset
    else:
        of_kind(qb.receiver, SelectiveRepeatReceiver)._end = offset
    qa.post(30_000)
    Wire(a, b, trouble=Trouble(loss=0.05, reorder=0.1, seed=5)).run(50_000_000)
    assert qb.stats.bytes_delivered == qa.stats.bytes_acked == 30_000


misfortunes = st.builds(
    Trouble,
    loss=st.sampled_from([0.0, 0.01, 0.1, 0.3]),
    duplicate=st.sampled_from([0.0, 0.05, 0.3]),
    reorder=st.sampled_from([0.0, 0.05, 0.5]),
    reorder_ns=st.sampled_from([200, 5_000, 40_000]),
    seed=st.integers(0, 10**6),
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    reliability=st.sampled_from(RELIABILITIES),
    trouble=misfortunes,
    sizes=st.lists(st.integers(0, 20_000), min_size=1, max_size=5),
    ack_every_packets=st.sampled_from([1, 2, 7]),
    loss_packets=st.sampled_from([0, 1, 3]),
    first_psn=st.sampled_from([0, 2**24 - 3]),
    protocol=st.sampled_from(["none", "dcqcn", "hpcc"]),
)
def test_every_byte_once_and_in_order(
    reliability: str,
    trouble: Trouble,
    sizes: list[int],
    ack_every_packets: int,
    loss_packets: int,
    first_psn: int,
    protocol: str,
) -> None:
    a, b = pair(
        protocol,
        reliability=reliability,
        rto_ns=60_000,
        ack_every_packets=ack_every_packets,
        loss_packets=loss_packets,
    )
    qa, qb = connect(a, b, first_psn=first_psn)
    back = 0
    delivered: list[Delivery] = []
    completed: list[Message] = []
    b.on_delivered = delivered.append
    a.on_complete = completed.append
    for i, size in enumerate(sizes):
        qa.post(size, start_ns=3_000 * i)
        qb.post(size // 3)  # and the other direction, too
        back += size // 3
    Wire(a, b, trouble=trouble).run(400_000_000)
    assume(a.stats.retries_exceeded == 0 and b.stats.retries_exceeded == 0)  # eight losses in a row happen
    assert [(d.sequence, d.size_bytes) for d in delivered] == list(enumerate(sizes))
    assert [m.sequence for m in completed] == list(range(len(sizes)))
    assert qb.stats.bytes_delivered == qa.stats.bytes_acked == sum(sizes)
    assert qa.stats.bytes_delivered == qb.stats.bytes_acked == back
    assert qa.inflight_bytes == qb.inflight_bytes == 0
    for message, delivery in zip(completed, delivered, strict=True):
        assert message.start_ns <= message.first_sent_ns < delivery.time_ns < message.completed_ns
    assert a.next_wakeup_ns() == b.next_wakeup_ns() == 1 << 61
