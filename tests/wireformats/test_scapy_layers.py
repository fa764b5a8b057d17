"""scapy reads the output of the hosts' codec, and the codec reads that of scapy."""

from __future__ import annotations

from typing import Any

import pytest
from scapy.contrib.roce import AETH, BTH
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from host_agents import headers, wire
from host_agents.cc.accurate import FRP, STOP
from host_agents.packets import IPV4, MAC, Field, Header, Opcodes, Packet, Records
from wireformats import scapy_layers

RECORDS = [{"link_rate_code": 10, "timestamp_ns": 0xABCDEF, "tx_units": 0x12345, "queue_cells": 77}, {"tx_units": 1}]


@pytest.fixture(autouse=True)
def _restored(monkeypatch: pytest.MonkeyPatch) -> None:
    """Restore scapy's bindings, which belong to the whole process."""
    monkeypatch.setattr(BTH, "payload_guess", list(BTH.payload_guess))
    monkeypatch.setattr(scapy_layers, "_stacks", dict(scapy_layers._stacks))
    names: Any = BTH.fields_desc[0]
    monkeypatch.setattr(names, "i2s", dict(names.i2s))
    monkeypatch.setattr(names, "s2i", dict(names.s2i))


def frame(opcode: int, body: bytes, carried_bytes: int = 0) -> bytes:
    start = wire.header(0x0A000002, 0x0A000003, 0xC123, opcode, 77, after_bth_bytes=len(body) + carried_bytes)
    return wire.materialize(start + (5).to_bytes(4, "big") + body)


def test_scapy_reads_what_the_codec_writes() -> None:
    layers = scapy_layers.load()
    body = FRP.encode(kind=STOP, counted=1, source_qp=9, current_rate=5_000, desired_rate=7_000)
    packet = Ether(frame(0xE8, body))
    frp = packet[layers["frp"]]
    assert {name: frp.getfieldval(name) for name in FRP.places} == FRP.decode(body, 0)
    assert packet[BTH].psn == 5
    assert packet.sprintf("%BTH.opcode% %frp.kind%") == "FRP stop"


def test_telemetry_between_bth_and_payload_or_aeth() -> None:
    layers = scapy_layers.load(["hpcc"])
    shim = headers.WITH_INT.encode(RECORDS, path_id=0x5A5)
    data = Ether(frame(0xC4, shim, 8))
    assert (data[layers["int_shim"]].hop_count, data[layers["int_shim"]].path_id) == (2, 0x5A5)
    assert [record.tx_units for record in data[layers["int_shim"]].records] == [0x12345, 1]
    assert bytes(data[layers["int_shim"]].payload) == bytes(8)
    ack = Ether(frame(0xD1, shim + headers.AETH.encode({"syndrome": 0x1F, "msn": 3})))
    assert ack[layers["int_shim"]].payload[layers["aeth"]].msn == 3
    sack = headers.SACK_WITH_INT.encode(RECORDS, msn=4, first_missing_psn=8, map_psn=9, map=1 << 63 | 5)
    assert Ether(frame(0xE1, sack))[layers["sack"]].map == 1 << 63 | 5
    assert ack.sprintf("%BTH.opcode%") == "ACK with INT"


def test_the_codec_reads_what_scapy_writes() -> None:
    layers = scapy_layers.load()
    above = layers["frp"](kind="init", response=1, current_rate=123_456)
    packet = Ether() / IP(src="10.0.0.2", dst="10.0.0.3") / UDP(sport=0xC000, dport=4791, chksum=0) / BTH() / above
    built = bytes(packet)
    assert built[wire.BTH] == 0xE8
    assert FRP.decode(built, wire.AFTER_BTH) == {**dict.fromkeys(FRP.places, 0), "kind": 1, "response": 1} | {
        "current_rate": 123_456
    }
    records = [layers["int_record"](**record) for record in RECORDS]
    packet[BTH].remove_payload()
    built = bytes(packet / layers["int_shim"](path_id=3, records=records))
    assert headers.WITH_INT.decode(built, wire.AFTER_BTH) == {"hop_count": 2, "path_id": 3}
    assert headers.WITH_INT.decode_records(built, wire.AFTER_BTH)[0] == RECORDS[0]


def test_standard_packets_stay_scapys() -> None:
    scapy_layers.load()
    ack = Ether(frame(0x11, headers.AETH.encode({"syndrome": 0x1F, "msn": 3})))
    assert ack[AETH].msn == 3


def test_any_declaration() -> None:
    """Check addresses, padded records of a fixed number, and a header that data packets carry."""
    item = Header("item", (Field("x", 12, initial=3), Field("y", 4, values={7: "seven"})))
    start = Header("start", (Field("count", 8), Field("mac", 48, display=MAC), Field("ip", 32, display=IPV4)))
    mine = Packet("mine", 0xE8, (start, Records(item, "count", align_bytes=8), Header("tail", (Field("end", 8),))))
    eight = Packet("eight", 0xE9, (Records(item, 8),))
    carried = Packet("early", 0xF0, (Header("early", (Field("epoch", 16),)),), opcodes=6, wraps=True)
    opcodes = Opcodes({"the transport": headers.TRANSPORT, "mine": (mine, eight, carried)})
    layers = scapy_layers.bind(opcodes)
    body = mine.encode([{"x": 1, "y": 7}, {}, {}], mac=2, ip=0x0A000001, end=9)
    packet = Ether(frame(0xE8, body))
    assert (packet[layers["start"]].mac, packet[layers["start"]].ip) == ("00:00:00:00:00:02", "10.0.0.1")
    assert [(record.x, record.y) for record in packet[layers["start"]].records] == [(1, 7), (3, 0), (3, 0)]
    assert packet[layers["tail"]].end == 9
    assert bytes(packet[BTH].payload) == body
    assert bytes(layers["items"]()) == eight.encode()
    assert Ether(frame(0xF2, b"\0\x0d", 4))[layers["early"]].epoch == 13


def test_a_later_load_binds_anew() -> None:
    scapy_layers.load()
    mine = Packet("mine", 0xE8, (Header("mine", (Field("a", 16),)),))
    layers = scapy_layers.bind(Opcodes({"mine": (mine,)}))
    assert Ether(frame(0xE8, b"\1\2"))[layers["mine"]].a == 0x0102
