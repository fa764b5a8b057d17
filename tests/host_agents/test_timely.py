"""TIMELY step by step: the four cases of algorithm 1."""

import itertools
from typing import Any

import pytest

from host_agents.cc.base import Feedback, Path
from host_agents.cc.timely import Timely, TimelyParameters
from tests.host_agents.narrow import replace_method

STEP = 10e6
US = 1_000


def point(rate_bps: float = 50e9, **parameters: Any) -> Timely:
    rp = Timely(TimelyParameters(**parameters), Path(100e9, 8_000, 1000, 1058, 80))
    rp.set_rate(rate_bps)
    return rp


def test_first_rtt_only_records() -> None:
    rp = point()
    rp.on_completion(600 * US)
    assert rp.rate_bps == 50e9


def test_under_t_low_it_adds_whatever_the_gradient() -> None:
    rp = point()
    for rtt in (10, 20, 49):
        rp.on_completion(rtt * US)
    assert rp.rate_bps == 50e9 + 2 * STEP


def test_over_t_high_it_cuts_in_proportion() -> None:
    rp = point()
    rp.on_completion(2_000 * US)
    rp.on_completion(1_000 * US)
    assert rp.rate_bps == pytest.approx(50e9 * (1 - 0.8 * (1 - 500 / 1000)))


def test_a_rising_rtt_cuts_by_the_gradient() -> None:
    rp = point()
    rp.on_completion(100 * US)
    rp.on_completion(104 * US)
    assert rp.rtt_difference_ns == pytest.approx(0.875 * 4_000)
    assert rp.rate_bps == pytest.approx(50e9 * (1 - 0.8 * 3_500 / 20_000))
    before = rp.rate_bps
    rp.on_completion(105 * US)
    difference = 0.125 * 3_500 + 0.875 * 1_000
    assert rp.rate_bps == pytest.approx(before * (1 - 0.8 * difference / 20_000))


def test_five_falls_in_a_row_bring_hyper_increase() -> None:
    rp = point()
    rates = []
    for rtt in range(120, 112, -1):
        rp.on_completion(rtt * US)
        rates.append(rp.rate_bps)
    steps = [b - a for a, b in itertools.pairwise(rates)]
    assert steps == pytest.approx([STEP] * 4 + [5 * STEP] * 3)
    rp.on_completion(150 * US)
    before = rp.rate_bps
    rp.on_completion(100 * US)
    rp.on_completion(99 * US)
    assert rp.rate_bps == pytest.approx(before + 2 * STEP)  # the row starts again


def test_bounds() -> None:
    rp = point()
    rp.on_completion(100 * US)
    rp.on_completion(200 * US)  # a gradient that would make the rate negative
    assert rp.rate_bps == 100e6
    rp = point(100e9)
    rp.on_completion(10 * US)
    rp.on_completion(10 * US)
    assert rp.rate_bps == 100e9


def test_one_completion_event_per_segment() -> None:
    rp = point(segment_bytes=16_000)
    events: list[int] = []
    replace_method(rp, "on_completion", events.append)
    feedback = Feedback()
    feedback.acked_bytes = 1058
    for i in range(35):
        feedback.rtt_ns = -1 if i == 15 else i  # a packet sent twice: the next one serves
        rp.on_ack(feedback)
    assert events == [16, 32]
