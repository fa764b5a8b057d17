"""Small versions of the thesis' figures on 3CPO (M2 to M6): the same scenarios with 16 hosts."""

from __future__ import annotations

from typing import Any

from tests.e2e.runs import run

SMALL = ("topology.leaves=4", "topology.spines=2", "topology.hosts_per_leaf=4")
SUITS_16, SUITS_8 = "protocols.collective-window.window=12", "protocols.collective-window.window=24"  # table 6.1
NONE, WINDOW, THREE_CPO = "collective-none", "collective-window", "3cpo"
Figures = dict[str, Any]


def twin(scenario: str, *settings: str, **variants: str) -> dict[tuple[str, str], Figures]:
    """Return the workload's figures of a small network, by variant and protocol, after checking for losses.

    `variants` has the keys of each variant.
    """
    made = [f"{{name={name!r}, set={{{keys}}}}}" for name, keys in variants.items()]
    wanted = [*SMALL, *settings, f"variants=[{', '.join(made)}]"]
    by_variant: dict[tuple[str, str], Figures] = {}
    for result in run(scenario, *(part for setting in wanted for part in ("--set", setting))):
        figures: Figures = result.summary["workload"]
        assert (figures["unanswered"], figures["unfinished_hosts"], figures["repeats"]) == (0, 0, 0)
        by_variant[result.summary["variant"].split(", ")[-1], result.summary["protocol"]] = figures
    return by_variant


def mean(figures: Figures) -> float:
    latency: float = figures["latency_cycles"]["mean"]
    return latency


def bandwidth(figures: Figures) -> float:
    flits: float = figures["effective_bandwidth"]
    return flits


def test_figure_6_10_what_waits_without_congestion_control_and_what_3cpo_leaves_of_it() -> None:
    protocols = 'cc=["collective-none", "collective-window", "3cpo"]'
    orders = {order: f"workload.response_order='{order}'" for order in ("fifo", "random")}
    told = twin("3cpo-fig10", SUITS_16, protocols, **orders)
    fifo, random = ({cc: told[order, cc] for cc in (NONE, WINDOW, THREE_CPO)} for order in orders)
    assert mean(fifo[NONE]) > 4 * mean(fifo[WINDOW])
    assert mean(fifo[THREE_CPO]) < 1.1 * mean(fifo[WINDOW])
    none, window, three_cpo = (fifo[protocol]["latency_cycles"]["max"] for protocol in (NONE, WINDOW, THREE_CPO))
    assert none > 5 * window
    assert window < three_cpo < 2 * window
    assert bandwidth(fifo[THREE_CPO]) > 0.98 * bandwidth(fifo[WINDOW])
    assert bandwidth(random[THREE_CPO]) > 0.95 * bandwidth(random[WINDOW])
    assert bandwidth(random[NONE]) < 0.7 * bandwidth(fifo[NONE])


def test_figure_6_12_what_leaves_before_others_are_heard_of_weighs_less_with_each_transaction() -> None:
    """Check start-up: all hosts start in one cycle, before they can know of each other.

    The difference in bandwidth is small from the beginning, and that in latency shrinks with more
    transactions.
    """
    few, many = (f"workload.applications=[{{operations={transactions}}}]" for transactions in (64, 192))
    told = twin("3cpo-fig12", SUITS_16, "workload.spread_cycles=0", few=few, many=many)
    for transactions in ("few", "many"):
        assert bandwidth(told[transactions, THREE_CPO]) > 0.97 * bandwidth(told[transactions, WINDOW])
    for protocol in (WINDOW, THREE_CPO):
        less, more = told["few", protocol], told["many", protocol]
        assert bandwidth(more) > 1.08 * bandwidth(less)
        assert more["latency_cycles"]["max"] == less["latency_cycles"]["max"]
    assert mean(told["few", THREE_CPO]) > 2 * mean(told["few", WINDOW])
    assert mean(told["many", THREE_CPO]) < 1.35 * mean(told["many", WINDOW])


def test_figure_6_13_reads_do_not_wait_with_3cpo_and_writes_alone_do() -> None:
    reads, writes = (f"workload.applications=[{{kind='{kind}', operations=128}}]" for kind in ("reduce", "all_gather"))
    late = f"{reads}, cc=['collective-none'], workload.response_order='random'"
    told = twin("3cpo-fig13", SUITS_16, reads=reads, writes=writes, random=late)
    for kind in ("reads", "writes"):
        assert mean(told[kind, NONE]) > 4 * mean(told[kind, WINDOW])
        assert bandwidth(told[kind, WINDOW]) < bandwidth(told[kind, THREE_CPO]) < bandwidth(told[kind, NONE])
    assert mean(told["reads", THREE_CPO]) < 1.1 * mean(told["reads", WINDOW])
    assert mean(told["writes", THREE_CPO]) > 1.5 * mean(told["writes", WINDOW])
    assert mean(told["random", NONE]) > 1.9 * mean(told["reads", NONE])


def test_figure_6_15_3cpo_uses_what_a_window_leaves_idle() -> None:
    """Check two sets of operations, half as large and half as far apart as in the figure."""
    sets = "kind='random', sets=2, set_operations=[32, 128], idle_cycles=[2500, 5000]"
    multicast, mixed = (f"workload.applications=[{{{sets}, unicast_every={every}}}]" for every in (0, 2))
    told = twin("3cpo-fig15", SUITS_16, "workload.spread_cycles=2500", multicast=multicast, mixed=mixed)
    latency = {which: figures["latency_cycles"]["mean_of_hosts"] for which, figures in told.items()}
    for traffic in ("multicast", "mixed"):
        assert bandwidth(told[traffic, WINDOW]) < bandwidth(told[traffic, THREE_CPO]) < bandwidth(told[traffic, NONE])
        assert latency[traffic, WINDOW] < latency[traffic, THREE_CPO] < latency[traffic, NONE]
    assert bandwidth(told["multicast", THREE_CPO]) > 1.05 * bandwidth(told["multicast", WINDOW])
    assert bandwidth(told["mixed", THREE_CPO]) > 1.6 * bandwidth(told["mixed", WINDOW])
    assert bandwidth(told["mixed", THREE_CPO]) > 0.9 * bandwidth(told["mixed", NONE])
    assert latency["multicast", THREE_CPO] < 0.75 * latency["multicast", NONE]
    assert latency["mixed", THREE_CPO] > 1.15 * latency["multicast", THREE_CPO]


def test_figure_6_17_an_all_reduce_beside_writes() -> None:
    applications = "[{operations=256, hosts=8}, {kind='all_gather', operations=256, hosts=8}]"
    told = twin("3cpo-fig17", SUITS_8, together=f"workload.applications={applications}")
    reduces, writes = (
        {protocol: told["together", protocol]["applications"][place] for protocol in (NONE, WINDOW, THREE_CPO)}
        for place in (0, 1)
    )
    assert mean(reduces[NONE]) > 3.5 * mean(reduces[WINDOW])
    assert mean(reduces[THREE_CPO]) < 1.6 * mean(reduces[WINDOW])
    assert bandwidth(reduces[THREE_CPO]) > 0.97 * bandwidth(reduces[WINDOW])
    assert mean(writes[WINDOW]) < mean(writes[THREE_CPO]) < 0.6 * mean(writes[NONE])
    assert bandwidth(writes[THREE_CPO]) > 1.05 * bandwidth(writes[WINDOW])
