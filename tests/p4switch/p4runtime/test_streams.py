"""Digests, packet-in and packet-out, as messages."""

from __future__ import annotations

import pytest

from p4switch.p4runtime import P4RuntimeError, digests
from p4switch.p4runtime.messages import Message, code_pb2, p4runtime_pb2
from tests.p4switch.p4runtime.conftest import Bench
from tests.p4switch.p4runtime.controller import DELETE, INSERT, MODIFY, Controller
from tests.p4switch.p4runtime.fake import FakeSwitch


def digest(controller: Controller, max_timeout_ns: int = 0, max_list_size: int = 0, ack_timeout_ns: int = 0) -> Message:
    return p4runtime_pb2.DigestEntry(
        digest_id=controller.id("digests", "learn_t"),
        config={"max_timeout_ns": max_timeout_ns, "max_list_size": max_list_size, "ack_timeout_ns": ack_timeout_ns},
    )


def learnt(e: int, port: int) -> tuple[int, bytes]:
    return 1, e.to_bytes(2, "big") + port.to_bytes(2, "big")


def values(message: Message) -> list[list[bytes]]:
    return [[m.bitstring for m in data.struct.members] for data in message.digest.data]


def test_configuration(controller: Controller) -> None:
    one = digest(controller, 1, 2, 3)
    controller.refused("NOT_FOUND", MODIFY, one)
    controller.refused("NOT_FOUND", DELETE, one)
    controller.insert(one)
    controller.refused("ALREADY_EXISTS", INSERT, one)
    assert controller.read(p4runtime_pb2.DigestEntry()) == [one]
    controller.modify(digest(controller, 4))
    assert controller.read(p4runtime_pb2.DigestEntry(digest_id=one.digest_id)) == [digest(controller, 4)]
    controller.delete(one)
    assert controller.read(p4runtime_pb2.DigestEntry()) == []
    controller.refused("INVALID_ARGUMENT", INSERT, digest(controller, -1))
    controller.refused("INVALID_ARGUMENT", INSERT, p4runtime_pb2.DigestEntry(digest_id=5))


def test_at_once(controller: Controller, bench: Bench, switch: FakeSwitch) -> None:
    switch.pending_digests = [learnt(1, 2)]
    assert bench.device.poll() == []  # no controller has enabled the digest
    controller.insert(digest(controller))
    switch.pending_digests = [learnt(1, 2), learnt(0x300, 0x1FF), learnt(1, 2)]
    (message,) = bench.device.poll()
    assert message.digest.digest_id == controller.id("digests", "learn_t")
    assert values(message) == [[b"\x01", b"\x02"], [b"\x03\x00", b"\x01\xff"]]  # without the repeat
    assert bench.device.poll() == []
    switch.pending_digests = [learnt(1, 2)]
    (again,) = bench.device.poll()  # no ack time-out: nothing is remembered
    assert again.digest.list_id != message.digest.list_id


def test_lists_are_gathered(controller: Controller, bench: Bench, switch: FakeSwitch) -> None:
    controller.insert(digest(controller, max_timeout_ns=100, max_list_size=3))
    switch.pending_digests = [learnt(1, 0)]
    bench.now_ns = 1000
    assert bench.device.poll() == []
    switch.pending_digests = [learnt(2, 0)]
    bench.now_ns = 1099
    assert bench.device.poll() == []
    bench.now_ns = 1100
    assert values(bench.device.poll()[0]) == [[b"\x01", b"\0"], [b"\x02", b"\0"]]
    switch.pending_digests = [learnt(i, 0) for i in range(7)]
    full = bench.device.poll()
    assert [len(m.digest.data) for m in full] == [3, 3]


def test_what_is_not_acknowledged_is_sent_again_after_one_to_two_time_outs(
    controller: Controller, bench: Bench, switch: FakeSwitch
) -> None:
    ms = 1_000_000
    bench.now_ns = 50 * ms
    controller.insert(digest(controller, max_list_size=1, ack_timeout_ns=200 * ms))

    def lists(now_ns: int) -> int:
        bench.now_ns = now_ns
        switch.pending_digests = [learnt(1, 0)]
        return len(bench.device.poll())

    # Sweeps at 250, 450, 650 ...: the second one that sees a list forgets it.
    assert [lists(t * ms) for t in (60, 260, 449, 450, 500, 849, 850)] == [1, 0, 0, 1, 0, 0, 1]
    controller.modify(digest(controller, max_list_size=1, ack_timeout_ns=ms))  # as if it were 100 ms
    assert [lists(t * ms) for t in (1049, 1050)] == [0, 1]


def test_acknowledgement(controller: Controller, bench: Bench, switch: FakeSwitch) -> None:
    controller.insert(digest(controller, max_list_size=1, ack_timeout_ns=1000))
    switch.pending_digests = [learnt(1, 0)]
    (message,) = bench.device.poll()
    switch.pending_digests = [learnt(1, 0)]
    assert bench.device.poll() == []  # not acknowledged yet
    bench.device.acknowledge(p4runtime_pb2.DigestListAck(digest_id=message.digest.digest_id, list_id=99))
    switch.pending_digests = [learnt(1, 0)]
    assert bench.device.poll() == []
    bench.device.acknowledge(
        p4runtime_pb2.DigestListAck(digest_id=message.digest.digest_id, list_id=message.digest.list_id)
    )
    switch.pending_digests = [learnt(1, 0)]
    assert len(bench.device.poll()) == 1
    with pytest.raises(P4RuntimeError) as caught:
        bench.device.acknowledge(p4runtime_pb2.DigestListAck(digest_id=3))
    assert caught.value.code == code_pb2.INVALID_ARGUMENT


@pytest.mark.parametrize("max_list_size", [1, 2**31 - 1])
def test_digests_that_nobody_acknowledges_are_bounded(
    controller: Controller, bench: Bench, switch: FakeSwitch, caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch, max_list_size: int,
) -> None:  # fmt: skip
    monkeypatch.setattr(digests, "MAX_KEPT", 8)
    controller.insert(digest(controller, max_timeout_ns=10**18, max_list_size=max_list_size, ack_timeout_ns=1))
    switch.pending_digests = [learnt(i, 0) for i in range(8 + 3)]
    lists = bench.device.poll()
    assert sum(len(message.digest.data) for message in lists) == 8
    assert caplog.messages == ["digest learn_t: 8 wait for a controller that acknowledges none; more are lost"]
    for message in lists:
        bench.device.acknowledge(
            p4runtime_pb2.DigestListAck(digest_id=message.digest.digest_id, list_id=message.digest.list_id)
        )
    switch.pending_digests = [learnt(1, 5)]
    bench.device.poll()
    assert caplog.messages[1:] == ["digest learn_t: 3 were lost"]
    switch.lost_digests = 5
    for _ in range(2):
        bench.device.poll()
    assert caplog.messages[2:] == ["5 digests were lost: no earlier ones had been requested"]


def packet_out(*metadata: tuple[int, bytes]) -> Message:
    message = p4runtime_pb2.PacketOut(payload=b"hello")
    for ident, value in metadata:
        message.metadata.add(metadata_id=ident, value=value)
    return message


def test_packet_in(bench: Bench) -> None:
    # ingress_port 9 bits, reason 7 bits
    message = bench.device.packet_in((300 << 7 | 5).to_bytes(2, "big") + b"hello")
    assert message.packet.payload == b"hello"
    assert [(m.metadata_id, m.value) for m in message.packet.metadata] == [(1, b"\x01\x2c"), (2, b"\x05")]
    with pytest.raises(ValueError, match="shorter than the packet_in header"):
        bench.device.packet_in(b"\0")


def test_packet_out(bench: Bench) -> None:
    frame = bench.device.packet_out(packet_out((2, b"\x05"), (1, b"\x00\x01\x2c")))
    assert frame == (300 << 7 | 5).to_bytes(2, "big") + b"hello"


@pytest.mark.parametrize(
    "metadata",
    [
        [(1, b"\x01")],
        [(1, b"\x01"), (2, b"\x01"), (3, b"\x01")],
        [(1, b"\x01"), (2, b"\x80")],
        [(1, b"\x01"), (2, b"")],
        [(1, b"\x01"), (2, b"\x01"), (2, b"\x01")],
    ],
)
def test_malformed_packet_out(bench: Bench, metadata: list[tuple[int, bytes]]) -> None:
    with pytest.raises(P4RuntimeError) as caught:
        bench.device.packet_out(packet_out(*metadata))
    assert caught.value.code == code_pb2.INVALID_ARGUMENT
