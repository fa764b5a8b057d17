from __future__ import annotations

from pathlib import Path

import pytest

from p4switch.compiler.diagnostics import MAX_ERRORS, CompileError
from p4switch.compiler.frontend import parse_and_check
from p4switch.errors import UserError


def errors(path: Path, text: str) -> CompileError:
    path.write_text(text)
    with pytest.raises(CompileError) as caught:
        parse_and_check(path)
    return caught.value


def test_a_message_shows_where(tmp_path: Path) -> None:
    path = tmp_path / "x.p4"
    error = errors(path, "const bit<8> a = 1;\n\tconst bit<8> b = true;\n")
    assert str(error) == (
        f"{path}:2:19: error: expected bit<8> for constant 'b', not bool\n  \tconst bit<8> b = true;\n  \t{' ' * 17}^"
    )
    assert isinstance(error, UserError)


def test_several_errors_come_at_once_but_not_too_many(tmp_path: Path) -> None:
    text = "".join(f"const bit<8> c{i} = true;\n" for i in range(100))
    assert len(errors(tmp_path / "x.p4", text).diagnostics) == MAX_ERRORS


def test_one_mistake_is_told_once(tmp_path: Path) -> None:
    text = "control c(inout bit<8> x) { apply { bit<8> y = unknown + 1; x = y + unknown[3:0]; x = f(unknown.a); } }"
    messages = [d.message for d in errors(tmp_path / "x.p4", text).diagnostics]
    unknown, f = "name 'unknown' is not declared", "name 'f' is not declared"
    assert messages == [unknown, unknown, f, unknown]


def test_warnings_are_collected(tmp_path: Path) -> None:
    path = tmp_path / "x.p4"
    path.write_text("const bit<8> a = 300;\n#warning look\nconst bit<4> b = 4w31;\n")
    program = parse_and_check(path)
    assert [(w.severity, w.location.line, w.message) for w in program.warnings] == [
        ("warning", 2, "#warning look"),
        ("warning", 1, "300 does not fit in bit<8>: it becomes 44"),
        ("warning", 3, "31 does not fit in bit<4>: it becomes 15"),
    ]


def test_crlf_and_odd_bytes(tmp_path: Path) -> None:
    path = tmp_path / "x.p4"
    path.write_bytes(b"const bit<8> a = 1;\r\nconst bit<8> b = \xff\xfe;\r\n")
    with pytest.raises(CompileError) as caught:
        parse_and_check(path)
    first = caught.value.diagnostics[0]
    assert first.location.line == 2
    assert "\r" not in str(caught.value)
