"""In which order tests are begun."""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What runs on real frames first: such a run waits most of its time, and one is carried out at a time.

    Two workers begin at the first test and in the middle: while one of them has the hosts compiled, the other one
    has tests that need none.
    """
    items.sort(key=lambda item: not item.path.is_relative_to(HERE / "mininet"))
