"""The text of a program, and how passes change it."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from p4switch.compiler import passes
from p4switch.compiler.frontend import parse_and_check

PROGRAM = """\
#include <v1model.p4>
header h_t { bit<8> kind; bit<8> left; bit<16> value; }
struct headers { h_t h; h_t[2] more; }
struct metadata { bit<8> seen; }
parser P(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.h);
        transition select(hdr.h.kind, hdr.h.left) { (1, _): more; (2, 4 &&& 12): accept; default: reject; }
    }
    state more { packet.extract(hdr.more.next); transition accept; }
}
control V(inout headers hdr, inout metadata meta) { apply {} }
control I(inout headers hdr, inout metadata meta, inout standard_metadata_t sm) {
    register<bit<16>>(8) last;
    action forward(bit<9> port) { sm.egress_spec = port; }
    action drop() { mark_to_drop(sm); }
    table route {
        key = { hdr.h.value: lpm; }
        actions = { forward; drop; }
        const entries = { 0x1200 &&& 0xff00: forward(3); }
        default_action = drop();
    }
    apply {
        if (hdr.h.isValid() && hdr.h.left > 1) {
            hdr.h.left = hdr.h.left - 1;
            last.write((bit<32>)hdr.h.kind, hdr.h.value);
        }
        if (!route.apply().hit) { hdr.more[0].setInvalid(); }
    }
}
control E(inout headers hdr, inout metadata meta, inout standard_metadata_t sm) { apply {} }
control D(packet_out packet, in headers hdr) { apply { packet.emit(hdr); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
"""
TEXT = """\
type h_t
  bit<8> kind
  bit<8> left
  bit<16> value

headers
  h_t h
  h_t more[0]
  h_t more[1]
  h_t[2] more = more[0], more[1]

variables
  bit<8> scalars.userMetadata.seen

objects
  register I.last size 8 width 16

parser
  start:
    extract(h)
    select h.kind, h.left
      0x1, 0x0 &&& 0x0: more
      0x2, 0x4 &&& 0xc: b2
      0x0 &&& 0x0, 0x0 &&& 0x0: b3
  more:
    extract(more.next)
    goto b2
  b2:
    accept
  b3:
    accept

ingress
  b0:
    if (h.isValid() && (h.left > 8w1)): b1 else b2
  b1:
    h.left = (h.left - 8w1)
    register_write(I.last, h.kind, h.value)
    goto b2
  b2:
    apply I.route
      hit: b4
      miss: b3
      default: b3
  b3:
    more[0].setInvalid()
    goto b4
  b4:
    end

egress
  b0:
    end

deparser
  emit h
  emit more[0]
  emit more[1]

table I.route
  key h.value: lpm 'hdr.h.value'
  action I.forward
  action I.drop
  default I.drop()
  entry const 1: 0x1200/0xff00 -> I.forward(3)
  size 1024

action I.forward(bit<9> port)
  b0:
    standard_metadata.egress_spec = data0
    end

action I.drop()
  b0:
    mark_to_drop(standard_metadata)
    end
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("program") / "program.p4"
    path.write_text(PROGRAM)
    return path


def after(path: Path, name: str) -> str:
    return passes.inspect(parse_and_check(path), name, check=True)


def test_a_program_after_simplification(path: Path) -> None:
    assert after(path, "simplify") == TEXT


def idle(text: str) -> list[str]:
    """Return the blocks that only lead to another one."""
    return [a for a, b in itertools.pairwise(text.splitlines()) if a.endswith(":") and b.startswith("    goto")]


def test_simplification_leaves_no_block_that_only_goes_on(path: Path) -> None:
    assert idle(after(path, passes.LOWER))
    assert not idle(after(path, "simplify"))


def test_bmv2_has_no_conditions_in_parsers(tmp_path: Path) -> None:
    path = tmp_path / "program.p4"
    path.write_text(PROGRAM.replace("state more { ", "state more { if (hdr.h.left == 3) { meta.seen = 1; } "))
    condition = "    if (h.left == 8w3): "
    assert condition in after(path, "simplify")
    text = after(path, "parser-conditions")
    assert condition not in text
    assert "    scalars.parser.$branch = (h.left == 8w3)\n    select scalars.parser.$branch\n" in text


def test_a_table_continues_in_one_way(tmp_path: Path) -> None:
    path = tmp_path / "program.p4"
    again = "if (!route.apply().hit) { hdr.more[0].setInvalid(); }"
    path.write_text(PROGRAM.replace(again, f"{again} if (route.apply().hit) {{ hdr.more[1].setInvalid(); }}"))
    assert after(path, "parser-conditions").count("apply I.route\n      hit: b") == 2
    text = after(path, "one-site-per-table")
    assert "scalars.I.route.$site = 32w1" in text
    assert "if (scalars.I.route.$site == 32w0): " in text
    ways = [text[i:].split("\n")[1:4] for i in range(len(text)) if text.startswith("    apply I.route", i)]
    assert len(ways) == 2
    assert ways[0] == ways[1]
