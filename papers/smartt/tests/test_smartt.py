"""Small versions of the scenarios of SMaRTT-REPS: the same networks with fewer hosts or bytes.

An ideal time is that of the busiest link at full rate, plus one way through the empty network.
"""

from __future__ import annotations

import pandas as pd
import pytest

from harness.measure.results import Result
from harness.plan.resolve import plan
from harness.plan.scenario import load
from harness.worlds.virtual import VirtualWorld
from tests.e2e.runs import run

PACKET_BYTES = 4154
PACKET_NS = PACKET_BYTES * 8 / 800  # time of a packet at 800 Gb/s
ONE_WAY_NS = 5_850  # one way through five switches
QUEUE_BYTES = 1_145_800

# 32 hosts: two pods of a rack of 16.
TREE = ("--set", "topology.pods=2", "--set", "topology.tors_per_pod=1", "--set", "topology.spines_per_agg=1")
K4 = ("--set", "topology.k=4")
ALGORITHM_4 = ("--lb", "reps", "--set", "load_balancers.reps.use_once=false")


def twin(figure: str, *arguments: str) -> dict[str, Result]:
    """Return results by variant, after checking that all bytes are delivered and all checks hold."""
    results = run(f"smartt-{figure}", *arguments)
    for result in results:
        summary = result.summary
        assert summary["ended"] == "done"
        assert summary["bytes_delivered"] == result.flows["size_bytes"].sum()
        assert all(check["holds"] for check in summary["checks"])
    return {result.summary["variant"]: result for result in results}


def drops(result: Result) -> dict[str, int]:
    return {reason: count for reason, count in result.summary["drops"].items() if count}


def deepest_bytes(result: Result) -> int:
    """Return the largest sampled depth of all queues, of data and of headers, in bytes."""
    return int(result.queues["depth_bytes"].max())


def over_ideal(result: Result, packets: float) -> float:
    """Return the completion time relative to the time in which a link carries this number of packets."""
    return float(result.summary["last_delivery_ns"] / (packets * PACKET_NS + ONE_WAY_NS))


@pytest.mark.parametrize(("figure", "oversubscription"), [("fig11", 2), ("fig6", 8), ("fig1", 8)])
def test_permutations(figure: str, oversubscription: int) -> None:
    """Check figures 1, 6 and 11: nearly ideal times, queues within their limits, and no drops."""
    arguments = ("--cc", "smartt", "--lb", "reps", "--set", "workload.size_bytes=2097152", "--set", "variants=[]")
    (result,) = twin(figure, *TREE, *arguments).values()
    assert drops(result) == {}
    assert 1 < over_ideal(result, 512 * oversubscription) < 1.3
    assert deepest_bytes(result) <= 2 * QUEUE_BYTES
    assert result.summary["timeouts"] == 0


def test_one_longer_flow_reclaims_the_bandwidth() -> None:
    """Check figure 11d: FastIncrease of the last flow, after all others have finished."""
    size = ("--set", "workload.first_size_bytes=4194304", "--set", "topology.aggs_per_pod=4", "--set", "variants=[]")
    (fast,) = twin("fig11", *TREE, "--cc", "smartt", *size).values()
    (slow,) = twin("fig11", *TREE, "--cc", "smartt", *size, "--set", "protocols.smartt.fast_increase=false").values()
    assert fast.summary["last_delivery_ns"] < 0.97 * slow.summary["last_delivery_ns"]
    assert over_ideal(fast, 512 * 4 + 512) < 1.2  # the second half at full rate


def test_signals() -> None:
    """Check figure 3: both signals together finish before each alone, and rare reactions cost under 5%."""
    results = twin("fig3", *K4, "--set", "workload.size_bytes=4194304")
    last = {name: result.summary["last_delivery_ns"] for name, result in results.items()}
    assert last["SMaRTT"] < min(last["ECN alone"], last["delay alone"])
    assert last["every 50 packets"] < 1.05 * last["SMaRTT"]
    for result in results.values():
        assert drops(result) == {}


def test_waiting_to_decrease() -> None:
    """Check figure 5b, on a network that is not over-subscribed."""
    results = twin("fig5b", *K4, "--set", "workload.size_bytes=2097152")
    for result in results.values():
        assert over_ideal(result, 512) < 1.4
        assert drops(result) == {}
    assert results["WTD"].summary["last_delivery_ns"] <= 1.05 * results["without WTD"].summary["last_delivery_ns"]


def test_a_link_at_half_rate() -> None:
    """Check figure 7a-b: with REPS the mean, the tail and the job are faster."""
    vector = ("--set", "variants=[]", "--set", "workload.size_bytes=16000000")
    results = twin("fig7", *vector)
    reps, spray = results["smartt, reps"], results["smartt, spray"]
    goodput = {name: r.flows["size_bytes"].sum() * 8 / r.flows["fct_ns"].sum() for name, r in results.items()}
    assert goodput["smartt, reps"] > 65
    assert goodput["smartt, spray"] < 0.9 * goodput["smartt, reps"]
    assert reps.flows["fct_ns"].quantile(0.99) < 0.9 * spray.flows["fct_ns"].quantile(0.99)
    assert reps.summary["workload"]["job_completion_ns"] < 0.9 * spray.summary["workload"]["job_completion_ns"]
    (kept,) = twin("fig7", *vector, *ALGORITHM_4).values()
    assert kept.flows["fct_ns"].std() > 2 * reps.flows["fct_ns"].std()


def test_pulls_fill_a_link_that_charges_framing_and_no_more() -> None:
    """Check a small figure 10 with EQDS: the receiver's queue is short, and no packet is trimmed."""
    arguments = ("--cc", "eqds", "--set", "framing=true", "--set", "workload.senders=4")
    speculation = ("--set", "protocols.eqds.speculative_bdp=0.1")
    (result,) = twin("fig10", *K4, *arguments, *speculation).values()
    assert result.summary["retransmitted"] == 0
    assert deepest_bytes(result) < QUEUE_BYTES / 2
    assert over_ideal(result, 256 * 4) < 1.1


def test_a_link_that_fails() -> None:
    """Check figure 7c: packets lost on the link have a reason, and REPS loses a tenth of spraying's."""
    size = ("--set", "topology.hosts_per_leaf=8", "--set", "workload.size_bytes=8000000")
    results = twin("fig7c", *size, "--set", "topology.spines=4")
    lost = {name: sum(drops(result).values()) for name, result in results.items()}
    assert all(drops(result).keys() <= {"link_down", "queue_full", "trimmed_queue_full"} for result in results.values())
    assert 0 < 10 * lost["smartt, reps"] < lost["smartt, spray"]


def test_without_trimming() -> None:
    """Check figures 8 and 9: full queues drop packets, which costs at most two base RTTs."""
    results = twin("fig8", *K4, "--set", "workload.senders=12")
    trimming, without = results["trimming"], results["without trimming"]
    assert drops(trimming) == {}
    assert set(drops(without)) == {"queue_full"}
    late = without.summary["last_delivery_ns"] - trimming.summary["last_delivery_ns"]
    assert late < 2 * trimming.summary["base_rtt_ns"]


@pytest.mark.parametrize("senders", [4, 15])
def test_incast(senders: int) -> None:
    """Check figure 10."""
    (result,) = twin("fig10", *K4, "--cc", "smartt", "--set", f"workload.senders={senders}").values()
    assert drops(result) == {}
    assert over_ideal(result, 256 * senders) < 1.25


def test_all_to_all() -> None:
    """Check figure 12, in which the ToRs' uplinks carry the data for the other rack."""
    (result,) = twin(
        "fig12", *TREE, "--cc", "smartt", "--set", "variants=[]", "--set", "workload.size_bytes=131072"
    ).values()
    assert drops(result) == {}
    assert over_ideal(result, 16 * 16 * 32 / 4) < 1.4


def test_single_messages_of_an_all_to_all_are_late_by_their_first_window() -> None:
    """Check why single messages of an all-to-all are late: they are sent at once in a too large window.

    The first window is five times what a path can take. A message that loses most of its first
    packets stays at a window of a few packets, because new messages keep the uplinks' queues full.
    With a suitable limit of the window no message is late.
    """
    racks = ("--set", "topology.hosts_per_tor=8", "--set", "topology.aggs_per_pod=2", "--set", "topology.pods=3")
    sampled = ("--set", "record.rate_interval_ns=2000", "--set", "variants=[]", "--set", "workload.window=8")
    arguments = ("--cc", "smartt", *TREE, *racks, *sampled)
    (printed,) = twin("fig12", *arguments).values()
    (bounded,) = twin("fig12", *arguments, "--set", "protocols.smartt.max_window_bdp=0.05").values()

    fcts = [across_racks(result)["fct_ns"] for result in (printed, bounded)]
    longest_of_median = [fct.max() / fct.median() for fct in fcts]
    assert longest_of_median[0] > 2
    assert longest_of_median[1] < 1.25
    assert printed.summary["retransmitted"] > 0.2 * printed.summary["packets_sent"]
    assert bounded.summary["retransmitted"] == 0
    assert bounded.summary["last_delivery_ns"] < printed.summary["last_delivery_ns"]

    flows = across_racks(printed)
    assert (flows["first_sent_ns"] - flows["start_ns"]).max() < 1_000  # no message waits for another one of its host
    assert printed.summary["timeouts"] == 0
    late = flows["fct_ns"] > flows["fct_ns"].quantile(0.99)
    assert windows_packets(printed, flows[late]).median() < 5
    assert windows_packets(printed, flows[flows["fct_ns"] < flows["fct_ns"].median()]).median() > 20


def across_racks(result: Result) -> pd.DataFrame:
    racks = (result.flows[end].str.rpartition("-")[0] for end in ("source", "destination"))
    return result.flows[next(racks) != next(racks)]


def windows_packets(result: Result, flows: pd.DataFrame) -> pd.Series[float]:
    """Return all samples of these flows' windows, in packets, from an RTT after their start."""
    samples = result.rates.merge(flows[["qp", "start_ns", "delivered_ns"]], on="qp")
    begun = samples["time_ns"] > samples["start_ns"] + result.summary["base_rtt_ns"]
    return samples[begun & (samples["time_ns"] < samples["delivered_ns"])]["window_bytes"] / PACKET_BYTES


def test_incast_of_100_without_a_drop_of_any_kind() -> None:
    """Check that trimming loses no header, with queues of one BDP and trimmed packets of 64 bytes.

    Every byte arrives once.
    """
    settings = ["cc='smartt'", "workload.senders=100", "workload.size_bytes=1000000", "record.rate_interval_ns=0"]
    scenario, folder = load("smartt-fig10", settings)
    (planned,) = plan("incast", scenario, folder)
    world = VirtualWorld(planned)
    recording = world.run()
    assert recording.ended == "done"
    assert {k: v for k, v in recording.conservation.items() if k.startswith("drop_") and v} == {}
    assert recording.conservation["balance"] == 0
    received = [qp.stats for nic in world.network.nics for qp in nic.queue_pairs.values() if qp.stats.packets_received]
    assert [stats.bytes_delivered for stats in received] == [1_000_000] * 100
    assert sum(stats.duplicates for stats in received) == 0
    assert sum(stats.trimmed_received for stats in received) > 10_000
    assert sum(record.columns["timeouts"] for record in recording.flows) == 0
