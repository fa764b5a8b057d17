"""DCTCP step by step: alpha over windows, one cut for each window, growth of one packet for each RTT."""

from typing import Any

import pytest

from host_agents.cc.base import Feedback, Path
from host_agents.cc.dctcp import Dctcp, DctcpParameters
from tests.host_agents.windows import grown

PACKET = 1058.0


class Flow:
    """A sender that numbers its packets in the order of sending, with 100 in flight at a time."""

    def __init__(self, **parameters: Any) -> None:
        self.rp = Dctcp(DctcpParameters(**parameters), Path(100e9, 8_000, 1000, 1058, 80))
        self.rp.traffic.sent_packets = 100
        self.acked = 0

    def acks(self, count: int, marked: bool = False) -> None:
        for _ in range(count):
            feedback = Feedback()
            feedback.order, feedback.acked_bytes, feedback.marked = self.acked, 1058, marked
            self.rp.on_ack(feedback)
            self.acked += 1
            self.rp.traffic.sent_packets += 1


def test_starts_with_one_bdp() -> None:
    assert Flow().rp.window_bytes == 100_000
    assert Flow(initial_window_packets=10).rp.window_bytes == 10_580


def test_alpha_is_an_average_of_the_share_marked_by_window() -> None:
    flow = Flow(initial_alpha=0.0)
    flow.acks(1)  # the first ACK ends the first, empty window; the next ends with packet 100
    flow.acks(39)
    flow.acks(60, marked=True)
    assert flow.rp.marked_share.alpha == 0.0
    flow.acks(1)
    assert flow.rp.marked_share.alpha == pytest.approx(60 / 100 / 16)
    flow.acks(100)
    assert flow.rp.marked_share.alpha == pytest.approx(60 / 100 / 16 * 15 / 16)


def test_one_cut_in_a_window() -> None:
    flow = Flow(initial_alpha=0.5)
    flow.acks(10)
    before, alpha = flow.rp.window_bytes, flow.rp.marked_share.alpha
    flow.acks(50, marked=True)
    assert flow.rp.window_bytes == pytest.approx(before * (1 - alpha / 2))
    once = flow.rp.window_bytes
    flow.acks(50, marked=True)  # packets sent before the cut
    assert flow.rp.window_bytes == once
    flow.acks(1, marked=True)  # the first one sent after it
    assert flow.rp.window_bytes < once


def test_it_grows_by_a_packet_in_an_rtt() -> None:
    flow = Flow(initial_window_packets=50.0)
    flow.acks(50)
    assert flow.rp.window_bytes == pytest.approx(grown(50, 50) * PACKET)


def test_slow_start_doubles_until_the_first_mark() -> None:
    flow = Flow(initial_window_packets=10.0, slow_start=True, initial_alpha=1.0)
    flow.acks(10)
    assert flow.rp.window_bytes == 20 * PACKET
    flow.acks(1, marked=True)
    cut = flow.rp.window_bytes
    assert cut == pytest.approx(20 * PACKET * (1 - flow.rp.marked_share.alpha / 2))
    flow.acks(1)
    assert flow.rp.window_bytes == pytest.approx(cut + PACKET * PACKET / cut)


def test_a_loss_halves_once_in_a_window() -> None:
    flow = Flow()
    flow.acks(1)
    before = flow.rp.window_bytes
    flow.rp.on_nack(0, 1058, False)
    flow.rp.on_nack(0, 1058, False)
    assert flow.rp.window_bytes == before / 2
    flow.acks(101)
    now = flow.rp.window_bytes
    flow.rp.on_nack(0, 1058, True)
    assert flow.rp.window_bytes == now / 2


def test_a_timeout_starts_again_with_one_packet() -> None:
    flow = Flow()
    flow.rp.on_timeout(0)
    assert flow.rp.window_bytes == PACKET
    flow.acks(1)
    assert flow.rp.window_bytes == 2 * PACKET  # slow start up to half of what it was
