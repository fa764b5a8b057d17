"""Form of the generated C: it has the names of the source, none of which can break it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from p4switch.compiler import compile_program
from p4switch.engine import ProgramError, cexpr, cnodes, generated
from p4switch.engine.cexpr import String
from tests.p4switch.compiler.test_superseded import PLAIN, PROGRAM
from tests.p4switch.engine.jsonbuilder import Json, ProgramBuilder, assign, const, field, param, sm

FRAGMENTS = ["x = 1; /* */ y", "*/ #error", "/*/", "x\\\n*/ broken", "\u201cfoo\u201d *\\", "??/"]


def awkward() -> ProgramBuilder:
    """Return names that are not C identifiers or become equal when shortened, and source that would end a comment."""
    b = ProgramBuilder()
    long = "two.differ.at.their.end." + "x" * 40
    b.header_type("own_t", ("int", 8, False), ("$", 8, False), (f"1{long}", 8, False), (f"2{long}", 8, False))
    b.header("own", "own_t", metadata=True)
    b.header("union", "own_t")
    b.header("union.", "own_t")
    statements: list[Json] = [
        assign(field("own", "int"), param(0)),
        assign(field("own", "$"), field("own", "int")),
        assign(field("own", f"1{long}"), field("own", "$")),
        assign(field("own", "$"), const(0)),
        assign(field("own", f"2{long}"), field("own", f"1{long}")),
        assign(sm("egress_spec"), field("own", f"2{long}")),
    ]
    for statement, fragment in zip(statements, FRAGMENTS, strict=True):
        statement["source_info"] = {"filename": "x.p4", "line": 1, "column": 1, "source_fragment": fragment}
    first = b.action("return", statements, register=8)
    second = b.action("return", [assign(sm("egress_spec"), const(1))], register=8)
    b.table("while", [], [first, second], default=first, data=["0x7"])
    b.table("while;", [], [first], default=first, data=["0x5"])
    return b


def test_no_name_and_no_line_of_the_source_breaks_it() -> None:
    assert awkward().switch().process(0, bytes(20)) == [(5, bytes(20))]


def test_it_names_what_it_comes_from() -> None:
    text = generated(compile_program("p4src/ecn.p4").program).text
    for name in (
        r"state_parse_ipv4:;",
        r"H_ipv4 = 14,",
        r"p->m\.standard_metadata\.egress_spec = a->port & 0x1ff;  /\* forwarding\.p4:\d+: ",
        r"if \(p4_ld8\(p->H \+ H_ipv4 \+ 8\) <= 1\) {  /\* forwarding\.p4:\d+: hdr\.ipv4\.ttl <= 1 \*/",
        r"p->valid\[V_ipv4\]",
        r"keys_ipv4_lpm",
    ):
        assert re.search(name, text), name


def test_what_it_initialises_is_named() -> None:
    text = generated(compile_program("p4src/ecn.p4").program).text
    rows = re.findall(r"static const p4_\w+_info \w+\[\] = \{\n?(.*?)\};\n", text, re.DOTALL)
    assert len(rows) >= 6
    for line in (line.strip() for row in rows for line in row.splitlines()):
        assert re.match(r"\{?\.\w+ = |\{$|\},?$", line), line


def test_nobody_has_to_read_much() -> None:
    """ecn.p4 took 2,044 lines before there was a printer, and 508 with it; the limit leaves room for more."""
    lines = generated(compile_program("p4src/ecn.p4").program).text.splitlines()
    assert len(lines) <= 2044 / 3


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("name", ["collective", "dart"])
def test_lines_have_at_most_120_columns(name: str, *, traced: bool) -> None:
    """These programs have deep conditions, long sums, wide structs and names of the largest length."""
    text = generated(compile_program(f"p4src/{name}.p4").program, traced=traced).text
    assert max(map(len, text.splitlines())) <= 120


def test_long_code_is_broken_outside_of_strings_and_in_few_parentheses() -> None:
    terms = [cexpr.call("f", "int", i, cexpr.call("g", "int", cexpr.node(i) + i)) for i in range(1, 21)]
    words = " ".join("word" for _ in range(20))
    body: list[cnodes.Statement] = [cnodes.Do(cexpr.call("call", "", *terms, String(words)))]
    lines = cnodes.source([cnodes.Function("void", "f", (), body)]).splitlines()[2:-1]
    assert len(lines) > 2
    assert all(line.endswith(("),", ");")) for line in lines)
    assert f'"{words}"' in lines[-1]


def test_strings_that_are_longer_than_a_line_become_several() -> None:
    body: list[cnodes.Statement] = [cnodes.Do(cexpr.call("call", "", String("plain \1\2 " * 20)))]
    text = "plain \\001\\002 " * 20
    printed = cnodes.source([cnodes.Function("void", "f", (), body)])
    assert max(map(len, printed.splitlines())) <= 120
    assert re.sub(r'"\s+"', "", printed).count(text) == 1


def test_what_the_engine_refuses_in_a_p4_program_is_not_said_of_a_json(tmp_path: Path) -> None:
    path = tmp_path / "program.p4"
    fields, keys = ("".join(text.format(i) for i in range(34)) for text in ("bit<2048> x{};", "hdr.h.x{}: exact;"))
    declared = f"table t {{ key = {{ {keys} }} actions = {{ NoAction; }} }}"
    blocks = PROGRAM.format(**{**PLAIN, "declared": declared, "code": "t.apply();"})
    path.write_text(blocks.replace("header h_t {", f"header h_t {{ {fields}"))
    with pytest.raises(ProgramError, match=r"^a key of 69632 bits is too wide$"):
        generated(compile_program(path).program)
