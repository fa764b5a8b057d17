"""Headers, stacks, unions and selects follow the language specification where BMv2 alone does not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from p4switch.compiler import compile_program
from p4switch.engine import build, load

PROGRAM = """
#include <core.p4>
#include <v1model.p4>
header data_t {{ bit<8> a; bit<8> b; bit<8> c; bit<8> d; }}
header item_t {{ bit<8> f; }}
header_union either_t {{ item_t one; item_t two; }}
struct headers_t {{ data_t data; item_t[3] items; item_t copy; either_t either; either_t[2] eithers; }}
struct meta_t {{ bit<8> u; bit<2> i; }}
{outside}
parser parse(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {{ {parser} }}
control verify_sums(inout headers_t hdr, inout meta_t meta) {{ apply {{ }} }}
control ingress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {{
    apply {{
        std.egress_spec = 1;
        {ingress}
        if (std.parser_error != error.NoError) {{ hdr.data.d = 0xee; }}
    }}
}}
control egress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {{ apply {{ }} }}
control update_sums(inout headers_t hdr, inout meta_t meta) {{ apply {{ }} }}
control deparse(packet_out pkt, in headers_t hdr) {{ apply {{ pkt.emit(hdr); }} }}
V1Switch(parse(), verify_sums(), ingress(), egress(), update_sums(), deparse()) main;
"""


@pytest.fixture
def process(tmp_path: Path) -> Callable[..., str]:
    def run(frame: str, parser: str = "{ }", ingress: str = "", outside: str = "") -> str:
        path = tmp_path / "program.p4"
        if "state" not in parser:
            parser = f"state start {{ pkt.extract(hdr.data); {parser} transition accept; }}"
        path.write_text(PROGRAM.format(parser=parser, ingress=ingress, outside=outside))
        [(_, out)] = load().Switch(str(build(compile_program(path).program))).process(0, bytes.fromhex(frame))
        result: str = out.hex()
        return result

    return run


# Stacks

TWO = "pkt.extract(hdr.items.next); pkt.extract(hdr.items.next);"

MANY = """
parser Many(packet_in pkt, out item_t[3] items) {
    state start {
        pkt.extract(items.next);
        transition select(items.last.f) { 0x80 &&& 0x80 : start; default : accept; }
    }
}
parser Count(packet_in pkt, out bit<8> sum) {
    item_t[2] own;
    state start { pkt.extract(own.next); pkt.extract(own.next); sum = own[0].f + own[1].f; transition accept; }
}
"""


def test_a_stack_that_is_an_out_parameter_begins_anew(process: Callable[..., str]) -> None:
    parser = """Many() many;
        state start { pkt.extract(hdr.data); pkt.extract(hdr.items.next); transition once; }
        state once { many.apply(pkt, hdr.items); transition again; }
        state again { many.apply(pkt, hdr.items); transition accept; }"""
    assert process("00000000" + "11" + "8103" + "8204", parser, outside=MANY) == "00000000" + "8204"
    assert process("00000000" + "11" + "03" + "81828304", parser, outside=MANY) == "000000ee" + "81828304"


def test_a_stack_that_is_a_variable_of_a_parser_begins_anew(process: Callable[..., str]) -> None:
    parser = """Count() count;
        state start { pkt.extract(hdr.data); count.apply(pkt, hdr.data.b); transition again; }
        state again { count.apply(pkt, hdr.data.c); transition accept; }
    """
    assert process("00000000" + "01020408", parser, outside=MANY) == "00030c00"


def test_last_of_a_stack_is_copied_with_its_validity(process: Callable[..., str]) -> None:
    assert process("00000000" + "7788", TWO + "hdr.copy = hdr.items.last;") == "00000000" + "7788" + "88"
    invalid = TWO + "hdr.items[1].setInvalid(); hdr.copy = hdr.items.last;"
    assert process("00000000" + "7788", invalid) == "00000000" + "77"


def test_last_of_a_stack_is_a_header_like_others(process: Callable[..., str]) -> None:
    assert process("00000000" + "7788", TWO + "hdr.items.last.setInvalid();") == "00000000" + "77"
    assert process("00000000" + "7788", TWO + "hdr.items.last = hdr.items[0];") == "00000000" + "7777"
    both = "hdr.items.last.isValid() && hdr.items.last == hdr.copy"
    check = f"{TWO} hdr.copy = hdr.items.last; if ({both}) {{ hdr.data.b = 1; }}"
    assert process("00000000" + "7788", check) == "00010000" + "7788" + "88"


def test_last_of_an_empty_stack_is_out_of_bounds(process: Callable[..., str]) -> None:
    assert process("00000000", "hdr.copy = hdr.items.last; hdr.data.b = 1;") == "000000ee"


# Unions


@pytest.mark.parametrize(
    ("statements", "valid"),
    [
        ("hdr.either.one = {7};", "one"),
        ("hdr.either.one = {7}; hdr.either.two.setInvalid();", ""),
        ("hdr.either.one = {7}; hdr.either.one.setInvalid();", ""),
        ("hdr.either.one = {7}; hdr.either.two.setValid();", "two"),
        ("hdr.either.one = {7}; hdr.either.two = hdr.copy;", ""),
        ("hdr.either.one = {7}; hdr.either.two = hdr.either.one;", "two"),
        ("hdr.either.one = {7}; hdr.either.two = hdr.either.two;", "one"),
        ("hdr.either.one = {7}; hdr.either.two = (item_t){#};", ""),
        ("hdr.either.one = {7}; clear(hdr.either.two);", ""),
        ("meta.i = 1; hdr.eithers[meta.i].one = {7}; hdr.eithers[1].two.setInvalid();", ""),
        ("meta.i = 1; hdr.eithers[1].one = {7}; hdr.eithers[meta.i].two.setInvalid();", ""),
        ("meta.i = 1; hdr.eithers[1].one = {7}; hdr.eithers[meta.i].two = hdr.copy;", ""),
        ("meta.i = 1; hdr.eithers[1].one = {7}; hdr.eithers[0].two.setInvalid();", "one"),
    ],
)
def test_at_most_one_member_of_a_union_is_valid(process: Callable[..., str], statements: str, valid: str) -> None:
    clear = "void clear(out item_t item) { }"
    which = """
        if (hdr.either.one.isValid() || hdr.eithers[1].one.isValid()) { hdr.data.b = 1; }
        if (hdr.either.two.isValid() || hdr.eithers[1].two.isValid()) { hdr.data.b = hdr.data.b + 2; }
        hdr.either.one.setInvalid(); hdr.eithers[1].one.setInvalid();"""
    expected = {"": "00000000", "one": "00010000", "two": "00020000"}[valid]
    assert process("00000000", "", statements + which, clear) == expected


# Selects


@pytest.mark.parametrize(
    ("cases", "taken"),
    [
        ("select(hdr.data.a) { 1: one; 2: accept; }", "000000ee"),
        ("select(hdr.data.a) { 1: one; 0 &&& 0xf: one; }", "00010000"),
        ("select(hdr.data.a) { 1: one; _: accept; }", "00000000"),
        ("select(hdr.data.a) { members: one; }", "000000ee"),
        ("select(hdr.data.a, hdr.data.b) { (0, 1): accept; (1, 0): accept; }", "000000ee"),
        ("select(hdr.data.a == 0) { true: one; false: accept; }", "00010000"),
    ],
)
def test_what_no_case_of_a_select_takes(process: Callable[..., str], cases: str, taken: str) -> None:
    parser = f"""value_set<bit<8>>(4) members;
        state start {{ pkt.extract(hdr.data); transition {cases} }}
        state one {{ hdr.data.b = 1; transition accept; }}"""
    assert process("00000000", parser) == taken


@pytest.mark.parametrize(
    "cases",
    [
        "select(hdr.data.a[0:0], hdr.data.b == 1) { (0, true): accept; (1, false): accept; (0, false): accept;"
        " (1, true): reject; }",
        "select(hdr.data.a) { 1: accept; default: reject; }",
    ],
)
def test_a_select_that_takes_everything_has_no_case_more(tmp_path: Path, cases: str) -> None:
    path = tmp_path / "program.p4"
    parser = f"state start {{ pkt.extract(hdr.data); transition {cases} }}"
    path.write_text(PROGRAM.format(parser=parser, ingress="", outside=""))
    states = compile_program(path).json["parsers"][0]["parse_states"]
    assert len(states[0]["transitions"]) == cases.count(":") - cases.count("[0:0]")
