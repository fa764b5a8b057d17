"""What values a parameter may have: `eta: float = field(default=0.95, metadata=SHARE)`.

The keys are pydantic's names of constraints; the registry checks them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

NOT_NEGATIVE: Final[Mapping[str, float]] = {"ge": 0}  # what is checked when a parameter says nothing
POSITIVE: Final[Mapping[str, float]] = {"gt": 0}
SHARE: Final[Mapping[str, float]] = {"gt": 0, "le": 1}
SHARE_OR_NONE: Final[Mapping[str, float]] = {"ge": 0, "le": 1}
