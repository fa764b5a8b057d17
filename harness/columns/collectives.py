"""Columns of `operations` and `peaks`, the tables of runs with collectives."""

from __future__ import annotations

from harness.columns.column import Column, HostRecord, Table, filled_by

OPERATIONS = Table(
    "operations",
    (
        Column("kind", "", "read, write or push", HostRecord(), type=None),
        Column("initiator", "", "the host's name", type=None),
        Column("group", "", "number of the collective group; 0: between two hosts", HostRecord()),
        Column("posted_ns", "ns", "when the initiator wanted it", HostRecord()),
        Column("sent_ns", "ns", "when its request left first", HostRecord()),
        Column("done_ns", "ns", "when the answer was there; -1: never", HostRecord()),
        Column("repeats", "", "how often the request was sent again", HostRecord()),
    ),
)
PEAKS = Table(
    "peaks",
    (
        Column("host", "", "whose NIC it is", type=None),
        Column("what", "", "which of its queues, or its protocol's queues and arrays, for collectives", type=None),
        Column("entries", "", "the most that it has held"),
    ),
)


def recorded_by_hosts() -> list[Column]:
    """Return the columns of operations that hosts record, in the order of their records."""
    return [column for column, _ in filled_by(HostRecord, OPERATIONS.columns)]
