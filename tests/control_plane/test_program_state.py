"""State of a program: cells, and the direct counters and meters of table entries."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from control_plane import program_state
from control_plane.program_state import ByEngine, ByP4Runtime
from p4switch import engine
from p4switch.compiler import compile_program
from p4switch.p4runtime.client import LocalClient
from p4switch.p4runtime.device import Device
from p4switch.p4runtime.messages import Message, p4runtime_pb2
from p4switch.sources import SOURCE_DIRECTORY
from tests.p4switch.p4runtime import everything

(TABLE,) = (table.preamble.id for table in everything.p4info().tables if table.preamble.alias == "exact_one")

CELLS = """
#include "include/prelude.p4"
struct headers_t { ethernet_t ethernet; ipv4_t ipv4; udp_t udp; bth_t bth; }
struct metadata_t { common_metadata_t common; }
@name(".signed") register<int<12>>(3) signed_cells;
@name(".unsigned") register<bit<12>>(3) unsigned_cells;
@name(".packets") counter(2, CounterType.packets) of_packets;
@name(".nbytes") counter(2, CounterType.bytes) of_bytes;
@name(".both") counter(2, CounterType.packets_and_bytes) of_both;
control Touching(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {
        int<12> signed_value;
        bit<12> unsigned_value;
        signed_cells.read(signed_value, 0);
        unsigned_cells.read(unsigned_value, 0);
        of_packets.count((bit<32>)unsigned_value);
        of_bytes.count(0);
        of_both.count((bit<32>)(bit<12>)signed_value);
    }
}
#define INGRESS_STAGE Touching
#include "include/switch.p4"
"""


class OneEntry:
    """A client of a switch with one entry in the table of a direct counter and a direct meter."""

    device_id = 1

    def read(self, queries: Sequence[Message]) -> Iterator[Message]:
        (query,) = queries
        kind = query.WhichOneof("entity")
        if not kind.startswith("direct_"):
            return
        answer = p4runtime_pb2.Entity()
        entry = getattr(answer, kind)
        assert getattr(query, kind).table_entry.table_id == TABLE
        entry.table_entry.match.add(field_id=1).exact.value = b"\x07"
        if kind == "direct_meter_entry":
            entry.config.cir, entry.config.cburst, entry.config.pir, entry.config.pburst = 1, 2, 3, 4
        else:
            entry.data.packet_count, entry.data.byte_count = 5, 600
        yield answer


def test_direct_counters_and_meters_are_told_by_entry() -> None:
    client: Any = OneEntry()
    cells = [tuple(cell) for cell in program_state.everything(client, everything.p4info())]
    assert cells == [
        ("direct counter", "hits", -1, "e=0x07", "packets", 5),
        ("direct counter", "hits", -1, "e=0x07", "bytes", 600),
        *(
            ("direct meter", "rates", -1, "e=0x07", field, value)
            for value, field in enumerate(("cir", "cburst", "pir", "pburst"), 1)
        ),
    ]


def test_a_switch_in_this_process_tells_the_same_as_through_p4runtime(tmp_path: Path) -> None:
    # One cell of 12 bits that is negative, and counters of packets, of bytes and of both.
    source = tmp_path / "cells.p4"
    source.write_text(CELLS)
    built = compile_program(source, [SOURCE_DIRECTORY])
    switch = engine.load().Switch(str(engine.build(built.program)))
    client = LocalClient(Device(lambda _: switch))
    client.set_pipeline(built.p4info, json.dumps(built.json).encode())
    switch.register_write("signed", 2, (0xFFE).to_bytes(2, "big"))
    switch.register_write("unsigned", 1, (0xFFE).to_bytes(2, "big"))
    for name in ("packets", "nbytes", "both"):
        switch.counter_write(name, 1, 3, 400)
    told = {}
    for array in {**program_state.registers(built.p4info), **program_state.counters(built.p4info)}.values():
        told[array.name] = list(ByEngine(switch).cells(array))
        assert told[array.name] == list(ByP4Runtime(client).cells(array))
        if "packets" in array.values:
            packets = [reader.packets(array).tolist() for reader in (ByEngine(switch), ByP4Runtime(client))]
            assert packets == [[row[1] for row in told[array.name]]] * 2
    del told["ingress_drops"]  # the switch has it
    assert told == {
        "signed": [(0, 0), (1, 0), (2, -2)],
        "unsigned": [(0, 0), (1, 0xFFE), (2, 0)],
        "packets": [(0, 0), (1, 3)],
        "nbytes": [(0, 0), (1, 400)],
        "both": [(0, 0, 0), (1, 3, 400)],
    }
