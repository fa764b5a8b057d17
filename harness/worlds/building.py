"""Progress of building a world, for listeners, since large networks take a minute."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar

Building = Callable[[float], object]  # share of a network that is built

_listener: ContextVar[Building | None] = ContextVar("_listener", default=None)


@contextlib.contextmanager
def reported_to(listener: Building | None) -> Iterator[None]:
    """Report the progress of building worlds within the block to a listener."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def tell(share: float) -> None:
    listener = _listener.get()
    if listener is not None:
        listener(share)
