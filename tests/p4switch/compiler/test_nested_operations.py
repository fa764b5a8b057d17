"""Deeply nested operations: the size of the JSON is proportional to the source for every place of an expression."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from p4switch.compiler import Compiled, compile_program
from p4switch.compiler.diagnostics import CompileError
from p4switch.engine import build, load

DEPTH = 16
MOST_GROWTH = 3
"""Of the JSON, from half the depth to the whole: 2 for what is in proportion, some more where temporaries begin with a
size that half of it does not have; 4 for what grows with the square; 2^8 for what each level doubles."""

HEAD = """
#include <core.p4>
#include <v1model.p4>
header data_t { bit<64> x; bit<64> y; }
header pair_t { bit<64> a; bit<64> b; }
struct headers_t { data_t data; pair_t[3] items; }
struct meta_t { bit<64>[4] cells; bit<64> k; }
bit<64> shifted(in bit<64> v) { return v << v; }
bit<64> squared(in bit<64> v) { bit<64> r = v + v; return r * v; }
"""
MAIN = "V1Switch(parse(), verify_sums(), ingress(), egress(), update_sums(), deparse()) main;"
EVERYWHERE = """
parser parse(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    state start { pkt.extract(hdr.data); transition select(NEST) { 3: assignments; default: checks; } }
    state assignments { hdr.data.y = NEST; meta.cells[NEST & 3] = NEST; transition checks; }
    state checks { verify(NEST == 3, error.NoMatch); pkt.advance((bit<32>)NEST); transition accept; }
}
control verify_sums(inout headers_t hdr, inout meta_t meta) { apply { } }
control ingress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    register<bit<64>>(1) kept;
    action put(in bit<64> v) { hdr.data.y = v; hdr.data.y = NEST; }
    table t { key = { NEST : exact @name("k"); } actions = { put(NEST); NoAction; } }
    apply {
        t.apply();
        hdr.data.y = NEST;
        hdr.data.y[7:0] = NEST[7:0];
        hdr.items[(bit<2>)NEST].a = 1;
        meta.cells[NEST & 3] = NEST;
        kept.write((bit<32>)NEST, NEST);
        put(NEST);
        hdr.items[1] = { NEST, NEST };
        if (NEST == 3) { hdr.data.y = 1; }
        if (hdr.data.x == 9 && NEST == 3 || NEST == 4) { hdr.data.y = 1; }
        switch (NEST) { 3: { hdr.data.y = 1; } }
    }
}
control egress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) { apply { } }
control update_sums(inout headers_t hdr, inout meta_t meta) { apply { } }
control deparse(packet_out pkt, in headers_t hdr) {
    meta_t meta;
    apply { pair_t own = { NEST, 1 }; pkt.emit(own); }
}
"""
WITH_CONDITIONS = EVERYWHERE.replace("pair_t own = { NEST, 1 }; pkt.emit(own);", "")
"""Places where a conditionally evaluated operand may need statements. A deparser has no such place."""
VALUE = """
parser parse(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    state start { pkt.extract(hdr.data); meta.cells[1] = 7; meta.cells[3] = 2; transition accept; }
}
control verify_sums(inout headers_t hdr, inout meta_t meta) { apply { } }
control ingress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    apply { std.egress_spec = 1; hdr.data.y = NEST; }
}
control egress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) { apply { } }
control update_sums(inout headers_t hdr, inout meta_t meta) { apply { CHECKSUM } }
control deparse(packet_out pkt, in headers_t hdr) { apply { pkt.emit(hdr.data); } }
"""

MASK = (1 << 64) - 1


def signed(v: int, width: int = 64) -> int:
    v &= (1 << width) - 1
    return v - (1 << width) if v >> (width - 1) else v


def clamped(v: int, low: int, high: int) -> int:
    return max(low, min(high, v))


@dataclass(frozen=True)
class Nest:
    """One level of a nest: the text around an inner bit<64>, and its value, both with operand x."""

    text: Callable[[str], str]
    value: Callable[[int, int], int]


CELLS = (0, 7, 0, 2)
OPERANDS = [(1, 1), (2, 3), (63, 5), (64, 0), (255, 1 << 40), (256, 256), (1 << 63, MASK), (MASK, 1 << 63), (3, 9)]
X = "hdr.data.x"
NESTS = {
    "<< by inner": Nest(lambda e: f"({X} << {e})", lambda e, x: x << e if e < 64 else 0),
    "inner <<": Nest(lambda e: f"({e} << {X})", lambda e, x: e << x if x < 64 else 0),
    "inner << inner": Nest(lambda e: f"(({e} + 1) << {X})", lambda e, x: (e + 1 & MASK) << x if x < 64 else 0),
    ">> by inner": Nest(lambda e: f"({X} >> {e})", lambda e, x: x >> e),
    "inner >>": Nest(lambda e: f"({e} >> (bit<9>){X})", lambda e, x: e >> x % 512),
    "signed >>": Nest(lambda e: f"((bit<64>)((int<64>){e} >> {X}))", lambda e, x: signed(e) >> x),
    "signed <<": Nest(lambda e: f"((bit<64>)((int<64>){X} << {e}))", lambda e, x: x << e if e < 64 else 0),
    "rotation": Nest(
        lambda e: f"(({e} << ({X} & 63)) | ({X} >> (64 - ({X} & 63))))",
        lambda e, x: (e << x % 64 & MASK) | x >> (64 - x % 64),
    ),
    "|+|": Nest(lambda e: f"({e} |+| {X})", lambda e, x: clamped(e + x, 0, MASK)),
    "|-|": Nest(lambda e: f"({X} |-| {e})", lambda e, x: clamped(x - e, 0, MASK)),
    "signed |+|": Nest(
        lambda e: f"((bit<64>)((int<64>){e} |+| (int<64>){X}))",
        lambda e, x: clamped(signed(e) + signed(x), -(1 << 63), (1 << 63) - 1),
    ),
    "signed |-|": Nest(
        lambda e: f"((bit<64>)((int<64>){X} |-| (int<64>){e}))",
        lambda e, x: clamped(signed(x) - signed(e), -(1 << 63), (1 << 63) - 1),
    ),
    "signed compare": Nest(lambda e: f"((int<64>){e} < 64s5 ? {X} : 64w3)", lambda e, x: x if signed(e) < 5 else 3),
    "least": Nest(lambda e: f"({e} < {X} ? 64w1 : {X})", lambda e, x: 1 if e < x else x),
    "condition": Nest(lambda e: f"({X} == 1 ? {e} : 64w6)", lambda e, x: e if x == 1 else 6),
    "casts": Nest(lambda e: f"((bit<64>)(int<64>)(int<32>)(bit<32>)({e}))", lambda e, x: signed(e, 32)),
    "bool": Nest(lambda e: f"((bit<64>)(bit<1>)({e} == {X}))", lambda e, x: int(e == x)),
    "slice": Nest(lambda e: f"((bit<64>)({e}[60:3]))", lambda e, x: e >> 3 & (1 << 58) - 1),
    "++": Nest(lambda e: f"({e}[31:0] ++ {X}[31:0])", lambda e, x: (e & 0xFFFFFFFF) << 32 | x & 0xFFFFFFFF),
    "signed ++": Nest(
        lambda e: f"((bit<64>)((int<32>){e}[31:0] ++ (int<32>){X}[31:0]))",
        lambda e, x: (e & 0xFFFFFFFF) << 32 | x & 0xFFFFFFFF,
    ),
    "all of them": Nest(
        lambda e: f"(((({e} |+| {X}) * 3 |-| {X}) >> ({X}[8:0])) ++ 8w5)[63:0]",
        lambda e, x: (clamped((clamped(e + x, 0, MASK) * 3 & MASK) - x, 0, MASK) >> x % 512) << 8 & MASK | 5,
    ),
    "negation": Nest(lambda e: f"(-(~{e}))", lambda e, x: -(~e)),
    "arithmetic": Nest(lambda e: f"({e} * {X} - {X} ^ 5)", lambda e, x: (e * x - x) ^ 5),
    "an array's element": Nest(lambda e: f"meta.cells[{e} & 3]", lambda e, x: CELLS[e & 3]),
    "moving slice": Nest(lambda e: f"((bit<64>){e}[{X}[5:0]+:8])", lambda e, x: e >> x % 64 & 0xFF),
    "slice moved by inner": Nest(lambda e: f"((bit<64>){X}[{e}[5:0]+:8])", lambda e, x: x >> e % 64 & 0xFF),
    "division": Nest(lambda e: f"({e} / 4 % 32 + {X})", lambda e, x: e // 4 % 32 + x),
    "equal tuples": Nest(
        lambda e: f"((tuple<bit<64>, bool>){{{e}, true}} != (tuple<bit<64>, bool>){{{X}, true}} ? {X} : 64w1)",
        lambda e, x: x if e != x else 1,
    ),
    "equal structs": Nest(
        lambda e: f"((pair_t){{a = {e}, b = 1}} == (pair_t){{a = {X}, b = 1}} ? 64w2 : 64w1)",
        lambda e, x: 2 if e == x else 1,
    ),
    "function that takes it twice": Nest(lambda e: f"shifted({e})", lambda e, x: e << e if e < 64 else 0),
    "function of statements": Nest(lambda e: f"squared({e})", lambda e, x: 2 * e * e),
}  # fmt: skip


def nested(nest: Nest, depth: int, inner: str = "hdr.data.y") -> str:
    for _ in range(depth):
        inner = nest.text(inner)
    return inner


CHECKSUMS = {
    "argument": "update_checksum(NEST == 3, { hdr.data.x }, hdr.data.y, HashAlgorithm.crc32);",
    "if": "if (NEST == 3) { update_checksum(true, { hdr.data.x }, hdr.data.y, HashAlgorithm.crc32); }",
}


@pytest.fixture
def compiled(tmp_path: Path) -> Callable[[str], Compiled]:
    def run(body: str) -> Compiled:
        path = tmp_path / "program.p4"
        path.write_text(HEAD + body + MAIN)
        return compile_program(path)

    return run


def sizes(compiled: Callable[[str], Compiled], body: str, nest: Nest) -> list[int]:
    """Return the numbers of characters of the JSON at depth 0, half and full depth, without quoted source."""
    return [size(compiled, body, nested(nest, depth)) for depth in (0, DEPTH // 2, DEPTH)]


def size(compiled: Callable[[str], Compiled], body: str, text: str) -> int:
    return characters(compiled(body.replace("NEST", text)))


def characters(program: Compiled) -> int:
    return len(json.dumps(without_source(program.json)))


def without_source(document: Any) -> Any:
    if isinstance(document, dict):
        return {k: without_source(v) for k, v in document.items() if k != "source_info"}
    return [without_source(v) for v in document] if isinstance(document, list) else document


@pytest.mark.parametrize("name", NESTS)
def test_json_in_proportion(compiled: Callable[[str], Compiled], name: str) -> None:
    none, half, whole = sizes(compiled, EVERYWHERE, NESTS[name])
    assert whole - none <= MOST_GROWTH * (half - none)


LEVELS = 16


@pytest.mark.parametrize("seed", range(3))
def test_mixed_nests(compiled: Callable[[str], Compiled], seed: int) -> None:
    """In a mixed nest each level adds the same to the JSON as in a nest of its kind, and computes the same."""
    names = random.Random(seed).choices(sorted(NESTS), k=LEVELS)
    text = "hdr.data.y"
    for name in names:
        text = NESTS[name].text(text)
    none, mixed = (size(compiled, WITH_CONDITIONS, each) for each in ("hdr.data.y", text))
    alone = {name: size(compiled, WITH_CONDITIONS, nested(NESTS[name], LEVELS)) - none for name in names}
    assert mixed - none <= MOST_GROWTH * sum(alone[name] / LEVELS for name in names)
    switch = load().Switch(str(build(compiled(VALUE.replace("NEST", text).replace("CHECKSUM", "")).program)))
    for x, y in OPERANDS:
        expected = y
        for name in names:
            expected = NESTS[name].value(expected, x) & MASK
        [(_, out)] = switch.process(0, x.to_bytes(8, "big") + y.to_bytes(8, "big"))
        assert int.from_bytes(out[8:], "big") == expected, (x, y)


@pytest.mark.parametrize("text", ["(pkt.lookahead<bit<64>>() |+| {})", "(pkt.lookahead<bit<64>>() << {})"])
def test_packets_looked_into_in_proportion(compiled: Callable[[str], Compiled], text: str) -> None:
    def program(depth: int) -> str:
        return (
            VALUE.replace("NEST", "0")
            .replace("CHECKSUM", "")
            .replace("meta.cells[1] = 7;", f"meta.cells[1] = {nested(Nest(text.format, lambda e, x: 0), depth)};")
        )

    none, half, whole = (characters(compiled(program(depth))) for depth in (0, DEPTH // 2, DEPTH))
    assert whole - none <= MOST_GROWTH * (half - none)


REPEATED = ("<< by inner", ">> by inner", "signed <<", "signed >>")
"""Operations that use the inner operand more than once."""
STATEMENTS = ("an array's element", "function that takes it twice", "function of statements")
"""Operations that need a variable at any depth, and are refused like any other statement in such a control."""


@pytest.mark.parametrize("place", CHECKSUMS)
@pytest.mark.parametrize("name", REPEATED)
def test_without_temporaries_nests_are_refused(compiled: Callable[[str], Compiled], name: str, place: str) -> None:
    body = VALUE.replace("NEST", "0").replace("CHECKSUM", CHECKSUMS[place])
    compiled(body.replace("NEST", nested(NESTS[name], 2)))
    with pytest.raises(CompileError, match="this expression takes over 400 operations") as refused:
        compiled(body.replace("NEST", nested(NESTS[name], DEPTH)))
    assert len(refused.value.diagnostics) == 1


@pytest.mark.parametrize("place", CHECKSUMS)
@pytest.mark.parametrize("name", sorted(NESTS.keys() - {*REPEATED, *STATEMENTS}))
def test_without_temporaries_in_proportion(compiled: Callable[[str], Compiled], name: str, place: str) -> None:
    none, half, whole = sizes(compiled, VALUE.replace("NEST", "0").replace("CHECKSUM", CHECKSUMS[place]), NESTS[name])
    assert whole - none <= MOST_GROWTH * (half - none)


@pytest.mark.parametrize("name", NESTS)
def test_values(compiled: Callable[[str], Compiled], name: str) -> None:
    nest = NESTS[name]
    body = VALUE.replace("NEST", nested(nest, DEPTH)).replace("CHECKSUM", "")
    switch = load().Switch(str(build(compiled(body).program)))
    for x, y in OPERANDS:
        expected = y
        for _ in range(DEPTH):
            expected = nest.value(expected, x) & MASK
        [(_, out)] = switch.process(0, x.to_bytes(8, "big") + y.to_bytes(8, "big"))
        assert int.from_bytes(out[8:], "big") == expected, (x, y)


def test_ranges_of_a_select_that_make_too_many_cases(compiled: Callable[[str], Compiled]) -> None:
    """Each of these ranges needs 126 values with masks."""
    select = "select(hdr.data.x, hdr.data.y, hdr.data.x) { (R, R, R): accept; default: accept; }"
    body = VALUE.replace("NEST", "0").replace("CHECKSUM", "").replace("transition accept;", f"transition {select}")
    with pytest.raises(CompileError, match="the ranges of this select make 2000376 cases of masks, at most 65536"):
        compiled(body.replace("R", "1 .. 0xfffffffffffffffe"))
