"""The fluid model of sampling frequency, compared with its equations and the paper's figure 4 (claim C6)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from papers.fairness.studies import fig4 as fluid

TIMES_NS = np.arange(0, 600_001, 100, dtype=float)


def test_both_rates_solve_their_equations() -> None:
    for rate in fluid.RATES:
        acks, rtt = fluid.per_acks(rate, TIMES_NS), fluid.per_rtt(rate, TIMES_NS)
        assert acks[0] == rtt[0] == rate
        # S' = -beta S^2 / (s MTU) and R' = -beta R / r, by central differences.
        middle = slice(1, -1)
        assert np.gradient(acks, TIMES_NS)[middle] == pytest.approx(-0.5 * acks[middle] ** 2 / 30_000, rel=1e-3)
        assert np.gradient(rtt, TIMES_NS)[middle] == pytest.approx(-0.5 * rtt[middle] / 30_000, rel=1e-3)


@given(
    st.floats(0.01, 100), st.floats(1.01, 10), st.floats(1_000, 100_000), st.integers(1, 1_000), st.floats(64, 9_000)
)
def test_per_acks_gains_at_first_if_and_only_if_the_papers_condition_holds(
    low: float, ratio: float, rtt_ns: float, acks: int, mtu_bytes: float
) -> None:
    """Check the paper's condition: 1/r < (C1 + C0) / (s MTU)."""
    high = ratio * low
    ahead = (high + low) / (acks * mtu_bytes) * rtt_ns
    if 0.9 < ahead < 1.1:
        return  # too close for a finite step
    soon = np.array([min(rtt_ns, acks * mtu_bytes / high) * 1e-4])
    rtt = fluid.per_rtt(high, soon, rtt_ns) - fluid.per_rtt(low, soon, rtt_ns)
    sampled = fluid.per_acks(high, soon, acks, mtu_bytes) - fluid.per_acks(low, soon, acks, mtu_bytes)
    assert (rtt - sampled > 0) == (ahead > 1)


def test_figure_4() -> None:
    """Check 100 and 50 Gb/s: the difference falls much faster at first, and the advantage then vanishes."""
    columns = fluid.table(TIMES_NS)
    advantage = columns["advantage"]
    assert advantage[0] == 0
    assert (advantage[1:] > 0)[TIMES_NS[1:] < 500_000].all()
    best = int(np.argmax(advantage))
    assert TIMES_NS[best] < fluid.RTT_NS
    assert advantage[best] > 0.5 * (fluid.RATES[0] - fluid.RATES[1])
    assert (np.diff(advantage[best:]) < 0)[: 400_000 // 100].all()
    assert abs(advantage[-1]) < 0.01
    halves = [fluid.time_to(0.5, TIMES_NS, columns[kind]) for kind in ("per_acks", "per_rtt")]
    assert halves[1] > 10 * halves[0]
    # The closed solution for a decrease per RTT halves the rate in ln 2 / beta RTTs.
    assert halves[1] == pytest.approx(np.log(2) / 0.5 * fluid.RTT_NS, abs=100)


def test_it_prints_what_the_reproduction_quotes(tmp_path: Path) -> None:
    done = CliRunner().invoke(fluid.main, ["--csv", str(tmp_path / "c.csv"), "--plot", str(tmp_path / "p.png")])
    assert done.exit_code == 0, done.output
    assert "difference down to 50% after 2.7 us per 30 ACKs, 41.6 us per RTT" in done.output
    assert (
        (tmp_path / "c.csv")
        .read_text(encoding="utf-8")
        .startswith("time_ns,per_rtt,per_acks,advantage\n0,6.25,6.25,0\n")
    )
    assert (tmp_path / "p.png").stat().st_size > 1000
