"""The shells that Mininet keeps for its nodes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def made_whole(node: Any) -> Iterator[None]:
    """End a node's shell if the block, which makes the node, fails by an error or a signal.

    Nothing else would end it, because Mininet does not know the node before it is complete.
    """
    try:
        yield
    except BaseException:
        if getattr(node, "shell", None):
            node.terminate()
        raise
