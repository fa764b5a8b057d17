"""MP-RDMA's window step by step, at 100 Gb/s and 8 us, so with a BDP of 100,000 bytes."""

from typing import Any

import pytest

from host_agents.cc.base import Feedback, Path
from host_agents.cc.mprdma import MpRdma, MpRdmaParameters
from tests.host_agents.windows import grown

PACKET = 1058


def window(packets: float = 50.0, **parameters: Any) -> MpRdma:
    rp = MpRdma(MpRdmaParameters(**parameters), Path(100e9, 8_000, 1000, PACKET, 80))
    rp.window_bytes = packets * PACKET
    return rp


def ack(rp: MpRdma, marked: bool = False, acked_bytes: int = PACKET) -> float:
    feedback = Feedback()
    feedback.marked, feedback.acked_bytes = marked, acked_bytes
    rp.on_ack(feedback)
    return rp.window_bytes / PACKET


def test_it_starts_with_a_quarter_more_than_a_bdp() -> None:
    assert MpRdma(MpRdmaParameters(), Path(100e9, 8_000, 1000, PACKET, 80)).window_bytes == 125_000


def test_an_ack_without_a_mark_adds_one_over_the_window() -> None:
    assert ack(window(50)) == pytest.approx(50 + 1 / 50)
    assert ack(window(2)) == pytest.approx(2.5)


def test_an_ack_for_several_packets_counts_for_each() -> None:
    assert ack(window(50), acked_bytes=3 * PACKET) == pytest.approx(50 + 3 / 50)


def test_a_marked_ack_takes_half_a_packet() -> None:
    assert ack(window(50), marked=True) == pytest.approx(49.5)


def test_a_mark_counts_though_another_ack_has_covered_the_packet() -> None:
    assert ack(window(50), marked=True, acked_bytes=0) == pytest.approx(49.5)
    assert ack(window(50), acked_bytes=0) == 50


def test_a_window_of_marks_halves_the_window_and_one_without_adds_a_packet() -> None:
    rp = window(40)
    for _ in range(40):
        ack(rp, marked=True)
    assert rp.window_bytes == pytest.approx(20 * PACKET)
    for _ in range(20):
        ack(rp)
    assert rp.window_bytes / PACKET == pytest.approx(grown(20, 20))


def test_one_mark_in_half_a_window_of_acks_keeps_it() -> None:
    """Each of n - 1 ACKs adds 1/w and one takes 1/2, which balance at n = w / 2 + 1."""
    rp = window(20)
    for i in range(11 * 50):
        ack(rp, marked=i % 11 == 10)
    assert rp.window_bytes / PACKET == pytest.approx(20, abs=0.5)  # a mark takes half a packet


def test_a_trimmed_packet_counts_as_a_mark_unless_told_otherwise() -> None:
    rp = window(50)
    rp.on_nack(0, PACKET, True)
    assert rp.window_bytes == 49.5 * PACKET
    rp = window(50, trim_decrease_packets=1.0)
    rp.on_nack(0, PACKET, True)
    assert rp.window_bytes == 49 * PACKET


def test_bounds() -> None:
    rp = window(1.2)
    assert ack(rp, marked=True) == 1
    rp.on_timeout(0)
    assert rp.window_bytes == PACKET
    rp = window()
    rp.window_bytes = 124_995.0
    ack(rp)
    assert rp.window_bytes == 125_000


def test_a_time_out_starts_over() -> None:
    rp = window(50)
    rp.on_timeout(0)
    assert rp.window_bytes == PACKET
    assert ack(rp) == 2
