"""Memory limit of a run.

A run that exceeds it ends with a message, instead of being killed by the kernel, or is not started.
"""

from __future__ import annotations

import resource
import sys

import psutil

from p4switch.errors import UserError

# Memory that is left to other programs, and to the run's growth between two checks.
_RESERVE_FRACTION = 0.03
_RESERVE_OF_LIMIT = 0.05  # share of the limit of `ulimit -v`
_LEAST_RESERVE_BYTES = 128_000_000
# Memory of each queue sample beside the sample itself: its row of the table of queues, and that row
# in the output.
_TABLE_BYTES_PER_SAMPLE = 80


class MemoryLimit:
    """Memory limit of a run: `limit_bytes` for all workers, or the free memory at each check.

    `limit_bytes` None means the free memory of each machine.
    """

    def __init__(self, run: str, limit_bytes: int | None) -> None:
        self._run = run  # name of the run
        self._limit_bytes = limit_bytes

    def foresee(self, network_bytes: int, of_what: str, built: int = 1, built_here: int = 1) -> None:
        """Raise UserError if a network alone exceeds the limit.

        `built` processes build the network, `built_here` of them on this machine.
        """
        limit_bytes = self._limit(0)
        times = built_here if self._limit_bytes is None else built
        if times * network_bytes > limit_bytes:
            raise UserError(
                f"{self._run}: {f'{times} times ' if times > 1 else ''}{of_what} take some "
                f"{_gib(times * network_bytes)} before the first packet; expected at most {_gib(limit_bytes)}: a "
                "smaller network, or a larger memory_bytes"
            )

    def foresee_all(self, run_bytes: int) -> None:
        """Raise UserError if the whole run will exceed the limit."""
        limit_bytes = self._limit(0)
        if run_bytes > limit_bytes:
            raise UserError(
                f"{self._run}: does not fit here: it will take some {_gb(run_bytes)} of memory, and {_gb(limit_bytes)} "
                "are free; expected a smaller network or workload, a larger record.queue_interval_ns, a machine with "
                "more (or memory_bytes, to try the run anyway)"
            )

    @property
    def is_given(self) -> bool:
        """True if the limit is the run's own; otherwise it is the free memory of a machine."""
        return self._limit_bytes is not None

    def look(self, now_ns: int, queue_samples: int, held_bytes: int) -> None:
        """Raise UserError if current memory plus that for the samples so far exceeds the limit."""
        to_come_bytes = queue_samples * _TABLE_BYTES_PER_SAMPLE
        limit_bytes = self._limit(held_bytes)
        if held_bytes + to_come_bytes > limit_bytes:
            raise UserError(
                f"{self._run}: out of memory after {now_ns / 1e3:,.0f} us of model time: {_gib(held_bytes)} held and "
                f"{_gib(to_come_bytes)} to come for the table of {queue_samples:,} queue samples; expected at most "
                f"{_gib(limit_bytes)}: a smaller network or workload, a larger record.queue_interval_ns, a smaller "
                f"limit_ns, or a larger memory_bytes"
            )

    def _limit(self, held_bytes: int) -> int:
        if self._limit_bytes is not None:
            return self._limit_bytes
        machine = psutil.virtual_memory()
        left_bytes = int(machine.available - _RESERVE_FRACTION * machine.total)
        return max(0, held_bytes + min(left_bytes, _left_by_limits()))


def _left_by_limits() -> int:
    """Return the address space that `ulimit -v` leaves; all mapped memory counts.

    Compiled hosts that get no memory abort the process, so a part is reserved.
    """
    most_bytes, _ = resource.getrlimit(resource.RLIMIT_AS)
    if most_bytes == resource.RLIM_INFINITY:
        return sys.maxsize
    mapped_bytes: int = psutil.Process().memory_info().vms
    return most_bytes - mapped_bytes - max(_LEAST_RESERVE_BYTES, int(_RESERVE_OF_LIMIT * most_bytes))


def resident_bytes() -> int:
    """Return the memory of this process."""
    held_bytes: int = psutil.Process().memory_info().rss
    return held_bytes


def private_bytes() -> int:
    """Return the memory that this process shares with no other process."""
    own_bytes: int = psutil.Process().memory_full_info().uss
    return own_bytes


def _gb(size_bytes: int) -> str:
    return f"{size_bytes / 1e9:.1f} GB"


def _gib(size_bytes: int) -> str:
    return f"{size_bytes / 2**30:.2f} GiB"
