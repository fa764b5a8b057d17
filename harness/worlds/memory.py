"""A run that outgrows its memory ends with a message, before the kernel ends it without one; or it does not begin."""

from __future__ import annotations

import psutil

from p4switch.errors import UserError

# What is left to others, and to what a run makes between two looks.
_RESERVE_FRACTION = 0.03
# Of each queue sample, beside the sample itself: its row of the table of queues, and that row as it is written.
_TABLE_BYTES_PER_SAMPLE = 80


class MemoryLimit:
    """What a run may use: `limit_bytes` of this process and its workers, or, with None, what the machine has left at
    each look.
    """

    def __init__(self, run: str, limit_bytes: int | None) -> None:
        self._run = run  # its name
        self._limit_bytes = limit_bytes
        self._process = psutil.Process()

    def foresee(self, network_bytes: int, of_what: str) -> None:
        """Raises UserError when a network alone is more than there is."""
        limit_bytes = self._limit(0)
        if network_bytes > limit_bytes:
            raise UserError(
                f"{self._run}: {of_what} take some {_gib(network_bytes)} before the first packet; expected at most "
                f"{_gib(limit_bytes)}: a smaller network, or a larger memory_bytes would do"
            )

    def look(self, now_ns: int, queue_samples: int) -> None:
        """Raises UserError when what is held, and what the samples taken so far will need, is more than there is."""
        held_bytes: int = self._process.memory_info().rss
        if self._limit_bytes is not None:  # what the machine has left is less by what others hold
            held_bytes += sum(_own_bytes(worker) for worker in self._process.children())
        to_come_bytes = queue_samples * _TABLE_BYTES_PER_SAMPLE
        limit_bytes = self._limit(held_bytes)
        if held_bytes + to_come_bytes > limit_bytes:
            raise UserError(
                f"{self._run}: out of memory after {now_ns / 1e3:,.0f} us of model time: {_gib(held_bytes)} held and "
                f"{_gib(to_come_bytes)} to come for the table of {queue_samples:,} queue samples; expected at most "
                f"{_gib(limit_bytes)}: a smaller network or workload, a larger record.queue_interval_ns, a smaller "
                f"limit_ns, or a larger memory_bytes would do"
            )

    def _limit(self, held_bytes: int) -> int:
        if self._limit_bytes is not None:
            return self._limit_bytes
        machine = psutil.virtual_memory()
        return held_bytes + int(machine.available - _RESERVE_FRACTION * machine.total)


def _own_bytes(worker: psutil.Process) -> int:
    """What is this process's alone; 0 for one that has ended meanwhile."""
    try:
        own_bytes: int = worker.memory_full_info().uss
    except psutil.Error:
        return 0
    return own_bytes


def _gib(size_bytes: int) -> str:
    return f"{size_bytes / 2**30:.2f} GiB"
