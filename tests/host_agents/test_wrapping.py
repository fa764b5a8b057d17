"""Data that a reaction point wraps in its own packets, their retransmission, and the class in which they wait."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from host_agents import wire
from host_agents.cc.base import UNLIMITED, Path, ReactionPoint
from host_agents.headers import IP
from host_agents.packets import Field, Header, Packet
from host_agents.qp import QueuePair
from host_agents.registry import Protocol, ProtocolInfo, register
from host_agents.template import Wrapper
from p4cc._link import Hook, Wire, connect, pair
from p4switch.errors import UserError
from tests.host_agents.narrow import due_frame, of_kind
from tests.host_agents.pause import pause_frame

EARLY = Packet("early", 0xF0, (Header("early", (Field("place", 32), Field("reserved", 32))),), opcodes=8, wraps=True)
LAST_EARLY = 5
PAYLOAD = 1_000
PLAIN_BYTES = PAYLOAD + 58


@dataclass(frozen=True)
class Nothing:
    pass


class Early(ReactionPoint):
    """Wraps its first packets, then waits until it is released."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.own_headers = True
        self.wrapper = Wrapper(EARLY)
        self.sent_bytes: list[int] = []
        self.going_on = False

    def data_headers(
        self, now_ns: int, headers: bytes, place: int, message_bytes: int, alone: bool, again: bool
    ) -> bytes:
        return headers if self.going_on else self.wrapper.wrap(headers, EARLY.encode(place=place))

    def on_sent(self, now_ns: int, wire_bytes: int) -> None:
        self.sent_bytes.append(wire_bytes)
        if not self.going_on and self.traffic.sent_packets == LAST_EARLY:
            self.set_window(0.0)

    def go_on(self, place: int) -> None:
        self.going_on = True
        self.outlet.send_again(place)
        self.set_window(UNLIMITED)


INFO = ProtocolInfo("early", "", "", "ecn", Nothing, lambda parameters, mechanisms, path: Early(path), packets=(EARLY,))
PROTOCOL = Protocol("early", INFO, Nothing(), {})


def setup(hook: Hook | None = None, **config: Any) -> tuple[Wire, QueuePair, QueuePair]:
    a, b = pair("none", **config)
    qa, qb = connect(a, b, protocol=PROTOCOL)
    return Wire(a, b, hook=hook), qa, qb


def lost_from(place: int) -> Callable[[int, bytes], bytes | None]:
    """Return a hook that loses wrapped packets from this number on."""

    def hook(now_ns: int, frame: bytes) -> bytes | None:
        wrapped = frame[wire.BTH] & 0xF0 == 0xF0
        return None if wrapped and EARLY.get("place", frame, wire.AFTER_BTH) >= place else frame

    return hook


def test_a_wrapped_packet_says_so_and_is_that_much_longer() -> None:
    link, _, _ = setup()
    link.nics[0].queue_pairs[1].post(2_500)
    link.run(20_000)
    frames = [frame for _, side, frame in link.sent if side == 0]
    assert [frame[wire.BTH] for frame in frames] == [0xF0, 0xF1, 0xF2]
    assert [EARLY.decode(frame, wire.AFTER_BTH)["place"] for frame in frames] == [0, 1, 2]
    assert [wire.wire_bytes(frame) for frame in frames] == [PLAIN_BYTES + 8, PLAIN_BYTES + 8, 500 + 58 + 8]
    assert all(wire.checksum_holds(frame) for frame in frames)
    point = of_kind(link.nics[0].queue_pairs[1].reaction_point, Early)
    assert point.sent_bytes == [wire.wire_bytes(frame) for frame in frames]


def test_receivers_take_it_as_data() -> None:
    link, qa, qb = setup()
    qa.post(2_502)
    link.run(20_000)
    assert qb.stats.bytes_delivered == 2_502
    assert link.nics[1].stats.malformed == 0
    traffic = qa.reaction_point.traffic
    assert (traffic.inflight_bytes, traffic.waiting_bytes) == (0, 0)


@pytest.mark.parametrize("reliability", ["go-back-n", "selective-repeat"])
@pytest.mark.parametrize("passed", [0, 3, 5])
def test_what_did_not_arrive_is_sent_again_without_a_nak(reliability: str, passed: int) -> None:
    link, qa, qb = setup(lost_from(passed), reliability=reliability)
    qa.post(10 * PAYLOAD)
    link.run(20_000)
    traffic = qa.reaction_point.traffic
    lost, waiting = LAST_EARLY - passed, 10 - LAST_EARLY
    assert (traffic.inflight_bytes, traffic.waiting_bytes) == (lost * (PLAIN_BYTES + 8), waiting * PLAIN_BYTES)
    of_kind(qa.reaction_point, Early).go_on(passed)
    link.run(60_000)
    assert qb.stats.bytes_delivered == 10 * PAYLOAD
    assert (qb.stats.out_of_order, qb.stats.duplicates, qb.stats.naks_sent) == (0, 0, 0)
    assert (qa.stats.timeouts, qa.stats.packets_retransmitted) == (0, lost)
    assert (traffic.inflight_bytes, traffic.waiting_bytes) == (0, 0)
    assert of_kind(qa.reaction_point, Early).sent_bytes[LAST_EARLY:] == [PLAIN_BYTES] * (lost + waiting)


def test_wrapped_packets_leave_in_the_class_that_the_point_has_chosen() -> None:
    """A pause of that class holds them back; one of the NIC's own class does not."""
    link, qa, _ = setup()
    a = link.nics[0]
    qa.post(10 * PAYLOAD)  # ready in the NIC's class
    qa.reaction_point.outlet.set_priority(1)
    a.receive(0, pause_frame(bytes(6), {3: 1_000, 1: 0}))
    first = a.next_frame(0)
    assert first is not None
    assert IP.get("dscp", first, wire.IP) == 8 * 1
    a.receive(100, pause_frame(bytes(6), {3: 0, 1: 1_000}))
    assert a.next_frame(1_000) is None
    of_kind(qa.reaction_point, Early).going_on = True
    qa.reaction_point.outlet.set_priority(-1)
    after = a.next_frame(1_000)
    assert after is not None
    assert (after[wire.BTH], IP.get("dscp", after, wire.IP)) == (wire.SEND_MIDDLE, 8 * 3)


def test_a_limiter_among_others_changes_its_class_and_they_go_on() -> None:
    a, b = pair("none")
    qps = [connect(a, b, qpn, protocol=PROTOCOL)[0] for qpn in (1, 2, 3)]
    for qp in qps:
        qp.post(2 * PAYLOAD)
    for qp in (qps[2], qps[0]):
        qp.reaction_point.outlet.set_priority(1)
    sent = [due_frame(a, 1_000 * i) for i in range(6)]
    classes = [IP.get("dscp", frame, wire.IP) // 8 for frame in sent]
    assert classes == [3, 3, 1, 1, 1, 1]
    assert [EARLY.get("place", frame, wire.AFTER_BTH) for frame in sent] == [0, 1, 0, 0, 1, 1]


@pytest.mark.parametrize("spoil", ["cut", "no payload length", "an opcode that is none"])
def test_what_cannot_be_data_is_malformed(spoil: str) -> None:
    link, qa, qb = setup()
    qa.post(500)
    frame = bytearray(due_frame(link.nics[0], 0))
    if spoil == "cut":
        del frame[-1:]
    elif spoil == "an opcode that is none":
        frame[wire.BTH] = 0xF3
    else:
        plain = qa.frames.control_frame(0xF4, b"\0" * 8)
        frame = bytearray(plain)
        frame[wire.PAD] = 0x10
    link.nics[1].receive(0, bytes(frame))
    assert link.nics[1].stats.malformed == 1
    assert qb.stats.packets_received == 0


def test_the_difference_of_lengths_is_charged_to_window_and_limiter() -> None:
    """A packet is in flight and paced with its wrapped length, or with its plain length if it is sent plainly."""
    a, b = pair("none", line_rate_bps=8_000_000_000)  # a byte a ns
    qa, _ = connect(a, b, protocol=PROTOCOL)
    qa.post(3 * PAYLOAD)
    assert a.next_frame(0) is not None
    assert qa.inflight_bytes == PLAIN_BYTES + 8
    assert a.next_frame(PLAIN_BYTES + 8 - 1) is None
    of_kind(qa.reaction_point, Early).going_on = True
    assert a.next_frame(PLAIN_BYTES + 8) is not None
    assert qa.inflight_bytes == 2 * PLAIN_BYTES + 8
    assert qa.reaction_point.traffic.waiting_bytes == PLAIN_BYTES


def test_a_protocol_has_telemetry_or_wraps_data() -> None:
    info = ProtocolInfo("both", "", "", "int", Nothing, INFO.reaction_point, packets=(EARLY,), telemetry=True)
    with pytest.raises(UserError, match="both: either telemetry or"):
        register(info)


def test_a_body_of_one_number_is_wrapped_like_its_bytes() -> None:
    usual = [wire.header(1, 2, 0xC123, opcode, 7, after_bth_bytes=PAYLOAD) + bytes(4) for opcode in (1, 2, 1)]
    one = Packet("one", 0xF0, (Header("one", (Field("place", 32),)),), opcodes=8, wraps=True)
    wrapper, other = Wrapper(one), Wrapper(one)
    for headers, place in zip(usual, (0, 0x7FFFFFFF, 0xFFFFFFFF), strict=True):
        wrapped = wrapper.wrap_word(headers, place)
        assert wrapped == other.wrap(headers, one.encode(place=place))
        assert wrapped[wire.BTH] == headers[wire.BTH] + 0xF0
        assert wire.checksum_holds(wrapped)
