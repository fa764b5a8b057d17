"""Packets through TNA's and T2NA's blocks on the built-in switch, and the effect of each extern."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from p4switch.architectures.packet_path import PACKET_PATHS
from p4switch.bits.checksums import CRCS, Crc
from p4switch.compiler.diagnostics import CompileError
from p4switch.compiler.frontend import parse_and_check
from p4switch.engine import build_traced, load, objects
from p4switch.trace import Decoder, Trace
from p4switch.trace import events as ev
from tests.p4switch.architectures.tofino import START, compiled, sent, switch, write

BOTH = pytest.mark.parametrize("arch", ["tna", "t2na"])
H = bytes([7, 1])
REST = b"rest of the packet"
FRONT = bytes([0, 1, *bytes(6), *range(0x81, 0x89)])  # bytes in front of packets that arrive at port 1 at time 0


def state(name: str, arch: str = "tna", **members: int) -> bytes:
    return objects.packed(PACKET_PATHS.find(f"{arch}.Switch").states[name].kind, members)


# Destinations of packets


@BOTH
def test_a_packet_goes_to_its_port_with_the_bytes_that_came(tmp_path: Path, arch: str) -> None:
    assert sent(tmp_path, H + REST, arch=arch) == [[(2, H + REST)]]


@BOTH
def test_a_packet_without_a_port_is_dropped_and_port_0_is_one(tmp_path: Path, arch: str) -> None:
    assert sent(tmp_path, H, arch=arch, INGRESS="apply {}") == [[]]
    assert sent(tmp_path, H, arch=arch, INGRESS="apply { tm.ucast_egress_port = 0; }") == [[(0, H)]]


@pytest.mark.parametrize(("control", "leaves"), [(0, True), (1, False), (2, True), (3, False), (4, True)])
def test_bit_0_of_drop_ctl_stops_the_packet(tmp_path: Path, control: int, leaves: bool) -> None:
    made = sent(tmp_path, H, INGRESS=f"apply {{ tm.ucast_egress_port = 2; deparsed.drop_ctl = {control}; }}")
    assert made == [[(2, H)] if leaves else []]
    made = sent(tmp_path, H, EGRESS=f"apply {{ deparsed.drop_ctl = {control}; }}")
    assert made == [[(2, H)] if leaves else []]


@BOTH
def test_bypass_leaves_egress_out(tmp_path: Path, arch: str) -> None:
    parser = "state start { packet.extract(intrinsic); packet.extract(hdr.h); transition accept; }"
    egress = "apply { hdr.h.value = 99; }"
    assert sent(tmp_path, H + REST, arch=arch, EGRESS_PARSER=parser, EGRESS=egress) == [[(2, bytes([7, 99]) + REST)]]
    ingress = "apply { tm.ucast_egress_port = 2; tm.bypass_egress = 1; }"
    made = sent(tmp_path, H + REST, arch=arch, EGRESS_PARSER=parser, EGRESS=egress, INGRESS=ingress)
    assert made == [[(2, H + REST)]]


@BOTH
def test_nothing_but_bytes_goes_to_egress(tmp_path: Path, arch: str) -> None:
    blocks = {
        "INGRESS": "apply { meta.seen = 5; tm.ucast_egress_port = 2; hdr.note.setValid(); hdr.note.note = 8; }",
        "EGRESS_PARSER":
            "state start { packet.extract(intrinsic); packet.extract(hdr.note); packet.extract(hdr.h);"
            " transition accept; }",
        "EGRESS": "apply { hdr.h.kind = meta.seen; hdr.h.value = hdr.note.note; hdr.note.setInvalid(); }",
    }
    assert sent(tmp_path, H + REST, arch=arch, **blocks) == [[(2, bytes([0, 8]) + REST)]]


@BOTH
def test_a_loopback_port_leads_to_ingress(tmp_path: Path, arch: str) -> None:
    port = 68 if arch == "tna" else 6
    ingress = (
        f"apply {{ if (intrinsic.ingress_port == {port}) {{ tm.ucast_egress_port = 3; }}"
        f" else {{ tm.ucast_egress_port = {port}; }} hdr.h.value = hdr.h.value + 1; }}"
    )
    assert sent(tmp_path, H, arch=arch, INGRESS=ingress) == [[(3, bytes([7, 3]))]]
    again = "apply { tm.ucast_egress_port = 9; if (intrinsic.ingress_port == 9) { tm.ucast_egress_port = 3; } }"
    made = switch(tmp_path, arch, INGRESS=again)
    assert made.process(1, H) == [(9, H)]
    made.object_write("$port", 9, state("port", arch, loopback=1))
    assert made.process(1, H) == [(3, H)]


def test_a_trace_says_that_a_packet_came_to_ingress_too_often(tmp_path: Path) -> None:
    traced = build_traced(compiled(tmp_path, INGRESS="apply { tm.ucast_egress_port = 68; }").program)
    made = load().Switch(str(traced.library))
    made.set_tracing(True)
    assert made.process(1, H) == []
    dropped = Trace(Decoder(traced)(made.traced()[0])).of(ev.Dropped)
    assert [event.reason for event in dropped] == ["it was resubmitted, recirculated or cloned too often"]


# Bytes in front of packets


@BOTH
def test_the_port_and_its_metadata_are_in_front_of_a_packet(tmp_path: Path, arch: str) -> None:
    parser = (
        "state start { packet.extract(intrinsic); port_t port = port_metadata_unpack<port_t>(packet);"
        " packet.extract(hdr.h); hdr.h.kind = port.first; hdr.h.value = port.second[7:0]; transition accept; }"
    )
    back = "apply { tm.ucast_egress_port = intrinsic.ingress_port; }"
    made = switch(tmp_path, arch, INGRESS_PARSER=parser, INGRESS=back)
    assert made.process(300, H + REST) == [(300, bytes(2) + REST)]
    bits = 64 if arch == "tna" else 192
    made.object_write("$port", 300, state("port", arch, metadata=0x12AB34 << bits - 24))
    assert made.process(300, H + REST) == [(300, bytes([0x12, 0x34]) + REST)]
    assert made.process(301, H + REST) == [(301, bytes(2) + REST)]


@pytest.mark.parametrize(
    ("takes", "goes"),
    [
        ("packet.extract(hdr.note); packet.extract(hdr.wide); packet.extract(hdr.sum);", FRONT + H),
        ("packet.extract(intrinsic); packet.extract(hdr.note); packet.extract(hdr.h); packet.extract(hdr.wide);",
         FRONT[8:] + H),
        ("packet.extract(intrinsic); packet.advance(72); packet.extract(hdr.extra);", H[1:]),
        ("packet.advance(128); packet.extract(hdr.h);", H),
        ("packet.advance(120); hdr.h = packet.lookahead<h_t>(); packet.advance(16);", FRONT[15:] + H),
        ("packet.extract(intrinsic); hdr.h = packet.lookahead<h_t>(); packet.advance(64);", FRONT[8:10] + H),
    ],
)
def test_a_parser_may_take_what_is_in_front_in_other_pieces(tmp_path: Path, takes: str, goes: bytes) -> None:
    parser = f"state start {{ {takes} transition accept; }}"
    made = switch(tmp_path, INGRESS_PARSER=parser)
    made.object_write("$port", 1, state("port", metadata=int.from_bytes(FRONT[8:], "big")))
    assert made.process(1, H + REST) == [(2, goes + REST)]


@BOTH
def test_egress_sees_the_port_the_length_and_the_queue(tmp_path: Path, arch: str) -> None:
    egress = (
        "apply { hdr.wide.setValid(); hdr.wide.a = (bit<32>) intrinsic.pkt_length ++ 0;"
        " hdr.wide.b = (bit<16>) intrinsic.egress_port ++ (bit<16>) intrinsic.egress_qid; }"
    ).replace(" ++ 0", "")
    ingress = "apply { tm.ucast_egress_port = 2; tm.qid = 5; }"
    ((port, data),) = sent(tmp_path, H + REST, arch=arch, EGRESS=egress, INGRESS=ingress)[0]
    assert (port, data) == (2, (len(H + REST) + 4).to_bytes(4, "big") + bytes([0, 2, 0, 5]) + H + REST)


def test_a_parser_error_drops_unless_the_program_looks(tmp_path: Path) -> None:
    assert sent(tmp_path, b"x") == [[]]
    looks = "apply { tm.ucast_egress_port = 2; hdr.note.setValid(); hdr.note.note = parsed.parser_err[7:0]; }"
    assert sent(tmp_path, b"x", H, INGRESS=looks) == [[(2, bytes([2, 0]) + b"x")], [(2, bytes(2) + H)]]


def counting(count: str, tests: str, rest: str = "") -> dict[str, str]:
    """Return blocks of a program whose parser counts, and whose ingress writes the decision by the count."""
    parser = (
        f"ParserCounter() counter; {START} packet.extract(hdr.h); {count} transition select({tests}) {{"
        f" true: yes; default: accept; }} }} state yes {{ hdr.note.setValid(); {rest} transition accept; }}"
    )
    return {"INGRESS_PARSER": parser}


@pytest.mark.parametrize("arch", ["tna", "t2na"])
@pytest.mark.parametrize(
    ("count", "tests", "yes"),
    [
        ("counter.set(hdr.h.kind); counter.decrement(7);", "counter.is_zero()", True),
        ("counter.set(hdr.h.kind); counter.decrement(8);", "counter.is_zero()", False),
        ("counter.set(hdr.h.kind); counter.decrement(8);", "counter.is_negative()", True),
        ("counter.set(hdr.h.kind); counter.decrement(7);", "counter.is_negative()", False),
        ("counter.set(8w4); counter.increment(252);", "counter.is_zero()", True),
        # 7 is binary 111, or 1000_0011 rotated by one bit. Its two lowest bits plus 253 are 0 modulo 256.
        ("counter.set(hdr.h.kind, 255, 1, MASK, 253);", "counter.is_zero()", True),
        ("counter.set(hdr.h.kind, 255, 0, MASK, 253);", "counter.is_negative()", False),
    ],
)
def test_a_parser_counts(tmp_path: Path, arch: str, count: str, tests: str, yes: bool) -> None:
    made = counting(count.replace("MASK", "1" if arch == "tna" else "3"), tests)
    assert sent(tmp_path, H, arch=arch, **made) == [[(2, bytes(2) * yes + H)]]


def test_a_parser_counts_headers_of_a_stack(tmp_path: Path) -> None:
    parser = (
        f"ParserCounter() left; {START} packet.extract(hdr.h); left.set(hdr.h.kind); transition more; }}"
        " state more { transition select(left.is_zero()) { true: accept; false: another; } }"
        " state another { packet.advance(8); left.decrement(1); transition more; }"
    )
    assert sent(tmp_path, bytes([3, 9]) + b"abcde", bytes([0, 9]) + b"abcde", INGRESS_PARSER=parser) == [
        [(2, bytes([3, 9]) + b"de")],
        [(2, bytes([0, 9]) + b"abcde")],
    ]


def test_a_field_over_the_maximum_is_an_error_of_the_parser(tmp_path: Path) -> None:
    made = counting("counter.set(hdr.h.kind, 6, 0, 7, 0);", "counter.is_zero()")
    assert sent(tmp_path, H, bytes([6, 1]), **made) == [[], [(2, bytes([6, 1]))]]
    looks = "apply { tm.ucast_egress_port = 2; hdr.note.setValid(); hdr.note.note = parsed.parser_err[7:0]; }"
    assert sent(tmp_path, H, INGRESS=looks, **made) == [[(2, bytes([4, 0]) + H)]]


@pytest.mark.parametrize(
    ("count", "message"),
    [
        ("counter.set(true);", "a parser counter counts with numbers alone"),
        ("counter.set(hdr.h.kind, hdr.h.value, 0, 7, 0);", "maximum, rotation, mask and addend"),
    ],
)
def test_what_a_counter_does_not_take(tmp_path: Path, count: str, message: str) -> None:
    with pytest.raises(CompileError, match=message):
        compiled(tmp_path, **counting(count, "counter.is_zero()"))


# Copies


@BOTH
def test_resubmit_once_with_data(tmp_path: Path, arch: str) -> None:
    blocks = {
        "INGRESS_PARSER":
            "state start { packet.extract(intrinsic);"
            " transition select(intrinsic.resubmit_flag) { 0: first; 1: again; } }"
            " state first { packet.advance(PORT_METADATA_SIZE); transition rest; }"
            " state again { packet.extract(meta.again); packet.advance(PORT_METADATA_SIZE - 64); transition rest; }"
            " state rest { packet.extract(hdr.h); transition accept; }",
        "INGRESS":
            "apply { if (intrinsic.resubmit_flag == 0) {"
            " meta.again.setValid(); meta.again.data = 0x1122334455667788; deparsed.resubmit_type = 0; }"
            " else { hdr.h.value = meta.again.data[7:0]; } tm.ucast_egress_port = 2; hdr.h.kind = hdr.h.kind + 1; }",
        "INGRESS_DEPARSER":
            "Resubmit() resubmit; apply { if (deparsed.resubmit_type == 0) { resubmit.emit(meta.again); }"
            " packet.emit(hdr); }",
    }
    assert sent(tmp_path, H + REST, arch=arch, **blocks) == [[(2, bytes([8, 0x88]) + REST)]]
    always = {**blocks, "INGRESS": "apply { meta.again.setValid(); deparsed.resubmit_type = 0; }"}
    assert sent(tmp_path, H + REST, arch=arch, **always) == [[]]


MIRROR = (
    "Mirror() mirror; apply { if (deparsed.mirror_type == 1) {"
    " mirror.emit<note_t>((MirrorId_t) meta.session, {meta.copied.note, meta.copied.more}); } packet.emit(hdr); }"
)
MIRRORED = "meta.session = 5; meta.copied.note = 0xAA; meta.copied.more = 0xBB; deparsed.mirror_type = 1;"


@BOTH
def test_an_ingress_mirror_is_the_packet_as_it_came(tmp_path: Path, arch: str) -> None:
    ingress = f"apply {{ hdr.h.value = 50; tm.ucast_egress_port = 2; {MIRRORED} }}"
    made = switch(tmp_path, arch, INGRESS=ingress, INGRESS_DEPARSER=MIRROR)
    packet = (2, bytes([7, 50]) + REST)
    assert made.process(1, H + REST) == [packet]
    made.object_write("$mirror", 5, state("mirror", arch, enabled=1, unicast=1, port=4))
    copy = b"\xaa\xbb" + H + REST
    assert sorted(made.process(1, H + REST)) == [packet, (4, copy)]
    made.object_write("$mirror", 5, state("mirror", arch, enabled=1, unicast=1, port=4, max_bytes=6))
    assert sorted(made.process(1, H + REST)) == [packet, (4, copy[:6])]


def test_a_dropped_packet_is_mirrored_unless_bit_2_says_not(tmp_path: Path) -> None:
    for control, there in ((1, True), (5, False)):
        ingress = f"apply {{ {MIRRORED} deparsed.drop_ctl = {control}; }}"
        made = switch(tmp_path, INGRESS=ingress, INGRESS_DEPARSER=MIRROR)
        made.clone_session_set(5, [(4, 0)])
        assert made.process(1, H) == ([(4, b"\xaa\xbb" + H)] if there else [])


def test_mirror_type_0_is_none_in_ingress_and_one_in_egress(tmp_path: Path) -> None:
    deparser = MIRROR.replace("mirror_type == 1", "mirror_type == 0")
    chosen = MIRRORED.replace("mirror_type = 1", "mirror_type = 0")
    made = switch(tmp_path, INGRESS=f"apply {{ tm.ucast_egress_port = 2; {chosen} }}", INGRESS_DEPARSER=deparser)
    made.clone_session_set(5, [(4, 0)])
    assert made.process(1, H) == [(2, H)]
    once = f"apply {{ if (intrinsic.egress_port == 2) {{ hdr.note.setValid(); {chosen} }} }}"
    made = switch(tmp_path, EGRESS=once, EGRESS_DEPARSER=deparser)
    made.clone_session_set(5, [(4, 0)])
    assert sorted(made.process(1, H)) == [(2, bytes(2) + H), (4, b"\xaa\xbb" + bytes(2) + H)]
    made = switch(tmp_path, EGRESS=once.replace("deparsed.mirror_type = 0;", ""), EGRESS_DEPARSER=deparser)
    made.clone_session_set(5, [(4, 0)])
    assert made.process(1, H) == [(2, bytes(2) + H)]


def test_t2na_mirrors_what_comes_to_egress_unless_it_selects_what_leaves(tmp_path: Path) -> None:
    for selected, copy in ((0, H), (1, bytes(2) + H)):
        egress = (
            f"apply {{ if (intrinsic.egress_port == 2) {{ hdr.note.setValid(); {MIRRORED}"
            f" deparsed.mirror_io_select = {selected}; }} }}"
        )
        made = switch(tmp_path, "t2na", EGRESS=egress, EGRESS_DEPARSER=MIRROR)
        made.clone_session_set(5, [(4, 0)])
        assert sorted(made.process(1, H)) == [(2, bytes(2) + H), (4, b"\xaa\xbb" + copy)]


RID = (
    "apply { hdr.note.setValid(); hdr.note.note = intrinsic.egress_rid[7:0];"
    " hdr.note.more = (bit<8>) intrinsic.egress_rid_first; }"
)


@pytest.mark.parametrize(("side", "most"), [("INGRESS", 9), ("EGRESS", 9), ("EGRESS", 3)])
def test_t2na_cuts_packets_to_a_length_that_includes_the_fcs(tmp_path: Path, side: str, most: int) -> None:
    """The open model of the chip cuts whole frames, whose last four bytes are the FCS."""
    forward = "tm.ucast_egress_port = 2; " if side == "INGRESS" else ""
    block = f"apply {{ {forward}deparsed.mtu_trunc_len = {most}; }}"
    packet = bytes(range(20))
    assert sent(tmp_path, packet, arch="t2na", **{side: block}) == [[(2, packet[: max(most - 4, 0)])]]


def test_unicast_both_groups_and_the_copy_to_the_cpu_are_independent(tmp_path: Path) -> None:
    ingress = "apply { tm.ucast_egress_port = 2; tm.mcast_grp_a = 10; tm.mcast_grp_b = 11; tm.copy_to_cpu = 1; }"
    made = switch(tmp_path, INGRESS=ingress, EGRESS=RID)
    made.multicast_set(10, [(3, 1), (4, 1), (5, 2)])
    made.multicast_set(11, [(6, 9)])
    assert sorted(port for port, _ in made.process(1, H)) == [2, 3, 4, 5, 6]
    made.object_write("$device", 0, state("device", cpu_port=64, cpu_enabled=1))
    copies = dict(made.process(1, H))
    assert {port: tuple(data[:2]) for port, data in copies.items()} == {
        2: (0, 0), 3: (1, 1), 4: (1, 0), 5: (2, 1), 6: (9, 1), 64: (0, 1),
    }
    made = switch(tmp_path, INGRESS=ingress[:-2] + " deparsed.drop_ctl = 1; }")
    made.multicast_set(10, [(3, 1)])
    made.object_write("$device", 0, state("device", cpu_port=64, cpu_enabled=1))
    assert made.process(1, H) == [(64, H)]


def test_replicas_are_chosen_by_hashes_and_excluded_by_ids(tmp_path: Path) -> None:
    ingress = (
        "apply { tm.mcast_grp_a = 10; tm.level1_mcast_hash = (bit<13>) hdr.h.kind;"
        " tm.level2_mcast_hash = (bit<13>) hdr.h.value; tm.level1_exclusion_id = 6; tm.level2_exclusion_id = 8;"
        " tm.rid = 5; }"
    )
    made = switch(tmp_path, INGRESS=ingress)

    def ports(kind: int, value: int) -> list[int]:
        return sorted(port for port, _ in made.process(1, bytes([kind, value])))

    made.multicast_set(10, [(1, 1, 0, 2, 0, 0, 0), (2, 2, 0, 2, 1, 0, 0), (3, 3, 0, 0, 0, 3, 0), (4, 3, 0, 0, 0, 3, 1)])
    assert [ports(0, 0), ports(1, 0), ports(1, 1), ports(0, 2)] == [[1, 3], [2, 3], [2, 4], [1]]
    made.multicast_set(10, [(1, 1, 7, 0, 0, 0, 0), (2, 2, 8, 0, 0, 0, 0)])
    assert ports(0, 0) == [2]
    made.multicast_set(10, [(1, 5), (2, 5), (2, 6)])
    made.object_write("$prune", 8, state("prune", ports=1 << 2))
    assert ports(0, 0) == [1, 2]


def test_a_digest_is_sent_where_its_type_is_written(tmp_path: Path) -> None:
    deparser = (
        "Digest<h_t>() digest; apply { if (deparsed.digest_type == 0) { digest.pack({hdr.h.kind, hdr.h.value}); }"
        " packet.emit(hdr); }"
    )
    for written, told in (("", []), ("deparsed.digest_type = 0;", [(1, H)])):
        made = switch(tmp_path, INGRESS=f"apply {{ {written} tm.ucast_egress_port = 2; }}", INGRESS_DEPARSER=deparser)
        made.process(1, H)
        assert [(number, bytes(data)) for number, data in made.digests()] == told


# Externs


def test_a_register_action_is_run_on_a_cell(tmp_path: Path) -> None:
    blocks = (
        "Register<pair_t, bit<8>>(4, {1, 2}) cells;"
        " RegisterAction<pair_t, bit<8>, bit<32>>(cells) swap = { void apply(inout pair_t v, out bit<32> rv) {"
        " bit<32> old = v.lo; rv = v.hi; v.lo = v.hi; if (old > 5) { v.hi = 0; } else { v.hi = old |+| 32w4; } } };"
        " apply { tm.ucast_egress_port = 2; hdr.wide.setValid(); hdr.wide.a = swap.execute(hdr.h.kind); }"
    )
    made = switch(tmp_path, INGRESS=blocks)
    results = [int.from_bytes(made.process(1, bytes([3, 0]))[0][1][2:6], "big") for _ in range(6)]
    assert results == [2, 5, 6, 9, 0, 0]
    assert made.process(1, bytes([2, 0]))[0][1][2:6] == bytes([0, 0, 0, 2])


def test_outputs_that_an_action_does_not_assign_are_0(tmp_path: Path) -> None:
    blocks = (
        "Register<bit<8>, bit<8>>(256, 7) cells;"
        " RegisterAction<bit<8>, bit<8>, bit<8>>(cells) put = { void apply(inout bit<8> v) { v = 9; } };"
        " RegisterAction<bit<8>, bit<8>, bit<8>>(cells) maybe = {"
        " void apply(inout bit<8> v, out bit<8> rv) { if (v == 7) { rv = 3; } } };"
        " apply { tm.ucast_egress_port = 2; hdr.h.value = maybe.execute(0); hdr.h.kind = put.execute(0); }"
    )
    made = switch(tmp_path, INGRESS=blocks)
    assert [made.process(1, H)[0][1] for _ in range(2)] == [bytes([0, 3]), bytes([0, 0])]
    assert made.register_read("In.cells", 0) == b"\x09"
    made.reset()
    assert made.register_read("In.cells", 0) == b"\x07"


@pytest.mark.parametrize(
    ("made", "crc"),
    [
        ("HashAlgorithm_t.CRC16", CRCS["crc16"]),
        ("HashAlgorithm_t.CRC32", CRCS["crc32"]),
        ("HashAlgorithm_t.CUSTOM, p", Crc(16, 0x1021, 0xFFFF, 0x1D0F, False)),
    ],
)
def test_hashes(tmp_path: Path, made: str, crc: Crc) -> None:
    ingress = (
        f"CRCPolynomial<bit<16>>(0x1021, false, false, false, 0xFFFF, 0x1D0F) p; Hash<bit<{crc.width}>>({made}) hash;"
        " apply { tm.ucast_egress_port = 2; hdr.wide.setValid(); hdr.wide.b = 0;"
        " hdr.wide.a = (bit<32>) hash.get({hdr.h.kind, hdr.h.value}); }"
    )
    ((_, data),) = sent(tmp_path, H, INGRESS=ingress)[0]
    assert int.from_bytes(data[2:6], "big") == crc.of(H)


def test_a_hash_of_bits_has_zeros_in_front_and_identity_is_the_low_bits(tmp_path: Path) -> None:
    ingress = (
        "Hash<bit<16>>(HashAlgorithm_t.CRC16) hash; Hash<bit<12>>(HashAlgorithm_t.IDENTITY) same;"
        " apply { tm.ucast_egress_port = 2; hdr.wide.setValid();"
        " hdr.wide.a = (bit<32>) hash.get({hdr.h.kind[3:0], hdr.h.value});"
        " hdr.wide.b = (bit<32>) same.get({hdr.h.kind, hdr.h.value}); }"
    )
    ((_, data),) = sent(tmp_path, bytes([0x97, 0xC1]), INGRESS=ingress)[0]
    assert int.from_bytes(data[2:6], "big") == CRCS["crc16"].of(bytes([7, 0xC1]))
    assert int.from_bytes(data[6:10], "big") == 0x7C1


def test_a_symmetric_pair_is_hashed_as_its_exclusive_or_in_the_place_of_the_later_field(tmp_path: Path) -> None:
    ingress = (
        '@symmetric("hdr.h.kind", "hdr.h.value") Hash<bit<16>>(HashAlgorithm_t.CRC16) hash;'
        " apply { tm.ucast_egress_port = 2; hdr.wide.setValid(); hdr.wide.b = 0;"
        " hdr.wide.a = (bit<32>) hash.get({hdr.h.kind, 8w5, hdr.h.value}); }"
    )
    made = switch(tmp_path, INGRESS=ingress)
    found = {made.process(1, packet)[0][1][2:6] for packet in (bytes([0x97, 0xC1]), bytes([0xC1, 0x97]))}
    assert found == {CRCS["crc16"].of(bytes([0, 5, 0x97 ^ 0xC1])).to_bytes(4, "big")}


@pytest.mark.parametrize(
    ("note", "algorithm", "message"),
    [
        ('@symmetric("hdr.h.kind")', "CRC16", "expected the names of two fields"),
        ('@symmetric("hdr.h.kind", "hdr.h.none")', "CRC16", "'hdr.h.none' is not one of the fields that are hashed"),
        ('@symmetric("hdr.h.kind", "hdr.wide.b")', "CRC16", "'hdr.h.kind' and 'hdr.wide.b' differ in their types"),
        ('@symmetric("hdr.h.kind", "hdr.h.kind")', "CRC16", "expected each field in one pair"),
        ('@symmetric("hdr.h.kind", "hdr.h.value")', "XOR16", "is supported for CRCs only"),
    ],
)
def test_wrong_symmetric_pairs_are_refused(tmp_path: Path, note: str, algorithm: str, message: str) -> None:
    ingress = (
        f"{note} Hash<bit<16>>(HashAlgorithm_t.{algorithm}) hash;"
        " apply { meta.residual = hash.get({hdr.h.kind, hdr.h.value, hdr.wide.b}); }"
    )
    with pytest.raises(CompileError, match=re.escape(message)):
        compiled(tmp_path, INGRESS=ingress)


def words_sum(*words: int) -> int:
    total = sum(words)
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def test_a_deparser_updates_a_checksum(tmp_path: Path) -> None:
    deparser = (
        "Checksum() sum; apply { hdr.sum.sum = sum.update({hdr.sum.a, hdr.sum.b, hdr.h.kind, hdr.h.value}ONES);"
        " packet.emit(hdr); }"
    )
    blocks = {"INGRESS_PARSER": f"{START} packet.extract(hdr.sum); transition accept; }}"}
    packet = bytes([0x12, 0x34, 0xF0, 0xF1, 0, 0])
    wanted = 0xFFFF ^ words_sum(0x1234, 0xF0F1)
    for ones in ("", ", true"):
        made = sent(tmp_path, packet, INGRESS_DEPARSER=deparser.replace("ONES", ones), **blocks)
        assert made == [[(2, packet[:4] + wanted.to_bytes(2, "big"))]]
    full = bytes([0xFF, 0xFF, 0, 0, 0, 0])
    for ones, end in (("", b"\0\0"), (", true", b"\xff\xff")):
        made = sent(tmp_path, full, INGRESS_DEPARSER=deparser.replace("ONES", ones), **blocks)
        assert made == [[(2, full[:4] + end)]]


def test_a_parser_verifies_a_checksum(tmp_path: Path) -> None:
    parser = (
        "Checksum() sum; state start { packet.extract(intrinsic); packet.advance(PORT_METADATA_SIZE);"
        " packet.extract(hdr.sum); sum.add(hdr.sum); meta.wrong = sum.verify(); transition accept; }"
    )
    ingress = "apply { tm.ucast_egress_port = 2; if (meta.wrong) { tm.ucast_egress_port = 3; } }"
    right = bytes([0x12, 0x34, 0xF0, 0xF1]) + (0xFFFF ^ words_sum(0x1234, 0xF0F1)).to_bytes(2, "big")
    wrong = right[:-1] + bytes([right[-1] ^ 1])
    assert sent(tmp_path, right, wrong, INGRESS_PARSER=parser, INGRESS=ingress) == [[(2, right)], [(3, wrong)]]


def test_a_checksum_over_a_payload_follows_from_what_changes(tmp_path: Path) -> None:
    payload = bytes(range(1, 9))
    pairs = [int.from_bytes(payload[i : i + 2], "big") for i in range(0, 8, 2)]
    checksum = 0xFFFF ^ words_sum(0x1234, 0xF0F1, *pairs)
    packet = bytes([0x12, 0x34, 0xF0, 0xF1]) + checksum.to_bytes(2, "big") + payload
    ingress = "apply { tm.ucast_egress_port = 2; hdr.sum.a = 0x4321; }"
    deparser = (
        "Checksum() sum; apply { hdr.sum.sum = sum.update({hdr.sum.a, hdr.sum.b, meta.residual}); packet.emit(hdr); }"
    )
    wanted = 0xFFFF ^ words_sum(0x4321, 0xF0F1, *pairs)
    for read in ("meta.residual = sum.get();", "sum.subtract_all_and_deposit(meta.residual);"):
        parser = (
            "Checksum() sum; state start { packet.extract(intrinsic); packet.advance(PORT_METADATA_SIZE);"
            " packet.extract(hdr.sum); sum.subtract({hdr.sum.a, hdr.sum.b, hdr.sum.sum});"
            f" {read} transition accept; }}"
        )
        ((_, data),) = sent(tmp_path, packet, INGRESS_PARSER=parser, INGRESS=ingress, INGRESS_DEPARSER=deparser)[0]
        assert data == bytes([0x43, 0x21, 0xF0, 0xF1]) + wanted.to_bytes(2, "big") + payload


def test_headers_taken_after_a_deposit_are_not_in_it(tmp_path: Path) -> None:
    packet = bytes([0x12, 0x34, 0xF0, 0xF1, 0, 0, 5, 6]) + bytes([1, 2])
    parser = (
        "Checksum() sum; state start { packet.extract(intrinsic); packet.advance(PORT_METADATA_SIZE);"
        " packet.extract(hdr.sum); sum.subtract({hdr.sum.a, hdr.sum.b, hdr.sum.sum});"
        " sum.subtract_all_and_deposit(meta.residual); packet.extract(hdr.h); transition accept; }"
    )
    ingress = "apply { tm.ucast_egress_port = 2; hdr.sum.sum = meta.residual; }"
    ((_, data),) = sent(tmp_path, packet, INGRESS_PARSER=parser, INGRESS=ingress)[0]
    left = words_sum(*(0xFFFF ^ word for word in (0x1234, 0xF0F1, 0, 0x0506)))
    assert sorted(data) == sorted(bytes([5, 6, 0x12, 0x34, 0xF0, 0xF1]) + left.to_bytes(2, "big") + bytes([1, 2]))


def test_random_numbers_have_all_their_bits(tmp_path: Path) -> None:
    ingress = "Random<bit<3>>() random; apply { tm.ucast_egress_port = 2; hdr.h.value = (bit<8>) random.get(); }"
    made = switch(tmp_path, INGRESS=ingress)
    assert {made.process(1, H)[0][1][1] for _ in range(200)} == set(range(8))


def test_counters_count_the_frame_check_sequence_but_not_what_is_adjusted(tmp_path: Path) -> None:
    ingress = (
        "Counter<bit<32>, bit<8>>(16, CounterType_t.PACKETS_AND_BYTES) counter;"
        " apply { tm.ucast_egress_port = 2; counter.count(hdr.h.kind); counter.count(8, sizeInBytes(hdr.h)); }"
    )
    made = switch(tmp_path, INGRESS=ingress)
    made.process(1, H + REST)
    length = len(H + REST) + 4
    assert made.counter_read("In.counter", 7) == (1, length)
    assert made.counter_read("In.counter", 8) == (1, length - 2)


def test_functions(tmp_path: Path) -> None:
    ingress = (
        "apply { tm.ucast_egress_port = 2; hdr.wide.setValid(); bit<8> high = max(hdr.h.kind, hdr.h.value);"
        " bit<8> low = min(hdr.h.kind, hdr.h.value); bit<8> shifted = 0;"
        " funnel_shift_right(shifted, hdr.h.kind, hdr.h.value, 4);"
        " hdr.wide.a = high ++ low ++ shifted ++ (bit<8>) sizeInBits(hdr.h); hdr.wide.b = 0; }"
    )
    ((_, data),) = sent(tmp_path, bytes([0x25, 0xC1]), INGRESS=ingress)[0]
    assert data[2:6] == bytes([0xC1, 0x25, 0x5C, 16])


def test_what_is_sent_with_a_copy_has_an_end(tmp_path: Path) -> None:
    deparser = "Resubmit() again; apply { again.emit<wide_t>({hdr.wide.a, hdr.wide.b}); packet.emit(hdr); }"
    assert compiled(tmp_path, INGRESS_DEPARSER=deparser)
    with pytest.raises(CompileError, match="what is sent with a copy has 16 bytes, at most 8"):
        compiled(tmp_path, INGRESS_DEPARSER="Resubmit() r; apply { r.emit<bit<128>>((bit<128>) hdr.wide.a); }")


def test_a_register_that_only_its_action_names_is_used(tmp_path: Path) -> None:
    ingress = (
        "Register<bit<32>, bit<9>>(4) named; Register<bit<32>, bit<9>>(4) idle;"
        " RegisterAction<bit<32>, bit<9>, bit<32>>(named) add = { void apply(inout bit<32> v) { v = v + 1; } };"
        " apply { add.execute(0); tm.ucast_egress_port = 2; }"
    )
    checked = parse_and_check(write(tmp_path, INGRESS=ingress), arch="tna")
    assert [w.message for w in checked.warnings if w.name == "unused"] == ["Register 'idle' is never used"]


REGISTERS = (
    "Register<bit<32>, bit<9>>(4) first; Register<bit<32>, bit<9>>(4) second;"
    " RegisterAction<bit<32>, bit<9>, bit<32>>(first) add = { void apply(inout bit<32> v) { v = v + 1; } };"
    " RegisterAction<bit<32>, bit<9>, bit<32>>(first) clear = { void apply(inout bit<32> v) { v = 0; } };"
    " RegisterAction<bit<32>, bit<9>, bit<32>>(second) more = { void apply(inout bit<32> v) { v = v + 2; } };"
    " action adds() { add.execute(0); } action clears() { clear.execute(0); } action none() {}"
    " table t { key = { hdr.h.kind : exact; } actions = { adds; clears; none; } default_action = none(); }"
    " apply { tm.ucast_egress_port = 2; more.execute(0); CODE }"
)


@pytest.mark.parametrize(
    ("code", "uses"),
    [
        ("add.execute(0);", 1),
        ("add.execute(0); clear.execute(0);", 2),
        ("first.write(0, 5); hdr.wide.a = first.read(0);", 2),
        ("if (hdr.h.kind == 1) { add.execute(0); } else { clear.execute(0); }", 1),
        ("if (hdr.h.kind == 1) { add.execute(0); } clear.execute(0);", 2),
        ("if (hdr.h.kind == 1) { add.execute(0); return; } clear.execute(0);", 1),
        ("if (hdr.h.kind == 1) { add.execute(0); exit; } clear.execute(0);", 1),
        ("t.apply();", 1),
        ("t.apply(); add.execute(0);", 2),
        ("switch (t.apply().action_run) { none: { add.execute(0); } }", 1),
        ("switch (t.apply().action_run) { adds: { clear.execute(0); } default: {} }", 2),
        ("switch (t.apply().action_run) { adds: {} clears: {} default: { add.execute(0); } }", 1),
        ("switch (hdr.h.kind) { 1: { add.execute(0); } 2: { clear.execute(0); } }", 1),
        ("switch (hdr.h.kind) { 1: { add.execute(0); } default: {} } clear.execute(0);", 2),
        ("adds(); clears(); add.execute(0);", 3),
    ],
)
def test_a_register_that_a_packet_uses_twice_is_told(tmp_path: Path, code: str, uses: int) -> None:
    checked = parse_and_check(write(tmp_path, INGRESS=REGISTERS.replace("CODE", code)), arch="tna")
    told = [w.message for w in checked.warnings if w.name == "register-executions"]
    text = f"register 'first' is used {uses} times for one packet, and a chip uses it once"
    assert told == ([text] if uses > 1 else [])


def test_two_instances_of_a_control_have_a_register_each(tmp_path: Path) -> None:
    program = write(tmp_path, INGRESS="Own() one; Own() other; apply { one.apply(); other.apply(); }")
    control = (
        "control Own() { Register<bit<32>, bit<9>>(4) r; RegisterAction<bit<32>, bit<9>, bit<32>>(r) add ="
        " { void apply(inout bit<32> v) { v = v + 1; } }; apply { add.execute(0); } }\ncontrol In("
    )
    program.write_text(program.read_text().replace("control In(", control))
    assert [w.name for w in parse_and_check(program, arch="tna").warnings] == []
    program.write_text(program.read_text().replace("other.apply()", "one.apply()"))
    assert "register-executions" in [w.name for w in parse_and_check(program, arch="tna").warnings]
