"""Conversion of errors of `host_agents` to mistakes of the user."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from host_agents.errors import HostError
from p4switch.errors import UserError

T = TypeVar("T")


def as_user_error(resolve: Callable[[], T]) -> T:
    """Return the result of `resolve`. Raises UserError instead of HostError."""
    try:
        return resolve()
    except HostError as error:
        raise UserError(str(error)) from None
