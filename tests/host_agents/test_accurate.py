"""ACCurate's reaction point: when FRPs leave, their contents, and the reaction to a response."""

from typing import Any

import pytest

from host_agents import wire
from host_agents.cc import accurate
from host_agents.cc.accurate import Accurate
from host_agents.qp import QueuePair
from p4cc._link import Hook, Wire, connect, pair
from tests.host_agents.narrow import due_frame, of_kind

GBPS = 1_000_000  # kb/s
PERIOD = 20_000


class Frp:
    def __init__(self, frame: bytes) -> None:
        frp = accurate.FRP.decode(frame, wire.AFTER_BTH)
        self.kind = frp["kind"]
        self.response = bool(frp["response"])
        self.short_circuit = bool(frp["short_circuit"])
        self.counted = bool(frp["counted"])
        self.source_qp = frp["source_qp"]
        self.current_kbps = frp["current_rate"]
        self.desired_kbps = frp["desired_rate"]
        self.sequence = wire.psn(frame)
        self.entropy = int.from_bytes(frame[34:36], "big")
        self.dscp = frame[15] >> 2


def is_frp(frame: bytes) -> bool:
    return len(frame) > wire.BTH and frame[wire.BTH] == accurate.FRP.opcode


def frps(link: Wire, side: int) -> list[tuple[int, Frp]]:
    return [(now, Frp(frame)) for now, sender, frame in link.sent if sender == side and is_frp(frame)]


def rated(frame: bytes, current_kbps: int, desired_kbps: int) -> bytes:
    """Return the frame with the rates that a contention point would write."""
    frp = accurate.FRP.decode(frame, wire.AFTER_BTH)
    return frame[: wire.AFTER_BTH] + accurate.FRP.encode(
        (), **{**frp, "current_rate": current_kbps, "desired_rate": desired_kbps}
    )


def setup(hook: Hook | None = None, **parameters: Any) -> tuple[Wire, QueuePair, QueuePair]:
    a, b = pair("accurate", parameters, line_rate_bps=10_000_000_000)
    qa, qb = connect(a, b, qpn=7)
    return Wire(a, b, hook=hook), qa, qb


def test_an_frp_a_period_at_a_quarter_of_it_and_a_flow_init_first() -> None:
    link, qa, _ = setup()
    qa.post(1_000_000, start_ns=3_000)
    link.run(110_000)
    sent = frps(link, 0)
    assert (sent[0][0], sent[0][1].kind) == (3_000, accurate.INIT)
    first_data = next(now for now, side, frame in link.sent if side == 0 and not is_frp(frame))
    assert first_data > 3_000
    periodic = [now for now, frp in sent if frp.kind == accurate.PERIODIC]
    # The flow-init is the first period's; a frame on the link may hold an FRP up for one packet.
    assert [now // PERIOD for now in periodic] == [1, 2, 3, 4, 5]
    assert all(0 <= now % PERIOD - PERIOD // 4 < 900 for now in periodic)


def test_an_frp_carries_the_flows_rate_path_and_queue_pair() -> None:
    link, qa, _ = setup()
    qa.post(100_000)
    link.run(30_000)
    frp = frps(link, 0)[0][1]
    data = next(frame for _, side, frame in link.sent if side == 0 and not is_frp(frame))
    assert (frp.current_kbps, frp.desired_kbps) == (10 * GBPS, 10 * GBPS)
    assert frp.source_qp == 7
    assert frp.entropy == int.from_bytes(data[34:36], "big")
    assert frp.dscp == 48


def test_every_byte_of_an_frp() -> None:
    body = accurate.FRP.encode(
        kind=accurate.STOP, counted=1, source_qp=0x0A0B0C, current_rate=0x01020304, desired_rate=0x05060708
    )
    assert body.hex() == "880a0b0c0102030405060708"
    assert accurate.FRP.encode(kind=accurate.INIT, response=1, short_circuit=1).hex() == "70" + "00" * 11


def test_the_frame_is_70_bytes_so_28_mbps_a_flow() -> None:
    link, qa, _ = setup()
    qa.post(100_000)
    link.run(1_000)
    frame = next(frame for _, side, frame in link.sent if side == 0 and is_frp(frame))
    assert wire.wire_bytes(frame) == 70
    assert 70 * 8 * 50_000 == 28_000_000


def test_the_destination_bounces_to_the_senders_queue_pair() -> None:
    link, qa, _ = setup()
    qa.post(100_000)
    link.run(30_000)
    (_, asked), (_, answered) = frps(link, 0)[0], frps(link, 1)[0]
    assert answered.response
    assert not answered.short_circuit
    assert (answered.sequence, answered.current_kbps) == (asked.sequence, asked.current_kbps)


def test_a_response_sets_the_rate_to_the_larger_of_cr_and_dr() -> None:
    def lowered(now: int, frame: bytes) -> bytes:
        return rated(frame, 2 * GBPS, 3 * GBPS) if is_frp(frame) and not Frp(frame).response else frame

    link, qa, _ = setup(lowered)
    qa.post(1_000_000)
    link.run(10_000)
    assert qa.rate_bps == 3e9


def test_dr_is_how_a_rate_recovers() -> None:
    share = [2 * GBPS]

    def contention_point(now: int, frame: bytes) -> bytes:
        if is_frp(frame) and not Frp(frame).response:
            frp = Frp(frame)
            return rated(frame, min(frp.current_kbps, share[0]), min(frp.desired_kbps, share[0]))
        return frame

    link, qa, _ = setup(contention_point)
    qa.post(10_000_000)
    link.run(10_000)
    assert qa.rate_bps == 2e9
    share[0] = 6 * GBPS
    link.run(50_000)
    assert qa.rate_bps == 6e9


def short_circuit(qa: QueuePair, current_kbps: int, sequence: int | None = None) -> None:
    """Deliver a notification from a switch, made from the newest FRP."""
    response(qa, current_kbps, sequence, short_circuit=1)


def response(qa: QueuePair, current_kbps: int, sequence: int | None = None, short_circuit: int = 0) -> None:
    """Deliver an answer to the newest FRP."""
    body = accurate.FRP.encode(
        response=1, short_circuit=short_circuit, source_qp=7, current_rate=current_kbps, desired_rate=current_kbps
    )
    if sequence is None:
        sequence = of_kind(qa.reaction_point, Accurate).sequence
    frame = qa.frames.control_frame(accurate.FRP.opcode, body, psn=sequence)
    qa.reaction_point.on_control(0, accurate.FRP.opcode, frame, wire.AFTER_BTH)


def test_a_short_circuit_may_only_lower() -> None:
    link, qa, _ = setup()
    qa.post(1_000_000)
    link.run(10_000)
    short_circuit(qa, 4 * GBPS)
    assert qa.rate_bps == 4e9
    short_circuit(qa, 9 * GBPS)
    assert qa.rate_bps == 4e9


def test_every_switch_on_the_way_may_answer_an_frp_and_the_destination_has_the_last_word() -> None:
    """In any order of the answers to one FRP, the final rate is that of the FRP after it has passed all links."""
    for order in ([4, 3, 2], [2, 3, 4], [3, 2, 4]):
        link, qa, _ = setup()
        qa.post(1_000_000)
        link.run(10_000)
        for gbps in order:
            short_circuit(qa, gbps * GBPS)
        assert qa.rate_bps == 2e9
        response(qa, 2 * GBPS)
        assert qa.rate_bps == 2e9
        short_circuit(qa, 4 * GBPS)
        assert qa.rate_bps == 2e9


def test_an_older_response_cannot_undo_a_newer_one() -> None:
    link, qa, _ = setup()
    qa.post(1_000_000)
    link.run(70_000)
    newest = of_kind(qa.reaction_point, Accurate).sequence
    short_circuit(qa, 5 * GBPS, newest)
    short_circuit(qa, 1 * GBPS, newest - 1)
    assert qa.rate_bps == 5e9


def test_sequence_numbers_wrap() -> None:
    link, qa, _ = setup()
    of_kind(qa.reaction_point, Accurate).sequence = 0xFFFFFE
    qa.post(1_000_000)
    link.run(70_000)
    assert of_kind(qa.reaction_point, Accurate).sequence < 10
    short_circuit(qa, 5 * GBPS)
    short_circuit(qa, 1 * GBPS, 0xFFFFFF)
    assert qa.rate_bps == 5e9


@pytest.mark.parametrize(("size_bytes", "counted"), [(20_000, True), (31_000, False)])
def test_a_flow_stop_follows_the_last_packet_and_says_whether_the_flow_was_counted(
    size_bytes: int, counted: bool
) -> None:
    """At 10 Gb/s 20 kB end in the period of their flow-init; 31 kB end after 26 us, in a period without an FRP."""
    link, qa, _ = setup(send_at=0.9)
    qa.post(size_bytes)
    link.run(200_000)
    sent = frps(link, 0)
    assert [frp.kind for _, frp in sent] == [accurate.INIT, accurate.STOP] if counted else True
    assert sent[-1][1].kind == accurate.STOP
    assert sent[-1][1].counted == (sent[-1][0] // PERIOD in {now // PERIOD for now, _ in sent[:-1]})
    assert sent[-1][1].counted == counted
    last_data = max(now for now, side, frame in link.sent if side == 0 and not is_frp(frame))
    assert last_data < sent[-1][0] < last_data + 1_000


def test_small_bursts_send_no_frps() -> None:
    link, qa, qb = setup()
    qa.post(4_000)
    link.run(100_000)
    assert frps(link, 0) == []
    assert qb.stats.bytes_delivered == 4_000


def test_a_small_burst_that_goes_on_is_announced() -> None:
    link, qa, _ = setup()
    for _ in range(30):
        qa.post(4_000, start_ns=0)
    link.run(3_000)
    assert frps(link, 0)[0][1].kind == accurate.INIT


def test_without_flow_stop_the_heartbeat_just_ends() -> None:
    link, qa, _ = setup(flow_stop=False)
    qa.post(100_000)
    link.run(300_000)
    assert all(frp.kind != accurate.STOP for _, frp in frps(link, 0))
    assert frps(link, 0)[-1][0] < 100_000


def test_clocks_that_are_off_send_at_their_own_quarter() -> None:
    link, qa, _ = setup(clock_error_ns=2_000)
    qa.post(1_000_000)
    link.run(200_000)
    late = [now % PERIOD - PERIOD // 4 for now, frp in frps(link, 0) if frp.kind == accurate.PERIODIC]
    assert max(late) - min(late) < 900
    assert -2_000 <= min(late) <= 2_000
    assert min(late) != 0


def test_a_lost_response_costs_a_period() -> None:
    def lossy(now: int, frame: bytes) -> bytes | None:
        if is_frp(frame) and Frp(frame).response and now < 20_000:
            return None
        return rated(frame, 2 * GBPS, 2 * GBPS) if is_frp(frame) and not Frp(frame).response else frame

    link, qa, _ = setup(lossy)
    qa.post(1_000_000)
    link.run(20_000)
    assert qa.rate_bps == 10e9
    link.run(40_000)
    assert qa.rate_bps == 2e9


@pytest.mark.parametrize("scope", ["qp", "destination", "pair"])
@pytest.mark.parametrize("sender", [0, 1])
def test_a_burst_is_announced_once_whichever_queue_pair_sends(scope: str, sender: int) -> None:
    a, b = pair("accurate", line_rate_bps=10_000_000_000, cc_scope=scope)
    qps = [connect(a, b, n)[0] for n in (1, 2)]
    link = Wire(a, b)
    qps[sender].post(100_000)
    link.run(1_000_000)
    kinds = [frp.kind for _, frp in frps(link, 0) if frp.kind != accurate.PERIODIC]
    assert kinds == [accurate.INIT, accurate.STOP]


@pytest.mark.parametrize("scope", ["destination", "pair"])
def test_a_burst_lasts_until_the_last_queue_pair_has_sent(scope: str) -> None:
    a, b = pair("accurate", line_rate_bps=10_000_000_000, cc_scope=scope)
    qps = [connect(a, b, n)[0] for n in (1, 2)]
    link = Wire(a, b)
    qps[0].post(20_000)
    qps[1].post(100_000)
    link.run(1_000_000)
    sent = frps(link, 0)
    last_data = max(now for now, side, frame in link.sent if side == 0 and not is_frp(frame))
    assert [frp.kind for _, frp in sent if frp.kind != accurate.PERIODIC] == [accurate.INIT, accurate.STOP]
    assert sent[-1][0] > last_data


def slow(now: int, frame: bytes) -> bytes:
    """Return the frame as it leaves a contention point with a fair share of 0.1 Gb/s."""
    return rated(frame, GBPS // 10, GBPS // 10) if is_frp(frame) and not Frp(frame).response else frame


def test_a_small_burst_leaves_at_line_rate_whatever_the_rate_of_the_burst_before_it() -> None:
    link, qa, _ = setup(slow)
    qa.post(100_000)
    link.run(20_000_000)
    assert qa.rate_bps == 1e8
    before = len(frps(link, 0))
    message = qa.post(4_000, start_ns=30_000_000)
    link.run(40_000_000)
    assert len(frps(link, 0)) == before
    assert message.completed_ns - 30_000_000 < 6_000


@pytest.mark.parametrize(("size_bytes", "kinds"), [(1_000, []), (4_000, []), (5_000, [accurate.INIT, accurate.STOP])])
def test_a_burst_may_begin_while_the_one_before_it_is_unacknowledged(size_bytes: int, kinds: list[int]) -> None:
    """The last of its 100 packets leaves by 85 us, and is acknowledged after 87 us. Then the next burst begins anew."""
    link, qa, _ = setup()
    qa.post(100_000)
    message = qa.post(size_bytes, start_ns=86_000)
    link.run(85_900)
    assert frps(link, 0)[-1][1].kind == accurate.STOP
    assert qa.stats.bytes_acked < 100_000
    before = len(link.sent)
    link.run(300_000)
    assert message.completed_ns > 0
    sent = [Frp(frame).kind if is_frp(frame) else "data" for _, side, frame in link.sent[before:] if side == 0]
    packets = -(-size_bytes // 1_000)
    assert sent == [*kinds[:1], *["data"] * packets, *kinds[1:]]


def test_what_is_posted_for_later_does_not_announce_a_small_burst() -> None:
    link, qa, qb = setup()
    qa.post(4_000)
    qa.post(100_000, start_ns=500_000)
    link.run(400_000)
    assert frps(link, 0) == []
    assert qb.stats.bytes_delivered == 4_000


def test_when_the_queue_pair_that_spoke_is_closed_another_speaks() -> None:
    a, b = pair("accurate", line_rate_bps=10_000_000_000, cc_scope="destination")
    first, second = [connect(a, b, n) for n in (1, 2)]
    link = Wire(a, b)
    first[0].post(10_000)
    link.run(100_000)
    a.close_qp(first[0])
    b.close_qp(first[1])
    before = len(frps(link, 0))
    second[0].post(100_000)
    link.run(1_000_000)
    assert {frp.source_qp for _, frp in frps(link, 0)[before:]} == {2}
    assert b.stats.unknown_qp == 0


def test_a_flow_stops_when_what_it_would_send_again_is_acknowledged() -> None:
    """Its ACKs come after the time-out, and before any retransmission."""
    a, b = pair("accurate", {"exempt_bytes": 0}, line_rate_bps=10_000_000_000, rto_ns=50_000)
    qa, _ = connect(a, b)
    qa.post(3000)
    now = 0
    data: list[bytes] = []
    while len(data) < 3:
        frame = a.next_frame(now)
        if frame is not None and not is_frp(frame):
            data.append(frame)
        now += 1000
    assert not of_kind(qa.reaction_point, Accurate).active  # its last packet has left
    answers = []
    for frame in data:
        b.receive(now, frame)
        answers.append(due_frame(b, now))
    assert Frp(due_frame(a, now)).kind == accurate.STOP
    frames = [due_frame(a, time) for time in (60_000, 60_001)]  # the first packet is sent again, as a new flow
    assert [is_frp(frame) for frame in frames] == [False, True]
    assert of_kind(qa.reaction_point, Accurate).active
    for answer in answers:
        a.receive(60_100, answer)
    assert qa.stats.bytes_acked == 3000
    assert not of_kind(qa.reaction_point, Accurate).active
    assert Frp(due_frame(a, 60_200)).kind == accurate.STOP
    assert a.next_frame(70_000) is None
    assert a.next_wakeup_ns() == 1 << 61
