"""ACCurate on real frames: the parking lot of figure 3, with periods dilated like all times."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from scipy.stats import theilslopes

from harness.plan.scenario import built_in
from tests.margins import QUOTIENT, slope_gbps
from tests.mininet.conftest import Both
from tests.mininet.networks import needs_mininet

PERIOD_NS = 20_000
END_NS = 40 * PERIOD_NS
SHARE_BPS = 10e9 / 3
ALPHA = 0.05
FRP_BPS = 70 * 8e9 / PERIOD_NS  # an FRP each period, beside what the limiter lets through

pytestmark = needs_mininet


def rate_bps(samples: pd.DataFrame) -> float:
    """Return Theil and Sen's slope of the bytes sent: the median over all pairs of samples.

    So a sample that a busy machine takes late has no greater weight than others.
    """
    ordered = samples.sort_values("time_ns")
    sent_bits = (ordered["throughput_bps"] * PERIOD_NS / 1e9).cumsum()
    return float(theilslopes(sent_bits.to_numpy(), ordered["time_ns"].to_numpy() / 1e9).slope)


def test_all_three_flows_get_a_third_in_both_worlds(both: Both, tmp_path: Path) -> None:
    """FRPs and their answers are real frames; hosts and switches share a clock."""
    path = tmp_path / "fig3.toml"
    text = built_in()["accurate-fig3"].read_text()
    assert text.count("stop_ns = 2_000_000") == 3
    path.write_text(text.replace("stop_ns = 2_000_000", f"stop_ns = {END_NS}"))
    for (result,) in both(str(path), "--cc", "accurate", "--set", f"record.rate_interval_ns={PERIOD_NS}"):
        assert set(result.flows["group"]) == {"f1", "f2", "f3"}
        assert (result.flows["retransmitted"] == 0).all()
        # The backlog of the first microseconds, 64 KB at most, drains through the headroom; so its flow is faster.
        settled = result.rates.query(f"{END_NS // 2} < time_ns <= {END_NS}")
        assert settled["rate_limit_bps"].to_numpy() == pytest.approx((1 - ALPHA) * SHARE_BPS, rel=2 * QUOTIENT)
        throughput = [rate_bps(samples) for _, samples in settled.groupby("qp")]
        margin_bps = slope_gbps(END_NS / 2, END_NS // 2 // PERIOD_NS) * 1e9
        assert throughput == pytest.approx([(1 - ALPHA) * SHARE_BPS + FRP_BPS] * 3, abs=margin_bps)


def test_the_victim_flow_keeps_what_the_others_leave(both: Both, tmp_path: Path) -> None:
    """Figure 4 in 260 us: f3 starts at 40 us; f4 starts at 100 us and stops at 180 us."""
    text = built_in()["accurate-fig4"].read_text()
    times = {"170_000": "40_000", "370_000": "100_000", "570_000": "180_000", "1_000_000": "260_000"}
    for before, after in times.items():
        assert before in text
        text = text.replace(before, after)
    path = tmp_path / "fig4.toml"
    path.write_text(text)
    for (result,) in both(str(path), "--cc", "accurate", "--set", f"record.rate_interval_ns={PERIOD_NS}"):
        names = result.flows.set_index("qp")["group"].to_dict()
        limits = result.rates.pivot(index="time_ns", columns="qp", values="rate_limit_bps").rename(columns=names)
        for time_ns, shares in [(100_000, (10, 5, 5)), (180_000, (20 / 3, 10 / 3, 10 / 3)), (240_000, (10, 5, 5))]:
            found = limits.loc[time_ns, ["f1", "f2", "f3"]].to_numpy(float) / 1e9
            assert found == pytest.approx([(1 - ALPHA) * share for share in shares], rel=2 * QUOTIENT), time_ns
