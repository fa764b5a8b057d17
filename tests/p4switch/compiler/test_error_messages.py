"""Programs with mistakes. A comment on each wrong line has the message that the compiler must report there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from p4switch.compiler.diagnostics import CompileError
from p4switch.compiler.frontend import parse_and_check

PROGRAMS = sorted((Path(__file__).parent / "errors").glob("*.p4"))
# `// error: text`, or `// error -N: text` for an error N lines above.
EXPECTED = re.compile(r"// error( -(\d+))?: (.*?)\s*$")


def expected_errors(path: Path) -> list[tuple[int, str]]:
    found = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        match = EXPECTED.search(line)
        if match:
            found.append((number - int(match.group(2) or 0), match.group(3)))
    return found


def reported_errors(path: Path) -> list[tuple[int, str]]:
    with pytest.raises(CompileError) as caught:
        parse_and_check(path)
    assert {d.location.file for d in caught.value.diagnostics} == {str(path)}
    return [(d.location.line, d.message) for d in caught.value.diagnostics]


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda p: p.stem)
def test_each_mistake_is_reported_where_it_is(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("p4switch.compiler.diagnostics.MAX_ERRORS", 100)
    expected = sorted(expected_errors(path))
    reported = sorted(reported_errors(path))
    assert expected
    missing = [(n, text) for n, text in expected if not any(n == m and text in message for m, message in reported)]
    surplus = [(m, message) for m, message in reported if not any(n == m and text in message for n, text in expected)]
    assert (missing, surplus) == ([], [])
