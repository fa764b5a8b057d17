"""HPCC step by step, with hand-made telemetry. The numbers are calculated from algorithm 1 of the paper."""

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from host_agents import wire
from host_agents.cc.base import Feedback, Host, Path
from host_agents.cc.hpcc import Hpcc, HpccParameters, TelemetryPoint
from p4cc._link import connect, pair
from tests.host_agents.narrow import replace_method

G100 = 10  # link rate code
T_NS = 8_000
BDP = 100_000.0  # 100 Gb/s times 8 us
INCREASE = 50.0  # 50 Mb/s times 8 us


def point(**parameters: Any) -> Hpcc:
    return Hpcc(HpccParameters(**parameters), Path(100e9, T_NS, 1000, 1060, 80))


def records(*hops: tuple[int, ...]) -> bytes:
    """Return INT records of (time in ns, transmitted bytes, queue in cells) or (..., rate code)."""
    out = b""
    for time_ns, tx_bytes, cells, *code in hops:
        word = (code[0] if code else G100) << 60 | time_ns % 2**24 << 36 | tx_bytes // 128 % 2**20 << 16 | cells
        out += word.to_bytes(8, "big")
    return out


def ack(rp: Hpcc, now_ns: int, order: int, *hops: tuple[int, ...], path_id: int = 0) -> None:
    feedback = Feedback()
    feedback.now_ns = now_ns
    feedback.order = order
    feedback.frame = records(*hops)
    feedback.int_hops = len(hops)
    feedback.path_id = path_id
    rp.on_ack(feedback)


def test_starts_with_a_window_of_one_bdp_at_line_rate() -> None:
    rp = point()
    assert rp.window_bytes == BDP
    assert rp.rate_bps == 100e9


def test_where_links_charge_framing_packets_leave_as_fast_as_the_window_says() -> None:
    rp = Hpcc(HpccParameters(), Path(100e9, T_NS, 1000, 1060, 80, frame_overhead_bytes=24))
    ack(rp, 0, 0, (0, 0, 0))
    ack(rp, 8_000, 1, (8_000, 100_000, 1_250))
    assert rp.window_bytes < BDP
    assert rp.rate_bps == pytest.approx(rp.window_bytes / 1060 * 1084 * 8e9 / T_NS)


def test_first_ack_only_records() -> None:
    rp = point()
    rp.traffic.sent_packets = 10
    ack(rp, 0, 0, (1000, 0, 500))
    assert rp.window_bytes == BDP
    assert rp.utilization == 1.0
    assert rp.update_order == 10  # the first RTT ends with an ACK of packet 10


def test_utilization_is_rate_plus_queue_over_bdp() -> None:
    # In 4000 ns 40,000 bytes left (80 Gb/s, u = 0.8) and both samples saw queues: min(100, 200) cells of 80 B = 8 kB,
    # 0.08 BDP. tau/T = 1/2: U = 1/2 * 1 + 1/2 * 0.88 = 0.94, up to the unit of 128 B.
    rp = point()
    rp.traffic.sent_packets = 10
    ack(rp, 0, 0, (0, 0, 200))
    ack(rp, 100, 1, (4000, 40_000, 100))
    sent = 40_000 // 128 * 128
    assert rp.utilization == pytest.approx(0.5 + 0.5 * (8_000 / BDP + sent / 4000 / 12.5))


def test_tau_counts_for_at_most_one_base_rtt() -> None:
    rp = point()
    ack(rp, 0, 0, (0, 0, 0))
    ack(rp, 100, 1, (2 * T_NS, 128_000, 0))
    assert rp.utilization == pytest.approx(128_000 / 16_000 / 12.5)


def test_the_most_loaded_link_decides_with_its_own_rate_and_tau() -> None:
    # 32 kB in 4000 ns: 0.64 of 100 Gb/s; 16 kB in 8000 ns: 0.64 of 25 Gb/s plus a queue of 8 kB of its BDP of 25 kB.
    rp = point()
    ack(rp, 0, 0, (0, 0, 0), (0, 0, 100, 6))
    ack(rp, 100, 1, (4000, 32_000, 0), (8000, 16_000, 100, 6))
    assert rp.utilization == pytest.approx(16_000 / 8_000 / 3.125 + 8_000 / 25_000)


def test_unknown_link_rate_is_taken_as_the_nics() -> None:
    rp = point()
    ack(rp, 0, 0, (0, 0, 0, 0))
    ack(rp, 100, 1, (T_NS, 64_000, 0, 0))
    assert rp.utilization == pytest.approx(0.64)


class Link:
    """A link on which every ACK shows the requested load over exactly T, so that U becomes that load."""

    def __init__(self, rp: Hpcc) -> None:
        self.rp = rp
        self.time_ns = self.sent_bytes = 0

    def ack(self, order: int, load: float) -> float:
        units = round(load * BDP / 128)
        self.time_ns += T_NS
        self.sent_bytes += units * 128
        ack(self.rp, self.time_ns, order, (self.time_ns, self.sent_bytes, 0))
        return units * 128 / BDP


def test_multiplicative_decrease_from_the_reference_window() -> None:
    rp = point()
    link = Link(rp)
    rp.traffic.sent_packets = 10
    link.ack(0, 1.0)
    u = link.ack(1, 1.9)  # within the RTT: reacts, but W_c stays
    assert rp.window_bytes == pytest.approx(BDP / (u / 0.95) + INCREASE)
    assert rp.reference_bytes == BDP
    u = link.ack(2, 1.9)  # the same sight again does not cut twice
    assert rp.window_bytes == pytest.approx(BDP / (u / 0.95) + INCREASE)
    rp.traffic.sent_packets = 15
    u = link.ack(10, 1.9)  # the RTT is over: W_c follows, and the next RTT ends with packet 15
    assert rp.reference_bytes == rp.window_bytes == pytest.approx(BDP / (u / 0.95) + INCREASE)
    assert rp.update_order == 15
    u = link.ack(14, 1.9)
    assert rp.window_bytes == pytest.approx(rp.reference_bytes / (u / 0.95) + INCREASE)
    assert rp.rate_bps == pytest.approx(rp.window_bytes * 8e9 / T_NS)


def test_five_additive_increases_then_a_multiplicative_one() -> None:
    rp = point()
    link = Link(rp)
    rp.traffic.sent_packets = 1
    link.ack(0, 1.0)
    link.ack(1, 1.9)
    start = rp.reference_bytes
    for stage in range(5):
        assert rp.stage == stage
        rp.traffic.sent_packets += 1
        u = link.ack(rp.update_order, 0.5)
        assert rp.reference_bytes == pytest.approx(start + (stage + 1) * INCREASE)
    rp.traffic.sent_packets += 1
    before = rp.reference_bytes
    u = link.ack(rp.update_order, 0.76)
    assert rp.reference_bytes == pytest.approx(before / (u / 0.95) + INCREASE)
    assert rp.stage == 0


def test_acks_within_an_rtt_do_not_advance_the_stage() -> None:
    rp = point()
    link = Link(rp)
    rp.traffic.sent_packets = 100
    link.ack(0, 1.0)
    for order in range(1, 9):
        link.ack(order, 0.5)
    assert rp.stage == 0
    assert rp.window_bytes == BDP  # at its bound
    assert rp.reference_bytes == BDP


def test_window_bounds() -> None:
    rp = point()
    link = Link(rp)
    link.ack(0, 1.0)
    for order in range(1, 400):
        rp.traffic.sent_packets = order
        link.ack(order, 50.0)
    # The fixed point of W -> W / (50 / 0.95) + W_AI is W_AI (1 + 0.0194...), under the bound of 100 Mb/s: 100 bytes.
    assert rp.window_bytes == pytest.approx(100.0)
    assert rp.rate_bps == pytest.approx(100e6)


def test_counters_may_wrap_between_two_acks() -> None:
    rp = point()
    ack(rp, 0, 0, (2**24 - 1000, 2**27 - 12_800, 0))
    ack(rp, 100, 1, (2**24 + 7000, 2**27 + 51_200, 0))
    assert rp.utilization == pytest.approx(64_000 / BDP)


@pytest.mark.parametrize(
    ("code", "gap_ns", "is_sample"),
    [
        (G100, 2**24 // 2 - 1, False),  # 2^27 bytes take 10.7 ms at 100 Gb/s: half of that is 5.37 ms
        (G100, 5_368_000, True),
        (13, 671_000, True),  # 1.34 ms at 800 Gb/s
        (13, 672_000, False),
        (1, 8_388_000, True),  # a slow link: the clock decides, 16.8 ms
        (1, 8_389_000, False),
    ],
)
def test_a_gap_that_may_hide_a_wrap_is_no_sample(code: int, gap_ns: int, is_sample: bool) -> None:
    rp = point()
    ack(rp, 0, 0, (0, 0, 0, code))
    ack(rp, gap_ns, 1, (gap_ns, 128, 0, code))
    assert (rp.utilization != 1.0) is is_sample
    ack(rp, gap_ns + T_NS, 2, (gap_ns + T_NS, 1280, 0, code))  # and the sample after it counts again
    assert rp.utilization != 1.0


def test_an_overtaken_ack_is_no_sample() -> None:
    rp = point()
    ack(rp, 0, 0, (1000, 12_800, 0))
    ack(rp, 10, 2, (2000, 25_600, 0))
    before = rp.utilization
    ack(rp, 20, 1, (1500, 19_200, 0))
    assert rp.utilization == before
    ack(rp, 30, 3, (3000, 38_400, 0))  # compared with the record of 2000
    assert rp.utilization == pytest.approx((1 - 1000 / T_NS) * before + 1000 / T_NS * 1.024)


def test_samples_are_compared_along_the_same_path() -> None:
    rp = point()
    ack(rp, 0, 0, (0, 0, 0), path_id=1)
    ack(rp, 10, 1, (5_000, 128_000_000, 0), path_id=2)  # another link's counter: nothing to compare with
    assert rp.utilization == 1.0
    ack(rp, 20, 2, (T_NS, 64_000, 0), path_id=1)
    assert rp.utilization == pytest.approx(0.64)


def test_rows_of_paths_are_found_again_however_many_there_are_and_however_long() -> None:
    table = TelemetryPoint(Path(100e9, T_NS, 1000, 1060, 80))
    rows: dict[tuple[int, int], list[int]] = {}
    for number, hops in enumerate([5, 1, 6, 7, 14, 15, 2]):  # 7 and 15 hops need wider rows
        for path_id in [*range(number, 4096, 7), 0, 4095]:
            for known in ((path_id, hops), (path_id, 5)):
                row = table.row_of(*known)
                width = known[1] + 2
                kept = [table._rows[row + i] for i in range(width)]
                if known in rows:
                    assert kept == rows[known]
                else:
                    assert kept[1:] == [0] * (width - 1)
                    for i in range(1, width):
                        table._rows[row + i] = 1000 * len(rows) + i
                    rows[known] = [table._rows[row + i] for i in range(width)]
    assert 2 * len(rows) <= len(table._rows) // 32
    for known, kept in rows.items():
        row = table.row_of(*known)
        assert [table._rows[row + i] for i in range(len(kept))] == kept


_ACKS = st.lists(
    st.tuples(
        st.integers(0, 40) | st.sampled_from([0xFFF, 0x800]),  # path id
        st.sampled_from([1, 5, 6, 7, 14, 15]),  # hops
        st.sampled_from([0, 10, 3_000, 1 << 22]),  # ns since the ACK before
        st.lists(
            st.tuples(
                st.integers(-2_000, 20_000),  # ns since then, by the link's clock
                st.integers(0, 200_000),  # bytes
                st.integers(0, 2_000),  # cells
                st.sampled_from([G100, G100, 0, 6, 13]),
            ),
            min_size=15,
            max_size=15,
        ),
    ),
    max_size=80,
)


@given(_ACKS)
@settings(deadline=None)
def test_each_path_is_compared_as_if_there_were_no_other(
    acks: list[tuple[int, int, int, list[tuple[int, int]]]]
) -> None:
    rp = point()
    alone: dict[tuple[int, int], Hpcc] = {}  # a reaction point for each path
    now_ns = 0
    for path_id, hops, gap_ns, links in acks:
        now_ns += gap_ns
        one = alone.setdefault((path_id, hops), point())
        one.utilization, one.queue_bytes = rp.utilization, rp.queue_bytes
        reports = [(now_ns + 5_000 + ahead_ns, *rest) for ahead_ns, *rest in links[:hops]]
        ack(rp, now_ns, 0, *reports, path_id=path_id)
        ack(one, now_ns, 0, *reports)
        assert (rp.utilization, rp.queue_bytes) == (one.utilization, one.queue_bytes)


def test_a_repeated_record_changes_nothing() -> None:
    rp = point()
    ack(rp, 0, 0, (1000, 12_800, 7))
    for _ in range(3):
        ack(rp, 10, 1, (1000, 12_800, 7))
    assert rp.utilization == 1.0


def test_on_the_nic_the_window_limits_what_is_in_flight() -> None:
    a, b = pair("hpcc")
    qa, _ = connect(a, b)
    qa.post(1_000_000)
    assert qa.window_bytes == BDP
    sent = 0
    now_ns = 0
    while (frame := a.next_frame(now_ns)) is not None:
        sent += 1
        now_ns += math.ceil(wire.wire_bytes(frame) * 8 / 100)
    # The simulator's rule: another packet may go while less than a window is in flight.
    assert sent == math.ceil(BDP / 1060)
    assert a.next_wakeup_ns() == 1_000_000  # the time-out; nothing before


def test_random_feedback_leaves_out_decreases_of_small_reference_windows() -> None:
    rp = point(random_feedback=True)
    rp.host = Host()
    replace_method(rp.host.random, "random", lambda: 0.6)
    link = Link(rp)
    rp.traffic.sent_packets = 10
    link.ack(0, 1.0)
    rp.traffic.sent_packets = 20
    link.ack(10, 1.9)  # W_c is the whole BDP: never left out
    half = rp.reference_bytes
    assert half == pytest.approx(BDP / 2, rel=2e-3)
    rp.traffic.sent_packets = 30
    link.ack(20, 1.9)  # half a BDP is less than 0.6 of it
    assert rp.reference_bytes == half
    assert rp.window_bytes == pytest.approx(BDP / 4, rel=4e-3)  # what follows from every ACK still does
    assert rp.update_order == 30  # and the RTT is over
    replace_method(rp.host.random, "random", lambda: 0.4)
    link.ack(30, 1.9)
    assert rp.reference_bytes == pytest.approx(BDP / 4, rel=4e-3)
    rp.traffic.sent_packets = 40
    replace_method(rp.host.random, "random", lambda: 0.99)
    link.ack(30, 0.5)  # increases are never left out
    assert rp.reference_bytes == pytest.approx(half / 2 + INCREASE, rel=4e-3)
