"""The retry count: a peer that acknowledges nothing ends the connection, but a slow or distant one does not."""

from __future__ import annotations

import pytest

from harness.columns.flows import all_columns
from harness.worlds.host_session import Connect, Event, Failed, HostSession, Post
from host_agents import registry
from host_agents.errors import HostError, ParameterError
from host_agents.messages import Message
from host_agents.nic import Nic
from host_agents.qp import QueuePair
from host_agents.timers import NEVER
from p4cc._link import Wire, connect, pair
from tests.host_agents.pause import pause_frame

RTO_NS = 1_000_000
SECOND = 1_000_000_000


def lost(_now_ns: int, _frame: bytes) -> None:
    return None


def failures(nic: Nic) -> list[Message]:
    found: list[Message] = []
    nic.on_failed = found.append
    return found


@pytest.mark.parametrize("reliability", ["go-back-n", "selective-repeat"])
@pytest.mark.parametrize("retry_count", [0, 1, 7])
def test_messages_fail_after_so_many_retries(reliability: str, retry_count: int) -> None:
    a, b = pair(reliability=reliability, rto_ns=RTO_NS, retry_count=retry_count)
    qa, _ = connect(a, b)
    found = failures(a)
    messages = [qa.post(3000), qa.post(0), qa.post(50_000)]
    later = qa.post(1000, start_ns=SECOND)
    Wire(a, b, hook=lost).run(SECOND // 2)
    assert found == messages
    assert {message.completed_ns for message in messages} == {-1}
    # All packets of a window were first sent within far less than a time-out.
    assert (retry_count + 1) * RTO_NS <= messages[0].failed_ns <= (retry_count + 1.5) * RTO_NS
    assert (qa.failed, a.stats.retries_exceeded) == (True, 1)
    assert nothing_is_left(qa)
    Wire(a, b, hook=lost).run(2 * SECOND)
    assert found == [*messages, later]
    assert (later.failed_ns, later.first_sent_ns) == (SECOND, -1)
    assert a.next_wakeup_ns() >= NEVER


def nothing_is_left(qp: QueuePair, acked_bytes: int = 0) -> bool:
    traffic = qp.reaction_point.traffic
    held = (traffic.waiting_bytes, traffic.inflight_bytes, traffic.unacked_bytes, traffic.held_bytes)
    return held == (0, 0, 0, 0) and qp.inflight_bytes == 0 and qp.stats.bytes_acked == acked_bytes


@pytest.mark.parametrize("cc", sorted(registry.protocols()))
@pytest.mark.parametrize("reliability", ["go-back-n", "selective-repeat"])
def test_of_every_protocol(cc: str, reliability: str) -> None:
    try:
        a, b = pair(cc, reliability=reliability, rto_ns=RTO_NS)
        qa, _ = connect(a, b)
    except (HostError, ParameterError):
        pytest.skip("the protocol is for another kind of reliability")
    found = failures(a)
    message = qa.post(100_000)
    Wire(a, b, hook=lost).run(10 * SECOND)  # TCP's time-outs double
    assert found == [message]
    assert nothing_is_left(qa, 99_000 if cc == "udp" else 0)  # nobody answers for datagrams but for the last one
    assert a.next_wakeup_ns() >= NEVER


@pytest.mark.parametrize("reliability", ["go-back-n", "selective-repeat"])
def test_whatever_is_acknowledged_begins_the_count_anew(reliability: str) -> None:
    a, b = pair(line_rate_bps=100_000_000, reliability=reliability, rto_ns=RTO_NS, retry_count=3)
    qa, _ = connect(a, b)
    qa.post(200_000)  # takes 17 ms

    def in_turns(now_ns: int, frame: bytes) -> bytes | None:
        return frame if now_ns // (2 * RTO_NS) % 2 else None

    Wire(a, b, hook=in_turns).run(SECOND)
    assert qa.stats.timeouts > 3
    assert (qa.stats.bytes_acked, qa.failed) == (200_000, False)


def test_a_queue_pair_in_error_takes_nothing_and_can_be_closed() -> None:
    a, b = pair(rto_ns=RTO_NS, retry_count=0)
    qa, qb = connect(a, b)
    qa.post(1000)
    Wire(a, b, hook=lost).run(SECOND)
    qb.post(1000)
    frame = b.next_frame(2 * SECOND)
    assert frame is not None
    a.receive(2 * SECOND, frame)
    assert a.stats.unknown_qp == 1
    a.close_qp(qa)
    again = a.open_qp("10.0.0.3", qa.qpn, qb.qpn)
    assert not again.failed


def test_nothing_can_be_posted_to_a_queue_pair_in_error() -> None:
    a, b = pair(rto_ns=RTO_NS, retry_count=0)
    qa, _ = connect(a, b)
    refused = []

    def again(_message: Message) -> None:
        with pytest.raises(HostError, match="in error"):
            qa.post(1000)
        refused.append(qa.failed)

    a.on_failed = again
    message = qa.post(1000)
    Wire(a, b, hook=lost).run(2 * RTO_NS)
    again(message)
    assert refused == [True, True]
    assert a.next_wakeup_ns() >= NEVER


def test_a_flow_on_a_connection_that_has_failed_fails_at_once() -> None:
    a, b = pair(rto_ns=RTO_NS, retry_count=0)
    told: list[Event] = []
    session = HostSession(a, told.append, all_columns(["rate_bps"]))
    session.connect(Connect(1, "10.0.0.3", 0))
    session.post(Post(1, 7, 1000, 0, None), 0)
    Wire(a, b, hook=lost).run(2 * RTO_NS)
    session.post(Post(1, 8, 1000, 2 * RTO_NS, None), 2 * RTO_NS)
    assert [event.flow for event in told if isinstance(event, Failed)] == [7, 8]
    assert session.report({}).unfinished == {}


def test_of_queue_pairs_that_share_a_reaction_point_the_others_go_on() -> None:
    a, b = pair("none", cc_scope="pair", rto_ns=RTO_NS, retry_count=1)
    one, _ = connect(a, b)
    two = a.open_qp("10.0.0.3", 12, 12)
    b.open_qp("10.0.0.2", 12, 12)
    found = failures(a)
    message = one.post(5000)
    two.post(20_000)

    def only_two(_now_ns: int, frame: bytes) -> bytes | None:
        return frame if frame[49] == 12 else None  # the last byte of the destination queue pair

    Wire(a, b, hook=only_two).run(SECOND)
    assert found == [message]
    assert two.stats.bytes_acked == 20_000
    assert one.limiter.inflight_bytes == 0


@pytest.mark.parametrize("reliability", ["go-back-n", "selective-repeat"])
def test_an_ack_while_what_is_to_be_sent_again_is_paused(reliability: str) -> None:
    a, b = pair(reliability=reliability, rto_ns=100_000, ack_every_packets=1, pfc=True)
    qa, _ = connect(a, b)
    found = failures(a)
    message = qa.post(5_000)
    link = Wire(a, b, hook=lost)
    link.run(50_000)
    b.receive(50_000, link.sent[0][2])
    ack = b.next_frame(50_000)
    assert ack is not None
    a.receive(50_000, pause_frame(bytes(6), {3: 0xFFFF}))  # until 385 us
    link.run(200_000)
    assert qa.stats.timeouts > 0
    a.receive(200_000, ack)
    link.run(SECOND)
    assert qa.stats.bytes_acked > 0
    assert found == [message]


def test_a_rate_packet_that_is_still_under_way_is_no_retry_of_rcp() -> None:
    a, b = pair("rcp", rto_ns=RTO_NS, retry_count=0)
    qa, _ = connect(a, b)
    qa.post(100_000)
    Wire(a, b, delay_ns=3_000).run(SECOND)  # a rate packet is asked for each 2 us, an answer takes 6 us
    assert (qa.stats.bytes_acked, qa.failed) == (100_000, False)


def test_rcp_waits_while_its_rate_packets_are_answered() -> None:
    a, b = pair("rcp", rto_ns=100_000, retry_count=0, pfc=True)
    qa, _ = connect(a, b)
    qa.post(5_000)
    link = Wire(a, b)
    a.receive(0, pause_frame(bytes(6), {3: 0xFFFF}))  # 336 us
    link.run(SECOND)
    assert (qa.stats.bytes_acked, qa.failed) == (5_000, False)


@pytest.mark.parametrize("retry_count", [0, 2])
def test_unanswered_rate_packets_of_rcp_are_one_retry_in_a_time_out(retry_count: int) -> None:
    a, b = pair("rcp", rto_ns=RTO_NS, retry_count=retry_count)
    qa, _ = connect(a, b)
    message = qa.post(100_000)
    Wire(a, b, hook=lost).run(SECOND)
    assert message.failed_ns == (retry_count + 1) * RTO_NS


def test_a_receiver_of_expresspass_stops_when_its_sender_is_silent() -> None:
    a, b = pair("expresspass", rto_ns=100_000, retry_count=0)
    qa, _ = connect(a, b)
    qa.post(1_000_000)
    Wire(a, b, hook=lambda now_ns, frame: frame if now_ns < 20_000 else None).run(300_000)
    assert qa.failed
    assert b.next_wakeup_ns() >= NEVER


@pytest.mark.parametrize("cc", ["rcp", "accurate", "eqds"])
@pytest.mark.parametrize("scope", ["destination", "pair"])
def test_a_shared_reaction_point_speaks_through_one_that_has_not_failed(cc: str, scope: str) -> None:
    try:
        a, b = pair(cc, reliability="selective-repeat", cc_scope=scope, rto_ns=RTO_NS, retry_count=1)
        one, _ = connect(a, b)
    except HostError:
        pytest.skip("not a scope of the protocol")
    two, _ = connect(a, b, 2)
    found = failures(a)
    message = one.post(50_000)
    later = two.post(50_000, start_ns=50 * RTO_NS)
    Wire(a, b, hook=lambda now_ns, frame: frame if now_ns >= 50 * RTO_NS else None).run(60 * RTO_NS)
    assert found == [message]
    assert later.completed_ns > 0
    a.close_qp(one)
    a.close_qp(two)
    assert nothing_is_left(one)


@pytest.mark.parametrize("retry_count", [0, 2])
def test_unanswered_control_packets_of_sperc_are_one_retry_in_a_time_out(retry_count: int) -> None:
    a, b = pair("sperc", {"short_flow_bytes": 1}, rto_ns=RTO_NS, retry_count=retry_count)
    qa, _ = connect(a, b)
    found = failures(a)
    message = qa.post(1_000_000)
    Wire(a, b, hook=lost).run(SECOND)
    assert found == [message]
    assert (retry_count + 1) * RTO_NS <= message.failed_ns <= (retry_count + 1.5) * RTO_NS
    assert a.next_wakeup_ns() >= NEVER


def test_a_lost_control_packet_of_sperc_is_no_retry() -> None:
    a, b = pair("sperc", {"short_flow_bytes": 1}, rto_ns=RTO_NS, retry_count=0)
    qa, _ = connect(a, b)
    qa.post(1_000_000)

    def late(now_ns: int, frame: bytes) -> bytes | None:
        return frame if now_ns > 0.9 * RTO_NS else None

    Wire(a, b, hook=late).run(SECOND)
    assert (qa.stats.bytes_acked, qa.failed) == (1_000_000, False)


@pytest.mark.parametrize("retry_count", [-1, 8])
def test_it_has_three_bits(retry_count: int) -> None:
    with pytest.raises(ParameterError, match="retry_count"):
        pair(retry_count=retry_count)


def test_what_is_taken_back_and_acknowledged_again_is_no_answer() -> None:
    """A packet is missing that a forged ACK acknowledged; the receiver names a later one after each retransmission.

    A protocol whose own packets are not answered sends a probe between two time-outs.
    """
    a, b = pair("none", reliability="selective-repeat", rto_ns=RTO_NS, retry_count=7)
    qa, _ = connect(a, b)
    found = failures(a)
    message = qa.post(3000)
    frames = [a.next_frame(100 * i) for i in range(3)]
    assert frames[2] is not None
    qa.sender.on_ack(1000, 1)
    b.receive(1000, frames[2])
    wire_between = Wire(a, b)
    for turn in range(40):
        wire_between.run((turn + 1) * RTO_NS - RTO_NS // 4)
        if not qa.failed:
            qa.sender.may_retry((turn + 1) * RTO_NS - RTO_NS // 4)
    assert (found, qa.failed) == ([message], True)
    assert a.next_wakeup_ns() >= NEVER
