"""Expressions of C: casts, constant folding and parentheses."""

from __future__ import annotations

import pytest

from p4switch.engine import cexpr
from p4switch.engine.cexpr import C, Fields, Name, Number, Rows, String

FIELD = cexpr.widened(cexpr.packet("m").dot("meta").dot("port"))
LOADED = cexpr.call("p4_ld16", "uint64_t", "at")


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
    either = cexpr.both("||", less, cexpr.both("&&", less, Number(1, "int")))
    assert either.text == "p4_ld16(at) < 2 || (p4_ld16(at) < 2 && 1)"
    assert cexpr.negated(less).text == "p4_ld16(at) >= 2"
    assert cexpr.negated(either).text == f"!({either.text})"


def test_a_name_is_a_name_and_no_other_text() -> None:
    for text in ("", "1", "a + b", "p->m", "f(x)", "a;"):
        with pytest.raises(ValueError, match="is not a name in C"):
            Name(text)


def test_members_and_elements_follow_parentheses_where_c_needs_them() -> None:
    row = cexpr.cells("bank0", "banks", 0)[Name("i") + 1]
    assert row.dot("sum").text == "((bank0 *)(void *)sw->banks[0])[i + 1].sum"
    assert cexpr.size_of(row.address).text == "sizeof &((bank0 *)(void *)sw->banks[0])[i + 1]"
    assert (Name("a") - (Name("b") - 1)).text == "a - (b - 1)"
    assert ((Name("a") + 7) / 8 % 2).text == "((a + 7) / 8) % 2"
    assert cexpr.call(cexpr.switch("env").dot("digest"), "", "sw", Name("a") + 0).text == "sw->env.digest(sw, a)"


def test_numbers_without_a_type_are_decimal() -> None:
    for number, c_type, text in ((255, "", "255"), (-1, "", "-1"), (255, "int", "0xff"), (255, "uint64_t", "0xffull")):
        assert Number(number, c_type).text == text


def test_initialisers_omit_what_c_fills_with_zeros() -> None:
    rows = Rows([1, 2], "uint8_t")
    members: dict[str, C | str | int] = {"name": String('a"b?'), "rows": rows, "none": "NULL", "n": 0}
    assert Fields(members).text == r'{.name = "a\042b\077", .rows = (const uint8_t[]){1, 2}}'
    assert Fields({"n": 0}, "args_t").address.text == "&(const args_t){.n = 0}"
    assert Rows([]).text == "{0}"
