"""Random expressions computed at compile time, on the switch, and by a model of the language in this file."""

from __future__ import annotations

import random
import struct
from dataclasses import dataclass
from pathlib import Path

import pytest

from p4switch.compiler import compile_program
from p4switch.engine import build, load

EXPRESSIONS = 60
PACKETS = 25


@dataclass(frozen=True)
class Typed:
    """An expression in P4, and its value for given operands."""

    text: str
    width: int
    signed: bool
    value: int


def wrap(value: int, width: int, signed: bool) -> int:
    value &= (1 << width) - 1
    return value - (1 << width) if signed and value >> (width - 1) else value


def clamp(value: int, width: int, signed: bool) -> int:
    low, high = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if signed else (0, (1 << width) - 1)
    return min(max(value, low), high)


class Maker:
    """Makes expressions over operands `names`; a seed always makes the same texts, for any values."""

    def __init__(self, seed: int, values: list[int], names: list[str]) -> None:
        self.rng = random.Random(seed)
        self.values = values
        self.names = names

    def leaf(self, width: int, signed: bool) -> Typed:
        if self.rng.random() < 0.3:
            value = wrap(self.rng.choice([0, 1, 2, self.rng.getrandbits(width), -1]), width, signed)
            kind = f"{width}{'s' if signed else 'w'}"
            text = f"(-{kind}{-value})" if value < 0 else f"{kind}{value}"
            return Typed(text, width, signed, value)
        i = self.rng.randrange(len(self.values))
        value = wrap(self.values[i], width, False)
        text = self.names[i] if width == 32 else f"(bit<{width}>){self.names[i]}"
        return Typed(f"(int<{width}>)({text})" if signed else f"({text})", width, signed, wrap(value, width, signed))

    def make(self, width: int, signed: bool, depth: int) -> Typed:
        if depth == 0:
            return self.leaf(width, signed)
        choice = self.rng.randrange(12)
        if choice <= 4:
            op = self.rng.choice(["+", "-", "*", "&", "|", "^", "|+|", "|-|"])
            a, b = self.make(width, signed, depth - 1), self.make(width, signed, depth - 1)
            exact = {
                "+": a.value + b.value, "-": a.value - b.value, "*": a.value * b.value, "&": a.value & b.value,
                "|": a.value | b.value, "^": a.value ^ b.value,
            }  # fmt: skip
            if op in exact:
                value = wrap(exact[op], width, signed)
            else:
                value = clamp(exact[op[1]], width, signed)
            return Typed(f"({a.text} {op} {b.text})", width, signed, value)
        if choice == 5:
            a, count = self.make(width, signed, depth - 1), self.make(4, False, depth - 1)
            if self.rng.random() < 0.5:
                return Typed(f"({a.text} << {count.text})", width, signed, wrap(a.value << count.value, width, signed))
            return Typed(f"({a.text} >> {count.text})", width, signed, wrap(a.value >> count.value, width, signed))
        if choice == 6:
            a = self.make(width, signed, depth - 1)
            if self.rng.random() < 0.5:
                return Typed(f"(~{a.text})", width, signed, wrap(~a.value, width, signed))
            return Typed(f"(-{a.text})", width, signed, wrap(-a.value, width, signed))
        if choice == 7:
            inner = self.rng.choice([w for w in (4, 8, 16, 32, 48) if w != width])
            a = self.make(inner, signed, depth - 1)
            return Typed(f"((int<{width}>){a.text})" if signed else f"((bit<{width}>){a.text})", width, signed,
                         wrap(a.value, width, signed))
        if choice == 8:
            a = self.make(width, not signed, depth - 1)
            kind = "int" if signed else "bit"
            return Typed(f"(({kind}<{width}>){a.text})", width, signed, wrap(a.value, width, signed))
        if choice == 9:
            wider = self.make(48, self.rng.random() < 0.3, depth - 1)
            low = self.rng.randrange(48 - width + 1)
            value = wrap(wider.value >> low, width, False)
            text = f"(({wider.text})[{low + width - 1}:{low}])"
            return Typed(f"(int<{width}>){text}" if signed else text, width, signed, wrap(value, width, signed))
        if choice == 10 and width > 4:
            left = self.rng.randrange(1, width)
            a, b = self.make(left, False, depth - 1), self.make(width - left, False, depth - 1)
            value = wrap(a.value << (width - left) | b.value, width, signed)
            text = f"({a.text} ++ {b.text})"
            return Typed(f"(int<{width}>){text}" if signed else text, width, signed, value)
        return self.mux(width, signed, depth)

    def mux(self, width: int, signed: bool, depth: int) -> Typed:
        inner, inner_signed = self.rng.choice([8, 16]), self.rng.random() < 0.5
        x, y = self.make(inner, inner_signed, depth - 1), self.make(inner, inner_signed, depth - 1)
        op = self.rng.choice(["<", "<=", ">", ">=", "==", "!="])
        holds = {"<": x.value < y.value, "<=": x.value <= y.value, ">": x.value > y.value, ">=": x.value >= y.value,
                 "==": x.value == y.value, "!=": x.value != y.value}[op]
        a, b = self.make(width, signed, depth - 1), self.make(width, signed, depth - 1)
        return Typed(f"({x.text} {op} {y.text} ? {a.text} : {b.text})", width, signed, (a if holds else b).value)


def expression(seed: int, values: list[int], names: list[str]) -> Typed:
    rng = random.Random(seed)
    width, signed = rng.choice([1, 4, 7, 8, 13, 16, 32]), rng.random() < 0.4
    return Maker(seed, values, names).make(max(width, 2 if signed else 1), signed, 3)


PROGRAM = """
#include <core.p4>
#include <v1model.p4>
header data_t {{ bit<8> op; bit<32> p; bit<32> q; bit<64> r; }}
struct headers_t {{ data_t data; }}
struct meta_t {{ }}
parser parse(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {{
    state start {{ pkt.extract(hdr.data); transition accept; }}
}}
control verify_sums(inout headers_t hdr, inout meta_t meta) {{ apply {{ }} }}
control ingress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {{
    apply {{
        std.egress_spec = 1;
        {body}
    }}
}}
control egress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {{ apply {{ }} }}
control update_sums(inout headers_t hdr, inout meta_t meta) {{ apply {{ }} }}
control deparse(packet_out pkt, in headers_t hdr) {{ apply {{ pkt.emit(hdr); }} }}
V1Switch(parse(), verify_sums(), ingress(), egress(), update_sums(), deparse()) main;
"""


def as_bits(e: Typed) -> str:
    text = f"(bit<{e.width}>)({e.text})" if e.signed else e.text
    return f"(bit<64>)({text})"


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_expressions(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    seeds = [rng.getrandbits(32) for _ in range(EXPRESSIONS)]
    fixed = [[rng.choice([0, 1, 0xFFFFFFFF, rng.getrandbits(32)]) for _ in range(2)] for _ in seeds]
    body = []
    for i, s in enumerate(seeds):
        e = expression(s, [0, 0], ["hdr.data.p", "hdr.data.q"])
        body.append(f"if (hdr.data.op == {i}) {{ hdr.data.r = {as_bits(e)}; }}")
        known = expression(s, fixed[i], [f"32w{v}" for v in fixed[i]])
        body.append(f"if (hdr.data.op == {128 + i}) {{ hdr.data.r = {as_bits(known)}; }}")
    path = tmp_path / "program.p4"
    path.write_text(PROGRAM.format(body="\n        ".join(body)))
    switch = load().Switch(str(build(compile_program(path).program)))

    def run(op: int, p: int, q: int) -> int:
        out = switch.process(0, struct.pack("!BIIQ", op, p, q, 0))
        result: int = struct.unpack("!BIIQ", out[0][1])[3]
        return result

    for i, s in enumerate(seeds):
        for _ in range(PACKETS):
            values = [rng.choice([0, 1, 0x80000000, 0xFFFFFFFF, rng.getrandbits(32)]) for _ in range(2)]
            e = expression(s, values, ["hdr.data.p", "hdr.data.q"])
            assert run(i, *values) == wrap(e.value, e.width, False), (e, values)
        known = expression(s, fixed[i], [f"32w{v}" for v in fixed[i]])
        assert run(128 + i, 0, 0) == wrap(known.value, known.width, False), (known, fixed[i])
