"""Frames of real hosts with Ultra Ethernet's headers keep their values, and scapy and tshark read them."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.utils import RawPcapNgReader

from harness.measure.pcap import write_pcap
from host_agents import headers, wire
from host_agents.cc import rccc
from host_agents.errors import PacketError
from p4cc._link import Wire, connect, pair, trimmed
from p4cc.commands.packets import command
from tests.e2e.runs import run
from tests.wireformats.test_wireshark import needs_tshark
from wireformats import uet, uet_layers

PDS = 42  # bytes before the header that follows UDP's


def sent(protocol: str) -> list[bytes]:
    """Return the frames of one message as on a real wire; a data packet is trimmed and retransmitted."""
    a, b = pair(protocol, load_balancer="mixed", reliability="selective-repeat", loss_packets=0, last_hop_dscp=50)
    qa, _ = connect(a, b, qpn=0x10007)
    qa.post(200_000)
    cut: list[bytes] = []

    def hook(_now_ns: int, frame: bytes) -> bytes:
        is_data = frame[wire.BTH] <= wire.SEND_ONLY or frame[wire.BTH] >= rccc.DATA.opcode
        if is_data and not cut and wire.psn(frame) == 5:
            cut.append(frame)
            return trimmed(frame)
        return frame

    link = Wire(a, b, hook=hook)
    link.run(2_000_000)
    assert qa.stats.bytes_acked == 200_000
    return [wire.materialize(frame) for _, _, frame in link.sent]


def layers_of(frame: bytes) -> dict[str, Any]:
    uet_layers.load()
    packet: Any = Ether(frame)
    found: dict[str, Any] = {}
    while packet:
        found[packet.name] = packet
        packet = packet.payload
    return found


@pytest.mark.parametrize(
    ("protocol", "types"), [("nscc", {2, 8, 10}), ("rccc", {13, 8, 10, 11}), ("rccc+nscc", {13, 8, 10, 11})]
)
def test_every_frame_of_ultra_ethernets_protocols_has_a_counterpart(protocol: str, types: set[int]) -> None:
    found = set()
    for frame in sent(protocol):
        changed = uet.translated(frame)
        assert changed is not None
        read = layers_of(changed)
        before, udp = Ether(frame), read["UDP"]
        assert (udp.sport, udp.dport) == (before[UDP].sport, uet.PORT)
        ip = read["IP"]
        assert ip.len == len(changed) - 14 == udp.len + 20
        for name in ("src", "dst", "tos", "ttl"):
            assert getattr(ip, name) == getattr(before[IP], name)
        assert wire.checksum_holds(changed)
        found.add(changed[PDS] >> 3)
    assert found == types


def test_a_request_with_a_target() -> None:
    frames = [frame for frame in sent("rccc") if frame[wire.BTH] >= rccc.DATA.opcode]
    for frame in frames:
        read = layers_of(uet.translated(frame) or b"")
        request, state = read["uet_request"], read["uet_request_cc"]
        assert (request.psn, request.dpdcid) == (wire.psn(frame), 7)
        assert request.ack_request == frame[wire.ACK_PSN] >> 7
        assert state.credit_target == rccc.DATA.get("target", frame, wire.AFTER_BTH)
        assert bytes(state.payload) == frame[wire.AFTER_BTH + 4 : -4]


@settings(max_examples=60, deadline=None)
@given(
    first_missing=st.integers(0, 2**24 - 1),
    ahead=st.integers(-100, 30_000),
    map_ahead=st.integers(1, 30_000),
    bits=st.integers(0, 2**64 - 1),
    marked=st.booleans(),
)
def test_a_sacks_psns_and_map(first_missing: int, ahead: int, map_ahead: int, bits: int, marked: bool) -> None:
    psn, map_psn = (first_missing + ahead) % 2**24, (first_missing + map_ahead) % 2**24
    start = wire.header(1, 2, 0xC123, wire.SACK, 7, after_bth_bytes=18, becn=marked)
    body = headers.SACK.encode(syndrome=0x1F, msn=1, first_missing_psn=first_missing, map_psn=map_psn, map=bits)
    read = layers_of(uet.translated(wire.materialize(start + psn.to_bytes(4, "big") + body)) or b"")
    ack, state = read["uet_ack"], read["uet_ack_cc"]

    def signed(value: int) -> int:
        return value - 2**16 if value >= 2**15 else value

    assert ack.cack_psn == (first_missing - 1) % 2**24
    assert (ack.cack_psn + signed(ack.ack_psn_offset)) % 2**24 == psn
    assert (ack.cack_psn + signed(state.sack_psn_offset)) % 2**24 == map_psn
    assert (state.sack_bitmap, ack.marked, "uet_nscc_state" in read) == (bits, marked, True)


@pytest.mark.parametrize(("last_hop", "code"), [(False, 1), (True, 2)])
def test_a_nack_says_where_the_packet_was_trimmed(last_hop: bool, code: int) -> None:
    start = wire.header(1, 2, 0xC123, wire.NACK, 7, after_bth_bytes=0, solicited=last_hop)
    nack = layers_of(uet.translated(wire.materialize(start + (9).to_bytes(4, "big"))) or b"")["uet_nack"]
    assert (nack.nack_code, nack.nack_psn, nack.dpdcid) == (code, 9, 7)


def test_what_has_no_counterpart_or_is_cut_short() -> None:
    start = wire.header(1, 2, 0xC123, wire.CNP, 7, after_bth_bytes=16)
    cnp = wire.materialize(start + bytes(4 + 16))
    assert uet.translated(cnp) is None
    assert uet.translated(bytes(60)) is None
    frame = wire.materialize(wire.header(1, 2, 0xC123, wire.SEND_ONLY, 7, after_bth_bytes=100) + bytes(4))
    with pytest.raises(PacketError, match="frame of 158 bytes: only 157 are there"):
        uet.translated(frame[:-1])


def test_a_capture_is_translated(tmp_path: Path) -> None:
    frames = sent("rccc")
    capture, out = tmp_path / "hosts.pcapng", tmp_path / "uet.pcapng"
    write_pcap(capture, [(1_000 + number, f"link {number % 2}", each) for number, each in enumerate(frames)])
    command.main(["--uet", str(capture), str(out)], standalone_mode=False)
    with RawPcapNgReader(str(out)) as reader:
        read: list[tuple[bytes, Any]] = list(reader)
    assert [frame for frame, _ in read] == [uet.translated(frame) for frame in frames]
    assert [(meta.tshigh << 32) + meta.tslow for _, meta in read] == [1_000 + number for number in range(len(frames))]
    assert [meta.ifname for _, meta in read[:2]] == [b"link 0", b"link 1"]


@needs_tshark
@pytest.mark.parametrize(
    ("protocol", "types"), [("nscc", {2, 8, 10}), ("rccc", {2, 13, 8, 10, 11}), ("rccc+nscc", {2, 13, 8, 10, 11})]
)
def test_tshark_reads_all_fields_of_a_runs_capture(tmp_path: Path, protocol: str, types: set[int]) -> None:
    """The queues are so short that packets are trimmed and that SACKs have bits in their maps."""
    settings_of_run = ("variants=[]", "workload.size_bytes=100000", "programs.trim.queue_bytes=20000")
    arguments = [word for setting in settings_of_run for word in ("--set", setting)]
    (result,) = run("uec-permutation", "--cc", protocol, *arguments, "--pcap")
    translation, dissector = tmp_path / "uet.pcapng", tmp_path / "uet.lua"
    call = ["--uet", str(result.folder / "hosts.pcapng"), str(translation), "--uet-wireshark", str(dissector)]
    command.main(call, standalone_mode=False)
    with RawPcapNgReader(str(translation)) as reader:
        expected = [pds_fields(frame) for frame, _ in reader]
    assert {values["uet_pds.packet"] for values in expected} == {uet.TYPES[kind] for kind in types}
    assert any(values.get("uet_pds.uet_ack_cc.sack_bitmap") for values in expected)

    names = ["uet_pds.packet", *(f"uet_pds.{header.name}.{name}" for header in uet.HEADERS for name in header.places)]
    options = [f"-e{name}" for name in (*names, "_ws.expert")]
    tshark = ["tshark", "-X", f"lua_script:{dissector}", "-r", str(translation), "-T", "fields", *options]
    done = subprocess.run(tshark, capture_output=True, text=True, timeout=120, check=True)
    assert "Lua" not in done.stderr
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert not any(row[-1] for row in rows)
    read = [{name: cell for name, cell in zip(names, row, strict=False) if cell} for row in rows]
    assert [
        {name: cell if name == "uet_pds.packet" else int(cell, 0) for name, cell in cells.items()} for cells in read
    ] == expected


def pds_fields(frame: bytes) -> dict[str, str | int]:
    """Return the values of all fields after UDP's header, by the names that they have in Wireshark."""
    (packet,) = (packet for packet in uet.PACKETS if packet.type == frame[PDS] >> 3)
    values: dict[str, str | int] = {"uet_pds.packet": packet.name}
    begin, last = PDS, {}
    for header in packet.headers:
        last = header.decode(frame, begin)
        values |= {f"uet_pds.{header.name}.{name}": value for name, value in last.items()}
        begin += header.size_bytes
    if packet.states:
        state = packet.states[last["cc_type"]]
        values |= {f"uet_pds.{state.name}.{name}": value for name, value in state.decode(frame, begin).items()}
    return values


def test_scapy_writes_what_the_codec_reads() -> None:
    layers = uet_layers.load()
    packet = Ether() / IP(dst="10.0.0.3") / UDP(sport=0xC000) / layers["uet_control"](type=11, control_type=6, psn=3)
    raw = bytes(packet)
    assert int.from_bytes(raw[36:38], "big") == uet.PORT
    said = uet.CONTROL.decode(raw, PDS)
    assert (said["type"], said["control_type"], said["psn"]) == (11, uet.PROBE, 3)
