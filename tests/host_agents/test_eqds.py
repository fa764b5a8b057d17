"""EQDS step by step: packets that each kind of credit allows, and the receiver's pull pacer.

The link: 100 Gb/s, base RTT 8 us, so a BDP of 100,000 bytes, and a speculative credit of 95 packets of 1,058.
"""

import itertools
from collections.abc import Sequence
from typing import Any

import pytest

from host_agents import wire
from host_agents.cc import eqds
from host_agents.cc.eqds import Eqds, EqdsReceiver
from host_agents.nic import Nic
from host_agents.qp import QueuePair
from p4cc._link import Wire, connect, pair, trimmed
from tests.host_agents.narrow import due_frame, of_kind

PACKET = 1058
PACKET_NS = PACKET * 8 / 100


def counter(frame: bytes) -> int:
    return int.from_bytes(frame[wire.AFTER_BTH : wire.AFTER_BTH + 8], "big")


def opcode(frame: bytes) -> int:
    return frame[wire.BTH]


def drain(nic: Nic, now_ns: int) -> list[bytes]:
    frames = []
    while (frame := nic.next_frame(now_ns)) is not None:
        frames.append(frame)
    return frames


def split(frames: list[bytes]) -> tuple[list[bytes], list[bytes]]:
    """Return control packets and data packets."""
    return [f for f in frames if opcode(f) >= 0x11], [f for f in frames if opcode(f) < 0x11]


def sender(
    packets: int, name: str = "eqds", **parameters: Any
) -> tuple[QueuePair, QueuePair, list[bytes], list[bytes], int]:
    """Return a sender that has sent all packets that it may send without an answer."""
    a, b = pair(name, parameters, reliability="selective-repeat", loss_packets=0)
    qa, qb = connect(a, b, 5)
    qa.post(packets * 1000)
    frames, now = [], 0
    while now < 12_000:
        frames += drain(a, now)
        now += 80
    control, data = split(frames)
    return qa, qb, control, data, now


def pull(qb: QueuePair, granted_packets: int) -> bytes:
    return qb.frames.control_frame(eqds.PULL.opcode, eqds.PULL.encode(granted=granted_packets * PACKET))


class TestSender:
    def test_a_short_burst_needs_no_credit_from_the_receiver(self) -> None:
        _, _, control, data, _ = sender(95)
        assert len(data) == 95
        assert control == []

    def test_a_long_burst_sends_one_window_and_asks_for_the_rest_first(self) -> None:
        _, _, control, data, _ = sender(1000)
        assert len(data) == 95
        assert [opcode(frame) for frame in control] == [eqds.RTS.opcode]
        assert counter(control[0]) == 905 * PACKET

    def test_a_pull_lets_one_packet_go(self) -> None:
        qa, qb, _, _, now = sender(1000)
        a = qa.nic
        a.receive(now, pull(qb, 1))
        assert len(drain(a, now)) == 1
        now += 100
        a.receive(now, pull(qb, 2))
        assert len(drain(a, now)) == 1
        assert drain(a, now + 100) == []

    def test_pulls_are_cumulative_and_old_ones_are_nothing(self) -> None:
        qa, qb, _, _, now = sender(1000)
        a, point = qa.nic, of_kind(qa.reaction_point, Eqds)
        before = point.credit_bytes
        a.receive(now, pull(qb, 3))
        assert point.credit_bytes - before == 3 * PACKET
        a.receive(now, pull(qb, 2))
        a.receive(now, pull(qb, 3))
        assert point.credit_bytes - before == 3 * PACKET

    @pytest.mark.parametrize("event", ["ack", "nack", "pull"])
    def test_the_first_word_from_the_receiver_ends_speculation(self, event: str) -> None:
        a, b = pair("eqds", reliability="selective-repeat", loss_packets=0)
        qa, qb = connect(a, b, 5)
        qa.post(200_000)
        sent = [due_frame(a, now) for now in range(0, 1000, 100)]
        assert opcode(sent[0]) == eqds.RTS.opcode
        assert counter(sent[0]) == 105 * PACKET
        data = sent[1:]
        point = of_kind(qa.reaction_point, Eqds)
        assert (point.speculating, point.credit_bytes) == (True, 86 * PACKET)
        if event == "pull":
            a.receive(1000, pull(qb, 1))
        else:
            b.receive(1000, data[0] if event == "ack" else trimmed(data[0]))
            a.receive(1000, due_frame(b, 1000))
        assert (point.speculating, point.credit_bytes) == (False, PACKET if event == "pull" else 0)
        # What the lost credit would have sent is asked for. The trimmed packet is not: the receiver knows of it.
        rts = due_frame(a, 1000)
        assert opcode(rts) == eqds.RTS.opcode
        assert counter(rts) == 191 * PACKET

    def test_lost_packets_are_asked_for_and_trimmed_ones_are_not(self) -> None:
        qa, qb, _, data, now = sender(95)
        a, b = qa.nic, qb.nic
        b.receive(now, trimmed(data[10]))
        nacks, _ = split(drain(b, now))
        a.receive(now, nacks[0])
        assert drain(a, now) == []  # there is no credit, and nothing to ask for
        timeout_ns = 1_000_000
        now = timeout_ns + 8_000
        control, again = split(drain(a, now))
        assert again == []
        assert counter(control[-1]) == 94 * PACKET

    def test_an_rts_that_brought_no_pull_is_sent_again(self) -> None:
        qa, _, control, _, _ = sender(1000)
        again, _ = split(drain(qa.nic, 1_000_000))
        assert again[0] == control[0]  # and then others, because the first packets have timed out, too

    def test_credit_does_not_outlive_its_burst(self) -> None:
        qa, qb, _, data, now = sender(10)
        a, b = qa.nic, qb.nic
        a.receive(now, pull(qb, 2))
        assert of_kind(qa.reaction_point, Eqds).credit_bytes == 2 * PACKET
        for frame in data:
            b.receive(now, frame)
        for frame in drain(b, now):
            a.receive(now, frame)
        assert of_kind(qa.reaction_point, Eqds).credit_bytes == 0
        assert not of_kind(qa.reaction_point, Eqds).speculating
        qa.post(1000)
        assert drain(a, now + 1) != []
        assert of_kind(qa.reaction_point, Eqds).speculating

    def test_a_pull_beyond_all_that_can_be_owed_is_refused(self) -> None:
        qa, qb, _, data, now = sender(1000)
        a, point = qa.nic, of_kind(qa.reaction_point, Eqds)
        owed = 905 + len(data)  # what was asked for, and every packet sent, if they were all trimmed
        before = point.credit_bytes
        for forged in (owed + 2, 2**63 // PACKET):
            a.receive(now, pull(qb, forged))
        assert (a.stats.malformed, point.credit_bytes) == (2, before)
        a.receive(now, pull(qb, 1))
        assert point.credit_bytes == before + PACKET

    def test_a_message_posted_later_is_asked_for(self) -> None:
        qa, _, control, _, now = sender(1000)
        qa.post(5_000)
        frames, _ = split(drain(qa.nic, now))
        assert counter(frames[0]) == counter(control[0]) + 5 * PACKET


def pulls(nic: Nic, until_ns: int) -> list[tuple[int, int, int]]:
    """Return (time, queue pair, number) of the pulls that the receiver sends."""
    found = []
    now = nic.now_ns
    while now <= until_ns:
        frame = nic.next_frame(now)
        if frame is None:
            now = max(nic.next_wakeup_ns(), now + 1)
        elif opcode(frame) == eqds.PULL.opcode:
            found.append((now, int.from_bytes(frame[47:50], "big"), counter(frame)))
    return found


def receiver(demands: Sequence[int], overhead_bytes: int = 0, **parameters: Any) -> tuple[Nic, Nic]:
    """Return a receiver with a queue pair for each demand in packets. All demands arrive at time 0."""
    a, b = pair("eqds", parameters, reliability="selective-repeat", frame_overhead_bytes=overhead_bytes)
    for n, packets in enumerate(demands, start=1):
        qa, _ = connect(a, b, n)
        b.receive(0, qa.frames.control_frame(eqds.RTS.opcode, eqds.RTS.encode(demand=packets * PACKET)))
    return a, b


class TestReceiver:
    @pytest.mark.parametrize("senders", [1, 3, 10])
    def test_each_sender_gets_its_share_of_the_line_rate(self, senders: int) -> None:
        _, b = receiver([2000] * senders)
        found = pulls(b, 100_000)
        assert len(found) == pytest.approx(100_000 / PACKET_NS, abs=1)
        found = found[1:]  # the first RTS was alone
        shares = [sum(1 for _, qpn, _ in found if qpn == n) for n in range(1, senders + 1)]
        assert max(shares) - min(shares) <= 1
        gaps = [later[0] - earlier[0] for earlier, later in itertools.pairwise(found)]
        assert set(gaps) <= {84, 85}  # 84.64 ns

    def test_round_robin_and_what_a_sender_leaves_goes_to_the_others(self) -> None:
        _, b = receiver([2, 4, 1])
        assert [qpn for _, qpn, _ in pulls(b, 10_000)] == [1, 1, 2, 3, 2, 2, 2]  # the first RTS was alone

    def test_pulls_count_and_stop_at_the_demand(self) -> None:
        _, b = receiver([3])
        found = pulls(b, 10_000)
        assert [number for _, _, number in found] == [PACKET, 2 * PACKET, 3 * PACKET]

    def test_a_part_of_the_line_rate(self) -> None:
        _, b = receiver([1000], pull_rate=0.5)
        assert len(pulls(b, 100_000)) == pytest.approx(50_000 / PACKET_NS, abs=1)

    def test_a_link_that_charges_framing_carries_fewer_packets(self) -> None:
        _, b = receiver([2000], overhead_bytes=100)
        assert len(pulls(b, 100_000)) == pytest.approx(100_000 / (PACKET_NS * (PACKET + 100) / PACKET), abs=1)

    def test_a_pause_between_demands_earns_nothing(self) -> None:
        a, b = receiver([2])
        assert len(pulls(b, 50_000)) == 2
        rts = a.queue_pairs[1].frames.control_frame(eqds.RTS.opcode, eqds.RTS.encode(demand=1000 * PACKET))
        b.receive(60_000, rts)
        assert len(pulls(b, 60_000 + 10 * 85)) == pytest.approx(10, abs=1)

    def test_a_trimmed_packet_is_pulled_again(self) -> None:
        _, qb, _, data, now = sender(95)
        b = qb.nic
        b.receive(now, trimmed(data[3]))
        b.receive(now, trimmed(data[4]))
        assert [number for _, _, number in pulls(b, now + 1_000)] == [PACKET, 2 * PACKET]

    def test_a_trimmed_copy_of_what_has_arrived_is_not(self) -> None:
        _, qb, _, data, now = sender(95)
        b = qb.nic
        b.receive(now, data[3])
        b.receive(now, trimmed(data[3]))
        assert pulls(b, now + 1_000) == []

    def test_a_repeated_rts_is_told_what_was_granted(self) -> None:
        a, b = receiver([3])
        pulls(b, 10_000)
        rts = a.queue_pairs[1].frames.control_frame(eqds.RTS.opcode, eqds.RTS.encode(demand=3 * PACKET))
        b.receive(10_000, rts)
        assert [number for _, _, number in pulls(b, 20_000)] == [3 * PACKET]

    def test_a_demand_that_nobody_has_is_pulled_for_one_window(self) -> None:
        a, b = receiver([])
        qa, qb = connect(a, b)
        forged = qa.frames.control_frame(eqds.RTS.opcode, (2**63 - 1).to_bytes(8, "big"))
        b.receive(0, forged)
        window = 64 * 100_000 // PACKET + 1
        assert len(pulls(b, 2_000_000)) == window
        assert qb.stats.pulls_held == 1
        assert b.next_wakeup_ns() > 2_000_000

    def test_what_comes_makes_room_in_the_window_and_so_does_an_rts(self) -> None:
        a, b = pair("eqds", {"pull_window_bdp": 0.05}, reliability="selective-repeat", loss_packets=0)
        qa, _qb = connect(a, b, 5)
        qa.post(1_000_000)
        frames = [due_frame(a, now) for now in range(0, 1000, 100)]
        rts, data = frames[0], frames[1:]
        b.receive(0, rts)
        assert len(pulls(b, 10_000)) == 5
        b.receive(10_000, data[0])
        b.receive(10_000, trimmed(data[1]))
        assert len(pulls(b, 20_000)) == 2
        b.receive(20_000, rts)  # its sender has waited for a time-out
        assert [number for _, _, number in pulls(b, 30_000)] == [PACKET * n for n in (7, 8, 9, 10, 11, 12)]

    def test_a_pull_takes_the_path_of_the_packet_that_came_last(self) -> None:
        _, qb, control, data, now = sender(1000)
        b = qb.nic
        b.receive(now, data[0][:34] + b"\xc1\x23" + data[0][36:])
        b.receive(now, control[0])
        frames = [frame for frame in drain(b, now) if opcode(frame) == eqds.PULL.opcode]
        assert frames[0][34:36] == b"\xc1\x23"
        assert len(frames[0]) == 62
        assert wire.wire_bytes(frames[0]) == 66

    def test_a_closed_queue_pair_draws_nothing(self) -> None:
        _, b = receiver([1000, 10])
        assert {qpn for _, qpn, _ in pulls(b, 500)} == {1, 2}
        b.close_qp(b.queue_pairs[1])
        assert {qpn for _, qpn, _ in pulls(b, 10_000)} == {2}


def test_one_flow_is_drawn_at_line_rate_behind_its_speculative_window() -> None:
    a, b = pair("eqds", reliability="selective-repeat", loss_packets=0)
    qa, _ = connect(a, b)
    message = qa.post(1_000_000)
    link = Wire(a, b, delay_ns=3_955)
    link.run(1_000_000)
    assert message.completed_ns == pytest.approx(1000 * PACKET_NS + 8_000, rel=0.01)
    pulls = sum(1 for _, side, frame in link.sent if side == 1 and opcode(frame) == eqds.PULL.opcode)
    assert pulls == pytest.approx(1000 - 95, abs=2)


def test_no_pull_is_for_nothing_when_every_third_packet_is_trimmed() -> None:
    trims: list[int] = []

    def switch(now_ns: int, frame: bytes) -> bytes:
        if opcode(frame) < 0x11 and len(trims) * 3 < int.from_bytes(frame[51:54], "big"):
            trims.append(now_ns)
            return trimmed(frame)
        return frame

    a, b = pair("eqds", reliability="selective-repeat", loss_packets=0)
    qa, qb = connect(a, b)
    qa.post(400_000)
    link = Wire(a, b, hook=switch)
    link.run(900_000)  # less than a time-out
    assert qb.stats.bytes_delivered == 400_000
    assert len(trims) > 100
    heard_ns = min(now for now, side, _ in link.sent if side == 1) + 1_000 + 6  # 66 bytes of a pull
    data = [now for now, side, frame in link.sent if side == 0 and opcode(frame) < 0x11]
    assert len(data) == 400 + len(trims)
    drawn = sum(1 for now in data if now >= heard_ns)
    assert of_kind(qb.notification_point, EqdsReceiver).granted_bytes == drawn * PACKET
    assert qa.inflight_bytes == 0


class TestWithAWindow:
    def test_both_credit_and_window_are_needed(self) -> None:
        _, _, _, data, _ = sender(1000, "eqds+mprdma", mprdma={"initial_window_bdp": 0.2})
        assert len(data) == 19  # 20,000 bytes

    def test_credit_is_at_most_one_bdp_and_the_rest_is_asked_for_again(self) -> None:
        qa, qb, _, _, now = sender(1000, "eqds+mprdma", mprdma={"initial_window_bdp": 0.2})
        a, point = qa.nic, of_kind(qa.reaction_point, Eqds)
        a.receive(now, pull(qb, 1))
        rts = split(drain(a, now))[0][0]
        a.receive(now, pull(qb, 300))
        assert a.stats.malformed == 0
        assert point.credit_bytes == 100_000
        point.parts[0].set_window(70_000.0)
        control: list[bytes] = []
        while point.credit_bytes >= 50_000:
            assert control == []
            now += 80
            control = split(drain(a, now))[0]
        assert counter(control[0]) == pytest.approx(counter(rts) + 300 * PACKET - 100_000, abs=PACKET)

    def test_the_window_protocol_is_fed(self) -> None:
        qa, qb, _, data, now = sender(95, "eqds+mprdma")
        window = qa.window_bytes
        assert window == 125_000
        a, b = qa.nic, qb.nic
        b.receive(now, data[0][: wire.TOS] + bytes((data[0][wire.TOS] | 3,)) + data[0][wire.TOS + 1 :])
        assert qb.stats.packets_received == 0  # the IPv4 checksum does not hold
        b.receive(now, trimmed(data[1]))
        a.receive(now, due_frame(b, now))
        assert qa.window_bytes == window - PACKET / 2

    def test_more_window_wakes_the_sender(self) -> None:
        qa, _, _, _, now = sender(1000, "eqds+mprdma", mprdma={"initial_window_bdp": 0.2})
        a = qa.nic
        assert drain(a, now) == []
        of_kind(qa.reaction_point, Eqds).parts[0].set_window(50_000.0)
        assert len(drain(a, now + 1)) == 1
