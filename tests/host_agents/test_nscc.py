"""NSCC step by step: the four cases, updates, fast increase, quick adapt, losses, bounds.

At 100 Gb/s and 12 us all scales are 1: a BDP of 150,000 bytes, a target delay of 9 us, packets of 1500 bytes with 1440
bytes of payload. The largest window is 225,000 bytes.
"""

import csv
import itertools
from pathlib import Path as File
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from host_agents import wire
from host_agents.cc.base import Feedback, Path, Trimmed
from host_agents.cc.composite import CompositeReactionPoint
from host_agents.cc.nscc import Nscc, NsccParameters
from host_agents.cc.rccc import DATA
from p4cc._link import Trouble, Wire, connect, pair, trimmed
from tests.host_agents.narrow import replace_method

PACKET = 1500
PAYLOAD = 1440
BASE_NS = 12_000
TARGET_NS = 9_000
MOST = 225_000.0
FAIR = 5 * PAYLOAD
PROPORTIONAL = 4 * PAYLOAD / 12_000  # bytes per ns
ETA = 0.15 * PAYLOAD
TRAJECTORY = File(__file__).with_name("nscc_trajectory.csv")
UPDATE_BYTES = 8 * PACKET
PERIOD_NS = BASE_NS + TARGET_NS  # of quick adapt


def point(
    window_bytes: float | None = None, rate_bps: float = 100e9, inflight_bytes: int = 0, **parameters: Any
) -> Nscc:
    rp = Nscc(NsccParameters(**parameters), Path(rate_bps, BASE_NS, PAYLOAD, PACKET, 80))
    if window_bytes is not None:
        rp.window_bytes = float(window_bytes)
    rp.traffic.inflight_bytes = inflight_bytes
    return rp


def ack(
    rp: Nscc, delay_ns: int, marked: bool = False, now_ns: int = 1, acked_bytes: int = PACKET, rtt_known: bool = True
) -> None:
    feedback = Feedback()
    feedback.now_ns, feedback.marked, feedback.acked_bytes = now_ns, marked, acked_bytes
    feedback.rtt_ns = BASE_NS + delay_ns if rtt_known else -1
    rp.on_ack(feedback)


def settled(rp: float, bytes_squared: float) -> object:
    """Return the window after the pending increase of that size is applied."""
    return pytest.approx(rp + bytes_squared / rp)


class TestStart:
    def test_it_starts_with_the_largest_window(self) -> None:
        assert point().window_bytes == MOST

    def test_or_with_so_many_packets(self) -> None:
        assert point(first_window_packets=50.0).window_bytes == 50 * PACKET

    def test_a_packet_leaves_if_all_of_it_has_room(self) -> None:
        rp = point(10 * PACKET)
        assert rp.may_send(9 * PACKET)
        assert not rp.may_send(9 * PACKET + 1)


class TestFourCases:
    def test_unmarked_above_the_target_is_a_fair_increase(self) -> None:
        """Check an increase of fi over the window in bytes, applied after more than eight packets are acknowledged."""
        rp = point(100_000)
        ack(rp, TARGET_NS, acked_bytes=UPDATE_BYTES)
        assert rp.window_bytes == 100_000  # 8 packets are not more than 8
        ack(rp, TARGET_NS)
        assert rp.window_bytes == settled(100_000, FAIR * (UPDATE_BYTES + PACKET))

    def test_unmarked_below_the_target_grows_in_proportion_to_what_is_lacking(self) -> None:
        rp = point(100_000)
        ack(rp, 6_000, acked_bytes=UPDATE_BYTES + PACKET)
        assert rp.window_bytes == settled(100_000, PROPORTIONAL * (UPDATE_BYTES + PACKET) * 3_000)

    def test_marked_below_the_target_does_nothing(self) -> None:
        rp = point(100_000)
        ack(rp, TARGET_NS - 1, marked=True, acked_bytes=UPDATE_BYTES + PACKET)
        assert rp.window_bytes == 100_000

    def test_marked_above_the_target_waits_for_the_average(self) -> None:
        rp = point(100_000)
        ack(rp, 2 * TARGET_NS, marked=True)
        assert rp.average_delay_ns == pytest.approx(0.0125 * 2 * TARGET_NS)
        assert rp.window_bytes == 100_000

    def test_decrease(self) -> None:
        """The factor is 1 - 0.8 (A - D) / A, at least one half, once for each base RTT."""
        rp = point(100_000, delay_gain=1.0)
        ack(rp, 12_000, marked=True, now_ns=1)
        assert rp.window_bytes == pytest.approx(100_000 * (1 - 0.8 * 3_000 / 12_000))
        decreased = rp.window_bytes
        ack(rp, 12_000, marked=True, now_ns=1 + BASE_NS)
        assert rp.window_bytes == pytest.approx(decreased + ETA)  # the update period is over, too
        before = rp.window_bytes
        ack(rp, 12_000, marked=True, now_ns=2 + BASE_NS)
        assert rp.window_bytes == pytest.approx(before * 0.8)

    def test_a_decrease_halves_at_most(self) -> None:
        rp = point(100_000, delay_gain=1.0, decrease_gain=2.0)
        ack(rp, 4 * TARGET_NS, marked=True)
        assert rp.window_bytes == 50_000

    def test_an_ack_without_an_rtt_counts_with_the_average(self) -> None:
        rp = point(100_000)
        rp.average_delay_ns = 7_000.0
        ack(rp, 0, acked_bytes=UPDATE_BYTES + PACKET, rtt_known=False)
        assert rp.average_delay_ns == 7_000
        assert rp.window_bytes == settled(100_000, PROPORTIONAL * (UPDATE_BYTES + PACKET) * 2_000)


class TestAverage:
    def test_a_delay_that_no_mark_confirms_counts_as_a_quarter_of_the_base_rtt(self) -> None:
        rp = point(100_000)
        ack(rp, TARGET_NS + 1)
        assert rp.average_delay_ns == pytest.approx(0.0125 * BASE_NS / 4)

    def test_or_as_another_share_of_it(self) -> None:
        rp = point(100_000, unmarked_delay_base_rtts=0.5)
        ack(rp, TARGET_NS + 1)
        assert rp.average_delay_ns == pytest.approx(0.0125 * BASE_NS / 2)

    def test_others_count_as_they_are(self) -> None:
        rp = point(100_000)
        ack(rp, 4_000)
        ack(rp, 30_000, marked=True)
        assert rp.average_delay_ns == pytest.approx(0.9875 * 0.0125 * 4_000 + 0.0125 * 30_000)

    def test_a_loss_counts_as_a_base_rtt(self) -> None:
        rp = point(100_000)
        rp.on_nack(1, PACKET, True)
        assert rp.average_delay_ns == pytest.approx(0.0125 * BASE_NS)


class TestUpdate:
    def test_eta_comes_once_a_period_whatever_the_signals(self) -> None:
        rp = point(100_000)
        ack(rp, 5_000, marked=True, now_ns=BASE_NS)
        assert rp.window_bytes == 100_000  # the period is over when more than it has passed
        ack(rp, 5_000, marked=True, now_ns=BASE_NS + 1)
        assert rp.window_bytes == pytest.approx(100_000 + ETA)
        ack(rp, 5_000, marked=True, now_ns=2 * BASE_NS + 1)
        assert rp.window_bytes == pytest.approx(100_000 + ETA)
        ack(rp, 5_000, marked=True, now_ns=2 * BASE_NS + 2)
        assert rp.window_bytes == pytest.approx(100_000 + 2 * ETA)

    def test_an_update_of_many_bytes_that_comes_with_the_end_of_the_period_has_eta(self) -> None:
        rp = point(100_000)
        ack(rp, 5_000, marked=True, now_ns=BASE_NS, acked_bytes=UPDATE_BYTES + PACKET)
        assert rp.window_bytes == pytest.approx(100_000 + ETA)

    def test_the_period_ends_an_update_of_few_bytes(self) -> None:
        rp = point(100_000)
        ack(rp, TARGET_NS, now_ns=1)
        ack(rp, TARGET_NS, now_ns=BASE_NS + 1)
        assert rp.window_bytes == pytest.approx(100_000 + FAIR * 2 * PACKET / 100_000 + ETA)

    def test_a_later_flow_waits_for_its_first_eta_as_well(self) -> None:
        rp = point(100_000)
        rp.on_start(1_000_000)
        ack(rp, 5_000, marked=True, now_ns=1_000_000 + BASE_NS)
        assert rp.window_bytes == 100_000

    def test_increases_scale_with_the_bdp(self) -> None:
        rp = point(100_000, rate_bps=400e9)
        ack(rp, TARGET_NS, acked_bytes=UPDATE_BYTES + PACKET)
        assert rp.window_bytes == settled(100_000, 4 * FAIR * (UPDATE_BYTES + PACKET))


class TestBaseRtt:
    def test_the_least_rtt_counts_and_lowers_the_largest_window(self) -> None:
        rp = point()
        ack(rp, -4_000)
        assert rp.base_ns == 8_000
        assert rp.window_bytes == 150_000  # 1.5 x 100 Gb/s x 8 us
        assert rp.target_ns == TARGET_NS  # this is the network's
        ack(rp, 0)
        assert rp.average_delay_ns == pytest.approx(0.0125 * 4_000)


class TestFastIncrease:
    def test_after_a_window_without_delay_a_quarter_of_what_is_acknowledged(self) -> None:
        rp = point(20 * PACKET, proportional_increase_packets=0.0)
        for _ in range(20):
            ack(rp, 999)
        assert rp.window_bytes == 20 * PACKET
        ack(rp, 999)
        assert rp.window_bytes == pytest.approx(20.25 * PACKET)
        ack(rp, 0, acked_bytes=4 * PACKET)
        assert rp.window_bytes == pytest.approx(21.25 * PACKET)

    def test_a_delay_of_a_microsecond_ends_it(self) -> None:
        rp = point(2 * PACKET, proportional_increase_packets=0.0)
        for _ in range(3):
            ack(rp, 0)
        before = rp.increasing_fast
        ack(rp, 1_000)
        assert (before, rp.increasing_fast) == (True, False)
        assert rp.fast_bytes == 0

    @pytest.mark.parametrize(("delay_ns", "marked"), [(0, True), (TARGET_NS, False)])
    def test_marks_and_delay_end_it(self, delay_ns: int, marked: bool) -> None:
        rp = point(4 * PACKET)
        ack(rp, 0)
        ack(rp, delay_ns, marked=marked)
        assert rp.fast_bytes == 0

    @pytest.mark.parametrize(("delay_ns", "marked"), [(0, True), (TARGET_NS, False)])
    def test_as_simulated_they_do_not(self, delay_ns: int, marked: bool) -> None:
        rp = point(4 * PACKET, as_simulated_fast=True)
        ack(rp, 0)
        ack(rp, delay_ns, marked=marked)
        assert rp.fast_bytes == PACKET


def measuring(**parameters: Any) -> Nscc:
    """Return a reaction point whose quick adapt has begun its first period, at 1 ns."""
    rp = point(100_000, inflight_bytes=60_000, **parameters)
    ack(rp, 5_000, marked=True)
    assert rp.period_end_ns == 1 + PERIOD_NS
    return rp


class TestQuickAdapt:
    def test_after_a_trim_the_window_becomes_what_was_brought(self) -> None:
        rp = measuring()
        rp.on_nack(100, PACKET, True)
        assert rp.armed
        assert rp.window_bytes == 100_000 - PACKET
        ack(rp, 5_000, marked=True, now_ns=1_000, acked_bytes=4 * PACKET)
        ack(rp, 5_000, marked=True, now_ns=2 + PERIOD_NS, acked_bytes=3 * PACKET)
        assert rp.window_bytes == 7 * PACKET
        assert not rp.armed

    def test_it_leaves_a_window_that_brings_an_eighth_of_the_largest(self) -> None:
        rp = measuring()
        rp.on_nack(100, PACKET, True)
        before = rp.window_bytes
        ack(rp, 5_000, marked=True, now_ns=2 + PERIOD_NS, acked_bytes=int(MOST / 8))
        assert rp.window_bytes == pytest.approx(before + ETA)

    def test_a_delay_of_more_than_four_targets_is_severe_without_a_loss(self) -> None:
        rp = measuring()
        ack(rp, 4 * TARGET_NS, now_ns=2 + PERIOD_NS)
        assert rp.window_bytes > 99_000
        rp = measuring()
        ack(rp, 4 * TARGET_NS + 1, now_ns=2 + PERIOD_NS)
        assert rp.window_bytes == PACKET

    def test_what_was_in_flight_is_not_reacted_to_if_it_is_marked(self) -> None:
        rp = measuring(delay_gain=1.0)
        rp.on_nack(2 + PERIOD_NS, PACKET, True)  # in flight: 60,000 bytes and the trimmed packet
        assert rp.window_bytes == PACKET
        assert rp.ignore_bytes == 60_000 + PACKET
        rp.window_bytes = 10.0 * PACKET
        ack(rp, 3 * TARGET_NS, marked=True, now_ns=50_000, acked_bytes=60_000)
        assert rp.window_bytes == 10 * PACKET
        rp.on_nack(50_001, PACKET - 1, True)  # one byte less than what was in flight
        assert rp.window_bytes == 10 * PACKET
        ack(rp, 12_000, marked=True, now_ns=50_002, acked_bytes=PACKET)
        assert rp.window_bytes < 10 * PACKET

    def test_a_loss_while_ignoring_takes_nothing(self) -> None:
        rp = measuring()
        rp.on_nack(2 + PERIOD_NS, PACKET, True)
        rp.window_bytes = 10.0 * PACKET
        rp.on_nack(3 + PERIOD_NS, PACKET, True)
        assert rp.window_bytes == 10 * PACKET

    def test_unmarked_feedback_counts_all_the_same(self) -> None:
        rp = measuring()
        rp.on_nack(2 + PERIOD_NS, PACKET, True)
        rp.window_bytes = 10.0 * PACKET
        ack(rp, TARGET_NS, now_ns=3 + PERIOD_NS, acked_bytes=UPDATE_BYTES + PACKET)
        assert rp.window_bytes > 10 * PACKET

    def test_it_does_not_raise_the_window_unless_as_simulated(self) -> None:
        for as_simulated, expected in ((False, 2 * PACKET), (True, 8 * PACKET)):
            rp = measuring(as_simulated_raise=as_simulated)
            rp.on_nack(100, PACKET, True)
            rp.window_bytes = 2.0 * PACKET
            ack(rp, 5_000, marked=True, now_ns=2 + PERIOD_NS, acked_bytes=8 * PACKET)
            assert rp.window_bytes == expected

    def test_a_trim_of_an_earlier_period_is_forgotten_unless_as_simulated(self) -> None:
        for armed in (False, True):
            rp = measuring(as_simulated_arm=armed)
            rp.on_nack(100, PACKET, True)
            ack(rp, 5_000, marked=True, now_ns=2 + PERIOD_NS, acked_bytes=int(MOST / 8))
            assert rp.armed == armed

    def test_nothing_that_was_pending_survives_it(self) -> None:
        rp = measuring()
        ack(rp, TARGET_NS, now_ns=100)
        assert rp.pending_increase > 0
        rp.on_nack(2 + PERIOD_NS, PACKET, True)
        assert rp.pending_increase == 0
        assert rp.received_bytes == 0


def trim(wire_bytes: int = PACKET, rtt_ns: int = -1, last_hop: bool = False, now_ns: int = 1) -> Trimmed:
    told = Trimmed()
    told.now_ns, told.wire_bytes, told.rtt_ns, told.last_hop = now_ns, wire_bytes, rtt_ns, last_hop
    return told


class TestTrims:
    def test_a_trimmed_packet_takes_its_size(self) -> None:
        for last_hop in (False, True):
            rp = point(100_000)
            rp.on_trimmed(trim(last_hop=last_hop))
            assert rp.window_bytes == 100_000 - PACKET
            assert rp.ignored_bytes == PACKET

    def test_beside_a_receiver_that_draws_the_last_hop_is_the_receivers(self) -> None:
        for last_hop, expected in ((False, 100_000 - PACKET), (True, 100_000)):
            rp = point(100_000)
            whole = CompositeReactionPoint(rp.path, [rp])
            whole.on_trimmed(trim(last_hop=last_hop))
            assert rp.window_bytes == expected
            assert rp.ignored_bytes == PACKET

    def test_its_rtt_lowers_the_base_rtt_as_simulated_only(self) -> None:
        for as_simulated, expected in ((False, BASE_NS), (True, BASE_NS - 100)):
            rp = point(100_000, as_simulated_base=as_simulated)
            rp.on_trimmed(trim(rtt_ns=BASE_NS - 100))
            assert rp.base_ns == expected
            rp.on_trimmed(trim(rtt_ns=BASE_NS + 100))
            rp.on_trimmed(trim())
            assert rp.base_ns == expected


class TestLosses:
    def test_a_nack_takes_the_packets_size(self) -> None:
        rp = point(100_000)
        rp.on_nack(1, PACKET, True)
        assert rp.window_bytes == 100_000 - PACKET

    def test_a_time_out_takes_the_packets_size_down_to_one_packet(self) -> None:
        rp = point(100_000)
        rp.on_expired(1, PACKET)
        assert rp.window_bytes == 100_000 - PACKET
        assert not rp.armed
        rp.window_bytes = 1.5 * PACKET
        rp.on_expired(2, PACKET)
        assert rp.window_bytes == PACKET


class TestAlternatives:
    def test_dctcp(self) -> None:
        rp = point(100_000, algorithm="dctcp")
        ack(rp, 0)
        assert rp.window_bytes == pytest.approx(100_000 + PACKET * PACKET / 100_000)
        before = rp.window_bytes
        ack(rp, 0, marked=True)
        assert rp.window_bytes == pytest.approx(before - PACKET / 3)
        before = rp.window_bytes
        rp.on_nack(1, PACKET, True)
        assert rp.window_bytes == pytest.approx(before - PACKET)

    def test_the_constants_of_dctcp_are_parameters(self) -> None:
        rp = point(100_000, algorithm="dctcp", dctcp_increase_packets=2.0, dctcp_decrease_divisor=2.0)
        ack(rp, 0)
        grown = 100_000 + 2 * PACKET * PACKET / 100_000
        assert rp.window_bytes == pytest.approx(grown)
        ack(rp, 0, marked=True)
        assert rp.window_bytes == pytest.approx(grown - PACKET / 2)

    def test_constant(self) -> None:
        rp = point(algorithm="constant", first_window_packets=40.0)
        ack(rp, 5 * TARGET_NS, marked=True)
        rp.on_nack(1, PACKET, True)
        rp.on_expired(1, PACKET)
        assert rp.window_bytes == 40 * PACKET


def test_the_pending_increase_wraps_only_as_simulated() -> None:
    """At 800 Gb/s two ordinary ACKs overflow 32 bits: 2 x 2,770,274,400 becomes 1,245,581,504."""
    for as_simulated, expected in ((False, 5_540_548_800), (True, 1_245_581_504)):
        rp = point(as_simulated_wrap=as_simulated)
        rp._increase(2_770_274_400.0)
        rp._increase(2_770_274_400.0)
        assert rp.pending_increase == expected


ACCIDENTS = ("as_simulated_wrap", "as_simulated_arm", "as_simulated_raise", "as_simulated_fast")
EVENT = st.tuples(
    st.sampled_from(("ack", "marked", "blind", "nack", "expired")),
    st.integers(0, 5_000),  # since the one before
    st.integers(-11_999, 60_000),  # delay
    st.integers(0, 8),  # packets acknowledged
    st.integers(0, 300_000),  # in flight
)


@settings(max_examples=150, deadline=None)
@given(st.lists(EVENT, max_size=60), st.sets(st.sampled_from(ACCIDENTS)), st.sampled_from((100e9, 800e9)))
def test_the_window_stays_within_its_bounds(
    events: list[tuple[str, int, int, int, int]], accidents: set[str], rate_bps: float
) -> None:
    """Check the bounds of one packet, and one and a half BDP of the smallest RTT."""
    rp = point(rate_bps=rate_bps, **dict.fromkeys(accidents, True))
    now_ns = 1
    least_rtt_ns = BASE_NS
    for kind, gap_ns, delay_ns, packets, inflight_bytes in events:
        now_ns += gap_ns
        rp.traffic.inflight_bytes = inflight_bytes
        before = rp.window_bytes
        if kind == "nack":
            rp.on_nack(now_ns, PACKET, True)
            assert rp.window_bytes <= before or "as_simulated_raise" in accidents
        elif kind == "expired":
            rp.on_expired(now_ns, PACKET)
            assert rp.window_bytes <= before
        else:
            if kind != "blind":
                least_rtt_ns = min(least_rtt_ns, BASE_NS + delay_ns)
            ack(rp, delay_ns, kind == "marked", now_ns, packets * PACKET, kind != "blind")
        assert PACKET <= rp.window_bytes <= max(PACKET, 1.5 * rate_bps * max(least_rtt_ns, 1) / 8e9) * (1 + 1e-12)
        assert rp.average_delay_ns >= 0
        assert rp.may_send(inflight_bytes) == (inflight_bytes + PACKET <= rp.window_bytes)


@settings(max_examples=30, deadline=None)
@given(
    protocol=st.sampled_from(("nscc", "rccc+nscc")),
    first_window_packets=st.sampled_from((0.0, 1.0, 7.5)),
    loss=st.sampled_from((0.0, 0.05)),
    trim_every=st.sampled_from((0, 3, 11)),
    seed=st.integers(0, 1000),
)
def test_never_more_than_the_window_is_in_flight(
    protocol: str, first_window_packets: float, loss: float, trim_every: int, seed: int
) -> None:
    """The pull target makes RCCC's data packets longer than a full packet."""
    own = {"first_window_packets": first_window_packets}
    parameters = own if protocol == "nscc" else {"nscc": own}
    a, b = pair(
        protocol, parameters, load_balancer="mixed", reliability="selective-repeat", loss_packets=0, rto_ns=100_000
    )
    qa, qb = connect(a, b)
    qa.post(150_000)
    longer_bytes = 0 if protocol == "nscc" else DATA.size_bytes
    count = itertools.count(1)
    next_frame = a.next_frame

    def sending(now_ns: int) -> bytes | None:
        before_bytes, window_bytes = qa.inflight_bytes, qa.window_bytes
        frame = next_frame(now_ns)
        if qa.inflight_bytes > before_bytes:
            assert qa.inflight_bytes <= window_bytes + longer_bytes
        return frame

    def switch(now_ns: int, frame: bytes) -> bytes:
        is_data = frame[wire.BTH] <= wire.SEND_ONLY
        return trimmed(frame) if trim_every and is_data and next(count) % trim_every == 0 else frame

    replace_method(a, "next_frame", sending)
    Wire(a, b, trouble=Trouble(loss=loss, seed=seed), hook=switch).run(40_000_000)
    assert qb.stats.bytes_delivered == 150_000


def test_the_simulators_window_step_by_step() -> None:
    """After each ACK and NACK of a flow in the simulator's run of 2 to 1, the windows agree, except for rounding.

    Its time is in ps, so this reaction point has ps in place of ns, and rates 1,000 times as small.
    """
    base_ps = 14_022_720
    path = Path(100e6, base_ps, 4086, 4150, 80)
    parameters = NsccParameters(
        reference_rate_bps=100e6,
        reference_rtt_ns=12e6,
        fast_increase_delay_ns=1_000_000,
        as_simulated_wrap=True,
        as_simulated_arm=True,
        as_simulated_raise=True,
        as_simulated_fast=True,
        as_simulated_base=True,
    )
    rp = Nscc(parameters, path)
    with TRAJECTORY.open(encoding="utf-8") as lines:
        steps = list(csv.DictReader(lines))
    assert len(steps) == 503
    for step in steps:
        time_ps, rtt_ps, size = int(step["time_ps"]), int(step["rtt_ps"]), int(step["bytes"])
        rp.traffic.inflight_bytes = int(step["inflight_bytes"])
        if step["event"] == "nack":
            rp.traffic.inflight_bytes -= size  # the simulator deducts the packet after its reaction
            nack = Trimmed()
            nack.now_ns, nack.rtt_ns, nack.wire_bytes = time_ps, rtt_ps, size
            rp.on_trimmed(nack)
        else:
            feedback = Feedback()
            feedback.now_ns, feedback.marked, feedback.acked_bytes = time_ps, step["marked"] == "1", size
            feedback.rtt_ns = rtt_ps if rtt_ps > 0 else -1
            rp.on_ack(feedback)
        assert rp.window_bytes == pytest.approx(int(step["window_bytes"]), rel=2e-4), time_ps
