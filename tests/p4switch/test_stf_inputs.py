"""Inputs of a test: the clock, depths of queues, members of selectors, wide registers."""

from __future__ import annotations

from pathlib import Path

import pytest

from p4switch.architectures.packet_path import PACKET_PATHS
from p4switch.bmv2 import read
from p4switch.compiler import Compiled, compile_program
from p4switch.engine import build, load
from p4switch.errors import UserError
from p4switch.stf import run_test
from p4switch.stf.bmv2_inputs import CLOCK, DEPTH, PENDING, with_inputs
from p4switch.stf.bmv2_rig import Bmv2Switch, _prepared
from p4switch.stf.language import Command, parse
from p4switch.stf.runner import Runner

PROGRAM = """
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> kind; bit<8> seen; bit<16> delta; bit<32> at; bit<32> depth; bit<32> then; }
struct headers_t { h_t h; }
struct metadata_t { @field_list(1) bit<8> round; }
parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start { packet.extract(hdr.h); transition accept; }
}
control V(inout headers_t hdr, inout metadata_t meta) { apply { } }
control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    register<bit<96>>(4) wide;
    bit<96> x;
    action_selector(HashAlgorithm.crc16, 32w64, 32w10) members;
    action forward(bit<9> port) { sm.egress_spec = port; }
    table routes {
        key = { hdr.h.kind: exact; hdr.h.seen: selector; }
        actions = { forward; NoAction; }
        implementation = members;
    }
    apply {
        sm.egress_spec = 1;
        routes.apply();
        if (hdr.h.kind == 9 && meta.round == 0) {
            meta.round = 1;
            resubmit_preserving_field_list(1);
        }
        hdr.h.at = (bit<32>)sm.ingress_global_timestamp;
        wide.read(x, 2);
        if (x == 96w0x123456789abcdef012345678) { hdr.h.seen = 1; }
    }
}
control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply {
        hdr.h.depth = (bit<32>)sm.enq_qdepth;
        if (sm.enq_qdepth != sm.deq_qdepth || sm.enq_timestamp != sm.egress_global_timestamp[31:0]) { hdr.h.kind = 0; }
        hdr.h.delta = (bit<16>)sm.deq_timedelta;
        hdr.h.then = (bit<32>)sm.egress_global_timestamp;
    }
}
control C(inout headers_t hdr, inout metadata_t meta) { apply { } }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"""

TEST = """
clock 5000
queue 70000
register_write wide 2 0x123456789abcdef012345678
add routes hdr.h.kind:7 forward(port:3)
packet 0 07 00 ffff 00000000 00000000 00000000
expect 3 07 01 0000 00001388 00011170 00001388 $
packet 0 09 00 ffff 00000000 00000000 00000000
expect 1 09 01 0000 00000000 00011170 00001770 $
queue 0
clock 0xfffffffff0
register_write wide 2 0
packet 0 08 00 ffff 00000000 00000000 00000000
expect 1 08 00 0000 fffffff0 00000000 fffffff0 $
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("inputs") / "inputs.p4"
    path.write_text(PROGRAM)
    return path


@pytest.fixture(scope="module")
def compiled(program: Path) -> Compiled:
    return compile_program(program)


def test_clock_queue_and_members_on_the_built_in_switch(program: Path, tmp_path: Path) -> None:
    test = tmp_path / "inputs.stf"
    test.write_text(TEST)
    run_test(program, test)


def test_the_program_for_bmv2_finds_the_same_without_being_told_by_its_switch(compiled: Compiled) -> None:
    """The actions that precede the program's are run by the built-in switch, with its own clock."""
    commands = parse(TEST)
    instance = load().Switch(str(build(read(_prepared(compiled.json, commands)))), tick_ns=1000)

    class Told(Runner):
        wide = 0

        def _clock(self, command: Command) -> None:
            instance.register_write(CLOCK, 0, int(command.args, 0).to_bytes(6, "big"))

        def _queue(self, command: Command) -> None:
            instance.register_write(DEPTH, 0, int(command.args, 0).to_bytes(3, "big"))

        def _register_write(self, command: Command) -> None:
            instance.register_write(PENDING, self.wide, b"\1")
            self.wide += 1

    Told(compiled.program, instance).run(commands)


def test_a_program_without_such_commands_stays_as_it_is(compiled: Compiled) -> None:
    assert with_inputs(compiled.json, PACKET_PATHS.find("V1Switch"), False, False, []) is compiled.json


def test_how_bmv2_is_told(compiled: Compiled) -> None:
    said: list[str] = []

    def cli(command: str) -> str:
        said.append(command)
        return "Member has been created with handle 4\n"

    switch = Bmv2Switch(cli, compiled.json)
    handle = switch.member_add("I.members", "I.forward", [b"\0\3"])
    switch.table_add("I.routes", [(b"\7", b"")], 0, ("member", handle))
    switch.table_set_default("I.routes", ("member", handle))
    switch.register_write("I.wide", 1, bytes(12))
    switch.register_write("I.wide", 2, bytes(12))
    switch.register_write("I.narrow", 1, b"\xff" * 8)
    switch.clock_set(77)
    switch.depth_set(5)
    assert said == [
        "act_prof_create_member I.members I.forward 0x0003",
        "table_indirect_add I.routes 0x07 => 4",
        "table_indirect_set_default I.routes 4",
        f"register_write {PENDING} 0 1",
        f"register_write {PENDING} 1 1",
        "register_write I.narrow 1 -1",
        f"register_write {CLOCK} 0 77",
        f"register_write {DEPTH} 0 5",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("packet 0 00\nclock 9", "line 2: clock 9: expected a number from 1000 to 281474976710655"),
        ("queue 524288", "line 1: queue 524288: expected a number from 0 to 524287"),
        ("queue deep", "line 1: 'deep' is not a number"),
    ],
)
def test_mistakes(text: str, message: str, program: Path, tmp_path: Path) -> None:
    test = tmp_path / "mistake.stf"
    test.write_text(text)
    with pytest.raises(UserError) as error:
        run_test(program, test)
    assert str(error.value).splitlines()[0] == message


def test_a_test_that_is_no_text(program: Path, tmp_path: Path) -> None:
    test = tmp_path / "test.stf"
    test.write_bytes(b"packet 0 \xff\xfe")
    with pytest.raises(UserError, match=r"test\.stf: not a text file"):
        run_test(program, test)


def test_an_index_outside_of_a_wide_register(compiled: Compiled) -> None:
    with pytest.raises(UserError, match=r"line 1: register I\.wide: expected an index below 4, not 4"):
        _prepared(compiled.json, parse("register_write wide 4 1"))
