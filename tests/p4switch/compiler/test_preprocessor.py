from __future__ import annotations

import re
from pathlib import Path

import pytest

from p4switch.compiler import preprocessor
from p4switch.compiler.conditions import ConditionError, evaluate_condition
from p4switch.compiler.diagnostics import CompileError
from p4switch.compiler.preprocessor import Preprocessor
from p4switch.errors import UserError

TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|\w+|\S')


def preprocess(tmp_path: Path, text: str, **defines: str) -> str:
    """Return the resulting tokens, separated by spaces."""
    path = tmp_path / "program.p4"
    path.write_text(text)
    return " ".join(Preprocessor([tmp_path], defines).run(path).text.split())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("#define A 1\nA B", "1 B"),
        ("#define A\n[A]", "[ ]"),
        ("#define F(x, y) x + y\nF(1, F(2, 3))", "1 + 2 + 3"),
        ("#define F(x) x\nF ((1, 2)) F", "(1, 2) F"),
        ("#define F() 7\nF()", "7"),
        ("#define CAT(a, b) a ## b\nCAT(x, 1) CAT(, y)", "x1 y"),
        ('#define STR(a) #a\nSTR(a "b")', '"a \\"b\\""'),
        ("#define V(x, ...) f(x, __VA_ARGS__)\nV(1, 2, 3)", "f(1, 2, 3)"),
        ("#define A B\n#define B A\nA", "A"),
        ("#define A 1\n#undef A\nA", "A"),
        ("#define A 1 \\\n  + 2\nA", "1 + 2"),
        ('#define A 1\n"A" A', '"A" 1'),
        ("// #define A 1\n/* #error no */ A", "A"),
        ("a /* b */ c // d", "a c"),
        ("#if 0\nno\n#if 1\nno\n#endif\n#else\nyes\n#endif", "yes"),
        ("#ifdef X\nx\n#elif defined(Y) || 1\ny\n#else\nz\n#endif", "y"),
        ("#ifndef X\nx\n#endif", "x"),
        ('#pragma once\n#line 7\n# 3 "f"\nx', "x"),
        ("__LINE__\n__LINE__", "1 2"),
        ("#define F(a,\\\n b) a b\nF(1,\n2)", "1 2"),
        ("#define FOO_\\\nBAR 7\nFOO_BAR FO\\\r\nO_BAR", "7 7"),
        ("#def\\\nine A 1\\  \n2\nA", "12"),
        ('"one \\\ntwo"', '"one two"'),
        ('@v("5.\\\n0.0") @w(a\\\nb) x', '@v("5.0.0") @w(ab) x'),
        ("// to the \\\nend\n/\\\n* this, too *\\\n/ x", "x"),
        ("a\\\nb __LINE__\n__LINE__", "ab 2 3"),
    ],
)
def test_directives_and_macros(tmp_path: Path, text: str, expected: str) -> None:
    assert TOKEN.findall(preprocess(tmp_path, text)) == TOKEN.findall(expected)


def test_lines_left_out_of_a_string_leave_their_ends(tmp_path: Path) -> None:
    """Check a string in an annotation, whose text is part of P4Info."""
    path = tmp_path / "a.p4"
    path.write_text('@a("\none\n#if 0\ntwo\n#else\nthree\n#endif\n")')
    assert Preprocessor([], {}).run(path).text == '@a("\none\n\n\n\nthree\n\n")\n'


def test_defines_from_outside(tmp_path: Path) -> None:
    assert preprocess(tmp_path, "#if N > 3\nN\n#endif", N="4") == "4"


def test_includes(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "a.p4").write_text('#include "b.p4"\na')
    (tmp_path / "inner" / "b.p4").write_text("b")
    assert preprocess(tmp_path, '#include "inner/a.p4"\n#define W <inner/b.p4>\n#include W\nc') == "b a b c"


def test_spliced_lines_are_counted_as_they_stand_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "program.p4"
    path.write_text("on\\\n\\\n  e two\nthr\\ \nee\n")
    source = Preprocessor([], {}).run(path)
    places = [source.locate(source.text.index(word)) for word in ("on", "e two", "two", "thr", "ee\n")]
    assert [(p.line, p.column) for p in places] == [(1, 1), (3, 3), (3, 5), (4, 1), (5, 1)]
    lines = [source.line_at(source.text.index(word)) for word in ("on", "two", "thr", "ee\n")]
    assert lines == ["on\\", "  e two", "thr\\", "ee"]


def test_positions_lead_back_to_the_source(tmp_path: Path) -> None:
    (tmp_path / "a.p4").write_text("first\n  second")
    path = tmp_path / "program.p4"
    path.write_text('#define M x x\n#include "a.p4"\n  M third')
    source = Preprocessor([], {}).run(path)

    def locate(word: str, nth: int = 0) -> tuple[str, int, int]:
        at = -1
        for _ in range(nth + 1):
            at = source.text.index(word, at + 1)
        location = source.locate(at)
        return Path(location.file).name, location.line, location.column

    assert locate("first") == ("a.p4", 1, 1)
    assert locate("second") == ("a.p4", 2, 3)
    assert locate("x", 0) == locate("x", 1) == ("program.p4", 3, 3)
    assert locate("third") == ("program.p4", 3, 5)


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("\n#include <missing.p4>", 2, "cannot find include file 'missing.p4'"),
        ("#include missing", 1, '#include needs "file" or <file>'),
        ('#include "program.p4"', 1, "does a file include itself?"),
        ("#error stop here", 1, "#error stop here"),
        ("#if 1\n#if 1\n#endif", 1, "this conditional has no #endif"),
        ("#endif", 1, "#endif without #if"),
        ("#if 1\n#else\n#elif 1\n#endif", 3, "#elif after #else"),
        ("#if 1 +\n#endif", 1, "#if: the condition is incomplete"),
        ("#if 1 / 0\n#endif", 1, "#if: division by zero"),
        ("#define 1", 1, "#define needs the name of a macro"),
        ("#define F(x) x\nF(1, 2)", 2, "macro F needs 1 arguments, not 2"),
        ("#nonsense", 1, "unknown preprocessor directive #nonsense"),
        ("x /* never closed", 1, "unterminated comment"),
        ('x "never closed', 1, "unterminated string"),
        ("#define A0 x x\n" + "".join(f"#define A{i + 1} A{i} A{i}\n" for i in range(40)) + "A40", 42, "macros expand"),
    ],
)
def test_errors(tmp_path: Path, text: str, line: int, message: str) -> None:
    with pytest.raises(CompileError) as caught:
        preprocess(tmp_path, text)
    (error,) = caught.value.diagnostics
    assert error.location.line == line
    assert message in error.message


BOMBS = {
    "doubled": "#define M0(x) x x\n" + "".join(f"#define M{i + 1}(x) M{i}(x) M{i}(x)\n" for i in range(30)) + "M30(1)",
    "nested": "#define ID(x) x\n" + "ID(" * 20_000 + "1" + ")" * 20_000,
    "never closed": "#define ID(x) x\n" + "ID(" * 20_000,
    "strings of strings": "#define S0(x) #x\n"
    + "".join(f"#define S{i + 1}(x) S{i}(#x)\n" for i in range(40))
    + 'S40("\\"")',
    "includes": '#include "bomb0.p4"',
}


@pytest.mark.parametrize("text", BOMBS.values(), ids=BOMBS.keys())
def test_what_macros_and_includes_grow_to_is_bounded(tmp_path: Path, text: str) -> None:
    for i in range(30):
        (tmp_path / f"bomb{i}.p4").write_text(f'#include "bomb{i + 1}.p4"\n' * 2)
    (tmp_path / "bomb30.p4").write_text("x\n")
    with pytest.raises(CompileError, match=r"more than|over"):
        preprocess(tmp_path, text)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"absent\.p4"):
        Preprocessor([], {}).run(tmp_path / "absent.p4")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 + 2 * 3 == 7", True),
        ("(1 + 2) * 3 == 7", False),
        ("!0 && ~0", True),
        ("1 ? 0 : 1", False),
        ("-7 / 2 == -3", True),
        ("-7 % 2 == -1", True),
        ("0x10 == 16 && 010 == 8 && 20180101L > 5", True),
        ("unknown", False),
        ("1 << 3 > 7", True),
    ],
)
def test_conditions(text: str, expected: bool) -> None:
    assert evaluate_condition(text) is expected


@pytest.mark.parametrize("text", ["", "1 1", "(1", "1 ?", "$", "1 << 1000", "08"])
def test_bad_conditions(text: str) -> None:
    with pytest.raises(ConditionError):
        evaluate_condition(text)


@pytest.mark.parametrize(("bound", "value", "line"), [("MAX_INCLUDES", 10, 11), ("MAX_SOURCE_CHARACTERS", 410, 4)])
def test_included_files_are_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bound: str, value: int, line: int
) -> None:
    monkeypatch.setattr(preprocessor, bound, value)
    (tmp_path / "other.p4").write_text("a\n" * 2)
    with pytest.raises(CompileError, match=r"over \d+ files or \d+ characters are included") as caught:
        preprocess(tmp_path, '#include "other.p4"\n' * 20)
    assert str(caught.value).startswith(f"{tmp_path}/program.p4:{line}:")
