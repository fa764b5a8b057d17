"""Values that tests read from hosts, checked for their type, or replace in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from host_agents.nic import Nic

_T = TypeVar("_T")


def of_kind(found: object, kind: type[_T]) -> _T:
    """Return an object after a check of its type."""
    assert isinstance(found, kind), found
    return found


def due_frame(nic: Nic, now_ns: int) -> bytes:
    """Return the next frame of a NIC after checking that it has one to send now."""
    frame = nic.next_frame(now_ns)
    assert frame is not None, f"no frame at {now_ns} ns"
    return frame


def replace_method(owner: object, name: str, function: Callable[..., object]) -> None:
    """Make an object call this function instead of its method of that name."""
    setattr(owner, name, function)
