"""Quantities with units become numbers in the units of their keys."""

from __future__ import annotations

from typing import Any

import pytest

from p4switch.errors import Mistakes, UserError
from p4switch.quantities import doubts, with_numbers


@pytest.mark.parametrize(
    ("key", "text", "number"),
    [
        ("link_rate_bps", "100 Gb/s", 100_000_000_000),
        ("link_rate_bps", "2.5Gbit/s", 2_500_000_000),
        ("rate_bps", "12.5 GB/s", 100_000_000_000),
        ("limit_ns", "1 us", 1000),
        ("limit_ns", "1.5 µs", 1500),
        ("limit_ns", "1.5 \u03bcs", 1500),
        ("limit_ns", "1e-3 us", 1),
        ("limit_ns", "20 ms", 20_000_000),
        ("limit_ns", "0.1 ns", 0.1),
        ("size_bytes", "64 KiB", 65_536),
        ("size_bytes", "1 MB", 1_000_000),
        ("size_bytes", 64, 64),
        ("size_bytes", "many", "many"),
        ("name", "100 Gb/s", "100 Gb/s"),
        ("bps", "1 kb/s", 1000),
    ],
)
def test_a_quantity_is_a_number_in_its_keys_unit(key: str, text: Any, number: Any) -> None:
    assert with_numbers({"a": {key: text}, key: [text]}) == {"a": {key: number}, key: [number]}


@pytest.mark.parametrize(("key", "text"), [("link_rate_bps", "100 GB"), ("limit_ns", "1 h"), ("size_bytes", "1 kb")])
def test_a_wrong_unit_is_named_with_its_key(key: str, text: str) -> None:
    with pytest.raises(UserError) as caught:
        with_numbers({"topology": {key: text}})
    assert str(caught.value).startswith(f"topology.{key}: no unit '{text.split()[1]}' here; expected one of ")


@pytest.mark.parametrize("number", ["1e5000", "1e400000000", "1e-400000000", f"1e{'9' * 5000}", "9" * 5000, "1e19"])
def test_a_quantity_without_bounds_is_refused_before_it_is_a_number(number: str) -> None:
    with pytest.raises(UserError) as caught:
        with_numbers({"limit_ns": f"{number} ns"})
    assert str(caught.value).startswith(f"limit_ns: '{number[:30]}")
    assert "is out of range; expected a number below 2^63, as in '1 us'" in str(caught.value)
    assert len(str(caught.value)) < 150


@pytest.mark.parametrize(("bps", "meant"), [(100, "100 Gb/s"), (40_000, "40 Mb/s")])
def test_a_rate_that_is_hardly_meant_is_answered(bps: int, meant: str) -> None:
    (told,) = doubts({"topology": {"link_rate_bps": bps, "fabric_rate_bps": 10**9}})
    assert told.startswith("topology.link_rate_bps: ")
    assert f"'{meant}' was probably meant" in told


def test_wrong_units_are_told_together_and_left_out() -> None:
    mistakes = Mistakes()
    tables = {"a": {"limit_ns": "1 h", "x_bytes": "1 kB"}, "rates_bps": ["1 GB", "1 Gb/s"]}
    assert with_numbers(tables, mistakes) == {"a": {"x_bytes": 1000}, "rates_bps": [10**9]}
    with pytest.raises(UserError, match=r"^a.limit_ns: no unit 'h' here;.*; rates_bps.0: no unit 'GB' here; "):
        mistakes.tell()
