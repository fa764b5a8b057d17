"""Ranges of parameters: `eta: float = field(default=0.95, metadata=SHARE)`.

The keys are pydantic's names of constraints, and the registry checks them. The `__post_init__` of a
class checks relations between parameters.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from host_agents.errors import ParameterError

NOT_NEGATIVE: Final[Mapping[str, float]] = {"ge": 0}  # default check of parameters
POSITIVE: Final[Mapping[str, float]] = {"gt": 0}
SHARE: Final[Mapping[str, float]] = {"gt": 0, "le": 1}
SHARE_OR_NONE: Final[Mapping[str, float]] = {"ge": 0, "le": 1}
ONE_OF: Final = "one_of"


def one_of(*names: str) -> Mapping[str, tuple[str, ...]]:
    """Return the metadata of a `str` parameter with one of these values.

    Compiled hosts do not preserve a `Literal`.
    """
    return {ONE_OF: names}


def expect_less(owner: str, lower: str, low: float, upper: str, high: float) -> None:
    """Raise ParameterError, with the names of both parameters, unless one is less than the other."""
    if low >= high:
        raise ParameterError(f"{owner}: parameter {lower}: should be less than {upper}, {high} (got {low})")


def check_watermarks(owner: str, wm_min: float, wm_start: float, wm_max: float) -> None:
    """Raise ParameterError unless a watermark starts within its range."""
    if not wm_min <= wm_start <= wm_max:
        raise ParameterError(
            f"{owner}: parameter wm_start: should be from wm_min, {wm_min}, to wm_max, {wm_max} (got {wm_start})"
        )
