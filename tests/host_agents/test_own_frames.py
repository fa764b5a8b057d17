"""Extent of a protocol's influence on frames of the transport.

It may set headers of its data packets, ACKs of its own, messages that travel alone, partition keys.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from host_agents import wire
from host_agents.cc.base import Feedback, NotificationPoint, Path, ReactionPoint
from host_agents.errors import HostError, ParameterError
from host_agents.headers import AETH
from host_agents.messages import IncastGroup
from host_agents.nic import Nic
from host_agents.packets import TO_SENDER, Field, Header, Packet
from host_agents.qp import QueuePair
from host_agents.registry import Protocol
from host_agents.wire import parse_address
from p4cc._link import Trouble, Wire, connect, pair

MTU = 1000
OWN_ACK = Packet("own ack", 0xE9, (AETH, Header("own", (Field("count", 32, least=1),))), to=TO_SENDER)
TOKENS = wire.BECN


class Teller(ReactionPoint):
    """Writes tokens into packets that are sent alone and for the first time, and records the contents of ACKs."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.own_headers = True
        self.alone_bytes = 2 * MTU
        self.told: list[tuple[str, int]] = []

    def data_headers(
        self, now_ns: int, headers: bytes, place: int, message_bytes: int, alone: bool, again: bool
    ) -> bytes:
        if message_bytes > self.alone_bytes or not alone or again:
            return headers
        return headers[:TOKENS] + b"\x20" + headers[TOKENS + 1 :]

    def on_control(self, now_ns: int, opcode: int, frame: bytes, offset: int) -> None:
        self.told.append(("own", OWN_ACK.get("count", frame, offset)))

    def on_ack(self, feedback: Feedback) -> None:
        self.told.append(("ack", int(feedback.marked)))


class Answerer(NotificationPoint):
    """Counts messages that have started, and echoes no mark while there is only one message."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.own_ack = OWN_ACK
        self.count = 0

    def on_message_start(self, now_ns: int) -> None:
        self.count += 1

    def echo(self, now_ns: int, marked: bool, frame: bytes) -> bool:
        return marked and self.count > 1

    def ack_body(self) -> bytes:
        return self.count.to_bytes(4, "big")


def own(nic: Nic) -> Protocol:
    info = dataclasses.replace(
        nic.protocol.info,
        reaction_point=lambda parameters, mechanisms, path: Teller(path),
        notification_point=lambda parameters, path: Answerer(path),
        packets=(OWN_ACK,),
        reliabilities=("go-back-n",),
    )
    return Protocol("own", info, nic.protocol.parameters, {})


def talkers(**config: Any) -> tuple[Nic, Nic, QueuePair]:
    a, b = pair(mtu_bytes=MTU, **config)
    qa, _ = connect(a, b, protocol=own(a))
    return a, b, qa


def sent_by_a(link: Wire) -> list[tuple[int, int, int]]:
    """Return (time, packet, tokens) of each data packet."""
    return [
        (time_ns, wire.psn(frame), frame[TOKENS] >> 3 & 7)
        for time_ns, side, frame in link.sent
        if side == 0 and frame[wire.BTH] <= wire.SEND_ONLY
    ]


def test_the_header_of_each_data_packet_is_the_points_to_write() -> None:
    a, b, qa = talkers()
    link = Wire(a, b)
    qa.post(2 * MTU)
    link.run(100_000)
    qa.post(2 * MTU + 1)
    link.run(200_000)
    assert [(psn, tokens) for _, psn, tokens in sent_by_a(link)] == [(0, 4), (1, 4), (2, 0), (3, 0), (4, 0)]


def test_nothing_follows_a_message_that_travels_alone_before_it_is_acknowledged() -> None:
    a, b, qa = talkers()
    link = Wire(a, b)
    done = [qa.post(size) for size in (2 * MTU, 1, 5 * MTU, 1, 3 * MTU)]
    link.run(1_000_000)
    assert all(message.completed_ns > 0 for message in done)
    sent = sent_by_a(link)
    # The third message's last packets are in flight when the fourth starts: it travels as if it were long.
    assert [tokens for _, _, tokens in sent] == [4, 4, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0]
    started = [next(time for time, psn, _ in sent if psn == message.first_packet) for message in done]
    assert started[1] >= done[0].completed_ns
    assert started[2] >= done[1].completed_ns
    assert started[3] < done[2].completed_ns
    assert started[4] < done[2].completed_ns


def test_what_is_sent_again_is_told_apart() -> None:
    a, b, qa = talkers(rto_ns=50_000)
    lost: list[int] = []

    def lose_the_first(now_ns: int, frame: bytes) -> bytes | None:
        if frame[wire.BTH] <= wire.SEND_ONLY and not lost:
            lost.append(wire.psn(frame))
            return None
        return frame

    link = Wire(a, b, hook=lose_the_first)
    qa.post(2 * MTU)
    link.run(1_000_000)
    assert [(psn, tokens) for _, psn, tokens in sent_by_a(link)] == [(0, 4), (1, 4), (0, 0), (1, 0)]


def test_an_ack_of_its_own_is_an_ack_and_says_more() -> None:
    a, b, qa = talkers()

    def mark(now_ns: int, frame: bytes) -> bytes:
        data = frame[wire.BTH] <= wire.SEND_ONLY
        return frame[: wire.TOS] + bytes((frame[wire.TOS] | 3,)) + frame[wire.TOS + 1 :] if data else frame

    link = Wire(a, b, hook=lambda now, frame: _checksummed(mark(now, frame)))
    message = qa.post(MTU)
    link.run(100_000)
    qa.post(3 * MTU)
    link.run(200_000)
    assert message.completed_ns > 0
    point = qa.reaction_point
    assert isinstance(point, Teller)
    assert point.told == [("own", 1), ("ack", 0), *[("own", 2), ("ack", 1)] * 3]
    assert b.stats.malformed == a.stats.malformed == 0


def _checksummed(frame: bytes) -> bytes:
    header = bytearray(frame)
    header[24:26] = b"\0\0"
    header[24:26] = wire.ip_checksum(bytes(header[14:34])).to_bytes(2, "big")
    return bytes(header)


@pytest.mark.parametrize("damage", [lambda body: body[:-1], lambda body: body[:-4] + bytes(4)])
def test_a_damaged_ack_of_its_own_is_counted_and_changes_nothing(damage: Callable[[bytes], bytes]) -> None:
    a, b, qa = talkers()
    link = Wire(a, b, hook=lambda now, frame: damage(frame) if frame[wire.BTH] == OWN_ACK.opcode else frame)
    qa.post(MTU)
    link.run(100_000)
    assert a.stats.malformed == 1
    assert qa.stats.acks_received == 0
    assert isinstance(qa.reaction_point, Teller)
    assert qa.reaction_point.told == []


def test_a_nak_has_it_too() -> None:
    a, b, qa = talkers(rto_ns=10_000_000)
    link = Wire(a, b, trouble=Trouble(loss=0.05, seed=3))
    message = qa.post(100 * MTU)
    link.run(100_000_000)
    assert message.completed_ns > 0
    assert qa.stats.naks_received > 0
    answers = {frame[wire.BTH] for _, side, frame in link.sent if side == 1}
    assert answers == {OWN_ACK.opcode}


def test_a_protocol_says_which_reliability_it_can_do_with() -> None:
    a, _ = pair(mtu_bytes=MTU, reliability="selective-repeat")
    with pytest.raises(ParameterError, match="own: reliability 'selective-repeat': expected one of: go-back-n"):
        a.open_qp("10.0.0.3", 1, 1, protocol=own(a))


def test_partitions_do_not_hear_each_other() -> None:
    a, b = pair()
    qa, _ = connect(a, b, 1, partition_key=0x8001)
    other = a.open_qp(b.config.address, 2, 2, partition_key=0x8001)
    b.open_qp(a.config.address, 2, 2, partition_key=0x8002)
    link = Wire(a, b)
    done, unheard = qa.post(MTU), other.post(MTU)
    link.run(100_000)
    assert done.completed_ns > 0
    assert unheard.completed_ns < 0
    assert b.stats.unknown_qp == 1


@pytest.mark.parametrize("key", [0, 0x10000])
def test_a_partition_key_that_cannot_be(key: int) -> None:
    a, _ = pair()
    with pytest.raises(HostError, match=f"partition key {key}: expected 1 to 65535"):
        a.open_qp("10.0.0.3", 1, 1, partition_key=key)


@pytest.mark.parametrize(
    ("members", "text"),
    [
        (tuple(range(256)), "256 members; expected 1 to 255"),
        ((), "0 members; expected 1 to 255"),
        ((0, 300), "no NIC has the id 300; expected less than 300"),
        ((1, 2), "10.0.0.2, which sends, is not among its members"),
    ],
)
def test_groups_that_cannot_be(members: tuple[int, ...], text: str) -> None:
    nics = tuple(parse_address("10.0.0.2") + i for i in range(300))
    _, _, qa = talkers(nics=nics)
    with pytest.raises(HostError, match=f"group 7: {text}"):
        qa.post(1, group=IncastGroup(7, members))
