"""SMaRTT step by step: the four cases, QuickAdapt, FastIncrease, wait-to-decrease, bounds and scaling.

At 100 Gb/s and 12 us the BDP is gamma's reference, 150 KB: 100 packets of 1500 bytes. The target RTT is 18 us.
"""

from typing import Any

import pytest

from host_agents.cc.base import Feedback, Path
from host_agents.cc.smartt import Smartt, SmarttParameters
from host_agents.errors import ParameterError
from host_agents.registry import resolve

PACKET = 1500
BDP = 150_000.0
BASE_NS = 12_000
TARGET_NS = 18_000


def point(
    rate_bps: float = 100e9, base_rtts_ns: tuple[int, ...] = (), inflight_bytes: int = 0, **parameters: Any
) -> Smartt:
    """Return a reaction point. QuickAdapt has no effect in tests without losses."""
    rp = Smartt(SmarttParameters(**parameters), Path(rate_bps, BASE_NS, 1442, PACKET, 80, base_rtts_ns))
    rp.traffic.inflight_bytes = inflight_bytes
    return rp


def ack(
    rp: Smartt, rtt_ns: int, marked: bool = False, now_ns: int = 1, acked_bytes: int = PACKET, hops: int = 5
) -> None:
    feedback = Feedback()
    feedback.now_ns, feedback.rtt_ns, feedback.marked = now_ns, rtt_ns, marked
    feedback.acked_bytes, feedback.hops = acked_bytes, hops
    rp.on_ack(feedback)


def reacting(window_bytes: float = 100_000.0, **parameters: Any) -> Smartt:
    """Return a reaction point that decreases at the first mark, with a window far from both bounds."""
    rp = point(**{"wait_to_decrease": False, "fast_increase": False, **parameters})
    rp.window_bytes = window_bytes
    return rp


def test_starts_with_a_quarter_more_than_one_bdp() -> None:
    assert point().window_bytes == 1.25 * BDP


def test_starts_with_another_window_if_told_so_but_never_above_the_largest_or_below_a_packet() -> None:
    assert point(initial_window_bdp=0.5).window_bytes == 0.5 * BDP
    assert point(initial_window_bdp=0.5, max_window_bdp=0.25).window_bytes == 0.25 * BDP
    assert point(initial_window_bdp=0.001).window_bytes == PACKET


class TestFourCases:
    def test_fair_decrease(self) -> None:
        """Check a marked ACK in time: cwnd / bdp * fd * size."""
        rp = reacting()
        ack(rp, TARGET_NS, marked=True)
        assert rp.window_bytes == pytest.approx(100_000 - 100_000 / BDP * 0.8 * PACKET)

    def test_fair_decrease_takes_more_from_larger_windows(self) -> None:
        large, small = reacting(120_000.0), reacting(30_000.0)
        ack(large, 13_000, marked=True)
        ack(small, 13_000, marked=True)
        assert 120_000 - large.window_bytes == pytest.approx(4 * (30_000 - small.window_bytes))

    def test_multiplicative_decrease(self) -> None:
        """Check a marked and late ACK: (rtt - trtt) / rtt * md * size, and a fair decrease."""
        rp = reacting(15_000.0)
        ack(rp, 20_000, marked=True)
        assert rp.window_bytes == pytest.approx(15_000 - 2_000 / 20_000 * 2 * PACKET - 0.1 * 0.8 * PACKET)

    def test_multiplicative_decrease_takes_a_packet_at_twice_the_target_and_never_more(self) -> None:
        for rtt_ns in (2 * TARGET_NS, 10 * TARGET_NS):
            rp = reacting()
            ack(rp, rtt_ns, marked=True)
            assert rp.window_bytes == pytest.approx(100_000 - PACKET)

    def test_fair_increase(self) -> None:
        """Check an unmarked but late ACK: size / cwnd * mtu * fi."""
        rp = reacting()
        ack(rp, TARGET_NS + 1)
        assert rp.window_bytes == pytest.approx(100_000 + PACKET / 100_000 * PACKET * 0.25)

    def test_multiplicative_increase(self) -> None:
        """Check an unmarked ACK in time: (trtt - rtt) / rtt * size / cwnd * mtu * mi, mi = 2, and a fair increase."""
        rp = reacting()
        ack(rp, 15_000)
        per_packet = PACKET / 100_000 * PACKET
        assert rp.window_bytes == pytest.approx(100_000 + 3_000 / 15_000 * per_packet * 2 + per_packet * 0.25)

    def test_multiplicative_increase_is_one_packet_in_an_empty_rtt(self) -> None:
        rp = reacting(fair_increase=0.0)
        for _ in range(round(100_000 / PACKET)):
            ack(rp, BASE_NS)
        assert rp.window_bytes == pytest.approx(100_000 + PACKET, rel=1e-3)

    def test_an_rtt_that_is_not_known_moves_nothing(self) -> None:
        rp = reacting()
        ack(rp, -1, marked=True)
        assert rp.window_bytes == 100_000


class TestScaling:
    def test_increases_grow_with_the_bdp_and_decreases_do_not(self) -> None:
        rp = reacting(rate_bps=800e9)
        ack(rp, TARGET_NS + 1)
        assert rp.window_bytes == pytest.approx(100_000 + PACKET / 100_000 * PACKET * 0.25 * 8)
        rp = reacting(rate_bps=800e9)
        ack(rp, 15_000)
        per_packet = PACKET / 100_000 * PACKET
        assert rp.window_bytes == pytest.approx(100_000 + (0.2 * 2 + 0.25) * 8 * per_packet)
        rp = reacting(rate_bps=800e9)
        ack(rp, 36_000, marked=True)
        assert rp.window_bytes == pytest.approx(100_000 - PACKET)

    def test_without(self) -> None:
        rp = reacting(rate_bps=800e9, scaling=False)
        ack(rp, TARGET_NS + 1)
        assert rp.window_bytes == pytest.approx(100_000 + PACKET / 100_000 * PACKET * 0.25)

    def test_the_target_follows_the_hops(self) -> None:
        rp = reacting(base_rtts_ns=(0, 4_000, 0, 8_000))
        ack(rp, 6_001, hops=1)  # late for a path through one switch
        assert rp.window_bytes == pytest.approx(100_000 + PACKET / 100_000 * PACKET * 0.25)
        before = rp.window_bytes
        ack(rp, 6_001, hops=5)  # not for one that nothing is known of
        assert rp.window_bytes > before + PACKET / 100_000 * PACKET * 0.25


class TestBounds:
    def test_at_most_a_quarter_more_than_the_bdp(self) -> None:
        rp = point()
        for _ in range(1_000):
            ack(rp, BASE_NS)
        assert rp.window_bytes == 1.25 * BDP

    def test_at_least_one_packet(self) -> None:
        rp = reacting(2_000.0)
        ack(rp, 36_000, marked=True)
        assert rp.window_bytes == PACKET
        rp.on_nack(2, PACKET, True)
        assert rp.window_bytes == PACKET


class TestQuickAdapt:
    def test_figure_4(self) -> None:
        """Two senders have four packets in a window; of each, two arrive in a target RTT and two are trimmed."""
        rp = point(quick_adapt_scaling=1.0, wait_to_decrease=False, fast_increase=False)
        rp.window_bytes = 4.0 * PACKET
        ack(rp, BASE_NS, now_ns=12_000)  # the first feedback starts the measurement
        started = rp.window_bytes
        rp.on_nack(12_500, PACKET, True)  # "when a sender gets a trimmed packet it sets trigger_qa"
        assert rp.adapt
        assert rp.window_bytes == started - PACKET
        ack(rp, TARGET_NS, now_ns=20_000)
        rp.on_nack(22_000, PACKET, True)
        rp.traffic.inflight_bytes = 2 * PACKET
        ack(rp, TARGET_NS, now_ns=29_999)
        assert rp.adapt  # not yet: the target RTT is not over
        ack(rp, TARGET_NS, now_ns=30_000, acked_bytes=0)  # a duplicate says nothing
        before = rp.adapt
        rp.on_nack(30_000, PACKET, True)  # "after trtt, it changes its window size to the bytes acknowledged"
        assert rp.window_bytes == 2 * PACKET
        assert (before, rp.adapt) == (True, False)
        assert rp.ignore_bytes == 2 * PACKET

    def adapted(self, inflight_packets: int, **parameters: Any) -> Smartt:
        rp = point(wait_to_decrease=False, fast_increase=False, **parameters)
        ack(rp, BASE_NS, now_ns=12_000)
        for i in range(50):
            ack(rp, BASE_NS, now_ns=13_000 + i)
        rp.traffic.inflight_bytes = inflight_packets * PACKET
        rp.on_nack(30_000, PACKET, True)
        return rp

    def test_the_window_is_what_was_acknowledged_scaled(self) -> None:
        assert self.adapted(3).window_bytes == pytest.approx(0.8 * 50 * PACKET)

    def test_what_was_in_flight_is_ignored(self) -> None:
        rp = self.adapted(3)
        window = rp.window_bytes
        ack(rp, 100_000, marked=True, now_ns=60_000)
        rp.on_nack(60_001, PACKET, True)
        assert (rp.window_bytes, rp.adapt) == (window, False)
        ack(rp, 100_000, marked=True, now_ns=60_002)
        assert rp.window_bytes == window
        ack(rp, 36_000, marked=True, now_ns=60_003)
        assert rp.window_bytes == window - PACKET

    def test_the_measurement_starts_anew_when_ignoring_ends(self) -> None:
        rp = self.adapted(1)
        ack(rp, BASE_NS, now_ns=60_000)  # the last one ignored, long after the end of the target RTT
        window = rp.window_bytes
        rp.on_nack(60_001, PACKET, True)
        assert rp.window_bytes == window - PACKET
        for i in range(20):
            ack(rp, TARGET_NS + 1, now_ns=61_000 + i)
        ack(rp, TARGET_NS + 1, now_ns=78_000)
        assert rp.window_bytes == pytest.approx(0.8 * 21 * PACKET)

    def test_once_in_a_target_rtt(self) -> None:
        rp = self.adapted(0)
        assert rp.ignore_bytes == 0
        window = rp.window_bytes
        rp.on_nack(47_999, PACKET, True)
        assert rp.window_bytes == window - PACKET
        rp.on_nack(48_000, PACKET, True)
        assert rp.window_bytes == PACKET  # nothing was acknowledged: one packet

    def test_never_at_the_first_feedback(self) -> None:
        rp = point()
        rp.on_nack(40_000, PACKET, True)
        assert rp.window_bytes == 1.25 * BDP - PACKET
        assert rp.end_ns == 40_000 + TARGET_NS

    def test_a_message_after_a_pause_is_not_judged_by_the_one_before(self) -> None:
        """A packet is trimmed near the end of a message; all are acknowledged before the end of the target RTT."""
        rp = point(wait_to_decrease=False, fast_increase=False)
        ack(rp, BASE_NS, now_ns=20_000)
        rp.on_nack(24_500, PACKET, True)
        ack(rp, BASE_NS, now_ns=30_000)
        window = rp.window_bytes
        rp.on_idle(30_000)
        rp.on_start(1_030_000)
        rp.on_post(1_030_000)
        rp.traffic.inflight_bytes = int(window)
        ack(rp, BASE_NS, now_ns=1_042_000)
        assert (rp.window_bytes > window, rp.ignore_bytes) == (True, 0)
        assert rp.end_ns == 1_042_000 + TARGET_NS

    def test_a_message_that_follows_on_another_is(self) -> None:
        """Another queue pair of the same reaction point still has packets in flight."""
        rp = self.adapted(3)
        rp.on_start(31_000)
        assert (rp.end_ns, rp.ignore_bytes) == (30_000 + TARGET_NS, 3 * PACKET)

    def test_timeouts_do_what_trimmed_packets_do(self) -> None:
        rp = point(trimming=False, wait_to_decrease=False, fast_increase=False)
        ack(rp, BASE_NS, now_ns=12_000)
        ack(rp, BASE_NS, now_ns=13_000, acked_bytes=40 * PACKET)
        rp.on_expired(30_000, PACKET)
        rp.on_timeout(30_000)
        assert rp.window_bytes == pytest.approx(0.8 * 40 * PACKET)

    def test_without_trimming_the_decrease_is_twice_as_strong(self) -> None:
        rp = reacting(15_000.0, trimming=False)
        ack(rp, 20_000, marked=True)
        assert rp.window_bytes == pytest.approx(15_000 - 2_000 / 20_000 * 4 * PACKET - 0.1 * 0.8 * PACKET)

    def test_off(self) -> None:
        rp = self.adapted(3, quick_adapt=False)
        assert rp.window_bytes > 100 * PACKET
        assert rp.ignore_bytes == 0


class TestFastIncrease:
    def small(self, packets: int = 4) -> Smartt:
        rp = point(wait_to_decrease=False)
        rp.window_bytes = float(packets * PACKET)
        rp.fair_increase_bytes = rp.increase_bytes = 0.0
        return rp

    def test_after_a_window_without_congestion_two_packets_for_each_ack(self) -> None:
        rp = self.small()
        for _ in range(4):
            ack(rp, BASE_NS)
        assert rp.window_bytes == 4 * PACKET
        for i in range(3):
            ack(rp, round(1.05 * BASE_NS))
            assert rp.window_bytes == (6 + 2 * i) * PACKET

    @pytest.mark.parametrize("sign", ["mark", "delay", "trim", "timeout"])
    def test_any_sign_of_congestion_ends_it(self, sign: str) -> None:
        rp = self.small()
        for _ in range(5):
            ack(rp, BASE_NS)
        assert rp.increasing
        if sign == "mark":
            ack(rp, BASE_NS, marked=True)
        elif sign == "delay":
            ack(rp, round(1.05 * BASE_NS) + 1)
        elif sign == "trim":
            rp.on_nack(2, PACKET, True)
        else:
            rp.on_expired(2, PACKET)
        assert (rp.increasing, rp.uncongested_bytes) == (False, 0)
        window = rp.window_bytes
        ack(rp, BASE_NS)
        assert rp.window_bytes == window


class TestWaitToDecrease:
    def test_marks_count_from_a_quarter_on(self) -> None:
        rp = point(wait_gain=0.125, fast_increase=False)
        rp.window_bytes = 100_000.0
        ack(rp, TARGET_NS, marked=True)
        ack(rp, TARGET_NS, marked=True)
        assert rp.marked_average == pytest.approx(0.125 * 0.875 + 0.125)  # 0.234
        assert rp.window_bytes == 100_000
        ack(rp, TARGET_NS, marked=True)
        assert rp.window_bytes < 100_000

    def test_packets_without_a_mark_lower_the_average(self) -> None:
        rp = point(wait_gain=0.25, fast_increase=False)
        rp.window_bytes = 100_000.0
        ack(rp, TARGET_NS, marked=True)
        assert rp.window_bytes < 100_000  # 0.25 is enough
        ack(rp, TARGET_NS + 1)
        window = rp.window_bytes
        rp.marked_average = 0.1
        ack(rp, 2 * TARGET_NS, marked=True)  # 0.325
        assert rp.window_bytes < window


class TestReactionGranularity:
    def test_once_in_so_many_acks_with_all_their_bytes(self) -> None:
        rp = reacting(react_every_packets=50)
        for _ in range(49):
            ack(rp, TARGET_NS + 1)
        assert rp.window_bytes == 100_000
        ack(rp, TARGET_NS + 1)
        assert rp.window_bytes == pytest.approx(100_000 + 50 * PACKET / 100_000 * PACKET * 0.25)


class TestOneSignal:
    def test_ecn_alone(self) -> None:
        rp = reacting(signals="ecn")
        ack(rp, BASE_NS, marked=True)
        assert rp.window_bytes == 100_000 - PACKET / 2
        window = rp.window_bytes
        ack(rp, 100_000)
        assert rp.window_bytes == pytest.approx(window + PACKET / window * PACKET * 0.25)

    def test_delay_alone(self) -> None:
        rp = reacting(signals="delay")
        ack(rp, 20_000, marked=True)
        assert rp.window_bytes == pytest.approx(100_000 - 2_000 / 20_000 * 2 * PACKET)
        window = rp.window_bytes
        ack(rp, 100_000)
        assert rp.window_bytes == window - PACKET / 2
        window = rp.window_bytes
        ack(rp, 13_000, marked=True)
        assert rp.window_bytes > window

    def test_there_are_no_others(self) -> None:
        with pytest.raises(ParameterError, match="parameter signals: input should be 'both', 'ecn' or 'delay'"):
            resolve("smartt", {"signals": "loss"})

    def test_goes_without_quick_adapt(self) -> None:
        rp = reacting(signals="ecn")
        rp.on_nack(1, PACKET, True)
        rp.on_nack(100_000, PACKET, True)
        assert rp.window_bytes == 100_000 - 2 * PACKET


@pytest.mark.parametrize("per_packet", [False, True])
def test_a_trimmed_packet_is_sent_again_by_itself(per_packet: bool) -> None:
    assert resolve("smartt").usual_reliability(per_packet) == "selective-repeat"
