"""BBR: delivery rate samples of single packets, then its states on a bottleneck of known rate and delay."""

import itertools
from typing import Any

import pytest

from host_agents.cc import bbr
from host_agents.cc.bbr import Bbr, DeliveryRate
from p4cc._link import Wire, connect, pair
from tests.host_agents.narrow import of_kind

PACKET = 1058


class TestDeliveryRate:
    def test_a_packet_each_100_ns_acknowledged_a_microsecond_later(self) -> None:
        rate = DeliveryRate()
        rate.restart(0)
        for order in range(10):
            rate.sent(100 * order, order)
        assert rate.acked(1_000, 0, 1000, -1)
        assert rate.sample_bps == 1000 * 8e9 / 1_000  # one packet over its whole flight
        for order in range(1, 10):
            rate.sent(900 + 100 * order, 9 + order)
            rate.acked(1_000 + 100 * order, order, 1000, -1)
        # Packet 10 left when one packet was delivered (at 1000), and is acknowledged with ten more delivered at 2000.
        rate.acked(2_000, 10, 1000, -1)
        assert rate.sample_bps == pytest.approx(10_000 * 8e9 / 1_000)
        assert rate.prior_delivered_bytes == 1000

    def test_acks_squeezed_together_do_not_raise_it_beyond_the_sending_rate(self) -> None:
        rate = DeliveryRate()
        rate.restart(0)
        for order in range(20):
            rate.sent(100 * order, order)
        for order in range(20):
            rate.acked(5_000 + order, order, 1000, -1)
            assert rate.sample_bps <= 1000 * 8e9 / 100

    def test_a_second_ack_of_a_packet_is_no_sample(self) -> None:
        rate = DeliveryRate()
        rate.restart(0)
        rate.sent(0, 0)
        assert rate.acked(1_000, 0, 1000, -1)
        assert not rate.acked(1_100, 0, 0, -1)
        assert rate.delivered_bytes == 1000

    def test_no_sample_over_less_than_the_min_rtt(self) -> None:
        rate = DeliveryRate()
        rate.restart(0)
        rate.sent(0, 0)
        rate.acked(1_000, 0, 1000, 1_001)
        assert rate.sample_bps == 0

    def test_samples_are_limited_by_the_sender_until_what_was_in_flight_is_delivered(self) -> None:
        rate = DeliveryRate()
        rate.restart(0)
        rate.sent(0, 0)
        rate.limit(1000)
        rate.sent(100, 1)
        rate.acked(1_000, 0, 1000, -1)
        limited = [rate.app_limited]
        rate.sent(1_100, 2)
        for now_ns, order in ((1_200, 1), (2_100, 2)):
            rate.acked(now_ns, order, 1000, -1)
            limited.append(rate.app_limited)
        assert limited == [False, True, False]

    def test_it_remembers_as_many_packets_as_are_in_flight(self) -> None:
        rate = DeliveryRate()
        rate.restart(0)
        for order in range(1000):
            rate.sent(order, order)
        assert all(rate.acked(2_000 + order, order, 1000, -1) for order in range(1000))


class Bottleneck:
    """A queue without a limit in front of a link of `rate_bps`, on the path from side 0 to side 1."""

    def __init__(self, rate_bps: float, overhead_bytes: int = 0, **parameters: Any) -> None:
        # A tenth of the BDP at line rate, so a BDP of a bottleneck of 10 Gb/s.
        self.a, self.b = pair(
            "bbr", {"initial_window_bdp": 0.1, **parameters}, base_rtt_ns=20_000, frame_overhead_bytes=overhead_bytes
        )
        self.qa, self.qb = connect(self.a, self.b)
        self.rate_bps = rate_bps
        self.free_ns = 0.0
        self.link = Wire(self.a, self.b, delay_ns=9_900, hook=self._carry)

    def _carry(self, now_ns: int, frame: bytes) -> bytes | None:
        if frame[42] >= 0x11:
            return frame
        self.free_ns = max(self.free_ns, now_ns) + PACKET * 8e9 / self.rate_bps
        at = round(self.free_ns)
        self.link._at(at, lambda now: self._deliver(now, frame))
        return None

    def _deliver(self, now_ns: int, frame: bytes) -> None:
        self.b.receive(now_ns, frame)
        self.link._plan(1)

    @property
    def queue_ns(self) -> float:
        return max(0, self.free_ns - self.link.now_ns)

    @property
    def rp(self) -> Bbr:
        return of_kind(self.qa.reaction_point, Bbr)


def test_startup_finds_the_rate_drain_empties_the_queue_and_probe_bw_keeps_it() -> None:
    network = Bottleneck(10e9)  # a tenth of the line rate at which it starts
    network.qa.post(3_000_000)
    rp = network.rp
    states: list[int] = []
    bandwidths = []
    for now in range(0, 2_000_000, 5_000):
        network.link.run(now)
        bandwidths.append(rp.bandwidth_bps)
        if not states or states[-1] != rp.state:
            states.append(rp.state)
    assert states == [bbr.STARTUP, bbr.DRAIN, bbr.PROBE_BW]
    assert rp.bandwidth_bps == pytest.approx(10e9, rel=1 / rp.min_rtt_ns)  # times are whole ns
    assert rp.min_rtt_ns == pytest.approx(2 * 9_900 + 85 + 5 + PACKET * 0.8, abs=1)
    assert network.queue_ns < 20_000 * 0.4  # probing adds a quarter of a BDP
    assert rp.window_bytes <= 2 * 10e9 * rp.min_rtt_ns / 8e9 * 1.03 + 3 * PACKET
    assert network.qb.stats.bytes_delivered > 0.97 * 2_000_000 * 10 / 8 * 1000 / PACKET - 60_000


def test_where_links_charge_framing_packets_leave_as_fast_as_they_arrive() -> None:
    network = Bottleneck(10e9, 24)
    network.qa.post(3_000_000)
    network.link.run(1_000_000)
    rp = network.rp
    assert rp.state == bbr.PROBE_BW
    assert rp.rate_bps == pytest.approx(rp.pacing_gain * rp.bandwidth_bps * (PACKET + 24) / PACKET)


def test_it_notices_in_a_cycle_that_there_is_more_bandwidth_and_in_ten_rounds_that_there_is_less() -> None:
    network = Bottleneck(10e9)
    network.qa.post(20_000_000)
    rp = network.rp
    network.link.run(1_000_000)
    network.rate_bps = 20e9
    network.link.run(2_000_000)
    assert rp.bandwidth_bps == pytest.approx(20e9, rel=1 / rp.min_rtt_ns)
    network.rate_bps = 10e9
    network.link.run(3_000_000)
    assert rp.bandwidth_bps == pytest.approx(10e9, rel=1 / rp.min_rtt_ns)


def test_probe_bw_goes_around_its_cycle() -> None:
    network = Bottleneck(10e9)
    network.qa.post(20_000_000)
    gains: list[float] = []
    for now in range(600_000, 1_600_000, 1_000):
        network.link.run(now)
        if not gains or gains[-1] != network.rp.pacing_gain:
            gains.append(network.rp.pacing_gain)
    assert set(gains) == {1.25, 0.75, 1.0}
    for first, then in itertools.pairwise(gains):
        assert (first, then) in {(1.25, 0.75), (0.75, 1.0), (1.0, 1.25)}
    assert 4 <= gains.count(1.25) <= 7  # eight RTTs of about 20 us each


def test_probe_rtt_sends_four_packets_for_a_while_and_returns() -> None:
    network = Bottleneck(10e9, min_rtt_window_ns=400_000, probe_rtt_ns=50_000)
    network.qa.post(20_000_000)
    windows: dict[int, list[float]] = {}
    for now in range(0, 1_500_000, 1_000):
        network.link.run(now)
        windows.setdefault(network.rp.state, []).append(network.rp.window_bytes)
    assert set(windows) == {bbr.STARTUP, bbr.DRAIN, bbr.PROBE_BW, bbr.PROBE_RTT}
    assert min(windows[bbr.PROBE_RTT]) == 4 * PACKET
    assert 50 <= len(windows[bbr.PROBE_RTT]) <= 3 * (50 + 45)  # us: the time, and a round to get there and be seen
    assert max(windows[bbr.PROBE_BW]) > 30_000


def losing() -> tuple[Bottleneck, Bbr]:
    network = Bottleneck(10e9)
    network.qa.post(20_000_000)
    network.link.run(500_000)
    return network, network.rp


def test_a_loss_is_followed_by_a_round_of_packet_conservation_and_then_the_window_is_as_before() -> None:
    network, rp = losing()
    window = rp.window_bytes
    rp.on_nack(network.link.now_ns, PACKET, True)
    assert rp.window_bytes == pytest.approx(network.qa.inflight_bytes)
    rp.on_nack(network.link.now_ns, PACKET, True)
    assert rp.window_bytes == pytest.approx(network.qa.inflight_bytes - PACKET)
    network.link.run(600_000)
    assert rp.window_bytes == pytest.approx(window)


def test_a_time_out_leaves_one_packet_until_something_sent_later_arrives() -> None:
    network, rp = losing()
    window = rp.window_bytes
    rp.on_timeout(network.link.now_ns)
    assert rp.window_bytes == PACKET
    network.link.run(700_000)
    assert rp.window_bytes == pytest.approx(window)


def test_it_starts_at_line_rate_with_one_bdp() -> None:
    a, b = pair("bbr")
    qa, _ = connect(a, b)
    assert isinstance(qa.reaction_point, Bbr)
    assert (qa.rate_bps, qa.window_bytes) == (100e9, 100_000)
