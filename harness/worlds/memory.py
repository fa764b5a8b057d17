"""A run that outgrows its memory ends with a message, before the kernel ends it without one."""

from __future__ import annotations

import psutil

from p4switch.errors import UserError

# What is left to others, and to what a run makes between two looks.
_RESERVE_FRACTION = 0.03
# Of each queue sample, beside the sample itself: its row of the table of queues, and that row as it is written.
_TABLE_BYTES_PER_SAMPLE = 80


class MemoryLimit:
    """What a run may use: `limit_bytes` of this process, or, with None, what the machine has left at each look."""

    def __init__(self, run: str, limit_bytes: int | None) -> None:
        self._run = run  # its name
        self._limit_bytes = limit_bytes
        self._process = psutil.Process()

    def look(self, now_ns: int, queue_samples: int) -> None:
        """Raises UserError when what is held, and what the samples taken so far will need, is more than there is."""
        held_bytes: int = self._process.memory_info().rss
        to_come_bytes = queue_samples * _TABLE_BYTES_PER_SAMPLE
        limit_bytes = self._limit_bytes
        if limit_bytes is None:
            machine = psutil.virtual_memory()
            limit_bytes = held_bytes + machine.available - int(_RESERVE_FRACTION * machine.total)
        if held_bytes + to_come_bytes > limit_bytes:
            raise UserError(
                f"{self._run}: out of memory after {now_ns / 1e3:,.0f} us of model time: {_gib(held_bytes)} held and "
                f"{_gib(to_come_bytes)} to come for the table of {queue_samples:,} queue samples; expected at most "
                f"{_gib(limit_bytes)}: a smaller network or workload, a larger record.queue_interval_ns, a smaller "
                f"limit_ns, or a larger memory_bytes would do"
            )


def _gib(size_bytes: int) -> str:
    return f"{size_bytes / 2**30:.2f} GiB"
