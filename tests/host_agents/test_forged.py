"""Frames that no p4cc sender made: they are counted, and no content makes a host fail."""

from __future__ import annotations

import random
from typing import Any

import pytest

from host_agents import registry, wire
from host_agents.nic_tables import SleekConfig
from host_agents.selective_repeat import window_packets
from host_agents.timers import NEVER
from p4cc._link import Wire, connect, pair, trimmed
from tools.attack.forging import forged

FRAMES = 1500


@pytest.mark.parametrize("cc", sorted(registry.protocols()))
def test_no_frame_ends_a_host(cc: str) -> None:
    rng = random.Random(cc)
    a, b = pair(cc)
    qa, qb = connect(a, b)
    qa.post(10_000)
    qb.post(10_000)
    now_ns = 0
    seen: list[bytes] = []
    for _ in range(FRAMES):
        now_ns += 500
        for sender, receiver in ((a, b), (b, a)):
            frame = sender.next_frame(now_ns)
            if frame is not None:
                seen.append(frame)
                receiver.receive(now_ns, frame)
            if seen:
                model = rng.choice(seen[-50:])
                receiver.receive(now_ns, forged(model, rng))
    assert a.stats.malformed + b.stats.malformed > 100


@pytest.mark.parametrize("cc", ["nscc", "rccc", "rccc+nscc", "swift"])
@pytest.mark.parametrize("sleek_windows", [0.0, 1.5])
def test_no_frame_ends_a_host_that_answers_by_bytes(cc: str, sleek_windows: float) -> None:
    """Packets take several paths, and some are lost or trimmed; at the end no packet is sent."""
    rng = random.Random(f"{cc} {sleek_windows}")
    sleek = SleekConfig(windows=sleek_windows)
    config: dict[str, Any] = {"loss_packets": 0, "ack_every_bytes": 4_000, "sleek": sleek, "last_hop_dscp": 50}
    a, b = pair(cc, load_balancer="mixed", reliability="selective-repeat", **config)
    qa, qb = connect(a, b)
    qa.post(200_000)
    qb.post(200_000)
    now_ns = 0
    seen: list[bytes] = []
    for _ in range(FRAMES):
        now_ns += 500
        for sender, receiver in ((a, b), (b, a)):
            frame = sender.next_frame(now_ns)
            if frame is not None:
                seen.append(frame)
                if frame[wire.BTH] <= wire.SEND_ONLY and rng.random() < 0.1:
                    seen.append(trimmed(frame))
                if rng.random() < 0.9:
                    receiver.receive(now_ns, seen[-1])
            if seen:
                receiver.receive(now_ns, forged(rng.choice(seen[-50:]), rng))
    assert a.stats.malformed + b.stats.malformed > 100
    for _ in range(200_000):
        due_ns = min(a.next_wakeup_ns(), b.next_wakeup_ns())
        if due_ns >= NEVER:
            break
        now_ns = max(now_ns + 100, due_ns)
        for sender, receiver in ((a, b), (b, a)):
            if (frame := sender.next_frame(now_ns)) is not None:
                receiver.receive(now_ns, frame)
    assert min(a.next_wakeup_ns(), b.next_wakeup_ns()) >= NEVER


@pytest.mark.parametrize(
    ("opcode", "more_bytes"),
    [(wire.ACKNOWLEDGE, 0), (wire.SACK, wire.SACK_BYTES), (wire.CUMULATIVE, wire.CUMULATIVE_BYTES)],
)
def test_an_ack_without_telemetry_is_counted(opcode: int, more_bytes: int) -> None:
    a, b = pair("hpcc")
    qa, _ = connect(a, b)
    qa.post(1000)
    frame = a.next_frame(0)
    assert frame is not None
    b.receive(0, frame)
    answer = b.next_frame(1)
    assert answer is not None
    bare = bytearray(answer[: wire.AFTER_BTH] + answer[wire.AFTER_BTH + wire.SHIM_BYTES :])
    bare[wire.BTH] = opcode
    bare[-wire.ICRC_BYTES : -wire.ICRC_BYTES] = bytes(more_bytes)
    for at in (wire.TOTAL_LENGTH, wire.UDP_LENGTH):
        length = int.from_bytes(bare[at : at + 2], "big") - wire.SHIM_BYTES + more_bytes
        bare[at : at + 2] = length.to_bytes(2, "big")
    bare[24:26] = bytes(2)
    bare[24:26] = wire.ip_checksum(bytes(bare[14:34])).to_bytes(2, "big")
    a.receive(2, bytes(bare))
    assert (a.stats.malformed, qa.stats.acks_received) == (1, 0)
    a.receive(3, answer)
    assert (a.stats.malformed, qa.stats.acks_received) == (1, 1)


@pytest.mark.parametrize("reliability", ["go-back-n", "selective-repeat"])
def test_a_trimmed_packet_without_telemetry_is_counted(reliability: str) -> None:
    a, b = pair("hpcc", reliability=reliability)
    qa, qb = connect(a, b)
    qa.post(1000)
    frame = a.next_frame(0)
    assert frame is not None
    b.receive(0, frame)
    b.receive(1, trimmed(frame))
    assert (b.stats.malformed, qb.stats.trimmed_received) == (1, 0)


def with_psn(frame: bytes, psn: int) -> bytes:
    return frame[: wire.ACK_PSN + 1] + psn.to_bytes(3, "big") + frame[wire.ACK_PSN + 4 :]


def test_what_nobody_can_have_sent_is_not_waited_for() -> None:
    """A window is the data of two time-outs of 1 ms and a base RTT of 1 us at 100 Gb/s, in packets of 1,058 B."""
    a, b = pair("none", reliability="selective-repeat", rto_ns=1_000_000, base_rtt_ns=1_000)
    qa, qb = connect(a, b)
    window = window_packets(100_000_000_000, 1_000_000, 1_000, 1058)
    assert window == 23_641
    qa.post(2000)
    first, second = a.next_frame(0), a.next_frame(100)
    assert first is not None
    assert second is not None
    for psn in (window, 1 << 20, (1 << 23) - 1):
        b.receive(200, with_psn(second, psn))
    assert (qb.stats.out_of_window, qb.stats.out_of_order, b.next_frame(200)) == (3, 0, None)
    b.receive(300, with_psn(second, window - 1))
    assert (qb.stats.out_of_window, qb.stats.out_of_order) == (3, 1)
    b.receive(400, first)
    b.receive(500, second)
    assert qb.stats.bytes_delivered == 2000


@pytest.mark.parametrize("more", [0, 1_500_000])
def test_what_somebody_else_acknowledged_is_sent_again(more: int) -> None:
    """The third of three packets is lost, and a forged SACK acknowledges it.

    The sender then has no packet in flight, or sends on past the receiver's window.
    """
    a, b = pair("none", reliability="selective-repeat", rto_ns=50_000)
    qa, qb = connect(a, b)
    qa.post(3000)
    frames = [a.next_frame(100 * i) for i in range(3)]
    answers = []
    for frame in frames[:2]:
        assert frame is not None
        b.receive(1000, frame)
        answers.append(b.next_frame(1000))
    assert answers[1] is not None
    sack = bytearray(answers[1])
    sack[61:72] = (2).to_bytes(3, "big") + (1).to_bytes(8, "big")  # the map begins with the third, and names it
    a.receive(2000, bytes(sack))
    assert (qa.stats.bytes_acked, qa.inflight_bytes, qa.sender.unacked) == (3000, 0, 2)
    if more:
        qa.post(more)
    Wire(a, b).run(10_000_000)
    assert (qa.stats.timeouts, qa.stats.bytes_acked) == (1, 3000 + more)
    assert (qa.stats.packets_retransmitted == 1) or more
    assert (qb.stats.bytes_delivered, a.next_wakeup_ns(), b.next_wakeup_ns()) == (3000 + more, NEVER, NEVER)


def test_a_link_carries_whole_frames_to_nics_that_check_the_icrc() -> None:
    a, b = pair("dcqcn", check_icrc=True)
    qa, _ = connect(a, b)
    qa.post(5000)
    Wire(a, b).run(1_000_000)
    assert (qa.stats.bytes_acked, a.stats.malformed, b.stats.malformed) == (5000, 0, 0)


@pytest.mark.parametrize("check_icrc", [False, True])
def test_a_nic_may_check_the_icrc(check_icrc: bool) -> None:
    a, b = pair("dcqcn", check_icrc=check_icrc)
    qa, qb = connect(a, b)
    qa.post(1000)
    frame = a.next_frame(0)
    assert frame is not None
    whole = wire.materialize(frame)
    corrupted = whole[:100] + bytes([whole[100] ^ 1]) + whole[101:]
    b.receive(0, corrupted)
    assert (b.stats.malformed, qb.stats.bytes_delivered) == ((1, 0) if check_icrc else (0, 1000))
    b.receive(1, whole[:22] + b"\x3f" + whole[23:24] + header_checksum(whole, 0x3F) + whole[26:])  # a router was here
    assert qb.stats.bytes_delivered == 1000


def header_checksum(frame: bytes, ttl: int) -> bytes:
    header = bytearray(frame[14:34])
    header[8], header[10:12] = ttl, bytes(2)
    return wire.ip_checksum(bytes(header)).to_bytes(2, "big")
