"""Settings of Python's interpreter for work on large and deep trees."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_RECURSION_LIMIT = 20_000
"""Enough for any tree: the parser of P4 and the reader of BMv2 JSON bound the nesting."""


@contextmanager
def deep_recursion() -> Iterator[None]:
    """Let passes recurse over the deepest trees."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, _RECURSION_LIMIT))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


@contextmanager
def uncollected() -> Iterator[None]:
    """Put off garbage collection: a program's tree lives to the end, and looking for garbage in it takes a fifth."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
