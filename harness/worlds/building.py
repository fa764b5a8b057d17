"""How far a world is built, told to whoever wants to know: large networks take a minute."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar

Building = Callable[[float], object]  # share of a network that is built

_listener: ContextVar[Building | None] = ContextVar("_listener", default=None)


@contextlib.contextmanager
def told_to(listener: Building | None) -> Iterator[None]:
    """Worlds that are built within the block tell this one how far they are."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def tell(share: float) -> None:
    listener = _listener.get()
    if listener is not None:
        listener(share)
