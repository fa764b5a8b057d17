"""v1model's externs, from P4 source to packets on the built-in switch."""

from __future__ import annotations

import binascii
import struct
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from p4switch.compiler import compile_program
from p4switch.engine import Switch, build, load

PROGRAM = """
#include <core.p4>
#include <v1model.p4>
header data_t {{ bit<8> a; bit<8> b; bit<16> x; bit<32> r; }}
struct headers_t {{ data_t data; }}
{metadata}
{declarations}
parser parse(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {{
    {parser}
}}
control verify_sums(inout headers_t hdr, inout meta_t meta) {{ apply {{ {verify} }} }}
control ingress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {{ {ingress} }}
control egress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {{ {egress} }}
control update_sums(inout headers_t hdr, inout meta_t meta) {{ apply {{ {update} }} }}
control deparse(packet_out pkt, in headers_t hdr) {{ apply {{ pkt.emit(hdr); }} }}
V1Switch(parse(), verify_sums(), ingress(), egress(), update_sums(), deparse()) main;
"""
METADATA = """
struct meta_t { @field_list(1) bit<8> kept; @field_list(1, 2) bit<16> both; bit<8> lost; bit<2> color; bit<8> set; }
"""
EXTRACT = "state start { pkt.extract(hdr.data); transition accept; }"


@pytest.fixture
def switch(tmp_path: Path) -> Callable[..., Switch]:
    def make(ingress: str, egress: str = "apply { }", parser: str = EXTRACT, **parts: str) -> Switch:
        text = PROGRAM.format(
            ingress=ingress,
            egress=egress,
            parser=parser,
            declarations=parts.get("declarations", ""),
            verify=parts.get("verify", ""),
            update=parts.get("update", ""),
            metadata=parts.get("metadata", METADATA),
        )
        path = tmp_path / "program.p4"
        path.write_text(text)
        made: Switch = load().Switch(str(build(compile_program(path).program)), seed=1, tick_ns=1000)
        return made

    return make


def frame(a: int = 0, b: int = 0, x: int = 0, r: int = 0, payload: bytes = b"") -> bytes:
    return struct.pack("!BBHI", a, b, x, r) + payload


def send(sw: Switch, data: bytes, now: int = 0) -> list[tuple[int, tuple[int, int, int, int], bytes]]:
    return [(port, struct.unpack("!BBHI", out[:8]), out[8:]) for port, out in sw.process(0, data, now)]


def test_register(switch: Callable[..., Switch]) -> None:
    sw = switch("""
        register<bit<32>>(4) counts;
        apply {
            std.egress_spec = 1;
            bit<32> n;
            counts.read(n, (bit<32>)hdr.data.a);
            n = n + 1;
            counts.write((bit<32>)hdr.data.a, n);
            hdr.data.r = n;
        }""")
    assert [send(sw, frame(a=2))[0][1][3] for _ in range(3)] == [1, 2, 3]
    assert send(sw, frame(a=1))[0][1][3] == 1
    assert sw.register_read("ingress.counts", 2) == (3).to_bytes(4, "big")


def test_counters(switch: Callable[..., Switch]) -> None:
    sw = switch("""
        counter(4, CounterType.packets_and_bytes) seen;
        direct_counter(CounterType.packets_and_bytes) hits;
        table t { key = { hdr.data.a : exact; } actions = { NoAction; } counters = hits; }
        apply { std.egress_spec = 1; seen.count((bit<32>)hdr.data.b); t.apply(); }""")
    handle = sw.table_add("ingress.t", [(b"\x07", b"")], 0, ("action", "NoAction", []))
    for a in (7, 7, 8):
        send(sw, frame(a=a, b=3, payload=bytes(12)))
    assert sw.counter_read("ingress.seen", 3) == (3, 60)
    assert sw.counter_read("ingress.seen", 0) == (0, 0)
    assert sw.direct_counter_read("ingress.t", handle) == (2, 40)


def test_meters(switch: Callable[..., Switch]) -> None:
    sw = switch("""
        meter(2, MeterType.packets) rate;
        direct_meter<bit<2>>(MeterType.packets) per_entry;
        action look() { per_entry.read(meta.color); }
        table t { key = { hdr.data.a : exact; } actions = { look; NoAction; } meters = per_entry; }
        apply {
            std.egress_spec = 1;
            bit<8> c = 9;
            rate.execute_meter((bit<32>)hdr.data.b, c);
            t.apply();
            hdr.data.b = c;
            hdr.data.a = (bit<8>)meta.color;
        }""")
    handle = sw.table_add("ingress.t", [(b"\x07", b"")], 0, ("action", "ingress.look", []))
    assert send(sw, frame(a=7))[0][1][:2] == (0, 0)  # green without rates
    sw.meter_set("ingress.rate", 0, (1, 1, 1, 2))
    sw.direct_meter_set("ingress.t", handle, (1, 1, 1, 1))
    colors = [send(sw, frame(a=7), now=1_000_000)[0][1][:2] for _ in range(4)]
    assert [c[1] for c in colors] == [0, 1, 2, 2]
    assert [c[0] for c in colors] == [0, 2, 2, 2]


@pytest.mark.parametrize("key", ["key = { hdr.data.a : exact; }", ""])
@pytest.mark.parametrize("const", ["", "const "])
def test_the_meter_of_a_default_entry(switch: Callable[..., Switch], key: str, const: str) -> None:
    sw = switch(f"""
        direct_meter<bit<2>>(MeterType.packets) per_entry;
        action look() {{ per_entry.read(meta.color); }}
        table t {{ {key} actions = {{ look; }} {const}default_action = look(); meters = per_entry; }}
        apply {{ std.egress_spec = 1; t.apply(); hdr.data.a = (bit<8>)meta.color; }}""")
    assert [send(sw, frame(a=7))[0][1][0] for _ in range(3)] == [0, 0, 0]
    sw.direct_meter_set("ingress.t", None, (1, 1, 1, 1))
    assert [send(sw, frame(a=7), now=1_000_000)[0][1][0] for _ in range(3)] == [0, 2, 2]


def test_random_is_within_bounds_and_depends_on_the_seed(switch: Callable[..., Switch], tmp_path: Path) -> None:
    body = "apply { std.egress_spec = 1; random(hdr.data.r, (bit<32>)hdr.data.a, (bit<32>)hdr.data.b); }"
    sw = switch(body)
    values = [send(sw, frame(a=10, b=13))[0][1][3] for _ in range(200)]
    assert set(values) == {10, 11, 12, 13}
    again = switch(body)
    assert [send(again, frame(a=10, b=13))[0][1][3] for _ in range(200)] == values


def test_hash(switch: Callable[..., Switch]) -> None:
    sw = switch("""
        apply {
            std.egress_spec = 1;
            bit<32> crc;
            hash(crc, HashAlgorithm.crc32, 32w0, { hdr.data.a, hdr.data.b, 16w0x1234 }, 64w0x100000000);
            hash(hdr.data.x, HashAlgorithm.crc16, 16w100, { hdr.data.a, hdr.data.b }, 16w10);
            hdr.data.r = crc;
        }""")
    _, (_, _, x, r), _ = send(sw, frame(a=1, b=2))[0]
    assert r == binascii.crc32(b"\x01\x02\x12\x34")
    assert 100 <= x < 110


def test_digest_has_the_values_of_the_call(switch: Callable[..., Switch]) -> None:
    sw = switch(
        """
        apply {
            std.egress_spec = 1;
            if (hdr.data.a != 0) {
                digest<learn_t>(1, { hdr.data.a, hdr.data.x });
                hdr.data.x = 0;
            }
        }""",
        declarations="struct learn_t { bit<8> a; bit<16> x; }",
    )
    send(sw, frame(a=0, x=1))
    send(sw, frame(a=5, x=0x1234))
    assert sw.digests() == [(1, b"\x05\x12\x34")]


def test_truncate(switch: Callable[..., Switch]) -> None:
    sw = switch("apply { std.egress_spec = 1; truncate((bit<32>)hdr.data.a); }")
    assert sw.process(0, frame(a=10, payload=bytes(50)))[0][1] == frame(a=10, payload=bytes(2))
    assert len(sw.process(0, frame(a=200, payload=bytes(50)))[0][1]) == 58


def test_action_profile_and_selector(switch: Callable[..., Switch]) -> None:
    sw = switch("""
        action send(bit<9> port) { std.egress_spec = port; }
        action_profile(8) members;
        action_selector(HashAlgorithm.crc16, 32w16, 32w14) groups;
        table t { key = { hdr.data.a : exact; } actions = { send; NoAction; } implementation = members; }
        table u {
            key = { hdr.data.a : exact; hdr.data.x : selector; hdr.data.b : selector; }
            actions = { send; }
            implementation = groups;
        }
        apply { if (!t.apply().hit) { u.apply(); } }""")
    port = [sw.member_add("ingress.members", "ingress.send", [n.to_bytes(2, "big")]) for n in (3, 4)]
    sw.table_add("ingress.t", [(b"\x01", b"")], 0, ("member", port[1]))
    assert send(sw, frame(a=1))[0][0] == 4
    choices = [sw.member_add("ingress.groups", "ingress.send", [n.to_bytes(2, "big")]) for n in (5, 6, 7)]
    group = sw.group_add("ingress.groups")
    sw.group_set("ingress.groups", group, choices)
    sw.table_add("ingress.u", [(b"\x02", b"")], 0, ("group", group))
    ports = Counter(send(sw, frame(a=2, x=i))[0][0] for i in range(300))
    assert set(ports) == {5, 6, 7}
    assert min(ports.values()) > 50
    assert {send(sw, frame(a=2, x=9, b=9, r=i))[0][0] for i in range(20)} == {send(sw, frame(a=2, x=9, b=9))[0][0]}


def test_selectors_hash_validity_and_masked_keys(switch: Callable[..., Switch]) -> None:
    sw = switch("""
        action send(bit<9> port) { std.egress_spec = port; }
        action_selector(HashAlgorithm.crc16, 32w16, 32w14) groups;
        table t {
            key = {
                hdr.data.a : exact;
                hdr.data.isValid() : selector;
                hdr.data.b & 3 : selector @name("low");
            }
            actions = { send; }
            implementation = groups;
        }
        apply { t.apply(); }""")
    choices = [sw.member_add("ingress.groups", "ingress.send", [n.to_bytes(2, "big")]) for n in range(5, 9)]
    group = sw.group_add("ingress.groups")
    sw.group_set("ingress.groups", group, choices)
    sw.table_add("ingress.t", [(b"\x02", b"")], 0, ("group", group))
    ports = [send(sw, frame(a=2, b=b))[0][0] for b in range(8)]
    assert ports[:4] == ports[4:]
    assert len(set(ports)) > 1


def test_value_set(switch: Callable[..., Switch]) -> None:
    sw = switch(
        "apply { std.egress_spec = 1; hdr.data.b = meta.set; }",
        parser="""
        value_set<bit<8>>(4) special;
        state start {
            pkt.extract(hdr.data);
            transition select(hdr.data.a) { special: yes; 9: nine; default: accept; }
        }
        state yes { meta.set = 1; transition accept; }
        state nine { meta.set = 9; transition accept; }
        """,
    )
    assert [send(sw, frame(a=a))[0][1][1] for a in (5, 9)] == [0, 9]
    sw.value_set_set("parse.special", [[(b"\x05", b"")], [(b"\x09", b"")]])
    assert [send(sw, frame(a=a))[0][1][1] for a in (5, 6, 9)] == [1, 0, 1]


CLONE = """
    apply {
        std.egress_spec = 1;
        meta.kept = 7; meta.both = 8; meta.lost = 9;
        if (hdr.data.a == 1) { clone_preserving_field_list(CloneType.I2E, 5, 1); }
        if (hdr.data.a == 2) { clone(CloneType.I2E, 5); }
        if (hdr.data.a == 3) { clone_preserving_field_list(CloneType.I2E, 5, 2); }
        hdr.data.x = 0xffff;
    }"""
REPORT = """
    apply {
        hdr.data.b = (bit<8>)std.instance_type;
        hdr.data.r = meta.kept ++ meta.both ++ meta.lost;
        if (hdr.data.a == 4 && meta.kept == 0) {
            meta.kept = 0x44;
            recirculate_preserving_field_list(1);
        }
        if (hdr.data.a == 5 && std.instance_type == 0) { clone_preserving_field_list(CloneType.E2E, 6, 1); }
    }"""


@pytest.mark.parametrize(("a", "fields"), [(1, 0x07000800), (2, 0), (3, 0x00000800)])
def test_clone_keeps_the_fields_of_its_list(switch: Callable[..., Switch], a: int, fields: int) -> None:
    sw = switch(CLONE, REPORT)
    sw.clone_session_set(5, [(9, 0)])
    by_port = {port: values for port, values, _ in send(sw, frame(a=a, x=0x1234))}
    assert by_port[1] == (a, 0, 0xFFFF, 0x07000809)
    assert by_port[9] == (a, 1, 0x1234, fields)


NESTED = """
header inner_h { @field_list(3) bit<8> h; bit<8> lost; }
struct deep_t { @field_list(3) bit<8> x; bit<8> lost; }
struct both_t { deep_t deep; @field_list(3, 4) bit<8> y; inner_h one; inner_h[2] stack; tuple<deep_t, bit<8>> pair; }
struct meta_t { deep_t n; both_t m; @field_list(3) bit<8> z; @field_list(4) deep_t all; }
"""


def test_a_field_list_reaches_into_structs_and_headers_of_the_metadata(tmp_path: Path) -> None:
    text = PROGRAM.format(
        declarations="",
        parser=EXTRACT,
        verify="",
        ingress="""apply {
            if (hdr.data.a == 0) { clone_preserving_field_list(CloneType.I2E, 5, 3); }
            if (hdr.data.a == 1) { clone_preserving_field_list(CloneType.I2E, 5, 4); }
        }""",
        egress="apply { }",
        update="",
        metadata=NESTED,
    )
    path = tmp_path / "program.p4"
    path.write_text(text)
    lists = {
        entry["name"]: [e["value"] for e in entry["elements"]] for entry in compile_program(path).json["field_lists"]
    }
    names = {
        name: [".".join(value).removeprefix("scalars.").removeprefix("userMetadata.") for value in values]
        for name, values in lists.items()
    }
    assert names["field_list3"] == [
        "n.x", "m.deep.x", "m.y", "m.one.h", "m.stack[0].h", "m.stack[1].h", "m.pair.0.x", "z", "all.x",
    ]  # fmt: skip
    assert names["field_list4"] == ["m.y", "all.x", "all.lost"]


def test_resubmit_keeps_a_field_of_a_nested_struct(switch: Callable[..., Switch]) -> None:
    sw = switch(
        """
        apply {
            std.egress_spec = 1;
            hdr.data.b = meta.inner.kept;
            hdr.data.a = meta.inner.lost;
            if (std.instance_type == 0) {
                meta.inner.kept = 0x11;
                meta.inner.lost = 0x22;
                resubmit_preserving_field_list(1);
            }
        }""",
        metadata="struct inner_t { bit<8> lost; @field_list(1) bit<8> kept; } struct meta_t { inner_t inner; }",
    )
    assert send(sw, frame())[0][1] == (0, 0x11, 0, 0)


@pytest.mark.parametrize(
    "loop",
    [
        "apply { std.egress_spec = 1; BODY }",
        "action a() { BODY } apply { std.egress_spec = 1; a(); }",
        "table t { actions = { NoAction; } } apply { std.egress_spec = 1; LOOP { t.apply(); } }",
    ],
)
def test_a_packet_in_an_endless_loop_is_dropped_and_counted(switch: Callable[..., Switch], loop: str) -> None:
    head = "for (meta.set = 0; meta.set < hdr.data.a; meta.set = meta.set & 0)"
    loop = loop.replace("BODY", f"{head} {{ hdr.data.b = hdr.data.b + 1; }}").replace("LOOP", head)
    for parts in ({"ingress": loop}, {"ingress": "apply { std.egress_spec = 1; }", "egress": loop}):
        sw = switch(**parts)
        assert [len(send(sw, frame(a=a))) for a in (0, 1, 0)] == [1, 0, 1]
        assert sw.counts == {"received": 3, "cloned": 0, "multicast": 0, "transmitted": 2, "dropped": 1}


def test_recirculate_and_egress_clone(switch: Callable[..., Switch]) -> None:
    sw = switch("apply { std.egress_spec = 1; meta.lost = 9; }", REPORT)
    sw.clone_session_set(6, [(9, 3)])
    [(port, values, _)] = send(sw, frame(a=4))
    assert (port, values) == (1, (4, 0, 0, 0x44000009))
    by_port = {port: values for port, values, _ in send(sw, frame(a=5))}
    assert by_port[1][1] == 0
    assert by_port[9][1] == 2


def test_resubmit(switch: Callable[..., Switch]) -> None:
    sw = switch("""
        apply {
            std.egress_spec = 1;
            hdr.data.r = meta.kept ++ meta.both ++ meta.lost;
            hdr.data.b = (bit<8>)std.instance_type;
            if (std.instance_type == 0) {
                meta.kept = 0x11;
                meta.lost = 0x22;
                resubmit_preserving_field_list(1);
            }
        }""")
    assert send(sw, frame(b=0x55))[0][1] == (0, 6, 0, 0x11000000)


def test_multicast_priority_and_timestamps(switch: Callable[..., Switch]) -> None:
    sw = switch(
        "apply { std.mcast_grp = 3; hdr.data.r = (bit<32>)std.ingress_global_timestamp; std.priority = 2; }",
        "apply { hdr.data.a = (bit<8>)std.egress_port; hdr.data.x = std.egress_rid; }",
    )
    sw.multicast_set(3, [(4, 1), (5, 2), (4, 9)])
    out = send(sw, frame(), now=1_000)
    assert sorted((port, v[0], v[2]) for port, v, _ in out) == [(4, 4, 1), (4, 4, 9), (5, 5, 2)]
    first = out[0][1][3]
    assert send(sw, frame(), now=3_000)[0][1][3] - first == 2_000


def test_checksums(switch: Callable[..., Switch]) -> None:
    fields = "{ hdr.data.a, hdr.data.b, hdr.data.r }"
    sw = switch(
        "apply { std.egress_spec = 1 + (bit<9>)std.checksum_error; hdr.data.b = 0x80; }",
        verify=f"verify_checksum(hdr.data.a != 0xff, {fields}, hdr.data.x, HashAlgorithm.csum16);",
        update=f"if (hdr.data.a != 0xfe) {{ update_checksum(true, {fields}, hdr.data.x, HashAlgorithm.csum16); }}",
    )

    def checksum(a: int, b: int, r: int) -> int:
        total = (a << 8 | b) + (r >> 16) + (r & 0xFFFF)
        total = (total & 0xFFFF) + (total >> 16)
        return ~total & 0xFFFF

    good = checksum(1, 2, 0x12345678)
    assert send(sw, frame(1, 2, good, 0x12345678))[0][:2] == (1, (1, 0x80, checksum(1, 0x80, 0x12345678), 0x12345678))
    assert send(sw, frame(1, 2, good ^ 1, 0x12345678))[0][0] == 2
    assert send(sw, frame(0xFF, 2, 1, 0))[0][0] == 1
    assert send(sw, frame(0xFE, 2, checksum(0xFE, 2, 0), 0))[0][1][2] == checksum(0xFE, 2, 0)


def test_a_failed_assertion_and_messages_do_not_stop_the_switch(switch: Callable[..., Switch]) -> None:
    sw = switch("""
        apply {
            std.egress_spec = 1;
            log_msg("a = {}, valid = {}", { hdr.data.a, hdr.data.isValid() });
            log_msg("data = {}, x = {}", { hdr.data, hdr.data.x });
            log_msg("plain");
            assume(true);
            assert(hdr.data.isValid());
        }""")
    assert len(send(sw, frame())) == 1
