"""The tables of docs/wire-formats.md come from the declarations."""

from __future__ import annotations

from pathlib import Path

import pytest

import wireformats
from p4switch.errors import UserError
from wireformats import docs

PAGE = Path(__file__).parents[2] / "docs" / "wire-formats.md"


def test_the_page_is_current_and_has_every_packet() -> None:
    opcodes = wireformats.opcodes()
    text = PAGE.read_text(encoding="utf-8")
    assert docs.updated(text, opcodes) == text, "run: p4cc packets --docs docs/wire-formats.md"
    for packet in opcodes.all():
        assert f"| {docs.numbers(packet)} | {packet.name} |" in text


def test_only_what_lies_between_marks_is_made_anew() -> None:
    page = "before\n<!-- packets: pull -->\nold\n<!-- end of packets -->\nafter\n"
    made = docs.updated(page, wireformats.opcodes(["eqds"]))
    assert made.startswith("before\n<!-- packets: pull -->\n\n| byte:bit |")
    assert made.endswith("|\n\n<!-- end of packets -->\nafter\n")
    assert "| 0:0 | 64 | `granted` | [bytes] granted" in made
    assert "old" not in made


def test_a_section_that_nothing_is_known_of() -> None:
    for name, message in (("pul", "no packet 'pul'"), ("int_record.x", "int_record has no field 'x'")):
        with pytest.raises(UserError, match=message):
            docs.updated(f"<!-- packets: {name} -->\n<!-- end of packets -->", wireformats.opcodes())
