from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p4switch.compiler import constants
from p4switch.compiler.types import INT, Bits

bits = st.builds(Bits, st.integers(1, 70), st.booleans())


@given(bits, st.integers(-(1 << 80), 1 << 80))
def test_wrapping_keeps_the_value_modulo_the_width(t: Bits, value: int) -> None:
    wrapped = constants.wrap(value, t)
    assert constants.fits(wrapped, t)
    assert (wrapped - value) % (1 << t.width) == 0
    assert constants.wrap(wrapped, t) == wrapped


@given(bits, st.integers(), st.integers(), st.sampled_from(["|+|", "|-|"]))
def test_saturation(t: Bits, left: int, right: int, op: str) -> None:
    left, right = constants.wrap(left, t), constants.wrap(right, t)
    exact = left + right if op == "|+|" else left - right
    low, high = constants.limits(t)
    assert constants.arithmetic(op, left, right, t) == min(max(exact, low), high)


@given(bits, st.integers(), st.integers(), st.sampled_from(["+", "-", "*", "&", "|", "^"]))
def test_arithmetic_is_modulo_the_width(t: Bits, left: int, right: int, op: str) -> None:
    left, right = constants.wrap(left, t), constants.wrap(right, t)
    exact = constants.arithmetic(op, left, right, INT)
    assert constants.arithmetic(op, left, right, t) == constants.wrap(exact, t)


@given(bits, st.integers(), st.integers(0, 100))
def test_shifts(t: Bits, value: int, amount: int) -> None:
    value = constants.wrap(value, t)
    assert constants.arithmetic("<<", value, amount, t) == constants.wrap(value << amount, t)
    assert constants.arithmetic(">>", value, amount, t) == value >> amount


@pytest.mark.parametrize(
    ("op", "left", "right"), [("/", 1, 0), ("%", 1, 0), ("/", -1, 2), ("%", 3, -2), ("<<", 1, 1 << 40)]
)
def test_what_has_no_value(op: str, left: int, right: int) -> None:
    with pytest.raises(constants.ConstantError):
        constants.arithmetic(op, left, right, INT)
