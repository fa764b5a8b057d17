"""Links that fail and links that slow down, on real frames as in the virtual world."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.measure.results import Result
from harness.plan.resolve import plan
from harness.plan.run import Run
from harness.plan.scenario import check
from harness.worlds.mininet import package
from tests.mininet.conftest import Both
from tests.mininet.margins import expected, mean_fct_ns
from tests.mininet.networks import needs_mininet

SCENARIO = """
title = "two hosts; a link between them runs at half rate, fails and comes back"
cc = ["dcqcn"]
[topology]
name = "dumbbell"
pairs = 1
[workload]
name = "permutation"
size_bytes = 300_000
[nic]
rto_ns = 100_000
[[events]]
time_ns = 10_000
link = LINK
rate_fraction = 0.5
[[events]]
time_ns = 30_000
link = LINK
up = false
[[events]]
time_ns = 60_000
link = LINK
up = true
"""


@needs_mininet
@pytest.mark.parametrize("link", ['["s0", "s1"]', '["h0-0-2", "s0"]'], ids=["between switches", "of a host"])
def test_what_a_failed_link_loses_is_the_same_in_both_worlds(both: Both, tmp_path: Path, link: str) -> None:
    scenario = tmp_path / "link.toml"
    scenario.write_text(SCENARIO.replace("LINK", link))
    (virtual,), (mininet,) = both(str(scenario))
    for result in (virtual, mininet):
        assert result.summary["flows_delivered"] == result.summary["flows"] == 2
        assert result.summary["conservation"]["balance"] == 0
    lost = virtual.summary["drops"]["link_down"]
    assert lost > 100
    low, high = expected([str(scenario)], mininet, lost_on_failed_links, resolution=1)
    assert low <= mininet.summary["drops"]["link_down"] <= high
    assert sum(mininet.summary["drops"].values()) == mininet.summary["drops"]["link_down"]
    fct_ns = virtual.summary["fct_ns"]["mean"]
    assert fct_ns > 100_000  # the time-out after 30 us of model time, twice as long for the rest
    low_ns, high_ns = expected([str(scenario)], mininet, mean_fct_ns)
    assert low_ns <= mean_fct_ns(mininet) <= high_ns


ROUTES = """
title = "a spine fails, the controller routes round it, links lose packets"
cc = ["dcqcn"]
reroute_after_ns = 40_000
[topology]
name = "leaf-spine"
hosts_per_leaf = 1
links = [{ between = ["leaf*", "spine1"], loss = 0.02 }, { nodes = ["h0-0-2"], loss = 0.01 }]
[workload]
name = "permutation"
size_bytes = 500_000
[nic]
rto_ns = 100_000
reliability = "selective-repeat"
[[events]]
time_ns = 20_000
switch = "spine0"
up = false
[[events]]
time_ns = 30_000
link = ["leaf0", "spine1"]
delay_ns = 3_000
"""


def lost_on_failed_links(result: Result) -> float:
    return float(result.summary["drops"].get("link_down", 0))


@needs_mininet
def test_new_routes_and_random_losses_are_in_both_worlds(both: Both, tmp_path: Path) -> None:
    scenario = tmp_path / "routes.toml"
    scenario.write_text(ROUTES)
    (virtual,), (mininet,) = both(str(scenario))
    for result in (virtual, mininet):
        assert result.summary["flows_delivered"] == result.summary["flows"] == 2
        assert result.summary["conservation"]["balance"] == 0
        assert result.summary["drops"]["link_loss"] > 5
    low, high = expected([str(scenario)], mininet, lost_on_failed_links, resolution=1)
    assert low <= lost_on_failed_links(mininet) <= high


def planned(*events: dict[str, Any], links: Sequence[dict[str, Any]] = ()) -> Run:
    return plan(
        "x",
        check(
            {
                "cc": "dcqcn",
                "topology": {"name": "dumbbell", "pairs": 1, "links": list(links)},
                "workload": {"name": "permutation"},
                "events": list(events),
            }
        ),
        Path(),
    )[0]


@pytest.mark.skipif(package.missing() is not None, reason=package.missing() or "")
class TestPortChanges:
    def test_both_ends_have_the_state_after_each_event(self) -> None:
        from harness.worlds.mininet.network import port_changes

        link = ["s0", "s1"]
        run = planned(
            {"time_ns": 20, "link": link, "up": False},
            {"time_ns": 10, "link": link, "rate_fraction": 0.25},
            {"time_ns": 30, "link": link, "up": True},
        )
        changes = port_changes(run)
        assert set(changes) == {"s0", "s1"}
        for rows in changes.values():
            assert [(row.time_ns, row.up, row.rate_bps) for row in rows] == [
                (10, True, 25 * 10**9),
                (20, False, 25 * 10**9),
                (30, True, 25 * 10**9),
            ]

    def test_a_link_that_loses_begins_to_when_the_run_does(self) -> None:
        from harness.worlds.mininet.network import port_changes

        run = planned({"time_ns": 20, "link": ["s0", "s1"], "delay_ns": 7}, links=[{"nodes": ["s1"], "loss": 0.5}])
        rows = port_changes(run)["s0"]
        assert [(row.time_ns, row.up, row.delay_ns, row.loss) for row in rows] == [
            (0, True, 1000, 0.5),
            (20, True, 7, 0.5),
        ]
        assert len({row.seed for row in (*rows, *port_changes(run)["s1"])}) == 3  # each direction has its own

    def test_a_hosts_link_changes_at_both_ends(self) -> None:
        from harness.worlds.mininet.network import port_changes

        changes = port_changes(planned({"time_ns": 20, "link": ["h0-0-2", "s0"], "up": False}))
        assert set(changes) == {"h0-0-2", "s0"}
        assert all([(row.time_ns, row.up) for row in rows] == [(20, False)] for rows in changes.values())
