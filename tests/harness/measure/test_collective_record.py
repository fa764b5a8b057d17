"""What is computed from the operations of collectives."""

import pandas as pd
import pytest

from harness.measure.collective_record import CollectiveReport, OperationRow, figures, operations_table

MEMBERS = {1: 64}
CYCLE_NS = 0.5


def table(operations: dict[int, list[OperationRow]]) -> pd.DataFrame:
    """By host."""
    reports = {host: CollectiveReport(0, CYCLE_NS, rows, {}, {}, None, 0) for host, rows in operations.items()}
    return operations_table([f"h{host}" for host in range(64)], reports)


def all_hosts(kinds: list[str], group: int, cycles: int) -> pd.DataFrame:
    """128 operations of each kind and host within so many cycles."""
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


def test_what_is_not_answered_moves_nothing() -> None:
    found = figures(table({0: [("read", 1, 0, 0, 100, 0), ("write", 1, 0, 0, -1, 3)]}), MEMBERS, 64, CYCLE_NS)
    assert (found["operations"], found["unanswered"], found["repeats"]) == (1, 1, 3)
    assert found["effective_bandwidth"] == pytest.approx(10 * 64 / (64 * 200))
    assert found["latency_cycles"]["mean"] == 200.0
    assert found["write_latency_cycles"]["mean"] is None
    none = figures(table({0: [("read", 1, 0, 0, -1, 0)]}), MEMBERS, 64, CYCLE_NS)
    assert (none["effective_bandwidth"], none["cycles"], none["unanswered"]) == (None, 0.0, 1)
