"""Ports as controllers name them, and their state."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from p4switch.p4runtime.bytestring import canonical, parse
from p4switch.p4runtime.errors import invalid


@dataclass(frozen=True, slots=True)
class QueueCounts:
    """Number of packets dropped because the queue was full, and its depth in cells: the present and the maximum."""

    dropped_packets: int = 0
    waiting_cells: int = 0
    most_cells: int = 0


@dataclass(frozen=True, slots=True)
class PortCounts:
    """Counters of a port. PFC frames count as frames, and octets include the frame check sequence.

    `waiting` is the sum over all queues of the port, and `queues` has the first queues.
    """

    frames_received: int = 0
    octets_received: int = 0
    pfc_received: int = 0
    frames_sent: int = 0
    octets_sent: int = 0
    pfc_sent: int = 0
    waiting: QueueCounts = QueueCounts()
    queues: tuple[QueueCounts, ...] = ()


def port_counts(rows: Mapping[int, Mapping[str, Any]]) -> dict[int, PortCounts]:
    """Return the counters of ports, given the data plane's counters of each."""
    return {
        port: PortCounts(**{**row, "waiting": QueueCounts(*row["waiting"]), "queues": _queues(row["queues"])})
        for port, row in rows.items()
    }


def _queues(rows: Iterable[tuple[int, int, int]]) -> tuple[QueueCounts, ...]:
    return tuple(QueueCounts(*row) for row in rows)


class Ports:
    """Ports of a device. `width` is the width of the data plane's port type; `counts` returns the counters."""

    def __init__(self, width: int, down: set[int], counts: Callable[[], Mapping[int, PortCounts]]) -> None:
        self._width = width
        self._down = down
        self.counts = counts

    def parse(self, port: bytes | int, where: str) -> int:
        """Return a port as a number.

        Raises P4RuntimeError (INVALID_ARGUMENT) if the number is too wide.
        """
        try:
            return parse(port if isinstance(port, bytes) else canonical(port), self._width)
        except (ValueError, OverflowError):
            invalid(f"{where}: port {port!r}; expected a number of at most {self._width} bits")

    def is_up(self, port: int | None) -> bool:
        """Return whether a port is up. None counts as up."""
        return port not in self._down
