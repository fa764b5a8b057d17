"""Whatever the input, there is an answer: a program or errors, soon, and never a crash."""

from __future__ import annotations

import contextlib
import random
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from p4switch.compiler.diagnostics import CompileError
from p4switch.compiler.frontend import parse_and_check

ROOT = Path(__file__).parents[3]
PROGRAMS = sorted((Path(__file__).parent / "errors").glob("*.p4")) + sorted((ROOT / "p4src").glob("*.p4"))
TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|[A-Za-z_]\w*|\d\w*|\s+|.', re.DOTALL)
ODD = [
    "1 << 5000",
    "{ 1, 2 }",
    "{ a = 1 }",
    "{#}",
    "...",
    "error.NoError",
    "_",
    "default",
    "(bit<8>)1",
    "-1",
    "T",
    "int",
]


def apply(text: str) -> str:
    return "#include <core.p4>\ncontrol c(inout bit<8> x) { apply { " + text + " } }\n"


DEEP = {
    "parentheses": apply("x = " + "(" * 50_000 + "1" + ")" * 50_000 + ";"),
    "signs": apply("x = " + "-" * 50_000 + "x;"),
    "casts": apply("x = " + "(bit<8>)" * 20_000 + "x;"),
    "operators": apply("x = " + "+".join(["x"] * 50_000) + ";"),
    "members": apply("x = x" + ".a" * 50_000 + ";"),
    "blocks": apply("{" * 20_000),
    "ifs": apply("if (x == 0) " * 20_000 + ";"),
    "else ifs": apply("if (x == 0) {}" + " else if (x == 1) { x = 2; }" * 5_000),
    "conditionals": apply("x = " + "x == 0 ? x : " * 20_000 + "x;"),
    "lists": apply("x = " + "{" * 20_000 + "}" * 20_000 + ";"),
    "types": "typedef " + "tuple<" * 20_000 + "bit<8>" + ">" * 20_000 + " T;",
    "dimensions": "header h {} typedef h" + "[2]" * 20_000 + " T;",
    "digits": apply("x = " + "9" * 100_000 + ";"),
    "width": "typedef bit<99999999999999999999> t;",
    "shift": "const int a = 1 << 99999999999;",
    "product": "const int a0 = 1 << 4000;" + "".join(f"const int a{i + 1} = a{i} * a{i};" for i in range(40)),
    "structs": "struct s0 { bit<8> a; }"
    + "".join(f"struct s{i + 1} {{ s{i} a; s{i} b; }}\n" for i in range(40))
    + "control c() { apply { s40 x = ...; } }",
    "tuples": "typedef bit<8> t0;" + "".join(f"typedef tuple<t{i}, t{i}> t{i + 1};" for i in range(40)),
    "conditionals of the preprocessor": "#if 1\n" * 100_000,
    "condition": "#if " + "(" * 50_000 + "1\n#endif",
}


@pytest.mark.parametrize("text", DEEP.values(), ids=DEEP.keys())
def test_depth_and_size_are_bounded(tmp_path: Path, text: str) -> None:
    path = tmp_path / "deep.p4"
    path.write_text(text)
    with pytest.raises(CompileError):
        parse_and_check(path)


@pytest.mark.parametrize("operators", [100, 1400])
def test_long_expressions_are_fine(tmp_path: Path, operators: int) -> None:
    path = tmp_path / "long.p4"
    path.write_text(
        apply("x = x" + " + x" * operators + ";")
        + apply("if (x == 0) {}" + " else if (x == 1) {}" * operators)
        .replace("control c", "control d")
        .replace("#include <core.p4>", "")
    )
    parse_and_check(path)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=200))
def test_any_bytes(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "bytes.p4"
    path.write_bytes(data)
    with contextlib.suppress(CompileError):
        parse_and_check(path)


@pytest.mark.parametrize("seed", range(8))
def test_mutations_of_programs(tmp_path: Path, seed: int) -> None:
    """Tokens replaced by others of the same program or by odd ones: whatever survives the parser hits the checker."""
    rng = random.Random(seed)
    include = ROOT / "p4src" / "include"
    path = tmp_path / "mutant.p4"
    for _ in range(40):
        tokens = TOKEN.findall(rng.choice(PROGRAMS).read_text())
        words = [i for i, t in enumerate(tokens) if re.match(r"\w", t)]
        for _ in range(rng.randint(1, 5)):
            at = rng.choice(words)
            tokens[at] = rng.choice(ODD) if rng.random() < 0.3 else tokens[rng.choice(words)]
        path.write_text("".join(tokens))
        with contextlib.suppress(CompileError):
            parse_and_check(path, [include, Path(__file__).parent / "errors"])


@pytest.mark.parametrize(
    "text", [".", "control c() { apply { .", "parser p() { state start { transition select(", "@", "@pragma"]
)
def test_programs_that_stop_short(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.p4"
    path.write_text(text)
    with pytest.raises(CompileError):
        parse_and_check(path)


def test_a_call_with_errors_inside_a_select_key(tmp_path: Path) -> None:
    path = tmp_path / "x.p4"
    path.write_text(
        "#include <core.p4>\nparser p(packet_in b) { state start { bit<8> x = 0;\n"
        "transition select(x) { b.nothing(1): accept; f(x.y()): accept; } } }"
    )
    with pytest.raises(CompileError):
        parse_and_check(path)
