"""Programs for PSA, TNA and T2NA: two parsers, bytes between ingress and egress, and special units of chips."""

from __future__ import annotations

from pathlib import Path

import pytest

from p4switch.compiler.diagnostics import CompileError
from p4switch.fit import load, measure
from p4switch.sources import SOURCE_DIRECTORY
from tests.p4switch.architectures import test_psa as psa
from tests.p4switch.architectures.tofino import write, write_with_ghost

STAGES12 = load("stages12")
ECN = SOURCE_DIRECTORY / "ecn.p4"


@pytest.mark.parametrize(("arch", "target"), [("tna", "stages12"), ("t2na", "stages20")])
def test_ecn_fits_in_the_form_for_its_chip(arch: str, target: str) -> None:
    assert [str(finding) for finding in measure(ECN, arch=arch).fit(load(target)).findings] == []
    assert measure(ECN).fit(load(target)).findings


def test_trim_fits_the_chip_that_shows_its_queues() -> None:
    fit = measure(SOURCE_DIRECTORY / "trim.p4", arch="t2na").fit(load("stages20"))
    assert [str(finding) for finding in fit.findings] == []


def rules(folder: Path, **blocks: str) -> list[str]:
    return [finding.rule for finding in measure(write(folder, **blocks), arch="tna").fit(STAGES12).findings]


@pytest.mark.parametrize(
    ("ingress", "found"),
    [
        ("apply { hdr.wide.a = max(hdr.wide.a, hdr.wide.b); tm.ucast_egress_port = 2; }", []),
        ("apply { if (hdr.wide.a > hdr.wide.b) { tm.ucast_egress_port = 2; } }", ["wide-compare"]),
        (
            "Hash<bit<32>>(HashAlgorithm_t.CRC32) crc;"
            " apply { hdr.wide.a = crc.get({ hdr.wide.b }); tm.ucast_egress_port = 2; }",
            [],
        ),
        ("Random<bit<16>>() draws; apply { meta.residual = draws.get(); tm.ucast_egress_port = 2; }", []),
    ],
)
def test_what_a_chip_has_an_operation_for_is_no_finding(tmp_path: Path, ingress: str, found: list[str]) -> None:
    assert rules(tmp_path, INGRESS=ingress) == found


def test_a_checksum_unit_is_no_arithmetic_of_the_parser(tmp_path: Path) -> None:
    unit = (
        "Checksum() sum; state start { packet.extract(intrinsic); packet.advance(PORT_METADATA_SIZE);"
        " packet.extract(hdr.wide); sum.add(hdr.wide); meta.wrong = sum.verify(); transition accept; }"
    )
    assert rules(tmp_path, INGRESS_PARSER=unit) == []
    spelled = (
        "state start { packet.extract(intrinsic); packet.advance(PORT_METADATA_SIZE); packet.extract(hdr.h);"
        " meta.seen = hdr.h.kind + 1; transition accept; }"
    )
    assert rules(tmp_path, INGRESS_PARSER=spelled) == ["parser-arithmetic"]


def test_headers_are_of_one_side_and_metadata_stays_on_its_side(tmp_path: Path) -> None:
    """Egress has the 27 bytes before its packets. A field that only ingress uses is not live there."""
    egress = "apply { meta.port = meta.port + 1; hdr.wide.setValid(); hdr.wide.a = (bit<32>) meta.port; }"
    plain = measure(write(tmp_path), arch="tna")
    kept = measure(write(tmp_path, EGRESS=egress), arch="tna")
    assert plain.phv.header_bits == 27 * 8
    assert kept.phv.header_bits == 27 * 8 + 64
    assert kept.phv.metadata_bits >= 64
    ingress = "apply { meta.port = meta.port + 1; hdr.wide.a = (bit<32>) meta.port; tm.ucast_egress_port = 2; }"
    both = measure(write(tmp_path, EGRESS=egress, INGRESS=ingress), arch="tna")
    assert both.phv.metadata_bits < kept.phv.metadata_bits + 64


def test_both_parsers_count(tmp_path: Path) -> None:
    plain = measure(write(tmp_path), arch="tna").parser
    longer = "state start { packet.extract(intrinsic); packet.extract(hdr.wide); transition accept; }"
    both = measure(write(tmp_path, EGRESS_PARSER=longer), arch="tna").parser
    assert both.bytes == plain.bytes + 8
    assert both.entries == plain.entries


def test_copies_of_a_replication_engine_are_found(tmp_path: Path) -> None:
    assert measure(write(tmp_path), arch="tna").copies["multicast"] == 0
    sends = "apply { tm.mcast_grp_b = 5; }"
    assert measure(write(tmp_path, INGRESS=sends), arch="tna").copies["multicast"] == 1


def test_a_psa_program_is_measured(tmp_path: Path) -> None:
    assert measure(psa.write(tmp_path)).fit(STAGES12).fits


def test_the_ghost_thread_uses_a_register_beside_packets(tmp_path: Path) -> None:
    """It uses stages of ingress and of egress; a register that it shares with one is in a stage of that one."""
    ghost = """
        Register<bit<32>, bit<1>>(1) lengths;
        control Ghost(in ghost_intrinsic_metadata_t queue) {
            RegisterAction<bit<32>, bit<1>, bit<32>>(lengths) keep = {
                void apply(inout bit<32> value) { value = (bit<32>) queue.qlength; }
            };
            apply { keep.execute(0); }
        }
    """
    looks = """
        RegisterAction<bit<32>, bit<1>, bit<32>>(lengths) look = {
            void apply(inout bit<32> value, out bit<32> result) { result = value; }
        };
        apply { hdr.wide.a = look.execute(0); tm.ucast_egress_port = 2; }
    """
    alone, both = (
        measure(write_with_ghost(tmp_path, ghost, INGRESS=looks, **more), arch="t2na").fit(load("stages20"))
        for more in ({}, {"EGRESS": looks.replace("tm.ucast_egress_port = 2;", "")})
    )
    assert [finding.rule for finding in alone.findings] == []
    assert "register-pipelines" in [finding.rule for finding in both.findings]


TWO_TABLES = """
    action set_value(bit<8> value) {{ hdr.h.value = value; }}
    action send(PortId_t port) {{ tm.ucast_egress_port = port; }}
    {first} table values {{ key = {{ hdr.h.kind: exact; }} actions = {{ set_value; }} }}
    {second} table ports {{ key = {{ hdr.h.value: exact; }} actions = {{ send; }} }}
    apply {{ values.apply(); ports.apply(); }}
"""


@pytest.mark.parametrize(
    ("first", "second", "stages", "found"),
    [
        ("", "", 2, []),
        ("@stage(3)", "", 5, []),
        ("@stage(5, 512) @stage(4)", "", 6, []),
        ("", "@stage(7)", 8, []),
        ("@stage(2)", "@stage(1)", 4, []),
        (
            "",
            "@stage(0)",
            2,
            ["stage-pragma: 'In.ports' is wanted in stage 0, but depends on what is known in stage 1"],
        ),
        ("@stage(12)", "", 14, ["stages: 14 stages, there are 12"]),
    ],
)
def test_a_table_is_in_the_stage_that_it_asks_for_or_a_later_one(
    tmp_path: Path, first: str, second: str, stages: int, found: list[str]
) -> None:
    fit = measure(write(tmp_path, INGRESS=TWO_TABLES.format(first=first, second=second)), arch="tna").fit(STAGES12)
    assert fit.placement is not None
    assert fit.placement.stages == stages
    assert [f"{finding.rule}: {finding.lacks}" for finding in fit.findings] == found


def test_a_stage_is_a_number(tmp_path: Path) -> None:
    ingress = TWO_TABLES.format(first="", second="@stage(last)")
    with pytest.raises(CompileError, match="@stage: expected the number of a stage"):
        measure(write(tmp_path, INGRESS=ingress), arch="tna")
