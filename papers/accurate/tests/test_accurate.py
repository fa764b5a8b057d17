"""ACCurate's figures 3 and 4 (section III), through the contention points of p4src/accurate.p4."""

from __future__ import annotations

import pytest

from harness.measure.results import Result
from tests.e2e.runs import run
from tests.margins import QUOTIENT, packet_gbps

ALPHA = 0.05
FRP_GBPS = 0.028  # 70 bytes each 20 us


def of(protocol: str, results: tuple[Result, ...]) -> Result:
    return next(result for result in results if result.summary["protocol"] == protocol)


def rates_gbps(result: Result, from_us: float, to_us: float) -> dict[str, float]:
    """Return the mean throughput on the wire of each named flow."""
    window = result.rates.query(f"{from_us * 1000} < time_ns <= {to_us * 1000}")
    names = result.flows.set_index("qp")["group"]
    means: dict[str, float] = (window.groupby("qp")["throughput_bps"].mean() / 1e9).rename(names).to_dict()
    return means


FIG3 = ("accurate-fig3",)
FIG4 = ("accurate-fig4",)


def test_parking_lot_gives_all_three_flows_a_third() -> None:
    """Check A2: each flow gets 10/3 Gb/s less alpha.

    The bound applies to the rates of the limiters, so the FRPs come in addition.
    """
    found = rates_gbps(of("accurate", run(*FIG3)), 200, 1900)
    third = pytest.approx((1 - ALPHA) * 10 / 3 + FRP_GBPS, abs=packet_gbps(1.7e6))
    assert found == dict.fromkeys(("f1", "f2", "f3"), third)


def test_where_links_charge_framing_the_shares_are_of_what_links_carry() -> None:
    """Check that each flow gets a third of the link, framing included, and that no queue remains."""
    framed = of("accurate", run(*FIG3, "--cc", "accurate", "--set", "framing=true"))
    found = rates_gbps(framed, 200, 1900)
    third = pytest.approx((1 - ALPHA) * 10 / 3 + FRP_GBPS * 94 / 70, abs=packet_gbps(1.7e6, 1058 + 24))
    assert found == dict.fromkeys(("f1", "f2", "f3"), third)
    waiting = framed.queues.query("400e3 < time_ns < 1900e3").groupby(["switch", "port"])["depth_bytes"]
    assert waiting.max().max() < 3_000
    late = framed.table("links").query("200e3 < time_ns <= 1900e3")
    assert late["paused_ns"].sum() == 0


def test_lossless_reno_gives_the_remote_flows_half() -> None:
    found = rates_gbps(of("reno", run(*FIG3)), 200, 1900)
    assert found == pytest.approx({"f1": 2.5, "f2": 2.5, "f3": 5.0}, abs=packet_gbps(1.7e6))


@pytest.mark.parametrize(
    ("from_us", "to_us", "expected"),
    [
        (10, 170, {"f1": 10, "f2": 10}),
        (210, 370, {"f1": 10, "f2": 5, "f3": 5}),
        (410, 570, {"f1": 20 / 3, "f2": 10 / 3, "f3": 10 / 3, "f4": 10 / 3}),
        (610, 1000, {"f1": 10, "f2": 5, "f3": 5}),
    ],
)
def test_each_plateau_is_reached_in_two_periods_and_held(
    from_us: float, to_us: float, expected: dict[str, float]
) -> None:
    """Check A3, figure 4(c): 40 us after each change every limit is the max-min share less alpha.

    A share is a quotient, computed from rates that are quotients themselves.
    """
    result = of("accurate", run(*FIG4))
    limits = result.rates.query(f"{from_us * 1000} <= time_ns <= {to_us * 1000 - 5000}")
    for qp, name in result.flows.set_index("qp")["group"].items():
        found = limits[limits["qp"] == qp]["rate_limit_bps"] / 1e9
        if name in expected:
            assert found.min() == pytest.approx((1 - ALPHA) * expected[name], rel=2 * QUOTIENT), name
            assert found.max() == pytest.approx((1 - ALPHA) * expected[name], rel=2 * QUOTIENT), name
        else:
            assert found.empty, name


def test_while_f4_is_new_f1_shares_its_link_by_halves() -> None:
    """Check the contention point in front of H1's own link, before it knows that f4's bottleneck is elsewhere."""
    result = of("accurate", run(*FIG4))
    qp = result.flows.set_index("group")["qp"]["f1"]
    f1 = result.rates.query(f"qp == {qp} and 390000 <= time_ns <= 405000")["rate_limit_bps"]
    assert f1.tolist() == [4.75e9] * 4


def test_the_flows_get_what_their_limits_say() -> None:
    found = rates_gbps(of("accurate", run(*FIG4)), 640, 1000)
    limits = {"f1": 9.5, "f2": 4.75, "f3": 4.75}
    with_frps = {name: rate + FRP_GBPS for name, rate in limits.items()}
    assert found == pytest.approx(with_frps, abs=packet_gbps(360e3))


def test_pauses_alone_drag_the_victim_down() -> None:
    """Check A3 for pause-only: f1 gets no more than f4, which shares its queue."""
    found = rates_gbps(of("pause-only", run(*FIG4)), 400, 560)
    assert [found["f1"], found["f4"]] == pytest.approx([10 / 3] * 2, abs=packet_gbps(160e3))


FIG5 = ("accurate-fig5", "--set", "workload.duration_ns=20e6")


def small_flows_us(result: Result, quantile: float) -> float:
    flows = result.flows
    return float(flows[flows["size_bytes"] == 20_000]["fct_ns"].quantile(quantile)) / 1e3


def test_small_flows_of_the_direct_network_wait_less() -> None:
    """Check A4 and A5 in a small run: figure 5's network and flows at load 0.15 for 20 ms.

    papers/accurate/README.md has the whole runs.
    """
    results = run(*FIG5)
    for result in results:
        assert result.summary["ended"] == "done"
        assert sum(result.summary["drops"].values()) == 0
        assert result.summary["pfc"]["events"] == []  # no deadlock, no storm
    accurate = of("accurate", results)
    for other in ("pause-only", "reno"):
        assert small_flows_us(of(other, results), 0.99) > 2 * small_flows_us(accurate, 0.99)
        assert small_flows_us(of(other, results), 0.5) > 1.1 * small_flows_us(accurate, 0.5)
        assert of(other, results).summary["pfc"]["pauses_sent"] > 3 * accurate.summary["pfc"]["pauses_sent"]


def test_slow_flows_have_an_ack_for_each_1500_bytes() -> None:
    """Check that slow flows have an ACK for each 1,500 bytes; earlier ACKs would load links near saturation."""
    summary = of("pause-only", run(*FIG5)).summary
    acks = summary["conservation"]["entered"] - summary["packets_sent"]
    assert summary["packets_sent"] / 6 <= acks <= summary["packets_sent"] / 6 + summary["flows"]


def test_reno_without_pfc_loses_packets_and_time() -> None:
    lossy = ("--cc", "reno", "--set", "switch.pfc.enabled=false", "--set", "nic.reliability=selective-repeat")
    (result,) = run(*FIG5, *lossy)
    assert result.summary["drops"]["buffer"] > 100
    assert small_flows_us(result, 0.99) > 10 * small_flows_us(of("accurate", run(*FIG5)), 0.99)
