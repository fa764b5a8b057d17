"""What became of a host's collectives, in any world; the table of all operations, and what is computed from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

FLITS = 10  # of an operation and member, requests and responses with their headers: 1 + 9, or 9 + 1

OperationRow = tuple[str, int, int, int, int, int]  # kind, group, posted, sent, done (-1: not), repeats


@dataclass(frozen=True)
class CollectiveReport:
    """What a host knows when the run is over."""

    ended_ns: int  # when its program was over; -1: it is not
    cycle_ns: float
    operations: list[OperationRow]  # those that were sent
    counts: dict[str, int]  # of the engine
    sizes: dict[str, int]  # the most entries that its queues and arrays have held
    contents: bytes | None  # of its memory
    clipped: int  # numbers that fixed point could not hold


def collective_tables(reports: Mapping[int, CollectiveReport], names: Sequence[str]) -> dict[str, pd.DataFrame]:
    """Of a run with collectives; `names`: of all hosts."""
    return {"operations": operations_table(names, reports)} if reports else {}


def operations_table(names: Sequence[str], reports: Mapping[int, CollectiveReport]) -> pd.DataFrame:
    """One row an operation that was sent, by initiator, in the order in which they were done. Times are ns; -1: never.

    `posted_ns`: when the initiator wanted it; `sent_ns`: when its request left first; `group` 0: between two hosts.
    """
    rows = [(host, *row) for host in sorted(reports) for row in reports[host].operations]
    numbers = np.array([(row[0], *row[2:]) for row in rows], np.int64).reshape(-1, 6)
    columns = ["initiator", "group", "posted_ns", "sent_ns", "done_ns", "repeats"]
    table = pd.DataFrame(numbers, columns=columns)
    table["initiator"] = [names[host] for host in table["initiator"]]
    table.insert(0, "kind", [row[1] for row in rows])
    return table


def latencies(table: pd.DataFrame, cycle_ns: float) -> dict[str, float | int | None]:
    """Of the operations that were answered, from injection to the answer, in cycles.

    `mean_of_hosts` is the mean of the initiators' means, `waited` the mean time before injection.
    """
    done = table[table["done_ns"] >= 0]
    if not len(done):
        return dict.fromkeys(("mean", "median", "max", "mean_of_hosts", "waited"))
    cycles = (done["done_ns"] - done["sent_ns"]) / cycle_ns
    waited = (done["sent_ns"] - done["posted_ns"]) / cycle_ns
    return {
        "mean": float(cycles.mean()),
        "median": float(cycles.median()),
        "max": float(cycles.max()),
        "mean_of_hosts": float(cycles.groupby(done["initiator"]).mean().mean()),
        "waited": float(waited.mean()),
    }


def figures(table: pd.DataFrame, members: Mapping[int, int], hosts: int, cycle_ns: float) -> dict[str, Any]:
    """Effective bandwidth and latencies of one application; `members`: how many hosts each of its groups has.

    Effective bandwidth: all flits (headers, requests and responses, too) that unicast would have moved to each member,
    over members times cycles. An all-reduce has 2 at most, reads or writes alone 10 / 9.
    """
    done = table[table["done_ns"] >= 0]
    moved = FLITS * sum(members.get(group, 1) for group in done["group"])
    span = (int(done["done_ns"].max()) - int(done["sent_ns"].min())) / cycle_ns if len(done) else 0.0
    return {
        "operations": len(done),
        "unanswered": len(table) - len(done),
        "repeats": int(table["repeats"].sum()),
        "cycles": span,
        "effective_bandwidth": moved / (hosts * span) if span else None,
        "latency_cycles": latencies(table, cycle_ns),
        **{
            f"{kind}_latency_cycles": latencies(table[table["kind"] == kind], cycle_ns)
            for kind in sorted(set(table["kind"]))
        },
    }
