"""Swift step by step: target delay, increase, decrease, losses."""

import math
from typing import Any

import pytest

from host_agents.cc.base import Feedback, Host, Path
from host_agents.cc.swift import Swift, SwiftParameters
from tests.host_agents.narrow import replace_method

T_NS = 8_000
PACKET = 1058.0
BDP = 100_000.0
INCREASE = 50.0  # 50 Mb/s times 8 us


def point(overhead_bytes: int = 0, **parameters: Any) -> Swift:
    path = Path(100e9, T_NS, 1000, 1058, 80, frame_overhead_bytes=overhead_bytes)
    return Swift(SwiftParameters(**parameters), path)


def ack(rp: Swift, now_ns: int, rtt_ns: int, hops: int = 1, acked_bytes: int = 1058, order: int = 0) -> None:
    feedback = Feedback()
    feedback.now_ns, feedback.rtt_ns, feedback.hops, feedback.acked_bytes = now_ns, rtt_ns, hops, acked_bytes
    feedback.order = order
    rp.on_ack(feedback)


def test_starts_with_one_bdp_at_line_rate() -> None:
    rp = point()
    assert (rp.window_bytes, rp.rate_bps) == (BDP, 100e9)


class TestTarget:
    def test_base_and_hops(self) -> None:
        rp = point(flow_scaling=False)
        assert [rp.target_ns(h) for h in (0, 1, 5)] == [5_000, 7_000, 15_000]

    def test_flow_scaling_between_its_bounds(self) -> None:
        # alpha / sqrt(w) + beta is fs_range at the smallest window and 0 at the largest.
        rp = point(fs_range_ns=25_000, fs_min_window_packets=0.1, fs_max_window_packets=100.0)
        alpha = 25_000 / (1 / math.sqrt(0.1) - 1 / math.sqrt(100))
        for packets, expected in (
            (0.05, 25_000),
            (0.1, 25_000),
            (1, alpha - alpha / 10),
            (25, alpha / 5 - alpha / 10),
            (100, 0),
            (400, 0),
        ):
            rp.window_bytes = packets * PACKET
            assert rp.target_ns(0) == pytest.approx(5_000 + expected), packets

    def test_a_lower_largest_window_lowers_the_scaling(self) -> None:
        rp = point(fs_max_window_packets=50.0)
        rp.window_bytes = 50 * PACKET
        assert rp.target_ns(0) == pytest.approx(5_000)


class TestIncrease:
    def test_one_ai_in_an_rtt(self) -> None:
        rp = point(flow_scaling=False)
        rp.window_bytes = 20 * PACKET
        for _ in range(20):
            ack(rp, 0, 6_999)
        assert rp.window_bytes == pytest.approx(20 * PACKET + INCREASE, rel=1e-4)

    def test_under_one_packet_every_ack_adds_a_full_ai(self) -> None:
        rp = point(flow_scaling=False)
        rp.window_bytes = 0.5 * PACKET
        ack(rp, 0, 6_000)
        assert rp.window_bytes == pytest.approx(0.5 * PACKET + INCREASE)

    def test_an_ack_for_several_packets_counts_them(self) -> None:
        rp = point(flow_scaling=False)
        rp.window_bytes = 10 * PACKET
        ack(rp, 0, 6_000, acked_bytes=5 * 1058)
        assert rp.window_bytes == pytest.approx(10 * PACKET + INCREASE / 2)

    def test_never_over_the_largest_window(self) -> None:
        rp = point(flow_scaling=False, max_window_bdp=1.0)
        ack(rp, 0, 5_000)
        assert rp.window_bytes == BDP


class TestDecrease:
    def test_in_proportion_to_the_excess(self) -> None:
        rp = point(flow_scaling=False)
        ack(rp, 100_000, 10_000)
        assert rp.window_bytes == pytest.approx(BDP * (1 - 0.8 * 3_000 / 10_000))

    def test_at_most_max_mdf(self) -> None:
        rp = point(flow_scaling=False)
        ack(rp, 100_000, 100_000)
        assert rp.window_bytes == pytest.approx(BDP * 0.5)

    def test_once_in_an_rtt(self) -> None:
        rp = point(flow_scaling=False)
        ack(rp, 100_000, 10_000)
        once = rp.window_bytes
        ack(rp, 109_999, 10_000)
        assert rp.window_bytes == once
        ack(rp, 110_000, 10_000)
        assert rp.window_bytes < once

    def test_delay_equal_to_the_target_takes_nothing(self) -> None:
        rp = point(flow_scaling=False)
        ack(rp, 100_000, 7_000)
        assert rp.window_bytes == BDP

    @pytest.mark.parametrize("overhead_bytes", [0, 24])
    def test_under_one_packet_it_paces(self, overhead_bytes: int) -> None:
        rp = point(overhead_bytes, flow_scaling=False)
        rp.window_bytes = 1.2 * PACKET
        ack(rp, 100_000, 40_000)
        assert rp.window_bytes == pytest.approx(0.6 * PACKET)
        assert rp.rate_bps == pytest.approx(0.6 * (PACKET + overhead_bytes) * 8e9 / 40_000)
        rp.window_bytes = 0.999 * PACKET
        ack(rp, 200_000, 5_000)
        assert rp.rate_bps == 100e9

    @pytest.mark.parametrize("overhead_bytes", [0, 24])
    def test_paced_it_sends_at_the_rate_of_its_window(self, overhead_bytes: int) -> None:
        rp = point(overhead_bytes, flow_scaling=False, paced=True)
        ack(rp, 100_000, 40_000)
        assert rp.window_bytes == pytest.approx(0.5 * BDP)
        charged = (PACKET + overhead_bytes) / PACKET
        assert rp.rate_bps == pytest.approx(0.5 * BDP * charged * 8e9 / T_NS)

    def test_never_under_the_smallest_window(self) -> None:
        rp = point(flow_scaling=False)
        for i in range(100):
            ack(rp, 1_000_000 * i, 500_000)
        assert rp.window_bytes == pytest.approx(100.0)


class TestLoss:
    def test_a_loss_cuts_by_max_mdf_once_in_an_rtt(self) -> None:
        rp = point()
        rp.on_nack(100_000, 1058, False)
        rp.on_nack(101_000, 1058, False)
        assert rp.window_bytes == BDP / 2

    def test_timeouts_in_a_row_reset(self) -> None:
        rp = point()
        for i in range(4):
            rp.on_timeout(1_000_000 * (i + 1))
        assert rp.window_bytes == pytest.approx(BDP / 16)
        rp.on_timeout(5_000_000)
        assert rp.window_bytes == pytest.approx(100.0)

    def test_an_ack_ends_the_row(self) -> None:
        rp = point()
        for i in range(4):
            rp.on_timeout(1_000_000 * (i + 1))
        ack(rp, 4_500_000, 5_000)
        before = rp.window_bytes
        rp.on_timeout(5_000_000)
        assert rp.window_bytes == pytest.approx(before / 2)


def test_packets_sent_twice_say_nothing() -> None:
    rp = point()
    ack(rp, 100_000, -1)
    assert rp.window_bytes == BDP


def test_random_feedback_leaves_out_decreases_of_small_windows() -> None:
    rp = point(flow_scaling=False, random_feedback=True)
    rp.host = Host()
    replace_method(rp.host.random, "random", lambda: 0.6)
    ack(rp, 100_000, 100_000)
    assert rp.window_bytes == BDP / 2
    ack(rp, 300_000, 100_000)
    assert rp.window_bytes == BDP / 2
    replace_method(rp.host.random, "random", lambda: 0.4)
    ack(rp, 300_100, 100_000)  # not twice in an RTT
    assert rp.window_bytes == BDP / 2
    ack(rp, 400_000, 100_000)
    assert rp.window_bytes == BDP / 4
