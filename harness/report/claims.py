"""What papers claim, by the name that a scenario's `claims` has for it: `claims.toml` beside this file."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import NamedTuple

from harness.plan.scenario import read


class Claim(NamedTuple):
    source: str  # paper and figure
    text: str


@cache
def claims() -> dict[str, Claim]:
    """All of them."""
    tables = read(Path(__file__).with_name("claims.toml"))
    return {name: Claim(**entry) for name, entry in tables.items()}
