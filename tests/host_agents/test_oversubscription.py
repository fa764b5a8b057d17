"""RCCC's control of over-subscription step by step: effects of trimmed and marked packets on a NIC's pulls."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from host_agents.cc.base import Host, Path
from host_agents.cc.oversubscription import Oversubscription
from host_agents.cc.rccc import RcccParameters
from host_agents.pull_pacer import pull_pacer
from host_agents.timers import NEVER
from tests.host_agents.narrow import replace_method

BASE_NS = 12_000
RATIO = 4
FLOOR = 0.9 / RATIO


class Rig:
    """One NIC's controller; `interval` delivers the packets of the next interval and ends it."""

    def __init__(self, ratio: float = RATIO, **others: Any) -> None:
        self.host = Host(seed=3)
        path = Path(100e9, BASE_NS, 4096, 4160, 80)
        self.pacer = pull_pacer(self.host, path)
        self.drawn: list[float] = []
        replace_method(self.pacer, "set_rate", self.drawn.append)
        self.control = Oversubscription(self.host, path, self.pacer, RcccParameters(oversubscription=ratio, **others))
        self.now_ns = 0
        self.interval_ns = (1.5 * BASE_NS, 0.25)  # mean, and random part of it

    def interval(self, whole: int = 0, marked: int = 0, trimmed: int = 0, last_hop: int = 0) -> float:
        for number in range(whole):
            self.control.on_data(self.now_ns, number < marked)
        for number in range(trimmed + last_hop):
            self.control.on_trimmed(self.now_ns, number >= trimmed)
        due_ns = self.host.timers.first_ns
        mean_ns, spread = self.interval_ns
        assert (1 - spread) * mean_ns - 1 <= due_ns - self.now_ns <= (1 + spread) * mean_ns
        self.now_ns = due_ns
        self.host.timers.serve(due_ns)
        return self.control.rate


def test_trims_before_the_last_hop_take_their_share_of_what_came() -> None:
    rig = Rig()
    assert rig.interval(whole=80, trimmed=20) == pytest.approx(0.8)
    assert rig.interval(whole=90, trimmed=10) == pytest.approx(0.7)


def test_trims_at_the_last_hop_do_not_count_but_for_what_came() -> None:
    rig = Rig()
    assert rig.interval(whole=50, last_hop=50) == 1.0
    assert rig.interval(whole=40, trimmed=10, last_hop=50) == pytest.approx(0.9)


def test_a_mean_share_of_marks_above_the_target_shrinks_the_rate() -> None:
    rig = Rig()
    assert rig.interval(whole=10, marked=6) == 1.0  # a mean of 0.3: not above it
    assert rig.interval(whole=10, marked=9, trimmed=0) == pytest.approx(1 - 0.5 * (0.6 - 0.3))
    assert rig.control.marked_share == pytest.approx(0.6)


def test_it_grows_by_1_percent_and_faster_while_nothing_is_marked() -> None:
    rig = Rig()
    rig.interval(whole=50, trimmed=50)
    rates = [rig.interval(whole=100) for _ in range(4)]
    assert rates == pytest.approx([0.51, 0.53, 0.57, 0.65])
    assert rig.interval(whole=100, marked=1) == pytest.approx(0.66)
    assert rig.interval(whole=100) == pytest.approx(0.98)
    rig.interval(whole=90, trimmed=10)
    assert rig.interval(whole=100) == pytest.approx(0.89)


def test_it_never_draws_less_than_nine_tenths_of_a_hosts_share() -> None:
    rig = Rig()
    assert rig.interval(trimmed=100) == FLOOR
    assert Rig(ratio=1000).interval(trimmed=100) == 0.01


def test_without_traffic_it_recovers_and_then_rests() -> None:
    rig = Rig()
    rig.interval(trimmed=100)
    for _ in range(20):
        if rig.host.timers.first_ns == NEVER:
            break
        rig.interval()
    assert rig.control.rate == 1.0
    assert rig.host.timers.first_ns == NEVER
    assert rig.interval(whole=10) == 1.0


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 50), st.integers(0, 50), st.integers(0, 20), st.integers(0, 20)),
        min_size=1,
        max_size=30,
    )
)
def test_what_is_drawn_stays_within_bounds_and_the_pacer_is_told(intervals: list[tuple[int, int, int, int]]) -> None:
    rig = Rig()
    for whole, marked, trimmed, last_hop in intervals:
        if whole + trimmed + last_hop > 0:
            rate = rig.interval(whole, min(marked, whole), trimmed, last_hop)
            assert FLOOR <= rate <= 1.0
            assert rig.drawn[-1] == rate


@pytest.mark.parametrize(
    ("parameters", "intervals", "rate"),
    [
        ({"mark_gain": 1.0}, [(10, 6, 0)], 1 - 0.5 * (0.6 - 0.3)),
        ({"mark_gain": 1.0, "mark_target": 0.5}, [(10, 6, 0)], 1 - 0.5 * (0.6 - 0.5)),
        ({"mark_gain": 1.0, "decrease": 0.1}, [(10, 6, 0)], 1 - 0.1 * (0.6 - 0.3)),
        ({"increase": 0.001}, [(0, 0, 100), *9 * [(100, 0, 0)]], FLOOR + 0.001 * (2**9 - 1)),
        ({"least_rate": 0.6}, [(0, 0, 100)], 0.6),
        ({"least_uplink_share": 0.5}, [(0, 0, 100)], 0.5 / RATIO),
        ({"least_uplink_share": 0.0}, [(0, 0, 100)], 0.01),
    ],
)
def test_each_constant_is_a_parameter(
    parameters: dict[str, float], intervals: list[tuple[int, int, int]], rate: float
) -> None:
    rig = Rig(**{f"oversubscription_{name}": value for name, value in parameters.items()})
    for whole, marked, trimmed in intervals:
        found = rig.interval(whole, marked, trimmed)
    assert found == pytest.approx(rate)


def test_intervals_and_their_random_part_are_parameters() -> None:
    rig = Rig(oversubscription_interval_base_rtts=3.0, oversubscription_spread=0.0)
    rig.interval_ns = (3.0 * BASE_NS, 0.0)
    assert rig.interval(whole=10) == 1.0
