"""RCCC step by step: packets that each kind of credit allows, and the receiver's pull pacer.

The link: 100 Gb/s, base RTT 8 us, so a BDP of 100,000 bytes, and a largest credit of 150,000 bytes, 586 quanta of 256.
A full packet has 1,062 bytes, 4 of which say the pull target.
"""

import itertools
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from host_agents import wire
from host_agents.cc import rccc
from host_agents.cc.rccc import Rccc, RcccReceiver
from host_agents.nic import Nic
from host_agents.qp import QueuePair
from p4cc._link import Trouble, Wire, connect, pair, trimmed
from tests.host_agents.narrow import due_frame, of_kind, replace_method

PACKET = 1062
QUANTUM = 256
MOST = 586
PER_PULL = 64
PULL_NS = PER_PULL * QUANTUM * 8 / 100 / 0.99
TIMEOUT_NS = 1_000_000


def opcode(frame: bytes) -> int:
    return frame[wire.BTH]


def is_data(frame: bytes) -> bool:
    return 0xF0 <= opcode(frame) < 0xF8


def target(frame: bytes) -> int:
    return int.from_bytes(frame[wire.AFTER_BTH : wire.AFTER_BTH + 4], "big")


def granted(frame: bytes) -> int:
    return int.from_bytes(frame[wire.AFTER_BTH : wire.AFTER_BTH + 8], "big")


def cut(frame: bytes) -> bytes:
    """Return a data frame that a switch has trimmed, which keeps its pull target."""
    out = bytearray(trimmed(frame)) + frame[wire.AFTER_BTH : wire.AFTER_BTH + 4]
    for place in (wire.TOTAL_LENGTH, wire.UDP_LENGTH):
        length = int.from_bytes(out[place : place + 2], "big") + 4
        out[place : place + 2] = length.to_bytes(2, "big")
    return wire.checksummed(out)


def drain(nic: Nic, now_ns: int) -> list[bytes]:
    frames = []
    while (frame := nic.next_frame(now_ns)) is not None:
        frames.append(frame)
    return frames


def nics(name: str = "rccc", **parameters: Any) -> tuple[Nic, Nic]:
    return pair(name, parameters, reliability="selective-repeat", loss_packets=0)


def sender(packets: int, name: str = "rccc", **parameters: Any) -> tuple[QueuePair, QueuePair, list[bytes], int]:
    """Return a sender that has sent all packets that it may send without an answer."""
    a, b = nics(name, **parameters)
    qa, qb = connect(a, b, 5)
    qa.post(packets * 1000)
    frames, now = [], 0
    while now < 16_000:
        frames += drain(a, now)
        now += 80
    return qa, qb, frames, now


def pull(qb: QueuePair, quanta: int) -> bytes:
    return qb.frames.control_frame(rccc.PULL.opcode, rccc.PULL.encode(granted=quanta))


class TestSender:
    def test_speculative_credit_is_one_and_a_half_bdp(self) -> None:
        _, _, frames, _ = sender(1000)
        assert all(is_data(frame) for frame in frames)
        assert len(frames) == 142  # 150,016 bytes, the last one overdraws them

    def test_a_short_message_asks_for_nothing_while_its_credit_covers_it(self) -> None:
        _, _, frames, _ = sender(2)
        assert [target(frame) for frame in frames] == [-(-(PACKET - 4) // QUANTUM), 0]  # and, speculating, for a packet

    def test_while_it_speculates_it_asks_for_a_packet_at_least(self) -> None:
        _, _, frames, _ = sender(50)
        assert target(frames[0]) == -(-PACKET // QUANTUM)

    def test_the_target_is_what_waits_less_the_credit_at_most_the_largest_credit(self) -> None:
        """After n packets the credit is smaller by n packets, so the target is larger by n."""
        _, _, frames, _ = sender(1000)
        packet = PACKET - 4  # the reaction point's packet: without the target
        used = [n * PACKET + packet for n in range(len(frames))]
        expected = [max(-(-bytes_ // QUANTUM), -(-packet // QUANTUM)) for bytes_ in used]
        assert [target(frame) for frame in frames] == expected

    @pytest.mark.parametrize("event", ["ack", "nack", "pull"])
    def test_the_first_word_from_the_receiver_ends_speculation_for_good(self, event: str) -> None:
        a, b = nics()
        qa, qb = connect(a, b, 5)
        qa.post(200_000)
        data = [due_frame(a, now) for now in range(0, 1000, 100)]
        point = of_kind(qa.reaction_point, Rccc)
        assert point.credit_bytes == MOST * QUANTUM - 10 * PACKET
        if event == "pull":
            a.receive(1000, pull(qb, 3))
        else:
            b.receive(1000, data[0] if event == "ack" else cut(data[0]))
            answer = next(frame for frame in drain(b, 1000) if opcode(frame) != rccc.PULL.opcode)
            a.receive(1000, answer)
        assert not point.speculating
        assert point.credit_bytes == (3 * QUANTUM if event == "pull" else 0)

    def test_credit_that_was_overdrawn_stays_so(self) -> None:
        qa, qb, _, now = sender(1000)
        debt = 142 * PACKET - MOST * QUANTUM
        assert of_kind(qa.reaction_point, Rccc).credit_bytes == -debt
        qa.nic.receive(now, pull(qb, 4))
        assert of_kind(qa.reaction_point, Rccc).credit_bytes == 4 * QUANTUM - debt

    def test_pulls_are_cumulative_and_old_ones_are_nothing(self) -> None:
        qa, qb, _, now = sender(1000)
        for quanta, expected in ((20, 20), (10, 20), (20, 20), (64, 64)):
            qa.nic.receive(now, pull(qb, quanta))
            assert of_kind(qa.reaction_point, Rccc).pulled_quanta == expected

    def test_credit_is_at_most_the_largest(self) -> None:
        qa, qb, _, now = sender(1000)
        qa.nic.receive(now, pull(qb, 4 * MOST))
        assert of_kind(qa.reaction_point, Rccc).credit_bytes == MOST * QUANTUM

    def test_a_pull_beyond_all_that_can_be_is_refused(self) -> None:
        qa, qb, _, now = sender(1000)
        before = of_kind(qa.reaction_point, Rccc).credit_bytes
        qa.nic.receive(now, pull(qb, (MOST * QUANTUM + 8 * now * 100 // 8) // QUANTUM + 1))
        assert (qa.nic.stats.malformed, of_kind(qa.reaction_point, Rccc).credit_bytes) == (1, before)
        qa.nic.receive(now, pull(qb, (MOST * QUANTUM + 8 * now * 100 // 8) // QUANTUM))
        assert qa.nic.stats.malformed == 1

    def test_senders_of_one_nic_share_what_they_ask_for(self) -> None:
        """Each asks for half, when both have data that waits for the link."""
        a, b = nics()
        pairs = [connect(a, b, n) for n in (1, 2)]
        for qa, _ in pairs:
            qa.post(500_000)
        frames = [due_frame(a, now) for now in range(0, 10_000, 85)]
        alone = sender(500)[2]
        assert target(frames[60]) == pytest.approx(target(alone[30]) / 2, abs=2)

    def test_after_a_time_out_without_credit_it_sends_its_target_alone(self) -> None:
        qa, _, frames, _ = sender(1000)
        sent = drain(qa.nic, TIMEOUT_NS + 4_000)
        assert [opcode(frame) for frame in sent] == [rccc.RTS.opcode]
        assert target(sent[0]) == target(frames[-1]) == -(-142 * PACKET // QUANTUM)
        assert wire.wire_bytes(sent[0]) == 62

    @pytest.mark.parametrize(("base_rtts", "number"), [(1.0, 1), (0.0, 2)])
    def test_a_new_message_without_credit_asks_at_once_and_not_again_soon(self, base_rtts: float, number: int) -> None:
        qa, _, _, now = sender(1000, request_base_rtts=base_rtts)
        sent = []
        for at in (now, now + 1_000):
            qa.post(1_000)
            sent += drain(qa.nic, at)
        assert [opcode(frame) for frame in sent] == number * [rccc.RTS.opcode]


def requests(demands: Sequence[int], **parameters: Any) -> tuple[Nic, Nic]:
    """Return a receiver whose senders, one for each queue pair, have requested this number of quanta at time 0."""
    a, b = nics(**parameters)
    for n, quanta in enumerate(demands, start=1):
        qa, _ = connect(a, b, n)
        b.receive(0, request(qa, quanta))
    return a, b


def request(qa: QueuePair, quanta: int) -> bytes:
    return qa.frames.control_frame(rccc.RTS.opcode, rccc.RTS.encode(target=quanta))


def pulls(nic: Nic, until_ns: int) -> list[tuple[int, int, int]]:
    """Return (time, queue pair, quanta granted so far) of the pulls that the receiver sends."""
    found = []
    now = nic.now_ns
    while now <= until_ns:
        frame = nic.next_frame(now)
        if frame is None:
            now = max(nic.next_wakeup_ns(), now + 1)
        elif opcode(frame) == rccc.PULL.opcode:
            found.append((now, int.from_bytes(frame[47:50], "big"), granted(frame)))
    return found


class TestReceiver:
    def test_64_quanta_a_pull_at_99_percent_of_the_line_rate(self) -> None:
        _, b = requests([500])
        found = pulls(b, int(7.5 * PULL_NS))
        assert [quanta for _, _, quanta in found[:8]] == [64, 128, 192, 256, 320, 384, 448, 500]
        gaps = [later[0] - earlier[0] for earlier, later in itertools.pairwise(found)]
        assert all(gap == pytest.approx(PULL_NS, abs=1) for gap in gaps[:7])

    def test_a_smaller_grant_takes_less_time(self) -> None:
        _, b = requests([10, 500])
        found = pulls(b, 2_000)
        assert [(qpn, quanta) for _, qpn, quanta in found[:2]] == [(1, 10), (2, 64)]
        assert found[1][0] - found[0][0] == pytest.approx(10 / 64 * PULL_NS, abs=1)

    def test_where_the_network_is_over_subscribed_what_is_trimmed_on_its_way_slows_it_down(self) -> None:
        """The controller acts after one and a half base RTTs, times 0.75 to 1.25: at 9 to 15 us."""
        _, b = requests([586], oversubscription=4)
        qb = b.queue_pairs[1]
        data = b.open_qp("10.0.0.2", 9, 9).frames.data_template(wire.SEND_ONLY, 1000) + bytes(3)
        for trimmed_ones in range(100):
            if trimmed_ones % 2:
                qb.notification_point.on_trimmed(0, True, data)
            else:
                qb.notification_point.on_data(0, False, data)
        found = [at_ns for at_ns, _, _ in pulls(b, 30_000)]
        gaps = [later - earlier for earlier, later in itertools.pairwise(found)]
        assert gaps[0] == pytest.approx(PULL_NS, abs=1)
        slow = next(number for number, gap in enumerate(gaps) if gap > 1.5 * PULL_NS)
        assert 9_000 - PULL_NS <= found[slow] <= 15_000 + PULL_NS
        assert gaps[slow] == pytest.approx(2 * PULL_NS, abs=1)

    def test_round_robin(self) -> None:
        _, b = requests([200, 200, 100])
        found = pulls(b, int(8 * PULL_NS))
        assert [qpn for _, qpn, _ in found[:8]] == [1, 1, 2, 3, 1, 2, 3, 1]  # the first was alone

    def test_when_nobody_is_owed_those_served_go_on_up_to_the_largest_credit(self) -> None:
        _, b = requests([100])
        found = pulls(b, 100_000)
        quanta = [quanta for _, _, quanta in found]
        assert quanta == [64, 100, *range(164, quanta[-1] + 1, 64)]
        assert MOST <= quanta[-1] - 100 < MOST + PER_PULL
        assert b.next_wakeup_ns() > 100_000

    def test_who_is_owed_goes_before_those_who_are_not(self) -> None:
        a, b = requests([10])
        pulls(b, 3_000)
        qa, _ = connect(a, b, 2)
        b.receive(3_000, request(qa, 200))
        found = pulls(b, 3_000 + int(5 * PULL_NS))
        assert [qpn for _, qpn, _ in found[:4]] == [2, 2, 2, 2]

    def test_one_that_is_owed_again_is_on_the_idle_list_once(self) -> None:
        a, b = requests([10])
        qa = a.queue_pairs[1]
        for time_ns in range(2_000, 6_000, 1_000):
            pulls(b, time_ns)
            granted_quanta = of_kind(b.queue_pairs[1].notification_point, RcccReceiver).granted_quanta
            b.receive(time_ns, request(qa, granted_quanta + 1))
        gaps = [later[0] - earlier[0] for earlier, later in itertools.pairwise(pulls(b, 40_000))]
        assert min(gaps[2:]) >= PULL_NS - 1

    def test_as_simulated_each_time_that_it_was_served_adds_a_pull(self) -> None:
        """A target below the granted credit gets an empty pull, and its list entry a pull beyond the largest."""
        a, b = requests([1], as_simulated_idle=True)
        qa = a.queue_pairs[1]
        ahead = pulls(b, 60_000)
        assert [quanta for _, _, quanta in ahead] == [1, *range(65, 1 + MOST + PER_PULL, PER_PULL)]
        found = []
        for target_quanta in (2, 3):
            b.receive(b.now_ns, request(qa, target_quanta))
            found += [quanta for _, _, quanta in pulls(b, b.now_ns + 10_000)]
        most = ahead[-1][2]
        assert found == [most, most + PER_PULL, most + PER_PULL, most + 2 * PER_PULL]

    def test_a_trimmed_packet_is_answered_though_nothing_new_is_owed(self) -> None:
        a, b = nics()
        qa, _ = connect(a, b, 5)
        qa.post(1_000)
        frame = due_frame(a, 0)
        assert target(frame) == 0
        b.receive(100, cut(frame))
        assert pulls(b, 100) == [(100, 5, 0)]
        assert pulls(b, 2_000)[0][0] - 100 == pytest.approx(PULL_NS * 4 / 64, abs=2)  # then the idle list

    def test_a_target_that_no_sender_may_have_is_refused(self) -> None:
        a, b = nics()
        qa, _ = connect(a, b, 5)
        b.receive(0, request(qa, 2 * MOST))
        assert b.stats.malformed == 1
        assert pulls(b, 10_000) == []

    def test_data_without_a_target_asks_for_nothing(self) -> None:
        a, b = nics()
        connect(a, b, 5)
        plain, _ = pair(reliability="selective-repeat", loss_packets=0)
        sender_of_plain, _ = connect(plain, pair()[1], 5)
        sender_of_plain.post(1_000)
        b.receive(0, due_frame(plain, 0))
        assert b.queue_pairs[5].stats.bytes_delivered == 1_000
        assert pulls(b, 10_000) == []

    def test_pulls_take_so_many_paths_in_turn(self) -> None:
        a, b = nics(pull_entropies=2)
        qa, _ = connect(a, b, 1)
        b.receive(0, request(qa, 500))
        ports: list[int] = []
        now = 0
        while len(ports) < 4:
            frame = b.next_frame(now)
            if frame is None:
                now = max(b.next_wakeup_ns(), now + 1)
            else:
                ports.append(int.from_bytes(frame[34:36], "big"))
        assert ports == [0xC000, 0xC001, 0xC000, 0xC001]

    def test_a_closed_queue_pair_draws_nothing(self) -> None:
        _, b = requests([400, 30])
        pulls(b, 500)
        b.close_qp(b.queue_pairs[1])
        b.close_qp(b.queue_pairs[2])
        assert pulls(b, 50_000) == []


def test_one_flow_is_drawn_at_99_percent_behind_its_speculative_credit() -> None:
    a, b = nics()
    qa, _ = connect(a, b)
    message = qa.post(1_000_000)
    Wire(a, b, delay_ns=3_955).run(1_000_000)
    packet_ns = PACKET * 8 / 100
    # A pull and the last packet may wait for a packet each.
    assert message.completed_ns == pytest.approx(8_000 + (850 / 0.99 + 150) * packet_ns, abs=2 * packet_ns)


def test_with_nscc_both_credit_and_window_are_needed() -> None:
    _, _, frames, _ = sender(1000, "rccc+nscc", nscc={"first_window_packets": 20.0})
    assert len(frames) == 19  # 20 packets without their targets


def test_with_nscc_it_asks_for_a_packet_more_than_the_window() -> None:
    qa, qb, frames, now = sender(1000, "rccc+nscc", nscc={"first_window_packets": 20.0})
    assert target(frames[-1]) == -(-(PACKET - 4) // QUANTUM)  # it speculates, and its credit covers the window
    qa.nic.receive(now, pull(qb, 1))  # which ends now
    sent = drain(qa.nic, TIMEOUT_NS + 1)
    waiting = next(frame for frame in sent if opcode(frame) == rccc.RTS.opcode)
    window = qa.reaction_point.window_bytes
    credit = of_kind(qa.reaction_point, Rccc).credit_bytes
    assert target(waiting) == 1 + -(-(int(window) + PACKET - 4 - credit) // QUANTUM)


class Ledger:
    """Model of a sender's credit after each step, from the packets that it sends and the pulls."""

    def __init__(self, qa: QueuePair) -> None:
        self.point = of_kind(qa.reaction_point, Rccc)
        self.credit = self.point.credit_bytes
        self.speculating = True

    def heard(self, pulled_before: int) -> None:
        if self.speculating:
            self.speculating = False
            self.credit = min(self.credit, 0)
        self.credit += (self.point.pulled_quanta - pulled_before) * QUANTUM
        self.credit = min(self.credit, MOST * QUANTUM)
        assert self.point.credit_bytes == self.credit

    def sent(self, frame: bytes) -> None:
        self.credit -= wire.wire_bytes(frame)
        assert self.point.credit_bytes == self.credit


@settings(max_examples=40, deadline=None)
@given(
    sizes=st.lists(st.integers(0, 60_000), min_size=1, max_size=6),
    loss=st.sampled_from((0.0, 0.02, 0.2)),
    trim=st.sampled_from((0, 2, 7)),
    seed=st.integers(0, 1000),
)
def test_credit_granted_is_what_was_used_and_what_is_left(sizes: list[int], loss: float, trim: int, seed: int) -> None:
    """Check each step with any losses: credit covers all packets but the one that overdraws it, and all arrive."""
    a, b = pair("rccc", reliability="selective-repeat", loss_packets=0, rto_ns=100_000)
    qa, qb = connect(a, b)
    ledger = Ledger(qa)
    for size in sizes:
        qa.post(size)
    count = itertools.count(1)

    def switch(now_ns: int, frame: bytes) -> bytes:
        return cut(frame) if trim and is_data(frame) and next(count) % trim == 0 else frame

    link = Wire(a, b, trouble=Trouble(loss=loss, seed=seed), hook=switch)
    receive, next_frame = a.receive, a.next_frame

    def received(now_ns: int, frame: bytes) -> None:
        before = of_kind(qa.reaction_point, Rccc).pulled_quanta
        receive(now_ns, frame)
        if opcode(frame) in (rccc.PULL.opcode, wire.SACK, wire.NACK):
            ledger.heard(before)

    def sending(now_ns: int) -> bytes | None:
        credit = of_kind(qa.reaction_point, Rccc).credit_bytes
        frame = next_frame(now_ns)
        if ledger.speculating and not of_kind(qa.reaction_point, Rccc).speculating:  # a time-out
            ledger.speculating = False
            ledger.credit = min(ledger.credit, 0)
        if frame is not None and is_data(frame):
            assert credit > 0
            ledger.sent(frame)
        return frame

    replace_method(a, "receive", received)
    replace_method(a, "next_frame", sending)
    link.run(40_000_000)
    assert qb.stats.bytes_delivered == sum(sizes)
    assert of_kind(qa.reaction_point, Rccc).pulled_quanta <= of_kind(qb.notification_point, RcccReceiver).granted_quanta
