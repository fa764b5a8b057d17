"""PSA programs on the built-in switch: values passed between blocks, conditional deparsers, externs."""

from __future__ import annotations

from pathlib import Path

import pytest

from p4switch.compiler import Compiled, compile_program
from p4switch.compiler.diagnostics import CompileError
from p4switch.compiler.frontend import parse_and_check
from p4switch.compiler.passes import lowered
from p4switch.engine import build, load
from p4switch.stf.many import run_test
from tests.p4switch.architectures.skeletons import filled
from tests.p4switch.p4runtime.test_cells import counter
from tests.p4switch.p4runtime.test_engine import Bench

SKELETON = """\
#include <psa.p4>
header h_t { bit<8> kind; bit<8> value; }
header sum_t { bit<16> a; bit<16> b; bit<16> sum; }
struct headers { h_t h; h_t extra; sum_t sum; }
struct metadata { bit<8> seen; }
struct none_t {}
struct note_t { bit<8> note; }
parser IngressParse(packet_in packet, out headers hdr, inout metadata meta,
                    in psa_ingress_parser_input_metadata_t istd, in note_t resubmit_meta, in none_t recirculate_meta) {
    INGRESS_PARSER
}
control In(inout headers hdr, inout metadata meta, in psa_ingress_input_metadata_t istd,
                inout psa_ingress_output_metadata_t ostd) {
    INGRESS
}
control IngressDeparse(packet_out packet, out note_t clone_i2e_meta, out note_t resubmit_meta, out note_t normal_meta,
                       inout headers hdr, in metadata meta, in psa_ingress_output_metadata_t istd) {
    INGRESS_DEPARSER
}
parser EgressParse(packet_in packet, out headers hdr, inout metadata meta,
                   in psa_egress_parser_input_metadata_t istd, in note_t normal_meta, in note_t clone_i2e_meta,
                   in none_t clone_e2e_meta) {
    EGRESS_PARSER
}
control Out(inout headers hdr, inout metadata meta, in psa_egress_input_metadata_t istd,
               inout psa_egress_output_metadata_t ostd) {
    EGRESS
}
control EgressDeparse(packet_out packet, out none_t clone_e2e_meta, out none_t recirculate_meta, inout headers hdr,
                      in metadata meta, in psa_egress_output_metadata_t istd,
                      in psa_egress_deparser_input_metadata_t edstd) {
    EGRESS_DEPARSER
}
IngressPipeline(IngressParse(), In(), IngressDeparse()) ip;
EgressPipeline(EgressParse(), Out(), EgressDeparse()) ep;
PSA_Switch(ip, PacketReplicationEngine(), ep, BufferingQueueingEngine()) main;
"""
BLOCKS = {
    "INGRESS_PARSER": "state start { packet.extract(hdr.h); transition accept; }",
    "INGRESS_DEPARSER": "apply { packet.emit(hdr); }",
    "EGRESS_PARSER": "state start { transition accept; }",
    "EGRESS_DEPARSER": "apply { packet.emit(hdr); }",
    "INGRESS": "apply { send_to_port(ostd, (PortId_t) 2); }",
    "EGRESS": "apply {}",
}


def write(folder: Path, **blocks: str) -> Path:
    return filled(folder, SKELETON, BLOCKS, blocks)


def compiled(folder: Path, **blocks: str) -> Compiled:
    return compile_program(write(folder, **blocks))


def sent(folder: Path, *packets: bytes, **blocks: str) -> list[list[tuple[int, bytes]]]:
    switch = load().Switch(str(build(compiled(folder, **blocks).program)))
    return [switch.process(1, packet) for packet in packets]


def test_ingress_drops_unless_it_says_otherwise(tmp_path: Path) -> None:
    assert sent(tmp_path, b"\x01\x02", INGRESS="apply {}") == [[]]
    assert sent(tmp_path, b"\x01\x02rest") == [[(2, b"\x01\x02rest")]]


def test_egress_parses_the_bytes_that_ingress_deparsed(tmp_path: Path) -> None:
    result = sent(
        tmp_path, b"\x01\x02rest",
        INGRESS="apply { hdr.extra = {7, 8}; send_to_port(ostd, (PortId_t) 2); }",
        INGRESS_DEPARSER="apply { packet.emit(hdr.extra); packet.emit(hdr.h); }",
        EGRESS_PARSER="state start { packet.extract(hdr.h); transition accept; }",
        EGRESS="apply { hdr.h.kind = hdr.h.kind + 1; if (hdr.extra.isValid()) { ostd.drop = true; } }",
    )  # fmt: skip
    assert result == [[(2, b"\x08\x08\x01\x02rest")]]


def test_a_deparser_with_conditions_emits_what_a_path_emits(tmp_path: Path) -> None:
    """Check that headers have the order of the path, and their values at `emit` even if they change later."""
    deparser = """\
    apply {
        if (hdr.h.kind == 1) {
            packet.emit(hdr.h);
            hdr.h.value = 0xee;
        } else if (hdr.h.kind == 2) {
            hdr.extra = {0xaa, 0xbb};
            packet.emit(hdr.extra);
            packet.emit(hdr.h);
        }
        hdr.extra.setInvalid();
        packet.emit(hdr.extra);
    }"""
    result = sent(tmp_path, b"\x01\x05-", b"\x02\x05-", b"\x03\x05-", INGRESS_DEPARSER=deparser)
    assert result == [[(2, b"\x01\x05-")], [(2, b"\xaa\xbb\x02\x05-")], [(2, b"-")]]


def test_a_loop_in_a_deparser_is_refused_in_a_line(tmp_path: Path) -> None:
    with pytest.raises(CompileError, match=r"program.p4:\d+:\d+: error: loops are not supported in a deparser"):
        compiled(tmp_path, INGRESS_DEPARSER="apply { for (bit<8> i in 1 .. hdr.h.kind) { packet.emit(hdr.h); } }")


def test_metadata_goes_with_a_resubmitted_packet_and_to_egress(tmp_path: Path) -> None:
    result = sent(
        tmp_path, b"\x01\x02rest",
        INGRESS_PARSER="state start { packet.extract(hdr.h); meta.seen = resubmit_meta.note; transition accept; }",
        INGRESS="""apply {
            if (istd.packet_path != PSA_PacketPath_t.RESUBMIT) { ostd.drop = false; ostd.resubmit = true; }
            else { send_to_port(ostd, (PortId_t) 3); }
        }""",
        INGRESS_DEPARSER="""apply {
            if (psa_resubmit(istd)) { resubmit_meta.note = hdr.h.value + 0x10; }
            if (psa_normal(istd)) { normal_meta.note = meta.seen; }
            packet.emit(hdr);
        }""",
        EGRESS_PARSER="state start { packet.extract(hdr.h); hdr.h.kind = normal_meta.note; transition accept; }",
    )  # fmt: skip
    assert result == [[(3, b"\x12\x02rest")]]


def test_a_clone_is_the_packet_as_it_came_with_its_metadata(tmp_path: Path) -> None:
    program = write(
        tmp_path,
        INGRESS="""apply {
            hdr.h.value = 9; ostd.clone = true; ostd.clone_session_id = (CloneSessionId_t) 5;
            send_to_port(ostd, (PortId_t) 2);
        }""",
        INGRESS_DEPARSER="""apply {
            if (psa_clone_i2e(istd)) { clone_i2e_meta.note = 0x77; }
            packet.emit(hdr);
        }""",
        EGRESS_PARSER="""state start { packet.extract(hdr.h); meta.seen = clone_i2e_meta.note; transition accept; }""",
        EGRESS="apply { if (istd.packet_path == PSA_PacketPath_t.CLONE_I2E) { hdr.h.kind = meta.seen; } }",
    )
    test = tmp_path / "program.stf"
    test.write_text("mirroring_add 5 6\npacket 1 01 02 03\nexpect 2 01 09 03 $\nexpect 6 77 02 03 $\n")
    run_test(program, test)


def test_recirculation_comes_to_ingress_from_its_port(tmp_path: Path) -> None:
    result = sent(
        tmp_path, b"\x01\x02",
        INGRESS="""apply {
            if (istd.packet_path == PSA_PacketPath_t.RECIRCULATE && istd.ingress_port == PSA_PORT_RECIRCULATE) {
                send_to_port(ostd, (PortId_t) 4);
            } else {
                hdr.h.kind = 0x55;
                send_to_port(ostd, PSA_PORT_RECIRCULATE);
            }
        }""",
    )  # fmt: skip
    assert result == [[(4, b"\x55\x02")]]


def checksum(*words: int) -> int:
    total = sum(words)
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def test_an_internet_checksum_is_verified_and_updated(tmp_path: Path) -> None:
    """In the parser it starts at 0 for each packet. `subtract` removes the old bytes before a change."""
    blocks = {
        "INGRESS_PARSER": """
            InternetChecksum() ck;
            state start {
                packet.extract(hdr.sum);
                ck.add({hdr.sum.a, hdr.sum.b});
                meta.seen = (ck.get() == hdr.sum.sum) ? 8w1 : 0;
                ck.clear();
                transition accept;
            }""",
        "INGRESS": "apply { send_to_port(ostd, (PortId_t) (PortIdUint_t) meta.seen); }",
        "EGRESS_PARSER": "state start { packet.extract(hdr.sum); transition accept; }",
        "EGRESS_DEPARSER": """
            InternetChecksum() ck;
            apply {
                ck.set_state(~hdr.sum.sum);
                ck.subtract({hdr.sum.a});
                hdr.sum.a = 0xbeef;
                ck.add(hdr.sum.a);
                hdr.sum.sum = ck.get();
                packet.emit(hdr);
            }""",
    }
    words = [0x1234, 0xFEDC]
    good = b"".join(w.to_bytes(2, "big") for w in [*words, checksum(*words)])
    bad = good[:-1] + bytes([good[-1] ^ 1])
    (port, packet), = sent(tmp_path, good, **blocks)[0]
    assert port == 1
    assert packet[4:6] == checksum(0xBEEF, words[1]).to_bytes(2, "big")
    assert [p for results in sent(tmp_path, bad, good, **blocks) for p, _ in results] == [0, 1]


def test_hash_register_random_and_counter(tmp_path: Path) -> None:
    result = sent(
        tmp_path, b"\x01\x02", b"\x01\x02",
        INGRESS="""
            Hash<bit<16>>(PSA_HashAlgorithm_t.CRC16) hash;
            Register<bit<8>, bit<8>>(256) register;
            Random<bit<8>>(8w3, 8w3) random;
            Counter<bit<32>, bit<8>>(4, PSA_CounterType_t.PACKETS) counter;
            apply {
                counter.count(1);
                bit<8> before = register.read(hdr.h.value);
                register.write(hdr.h.value, before + random.read());
                hdr.extra.setValid();
                hdr.extra.kind = before;
                hdr.sum = {hash.get_hash({hdr.h.kind, hdr.h.value}), hash.get_hash(16w7, {hdr.h.kind}, 16w1), 0};
                send_to_port(ostd, (PortId_t) 2);
            }""",
    )  # fmt: skip
    crc = 0
    for byte in b"\x01\x02":
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ 0xA001 if crc & 1 else crc >> 1
    tail = crc.to_bytes(2, "big") + b"\x00\x07\x00\x00"
    assert result == [[(2, b"\x01\x02\x00\x00" + tail)], [(2, b"\x01\x02\x03\x00" + tail)]]


def test_a_register_begins_with_its_initial_value(tmp_path: Path) -> None:
    result = sent(
        tmp_path, b"\x01\x02", b"\x01\x02", b"\x01\x03",
        INGRESS="""
            Register<bit<8>, bit<8>>(4, 8w5) register;
            apply {
                hdr.h.kind = register.read(hdr.h.value);
                register.write(hdr.h.value, hdr.h.kind + 1);
                send_to_port(ostd, (PortId_t) 2);
            }""",
    )  # fmt: skip
    assert [packet[0] for ((_, packet),) in result] == [5, 6, 5]


def test_a_meter_knows_the_colour_with_which_a_packet_comes(tmp_path: Path) -> None:
    """RFC 2698: a yellow packet takes no committed tokens, and a red one stays red."""
    made = compiled(
        tmp_path,
        INGRESS="""
            Meter<bit<8>>(2, PSA_MeterType_t.PACKETS) meter;
            apply {
                PSA_MeterColor_t colour = PSA_MeterColor_t.RED;
                if (hdr.h.kind == 1) { colour = PSA_MeterColor_t.GREEN; }
                if (hdr.h.kind == 2) { colour = PSA_MeterColor_t.YELLOW; }
                colour = meter.execute(1, colour);
                hdr.h.value = 0;
                if (colour == PSA_MeterColor_t.GREEN) { hdr.h.value = 1; }
                if (colour == PSA_MeterColor_t.YELLOW) { hdr.h.value = 2; }
                send_to_port(ostd, (PortId_t) 2);
            }""",
    )
    switch = load().Switch(str(build(made.program)))
    red, green, yellow = 0, 1, 2

    def metered(colour: int) -> int:
        ((_, packet),) = switch.process(1, bytes([colour, 9]))
        return int(packet[1])

    assert [metered(colour) for colour in (red, green, yellow)] == [red, green, yellow]
    switch.meter_set("In.meter", 1, (1, 1, 1, 3))  # committed and peak rate per second, and bursts, in packets
    comes = (yellow, green, red, green, green)
    assert [metered(colour) for colour in comes] == [yellow, green, red, yellow, red]


def test_the_json_and_the_p4info_are_those_of_psa(tmp_path: Path) -> None:
    made = compiled(
        tmp_path,
        INGRESS="""
            Counter<bit<32>, PortId_t>(4, PSA_CounterType_t.PACKETS_AND_BYTES) counter;
            Meter<bit<8>>(2, PSA_MeterType_t.BYTES) meter;
            apply {
                counter.count(istd.ingress_port);
                if (meter.execute(1) == PSA_MeterColor_t.GREEN) { send_to_port(ostd, (PortId_t) 2); }
            }""",
    )
    assert [p["name"] for p in made.json["parsers"]] == ["ingress_parser", "egress_parser"]
    assert [p["name"] for p in made.json["deparsers"]] == ["ingress_deparser", "egress_deparser"]
    metadata = {h["name"] for h in made.json["headers"] if h["metadata"]}
    assert {"psa_ingress_output_metadata", "psa_egress_deparser_input_metadata"} <= metadata
    assert [(e["name"], e["type"]) for e in made.json["extern_instances"]] == [
        ("In.counter", "Counter"), ("In.meter", "Meter"),
    ]  # fmt: skip
    ops = {p["op"] for action in made.json["actions"] for p in action["primitives"]}
    assert {"_Counter_count", "_Meter_execute"} <= ops
    info = made.p4info
    assert info.pkg_info.arch == "psa"
    assert [(c.preamble.name, c.size, c.index_type_name.name) for c in info.counters] == [("In.counter", 4, "PortId_t")]
    assert info.counters[0].spec.unit == info.counters[0].spec.BOTH


def test_a_tool_that_does_not_know_the_package_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = lowered(parse_and_check(write(tmp_path)))
    monkeypatch.setattr(made.package, "tools", frozenset())
    with pytest.raises(CompileError, match=r"program.p4:\d+:\d+: error: p4cc testgen knows .*v1model alone, not psa"):
        made.require("testgen")


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        ({"INGRESS": "DirectMeter(PSA_MeterType_t.BYTES) m; PSA_MeterColor_t c = PSA_MeterColor_t.RED; "
          "action a() { c = m.execute(c); } "
          "table t { key = { hdr.h.kind: exact; } actions = { a; NoAction; } psa_direct_meter = m; } "
          "apply { t.apply(); if (c == PSA_MeterColor_t.GREEN) { send_to_port(ostd, (PortId_t) 2); } }"},
         "a colour-aware direct meter is not supported on this target"),
        ({"INGRESS": "Random<bit<8>>(8w5, 8w3) r; apply { hdr.h.kind = r.read(); }"},
         "the range 5 to 3 is empty: its low end is above its high end"),
        ({"INGRESS_DEPARSER": "Checksum<bit<32>>(PSA_HashAlgorithm_t.CRC32) c; "
          "apply { c.update(hdr.h.kind); packet.emit(hdr); }"},
         "a Checksum with CRC32 is not supported: expected ONES_COMPLEMENT16"),
        ({"INGRESS_DEPARSER": "InternetChecksum() c; apply { c.add(hdr.h.kind); packet.emit(hdr); }"},
         "the data has 8 bits: expected a multiple of 16"),
    ],
)  # fmt: skip
def test_what_the_target_has_not_is_refused_in_a_line(tmp_path: Path, blocks: dict[str, str], message: str) -> None:
    with pytest.raises(CompileError) as caught:
        compiled(tmp_path, **blocks)
    first = str(caught.value).splitlines()[0]
    assert first.endswith(f"error: {message}")
    assert first.startswith(str(tmp_path / "program.p4") + ":")


def test_a_package_of_that_name_with_other_blocks_is_refused_in_a_line(tmp_path: Path) -> None:
    path = tmp_path / "program.p4"
    path.write_text("""
        #include <core.p4>
        struct none_t {}
        parser P(packet_in p, out none_t h); control C(inout none_t h); control D(packet_out p, in none_t h);
        package PSA_Switch(P a, C b, D c, P d, C e, D f);
        parser p(packet_in p, out none_t h) { state start { transition accept; } }
        control c(inout none_t h) { apply {} }
        control d(packet_out p, in none_t h) { apply {} }
        PSA_Switch(p(), c(), d(), p(), c(), d()) main;
        """)
    told = r"program.p4:6:\d+: error: 'p' has 2 parameters: expected those of the block ingress_parser in psa.p4"
    with pytest.raises(CompileError, match=told):
        compile_program(path)


def test_tables_and_counters_over_p4runtime(tmp_path: Path) -> None:
    program = write(
        tmp_path,
        INGRESS="""
            Counter<bit<32>, bit<8>>(4, PSA_CounterType_t.PACKETS) cells;
            action go(PortId_t port) { send_to_port(ostd, port); cells.count(1); }
            table where {
                key = { hdr.h.kind : exact; istd.ingress_port : ternary; }
                actions = { go; NoAction; }
            }
            apply { where.apply(); }""",
    )
    bench = Bench(program)
    c = bench.controller
    assert bench.installed[-1].process(1, b"\x07\x00") == []
    c.insert(c.entry("where", {"hdr.h.kind": 7, "istd.ingress_port": (1, 0xFF)}, ("go", {"port": 300}), priority=1))
    assert bench.installed[-1].process(1, b"\x07\x00") == [(300, b"\x07\x00")]
    assert bench.installed[-1].process(2, b"\x07\x00") == []
    (cell,) = c.read(counter(c, 1))
    assert cell.data.packet_count == 1


def test_a_name_of_the_architectures_is_said_to_be_declared_in_its_file(tmp_path: Path) -> None:
    program = write(tmp_path)
    program.write_text(program.read_text().replace("#include <psa.p4>", "#include <psa.p4>\nstruct Ingress {}"))
    with pytest.raises(CompileError, match=r"'Ingress' is already declared \(.*psa\.p4:\d+\)"):
        parse_and_check(program)
