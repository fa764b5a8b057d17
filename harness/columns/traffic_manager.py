"""Counts of a traffic manager for a port or one of its priorities, for probes of kind `queue`."""

from __future__ import annotations

from harness.columns.column import Column, ManagerCounter, Table, filled_by

PORT = Table(
    "port",
    (
        Column("depth_bytes", "bytes", "frames that wait in all queues of the port", ManagerCounter()),
        Column("max_bytes", "bytes", "the most that has waited", ManagerCounter()),
        Column("max_packets", "packets", "the most that have waited", ManagerCounter()),
        Column("rx_packets", "packets", "frames that came in", ManagerCounter()),
        Column("rx_bytes", "bytes", "frames that came in", ManagerCounter()),
        Column("tx_packets", "packets", "frames that were sent", ManagerCounter()),
        Column("tx_bytes", "bytes", "frames that were sent", ManagerCounter()),
        Column("busy_ns", "ns", "for which the port sent", ManagerCounter()),
        Column("drop_bytes", "bytes", "frames that were dropped for any reason", ManagerCounter(in_mininet=False)),
    ),
)
PRIORITY = Table(
    "priority",
    tuple(
        Column(name, unit, meaning, ManagerCounter(in_mininet=False))
        for name, unit, meaning in (
            ("depth_bytes", "bytes", "frames that wait"),
            ("depth_packets", "packets", "frames that wait"),
            ("max_bytes", "bytes", "the most that has waited"),
            ("enqueued_packets", "packets", "frames that were put into the queue"),
            ("enqueued_bytes", "bytes", "frames that were put into the queue"),
            ("dropped_packets", "packets", "frames for which there was no room"),
            ("dropped_bytes", "bytes", "frames for which there was no room"),
        )
    ),
)


def in_mininet() -> tuple[str, ...]:
    """Return the names of the counts that every switch process reports for its ports."""
    return tuple(column.name for column, source in filled_by(ManagerCounter, PORT.columns) if source.in_mininet)
