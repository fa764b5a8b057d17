"""Named warnings, each on a program that causes it: printed, silenced, and made errors."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from p4cc.commands.compile import command
from p4switch.compiler.frontend import parse_and_check
from p4switch.compiler.warnings import NAMES

PROGRAM = """
#include <core.p4>
#include <v1model.p4>
header h_t {{ bit<8> a; }}
struct headers {{ h_t h; h_t never; h_t[3] many; }}
struct meta {{ @field_list(1) bit<8> kept; }}
parser P(packet_in p, out headers hdr, inout meta m, inout standard_metadata_t s) {{
    state start {{ p.extract(hdr.h); {transition} }}
    {states}
}}
control V(inout headers hdr, inout meta m) {{ apply {{}} }}
control I(inout headers hdr, inout meta m, inout standard_metadata_t s) {{
    {locals}
    apply {{ {body} }}
}}
control E(inout headers hdr, inout meta m, inout standard_metadata_t s) {{ apply {{}} }}
control C(inout headers hdr, inout meta m) {{ apply {{}} }}
control D(packet_out p, in headers hdr) {{ apply {{ p.emit(hdr.h); }} }}
V1Switch(P(), V(), I(), E(), C(), D()) main;
"""
PLAIN = {"transition": "transition accept;", "states": "", "locals": "", "body": ""}
LOOP = {
    "transition": "transition one;",
    "states": "state one { transition select(hdr.h.a) { 0: two; default: accept; } } state two { transition one; }",
}


def write(folder: Path, **parts: str) -> Path:
    path = folder / "program.p4"
    path.write_text(PROGRAM.format(**{**PLAIN, **parts}))
    return path


@pytest.mark.parametrize(
    ("parts", "warning"),
    [
        ({"body": "bit<8> x; hdr.h.a = x;"}, "'x' is read before anything sets it [uninitialized]"),
        (
            {"body": "bit<8> x; if (hdr.h.a == 1) { hdr.h.a = x; } else { x = 1; }"},
            "'x' is read before anything sets it [uninitialized]",
        ),
        ({"body": "hdr.never.a = 1;"}, "nothing in this program makes header 'never' valid [invalid-header]"),
        ({"locals": "table t { actions = { NoAction; } }"}, "table 't' is never applied [unused]"),
        ({"locals": "action a() {}"}, "action 'a' is never used [unused]"),
        ({"locals": "register<bit<8>>(4) r;"}, "register 'r' is never used [unused]"),
        ({"body": "if (hdr.h.a >= 0) { hdr.h.a = 1; }"}, "the condition is always true [constant-condition]"),
        ({"body": "if (hdr.h.a != hdr.h.a) { hdr.h.a = 1; }"}, "the condition is always false [constant-condition]"),
        (
            {"transition": "transition select(hdr.h.a) { 9 .. 4: accept; default: accept; }"},
            "the range 9 .. 4 is empty: its low end is above its high end, so this case never matches [empty-range]",
        ),
        (LOOP, "state 'one' can come back to itself without taking anything [parser-loop]"),
        (
            {"locals": "table t { key = { hdr.h.a: selector; s.packet_length: exact; } actions = { NoAction; } }",
             "body": "t.apply();"},
            "table 't' has no action selector: this key is not used [selector]",
        ),
        ({"locals": "direct_counter(CounterType.packets) c;"}, "direct_counter 'c' belongs to no table [detached]"),
        (
            {"transition": "transition select(hdr.many.last.a) { 1: accept; default: reject; }"},
            "'last' of a stack that may be empty here: this target raises no StackOutOfBounds for its fields "
            "[target-differs]",
        ),
        (
            {"transition": "transition select(hdr.h.a) { 1: one; default: two; }",
             "states": "state one { p.extract(hdr.many.next); transition two; } "
                       "state two { hdr.h.a = hdr.many.last.a; transition accept; }"},
            "'last' of a stack that may be empty here: this target raises no StackOutOfBounds for its fields "
            "[target-differs]",
        ),
        (
            {"transition": "hdr.h.a = (bit<8>)s.packet_length; transition accept;", "body": "clone(CloneType.I2E, 5);"},
            "'packet_length' is 0 where a clone of ingress is parsed: this target keeps 'ingress_port' only "
            "[target-differs]",
        ),
        (
            {"transition": "hdr.h.a = m.kept; transition accept;",
             "body": "clone_preserving_field_list(CloneType.I2E, 5, 1);"},
            "'kept' is 0 where a clone of ingress is parsed: this target keeps 'ingress_port' only [target-differs]",
        ),
    ],
)  # fmt: skip
def test_each_is_told_once(tmp_path: Path, parts: dict[str, str], warning: str) -> None:
    found = [str(one).splitlines()[0] for one in parse_and_check(write(tmp_path, **parts)).warnings]
    assert [text.partition(" warning: ")[2] for text in found] == [warning]


@pytest.mark.parametrize(
    "parts",
    [
        {"body": "bit<8> x; if (hdr.h.a == 1) { x = 2; } hdr.h.a = x;"},
        {"body": "bit<8> x; random(x, 0, 9); hdr.h.a = x;"},
        {"locals": "bit<8> x; action set() { x = 1; } table t { actions = { set; } default_action = set(); }",
         "body": "t.apply(); hdr.h.a = x;"},
        {"body": "hdr.never.setValid(); hdr.never.a = 1;"},
        {"locals": '@noWarn("unused") action a() {}'},
        {"locals": "direct_counter(CounterType.packets) c; table t { actions = { NoAction; } counters = c; }",
         "body": "t.apply();"},
        {"locals": "action push(inout h_t x) { x.setValid(); } "
                   "table t { actions = { push(hdr.never); } default_action = push(hdr.never); }",
         "body": "t.apply(); hdr.never.a = 1;"},
        {"transition": "p.extract(hdr.many.next); transition select(hdr.many.last.a) { 1: more; default: accept; }",
         "states": "state more { p.extract(hdr.many.next); hdr.h.a = hdr.many.last.a; transition last; } "
                   "state last { hdr.h.a = hdr.many.last.a; transition accept; }"},
        {"transition": "hdr.h.a = (bit<8>)s.packet_length; transition accept;", "body": "clone(CloneType.E2E, 5);"},
        {"transition": "hdr.h.a = (bit<8>)s.ingress_port; transition accept;", "body": "clone(CloneType.I2E, 5);"},
        {"body": "headers x = { { 8w1 }, { 8w2 }, { {#}, {#}, {#} } }; hdr.h.a = x.never.a;"},
    ],
)  # fmt: skip
def test_what_is_meant_is_not_warned_of(tmp_path: Path, parts: dict[str, str]) -> None:
    assert parse_and_check(write(tmp_path, **parts)).warnings == []


@pytest.mark.parametrize("program", sorted((Path(__file__).parents[3] / "p4src").glob("*.p4")), ids=lambda p: p.stem)
def test_p4ccs_own_programs_have_none(program: Path) -> None:
    assert [str(one) for one in parse_and_check(program, [program.parent]).warnings] == []


def test_silenced_and_made_errors(tmp_path: Path) -> None:
    program, out = write(tmp_path, locals="action a() {}"), tmp_path / "out.json"
    plain = CliRunner().invoke(command, [str(program), "-o", str(out)])
    assert (plain.exit_code, out.exists()) == (0, True)
    assert re.search(r"program\.p4:13:\d+: warning: action 'a' is never used \[unused\]", plain.output)
    silent = CliRunner().invoke(command, [str(program), "-o", str(out), "--Wdisable", "unused"])
    assert (silent.exit_code, silent.output) == (0, "")
    out.unlink()
    refused = CliRunner().invoke(command, [str(program), "-o", str(out), "--Werror", "all"])
    assert (refused.exit_code, out.exists()) == (2, False)
    assert ": error: action 'a' is never used [unused]" in refused.output
    for name in NAMES:
        assert f"`{name}`" in (Path(__file__).parents[3] / "docs" / "validating.md").read_text()


def test_standard_output_and_two_names_of_one_file(tmp_path: Path) -> None:
    program = write(tmp_path)
    assert '"program": ' in CliRunner().invoke(command, [str(program), "-o", "-"]).output
    same = CliRunner().invoke(command, [str(program), "-o", str(tmp_path / "x"), "--p4info", f"{tmp_path}/./x"])
    assert "expected another file" in str(same.exception)
