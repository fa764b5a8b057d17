"""Values computed from the operations of collectives."""

from collections.abc import Sequence

import pandas as pd
import pytest

from harness.workloads.collective_record import (
    CollectiveReport,
    OperationRow,
    collective_tables,
    figures,
    operations_table,
    slot_bytes,
)
from topologies.collectives import CollectiveGroup
from topologies.leaf_spine import LeafSpine
from topologies.model import Topology

MEMBERS = {1: 64}
CYCLE_NS = 0.5


def table(operations: dict[int, list[OperationRow]], names: Sequence[str] = ()) -> pd.DataFrame:
    """Return the table of the operations of each host."""
    reports = {host: CollectiveReport(0, CYCLE_NS, rows, {}, {}, None, 0) for host, rows in operations.items()}
    return operations_table(names or [f"h{host}" for host in range(64)], reports)


def operations_of(topology: Topology, operations: dict[int, list[OperationRow]]) -> pd.DataFrame:
    return table(operations, [host.name for host in topology.hosts])


def all_hosts(kinds: list[str], group: int, cycles: int) -> pd.DataFrame:
    """Return 128 operations of each kind and host within this number of cycles."""
    done = round(cycles * CYCLE_NS)
    return table({host: [(kind, group, 0, 0, done, 0) for kind in kinds for _ in range(128)] for host in range(64)})


@pytest.mark.parametrize(
    ("kinds", "group", "cycles", "bandwidth"),
    [
        (["read", "write"], 1, 81_920, 2.0),
        (["read"], 1, 73_728, 10 / 9),
        (["write"], 1, 73_728, 10 / 9),
        (["read", "write"], 0, 2_560, 1.0),  # unicast
    ],
)
def test_effective_bandwidth(kinds: list[str], group: int, cycles: int, bandwidth: float) -> None:
    found = figures(all_hosts(kinds, group, cycles), MEMBERS, 64, CYCLE_NS)
    assert found["effective_bandwidth"] == pytest.approx(bandwidth)
    assert (found["cycles"], found["operations"]) == (cycles, 64 * 128 * len(kinds))


def test_latencies_count_from_injection_and_hosts_alike() -> None:
    found = figures(
        table(
            {
                0: [("read", 1, 0, 50, 150, 0), ("read", 1, 0, 50, 250, 2), ("write", 1, 0, 50, 350, 0)],
                3: [("write", 1, 10, 20, 420, 0)],
            }
        ),
        MEMBERS,
        64,
        CYCLE_NS,
    )
    latency = found["latency_cycles"]
    assert latency == {"mean": 500.0, "median": 500.0, "max": 800.0, "mean_of_hosts": 600.0, "waited": 80.0}
    assert found["read_latency_cycles"]["mean"] == 300.0
    assert found["write_latency_cycles"]["mean"] == 700.0
    assert (found["repeats"], found["cycles"]) == (2, 800.0)


def test_a_pushed_operation_is_its_members_share_of_a_read_and_a_write() -> None:
    found = figures(all_hosts(["push"], 1, 1_440), MEMBERS, 64, CYCLE_NS)
    assert found["effective_bandwidth"] == pytest.approx(20 * 128 / 1_440)


def test_peaks_are_told_by_nic() -> None:
    reports = {host: CollectiveReport(0, 1.0, [], {}, {"queue": host, "array": 4}, None, 0) for host in (2, 0)}
    assert collective_tables(reports, ["h0", "h1", "h2"])["peaks"].to_numpy().tolist() == [
        ["h0", "queue", 0], ["h0", "array", 4], ["h2", "queue", 2], ["h2", "array", 4],
    ]  # fmt: skip
    assert collective_tables({}, []) == {}


def test_slots_by_switch_and_port() -> None:
    """With four hosts, two leaves and two spines, an operation uses one spine and the leaves' ports to it."""
    topology = LeafSpine(leaves=2, spines=2, hosts_per_leaf=2).build()
    group = CollectiveGroup(1, (0, 1, 2, 3), window=4)
    # Trees of host 0, whose sequences are 1, 2, 3: 2, 1, 2. Reads from 10 to 100, 20 to 60, 30 to 40 ns; a write.
    rows = [("read", 1, 0, 30, 40, 0), ("read", 1, 0, 20, 60, 0), ("read", 1, 0, 10, 100, 0)]
    operations = operations_of(topology, {0: [*rows, ("write", 1, 0, 60, 70, 0)]})
    found = slot_bytes(operations, topology, [group])
    assert set(found) == {"leaf0", "leaf1", "spine0", "spine1"}
    for switch in found.values():
        assert switch["reserved_bytes"] == 4 * 4 * (140 + 12)
    assert [found[name]["peak_bytes"] for name in ("leaf0", "leaf1", "spine0", "spine1")] == [420, 420, 140, 280]
    for leaf in ("leaf0", "leaf1"):
        ports = {there.node: found[leaf]["ports"][str(port)] for port, there in topology.ports[leaf].items()}
        assert (ports.pop("spine0"), ports.pop("spine1")) == (140, 280)
        assert list(ports.values()) == [420, 420]


def test_slots_of_members_that_push_are_shared() -> None:
    topology = LeafSpine(leaves=2, spines=1, hosts_per_leaf=2).build()
    rows = [("push", 1, 0, 10, 100, 0), ("push", 1, 0, 20, -1, 0)]
    pushes = operations_of(topology, dict.fromkeys(range(4), rows))
    found = slot_bytes(pushes, topology, [CollectiveGroup(1, (0, 1, 2, 3), window=4, push=True)])
    assert (found["leaf1"]["reserved_bytes"], found["leaf1"]["peak_bytes"]) == (8 * 152, 280)


def test_what_is_not_answered_moves_nothing() -> None:
    found = figures(table({0: [("read", 1, 0, 0, 100, 0), ("write", 1, 0, 0, -1, 3)]}), MEMBERS, 64, CYCLE_NS)
    assert (found["operations"], found["unanswered"], found["repeats"]) == (1, 1, 3)
    assert found["effective_bandwidth"] == pytest.approx(10 * 64 / (64 * 200))
    assert found["latency_cycles"]["mean"] == 200.0
    assert found["write_latency_cycles"]["mean"] is None
    none = figures(table({0: [("read", 1, 0, 0, -1, 0)]}), MEMBERS, 64, CYCLE_NS)
    assert (none["effective_bandwidth"], none["cycles"], none["unanswered"]) == (None, 0.0, 1)
