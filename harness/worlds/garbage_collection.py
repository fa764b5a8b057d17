"""Frequency of Python's garbage collection."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_COLLECT_AFTER = 1_000_000  # first threshold of new objects that are not freed
_WORTHWHILE = 0.01  # least share of garbage among these; if there is less, the threshold grows
_LONGER = 4  # factor by which the threshold grows, up to _LONGEST
_LONGEST = 16_000_000
_NEVER = 1 << 30  # threshold of older objects: they are never collected
_left_behind = False  # whether this process has had a network


def collect_what_was_left() -> None:
    """Collect an earlier run's network, which is one large reference cycle, before the next run."""
    global _left_behind
    if _left_behind:
        gc.collect()
        _left_behind = False


@contextmanager
def rare_collection() -> Iterator[None]:
    """Collect garbage rarely during the block, and among new objects alone.

    A network lives as long as its run, and so do the queue pairs that are made in it. Traversing
    them all after every few packets costs a sixth of the time. If there was hardly any garbage, the
    next collection is later. After the block its objects are no longer new.
    """
    global _left_behind
    thresholds = gc.get_threshold()
    gc.set_threshold(_COLLECT_AFTER, _NEVER, _NEVER)
    gc.callbacks.append(_after)
    try:
        yield
    finally:
        gc.callbacks.remove(_after)
        gc.freeze()  # all objects become permanent, and then old, without being traversed
        gc.unfreeze()
        gc.set_threshold(*thresholds)
        _left_behind = True


def _after(phase: str, info: dict[str, int]) -> None:
    """Adjust the threshold after a collection of new objects."""
    threshold = gc.get_threshold()[0]
    if phase == "stop" and info["collected"] < _WORTHWHILE * threshold:
        gc.set_threshold(min(_LONGER * threshold, _LONGEST), _NEVER, _NEVER)
