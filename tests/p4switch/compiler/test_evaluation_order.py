"""The order of evaluation (language specification, sections 6.8 and 8.1): from left to right in the source."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from p4switch.compiler import compile_program
from p4switch.compiler.diagnostics import CompileError
from p4switch.engine import build, load

PROGRAM = """
#include <core.p4>
#include <v1model.p4>
header data_t {{ bit<8> a; bit<8> b; bit<8> c; bit<8> d; }}
header item_t {{ bit<8> f; }}
struct headers_t {{ data_t data; item_t[4] items; }}
struct meta_t {{ bit<8> u; bit<8>[4] cells; }}
struct pair_t {{ bit<8> one; bit<8> two; }}
bit<8> bump(inout bit<8> v) {{ v = v + 1; return v; }}
bit<8> both(in bit<8> high, in bit<8> low) {{ return (high << 4) | low; }}
void swap(inout bit<8> x, inout bit<8> y) {{ bit<8> kept = x; x = y; y = kept; }}
void fill(out bit<8> x, out bit<8> y) {{ x = 1; y = 2; }}
bit<8> joined(in pair_t p) {{ return both(p.one, p.two); }}
parser parse(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {{ {parser} }}
control verify_sums(inout headers_t hdr, inout meta_t meta) {{ apply {{ }} }}
control ingress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {{ {ingress} }}
control egress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {{ apply {{ }} }}
control update_sums(inout headers_t hdr, inout meta_t meta) {{ apply {{ {update} }} }}
control deparse(packet_out pkt, in headers_t hdr) {{ apply {{ {deparser} }} }}
V1Switch(parse(), verify_sums(), ingress(), egress(), update_sums(), deparse()) main;
"""
PARSER = """state start {
    pkt.extract(hdr.data);
    pkt.extract(hdr.items.next); pkt.extract(hdr.items.next); pkt.extract(hdr.items.next); pkt.extract(hdr.items.next);
    transition accept;
}"""


@pytest.fixture
def process(tmp_path: Path) -> Callable[..., str]:
    def run(frame: str, ingress: str = "apply { std.egress_spec = 1; }", **parts: str) -> str:
        if "apply" not in ingress:
            ingress = f"apply {{ std.egress_spec = 1; {ingress} }}"
        text = PROGRAM.format(
            ingress=ingress,
            parser=parts.get("parser", PARSER),
            update=parts.get("update", ""),
            deparser=parts.get("deparser", "pkt.emit(hdr);"),
        )
        path = tmp_path / "program.p4"
        path.write_text(text)
        switch = load().Switch(str(build(compile_program(path).program)))
        [(_, out)] = switch.process(0, bytes.fromhex(frame))
        result: str = out.hex()
        return result

    return run


@pytest.mark.parametrize(
    ("statements", "expected"),
    [
        # Arguments are evaluated and copied out in the order of the call, even if parameters have another order.
        ("hdr.data.b = both(low = bump(hdr.data.a), high = hdr.data.a);", "04440000"),
        ("hdr.data.b = both(high = hdr.data.a, low = bump(hdr.data.a));", "04340000"),
        ("fill(y = hdr.data.b, x = hdr.data.b);", "03010000"),
        ("fill(x = hdr.data.b, y = hdr.data.b);", "03020000"),
        ("swap(y = hdr.data.a, x = hdr.data.a);", "03000000"),
        # The values of a struct are evaluated in the order of the initialiser, even if fields have another order.
        ("hdr.data.b = joined({two = bump(hdr.data.a), one = hdr.data.a});", "04440000"),
        ("hdr.data.b = joined({one = hdr.data.a, two = bump(hdr.data.a)});", "04340000"),
        ("pair_t p = {two = bump(hdr.data.a), one = bump(hdr.data.a)}; hdr.data.b = both(p.one, p.two);", "05540000"),
        # The left side of an assignment is evaluated before its right side, and so is its old value as an operand.
        ("meta.u = 1; meta.cells[meta.u] = bump(meta.u); hdr.data.b = meta.cells[1];", "03020000"),
        ("meta.cells[1] = 5; meta.u = 1; meta.cells[meta.u] += bump(meta.u); hdr.data.b = meta.cells[1];", "03070000"),
        ("meta.u = 1; meta.cells[meta.u][7:4] = 4w9; hdr.data.b = meta.cells[1];", "03900000"),
        ("hdr.data.a[7:4] += (bit<4>)bump(hdr.data.a);", "44000000"),
        # In a slice at a variable position, the position is evaluated first and once, the bits around it last.
        ("hdr.data.b[hdr.data.a+:4] = (bit<4>)bump(hdr.data.a);", "04200000"),
        ("hdr.data.b[bump(hdr.data.a)+:4] = 4w15;", "04f00000"),
        ("hdr.data.a[hdr.data.b+:1] = (bit<1>)bump(hdr.data.a);", "04000000"),
        ("hdr.data.b = 0x18; bump(hdr.data.b[hdr.data.a+:8]);", "03200000"),
        ("hdr.data.b[hdr.data.a+:4][1:0] = 2w3;", "03180000"),
        ("hdr.data.b[7:2][hdr.data.a+:2] = 2w3;", "03600000"),
        # The values of a loop are evaluated before its first round.
        ("for (bit<8> n in (list<bit<8>>){1, hdr.data.a}) { hdr.data.a = 9; hdr.data.b = hdr.data.b + n; }",
         "09040000"),
    ],
)  # fmt: skip
def test_statements(process: Callable[..., str], statements: str, expected: str) -> None:
    assert process("03000000" + "00000000", statements)[:8] == expected


def test_an_array_before_its_index(process: Callable[..., str]) -> None:
    statements = "hdr.data.b = hdr.items[bump(hdr.items[1].f)].f; hdr.data.c = hdr.items[1].f;"
    assert process("00000000" + "10000030", statements) == "00000100" + "10010030"
    assert process("00000000" + "10012030", statements) == "00200200" + "10022030"
    statements = "hdr.items[2].f = 7; hdr.data.b = hdr.items[bump(hdr.items[2].f) & 3].f;"
    assert process("00000000" + "10203040", statements)[:4] == "0010"


def test_an_index_in_the_header_that_is_assigned_to(process: Callable[..., str]) -> None:
    statements = "hdr.items[hdr.items[1].f] = {f = 0x55};"
    assert process("00000000" + "00010203", statements) == "00000000" + "00550203"


TABLE = """
    action put(bit<8> v) {{ hdr.data.d = v; }}
    table t {{
        key = {{ {keys} }}
        actions = {{ put; NoAction; }}
        const default_action = NoAction;
        const entries = {{ {entry} : put(0x44); }}
    }}
    apply {{ std.egress_spec = 1; t.apply(); }}
"""


@pytest.mark.parametrize(
    ("keys", "entry"),
    [
        ('hdr.data.a : exact; bump(hdr.data.a) : exact @name("bumped");', "(7, 8)"),
        ('hdr.data.a & 0x3 : exact; bump(hdr.data.a) : exact @name("bumped");', "(3, 8)"),
        ('bump(hdr.data.a) : exact @name("bumped"); hdr.data.a : exact;', "(8, 8)"),
        ('hdr.data.a : selector; bump(hdr.data.a) : selector @name("bumped"); hdr.data.a : exact;', "(_, _, 8)"),
    ],
)
def test_keys_of_a_table(process: Callable[..., str], keys: str, entry: str) -> None:
    assert process("07000000" + "00000000", TABLE.format(keys=keys, entry=entry))[:8] == "08000044"


def test_what_a_condition_leaves_out_takes_nothing_of_the_packet(process: Callable[..., str]) -> None:
    """The side that is not evaluated has a `lookahead`, which would fail because the packet is too short."""
    parser = """state start {
        pkt.extract(hdr.data);
        if (hdr.data.a == 1 && pkt.lookahead<bit<64>>() == 2) { hdr.data.b = 1; }
        if (hdr.data.a == 0 || pkt.lookahead<bit<64>>() == 2) { hdr.data.c = 1; }
        hdr.data.d = hdr.data.a == 1 ? pkt.lookahead<bit<128>>()[7:0] : 5;
        transition accept;
    }"""
    assert process("00000000", parser=parser) == "00000105"
    assert process("01000000" + "0000000000000002" + "00000000000000ff", parser=parser).startswith("010101ff")


def test_a_header_is_emitted_as_it_was(process: Callable[..., str]) -> None:
    deparser = "item_t own = {0x11}; pkt.emit(own); own.f = hdr.data.a; pkt.emit(own); own.setInvalid(); pkt.emit(own);"
    assert process("22000000" + "00000000", deparser=deparser) == "1122"


def test_a_checksum_of_what_takes_branches_is_refused(process: Callable[..., str], tmp_path: Path) -> None:
    clause = "update_checksum(true, {hdr.data.a == 0 ? bump(meta.u) : 8w1}, hdr.data.b, HashAlgorithm.crc32);"
    with pytest.raises(CompileError, match="computations are not supported in 'update_sums'"):
        process("", update=clause)
