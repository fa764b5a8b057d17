"""InfiniBand's congestion control: BECNs raise the index, time lowers it, and the rate follows the table."""

from __future__ import annotations

import pytest

from host_agents.cc.base import Feedback, Host, Path, ReactionOutlet, Traffic
from host_agents.cc.infiniband import Infiniband, InfinibandParameters
from host_agents.timers import NEVER, TimerQueue

LINE_BPS = 56e9
TIMER_NS = 150 * 1024


def made(parameters: InfinibandParameters | None = None) -> tuple[Infiniband, TimerQueue]:
    timers = TimerQueue()
    point = Infiniband(parameters or InfinibandParameters(), Path(LINE_BPS, 10_000, 4096, 4154, 80))
    point.bind(ReactionOutlet(Host(timers=timers), Traffic()))
    return point, timers


def ack(point: Infiniband, now_ns: int, marked: bool = True) -> None:
    feedback = Feedback()
    feedback.now_ns, feedback.marked = now_ns, marked
    point.on_ack(feedback)


def test_each_becn_puts_one_packet_time_more_between_two_packets() -> None:
    point, _ = made()
    rates = [point.rate_bps]
    for i in range(3):
        ack(point, i)
        ack(point, i, marked=False)
        rates.append(point.rate_bps)
    assert rates == [LINE_BPS, LINE_BPS / 2, LINE_BPS / 3, LINE_BPS / 4]


def test_the_timer_takes_one_off_until_the_minimum() -> None:
    point, timers = made(InfinibandParameters(ccti_min=1, delay_packets=0.5))
    for _ in range(2):
        ack(point, 1_000)
    assert point.rate_bps == LINE_BPS / 2.5
    expired = []
    while timers.first_ns < NEVER:
        expired.append(timers.first_ns)
        timers.serve_first()
    assert expired == [1_000 + TIMER_NS * i for i in (1, 2, 3)]
    assert point.rate_bps == LINE_BPS / 1.5


@pytest.mark.parametrize(("limit", "increase"), [(4, 1), (4, 3)])
def test_the_table_has_an_end(limit: int, increase: int) -> None:
    point, _ = made(InfinibandParameters(ccti_limit=limit, ccti_increase=increase))
    for i in range(10):
        ack(point, i)
    assert point.ccti == limit
    assert point.rate_bps == LINE_BPS / 5
