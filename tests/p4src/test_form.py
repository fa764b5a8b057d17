"""Form of the P4 programs: the first ten lines state a file's purpose, and lines have at most 100 columns."""

from __future__ import annotations

from itertools import takewhile
from pathlib import Path

import pytest

P4SRC = Path(__file__).parents[2] / "p4src"
FILES = sorted(P4SRC.rglob("*.p4"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(P4SRC)))
def test_the_header_has_at_most_ten_lines_and_no_line_over_100_columns(file: Path) -> None:
    lines = file.read_text(encoding="utf-8").splitlines()
    assert len(list(takewhile(lambda line: line.startswith("//"), lines))) <= 10
    assert max(map(len, lines)) <= 100
