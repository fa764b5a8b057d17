"""Expressions of C: what is cast, folded and put into parentheses."""

from __future__ import annotations

from p4switch.engine import cexpr
from p4switch.engine.cexpr import Text

FIELD = cexpr.widened("p->m.meta.port")
LOADED = Text("p4_ld16(at)", "uint64_t")


def test_casts_stand_where_values_are_computed_with() -> None:
    less = cexpr.binary("-", FIELD, cexpr.literal(1))
    assert (less.bare, str(less)) == ("(uint64_t)p->m.meta.port - 1", "((uint64_t)p->m.meta.port - 1)")
    assert cexpr.compared("==", FIELD, cexpr.literal(5)).text == "p->m.meta.port == 5"
    assert cexpr.binary("&", FIELD, cexpr.literal(0xFF)).bare == "p->m.meta.port & 0xff"
    assert cexpr.shifted("<<", cexpr.literal(1), 40) == cexpr.literal(1 << 40)
    assert cexpr.cast("uint32_t", FIELD).text == "(uint32_t)p->m.meta.port"


def test_what_changes_nothing_is_left_out_and_constants_are_computed() -> None:
    assert cexpr.binary("+", LOADED, cexpr.literal(0)) is LOADED
    assert cexpr.shifted(">>", LOADED, 0) is LOADED
    assert cexpr.binary("*", cexpr.literal(3), cexpr.literal(1 << 63)) == cexpr.literal(1 << 63)
    assert cexpr.literal(1 << 31).bare == "0x80000000ull"


def test_parentheses_are_those_that_c_and_its_warnings_ask_for() -> None:
    total = cexpr.binary("+", LOADED, FIELD)
    assert cexpr.compared("<", total, cexpr.literal(9)).text == "p4_ld16(at) + (uint64_t)p->m.meta.port < 9"
    assert cexpr.binary("&", total, cexpr.literal(1)).text == "(p4_ld16(at) + (uint64_t)p->m.meta.port) & 1"
    less = cexpr.compared("<", LOADED, cexpr.literal(2))
    either = cexpr.both("||", less, cexpr.both("&&", less, Text("1", "int")))
    assert either.text == "p4_ld16(at) < 2 || (p4_ld16(at) < 2 && 1)"
    assert cexpr.negated(less).text == "p4_ld16(at) >= 2"
    assert cexpr.negated(either).text == f"!({either.text})"
