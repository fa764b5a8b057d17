"""Settings of Python's interpreter for work on large and deep trees."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_RECURSION_LIMIT = 20_000
"""Sufficient for any tree, because the parser of P4 and the reader of BMv2 JSON limit the nesting."""


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
    """Switch off garbage collection during the block.

    A program's syntax tree is needed until the end of the process. Searching it for garbage would
    take a fifth of the time.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
