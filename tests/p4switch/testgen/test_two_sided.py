"""Generated tests of PSA and TNA programs cover all reachable statements, and pass on the built-in switch."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from p4cc.cli import cli
from p4switch.sources import SOURCE_DIRECTORY
from p4switch.stf import run_test
from tests.p4switch.architectures import test_psa as psa
from tests.p4switch.architectures import tofino
from tests.p4switch.architectures.test_tna import MIRROR
from tests.p4switch.architectures.test_tna import MIRRORED as TO_SESSION
from tests.p4switch.fabric.test_pipes import program as of_two_pipelines

pytest.importorskip("z3", reason="z3 is not installed")

from p4switch.testgen import generate, write
from p4switch.testgen.search import Result

MIRRORED = f"meta.copied.setValid(); {TO_SESSION}"
DEEPER = (
    "packet.extract(hdr.h); transition select(hdr.h.kind) { 7: more; default: accept; } }"
    " state more { packet.extract(hdr.sum); transition accept; }"
)
"""The rest of an egress parser that takes more than the ingress parser did."""


def generated(program: Path, arch: str, seconds: float = 60, pipeline: int | None = None) -> Result:
    """Return the result for a program whose statements can all be covered. Its tests pass."""
    code, result = generate(program, [SOURCE_DIRECTORY], seconds=seconds, arch=arch, pipeline=pipeline)
    folder = program.parent / "generated"
    files = write(folder, program, [SOURCE_DIRECTORY], code, result, arch=arch, pipeline=pipeline)
    for file in files:
        run_test(program, file, [SOURCE_DIRECTORY], arch=arch, pipeline=pipeline)
    assert (result.missing, result.only_unstable) == ([], [])
    return result


@pytest.mark.parametrize("pipeline", [0, 1])
def test_each_pipeline_of_a_program_has_tests_of_its_own(tmp_path: Path, pipeline: int) -> None:
    result = generated(of_two_pipelines(tmp_path), "tna", pipeline=pipeline)
    assert result.tests
    module = next((tmp_path / "generated").glob("test_*.py")).read_text()
    assert f"PIPELINE = {pipeline}" in module


PSA = {
    "resubmission with metadata": {
        "INGRESS_PARSER": "state start { packet.extract(hdr.h); meta.seen = resubmit_meta.note; transition accept; }",
        "INGRESS": """apply {
            if (istd.packet_path != PSA_PacketPath_t.RESUBMIT) { ostd.drop = false; ostd.resubmit = true; }
            else if (meta.seen == 0x20) { send_to_port(ostd, (PortId_t) 3); }
        }""",
        "INGRESS_DEPARSER": """apply {
            if (psa_resubmit(istd)) { resubmit_meta.note = hdr.h.value + 0x10; }
            if (psa_normal(istd)) { normal_meta.note = meta.seen; }
            packet.emit(hdr);
        }""",
        "EGRESS_PARSER": "state start { packet.extract(hdr.h); hdr.h.kind = normal_meta.note; transition accept; }",
    },
    "clones and recirculation": {
        "INGRESS": """apply {
            if (istd.packet_path == PSA_PacketPath_t.RECIRCULATE) { hdr.h.kind = 5; send_to_port(ostd, (PortId_t) 4); }
            else {
                ostd.clone = true;
                ostd.clone_session_id = (CloneSessionId_t) 5;
                send_to_port(ostd, PSA_PORT_RECIRCULATE);
            }
        }""",
        "EGRESS_PARSER": "state start { packet.extract(hdr.h); transition accept; }",
        "EGRESS": """apply {
            if (istd.packet_path == PSA_PacketPath_t.CLONE_E2E) { hdr.h.value = 0xE2; }
            else if (istd.packet_path == PSA_PacketPath_t.CLONE_I2E) { hdr.h.value = 0x12; }
            else if (hdr.h.kind == 5) { ostd.clone = true; ostd.clone_session_id = (CloneSessionId_t) 6; }
        }""",
    },
    "a group, and a port of an entry": {
        "INGRESS": """
            action to(PortId_t port) { send_to_port(ostd, port); }
            action all(MulticastGroup_t group) { multicast(ostd, group); }
            table where { key = { hdr.h.kind: exact; } actions = { to; all; NoAction; } }
            apply { where.apply(); }""",
        "EGRESS": """apply {
            if ((EgressInstanceUint_t) istd.instance == 3) { ostd.drop = true; }
            if (istd.packet_path == PSA_PacketPath_t.NORMAL_MULTICAST) { ostd.drop = true; }
        }""",
    },
    "what egress parses alone, and the time": {
        "EGRESS_PARSER": f"state start {{ {DEEPER}",
        "EGRESS": """apply {
            if (hdr.sum.isValid()) { if (hdr.sum.a == 0x1234) { hdr.h.value = 9; } }
            else if (istd.parser_error == error.PacketTooShort) { ostd.drop = true; }
            if ((TimestampUint_t) istd.egress_timestamp == 5000) { hdr.h.value = 1; }
        }""",
    },
    "a register, a meter and a checksum": {
        "INGRESS_PARSER": """
            InternetChecksum() ck;
            state start {
                packet.extract(hdr.sum);
                ck.add({hdr.sum.a, hdr.sum.b});
                meta.seen = (ck.get() == hdr.sum.sum) ? 8w1 : 0;
                transition accept;
            }""",
        "INGRESS": """
            Register<bit<16>, bit<4>>(16) last;
            Meter<bit<4>>(16, PSA_MeterType_t.PACKETS) meter;
            apply {
                send_to_port(ostd, (PortId_t) 2);
                if (meta.seen == 1 && last.read(hdr.sum.a[3:0]) == 0x7777) { hdr.sum.b = 1; }
                last.write(0, hdr.sum.a);
                if (meter.execute(1) == PSA_MeterColor_t.RED) { ostd.drop = true; }
            }""",
    },
}


@pytest.mark.parametrize("name", list(PSA))
def test_psa(tmp_path: Path, name: str) -> None:
    generated(psa.write(tmp_path, **PSA[name]), "psa")


RESUBMIT = {
    "INGRESS_PARSER": """
        state start {
            packet.extract(intrinsic);
            transition select(intrinsic.resubmit_flag) { 0: first; 1: again; }
        }
        state first { packet.advance(PORT_METADATA_SIZE); transition rest; }
        state again { packet.extract(meta.again); packet.advance(PORT_METADATA_SIZE - 64); transition rest; }
        state rest { packet.extract(hdr.h); transition accept; }""",
    "INGRESS": """apply {
        tm.ucast_egress_port = 2;
        if (intrinsic.resubmit_flag == 0) {
            meta.again.setValid();
            meta.again.data = hdr.h.value ++ 56w5;
            deparsed.resubmit_type = 0;
        } else if (meta.again.data[63:56] == 0x44) { hdr.h.value = 1; }
    }""",
    "INGRESS_DEPARSER": """
        Resubmit() resubmit;
        apply { if (deparsed.resubmit_type == 0) { resubmit.emit(meta.again); } packet.emit(hdr); }""",
}
TNA = {
    "filters that are not configured": {
        "INGRESS": """
            Lpf<bit<8>, bit<8>>(4) low_pass;
            Wred<bit<8>, bit<8>>(4, 1, 5) red;
            apply {
                tm.ucast_egress_port = 2;
                meta.seen = low_pass.execute(hdr.h.value, 1);
                if (meta.seen == 77 && red.execute(hdr.h.value, 2) == 5) { hdr.h.kind = 9; }
            }
        """,
    },
    "registers of entries": {
        "INGRESS": """
            DirectRegister<bit<8>>(3) cells;
            DirectRegisterAction<bit<8>, bit<8>>(cells) count = {
                void apply(inout bit<8> v, out bit<8> rv) { v = v + 1; rv = v; }
            };
            action hit() { hdr.h.value = count.execute(); }
            table t { key = { hdr.h.kind: exact; } actions = { hit; NoAction; } registers = cells; }
            apply {
                tm.ucast_egress_port = 2;
                t.apply();
                if (hdr.h.value == 4) { hdr.h.kind = 9; }
            }
        """,
    },
    "registers of constant entries": {
        "INGRESS": """
            DirectRegister<bit<8>>() cells;
            DirectRegisterAction<bit<8>, bit<8>>(cells) count = {
                void apply(inout bit<8> v, out bit<8> rv) { v = v + 1; rv = v; }
            };
            action hit() { hdr.h.value = count.execute(); }
            table t {
                key = { hdr.h.kind: exact; }
                actions = { hit; }
                const entries = { 1: hit(); 2: hit(); }
                default_action = hit();
                registers = cells;
            }
            apply {
                tm.ucast_egress_port = 2;
                t.apply();
                if (hdr.h.value == 1) { hdr.h.kind = 9; }
            }
        """,
    },
    "resubmission with data": RESUBMIT,
    "mirrors": {
        "INGRESS": f"apply {{ tm.ucast_egress_port = 2; if (hdr.h.kind == 9) {{ {MIRRORED} }} }}",
        "INGRESS_DEPARSER": MIRROR,
        "EGRESS_PARSER": "state start { packet.extract(intrinsic); packet.extract(hdr.h); transition accept; }",
        "EGRESS": f"apply {{ if (hdr.h.kind == 7) {{ hdr.h.kind = 8; {MIRRORED} }} "
        "else if (hdr.h.kind == 0xAA) { deparsed.drop_ctl = 1; } }",
        "EGRESS_DEPARSER": MIRROR,
    },
    "both groups, a port of an entry, bypass": {
        "INGRESS": """
            action to(PortId_t port, bit<1> bypass) { tm.ucast_egress_port = port; tm.bypass_egress = bypass; }
            action all(bit<16> group) { tm.mcast_grp_a = group; tm.mcast_grp_b = 7; tm.rid = 3; }
            table where { key = { hdr.h.kind: exact; } actions = { to; all; } }
            apply { where.apply(); }""",
        "EGRESS": """apply {
            if (intrinsic.egress_rid == 2 && intrinsic.egress_rid_first == 1) { deparsed.drop_ctl = 1; }
        }""",
    },
    "the queue, the time, the length and the port": {
        "INGRESS": """apply {
            tm.ucast_egress_port = 2;
            if (intrinsic.ingress_mac_tstamp == 7_000_000) { hdr.h.value = 1; }
            if (intrinsic.ingress_port == 300) { hdr.h.value = 2; }
        }""",
        "EGRESS": """apply {
            if (intrinsic.deq_qdepth == 77) { hdr.note.setValid(); hdr.note.note = 1; hdr.note.more = 2; }
            if (intrinsic.pkt_length == 400) { deparsed.drop_ctl = 1; }
        }""",
    },
    "what egress parses alone": {
        "EGRESS_PARSER": f"state start {{ packet.extract(intrinsic); {DEEPER}",
        "EGRESS": "apply { if (hdr.sum.isValid()) { if (hdr.sum.a == 0x1234) { hdr.h.value = 9; } } }",
    },
    "a checksum in a parser, and one over a payload": {
        "INGRESS_PARSER": """
            Checksum() sum; Checksum() rest;
            state start {
                packet.extract(intrinsic);
                packet.advance(PORT_METADATA_SIZE);
                packet.extract(hdr.sum);
                sum.add(hdr.sum);
                meta.wrong = sum.verify();
                rest.subtract_all_and_deposit(meta.residual);
                packet.extract(hdr.h);
                transition accept;
            }""",
        "INGRESS": """apply {
            tm.ucast_egress_port = 2;
            if (!meta.wrong && meta.residual == 0x0405) { hdr.sum.b = 0x1234; }
        }""",
        "INGRESS_DEPARSER": """
            Checksum() sum;
            apply { hdr.sum.sum = sum.update({hdr.sum.a, hdr.sum.b}); packet.emit(hdr); }""",
    },
    "a register action and a meter that knows the colour": {
        "INGRESS": """
            Register<pair_t, bit<8>>(256) pairs;
            RegisterAction<pair_t, bit<8>, bit<32>>(pairs) more = {
                void apply(inout pair_t value, out bit<32> found) {
                    if (value.lo == 0x1000) { value.hi = value.hi + 1; found = value.hi; }
                }
            };
            Meter<bit<8>>(256, MeterType_t.PACKETS) meter;
            apply {
                tm.ucast_egress_port = 2;
                if (more.execute(hdr.h.kind) == 9) { hdr.h.value = 1; }
                if (meter.execute(index = hdr.h.kind, color = MeterColor_t.YELLOW) != 1) { deparsed.drop_ctl = 1; }
            }""",
    },
}


@pytest.mark.parametrize("name", list(TNA))
def test_tna(tmp_path: Path, name: str) -> None:
    generated(tofino.write(tmp_path, **TNA[name]), "tna")


@pytest.mark.parametrize("name", ["resubmission with data", "mirrors"])
def test_t2na_has_more_in_front_and_mirrors_what_came(tmp_path: Path, name: str) -> None:
    generated(tofino.write(tmp_path, **TNA[name]), "t2na")


def test_t2na_cuts_packets_in_ingress_and_in_egress(tmp_path: Path) -> None:
    ingress = "apply { tm.ucast_egress_port = 2; if (hdr.h.kind == 1) { deparsed.mtu_trunc_len = 10; } }"
    egress = "apply { if (intrinsic.pkt_length == 10) { deparsed.mtu_trunc_len = 7; } }"
    result = generated(tofino.write(tmp_path, INGRESS=ingress, EGRESS=egress), "t2na")
    cut = {len(frame) for test in result.tests for _, frame in test.run.outputs}
    assert 3 in cut


def test_a_statement_for_a_port_that_there_is_not_cannot_be_reached(tmp_path: Path) -> None:
    egress = "apply { if (intrinsic.egress_port == 511) { deparsed.drop_ctl = 1; } }"
    result = generated(tofino.write(tmp_path, EGRESS=egress), "tna")
    assert [found.reason.partition(" at ")[0] for found in result.unreachable] == ["the condition is never true"]


def test_a_switch_program_as_tna(tmp_path: Path) -> None:
    """The command takes an architecture, and its output runs with it."""
    program = SOURCE_DIRECTORY / "int.p4"
    made = CliRunner().invoke(cli, ["testgen", str(program), "--arch", "tna", "-o", str(tmp_path), "--until", "3"])
    assert made.exit_code == 0, made.output
    module: dict[str, object] = {"__file__": str(tmp_path / "test_int.py")}
    exec((tmp_path / "test_int.py").read_text(), module)
    run = module["test_int"]
    assert callable(run)
    for test in tmp_path.glob("*.stf"):
        run(test.name)
