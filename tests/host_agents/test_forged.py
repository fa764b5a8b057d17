"""Frames that nobody of p4cc's made: whatever they hold, they are counted, and no host fails over them."""

from __future__ import annotations

import random

import pytest

from host_agents import registry, wire
from host_agents.testing import connect, pair, trimmed
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


def test_an_ack_without_telemetry_is_counted() -> None:
    a, b = pair("hpcc")
    qa, _ = connect(a, b)
    qa.post(1000)
    frame = a.next_frame(0)
    assert frame is not None
    b.receive(0, frame)
    answer = b.next_frame(1)
    assert answer is not None
    bare = bytearray(answer[: wire.AFTER_BTH] + answer[wire.AFTER_BTH + wire.SHIM_BYTES :])
    bare[wire.BTH] = wire.ACKNOWLEDGE
    for at in (wire.TOTAL_LENGTH, wire.UDP_LENGTH):
        bare[at : at + 2] = (int.from_bytes(bare[at : at + 2], "big") - wire.SHIM_BYTES).to_bytes(2, "big")
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
