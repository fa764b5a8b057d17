"""The device on the real compiler and engine: writes affect packets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from p4switch import engine
from p4switch.compiler import compile_program
from p4switch.p4runtime import Device
from p4switch.p4runtime.messages import Message, p4runtime_pb2
from tests.p4switch.p4runtime import everything
from tests.p4switch.p4runtime.controller import INSERT, Controller, config_request
from tests.p4switch.p4runtime.test_cells import config, counter, meter, register, value_set
from tests.p4switch.p4runtime.test_profiles import by_group, by_member, group, member
from tests.p4switch.p4runtime.test_replication import group as multicast
from tests.p4switch.p4runtime.test_replication import session
from tests.p4switch.p4runtime.test_streams import digest, values

PROGRAM = everything.PROGRAM


class Bench:
    def __init__(self, program: Path = PROGRAM) -> None:
        compiled = compile_program(program)
        self.now_ns = 0
        self.installed: list[Any] = []
        library = str(engine.build(compiled.program))
        self.device = Device(
            lambda _: engine.load().Switch(library), install=self.installed.append, clock_ns=lambda: self.now_ns
        )
        self.config = json.dumps(compiled.json).encode()
        self.info = compiled.p4info
        self.device.set_forwarding_pipeline_config(config_request(self.info, self.config))
        self.controller = Controller(self.device, self.info)

    def send(self, port: int = 0, **fields: int) -> Any:
        """Return the frames, with their ports, that result from a packet with these fields of wide_t."""
        layout = {"e": 2, "l": 4, "t": 2, "r": 1, "o": 1, "kind": 2}
        values = {"t": 0xFFFF, **fields}
        assert values.keys() <= layout.keys()
        frame = b"".join(values.get(name, 0).to_bytes(size, "big") for name, size in layout.items())
        return self.installed[-1].process(port, frame, self.now_ns)

    def ports(self, **fields: int) -> list[int]:
        """Return the port at which a packet leaves."""
        return [port for port, _ in self.send(**fields)]


@pytest.fixture
def bench() -> Bench:
    return Bench()


@pytest.fixture
def c(bench: Bench) -> Controller:
    # Packets that no table speaks of are to leave by port 0.
    bench.controller.modify(bench.controller.entry("lpm_one", None, ("send", {"port": 0}), is_default_action=True))
    return bench.controller


def test_every_match_kind(bench: Bench, c: Controller) -> None:
    assert bench.ports(e=7, l=0x0A0B0C0D, t=0x8200, r=7, o=3) == [0]
    match = {"e": 7, "l": (0x0A000000, 8), "t": (0x8200, 0xFF00), "r": (5, 9), "o": 3}
    c.insert(c.entry("mixed", match, ("send", {"port": 9}), priority=10))
    hit = {"e": 7, "l": 0x0A0B0C0D, "t": 0x82FF, "r": 9, "o": 3}
    assert bench.ports(**hit) == [9]
    for miss in ({"e": 6}, {"l": 0x0B000000}, {"t": 0x83FF}, {"r": 4}, {"r": 10}, {"o": 2}):
        assert bench.ports(**{**hit, **miss}) == [0], miss
    c.insert(c.entry("mixed", {"e": 7}, ("send", {"port": 8}), priority=9))  # everything else: don't care
    assert bench.ports(**hit) == [9]
    assert bench.ports(**{**hit, "o": 2}) == [8]
    c.insert(c.entry("mixed", {"e": 7, "r": (9, 9)}, ("drop",), priority=11))
    assert bench.ports(**hit) == []
    c.delete(c.entry("mixed", {"e": 7, "r": (9, 9)}, priority=11), c.entry("mixed", match, priority=10))
    assert bench.ports(**hit) == [8]


def test_longest_prefix(bench: Bench, c: Controller) -> None:
    c.insert(
        c.entry("lpm_one", {"l": (0x0A000000, 8)}, ("send", {"port": 1})),
        c.entry("lpm_one", {"l": (0x0A0B0000, 16)}, ("send", {"port": 2})),
        c.entry("lpm_one", {"l": (0x0A0B0C0D, 32)}, ("send", {"port": 3})),
        c.entry("lpm_one", None, ("send", {"port": 4})),
    )
    assert [bench.ports(l=a) for a in (0x0A000001, 0x0A0B0001, 0x0A0B0C0D, 1)] == [[1], [2], [3], [4]]


def test_initial_entries(bench: Bench, c: Controller) -> None:
    assert bench.ports(t=0x01FF) == [1]
    assert bench.ports(t=0x02FF) == [2]
    assert bench.ports(r=1) == [1]
    c.modify(c.entry("preset", {"r": 1}, ("send", {"port": 7})))
    c.delete(c.entry("preset", {"r": 2}))
    assert bench.ports(r=1) == [7]
    assert bench.ports(r=2) == [0]


def test_direct_counters_and_meters(bench: Bench, c: Controller) -> None:
    c.insert(c.entry("exact_one", {"e": 5}, ("counted_send", {"port": 3}), counter_data={"packet_count": 10}))
    assert bench.ports(e=5) == [3]
    (entry,) = c.read(c.entry("exact_one", None, counter_data={}))
    assert (entry.counter_data.packet_count, entry.counter_data.byte_count) == (11, 12)
    c.modify(c.entry("exact_one", {"e": 5}, meter_config=config(1, 1, 1, 1)))
    bench.send(e=5)
    (message,) = c.read(p4runtime_pb2.DirectCounterEntry(table_entry=c.entry("exact_one", {"e": 5})))
    assert message.data.packet_count == 12


def test_full_table(bench: Bench, c: Controller) -> None:
    c.insert(*(c.entry("exact_one", {"e": i}, ("counted_drop",)) for i in range(16)))
    c.refused("RESOURCE_EXHAUSTED", INSERT, c.entry("exact_one", {"e": 16}, ("counted_drop",)))


def test_cells(bench: Bench, c: Controller) -> None:
    c.modify(register(c, "words", 0, b"\x01\x02"), meter(c, 1, 1, 1, 1, 1))
    bench.send(port=1)
    assert c.read(counter(c, 1)) == [counter(c, 1, (1, 12))]
    assert c.read(register(c, "words", 1)) == [register(c, "words", 1, b"\x01\x03")]
    c.modify(register(c, "signs", 0, b"\xfd\x1d"))
    bench.send(port=1)
    assert c.read(register(c, "signs", 1)) == [register(c, "signs", 1, b"\xfd\x1d")]


def test_members_and_groups(bench: Bench, c: Controller) -> None:
    c.insert(member(c, 1, 11), member(c, 2, 12), group(c, 5, (1, 1), (2, 1)))
    c.insert(c.entry("selected", {"o": 1}, by_group(5)), c.entry("selected", {"o": 2}, by_member(2)))
    assert bench.ports(o=2) == [12]
    assert {bench.ports(o=1, l=i)[0] for i in range(64)} == {11, 12}
    c.modify(group(c, 5, (2, 1)))
    assert {bench.ports(o=1, l=i)[0] for i in range(64)} == {12}
    c.modify(member(c, 2, 13))
    assert bench.ports(o=1) == [13]
    c.delete(c.entry("selected", {"o": 1}), group(c, 5), c.entry("selected", {"o": 2}), member(c, 1, None))
    assert bench.ports(o=1) == [0]
    c.insert(member(c, 1, 14, "profile"), c.entry("profiled", {"o": 9}, by_member(1)))
    assert bench.ports(o=9) == [14]


def test_one_shot_weights(bench: Bench, c: Controller) -> None:
    action = c.action_set(("send", {"port": 1}, 3), ("send", {"port": 2}, 1))
    c.insert(c.entry("selected", {"o": 1}, action))
    chosen = [bench.ports(o=1, l=i * 0x01000193 % 2**32)[0] for i in range(1000)]
    assert 600 < chosen.count(1) < 900
    c.delete(c.entry("selected", {"o": 1}))
    assert bench.ports(o=1) == [0]


def test_watched_port(bench: Bench, c: Controller) -> None:
    c.insert(c.entry("selected", {"o": 1}, c.action_set(("send", {"port": 1}, 1, 1), ("send", {"port": 2}, 1, 2))))
    bench.device.set_port_up(1, False)
    assert {bench.ports(o=1, l=i)[0] for i in range(64)} == {2}


def test_replication(bench: Bench, c: Controller) -> None:
    c.insert(c.entry("lpm_one", {"l": (1, 32)}, ("to_group", {"group": 3})), multicast(3, (b"\x05", 1), (b"\x06", 2)))
    assert sorted(bench.ports(l=1)) == [5, 6]
    c.delete(multicast(3))
    assert bench.ports(l=1) == []
    c.insert(session(5, (b"\x07", 1), packet_length_bytes=4))
    assert sorted((port, len(frame)) for port, frame in bench.send(o=0xCC)) == [(0, 12), (7, 4)]


def test_value_sets(bench: Bench, c: Controller) -> None:
    assert bench.send(kind=0x0800)[0][1][-2:] == b"\x08\x00"
    c.modify(value_set(c, b"\x08\x00", b"\x08\x01"))
    assert bench.send(kind=0x0800)[0][1][-2:] == b"\xff\xff"
    assert bench.send(kind=0x0802)[0][1][-2:] == b"\x08\x02"


def test_a_value_set_of_an_enum_has_values_of_its_underlying_type() -> None:
    bench = Bench(Path(__file__).parents[1] / "stf" / "signed.p4")
    (info,) = (v for v in bench.info.value_sets if v.preamble.alias == "steps")
    assert [(match.id, match.bitwidth) for match in info.match] == [(1, 8)]
    message: Message = p4runtime_pb2.ValueSetEntry(value_set_id=info.preamble.id)
    message.members.add().match.add(field_id=1).exact.value = b"\xff"
    bench.controller.modify(message)
    assert bench.controller.read(p4runtime_pb2.ValueSetEntry(value_set_id=info.preamble.id)) == [message]
    seen = {a: bench.installed[-1].process(0, bytes([0x14, a, 0, 0, 0]), 0)[0][1][-1] for a in (0xFE, 0xFF, 1)}
    assert seen == {0xFE: 0, 0xFF: 1, 1: 0}


def test_digests(bench: Bench, c: Controller) -> None:
    c.insert(c.entry("lpm_one", {"l": (1, 32)}, ("learn",)), digest(c))
    bench.send(e=0x1234, l=1, port=300)
    (message,) = bench.device.poll()
    assert values(message) == [[b"\x12\x34", b"\x01\x2c"]]


def test_packet_io(bench: Bench, c: Controller) -> None:
    out: Message = p4runtime_pb2.PacketOut(payload=bytes(12))
    out.metadata.add(metadata_id=1, value=b"\x01\x2c")
    out.metadata.add(metadata_id=2, value=b"\x00")
    ((port, frame),) = bench.installed[-1].process(510, bench.device.packet_out(out))
    assert (port, frame) == (300, bytes(12))
    c.insert(c.entry("lpm_one", {"l": (1, 32)}, ("send", {"port": 510})))
    ((port, frame),) = bench.send(l=1, port=44)
    packet = bench.device.packet_in(frame).packet
    assert port == 510
    assert [m.value for m in packet.metadata] == [b"\x2c", b"\x03"]
    assert packet.payload[2:6] == b"\0\0\0\x01"


def test_idle_timeout(bench: Bench, c: Controller) -> None:
    bench.now_ns = 1000
    c.insert(c.entry("fading", {"e": 1}, ("send", {"port": 6}), idle_timeout_ns=500))
    bench.now_ns = 1400
    bench.send(e=1)
    bench.now_ns = 1899
    assert bench.device.poll() == []
    bench.now_ns = 1900
    assert len(bench.device.poll()) == 1


def test_reconcile_keeps_what_packets_meet(bench: Bench, c: Controller) -> None:
    c.insert(c.entry("selected", {"o": 1}, c.action_set(("send", {"port": 3}, 2))))
    c.insert(c.entry("mixed", {"e": 7}, ("send", {"port": 8}), priority=9))
    c.modify(counter(c, 2, (5, 6)))
    bench.device.set_forwarding_pipeline_config(config_request(bench.info, bench.config, "RECONCILE_AND_COMMIT"))
    assert len(bench.installed) == 2
    assert bench.ports(o=1) == [3]
    assert bench.ports(e=7) == [8]
    assert bench.ports() == [0]
    assert c.read(counter(c, 2)) == [counter(c, 2, (5, 6))]


EMPTY_PARAMETER = """
#include <v1model.p4>
struct none_t { }
parser parse(packet_in pkt, out none_t hdr, inout none_t meta, inout standard_metadata_t std) {
    state start { transition accept; }
}
control sums(inout none_t hdr, inout none_t meta) { apply { } }
control ingress(inout none_t hdr, inout none_t meta, inout standard_metadata_t std) {
    action send(bit<0> nothing, bit<9> port) { std.egress_spec = port + (bit<9>)(nothing ++ 8w0); }
    table t { key = { std.ingress_port: exact; } actions = { send; } const default_action = send(0, 3); }
    apply { t.apply(); }
}
control egress(inout none_t hdr, inout none_t meta, inout standard_metadata_t std) { apply { } }
control deparse(packet_out pkt, in none_t hdr) { apply { } }
V1Switch(parse(), sums(), ingress(), egress(), sums(), deparse()) main;
"""


def test_a_parameter_of_no_bits_is_given_and_is_nothing(tmp_path: Path) -> None:
    path = tmp_path / "program.p4"
    path.write_text(EMPTY_PARAMETER)
    bench = Bench(path)
    c = bench.controller
    port = "std.ingress_port"
    c.insert(c.entry("t", {port: 1}, ("send", {"nothing": 0, "port": 5})))
    assert [p for n in (1, 2) for p, _ in bench.installed[-1].process(n, bytes(20), 0)] == [5, 3]
    assert c.read(c.entry("t")) == [c.entry("t", {port: 1}, ("send", {"nothing": 0, "port": 5}))]
    bad = c.entry("t", {port: 2}, ("send", {"nothing": 1, "port": 5}))
    assert "does not fit in 0 bits" in c.refused("INVALID_ARGUMENT", INSERT, bad)


METERED = """
#include <v1model.p4>
header data_t { bit<8> kind; }
struct headers_t { data_t data; }
struct meta_t { bit<2> colour; }
parser parse(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    state start { pkt.extract(hdr.data); transition accept; }
}
control sums(inout headers_t hdr, inout meta_t meta) { apply { } }
control ingress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    direct_meter<bit<2>>(MeterType.packets) rates;
    action colour() { rates.read(meta.colour); }
    table t { key = { hdr.data.kind: exact; } actions = { colour; } const default_action = colour; meters = rates; }
    apply { std.egress_spec = 1; t.apply(); hdr.data.kind = (bit<8>)meta.colour; }
}
control egress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) { apply { } }
control deparse(packet_out pkt, in headers_t hdr) { apply { pkt.emit(hdr.data); } }
V1Switch(parse(), sums(), ingress(), egress(), sums(), deparse()) main;
"""


def test_reconcile_keeps_the_meter_of_a_constant_default_entry(tmp_path: Path) -> None:
    path = tmp_path / "program.p4"
    path.write_text(METERED)
    bench = Bench(path)
    rates = p4runtime_pb2.DirectMeterEntry(
        table_entry={"table_id": bench.info.tables[0].preamble.id, "is_default_action": True},
        config={"cir": 1, "cburst": 1, "pir": 1, "pburst": 1},
    )
    bench.controller.modify(rates)
    bench.device.set_forwarding_pipeline_config(config_request(bench.info, bench.config, "RECONCILE_AND_COMMIT"))
    query = p4runtime_pb2.DirectMeterEntry(table_entry=rates.table_entry)
    assert bench.controller.read(query) == [rates]
    assert [data[0] for _ in range(3) for _, data in bench.installed[-1].process(0, b"\7", 0)] == [0, 2, 2]
