"""Counts of NICs, whose sums are in `summary.json`.

A line in `NICS` adds a count of a NIC.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from harness.columns.column import Column, NicCounter, Table, filled_by

NICS = Table(
    "nic",
    (
        Column(
            "malformed",
            "packets",
            "frames that no NIC could read, or with `nic.check_icrc` whose ICRC was wrong",
            NicCounter("malformed"),
        ),
        Column(
            "misdelivered",
            "packets",
            "frames that reached another host than the one addressed",
            NicCounter("misdelivered"),
        ),
        Column(
            "unknown_qp",
            "packets",
            "frames for a queue pair that the host does not have",
            NicCounter("unknown_qp"),
        ),
        Column("pauses_received", "packets", "pause frames", NicCounter("pauses_received")),
        Column(
            "retries_exceeded",
            "queue pairs",
            "queue pairs in error, their retries used up",
            NicCounter("retries_exceeded"),
        ),
        Column("paused_ns", "ns", "for which hosts were kept from sending", NicCounter("paused_ns")),
    ),
)


def counts(stats: Iterable[object]) -> Counter[str]:
    """Return the sums of the counts of several NICs, given the `NicStats` of each."""
    sources = [(column.name, source.attribute) for column, source in filled_by(NicCounter, NICS.columns)]
    by_column = Counter(dict.fromkeys((name for name, _ in sources), 0))
    for each in stats:
        for name, attribute in sources:
            value = getattr(each, attribute)
            by_column[name] += sum(value) if isinstance(value, list) else value
    return by_column
