"""Ranges of parameters: `eta: float = field(default=0.95, metadata=SHARE)`.

The keys are pydantic's names of constraints; the registry checks them. What has to hold between parameters is for the
`__post_init__` of their class.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from host_agents.errors import ParameterError

NOT_NEGATIVE: Final[Mapping[str, float]] = {"ge": 0}  # what is checked when a parameter says nothing
POSITIVE: Final[Mapping[str, float]] = {"gt": 0}
SHARE: Final[Mapping[str, float]] = {"gt": 0, "le": 1}
SHARE_OR_NONE: Final[Mapping[str, float]] = {"ge": 0, "le": 1}
ONE_OF: Final = "one_of"


def one_of(*names: str) -> Mapping[str, tuple[str, ...]]:
    """Return the metadata of a `str` parameter with one of these values.

    A `Literal` is lost in compiled hosts.
    """
    return {ONE_OF: names}


def expect_less(owner: str, lower: str, low: float, upper: str, high: float) -> None:
    """Raise ParameterError, with the names of both, unless one is less than the other."""
    if low >= high:
        raise ParameterError(f"{owner}: parameter {lower}: should be less than {upper}, {high} (got {low})")


def check_watermarks(owner: str, wm_min: float, wm_start: float, wm_max: float) -> None:
    """Raise ParameterError unless a watermark starts within its range."""
    if not wm_min <= wm_start <= wm_max:
        raise ParameterError(
            f"{owner}: parameter wm_start: should be from wm_min, {wm_min}, to wm_max, {wm_max} (got {wm_start})"
        )
