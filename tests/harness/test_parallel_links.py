"""HPCC over parallel links: the telemetry of one link does not control packets on another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.plan.resolve import plan
from harness.plan.run import Run
from harness.plan.scenario import check
from harness.worlds.virtual import VirtualWorld
from p4switch.errors import UserError


def planned(spines: int, links_per_spine: int, **more: Any) -> Run:
    flows = [
        {"name": "pair", "source": host, "destination": host + 4, "size_bytes": 1_000_000}
        for host in range(4)
    ]
    shape = {"spines": spines, "links_per_spine": links_per_spine, "hosts_per_leaf": 4}
    topology = {"name": "leaf-spine", "fabric_rate_bps": 100_000_000_000, **shape}
    scenario = {
        "cc": "hpcc",
        "topology": topology,
        "workload": {"name": "streams", "flows": flows},
        **more,
    }
    (run,) = plan("parallel", check(scenario), Path())
    return run


def last_delivery_ns(spines: int, links_per_spine: int, **more: Any) -> int:
    run = planned(spines, links_per_spine, limit_ns=10_000_000, **more)
    recording = VirtualWorld(run).run()
    assert recording.ended == "done"
    return max(record.delivered_ns for record in recording.flows)


@pytest.mark.parametrize(
    "more", [{"lb": "spray"}, {"lb": "reps"}, {"switch": {"load_balancing": "drill"}}]
)
def test_four_links_to_one_spine_are_as_good_as_one_to_each_of_four(more: dict[str, Any]) -> None:
    """Check that both are nearly alike; a single spine spreads packets at random a second time."""
    assert last_delivery_ns(1, 4, **more) < 1.25 * last_delivery_ns(4, 1, **more)


def test_more_paths_than_ids_are_refused_where_packets_take_several() -> None:
    lossy = {"pfc": {"enabled": False}}  # with so many ports a buffer has no room for headroom
    assert planned(20, 20, switch=lossy).protocol.name == "hpcc"
    assert planned(20, 20, switch=lossy, lb="spray", cc="dctcp").protocol.name == "dctcp"
    message = "two paths from leaf1 to leaf0 may have the same id in telemetry, by which cc 'hpcc' tells them apart"
    for more in ({"lb": "spray"}, {"nic": {"cc_scope": "destination"}}):
        with pytest.raises(UserError, match=message):
            planned(20, 20, switch=lossy, **more)
