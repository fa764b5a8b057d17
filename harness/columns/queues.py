"""Columns of `queues`."""

from __future__ import annotations

from harness.columns.column import PLACE, Column, Table

DEPTH = Column("depth_bytes", "bytes", "frames that wait in all queues of the port")
QUEUES = Table(
    "queues",
    (
        Column("time_ns", "ns", "when the sample was taken"),
        Column("switch", "", "name", PLACE, type=None),
        Column("port", "", "number of the port", PLACE),
        Column("leads_to", "", "the node at the other end of the port's link", PLACE, type=None),
        DEPTH,
    ),
    always=True,
)
