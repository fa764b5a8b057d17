"""Small versions of Dart's scenarios: the same files with fewer hosts, messages or milliseconds.

`tests/harness/test_dart.py` has the worked examples and the properties. These tests check the
purpose of each scenario.
"""

from __future__ import annotations

from functools import cache

import pandas as pd
import pytest

from harness.measure.results import Result
from reports.figure_data import figure_table
from reports.figures import figures
from reports.groups import compare
from tests.e2e.runs import run
from tests.margins import are_dart_limits

# 128 hosts: 4 pods of 2 ToRs, 2 spines each.
CLOS = ("topology.pods=4", "topology.tors_per_pod=2", "topology.spines_per_agg=2")
MIX = (*CLOS, "workload.load=0.6", "workload.duration_ns=300_000")
CLASS_4 = 'record.probes=[{kind="queue",reads="enqueued_packets",priority=4,name="class_4"}]'


@cache
def twin(name: str, *settings: str) -> dict[str, Result]:
    """Return results by variant, whose name includes the protocol if there are several.

    Raises AssertionError if a flow is unfinished, a check fails or a frame is malformed.
    """
    results = run(f"dart-{name}", *(part for setting in settings for part in ("--set", setting)))
    for result in results:
        assert result.summary["ended"] == "done"
        assert all(check["holds"] for check in result.summary["checks"])
        assert result.summary["nic"]["malformed"] == 0
    return {result.summary["variant"]: result for result in results}


def limits(result: Result, group: str) -> pd.Series[float]:
    """Return the rate limits in Gb/s of a group's flows, which have one queue pair, by time."""
    (qp,) = set(result.flows[result.flows["group"] == group]["qp"])
    return result.rates[result.rates["qp"] == qp].set_index("time_ns")["rate_limit_bps"] / 1e9


def waiting(result: Result) -> pd.Series[int]:
    """Return the bytes in all queues, by time."""
    return result.queues.groupby("time_ns")["depth_bytes"].sum()


def throughput(result: Result, group: str, from_ns: float, to_ns: float) -> float:
    """Return the mean throughput in Gb/s."""
    (qp,) = set(result.flows[result.flows["group"] == group]["qp"])
    rates = result.rates[(result.rates["qp"] == qp) & result.rates["time_ns"].between(from_ns, to_ns)]
    return float(rates["throughput_bps"].mean()) / 1e9


def counted(result: Result, name: str) -> int:
    return int(result.table(name)["packets"].sum())


def median_us(result: Result, group: str, size_bytes: int) -> float:
    flows = result.flows
    return float(flows[(flows["group"] == group) & (flows["size_bytes"] == size_bytes)]["fct_ns"].median()) / 1e3


def over_ns(result: Result, group: str) -> int:
    return int(result.flows[result.flows["group"] == group]["delivered_ns"].max())


def shown(results: dict[str, Result], figure: str) -> dict[str, dict[str, float]]:
    """Return the contents of a figure: each series, by variant."""
    (comparison,) = compare(list(results.values()))
    table = figure_table(figures(comparison)[figure].plot(comparison))
    return {series: dict(zip(of["x"], of["y"], strict=True)) for series, of in table.groupby("series")}


def expect_order(result: Result) -> None:
    """Check D12: no packet arrives out of order, and every allocated entry is freed."""
    assert result.summary["retransmitted"] == result.flows["naks"].sum() == 0
    assert counted(result, "allocated") == counted(result, "freed")


def test_figure_3_the_long_flow_backs_off_sooner_from_an_incast_that_is_announced() -> None:
    start_ns = 1_000_000
    results = twin("fig3", 'cc=["dart"]', "record.rate_interval_ns=1000")
    within = {
        name: limits(result, "long").loc[: start_ns + result.summary["base_rtt_ns"]].iloc[-1]
        for name, result in results.items()
    }
    assert within == {"announced": 10 / 17, "not announced": 10}


def test_figure_9_a_burst_halves_a_rate_and_gives_it_back_each_within_one_and_a_half_rtts() -> None:
    """Check D1: DASR alone, as on the testbed.

    Between two messages of the burst the long flow is alone for the time of a packet.
    """
    start_ns = 500_000
    flows = [
        'name="long",source=1,destination=0,size_bytes=65536,messages=250',
        f'name="burst",source=2,destination=0,size_bytes=65536,messages=50,start_ns={start_ns}',
    ]
    of_flows = f"workload.flows=[{','.join(f'{{{flow}}}' for flow in flows)}]"
    sampled = ("record.rate_interval_ns=500", "record.queue_interval_ns=500")
    (result,) = twin("fig9", of_flows, *sampled).values()
    rate, rtt_ns, end_ns = limits(result, "long"), result.summary["base_rtt_ns"], over_ns(result, "burst")
    assert waiting(result).loc[start_ns - 2 * rtt_ns : start_ns].max() == 0
    assert (rate.loc[:start_ns] == 56).all()
    assert rate.loc[: start_ns + 1.5 * rtt_ns].iloc[-1] == 28
    for group in ("long", "burst"):
        assert 0.95 * 28 < throughput(result, group, start_ns + 2 * rtt_ns, end_ns) < 1.02 * 28
    assert (rate.loc[end_ns + 1.5 * rtt_ns : end_ns + 50 * rtt_ns] == 56).all()


def test_figure_10_incasts_are_over_sooner_than_with_infinibands_control_and_the_long_flow_has_more() -> None:
    """Check D2: completion times of incasts, and throughput of the long flow."""
    results = twin("fig10", 'cc=["dart","infiniband"]', "workload.count=3", "workload.interval_ns=1_000_000")
    for senders in (2, 4, 8, 16):
        ours, theirs = (results[f"{cc}, {senders} senders"] for cc in ("dart", "infiniband"))
        times = [result.flows[result.flows["group"] == "incast"]["fct_ns"].quantile(0.99) for result in (ours, theirs)]
        assert 2.5 * times[0] < times[1]
        long = [result.flows[result.flows["group"] == "background"]["size_bytes"].sum() for result in (ours, theirs)]
        assert long[0] > 1.5 * long[1]


def test_figure_10_incasts_as_rare_as_the_papers_leave_the_long_flow_its_throughput_with_either_control() -> None:
    """Check D2: after 100 ms InfiniBand's control has compensated the long flow for an incast."""
    results = twin("fig10", 'cc=["dart","infiniband"]', "workload.count=1")
    for senders in (2, 4, 8, 16):
        ours, theirs = (results[f"{cc}, {senders} senders"] for cc in ("dart", "infiniband"))
        long = [result.flows[result.flows["group"] == "background"]["size_bytes"].sum() for result in (ours, theirs)]
        assert 0.9 * long[0] < long[1] < long[0]


def test_figure_11_what_is_counted_for_tables_1_and_2() -> None:
    """Check D5 to D7: marks by port, echoed marks, bytes on links, and lengths of paths."""
    results = twin("fig11", *MIX)
    ours, without = results["Dart"], results["Dart without deflection"]
    expect_order(ours)
    assert counted(ours, "deflected") > 0 == counted(without, "deflected")
    assert ours.table("carried")["tx_bytes"].sum() > without.table("carried")["tx_bytes"].sum()
    short = ours.flows[ours.flows["group"] == "short"]
    assert 0 < 4 * short["marks_heard"].sum() < short["marked"].sum()
    assert (short["mean_links"] >= short["shortest_links"]).all()
    assert short["mean_links"].sum() > short["shortest_links"].sum()
    plain = without.flows
    assert (plain["mean_links"] == plain["shortest_links"]).all()
    for result in results.values():
        of_nics = result.summary["ecn_marked"] - counted(result, "marks")
        assert of_nics == 0 or (of_nics > 0 and result.summary["protocol"] == "dart")
    assert counted(results["DCQCN, RED"], "marks") < counted(results["DCQCN, marks from 22.5 KB"], "marks") / 4
    assert results["DCTCP"].summary["pfc"]["pauses_sent"] == 0
    drawn = shown(results, "marks-by-tier")
    for name, result in results.items():
        ports = result.table("carried").assign(index=lambda table: table["port"])
        marks = result.table("marks").merge(ports, on=["switch", "index"])
        at_hosts = marks[marks["leads_to"].str.startswith("h")]["packets"].sum()
        assert drawn["to hosts"][name] == pytest.approx(100 * at_hosts / counted(result, "marks"))
        assert sum(of[name] for of in drawn.values()) == pytest.approx(100)
    assert drawn["to hosts"]["DCTCP"] > 50
    carried = shown(results, "carried-by-tier")
    for name, result in results.items():
        sent_bytes = result.table("carried")["tx_bytes"].sum()
        assert sum(of[name] for of in carried.values()) == pytest.approx(sent_bytes / 1e6)
    assert carried["to hosts"]["Dart"] == pytest.approx(carried["to hosts"]["Dart without deflection"], rel=0.01)


def test_figure_14_each_part_does_its_part_alone() -> None:
    results = twin("fig14", *MIX, CLASS_4)
    of_dart = {name: result for name, result in results.items() if result.summary["protocol"] == "dart"}
    deflecting = {name for name, result in of_dart.items() if counted(result, "deflected")}
    assert deflecting == {"IOFD only", "Dart"}
    for name in deflecting:
        expect_order(results[name])
    above = {name for name, result in results.items() if result.table("class_4")["enqueued_packets"].sum()}
    assert above >= {"Pri-Q"}
    assert "DCQCN" not in above
    bound, free = (median_us(results[name], "short", 8192) for name in ("DASR only", "DASR without look-ahead"))
    assert bound > free + 1  # with look-ahead, short messages start at their share


def test_sensitivity_the_higher_the_threshold_the_less_is_deflected() -> None:
    """Check D11, with messages of up to 8 KB from sixteen senders, and a threshold of 15 KB elsewhere."""
    results = twin("sensitivity", *MIX, "topology.pods=2")
    thresholds = [counted(results[f"threshold {kb} KB"], "deflected") for kb in (5, 10, 15, 20, 30)]
    assert thresholds == sorted(thresholds, reverse=True)
    assert thresholds[0] > 2 * thresholds[2] > 0
    assert counted(results["no deflection"], "deflected") == 0
    for size_bytes in (2048, 4096, 8192):
        flows = results[f"Dart, {size_bytes} B"].flows
        assert set(flows[flows["group"] == "short"]["size_bytes"]) == {size_bytes}
    for degree in (8, 16, 32):
        flows = results[f"Dart, degree {degree}"].flows
        assert set(flows[flows["group"] == "short"].groupby(["start_ns", "destination"]).size()) == {degree}
    for result in results.values():
        if result.summary["protocol"] == "dart":
            expect_order(result)


def expect_halves(result: Result, start_ns: int, stop_ns: int) -> None:
    """Check D9 for two flows.

    Each has half of the link 1.5 base RTTs after the start of the second flow. The first flow has
    the whole link 1.5 base RTTs after the end of the second one.
    """
    first, second = (limits(result, name) for name in ("first", "second"))
    over_rtts = 1.5 * result.summary["base_rtt_ns"]
    assert (first.loc[:start_ns] == 10).all()
    for flow in (first, second):
        assert are_dart_limits(flow.loc[start_ns + over_rtts : stop_ns], 10, 2)
    assert (first.loc[over_ns(result, "second") + over_rtts : 1_900_000] == 10).all()


def test_figure_15_one_rtt_with_dart_and_tens_with_the_others() -> None:
    """Check the start of the second flow, which finds an empty queue.

    Both flows send packets before they know of each other; these wait in the queue until the second
    flow ends.
    """
    start_ns, stop_ns = 500_000, 1_500_000
    results = twin("fig15")
    rtt_ns = results["dart"].summary["base_rtt_ns"]
    for cc in ("dart", "dart-paper"):
        assert waiting(results[cc]).loc[:start_ns].max() == 0
        expect_halves(results[cc], start_ns, stop_ns)
    first = limits(results["rcp"], "first").loc[start_ns + 4 * rtt_ns : stop_ns]
    settled = first.loc[stop_ns - 100_000 :].mean()
    away = first[(first - settled).abs() > 0.1 * settled]
    assert 40 < (away.index[-1] - start_ns) / rtt_ns < 130
    for cc in ("dcqcn-paper", "timely"):
        assert limits(results[cc], "first").loc[start_ns + 25 * rtt_ns : start_ns + 35 * rtt_ns].max() < 4.5
    assert limits(results["timely"], "first").loc[start_ns + 25 * rtt_ns : stop_ns].max() < 3


def test_figure_15_with_an_empty_queue_when_the_second_flow_leaves_too() -> None:
    """Check marks from one packet on: they drain the queue to at most a packet of each flow."""
    start_ns, stop_ns = 500_000, 1_500_000
    marks = ("programs.dart.kmin_bytes=1_500", "programs.dart.kmax_bytes=1_500")
    (result,) = twin("fig15", 'cc=["dart"]', *marks).values()
    assert waiting(result).loc[:start_ns].max() == 0
    assert waiting(result).loc[stop_ns - 100_000 : stop_ns].max() <= 2 * 1518
    expect_halves(result, start_ns, stop_ns)


def test_expresspass_two_pairs_share_a_link_and_dart_has_halves_after_two_rtts() -> None:
    """Check D10: no data is lost, even if credits are."""
    results = twin("expresspass")
    start_ns, stop_ns = 4_000_000, 9_000_000
    for name, result in results.items():
        assert result.summary["retransmitted"] == 0
        if "dumbbell" in name:
            shares = [throughput(result, group, stop_ns - 1_000_000, stop_ns) for group in ("first", "second")]
            assert min(shares) > 0.4 * sum(shares)
            rtt_ns = result.summary["base_rtt_ns"]
            early = throughput(result, "second", start_ns + 2 * rtt_ns, start_ns + 5 * rtt_ns)
            assert (early > 0.9 * shares[1]) == name.startswith("Dart")
        else:
            assert len(result.flows) == 10


def test_order_is_kept_by_entries_that_know_the_visit_and_not_by_those_as_printed() -> None:
    """Check D12: entries that know the visit keep the order, and entries as printed do not."""
    results = twin("order", "workload.duration_ns=200_000")
    expect_order(results["entries know the visit"])
    assert counted(results["entries know the visit"], "deflected") > 1_000
    printed = results["entries know the message, as printed"]
    assert printed.flows["naks"].sum() > 0
    assert printed.summary["retransmitted"] > 0
