"""Meters over BfRuntime: the bytes that they count, and the direct meter of a default entry."""

from __future__ import annotations

from typing import Any

import pytest

from p4switch.bfrt.messages import bfruntime_pb2
from p4switch.compiler import Compiled
from p4switch.p4runtime.messages import p4runtime_pb2
from tests.p4switch.architectures.tofino import compiled
from tests.p4switch.bfrt.conftest import Bench, Client
from tests.p4switch.bfrt.test_server import refused

INGRESS = """
    Meter<bit<8>>(8, MeterType_t.BYTES) rate;
    DirectMeter(MeterType_t.BYTES) own;
    action colour() { hdr.h.value = (bit<8>) own.execute(); }
    table direct {
        key = { hdr.h.kind : exact; }
        actions = { colour; }
        default_action = colour();
        meters = own;
        size = 4;
    }
    apply {
        tm.ucast_egress_port = 2;
        if (hdr.h.kind < 8) { hdr.h.value = (bit<8>) rate.execute(hdr.h.kind); } else { direct.apply(); }
    }
"""
GREEN, RED = 0, 3
ONE_KILOBIT: dict[str, Any] = {
    "_METER_SPEC_CIR_KBPS": 0, "_METER_SPEC_PIR_KBPS": 0, "_METER_SPEC_CBS_KBITS": 1, "_METER_SPEC_PBS_KBITS": 1
}  # fmt: skip
"""Configuration that admits 125 bytes once."""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    return compiled(tmp_path_factory.mktemp("meters"), INGRESS=INGRESS)


def adjust(client: Client, table: str, nbytes: int, **more: Any) -> None:
    request = bfruntime_pb2.WriteRequest(**more)
    request.target.pipe_id = 0xFFFF
    attribute = request.updates.add(type="INSERT").entity.table_attribute
    attribute.table_id = client.tables[table]["id"]
    attribute.byte_count_adj.byte_count_adjust = nbytes
    client.call("Write", request, bfruntime_pb2.WriteResponse)


def colours(bench: Bench, kind: int, packets: int, length: int = 50) -> list[int]:
    return [bench.switch.process(1, bytes([kind]).ljust(length, b"\0"), 1)[0][1][1] for _ in range(packets)]


@pytest.mark.parametrize(("table", "kind"), [("In.rate", 1), ("In.direct", 9)])
def test_the_bytes_of_a_meter_are_adjusted(bench: Bench, table: str, kind: int) -> None:
    client = bench.client
    key = {"$METER_INDEX": 1} if table == "In.rate" else {"hdr.h.kind": 9}
    client.write("INSERT", client.entry(table, key, "" if table == "In.rate" else "colour", **ONE_KILOBIT))
    assert colours(bench, kind, 3) == [GREEN, GREEN, RED]
    adjust(client, table, -40)
    assert client.attribute(table, "byte_count_adj").byte_count_adjust == -40
    assert colours(bench, kind, 2) == [GREEN, RED]
    adjust(client, table, -100)
    assert colours(bench, kind, 2) == [GREEN, GREEN]


def test_the_default_entry_has_a_meter(bench: Bench) -> None:
    client = bench.client
    assert colours(bench, 8, 4) == [GREEN] * 4
    client.write("MODIFY", client.entry("In.direct", None, "colour", default=True, **ONE_KILOBIT))
    assert colours(bench, 8, 3) == [GREEN, GREEN, RED]
    (found,) = client.read(client.entry("In.direct", default=True))
    assert {name: found[f"${name[1:]}"] for name in ONE_KILOBIT} == ONE_KILOBIT
    client.write("INSERT", client.entry("In.direct", {"hdr.h.kind": 9}, "colour"))
    assert colours(bench, 9, 4) == [GREEN] * 4
    wrong = client.entry("In.direct", {"hdr.h.kind": 9}, "colour")
    reset = client.entry("In.direct", None, default=True)
    assert refused(client.write, "MODIFY", reset, wrong, atomicity="ROLLBACK_ON_ERROR")
    assert colours(bench, 8, 1) == [RED]
    client.write("RESET", reset)
    assert colours(bench, 8, 4) == [GREEN] * 4


def test_another_default_action_keeps_the_meter(bench: Bench) -> None:
    client = bench.client
    client.write("MODIFY", client.entry("In.direct", None, "colour", default=True, **ONE_KILOBIT))
    (metered,) = client.read(client.entry("In.direct", default=True))
    client.write("MODIFY", client.entry("In.direct", None, "colour", default=True))
    assert client.read(client.entry("In.direct", default=True)) == [metered]


def test_p4runtime_sets_the_same_meter_of_the_default_entry(bench: Bench) -> None:
    table = next(t for t in bench.p4info.tables if t.preamble.name == "In.direct")
    meter = p4runtime_pb2.DirectMeterEntry()
    meter.table_entry.table_id, meter.table_entry.is_default_action = table.preamble.id, True
    query = p4runtime_pb2.Entity(direct_meter_entry=meter)
    rates = p4runtime_pb2.MeterConfig(cir=0, pir=0, cburst=125, pburst=125)
    meter.config.CopyFrom(rates)
    update = p4runtime_pb2.Update(type="MODIFY", entity=p4runtime_pb2.Entity(direct_meter_entry=meter))
    bench.p4runtime.write([update])
    assert colours(bench, 8, 3) == [GREEN, GREEN, RED]
    (found,) = bench.p4runtime.read([query])
    assert found.direct_meter_entry.config == rates
    (found,) = bench.client.read(bench.client.entry("In.direct", default=True))
    assert found["$METER_SPEC_CBS_KBITS"] == 1
