"""P4 includes: the committed ones are current, and outside protocols and programs get theirs."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

import wireformats
from host_agents import registry
from host_agents.packets import HEXADECIMAL, TO_REACTION_POINT, Field, Header, Opcodes, Packet
from p4switch.compiler import compile_program
from p4switch.sources import SOURCE_DIRECTORY
from wireformats import p4

PROBE = Packet(
    "Probe",
    0xE8,
    (Header("probe", (Field("kind", 8, values={0x11: "up"}, display=HEXADECIMAL), Field("share", 24, "of a link"))),),
    to=TO_REACTION_POINT,
)
PROGRAM = """
#include "include/prelude.p4"
#include "include/packets/mine.p4"
struct headers_t { ethernet_t ethernet; ipv4_t ipv4; udp_t udp; bth_t bth; probe_t probe; }
struct metadata_t { common_metadata_t common; }
#include "include/parser.p4"
#include "include/checksum.p4"
parser Start(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    RoceParser() roce;
    state start {
        roce.apply(packet, hdr, meta, standard_metadata);
        transition select(meta.common.opcode) { OPCODE_PROBE: probe; default: accept; }
    }
    state probe { packet.extract(hdr.probe); transition accept; }
}
control In(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply { if (hdr.probe.isValid() && hdr.probe.kind == PROBE_UP) { hdr.probe.share = 7; } }
}
control Out(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) { apply {} }
control Emit(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }
V1Switch(Start(), VerifyIpv4Checksum(), In(), Out(), UpdateIpv4Checksum(), Emit()) main;
"""


def test_the_committed_includes_are_current() -> None:
    made = p4.includes(wireformats.opcodes())
    folder = SOURCE_DIRECTORY / p4.FOLDER
    assert {path.name: path.read_text() for path in folder.iterdir()} == made, "run: p4cc packets --p4 p4src"
    names = ("accurate", "collective", "dart", "eqds", "expresspass", "rccc", "rcp", "roce", "sperc")
    assert sorted(made) == [f"{name}.p4" for name in names]


@pytest.fixture
def mine(monkeypatch: pytest.MonkeyPatch) -> Opcodes:
    """Return the opcodes of an outside protocol, one of which a protocol of the package also has."""
    known = registry.protocols()
    info = dataclasses.replace(known["dctcp"], name="mine", packets=(PROBE,))
    monkeypatch.setattr(registry, "_protocols", {**known, "mine": info})
    return wireformats.opcodes(["mine"])


def test_a_protocol_from_elsewhere_gets_its_include(mine: Opcodes) -> None:
    text = p4.includes(mine)["mine.p4"]
    assert "const bit<8> OPCODE_PROBE = 0xE8;" in text
    assert "const bit<8> PROBE_UP = 0x11;" in text
    assert "    bit<24> share;  // of a link" in text


def test_a_program_from_elsewhere_compiles(mine: Opcodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("P4CC_CACHE", str(tmp_path / "cache"))
    program = tmp_path / "mine.p4"
    program.write_text(PROGRAM)
    path = p4.include_path(mine)
    assert p4.include_path(mine) == path
    (probe,) = (header for header in compile_program(program, path).json["header_types"] if header["name"] == "probe_t")
    assert probe["fields"] == [["kind", 8, False], ["share", 24, False]]


def test_only_what_has_changed_is_written(mine: Opcodes, tmp_path: Path) -> None:
    assert [path.name for path in p4.write(tmp_path, mine)] == ["roce.p4", "mine.p4"]
    assert p4.write(tmp_path, mine) == []


def test_a_damaged_include_in_the_cache_is_made_anew(
    mine: Opcodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("P4CC_CACHE", str(tmp_path))
    damaged = p4.include_path(mine)[1] / p4.FOLDER / "mine.p4"
    whole = damaged.read_text()
    damaged.write_text("header")
    p4.include_path(mine)
    assert damaged.read_text() == whole
    assert sorted(path.name for path in damaged.parent.iterdir()) == ["mine.p4", "roce.p4"]
