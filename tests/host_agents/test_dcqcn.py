"""DCQCN step by step: CNPs at given times, and their effects on alpha, the current rate and the target rate."""

from typing import Any

import pytest

from host_agents import wire
from host_agents.cc.dcqcn import Dcqcn
from host_agents.nic import Nic
from host_agents.timers import NEVER
from p4cc._link import connect, pair
from tests.host_agents.narrow import due_frame, of_kind

G = 1 / 256
LINE = 100e9
US = 1_000


def reaction_point(protocol: str = "dcqcn", **parameters: Any) -> tuple[Nic, Dcqcn]:
    """Return a reaction point on a NIC whose clock the test advances with `at`."""
    a, b = pair(protocol, parameters)
    qp, _ = connect(a, b)
    return a, of_kind(qp.reaction_point, Dcqcn)


def at(nic: Nic, now_ns: int) -> None:
    """Let the NIC serve all timers up to now."""
    assert nic.next_frame(now_ns) is None


def test_starts_at_line_rate_without_timers() -> None:
    a, rp = reaction_point()
    assert rp.rate_bps == rp.target_bps == LINE
    assert a.next_wakeup_ns() == NEVER


def test_first_cnp_cuts_after_the_decrease_interval() -> None:
    # Alpha starts at 1 and decays once a microsecond; the cut is made 4 us (and 1 ns, to come after alpha's) later.
    a, rp = reaction_point()
    rp.on_cnp(10 * US)
    at(a, 14 * US)
    assert rp.rate_bps == LINE
    at(a, 14 * US + 1)
    alpha = (1 - G) ** 4
    assert rp.alpha == pytest.approx(alpha)
    assert rp.rate_bps == pytest.approx(LINE * (1 - alpha / 2))
    assert rp.target_bps == LINE


def test_one_cut_in_an_interval_however_many_cnps() -> None:
    a, rp = reaction_point()
    for t in range(0, 4_000, 100):
        rp.on_cnp(t)
    at(a, 4_001)
    once = rp.rate_bps
    assert once == pytest.approx(LINE * (1 - rp.alpha / 2))
    at(a, 30 * US)
    assert rp.rate_bps == once  # no CNP since


def test_alpha_rises_with_cnps_and_decays_without() -> None:
    a, rp = reaction_point(rate_decrease_interval_ns=1_000_000)
    rp.on_cnp(0)
    rp.update_alpha(3 * US)
    assert rp.alpha == pytest.approx((1 - G) ** 3)
    rp.on_cnp(3_500)
    rp.on_cnp(3_600)  # the same interval
    rp.update_alpha(4 * US - 1)
    assert rp.alpha == pytest.approx((1 - G) ** 3)
    rp.update_alpha(4 * US)
    assert rp.alpha == pytest.approx((1 - G) ** 4 + G)
    rp.update_alpha(1_004 * US)
    assert rp.alpha == pytest.approx(((1 - G) ** 4 + G) * (1 - G) ** 1000)
    assert a.now_ns == 0


def test_consecutive_cuts_keep_the_target_unless_clamped() -> None:
    for clamp in (False, True):
        a, rp = reaction_point(clamp_target_rate=clamp)
        rp.on_cnp(0)
        at(a, 4_001)
        first = rp.rate_bps
        rp.on_cnp(5_000)
        at(a, 8_001)
        assert rp.rate_bps == pytest.approx(first * (1 - rp.alpha / 2))
        assert rp.target_bps == (first if clamp else LINE)


def test_cuts_stay_on_the_grid_of_the_first_cnp() -> None:
    a, rp = reaction_point()
    rp.on_cnp(1_000)
    at(a, 5_001)
    once = rp.rate_bps
    rp.on_cnp(21_500)  # grid: 5,001 + 4,000 k; the next is 25,001
    at(a, 25_000)
    assert rp.rate_bps == once
    at(a, 25_001)
    assert rp.rate_bps < once


def test_rate_never_falls_under_the_minimum() -> None:
    a, rp = reaction_point()
    for t in range(0, 4_000 * US, 4_000):
        rp.on_cnp(t)
        at(a, t)
    assert rp.rate_bps == 100e6


def cut_once(nic: Nic, rp: Dcqcn) -> int:
    rp.on_cnp(0)
    at(nic, 4_001)
    return 4_001


def test_fast_recovery_then_additive_then_hyper_increase() -> None:
    a, rp = reaction_point(
        fast_recovery_steps=5, rate_increase_interval_ns=300 * US, additive_increase_bps=20e6, hyper_increase_bps=100e6
    )
    rp.target_bps = rp.current_bps = 40e9
    t = cut_once(a, rp)
    rp.target_bps = target = 40e9
    for step in range(1, 6):  # five stages of fast recovery halve the distance to the target
        before = rp.rate_bps
        at(a, t + step * 300 * US - 1)
        assert rp.rate_bps == before
        at(a, t + step * 300 * US)
        assert rp.rate_bps == pytest.approx((before + target) / 2)
        assert rp.target_bps == target
    before = rp.rate_bps
    at(a, t + 6 * 300 * US)
    assert rp.target_bps == pytest.approx(target + 20e6)
    assert rp.rate_bps == pytest.approx((before + target + 20e6) / 2)
    before = rp.rate_bps
    at(a, t + 7 * 300 * US)
    assert rp.target_bps == pytest.approx(target + 20e6 + 100e6)
    assert rp.rate_bps == pytest.approx((before + target + 120e6) / 2)


def test_vendor_constants_have_one_stage_of_fast_recovery() -> None:
    a, rp = reaction_point()
    rp.target_bps = rp.current_bps = 40e9
    t = cut_once(a, rp)
    targets = []
    for step in range(1, 5):
        at(a, t + step * 300 * US)
        targets.append(rp.target_bps)
    assert targets == pytest.approx([40e9, 40e9 + 20e6, 40e9 + 220e6, 40e9 + 420e6])


def test_a_cut_starts_the_recovery_again() -> None:
    a, rp = reaction_point(rate_increase_interval_ns=100 * US)
    t = cut_once(a, rp)
    at(a, t + 100 * US)
    assert rp.timer_steps == 1
    recovered = rp.rate_bps
    rp.on_cnp(t + 150 * US)
    at(a, t + 160 * US)
    assert rp.timer_steps == 0
    assert rp.target_bps == recovered  # after an increase the target is what the rate was
    cut = rp.rate_bps
    at(a, t + 220 * US)
    assert rp.rate_bps == cut  # the timer started anew at the cut
    at(a, t + 260 * US)
    assert rp.rate_bps > cut


def test_timer_rests_at_line_rate() -> None:
    a, rp = reaction_point(rate_increase_interval_ns=10 * US, additive_increase_bps=10e9)
    cut_once(a, rp)
    at(a, 10_000 * US)
    assert rp.rate_bps == LINE
    assert a.next_wakeup_ns() == NEVER


def test_paper_constants_cut_at_every_cnp() -> None:
    a, rp = reaction_point("dcqcn-paper")
    rp.on_cnp(0)
    assert rp.rate_bps == LINE / 2  # alpha = 1
    assert rp.target_bps == LINE
    rp.on_cnp(50 * US)
    assert rp.alpha == pytest.approx((1 - G) + G)
    assert rp.rate_bps == pytest.approx(LINE / 4)
    assert rp.target_bps == LINE / 2
    at(a, 105 * US)  # 55 us without a CNP: alpha decays, and the timer recovers half the distance
    rp.update_alpha(105 * US)
    assert rp.alpha == pytest.approx(1 - G)
    assert rp.rate_bps == pytest.approx((LINE / 4 + LINE / 2) / 2)


def test_paper_cuts_by_the_alpha_of_before_the_cnp() -> None:
    # Equation 1: the target, then the cut, then alpha.
    _, rp = reaction_point("dcqcn-paper")
    rp.on_cnp(0)
    rp.current_bps = LINE
    rp.alpha = 0.125
    rp.on_cnp(10 * US)
    assert rp.rate_bps == pytest.approx(LINE * (1 - 0.125 / 2))
    assert rp.alpha == pytest.approx((1 - G) * 0.125 + G)


def test_byte_counter_and_timer_count_their_own_stages() -> None:
    a, rp = reaction_point("dcqcn-paper", fast_recovery_steps=2, byte_counter_bytes=10_000)
    rp.target_bps = rp.current_bps = 40e9
    rp.on_cnp(0)
    rp.target_bps = 40e9
    for _ in range(2):
        for _ in range(10):
            rp.on_sent(0, 1_000)
    assert (rp.byte_steps, rp.timer_steps) == (2, 0)
    assert rp.rate_bps == pytest.approx(35e9)  # 20, 30, 35
    rp.on_sent(0, 10_000)
    assert rp.target_bps == pytest.approx(40.04e9)  # additive: only one of the two is beyond F
    for step in range(1, 4):
        at(a, step * 55 * US)
    assert rp.timer_steps == 3
    target = rp.target_bps
    rp.on_sent(0, 10_000)
    assert rp.byte_steps == 4
    assert rp.target_bps == pytest.approx(target + 400e6)  # hyper: both are beyond F


def marked(frame: bytes) -> bytes:
    out = bytearray(frame)
    out[wire.TOS] |= 3
    out[24:26] = b"\0\0"
    out[24:26] = wire.ip_checksum(bytes(out[14:34])).to_bytes(2, "big")
    return bytes(out)


def test_every_marked_packet_has_a_cnp_with_the_simulators_constants() -> None:
    a, b = pair("dcqcn")
    qa, qb = connect(a, b)
    qa.post(10_000)
    frames = [due_frame(a, 1000 * i) for i in range(10)]
    for place, frame in enumerate(frames):
        b.receive(100 * place, frame if place == 4 else marked(frame))
    assert (qb.stats.marked_received, qb.stats.cnps_sent) == (9, 9)


def test_alpha_stays_near_one_while_everything_is_marked() -> None:
    # The published simulator's ACKs carry the mark of their packet: alpha rises in each of its intervals.
    a, rp = reaction_point(min_rate_bps=LINE)
    for now_ns in range(0, 300 * US, 500):
        rp.on_cnp(now_ns)
        at(a, now_ns)
    assert rp.alpha > 0.99


@pytest.mark.parametrize(("protocol", "interval_ns"), [("dcqcn", 4_000), ("dcqcn-paper", 50_000)])
def test_notification_point_sends_one_cnp_in_an_interval(protocol: str, interval_ns: int) -> None:
    a, b = pair(protocol, {"cnp_interval_ns": interval_ns})
    qa, qb = connect(a, b)
    qa.post(10_000)
    frames = [due_frame(a, 1000 * i) for i in range(6)]
    b.receive(100, frames[0])  # not marked
    assert qb.stats.cnps_sent == 0
    b.receive(200, marked(frames[1]))
    b.receive(300, marked(frames[2]))
    b.receive(200 + interval_ns - 1, marked(frames[3]))
    assert qb.stats.cnps_sent == 1
    b.receive(200 + interval_ns, marked(frames[4]))
    assert qb.stats.cnps_sent == 2
    assert qb.stats.marked_received == 4


def test_cnp_reaches_the_reaction_point() -> None:
    a, b = pair("dcqcn")
    qa, _ = connect(a, b)
    qa.post(1_000)
    b.receive(1_000, marked(due_frame(a, 0)))
    for _ in range(2):
        a.receive(2_000, due_frame(b, 1_000))
    assert qa.stats.cnps_received == 1
    assert a.next_frame(6_001) is None
    assert qa.rate_bps < LINE


def test_the_first_cnp_sets_a_rate_before_any_cut() -> None:
    a, rp = reaction_point(first_cnp_rate_bps=40e9, initial_alpha=0.5)
    rp.on_cnp(0)
    assert (rp.rate_bps, rp.target_bps, rp.alpha) == (40e9, 40e9, 0.5)
    at(a, 4_001)
    assert rp.rate_bps == pytest.approx(40e9 * (1 - 0.5 * (1 - G) ** 4 / 2))
    rp.on_cnp(5_000)
    assert rp.target_bps == 40e9


def test_a_cut_leaves_at_least_a_share() -> None:
    a, rp = reaction_point(least_left=0.8)
    rp.on_cnp(0)
    at(a, 4_001)
    assert rp.rate_bps == pytest.approx(0.8 * LINE)


def test_a_limiter_with_steps_takes_the_next_smaller_one_and_keeps_the_current_rate() -> None:
    """Increases smaller than a step add up; the smallest rate is one step."""
    a, rp = reaction_point(rate_step_bps=1e9, min_rate_bps=0.5e9, rate_increase_interval_ns=10_000)
    rp.on_cnp(0)
    at(a, 4_001)
    assert rp.current_bps == pytest.approx(LINE * (1 - (1 - G) ** 4 / 2))
    assert rp.rate_bps == rp.current_bps // 1e9 * 1e9
    for t in range(5_000, 100_000, 4_000):
        rp.on_cnp(t)
        at(a, t + 4_001)
    assert rp.current_bps == 0.5e9
    assert rp.rate_bps == 1e9
    at(a, 10_000_000)
    assert rp.rate_bps == rp.current_bps // 1e9 * 1e9 > 10e9


def cnps(arrivals: list[tuple[int, int]], **parameters: Any) -> list[int]:
    """Return the times of the CNPs of a receiver of two flows, whose marked packets arrive at (time, flow)."""
    a, b = pair("dcqcn", parameters)
    points = [connect(a, b, qpn)[1].notification_point for qpn in (1, 2)]
    sent = []
    for now_ns in range(0, 200_001, 1_000):
        for flow in [flow for at_ns, flow in arrivals if at_ns == now_ns]:
            points[flow].on_data(now_ns, True, b"")
        while (frame := b.next_frame(now_ns)) is not None:
            assert frame[wire.BTH] == wire.CNP
            sent.append(now_ns)
    return sent


def test_a_cnp_follows_its_mark_after_the_delay() -> None:
    """Check that each mark during the delay also gets its own CNP."""
    arrivals = [(10_000, 0), (14_000, 0), (100_000, 1)]
    assert cnps(arrivals) == [10_000, 14_000, 100_000]
    assert cnps(arrivals, cnp_delay_ns=55_000) == [65_000, 69_000, 155_000]


def test_cnps_are_limited_by_flow_or_by_port() -> None:
    arrivals = [(0, 0), (1_000, 1), (2_000, 0), (5_000, 1)]
    assert cnps(arrivals, cnp_interval_ns=4_000) == [0, 1_000, 5_000]
    assert cnps(arrivals, cnp_interval_ns=4_000, cnp_limit="port") == [0, 5_000]


def test_connectx_has_the_vendors_defaults() -> None:
    _, rp = reaction_point("dcqcn-connectx")
    p = rp.parameters
    assert (p.cnp_interval_ns, p.cnp_limit, p.least_left, p.initial_alpha) == (4_000, "port", 0.5, 1023 / 1024)
    assert (p.byte_counter_bytes, p.rate_increase_interval_ns, p.gain) == (2_097_088, 300_000, 1 - 1019 / 1024)
    assert (p.additive_increase_bps, p.hyper_increase_bps, p.min_rate_bps) == (5e6, 50e6, 1e6)
