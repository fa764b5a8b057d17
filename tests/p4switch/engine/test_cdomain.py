"""Operators in C compared with the same operators over Python's integers."""

from __future__ import annotations

import ctypes
import itertools
import random
from collections.abc import Callable, Iterator, Mapping, Sequence

import pytest

from p4switch import ir, native
from p4switch.bits.domain import unsigned, width, wrap
from p4switch.bits.integers import INTEGERS
from p4switch.bits.operators import COMPARISONS, evaluate
from p4switch.compiler.types import BOOL, INT, Bits
from p4switch.engine import C_FOLDER, cexpr, cnodes
from p4switch.engine.cdomain import CValues
from p4switch.engine.cexpr import Name
from p4switch.engine.cnodes import Declare
from p4switch.engine.emit import Emitter
from p4switch.engine.value import Native, Value, convert, flag, low_rep
from tests.p4switch.bits.operations import OPERATORS, operation

NESTED = [op for op in OPERATORS if op not in {"/", "%", *COMPARISONS, "&&", "||", "!", "truth"}]
_EDGES = (0, 1, 2, -1, -2)
_IN_LIMBS, _OUT_LIMBS = 6, 16


def drawn(op: str, t: Bits, rng: random.Random) -> ir.Op:
    """Return the operator with fields as operands; `t` is the type of the first, except for conditions."""
    other = Bits(rng.randint(1, 200), rng.random() < 0.5)
    low = rng.randrange(t.width)
    return operation(op, t, other, rng.choice([Bits(other.width), Bits(8)]), (rng.randrange(low, t.width), low))


def tree(t: Bits, depth: int, rng: random.Random, names: Iterator[int]) -> ir.Expr:
    """Return a random expression of type `t`, whose fields have names from `names`."""
    if not depth or rng.random() < 0.1:
        if rng.random() < 0.3:
            return ir.Const(wrap(rng.getrandbits(t.width), t), t)
        return ir.FieldRef("h", f"f{next(names)}", t)
    op = rng.choice(NESTED)
    other = Bits(rng.randint(1, 200), rng.random() < 0.5)
    if op in ("<<", ">>"):
        return ir.Op(op, (tree(t, depth - 1, rng, names), tree(Bits(8), depth - 1, rng, names)), t)
    if op in ("~", "neg", "cast"):
        return ir.Op(op, (tree(other if op == "cast" else t, depth - 1, rng, names),), t)
    if op in ("?:", "number"):
        sides = tuple(tree(other, depth - 1, rng, names) for _ in range(2))
        compared = ir.Op(rng.choice(sorted(COMPARISONS)), sides, BOOL)
        if op == "number":
            return ir.Op("cast", (compared,), t)
        return ir.Op(op, (compared, tree(t, depth - 1, rng, names), tree(t, depth - 1, rng, names)), t)
    if op == "slice" and not t.signed:
        low = rng.randrange(20)
        whole = tree(Bits(t.width + low + rng.randrange(20), other.signed), depth - 1, rng, names)
        return ir.Op(op, (whole, ir.Const(low + t.width - 1, INT), ir.Const(low, INT)), t)
    if op == "++" and t.width > 1:
        left = rng.randrange(1, t.width)
        halves = Bits(left, t.signed), Bits(t.width - left, other.signed)
        return ir.Op(op, tuple(tree(half, depth - 1, rng, names) for half in halves), t)
    if op in ("slice", "++"):
        op = "+"
    return ir.Op(op, (tree(t, depth - 1, rng, names), tree(t, depth - 1, rng, names)), t)


def fields(expr: ir.Expr) -> Iterator[ir.FieldRef]:
    if isinstance(expr, ir.Op):
        for arg in expr.args:
            yield from fields(arg)
    elif isinstance(expr, ir.FieldRef):
        yield expr


def in_c(domain: CValues, expr: ir.Expr) -> Value:
    if isinstance(expr, ir.Const):
        return domain.constant(expr.value, expr.type)
    if isinstance(expr, ir.FieldRef):
        at = _IN_LIMBS * int(expr.name[1:])
        if expr.type == BOOL:
            return flag(cexpr.cast("int", Name("in")[at]))
        assert isinstance(expr.type, Bits)
        code = Name("in")[at] if expr.type.width <= 64 else Name("in") + at
        return Native(expr.type.width, expr.type.signed, code).load(domain.em)
    assert isinstance(expr, ir.Op)
    return evaluate(domain, expr, [in_c(domain, arg) for arg in expr.args])


def in_python(expr: ir.Expr, inputs: Mapping[str, int]) -> int:
    if isinstance(expr, ir.Const):
        return expr.value
    if isinstance(expr, ir.FieldRef):
        return inputs[expr.name]
    assert isinstance(expr, ir.Op)
    return evaluate(INTEGERS, expr, [in_python(arg, inputs) for arg in expr.args])


def function(name: str, expr: ir.Expr) -> str:
    """Return a C function that stores the exact value as a wide integer, and its low bits after that."""
    em = Emitter()
    value = in_c(CValues(em), expr)
    whole = convert(em, value, low_rep(64 * _OUT_LIMBS))
    out = Name("out")
    em.call("memcpy", out, whole, 8 * _OUT_LIMBS)
    bits = width(expr.type)
    Native(bits, False, out[_OUT_LIMBS] if bits <= 64 else out + _OUT_LIMBS).store(em, value.lowest(em, bits))
    parameters = Declare("const uint64_t *", "in"), Declare("uint64_t *", "out")
    return cnodes.source([cnodes.Function("void", name, parameters, em.body)])


def check(exprs: Sequence[ir.Expr], rng: random.Random, times: int) -> None:
    text = '#include "wide.h"\n' + "\n".join(function(f"f{i}", expr) for i, expr in enumerate(exprs))
    library = ctypes.CDLL(str(native.build_text("operators", text, headers=[C_FOLDER / "wide.h"],
                                                flags=["-O1", "-Wno-unused"])))
    out = (ctypes.c_uint64 * (2 * _OUT_LIMBS))()
    for i, expr in enumerate(exprs):
        call: Callable[..., None] = library[f"f{i}"]
        types = {field.name: field.type for field in fields(expr)}
        for _ in range(times):
            inputs = {
                name: wrap(rng.choice(_EDGES) if rng.random() < 0.4 else rng.getrandbits(200), t)
                for name, t in types.items()
            }
            stored = bytearray(8 * _IN_LIMBS * (1 + max((int(name[1:]) for name in types), default=0)))
            for name, value in inputs.items():
                at = 8 * _IN_LIMBS * int(name[1:])
                stored[at : at + 8 * _IN_LIMBS] = unsigned(value, types[name]).to_bytes(8 * _IN_LIMBS, "little")
            try:
                expected = in_python(expr, inputs)
            except ZeroDivisionError:
                expected = 0
            call(ctypes.create_string_buffer(bytes(stored)), out)
            data, size = bytes(out), 8 * _OUT_LIMBS
            assert int.from_bytes(data[:size], "little", signed=True) == expected, (str(expr), inputs)
            assert unsigned(int.from_bytes(data[size:], "little"), expr.type) == unsigned(expected, expr.type)


@pytest.mark.parametrize("op", [*OPERATORS, "saturate"])
def test_operators_of_all_widths(op: str) -> None:
    rng = random.Random(op)
    exprs = [drawn(op, Bits(bits, rng.random() < 0.5), rng) for bits in range(1, 201)]
    check(exprs, rng, times=12)


@pytest.mark.parametrize("seed", range(4))
def test_nested_operators(seed: int) -> None:
    rng = random.Random(seed)
    exprs = [tree(Bits(rng.randint(1, 200), rng.random() < 0.5), 4, rng, itertools.count()) for _ in range(60)]
    check(exprs, rng, times=12)
