"""Claims C1 to C5 and C7 to C12: HPCC and Swift in staggered incasts and on a Clos, with and without VAI and SF.

The incasts are those of the figures; the Clos is a small version. Bounds are around the values in
papers/fairness/README.md.
"""

from __future__ import annotations

import pandas as pd
import pytest

from harness.measure.results import Result
from tests.e2e.runs import run

SETTLING_NS = 200_000  # time to settle after the last start


def variants(figure: str) -> dict[str, Result]:
    """Return results by name, after checking that every run is complete, without losses and pauses."""
    results = run(f"fairness-{figure}")
    for result in results:
        summary = result.summary
        assert summary["ended"] == "done"
        assert summary["bytes_delivered"] == result.flows["size_bytes"].sum()
        assert all(check["holds"] for check in summary["checks"])
        assert sum(summary["drops"].values()) == summary["pfc"]["pauses_sent"] == 0
    return {result.summary["variant"]: result for result in results}


def in_order_of_start(result: Result) -> pd.Series[float]:
    """Return finish times in ns, in the order of starts."""
    return result.flows.sort_values("start_ns", kind="stable")["delivered_ns"].reset_index(drop=True)


def order(result: Result) -> float:
    """Return the rank correlation of start and finish: -1 if the last to start is the first to finish."""
    return float(result.flows["start_ns"].corr(result.flows["delivered_ns"], method="spearman"))


def spread_ns(result: Result) -> float:
    return float(result.flows["delivered_ns"].max() - result.flows["delivered_ns"].min())


def fair_from_ns(result: Result) -> float:
    return float(result.summary["jain"]["over_0_9_from_ns"])


def settled_queue(result: Result) -> pd.Series[float]:
    """Return the bottleneck's depths in bytes while all flows are active.

    They begin SETTLING_NS after the last start, and end with the first flow.
    """
    place, queues = result.summary["bottleneck"], result.queues
    here = queues[(queues["switch"] == place["switch"]) & (queues["port"] == place["port"])]
    start, end = result.flows["start_ns"].max() + SETTLING_NS, result.flows["delivered_ns"].min()
    return here[(here["time_ns"] >= start) & (here["time_ns"] <= end)]["depth_bytes"]


@pytest.mark.parametrize("protocol", ["HPCC", "Swift"])
class TestSixteenToOne:
    def test_late_starters_finish_first(self, protocol: str) -> None:
        """Check C1 and C2 for the default parameters."""
        result = variants("fig5")[protocol]
        finish = in_order_of_start(result)
        assert order(result) < -0.7
        assert finish.tail(4).mean() < 0.7 * finish.head(4).mean()

    @pytest.mark.parametrize("variant", ["1 Gb/s", "random feedback"])
    def test_a_high_increase_or_random_feedback_end_that(self, protocol: str, variant: str) -> None:
        """Check C1 and C2 for changed parameters."""
        results = variants("fig5")
        default, changed = results[protocol], results[f"{protocol} {variant}"]
        finish = in_order_of_start(changed)
        assert order(changed) > order(default) + 0.15
        assert finish.tail(4).mean() > 0.8 * finish.head(4).mean()
        assert spread_ns(changed) < 0.5 * spread_ns(default)

    def test_and_are_fair_much_sooner(self, protocol: str) -> None:
        """Check C3, and C8: VAI and SF are fair as soon as the best variant."""
        results = variants("fig5")
        assert fair_from_ns(results[protocol]) > 700_000
        for variant in ("1 Gb/s", "random feedback"):
            assert fair_from_ns(results[f"{protocol} {variant}"]) < 0.5 * fair_from_ns(results[protocol])
        assert fair_from_ns(results[f"{protocol} VAI SF"]) <= fair_from_ns(results[f"{protocol} 1 Gb/s"])

    def test_a_high_increase_costs_a_queue_that_swings_more(self, protocol: str) -> None:
        """Check C4: the queue's mean and deviation."""
        results = variants("fig5")
        default, high = (settled_queue(results[name]) for name in (protocol, f"{protocol} 1 Gb/s"))
        assert high.std() > 1.3 * default.std()
        assert high.mean() > 1.1 * default.mean()

    def test_with_vai_and_sf_all_finish_close_together(self, protocol: str) -> None:
        """Check C7: the time between the first and the last finish."""
        results = variants("fig5")
        assert spread_ns(results[f"{protocol} VAI SF"]) < 0.4 * spread_ns(results[protocol])


def test_hpcc_with_vai_and_sf_keeps_the_queue_near_empty() -> None:
    """Check C8 for HPCC."""
    queue = settled_queue(variants("fig5")["HPCC VAI SF"])
    assert queue.mean() < 5_000
    assert queue.quantile(0.99) < 20_000


def test_swift_with_vai_and_sf_has_the_smallest_queue() -> None:
    """Check C8 for Swift, which has no flow-based scaling with VAI and SF."""
    queues = {name: settled_queue(r).mean() for name, r in variants("fig5").items() if name.startswith("Swift")}
    assert min(queues, key=lambda name: queues[name]) == "Swift VAI SF"


class TestNinetySixToOne:
    """Checks of C9."""

    def test_hpcc_with_vai_and_sf_is_fair_from_the_start_with_a_short_queue(self) -> None:
        results = variants("fig5c")
        early = {
            name: result.jain[result.jain["time_ns"] <= 1_000_000]["jain"].mean() for name, result in results.items()
        }
        assert early["HPCC VAI SF"] > 2 * early["HPCC"]
        assert fair_from_ns(results["HPCC VAI SF"]) <= fair_from_ns(results["HPCC"])
        assert spread_ns(results["HPCC VAI SF"]) < 0.4 * spread_ns(results["HPCC"])
        long = settled_queue(results["HPCC 1 Gb/s"]).mean()
        assert settled_queue(results["HPCC VAI SF"]).mean() < 0.4 * long
        assert settled_queue(results["HPCC VAI SF or RTT"]).mean() < 0.1 * long

    def test_swift_with_vai_and_sf_has_the_smallest_queue(self) -> None:
        swift = {name: result for name, result in variants("fig5c").items() if name.startswith("Swift")}
        queues = {name: settled_queue(result) for name, result in swift.items()}
        means = sorted(queues, key=lambda name: queues[name].mean())
        assert means[:2] == ["Swift VAI SF or RTT", "Swift VAI SF"]

    def test_swift_settles_if_decreases_need_not_wait_for_thirty_acks(self) -> None:
        """Check decreases once in thirty ACKs, which are some 60 RTTs here, against at least once in an RTT."""
        results = variants("fig5c")
        late = {name: results[name].jain.query("3e6 < time_ns < 7e6")["jain"] for name in results}
        assert late["Swift VAI SF or RTT"].min() > 0.98
        assert late["Swift VAI SF"].mean() < 0.9
        queue, swinging = (settled_queue(results[name]) for name in ("Swift VAI SF or RTT", "Swift VAI SF"))
        assert queue.std() < 0.3 * swinging.std()


# 32 hosts instead of 320, at the same load.
CLOS = ("topology.pods=2", "topology.tors_per_pod=2", "topology.aggs_per_pod=2", "topology.spines_per_agg=2")
TWIN = (*CLOS, "topology.hosts_per_tor=8", "workload.duration_ns=5000000", "variants=[]")
SETTINGS = [argument for setting in TWIN for argument in ("--set", setting)]


@pytest.mark.parametrize("protocol", ["hpcc", "swift"])
def test_on_a_clos_long_flows_have_a_shorter_tail_with_vai_and_sf(protocol: str) -> None:
    """Check C10 and C12 with Hadoop's flow sizes: the tail is shorter, and medians stay."""
    both = ("--cc", protocol, "--cc", f"{protocol}+vai+sf")
    slowdown, long = {}, {}
    for result in run("fairness-fig10", *both, *SETTINGS):
        assert result.summary["ended"] == "done"
        name, flows = result.summary["protocol"], result.flows
        slowdown[name] = flows["slowdown"]
        long[name] = flows[flows["size_bytes"] > 1_000_000]["slowdown"]
    default, changed = protocol, f"{protocol}+vai+sf"
    assert long[changed].quantile(0.999) < 0.7 * long[default].quantile(0.999)
    assert long[changed].median() < 1.15 * long[default].median()
    assert slowdown[changed].median() < 1.02 * slowdown[default].median()
