"""For any input the compiler soon returns a program or errors, and never crashes."""

from __future__ import annotations

import contextlib
import cProfile
import json
import pstats
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from p4switch.compiler import _compile, compile_program
from p4switch.compiler.diagnostics import CompileError
from p4switch.compiler.frontend import parse_and_check
from p4switch.engine.codegen import generate


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


V1MODEL = """
#include <v1model.p4>
struct none_t {{ }}
struct meta_t {{ bit<32> a; bit<32> b; bit<8> i; }}
{parser}
control sums(inout none_t hdr, inout meta_t meta) {{ apply {{ }} }}
control egress(inout none_t hdr, inout meta_t meta, inout standard_metadata_t std) {{ apply {{ }} }}
control deparse(packet_out pkt, in none_t hdr) {{ apply {{ }} }}
{before}
control ingress(inout none_t hdr, inout meta_t meta, inout standard_metadata_t std) {{ {body} }}
V1Switch(parse(), sums(), ingress(), egress(), sums(), deparse()) main;
"""
PARSER = "parser parse(packet_in b, out none_t h, inout meta_t m, inout standard_metadata_t s) "
DOUBLED = {
    "functions": (
        "bit<32> f0(in bit<32> x) { return x; }"
        + "".join(f"bit<32> f{i + 1}(in bit<32> x) {{ return f{i}(x) + f{i}(x); }}" for i in range(40)),
        "apply { meta.a = f40(meta.b); }",
    ),
    "actions": (
        "",
        "action a0() { meta.a = meta.a + 1; }"
        + "".join(f"action a{i + 1}() {{ a{i}(); a{i}(); }}" for i in range(40))
        + "apply { a40(); }",
    ),
    "controls": (
        "control c0(inout meta_t m) { apply { m.a = 1; } }"
        + "".join(
            f"control c{i + 1}(inout meta_t m) {{ c{i}() x; c{i}() y; apply {{ x.apply(m); y.apply(m); }} }}"
            for i in range(40)
        ),
        "c40() c; apply { c.apply(meta); }",
    ),
    "parsers": (
        "parser p0(packet_in b) { state start { b.advance(8); transition accept; } }"
        + "".join(
            f"parser p{i + 1}(packet_in b) {{ p{i}() x; p{i}() y; state start {{ x.apply(b); y.apply(b);"
            " transition accept; } }"
            for i in range(40)
        )
        + PARSER
        + "{ p40() p; state start { p.apply(b); transition accept; } }",
        "apply { }",
    ),
}


@pytest.mark.parametrize(("before", "body"), DOUBLED.values(), ids=DOUBLED.keys())
def test_calls_that_double_are_bounded(tmp_path: Path, before: str, body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("p4switch.compiler.midend.lowering.MAX_OPERATIONS", 10_000)
    path = tmp_path / "x.p4"
    parser = "" if PARSER in before else PARSER + "{ state start { transition accept; } }"
    path.write_text(V1MODEL.format(parser=parser, before=before, body=body))
    with pytest.raises(CompileError, match="the program becomes too large") as caught:
        compile_program(path)
    assert caught.value.diagnostics[0].location.line in (9, 10)


COSTLY = {
    "copies of a struct": ("apply { wide_t x; wide_t y; " + "x = y; y = x; " * 4 + "}", 10),
    "a struct passed on": ("apply { wide_t x; g(x); }", 9),
    "an array at an index": ("apply { bit<8>[1000] x; bit<16> i = 3; " + "x[i] = x[i + 1]; " * 4 + "}", 10),
    "a loop in a loop": ("apply { bit<8>[100] x; for (bit<8> i in x) { for (bit<8> j in x) { meta.a = 1; } } }", 10),
    "entries": (
        "action none() { } table t { key = { " + "(int<8>)meta.i : range @name(\"k\"); " * 14 + "} actions = { none; }"
        " const entries = { (" + ", ".join(["-8s1 .. 1"] * 14) + ") : none(); } } apply { t.apply(); }",
        10,
    ),
}
"""Bodies of few nodes that cost much, and the lines at which they are refused."""


@pytest.mark.parametrize(("body", "line"), COSTLY.values(), ids=COSTLY.keys())
def test_what_costs_much_is_counted(tmp_path: Path, body: str, line: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Operations and values are counted, not time, so that all machines refuse the same programs."""
    path = tmp_path / "x.p4"
    wide = "struct w0 { bit<8> a; bit<8> b; }" + "".join(f"struct w{i + 1} {{ w{i} a; w{i} b; }}" for i in range(9))
    wide += "typedef w9 wide_t; void f(inout wide_t a, in wide_t b) { a = b; } void g(inout wide_t a) { f(a, a); }"
    parser = PARSER + "{ state start { transition accept; } }"
    path.write_text(V1MODEL.format(parser=parser, before=wide, body=body))
    compile_program(path)
    monkeypatch.setattr("p4switch.compiler.midend.lowering.MAX_OPERATIONS", 3_000)
    with pytest.raises(CompileError, match="it takes over 3000 operations") as caught:
        _compile(path, [], None)
    assert [d.location.line for d in caught.value.diagnostics] == [line]


def test_each_constant_entry_costs_the_same(tmp_path: Path) -> None:
    def calls(entries: int) -> int:
        path = tmp_path / f"{entries}.p4"
        listed = "\n".join(f"({i}, 1) : s({i});" for i in range(entries))
        body = (
            "action s(bit<32> v) { meta.a = v; } table t { key = { meta.b : ternary; meta.i : exact; } actions = { s; }"
            f" const entries = {{ {listed} }} }} apply {{ t.apply(); }}"
        )
        path.write_text(V1MODEL.format(parser=PARSER + "{ state start { transition accept; } }", before="", body=body))
        profile = cProfile.Profile()
        profile.runcall(lambda: generate(_compile(path, [], None).program))
        stats: Any = pstats.Stats(profile)  # typeshed does not declare the counts
        return int(stats.total_calls)

    calls(2)  # the first call imports modules and fills caches
    none, some, more = calls(1), calls(150), calls(300)
    assert more - none < 2.2 * (some - none)


LARGE = {
    "sum": "apply { meta.a = meta.b" + " + meta.b" * 1000 + "; }",
    "shifts": "apply { meta.a = " + "(" * 40 + "meta.b" + " << meta.i)" * 40 + "; }",
    "constant entries": "action s(bit<32> v) { meta.a = v; } table t { key = { meta.b : ternary; meta.i : exact; }"
    " actions = { s; } const entries = {" + "".join(f"({i} &&& 0xffff, 1) : s({i});" for i in range(1000)) + "} }"
    " apply { t.apply(); }",
    "loop": "apply { for (bit<16> i in (list<bit<16>>){ "
    + ", ".join(map(str, range(1000)))
    + " }) { meta.a = meta.a + (bit<32>)i; } }",
}


@pytest.mark.parametrize("body", LARGE.values(), ids=LARGE.keys())
def test_what_is_written_is_in_proportion_to_the_program(tmp_path: Path, body: str) -> None:
    path = tmp_path / "x.p4"
    path.write_text(
        V1MODEL.format(parser=PARSER + "{ state start { transition accept; } }", before="", body=body)
    )  # on one line: no position may take time in proportion to the line's length
    compiled = compile_program(path)
    assert len(json.dumps(compiled.json)) < 200 * path.stat().st_size + 20_000
    generate(compiled.program)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=200))
def test_any_bytes(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "bytes.p4"
    path.write_bytes(data)
    with contextlib.suppress(CompileError):
        parse_and_check(path)


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
