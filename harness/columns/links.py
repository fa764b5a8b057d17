"""Columns of `links`.

A line in `LINKS` turns a count of the ports into a column.
"""

from __future__ import annotations

from harness.columns.column import PLACE, Column, PortCounter, Table, filled_by

LINKS = Table(
    "links",
    (
        Column("time_ns", "ns", "end of the interval"),
        Column("interval_ns", "ns", "length of the interval"),
        Column("node", "", "the sender's name: a switch or a host", PLACE, type=None),
        Column("port", "", "its port; a host's is 0", PLACE),
        Column("leads_to", "", "the node at the other end", PLACE, type=None),
        Column("rate_bps", "bit/s", "of the link", PLACE),
        Column("tx_bytes", "bytes", "frames sent in the interval", PortCounter("tx_bytes")),
        Column("busy_ns", "ns", "for which it sent", PortCounter("busy_ns")),
        Column(
            "paused_ns",
            "ns",
            "for which PFC kept priorities from sending, all priorities together",
            PortCounter("paused_ns"),
        ),
        Column("marked", "packets", "packets that left with an ECN mark and came without", PortCounter("marked")),
        Column(
            "dropped", "packets", "packets that were dropped at the port for any reason", PortCounter("dropped")
        ),
        Column("depth_bytes", "bytes", "queue at the end of the interval", PortCounter("depth_bytes", False)),
    ),
)


def counted() -> list[tuple[Column, PortCounter]]:
    """Return the columns that ports count, each with its source."""
    return filled_by(PortCounter, LINKS.columns)
