"""Times at which frames leave and arrive are exact to the ns and do not drift."""

from __future__ import annotations

from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.p4switch.fabric.stub import GBPS, Host, Star, balance, columns, examples, frame, load

if TYPE_CHECKING:
    from p4switch.fabric import Fabric


def pair(a: Host, b: Host, rate_bps: int, delay_ns: int = 0, **fabric: int) -> Fabric:
    network: Fabric = load().Fabric(**fabric)
    network.connect(network.add_host(a), 0, network.add_host(b), 0, rate_bps=rate_bps, delay_ns=delay_ns)
    return network


def test_one_frame_through_a_switch() -> None:
    a, b = Host([(500, frame(0, 1, 1000))]), Host()
    assert Star([a, b], delay_ns=1000).run() == "idle"
    assert [time for time, _ in b.got] == [500 + 80 + 1000 + 80 + 1000]


def test_back_to_back_frames_follow_without_a_gap() -> None:
    a, b = Host([(0, frame(0, 1, 1000)) for _ in range(4)]), Host()
    Star([a, b], delay_ns=600).run()
    assert [time for time, _ in b.got] == [1360 + 80 * i for i in range(4)]


def test_framing_is_charged_to_the_link_only_when_asked() -> None:
    for framing in (0, 24):
        a, b = Host([(0, frame(0, 1, 1000)) for _ in range(2)]), Host()
        star = Star([a, b], delay_ns=0, framing_bytes=framing)
        star.run()
        assert [time for time, _ in b.got] == [ceil(n * 8 * (1000 + framing) / 100) for n in (2, 3)]


def test_headers_that_are_not_charged_leave_a_flit_at_least() -> None:
    a, b = Host([(0, frame(0, 1, n)) for n in (60, 74, 202)]), Host()
    pair(a, b, 8 * GBPS, framing_bytes=-58).run()
    assert [time for time, _ in b.got] == [16, 32, 32 + 144]


def test_the_switch_takes_its_latency() -> None:
    a, b = Host([(0, frame(0, 1, 1000))]), Host()
    Star([a, b], delay_ns=600, latency_ns=400).run()
    assert b.got[0][0] == 2 * 680 + 400


def test_the_link_is_charged_with_the_length_that_leaves() -> None:
    a, b = Host([(0, frame(0, 1, 1000)) for _ in range(3)]), Host()
    star = Star([a, b], delay_ns=0, grow=250)
    star.run()
    assert [time for time, _ in b.got] == [80 + 100 * i for i in (1, 2, 3)]


def test_both_directions_have_their_own_rate() -> None:
    a, b = Host([(0, frame(0, 1, 1000))]), Host([(0, frame(1, 0, 1000))])
    network = load().Fabric()
    network.connect(
        network.add_host(a), 0, network.add_host(b), 0, rate_bps=8 * GBPS, delay_ns=5, rate_back_bps=4 * GBPS
    )
    network.run()
    assert (b.got[0][0], a.got[0][0]) == (1005, 2005)


@pytest.mark.parametrize("delay_ns", [0, 1, 16383, 16384, 16385, 1_000_000])
def test_delays_within_and_beyond_the_wheel(delay_ns: int) -> None:
    a, b = Host([(0, frame(0, 1, 100)) for _ in range(50)]), Host()
    pair(a, b, 8 * GBPS, delay_ns).run()
    assert [time for time, _ in b.got] == [100 * (i + 1) + delay_ns for i in range(50)]


@settings(deadline=None, max_examples=examples(60))
@given(
    rate_bps=st.one_of(st.integers(10**6, 10**12), st.sampled_from([100 * GBPS, 400 * GBPS, 10**10 // 3, 7 * 10**9])),
    lengths=st.lists(st.integers(60, 9000), min_size=1, max_size=60),
    framing=st.sampled_from([0, 24, -58]),
)
def test_back_to_back_times_are_exact(rate_bps: int, lengths: list[int], framing: int) -> None:
    """The n-th arrival is the exact sum of the durations, rounded up once, so that rounding errors do not add up.

    Where headers are not charged, a frame costs at least 16 bytes.
    """
    a, b = Host([(0, frame(0, 1, n)) for n in lengths]), Host()
    network = pair(a, b, rate_bps, framing_bytes=framing)
    network.run()
    exact, expected = Fraction(0), []
    for n in lengths:
        exact += Fraction(max(n + framing, 16) * 8 * 10**9, rate_bps)
        expected.append(ceil(exact))
    assert [time for time, _ in b.got] == expected


def test_a_long_run_does_not_drift() -> None:
    """Each hop forwards at whole ns, which adds less than 1 ns once for any number of back-to-back frames."""
    rate_bps, n, count = 3 * 10**10 + 7, 1001, 20_000
    a, b = Host([(0, frame(0, 1, n)) for _ in range(count)]), Host()
    Star([a, b], rate_bps=rate_bps, delay_ns=0).run()
    assert b.got[-1][0] - b.got[0][0] == pytest.approx((count - 1) * n * 8 * 10**9 / rate_bps, abs=2)


def test_busy_time_is_what_was_sent() -> None:
    a, b = Host([(0, frame(0, 1, 1000)), (5000, frame(0, 1, 500))]), Host()
    network = pair(a, b, 100 * GBPS)
    network.run()
    stats = columns(network.port_stats())
    assert stats["busy_ns"] == [120, 0]
    assert stats["tx_bytes"] == [1500, 0]
    assert stats["rx_packets"] == [0, 2]
    assert balance(network)["delivered"] == 2


def test_the_wire_length_is_what_ipv4_says_and_no_less_than_the_bytes() -> None:
    short = frame(0, 1, 1000)
    long = frame(0, 1, 60) + bytes(946)
    other = b"\x02" * 12 + b"\x86\xdd" + bytes(86)
    a, b = Host([(0, short), (0, long), (0, other)]), Host()
    pair(a, b, 8 * GBPS).run()
    assert [time for time, _ in b.got] == [1000, 2000, 2100]
    assert [data for _, data in b.got] == [short, long, other]
