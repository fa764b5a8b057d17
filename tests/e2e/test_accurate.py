"""ACCurate's figures 3 and 4 (section III), through the contention points of p4src/accurate.p4."""

from __future__ import annotations

import pytest

from harness.results import Result
from tests.e2e.runs import run

ALPHA = 0.05
FRP_BPS = 28e6  # 70 bytes each 20 us


def of(protocol: str, results: tuple[Result, ...]) -> Result:
    return next(result for result in results if result.summary["protocol"] == protocol)


def rates_gbps(result: Result, from_us: float, to_us: float) -> dict[str, float]:
    """Mean throughput on the wire of each named flow."""
    window = result.rates.query(f"{from_us * 1000} < time_ns <= {to_us * 1000}")
    names = result.flows.set_index("qp")["group"]
    means: dict[str, float] = (window.groupby("qp")["throughput_bps"].mean() / 1e9).rename(names).to_dict()
    return means


FIG3 = ("accurate-fig3",)
FIG4 = ("accurate-fig4",)


def test_parking_lot_gives_all_three_flows_a_third() -> None:
    """A2: 10/3 Gb/s less alpha each; the bound is on what the limiters hand out, so the FRPs come on top."""
    found = rates_gbps(of("accurate", run(*FIG3)), 200, 1900)
    for name in ("f1", "f2", "f3"):
        assert found[name] == pytest.approx((1 - ALPHA) * 10 / 3 + FRP_BPS / 1e9, rel=0.005), name
        assert found[name] == pytest.approx((1 - ALPHA) * 10 / 3, rel=0.03), name


def test_lossless_reno_gives_the_remote_flows_half() -> None:
    found = rates_gbps(of("reno", run(*FIG3)), 200, 1900)
    assert found["f1"] == pytest.approx(2.5, rel=0.03)
    assert found["f2"] == pytest.approx(2.5, rel=0.03)
    assert found["f3"] == pytest.approx(5.0, rel=0.03)


@pytest.mark.parametrize(
    ("from_us", "to_us", "expected"),
    [
        (60, 170, {"f1": 10, "f2": 10}),
        (250, 370, {"f1": 10, "f2": 5, "f3": 5}),
        (430, 570, {"f1": 20 / 3, "f2": 10 / 3, "f3": 10 / 3, "f4": 10 / 3}),
        (640, 1000, {"f1": 10, "f2": 5, "f3": 5}),
    ],
)
def test_the_victim_gets_its_max_min_share(from_us: float, to_us: float, expected: dict[str, float]) -> None:
    """A3, with ACCurate: each plateau of figure 4(c), less alpha."""
    found = rates_gbps(of("accurate", run(*FIG4)), from_us, to_us)
    assert found.keys() == expected.keys()
    for name, rate in expected.items():
        assert found[name] == pytest.approx((1 - ALPHA) * rate, rel=0.04), name


def test_rate_limits_settle_in_two_periods() -> None:
    """f4 starts at 370 us and ends at 570 us: within 40 us of either, f1's limit is what it will be."""
    result = of("accurate", run(*FIG4))
    f1 = result.rates.query("qp == 1").set_index("time_ns")["rate_limit_bps"] / 1e9
    assert f1.loc[375_000:390_000].min() == pytest.approx(4.75, rel=0.03)
    assert (f1.loc[420_000:570_000] == pytest.approx(6.333, rel=0.01)).all()
    assert (f1.loc[620_000:1_000_000] == pytest.approx(9.5, rel=0.01)).all()


def test_pauses_alone_drag_the_victim_down() -> None:
    """A3, pause-only: f1 loses as much as f4, which shares its queue."""
    found = rates_gbps(of("pause-only", run(*FIG4)), 400, 560)
    assert found["f4"] == pytest.approx(10 / 3, rel=0.03)
    assert found["f1"] == pytest.approx(10 / 3, rel=0.05)
