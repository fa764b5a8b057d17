"""INT records decoded for outside protocols: the written values, and what links did between two records."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from host_agents.headers import LINK_RATES_BPS
from p4cc.cc import Feedback, LinkHistory, LinkReport, Path, link_reports

PATH = Path(line_rate_bps=100e9, base_rtt_ns=4_000, mtu_bytes=1000, wire_bytes=1058, cell_bytes=80)
FRONT = bytes(56)


def ack(now_ns: int, *links: tuple[float, int, int, int], path_id: int = 1) -> Feedback:
    """Return an ACK with the state of links as a switch writes it: rate, time in ns, bytes transmitted, bytes queued.

    As a switch writes it.
    """
    feedback = Feedback()
    feedback.now_ns, feedback.path_id = now_ns, path_id
    feedback.int_hops, feedback.int_offset = len(links), len(FRONT)
    words = [
        LINK_RATES_BPS.index(rate_bps) << 60 | time_ns % 2**24 << 36 | tx // 128 % 2**20 << 16 | min(queue // 80, 65535)
        for rate_bps, time_ns, tx, queue in links
    ]
    feedback.frame = FRONT + b"".join(word.to_bytes(8, "big") for word in words)
    return feedback


def test_reports_are_what_switches_wrote() -> None:
    found = link_reports(ack(0, (100e9, 5, 1280, 800), (400e9, 2**24 + 7, 2**27 + 256, 6_000_000)), PATH)
    assert found == [LinkReport(100e9, 5, 1280, 800), LinkReport(400e9, 7, 256, 65535 * 80)]
    assert link_reports(ack(0, (0.0, 1, 0, 0)), PATH) == [LinkReport(0.0, 1, 0, 0)]
    assert link_reports(Feedback(), PATH) == []


@given(
    st.sampled_from(LINK_RATES_BPS[1:]),
    st.integers(0, 2**40),
    st.integers(0, 2**50),
    st.integers(1, 2**23 - 1),
    st.floats(0, 1),
    st.integers(0, 65535),
)
def test_a_sample_is_exact_whatever_wraps(
    rate_bps: float, time_ns: int, tx_units: int, gap_ns: int, load: float, cells: int
) -> None:
    """Check intervals in which no counter wraps by more than half."""
    history = LinkHistory(PATH)
    half_ns = int(min(2**24, 2**27 * 8e9 / rate_bps) / 2)
    gap_ns = min(gap_ns, half_ns - 1)
    units = int(load * rate_bps * gap_ns / 8e9 / 128)
    assert history.samples(ack(time_ns, (rate_bps, time_ns, tx_units * 128, 0))) == []
    later = time_ns + gap_ns
    (sample,) = history.samples(ack(later, (rate_bps, later, (tx_units + units) * 128, cells * 80)))
    assert sample.elapsed_ns == gap_ns
    assert sample.throughput_bps == pytest.approx(units * 128 * 8e9 / gap_ns)
    assert sample.queue_bytes == cells * 80


def test_what_cannot_be_compared_is_no_sample() -> None:
    history = LinkHistory(PATH)
    link = (100e9, 1_000, 0, 0)
    assert history.samples(ack(2_000, link)) == []
    assert history.samples(ack(2_500, (100e9, 1_200, 1280, 0), path_id=2)) == [], "another path"
    assert history.samples(ack(2_500, (100e9, 900, 0, 0))) == [], "overtaken"
    (same,) = history.samples(ack(2_600, link))
    assert math.isnan(same.throughput_bps)
    half_ns = int(2**27 * 8 / 100 / 2)  # in which 100 Gb/s send half of what the counter takes
    assert history.samples(ack(2_600 + half_ns, (100e9, 1_000 + half_ns, 0, 0))) == [], "the counter may have wrapped"
    assert history.samples(Feedback()) == []
