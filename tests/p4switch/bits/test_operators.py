"""Operators over integers compared with exact arithmetic, and over formulas compared with integers."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p4switch import ir
from p4switch.bits import operators
from p4switch.bits.domain import fits, limits, unsigned, width, wrap
from p4switch.bits.integers import INTEGERS
from p4switch.compiler.semantics import constants
from p4switch.compiler.types import BOOL, INT, Bits
from tests.p4switch.bits.operations import OPERATORS, operation

bits = st.builds(Bits, st.integers(1, 70), st.booleans())


def binary(op: str, t: Bits, left: int, right: int) -> int:
    return operators.binary(INTEGERS, op, t, t, left, right)


@given(bits, st.integers(-(1 << 80), 1 << 80))
def test_wrapping_keeps_the_value_modulo_the_width(t: Bits, value: int) -> None:
    wrapped = wrap(value, t)
    assert fits(wrapped, t)
    assert (wrapped - value) % (1 << t.width) == 0
    assert wrap(wrapped, t) == wrapped
    assert wrap(unsigned(wrapped, t), t) == wrapped


@given(bits, st.integers(), st.integers(), st.sampled_from(["|+|", "|-|"]))
def test_saturation(t: Bits, left: int, right: int, op: str) -> None:
    left, right = wrap(left, t), wrap(right, t)
    exact = left + right if op == "|+|" else left - right
    low, high = limits(t)
    assert binary(op, t, left, right) == min(max(exact, low), high)


@given(bits, st.integers(), st.integers(), st.sampled_from(["+", "-", "*", "&", "|", "^"]))
def test_arithmetic_is_modulo_the_width(t: Bits, left: int, right: int, op: str) -> None:
    left, right = wrap(left, t), wrap(right, t)
    exact = operators.binary(INTEGERS, op, INT, INT, left, right)
    assert binary(op, t, left, right) == wrap(exact, t)


@given(bits, st.integers(), st.integers(0, 100))
def test_shifts(t: Bits, value: int, amount: int) -> None:
    value = wrap(value, t)
    assert binary("<<", t, value, amount) == wrap(value << amount, t)
    assert binary(">>", t, value, amount) == value >> amount


@given(bits, bits, st.integers(), st.integers())
def test_a_concatenation_has_the_bits_of_both(of_a: Bits, of_b: Bits, a: int, b: int) -> None:
    a, b = wrap(a, of_a), wrap(b, of_b)
    t = Bits(of_a.width + of_b.width, of_a.signed)
    joined = operators.concatenate(INTEGERS, t, of_a, of_b, a, b)
    assert fits(joined, t)
    text = f"{unsigned(a, of_a):0{of_a.width}b}{unsigned(b, of_b):0{of_b.width}b}"
    assert f"{unsigned(joined, t):0{t.width}b}" == text
    assert INTEGERS.extract(joined, t.width - 1, of_b.width) == unsigned(a, of_a)


@pytest.mark.parametrize(
    ("op", "left", "right"),
    [("/", 1, 0), ("%", 1, 0), ("/", -1, 2), ("%", 3, -2), ("<<", 1, 1 << 40), ("*", 1 << 9000, 1 << 9000)],
)
def test_what_has_no_value_at_compile_time(op: str, left: int, right: int) -> None:
    with pytest.raises(constants.ConstantError):
        constants.arithmetic(op, left, right, INT)


@st.composite
def operations(draw: st.DrawFn, op: str) -> tuple[ir.Op, list[int]]:
    """Draw the operator with operands of valid types, and their values."""
    t = draw(bits)
    other, length = draw(bits), draw(st.integers(1, t.width))
    amount = draw(st.sampled_from([Bits(other.width), Bits(7)]))
    low = draw(st.integers(0, t.width - length))
    expr = operation(op, t, other, amount, (low + length - 1, low))
    kinds = [a.type for a in expr.args if isinstance(a, ir.FieldRef)]
    return expr, [wrap(draw(st.integers(-(1 << 71), 1 << 71)), k) for k in kinds]


@pytest.mark.parametrize("op", OPERATORS)
@settings(deadline=None)
@given(st.data())
def test_formulas_have_the_values_of_integers(op: str, data: st.DataObject) -> None:
    z3 = pytest.importorskip("z3", reason="z3 is not installed")
    from p4switch.bits.formulas import FORMULAS

    expr, values = data.draw(operations(op))
    variables = [z3.Bool(f"b{i}") if a.type == BOOL else z3.BitVec(f"v{i}", width(a.type))
                 for i, a in enumerate(expr.args[: len(values)])]  # fmt: skip
    try:
        expected = operators.evaluate(INTEGERS, expr, values)
    except ZeroDivisionError:
        return
    if isinstance(expr.type, Bits):
        assert fits(expected, expr.type)
    formula = operators.evaluate(FORMULAS, expr, variables)
    known = [(v, FORMULAS.constant(n, a.type)) for v, n, a in zip(variables, values, expr.args, strict=False)]
    found = z3.simplify(z3.substitute(formula, *known))
    assert (int(z3.is_true(found)) if expr.type == BOOL else found.as_long()) == unsigned(expected, expr.type)
