"""The NIC: pacing, arbitration, priorities, PFC, and frames that are not addressed to it."""

import dataclasses
import math
import random
from collections import Counter
from typing import Any

import pytest

from host_agents import wire
from host_agents.cc.base import NotificationPoint, Path
from host_agents.config import CC_SCOPES, NicConfig, Peers
from host_agents.errors import HostError
from host_agents.messages import Delivery
from host_agents.nic import Nic
from host_agents.outlet import ReceiverOutlet
from host_agents.qp import QueuePair
from host_agents.registry import Protocol, resolve, resolve_load_balancer
from host_agents.timers import NEVER
from p4cc._link import Trouble, Wire, connect, pair
from tests.host_agents.narrow import due_frame, of_kind, replace_method
from tests.host_agents.pause import pause_frame
from tests.margins import packet_gbps

FRAME = 1058  # a full data packet without shim
SERIALIZED = FRAME * 8 / 100  # ns at 100 Gb/s


def send_times(nic: Nic, count: int, limit_ns: int = 10_000_000) -> list[int]:
    """Return the times of sending with exact wake-ups and a link that is always free."""
    times: list[int] = []
    now_ns = 0
    while len(times) < count and now_ns < limit_ns:
        if nic.next_frame(now_ns) is not None:
            times.append(now_ns)
        else:
            now_ns = nic.next_wakeup_ns()
    return times


class TestPacing:
    @pytest.mark.parametrize("rate_bps", [100e9, 40e9, 3e9, 100e6, 7.77e9])
    def test_packets_leave_at_the_next_service_time_to_the_nanosecond(self, rate_bps: float) -> None:
        a, b = pair(rto_ns=1 << 39)
        qa, _ = connect(a, b)
        qa.reaction_point.set_rate(rate_bps)
        qa.post(200_000)
        assert send_times(a, 200, 10**9) == [math.ceil(i * FRAME * 8e9 / rate_bps - 1e-6) for i in range(200)]

    def test_a_message_at_a_future_time_starts_then(self) -> None:
        a, b = pair()
        qa, _ = connect(a, b)
        message = qa.post(1000, start_ns=5_000)
        assert a.next_wakeup_ns() == 5_000
        assert a.next_frame(4_999) is None
        assert a.next_frame(5_000) is not None
        assert (message.start_ns, message.first_sent_ns) == (5_000, 5_000)

    def test_idle_time_earns_nothing(self) -> None:
        a, b = pair()
        qa, _ = connect(a, b)
        qa.reaction_point.set_rate(1e9)
        qa.post(1000)
        qa.post(3000, start_ns=1_000_000)
        interval = round(FRAME * 8)
        assert send_times(a, 4) == [0, 1_000_000, 1_000_000 + interval, 1_000_000 + 2 * interval]

    @pytest.mark.parametrize("overhead_bytes", [24, -58])
    def test_a_rate_is_a_part_of_what_the_link_carries(self, overhead_bytes: int) -> None:
        a, b = pair(frame_overhead_bytes=overhead_bytes)
        qa, _ = connect(a, b)
        qa.reaction_point.set_rate(10e9)
        qa.post(5_000)
        assert send_times(a, 5) == [math.ceil(i * (FRAME + overhead_bytes) * 0.8 - 1e-5) for i in range(5)]

    def test_a_new_rate_moves_the_next_service_time(self) -> None:
        a, b = pair()
        qa, _ = connect(a, b)
        qa.reaction_point.set_rate(1e9)
        qa.post(10_000)
        assert a.next_frame(0) is not None
        assert a.next_frame(0) is None
        assert a.next_wakeup_ns() == 8464
        qa.reaction_point.set_rate(2e9)
        assert a.next_wakeup_ns() == 4232
        qa.reaction_point.set_rate(0.5e9)
        assert a.next_wakeup_ns() == 16928
        assert a.next_frame(8464) is None
        assert a.next_frame(16928) is not None

    def test_lateness_up_to_the_slack_is_made_good(self) -> None:
        a, b = pair(pacing_slack_bytes=1058)
        qa, _ = connect(a, b)
        qa.reaction_point.set_rate(10e9)
        qa.post(10_000)
        times = [0, 846 + 50, 2 * 847 + 500]  # nominal 0, 846.4, 1692.8; slack 84.64 ns
        for t in times:
            assert a.next_frame(t) is not None
            assert a.next_frame(t) is None
        late = times[2] - 84.64  # more than the slack late: from here on
        assert a.next_wakeup_ns() == math.ceil(late + 846.4)

    def test_next_service_times_survive_long_runs(self) -> None:
        # A billion ns later, the average rate is still exact.
        a, b = pair(rto_ns=1 << 39)
        qa, _ = connect(a, b)
        qa.reaction_point.set_rate(1.3e9)
        qa.post(200_000)
        qa.post(200_000, start_ns=10**9)
        times = send_times(a, 400, 2 * 10**9)[200:]
        assert times == [10**9 + math.ceil(i * FRAME * 8 / 1.3 - 1e-5) for i in range(200)]


class TestArbitration:
    def test_queue_pairs_take_turns(self) -> None:
        a, b = pair()
        qps = [connect(a, b, n)[0] for n in range(1, 6)]
        for qp in qps:
            qp.post(10_000)
        order = []
        for i in range(50):
            order.append(int.from_bytes(due_frame(a, 85 * i)[47:50], "big"))
        assert order == [1, 2, 3, 4, 5] * 10

    def test_many_queue_pairs_share_the_link_evenly(self) -> None:
        a, b = pair()
        qps = [connect(a, b, n)[0] for n in range(1, 201)]
        for qp in qps:
            qp.post(100_000)
        Wire(a, b).run(1_000_000)
        sent = [qp.stats.packets_sent for qp in qps]
        assert max(sent) - min(sent) <= 1
        assert sum(sent) >= 1_000_000 / (SERIALIZED + 0.5)

    def test_paced_queue_pairs_keep_their_rates_beside_each_other(self) -> None:
        a, b = pair()
        rates = [1e9, 2e9, 5e9, 10e9, 20e9]
        qps = [connect(a, b, n)[0] for n in range(1, 6)]
        for qp, rate in zip(qps, rates, strict=True):
            qp.reaction_point.set_rate(rate)
            qp.post(10_000_000)
        Wire(a, b).run(1_000_000)
        for qp, rate in zip(qps, rates, strict=True):
            assert qp.stats.wire_bytes_sent * 8 / 1e-3 == pytest.approx(rate, abs=packet_gbps(1_000_000) * 1e9)

    def test_a_higher_priority_goes_first(self) -> None:
        a, b = pair()
        low, _ = connect(a, b, 1, priority=2)
        high, _ = connect(a, b, 2, priority=4)
        low.post(3000)
        high.post(3000, start_ns=100)
        frames = [due_frame(a, t) for t in (0, 100, 200, 300, 400, 500)]
        assert [f[wire.TOS] >> 2 for f in frames] == [16, 32, 32, 32, 16, 16]

    def test_control_frames_go_before_data(self) -> None:
        a, b = pair()
        qa, qb = connect(a, b)
        qa.post(2000)
        qb.post(2000)
        b.receive(100, due_frame(a, 0))
        assert due_frame(b, 100)[wire.BTH] == wire.ACKNOWLEDGE
        assert due_frame(b, 100)[wire.BTH] == wire.SEND_FIRST


class TestPfc:
    def pause(self, quanta: int, priority: int = 3) -> bytes:
        return pause_frame(bytes(6), {priority: quanta})

    def test_a_paused_class_is_silent_for_its_quanta(self) -> None:
        # 100 quanta of 512 bits at 100 Gb/s are 512 ns.
        a, b = pair()
        qa, _ = connect(a, b)
        qa.post(10_000)
        assert a.next_frame(0) is not None
        a.receive(50, self.pause(100))
        assert a.next_frame(100) is None
        assert a.next_wakeup_ns() == 562
        assert a.next_frame(561) is None
        assert a.next_frame(562) is not None
        assert a.stats.pauses_received == 1
        assert a.stats.paused_ns[3] == 512

    def test_zero_quanta_resume(self) -> None:
        a, b = pair()
        qa, _ = connect(a, b)
        qa.post(10_000)
        a.receive(0, self.pause(0xFFFF))
        assert a.next_frame(10) is None
        a.receive(100, self.pause(0))
        assert a.next_frame(100) is not None
        assert a.stats.paused_ns[3] == 100

    def test_a_renewed_pause_counts_once(self) -> None:
        a, _ = pair()
        a.receive(0, self.pause(100))
        a.receive(256, self.pause(100))
        assert a.stats.paused_ns[3] == 768

    def test_other_classes_go_on(self) -> None:
        a, b = pair()
        qa, _ = connect(a, b, 1)
        other, _ = connect(a, b, 2, priority=1)
        qa.post(1000)
        other.post(1000)
        a.receive(0, self.pause(0xFFFF))
        assert due_frame(a, 0)[wire.TOS] >> 2 == 8
        assert a.next_frame(100) is None
        assert a.next_wakeup_ns() == min(math.ceil(0xFFFF * 5.12), 1_000_000)

    def test_paused_control_waits_and_data_does_not(self) -> None:
        a, b = pair()
        qa, qb = connect(a, b)
        qa.post(1000)
        qb.post(1000)
        b.receive(100, due_frame(a, 0))
        b.receive(100, self.pause(100, priority=6))
        assert due_frame(b, 100)[wire.BTH] == wire.SEND_ONLY
        assert b.next_frame(200) is None
        assert b.next_wakeup_ns() == 612
        assert due_frame(b, 612)[wire.BTH] == wire.ACKNOWLEDGE

    def test_control_frames_wait_for_their_own_class_in_order(self) -> None:
        """Check classes 3 and 6: a pause holds only the frames of its class."""
        a, b = pair()
        qa, _ = connect(a, b)
        qa.post(1000)
        frames = [wire.header(1, 2, 3, 0xE4, i, after_bth_bytes=0, dscp=8 * (3, 3, 6, 6)[i]) for i in range(4)]
        for frame in frames:
            a.send_control(frame)
        a.receive(0, self.pause(100))
        assert a.next_wakeup_ns() <= 0
        assert [a.next_frame(i) for i in range(4)] == [frames[2], frames[3], None, None]
        assert a.next_wakeup_ns() == 512
        assert [a.next_frame(512) for _ in range(2)] == frames[:2]
        assert due_frame(a, 512)[wire.BTH] == wire.SEND_ONLY

    def test_a_nic_without_pfc_ignores_it(self) -> None:
        a, b = pair(pfc=False)
        qa, _ = connect(a, b)
        qa.post(1000)
        a.receive(0, self.pause(0xFFFF))
        assert a.next_frame(1) is not None
        assert (a.stats.pauses_received, a.stats.paused_ns[3]) == (1, 0)

    def test_no_time_out_while_nothing_was_sent(self) -> None:
        a, b = pair(rto_ns=10_000)
        qa, _ = connect(a, b)
        qa.post(1000)
        a.receive(0, self.pause(0xFFFF))
        assert a.next_frame(300_000) is None
        assert qa.stats.timeouts == 0


class TestFramesNotForIt:
    def setup_method(self) -> None:
        self.a, self.b = pair()
        self.qa, self.qb = connect(self.a, self.b)
        self.qa.post(1000)
        self.frame = due_frame(self.a, 0)

    def received(self, **expected: int) -> None:
        counts = {name: getattr(self.b.stats, name) for name in ("malformed", "misdelivered", "unknown_qp")}
        assert counts == {"malformed": 0, "misdelivered": 0, "unknown_qp": 0, **expected}
        assert self.qb.stats.packets_received == 0
        assert self.b.next_frame(10) is None

    def changed(self, offset: int, value: bytes, fix_checksum: bool = True) -> bytes:
        out = bytearray(self.frame)
        out[offset : offset + len(value)] = value
        if fix_checksum:
            out[24:26] = b"\0\0"
            out[24:26] = wire.ip_checksum(bytes(out[14:34])).to_bytes(2, "big")
        return bytes(out)

    @pytest.mark.parametrize("length", [0, 1, 13, 14, 33, 41, 53])
    def test_cut_short(self, length: int) -> None:
        self.b.receive(0, self.frame[:length])
        self.received(malformed=1)

    @pytest.mark.parametrize(
        ("offset", "value"),
        [
            (12, b"\x86\xdd"),  # IPv6
            (14, b"\x46"),  # options
            (16, b"\x00\x20"),  # IPv4 and UDP lengths disagree
            (23, b"\x06"),  # TCP
            (36, b"\x12\xb6"),  # another port
            (38, b"\x00\x08"),  # too short for a BTH
            (42, b"\x03"),  # SEND last with immediate
            (42, b"\x0c"),  # RDMA READ request
            (42, b"\xdf"),
            (42, b"\xff"),  # an unknown control packet
            (42, b"\xc1"),  # the shim is missing
        ],
    )
    def test_not_understood(self, offset: int, value: bytes) -> None:
        self.b.receive(0, self.changed(offset, value))
        self.received(malformed=1)

    def test_bad_checksum(self) -> None:
        self.b.receive(0, self.changed(22, b"\x01", fix_checksum=False))
        self.received(malformed=1)

    def test_another_address(self) -> None:
        self.b.receive(0, self.changed(30, wire.parse_address("10.0.0.9").to_bytes(4, "big")))
        self.received(misdelivered=1)

    def test_unknown_queue_pair(self) -> None:
        self.b.receive(0, self.changed(47, b"\x00\x00\x63"))
        self.received(unknown_qp=1)

    def test_right_queue_pair_from_the_wrong_peer(self) -> None:
        self.b.receive(0, self.changed(26, wire.parse_address("10.0.0.9").to_bytes(4, "big")))
        self.received(unknown_qp=1)

    def test_a_real_frame_with_payload_and_icrc_is_welcome(self) -> None:
        self.b.receive(0, wire.materialize(self.frame))
        assert self.qb.stats.bytes_delivered == 1000

    def test_acks_for_packets_never_sent_change_nothing(self) -> None:
        self.b.receive(0, self.frame)
        ack = bytearray(due_frame(self.b, 0))
        for psn in (1, 1000, 2**23 - 1, 2**23, 2**24 - 1):
            ack[51:54] = psn.to_bytes(3, "big")
            self.a.receive(10, bytes(ack))
        assert self.qa.stats.bytes_acked == 0
        assert self.qa.inflight_bytes == FRAME


def test_what_is_still_wanted_is_no_difference_of_statistics() -> None:
    a, b = pair()
    qa, _ = connect(a, b)
    qa.post(3000)
    link = Wire(a, b)
    link.run(0)
    qa.stats.bytes_acked += 999  # as one who counts anew might
    traffic = qa.reaction_point.traffic
    assert traffic.unacked_bytes == 3000
    link.run(20_000)
    assert (traffic.unacked_bytes, traffic.waiting_bytes, traffic.inflight_bytes) == (0, 0, 0)


class TestQueuePairs:
    def test_numbers_are_checked(self) -> None:
        a, b = pair()
        connect(a, b, 1)
        with pytest.raises(HostError, match=r"queue pair 1 of 10\.0\.0\.2 is open already"):
            a.open_qp("10.0.0.3", 1, 1)
        with pytest.raises(HostError, match="expected 1 to 16777214"):
            a.open_qp("10.0.0.3", 1 << 24, 1)

    def test_closing(self) -> None:
        a, b = pair()
        qa, qb = connect(a, b)
        qa.post(1000)
        a.next_frame(0)
        with pytest.raises(HostError, match="still has messages to send"):
            a.close_qp(qa)
        b.close_qp(qb)
        assert a.next_wakeup_ns() == 1_000_000

    @pytest.mark.parametrize("scope", ["qp", "destination", "pair"])
    def test_closing_stops_timers_and_keeps_what_is_shared(self, scope: str) -> None:
        a, b = pair("dcqcn", cc_scope=scope)
        qps = [connect(a, b, n)[0] for n in (1, 2)]
        qps[0].post(1000)
        Wire(a, b).run(100_000)
        qps[0].on_cnp(100_000)
        assert a.next_frame(104_001) is None
        assert a.next_wakeup_ns() == 404_001  # the rate increase
        a.close_qp(qps[1])
        assert a.next_wakeup_ns() == 404_001
        a.close_qp(qps[0])
        assert (a.next_wakeup_ns() == NEVER) is (scope == "qp")  # a shared reaction point outlives its queue pairs
        fresh = a.open_qp("10.0.0.3", 1, 1)
        assert (fresh.rate_bps < 100e9) is (scope != "qp")

    def test_a_message_posted_from_a_callback(self) -> None:
        a, b = pair()
        qa, qb = connect(a, b)

        def answer(delivery: Delivery) -> None:
            qb.post(500)

        b.on_delivered = answer
        answers: list[Delivery] = []
        a.on_delivered = answers.append
        qa.post(5000)
        qa.post(100, start_ns=50_000)
        Wire(a, b).run(200_000)
        assert [d.size_bytes for d in answers] == [500, 500]
        assert answers[0].time_ns > 0

    def test_messages_go_in_the_order_posted(self) -> None:
        a, b = pair()
        qa, _ = connect(a, b)
        late = qa.post(1000, start_ns=10_000)
        early = qa.post(1000, start_ns=5_000)
        assert (late.start_ns, early.start_ns) == (10_000, 10_000)
        with pytest.raises(ValueError, match="expected 0 or more"):
            qa.post(-1)

    def test_everything_is_quiet_at_the_end(self) -> None:
        a, b = pair("dcqcn")
        qa, _ = connect(a, b)
        qa.post(100_000)
        Wire(a, b).run(1_000_000)
        assert a.next_wakeup_ns() == b.next_wakeup_ns() == NEVER


class TestScopes:
    def open_three(self, scope: str) -> tuple[Nic, list[QueuePair], QueuePair]:
        a, b = pair("dcqcn", cc_scope=scope)
        qps = [connect(a, b, n)[0] for n in (1, 2, 3)]
        other = a.open_qp("10.0.0.4", 9, 9)
        for qp in qps:
            qp.post(1_000_000)
        other.post(1_000_000)
        return a, qps, other

    def bytes_per_qp(self, nic: Nic, count: int) -> tuple[int, Counter[int]]:
        seen: Counter[int] = Counter()
        now_ns = 0
        for _ in range(count):
            while (frame := nic.next_frame(now_ns)) is None:
                now_ns = nic.next_wakeup_ns()
            seen[int.from_bytes(frame[47:50], "big")] += 1
            now_ns += 85
        return now_ns, seen

    def test_each_queue_pair_has_its_own(self) -> None:
        _, qps, _ = self.open_three("qp")
        assert len({id(qp.reaction_point) for qp in qps}) == 3

    def test_per_destination_the_rate_is_shared_but_not_split(self) -> None:
        a, qps, other = self.open_three("destination")
        assert len({id(qp.reaction_point) for qp in qps}) == 1
        assert other.reaction_point is not qps[0].reaction_point
        qps[0].reaction_point.set_rate(10e9)
        other.reaction_point.set_rate(10e9)
        elapsed, seen = self.bytes_per_qp(a, 400)
        assert set(seen.values()) == {100}
        assert 0 <= elapsed - 99 * FRAME * 0.8 < 4 * 85 + 1  # the last one and those that it waits for

    def test_per_pair_the_rate_is_split(self) -> None:
        a, qps, other = self.open_three("pair")
        assert len({id(qp.limiter) for qp in qps}) == 1
        qps[0].reaction_point.set_rate(10e9)
        other.reaction_point.set_rate(10e9)
        elapsed, seen = self.bytes_per_qp(a, 600)
        assert seen == {1: 100, 2: 100, 3: 100, 9: 300}
        assert 0 <= elapsed - 299 * FRAME * 0.8 < 2 * 85 + 1

    def test_who_shares_a_limiter_sends_in_its_class(self) -> None:
        """A different priority would have no effect."""
        a, _ = pair("dcqcn", cc_scope="pair")
        a.open_qp("10.0.0.4", 1, 1, priority=4)
        for number, priority, text in ((2, 5, "priority 5"), (3, None, "priority 3")):
            with pytest.raises(HostError, match=f"{text}; expected 4, that of the queue pairs to 10.0.0.4 that share"):
                a.open_qp("10.0.0.4", number, number, priority=priority)
        a.open_qp("10.0.0.4", 4, 4, priority=4)
        a.open_qp("10.0.0.5", 5, 5, priority=5)
        assert set(a.queue_pairs) == {1, 4, 5}

    def test_queue_pairs_that_are_closed_say_nothing_of_the_class_of_others(self) -> None:
        a, _ = pair("dcqcn", cc_scope="pair")
        a.close_qp(a.open_qp("10.0.0.4", 1, 1, priority=4))
        other = a.open_qp("10.0.0.4", 2, 2, priority=5)
        other.post(1000)
        frame = due_frame(a, 0)
        assert (frame[wire.TOS] >> 5, other.reaction_point.outlet.data_priority()) == (5, 5)
        with pytest.raises(HostError, match="priority 4; expected 5"):
            a.open_qp("10.0.0.4", 3, 3, priority=4)

    def test_a_queue_pair_opened_while_the_limiter_is_in_another_class_has_frames_of_its_own_class(self) -> None:
        a, _ = pair("dcqcn", cc_scope="pair")
        first = a.open_qp("10.0.0.4", 1, 1)
        first.reaction_point.outlet.set_priority(1)
        second = a.open_qp("10.0.0.4", 2, 2)
        first.reaction_point.outlet.set_priority(-1)
        second.post(1000)
        assert due_frame(a, 0)[wire.TOS] >> 5 == 3

    def test_a_limiter_that_waits_in_a_paused_class_leaves_it_for_that_of_the_next_queue_pair(self) -> None:
        """Its retransmissions are acknowledged meanwhile, so that its queue pair can be closed."""
        a, b = pair("dcqcn", cc_scope="pair", rto_ns=10_000)
        first, _ = connect(a, b)
        first.post(1000)
        data = due_frame(a, 0)
        a.receive(9_999, pause_frame(bytes(6), {3: 0xFFFF}))
        assert a.next_frame(10_100) is None
        b.receive(10_200, data)
        a.receive(10_300, due_frame(b, 10_200))
        a.close_qp(first)
        second = a.open_qp("10.0.0.3", 2, 2, priority=5)
        second.post(1000)
        assert a.next_wakeup_ns() <= 10_300
        frame = a.next_frame(10_300)
        assert frame is not None
        assert frame[wire.TOS] >> 5 == 5

    def test_per_destination_each_has_its_class(self) -> None:
        a, _ = pair("dcqcn", cc_scope="destination")
        qps = [a.open_qp("10.0.0.4", n, n, priority=n) for n in (3, 4)]
        assert [qp.limiter.priority for qp in qps] == [3, 4]

    def test_a_shared_window_counts_what_all_have_in_flight(self) -> None:
        a, b = pair("hpcc", cc_scope="pair")
        qps = [connect(a, b, n)[0] for n in (1, 2)]
        for qp in qps:
            qp.post(1_000_000)
        frames = 0
        now_ns = 0
        while a.next_frame(now_ns) is not None:
            frames += 1
            now_ns += 85
        assert frames == math.ceil(100_000 / 1060)
        assert qps[0].inflight_bytes == qps[1].inflight_bytes == frames * 1060


def test_the_driver_may_be_late_and_timers_keep_their_times() -> None:
    a, b = pair(rto_ns=10_000)
    qa, _ = connect(a, b)
    timeouts: list[int] = []
    replace_method(qa.reaction_point, "on_timeout", timeouts.append)
    qa.post(1000)
    a.next_frame(0)
    a.next_frame(25_000)
    assert timeouts == [10_000]


def test_same_seed_same_run() -> None:
    def run(seed: int) -> list[tuple[int, int, bytes]]:
        a, b = pair("hpcc", seed=seed)
        qa, _ = connect(a, b)
        qa.post(50_000)
        link = Wire(a, b)
        link.run(1_000_000)
        return link.sent

    assert run(1) == run(1)
    assert run(1) != run(2)  # another entropy


class TestTruncate:
    def test_a_message_ends_with_the_next_packet(self) -> None:
        a, b = pair()
        qa, qb = connect(a, b)
        message = qa.post(1_000_000)
        link = Wire(a, b)
        link.run(20_000)
        sent = qa.stats.packets_sent
        qa.truncate(message)
        assert message.size_bytes == 1000 * (sent + 1)
        link.run(200_000)
        assert qb.stats.bytes_delivered == message.size_bytes == qa.stats.bytes_posted
        assert message.completed_ns > 0

    def test_what_is_sent_already_stays(self) -> None:
        a, b = pair()
        qa, qb = connect(a, b)
        message = qa.post(2_500)
        link = Wire(a, b)
        link.run(100_000)
        qa.truncate(message)
        assert message.size_bytes == 2_500 == qb.stats.bytes_delivered

    def test_another_message_can_follow(self) -> None:
        a, b = pair()
        qa, qb = connect(a, b)
        first = qa.post(1_000_000)
        link = Wire(a, b)
        link.run(20_000)
        qa.truncate(first)
        qa.post(5_000)
        with pytest.raises(ValueError, match="the last one posted"):
            qa.truncate(first)
        link.run(200_000)
        assert qb.stats.bytes_delivered == first.size_bytes + 5_000


class TestScopesOfAProtocol:
    def protocol(self, **changes: Any) -> Protocol:
        known = pair("dcqcn")[0].protocol
        return dataclasses.replace(known, info=dataclasses.replace(known.info, **changes))

    def test_it_has_one_of_its_own(self) -> None:
        a, _ = pair()
        shared = self.protocol(scope="pair")
        qps = [a.open_qp("10.0.0.3", n, n, protocol=shared) for n in (1, 2)]
        assert qps[0].limiter is qps[1].limiter

    def test_the_nic_may_say_otherwise(self) -> None:
        a, _ = pair(cc_scope="destination")
        shared = self.protocol(scope="pair")
        qps = [a.open_qp("10.0.0.3", n, n, protocol=shared) for n in (1, 2)]
        assert qps[0].limiter is not qps[1].limiter
        assert qps[0].reaction_point is qps[1].reaction_point

    def test_but_not_anything(self) -> None:
        a, _ = pair(cc_scope="destination")
        with pytest.raises(HostError, match=r"^dcqcn: cc_scope 'destination': expected one of: qp$"):
            a.open_qp("10.0.0.3", 1, 1, protocol=self.protocol(scopes=("qp",)))
        assert a.queue_pairs == {}

    def test_protocols_do_not_share_one(self) -> None:
        a, _ = pair("dcqcn", cc_scope="destination")
        first = a.open_qp("10.0.0.3", 1, 1)
        other = a.open_qp("10.0.0.3", 2, 2, protocol=pair("hpcc")[0].protocol)
        assert first.reaction_point is not other.reaction_point


class Listener(NotificationPoint):
    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.seen: list[str | int] = []

    def on_message_start(self, now_ns: int) -> None:
        self.seen.append("start")

    def on_message_end(self, now_ns: int, size_bytes: int) -> None:
        self.seen.append(size_bytes)


@pytest.mark.parametrize("reliability", ["go-back-n", "selective-repeat"])
def test_a_notification_point_is_told_of_messages_in_order_once_each(reliability: str) -> None:
    a, b = pair(reliability=reliability, rto_ns=50_000)
    info = dataclasses.replace(b.protocol.info, notification_point=lambda parameters, path: Listener(path))
    listening = dataclasses.replace(b.protocol, info=info)
    qa, _ = a.open_qp("10.0.0.3", 1, 1), b.open_qp("10.0.0.2", 1, 1, protocol=listening)
    for size_bytes in (5_000, 0, 700, 3_000):
        qa.post(size_bytes)
    Wire(a, b, trouble=Trouble(loss=0.1, reorder=0.2, duplicate=0.2, seed=5)).run(10_000_000)
    listener = of_kind(b.queue_pairs[1].notification_point, Listener)
    assert listener.seen == ["start", 5_000, "start", 0, "start", 700, "start", 3_000]


@pytest.mark.parametrize("listens", [True, False])
def test_only_a_notification_point_that_listens_is_called_and_has_an_outlet_of_its_own(listens: bool) -> None:
    class Told(Listener):
        def __init__(self, path: Path) -> None:
            super().__init__(path)
            self.listens = listens

        def on_data(self, now_ns: int, marked: bool, frame: bytes) -> None:
            self.seen.append("data")

    a, b = pair()
    info = dataclasses.replace(b.protocol.info, notification_point=lambda parameters, path: Told(path))
    protocol = dataclasses.replace(b.protocol, info=info)
    ends = [b.open_qp("10.0.0.2", qpn, qpn, protocol=protocol) for qpn in (1, 2)]
    a.open_qp("10.0.0.3", 1, 1).post(700)
    Wire(a, b).run(1_000_000)
    first, second = (of_kind(qp.notification_point, Listener) for qp in ends)
    assert ends[0].stats.bytes_delivered == 700
    assert first.seen == (["start", 700, "data"] if listens else [])
    assert (first is second) is not listens
    assert isinstance(first.outlet, ReceiverOutlet) is listens


def test_a_point_of_the_base_class_itself_listens() -> None:
    a, b = pair()
    info = dataclasses.replace(b.protocol.info, notification_point=lambda parameters, path: NotificationPoint(path))
    protocol = dataclasses.replace(b.protocol, info=info)
    first, second = (b.open_qp("10.0.0.2", qpn, qpn, protocol=protocol).notification_point for qpn in (1, 2))
    assert first is not second
    plain = [a.open_qp("10.0.0.3", qpn, qpn).notification_point for qpn in (1, 2)]
    assert plain[0] is plain[1]


def listening_end() -> tuple[QueuePair, Nic]:
    """Return the receiving end of a queue pair with a `Listener`, and its NIC."""
    a, b = pair()
    info = dataclasses.replace(b.protocol.info, notification_point=lambda parameters, path: Listener(path))
    a.open_qp("10.0.0.3", 1, 1)
    return b.open_qp("10.0.0.2", 1, 1, protocol=dataclasses.replace(b.protocol, info=info)), b


@pytest.mark.parametrize("name", ["send_again", "set_priority", "may_retry", "set_rto", "traffic"])
def test_only_the_outlet_of_a_reaction_point_has_what_is_for_senders(name: str) -> None:
    qp, _ = listening_end()
    assert hasattr(qp.reaction_point.outlet, name)
    assert not hasattr(qp.notification_point.outlet, name)


def test_a_closed_queue_pair_gets_no_sending_half_by_its_notification_point() -> None:
    qp, nic = listening_end()
    point = qp.notification_point
    nic.close_qp(qp)
    assert point.outlet.control_entropy(0) == 0


def test_queue_pairs_share_a_part_of_their_nic() -> None:
    a, b = pair()
    first, second = connect(a, b, 1), connect(a, b, 2)
    made = []

    def make() -> object:
        made.append(1)
        return object()

    points = [first[0].notification_point, second[0].reaction_point, first[1].notification_point]
    parts = [point.host.part("counter", make) for point in points]
    assert parts[0] is parts[1]
    assert parts[0] is not parts[2]
    assert len(made) == 2


@pytest.mark.parametrize("scope", CC_SCOPES)
def test_a_queue_pair_has_the_settings_that_it_would_have_as_the_first(scope: str) -> None:
    """A queue pair like the one before takes over its settings, so each option changes here now and then."""
    kind_of = {wire.parse_address(f"10.0.0.{host}"): host % 2 for host in range(2, 5)}
    peers = Peers(kind_of, (100_000_000_000, 25_000_000_000), ((0, 2_000), (0, 9_000)))
    config = NicConfig("10.0.0.1", 100_000_000_000, 9_000, peers=peers, cc_scope=scope, reliability="selective-repeat")
    protocols = [resolve(name) for name in ("dcqcn", "hpcc", "swift", "udp")]
    balancers = [resolve_load_balancer(name) for name in ("ecmp", "spray")]

    def settings(nic: Nic, number: int, peer: str, options: dict[str, Any]) -> tuple[Any, ...]:
        qp = nic.open_qp(peer, number, number, **options)
        sending = qp._sending
        point, template = qp.notification_point, qp.frames.data_template(wire.SEND_ONLY, 500)
        nic.close_qp(qp)
        return (
            sending.protocol.name, sending.load_balancing.name, sending.data_priority, sending.scope, sending.retires,
            sending.path.bottleneck_bps, sending.path.base_rtt_ns, sending.path.wire_bytes, sending.config.reliability,
            qp.telemetry, qp.option_bytes, type(point), point.listens, template,
        )  # fmt: skip

    draws = random.Random(1)
    nic = Nic(config, protocols[0], balancers[0])
    options: dict[str, Any] = {}
    peer = ""
    for number in range(1, 200):
        for name, values in (
            ("protocol", protocols), ("load_balancing", balancers), ("priority", (2, 3)), ("partition_key", (7, 8)),
        ):  # fmt: skip
            if name not in options or draws.random() < 0.2:
                options[name] = draws.choice(values)
        if not peer or draws.random() < 0.2:
            peer = draws.choice(["10.0.0.2", "10.0.0.3", "10.0.0.4", "10.0.0.9"])
        alone = settings(Nic(config, protocols[0], balancers[0]), number, peer, options)
        assert settings(nic, number, peer, options) == alone
