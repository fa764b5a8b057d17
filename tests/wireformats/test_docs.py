"""Tables of packets and their fields, made from the declarations."""

from __future__ import annotations

from pathlib import Path

import wireformats
from p4cc.cli import cli
from wireformats import docs


def test_the_page_has_every_packet_and_every_field() -> None:
    opcodes = wireformats.opcodes()
    text = docs.page(opcodes)
    for packet in opcodes.all():
        assert f"| {docs.numbers(packet)} | {packet.name} |" in text
        assert all(line in text for line in docs.layout_table(packet))
    assert "## SACK\n" in text
    assert "## target, data with target\n" in text  # alike, so they have one table
    assert "## int_record.link_rate_code\n\n| value | meaning |" in text


def test_the_command_writes_the_packets_of_a_protocol(tmp_path: Path) -> None:
    cli.main(["packets", "--cc", "eqds", "--docs", str(tmp_path / "eqds.md")], standalone_mode=False)
    made = (tmp_path / "eqds.md").read_text(encoding="utf-8")
    assert "| 0:0 | 64 | `granted` | [bytes] granted" in made
    assert "| FRP |" not in made
