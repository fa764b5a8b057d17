"""In which order tests are begun, and that they find p4cc's modules compiled."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent

# Tests start hundreds of processes. Where Python is told to keep no bytecode, each would compile all of p4cc anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What runs on real frames first: such a run waits most of its time, and one is carried out at a time.

    Each worker begins with a third: while the first has the hosts compiled, the others have tests that need none. On two
    cores the third worker has the time that the first one waits.
    """
    items.sort(key=lambda item: not item.path.is_relative_to(HERE / "mininet"))
