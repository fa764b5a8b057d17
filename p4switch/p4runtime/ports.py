"""Ports as a controller names them, and which of them are down."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from p4switch.p4runtime.bytestring import canonical, parse
from p4switch.p4runtime.errors import invalid


@dataclass(frozen=True, slots=True)
class PortCounts:
    """Counts of a port; PFC frames are among the frames. Octets include the frame check sequence."""

    frames_received: int = 0
    octets_received: int = 0
    pfc_received: int = 0
    frames_sent: int = 0
    octets_sent: int = 0
    pfc_sent: int = 0


class Ports:
    """Ports of a device. `width` is the width of the data plane's port type; `counts` returns the ports' counts."""

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
        """Return whether a port is up; None is always up."""
        return port not in self._down
