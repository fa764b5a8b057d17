"""Declarations of TNA and T2NA: optional parameters, and the chip that a program is for."""

from __future__ import annotations

from pathlib import Path

import pytest

from p4switch.compiler import compile_program
from p4switch.compiler.diagnostics import CompileError
from p4switch.compiler.frontend import parse_and_check
from p4switch.compiler.passes import lowered

PROGRAM = """\
#if __TARGET_TOFINO__ == 2
#include <t2na.p4>
#else
#include <tna.p4>
#endif
header h_t { bit<32> a; bit<32> b; }
struct headers { h_t h; }
struct metadata {}
parser InParser(packet_in packet, out headers hdr, out metadata meta, out ingress_intrinsic_metadata_t intrinsic) {
    state start {
        packet.extract(intrinsic);
        packet.advance(PORT_METADATA_SIZE);
        packet.extract(hdr.h);
        transition accept;
    }
}
control In(inout headers hdr, inout metadata meta, in ingress_intrinsic_metadata_t intrinsic,
           in ingress_intrinsic_metadata_from_parser_t parsed,
           inout ingress_intrinsic_metadata_for_deparser_t deparsed,
           inout ingress_intrinsic_metadata_for_tm_t tm) {
    Register<bit<32>, _>(16, 0) cells;
    RegisterAction<bit<32>, _, bit<32>>(cells) count = {
        void apply(inout bit<32> value, out bit<32> result) { value = value + 1; result = value; }
    };
    RegisterAction<bit<32>, bit<4>, bit<32>>(cells) clear = { void apply(inout bit<32> value) { value = 0; } };
    CRCPolynomial<bit<16>>(16w0x8005, true, false, false, 0, 0) polynomial;
    Hash<bit<16>>(HashAlgorithm_t.CUSTOM, polynomial) hash;
    apply {
        hdr.h.a = count.execute(3);
        clear.execute(hdr.h.b[3:0]);
        tm.qid = (QueueId_t) hash.get({hdr.h.b});
        tm.ucast_egress_port = intrinsic.ingress_port;
        MORE
    }
}
control InDeparser(packet_out packet, inout headers hdr, in metadata meta,
                   in ingress_intrinsic_metadata_for_deparser_t deparsed) {
    Mirror() mirror;
    apply { if (deparsed.mirror_type == 1) { mirror.emit<h_t>(10w1, hdr.h); } packet.emit(hdr); }
}
parser OutParser(packet_in packet, out headers hdr, out metadata meta, out egress_intrinsic_metadata_t intrinsic) {
    state start { packet.extract(intrinsic); transition accept; }
}
control Out(inout headers hdr, inout metadata meta, in egress_intrinsic_metadata_t intrinsic,
            in egress_intrinsic_metadata_from_parser_t parsed,
            inout egress_intrinsic_metadata_for_deparser_t deparsed,
            inout egress_intrinsic_metadata_for_output_port_t port) { apply {} }
control OutDeparser(packet_out packet, inout headers hdr, in metadata meta,
                    in egress_intrinsic_metadata_for_deparser_t deparsed) { apply { packet.emit(hdr); } }
Pipeline(InParser(), In(), InDeparser(), OutParser(), Out(), OutDeparser()) pipe;
Switch(pipe) main;
"""


def refusal(folder: Path, more: str = "", arch: str | None = None) -> str:
    path = folder / "program.p4"
    path.write_text(PROGRAM.replace("MORE", more).replace("10w1", "(MirrorId_t) 1"))
    with pytest.raises(CompileError) as caught:
        lowered(parse_and_check(path, arch=arch))
    return str(caught.value).splitlines()[0]


def package(folder: Path, more: str = "", arch: str | None = None) -> str:
    path = folder / "program.p4"
    path.write_text(PROGRAM.replace("MORE", more).replace("10w1", "(MirrorId_t) 1"))
    return str(compile_program(path, arch=arch).json["__meta__"]["package"])


def test_the_package_or_arch_says_which_chip_it_is(tmp_path: Path) -> None:
    assert package(tmp_path) == "tna.Switch"
    assert package(tmp_path, arch="t2na") == "t2na.Switch"


def test_what_t2na_has_more_is_an_error_for_tna(tmp_path: Path) -> None:
    more = "deparsed.adv_flow_ctl = 1; tm.qid = 7w127;"
    assert "ingress_intrinsic_metadata_for_deparser_t has no member 'adv_flow_ctl'" in refusal(tmp_path, more)
    assert package(tmp_path, more, "t2na") == "t2na.Switch"


def test_a_method_that_is_not_optional_has_to_be_implemented(tmp_path: Path) -> None:
    declared = "Register<bit<8>, bit<8>>(4) r; RegisterAction<bit<8>, bit<8>, bit<8>>(r) a = { };"
    more = f"}}}} control Other() {{ {declared} apply {{"
    for arch in ("tna", "t2na"):
        told = refusal(tmp_path, more, arch)
        assert told.endswith("abstract method 'apply' of RegisterAction<bit<8>, bit<8>, bit<8>> is not implemented")


def test_a_parameter_that_is_not_optional_cannot_be_left_out(tmp_path: Path) -> None:
    path = tmp_path / "program.p4"
    text = PROGRAM.replace("MORE", "").replace("10w1", "(MirrorId_t) 1")
    between = ",\n" + 20 * " " + "in egress"
    assert f", in metadata meta{between}" in text
    path.write_text(text.replace(f", in metadata meta{between}", between))
    with pytest.raises(CompileError, match=r"expected EgressDeparserT<headers, metadata> .*, not OutDeparser"):
        parse_and_check(path)


ONE = "OutDeparser()) pipe;\nSwitch(pipe) main;"


def test_one_of_several_pipelines_is_compiled(tmp_path: Path) -> None:
    path = tmp_path / "program.p4"
    text = PROGRAM.replace("MORE", "").replace("10w1", "(MirrorId_t) 1")
    assert ONE in text
    path.write_text(text.replace(ONE, "OutDeparser()) pipe;\nSwitch(pipe, pipe) main;"))
    with pytest.raises(CompileError, match="the program has 2 pipelines; expected the number of one with it"):
        compile_program(path, arch="t2na")
    assert compile_program(path, arch="t2na", pipeline=1).pipelines == 2
