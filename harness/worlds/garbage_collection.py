"""Frequency of Python's garbage collection."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_COLLECT_AFTER = 1_000_000  # objects made and not freed, to begin with; of these alone, ...
_WORTHWHILE = 0.01  # of them, to have been garbage
_LONGER = 4  # times as many objects until the next look, otherwise; but at most ...
_LONGEST = 16_000_000
_NEVER = 1 << 30  # ... not of those that are older
_left_behind = False  # whether this process has had a network


def collect_what_was_left() -> None:
    """Collect an earlier run's network, which is one large cycle, before the next run."""
    global _left_behind
    if _left_behind:
        gc.collect()
        _left_behind = False


@contextmanager
def rare_collection() -> Iterator[None]:
    """Collect garbage rarely during the block.

    A network lives as long as its run, with the queue pairs that it makes meanwhile. To walk all of it
    whenever some packets were made costs a sixth of the time. Where next to nothing was garbage, the next
    look is after longer.
    """
    global _left_behind
    thresholds = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(_COLLECT_AFTER, _NEVER, _NEVER)
    gc.callbacks.append(_after)
    try:
        yield
    finally:
        gc.callbacks.remove(_after)
        gc.set_threshold(*thresholds)
        gc.unfreeze()
        _left_behind = True


def _after(phase: str, info: dict[str, int]) -> None:
    """Adjust the threshold after a collection of new objects."""
    threshold = gc.get_threshold()[0]
    if phase == "stop" and info["collected"] < _WORTHWHILE * threshold:
        gc.set_threshold(min(_LONGER * threshold, _LONGEST), _NEVER, _NEVER)
