"""Path from a NIC through PCIe to its host's memory, on which received data may wait.

The memory takes data at a rate of its own. If a data packet would exceed the NIC's buffer, its
payload is lost, as if the last switch had trimmed it. Pull pacers slow down as the buffer fills, so
that the packets of protocols with credit are not lost. This is an option of Ultra Ethernet's
reference simulator.
"""

from __future__ import annotations

from host_agents.nic_tables import PcieConfig


class Pcie:
    def __init__(self, config: PcieConfig, line_rate_bps: int) -> None:
        self._bytes_per_ns = config.rate * line_rate_bps / 8e9
        self._most_bytes = float(config.buffer_bytes)
        self._slow_from_bytes = float(config.slow_from_bytes)
        self._almost_full_bytes = config.almost_full * self._most_bytes
        self._least_pull_rate = config.least_pull_rate
        self._waiting_bytes = 0.0  # bytes that waited at `_at_ns`
        self._at_ns = 0

    def take(self, now_ns: int, frame_bytes: int) -> bool:
        """Take a frame that arrived; return False if the buffer has no room for it."""
        waiting_bytes = self._drain(now_ns) + float(frame_bytes)
        if waiting_bytes > self._most_bytes:
            return False
        self._waiting_bytes = waiting_bytes
        return True

    def pull_rate(self, now_ns: int) -> float:
        """Return the largest rate of pulled data, as a share of the link's rate."""
        waiting_bytes = self._drain(now_ns)
        if waiting_bytes < self._slow_from_bytes:
            return 1.0
        if waiting_bytes > self._almost_full_bytes:
            return self._least_pull_rate
        free = (self._most_bytes - waiting_bytes) / (self._most_bytes - self._slow_from_bytes)
        return max(self._least_pull_rate, free * free)

    def _drain(self, now_ns: int) -> float:
        """Return the bytes that still wait."""
        drained_bytes = self._bytes_per_ns * float(now_ns - self._at_ns)
        self._waiting_bytes = max(0.0, self._waiting_bytes - drained_bytes)
        self._at_ns = now_ns
        return self._waiting_bytes
