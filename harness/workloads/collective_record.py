"""Record of a host's collectives in any world: the table of all operations, and derived values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from harness.columns.collectives import OPERATIONS, PEAKS, recorded_by_hosts
from topologies.collectives import CollectiveGroup, trees
from topologies.model import Topology

# Flits in unicast for one operation and member, with headers. A read's request has 1 and its
# response 9; a write's request has 9 and its response 1.
FLITS = 10
PUSH_FLITS = 20  # flits of a pushed operation, counted at its member: as many as those of a read and a write
READ_SLOT_BYTES = 140  # bytes in p4src/collective.p4: the state, and 32 lanes
WRITE_SLOT_BYTES = 12

OperationRow = tuple[str, int, int, int, int, int]  # kind, group, posted, sent, done (-1: never), repeats


@dataclass(frozen=True)
class CollectiveReport:
    """Report of a host at the end of the run."""

    ended_ns: int  # end of its program; -1: it has not ended
    cycle_ns: float
    operations: list[OperationRow]  # number of operations that were sent
    counts: dict[str, int]  # counts of the engine
    sizes: dict[str, int]  # largest numbers of entries in its queues and arrays
    contents: bytes | None  # contents of its memory
    clipped: int  # number of values that exceed the range of fixed point


def collective_tables(reports: Mapping[int, CollectiveReport], names: Sequence[str]) -> dict[str, pd.DataFrame]:
    """Return the tables of a run with collectives; `names` are those of all hosts."""
    return {"operations": operations_table(names, reports), "peaks": peaks_table(names, reports)} if reports else {}


def peaks_table(names: Sequence[str], reports: Mapping[int, CollectiveReport]) -> pd.DataFrame:
    """Return the largest number of entries in each queue and array of each NIC."""
    rows = [(names[host], what, entries) for host in sorted(reports) for what, entries in reports[host].sizes.items()]
    return pd.DataFrame(rows, columns=PEAKS.names)


def operations_table(names: Sequence[str], reports: Mapping[int, CollectiveReport]) -> pd.DataFrame:
    """Return a row for each operation that was sent, by initiator, in order of completion.

    The columns are those of `OPERATIONS`.
    """
    rows = [(host, *row) for host in sorted(reports) for row in reports[host].operations]
    columns: dict[str, Any] = {"initiator": [names[row[0]] for row in rows]}
    for place, column in enumerate(recorded_by_hosts(), start=1):
        values = [row[place] for row in rows]
        columns[column.name] = values if column.type is None else np.array(values, column.type)
    return pd.DataFrame({name: columns[name] for name in OPERATIONS.names})


def latencies(table: pd.DataFrame, cycle_ns: float) -> dict[str, float | int | None]:
    """Return the latencies of answered operations, from injection to the answer, in cycles.

    `mean_of_hosts` is the mean of the initiators' means. `waited` is the mean time before
    injection.
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
    """Return effective bandwidth and latencies of one application; `members` is the size of each group.

    Effective bandwidth is the number of flits that unicast would have moved for all members,
    divided by members times cycles. It includes headers, requests and responses. Its maximum is 2
    for an all-reduce, and 10 / 9 for reads or writes alone. A pushed operation counts as its
    member's share of a read and a write.
    """
    done = table[table["done_ns"] >= 0]
    pushed = done["kind"] == "push"
    copies = done["group"].map(members).fillna(1)  # unicast has one
    moved = int(PUSH_FLITS * pushed.sum() + FLITS * copies[~pushed].sum())
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


def slot_bytes(table: pd.DataFrame, topology: Topology, groups: Sequence[CollectiveGroup]) -> dict[str, dict[str, Any]]:
    """Return the bytes of slots by switch.

    For each switch, `reserved_bytes` is the reserved memory, and `peak_bytes` is the largest use.
    `ports` has the largest use by operations whose tree has the port.

    An operation uses its slot from the sending of its request until it is answered.
    """
    own: dict[str, Counter[int]] = {}
    # Trees (group, tree) through a switch and a port; port None: through the switch.
    through: dict[tuple[str, int | None], set[tuple[int, int]]] = {}
    for group in groups:
        for number, tree in enumerate(trees(topology, group), start=1):
            for switch in (node for node, children in tree.down.items() if children):
                own.setdefault(switch, Counter())[group.number] = group.slots
                for port in (None, *tree.ports(switch)):
                    through.setdefault((switch, port), set()).add((group.number, number))
    uses = _uses(table, topology, groups)
    peaks = {which: uses.peak(which) for which in map(frozenset, through.values())}
    slots: dict[str, dict[str, Any]] = {
        switch: {"reserved_bytes": of_groups.total() * (READ_SLOT_BYTES + WRITE_SLOT_BYTES), "ports": {}}
        for switch, of_groups in own.items()
    }
    for (switch, port), which in through.items():
        peak_bytes = peaks[frozenset(which)]
        if port is None:
            slots[switch]["peak_bytes"] = peak_bytes
        else:
            slots[switch]["ports"][str(port)] = peak_bytes
    return slots


class _Uses:
    """Bytes of slots that operations take and release, in order of time.

    At equal times, releases come first.
    """

    def __init__(self, trees: Mapping[tuple[int, int], NDArray[np.int64]]) -> None:
        """Prepare the uses by group and tree: rows of time (ns) and change in bytes."""
        self._trees = [*trees]
        changes = np.concatenate([np.empty((0, 2), np.int64), *trees.values()])
        order = np.lexsort((changes[:, 1], changes[:, 0]))
        self._bytes = changes[order, 1]
        self._tree = np.repeat(np.arange(len(trees)), [len(rows) for rows in trees.values()])[order]

    def peak(self, trees: Collection[tuple[int, int]]) -> int:
        """Return the largest number of bytes in use in the slots of these trees together."""
        wanted = np.array([tree in trees for tree in self._trees], bool)
        return max(0, int(self._bytes[wanted[self._tree]].cumsum().max(initial=0)))


def _uses(table: pd.DataFrame, topology: Topology, groups: Sequence[CollectiveGroup]) -> _Uses:
    """Return the uses of slots; operations are numbered in the order of sending."""
    uses = {}
    ordered = table.sort_values("sent_ns", kind="stable")
    for group in groups:
        own = ordered[ordered["group"] == group.number]
        if not len(own):
            continue
        ranks = {topology.hosts[member].name: rank for rank, member in enumerate(group.members)}
        rank = 0 if group.push else own["initiator"].map(ranks).to_numpy(np.int64)
        sequence = group.first_sequence + own.groupby(["initiator", "kind"]).cumcount().to_numpy(np.int64)
        tree = 1 + (rank + sequence) % len(trees(topology, group))
        each = np.where(own["kind"] == "write", WRITE_SLOT_BYTES, READ_SLOT_BYTES)
        if group.push:  # the contributions of all members share a slot
            each = np.where(own["initiator"] == topology.hosts[group.members[0]].name, each, 0)
        for number in np.unique(tree):
            here = tree == number
            sent, done = own["sent_ns"].to_numpy()[here], own["done_ns"].to_numpy()[here]
            over = done >= 0
            times = np.concatenate([sent, done[over]])
            uses[(group.number, int(number))] = np.stack(
                [times, np.concatenate([each[here], -each[here][over]])], axis=1
            )
    return _Uses(uses)
