"""tshark names the fields for which the dissector was made, on frames of real hosts."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest

import wireformats
from harness.measure.pcap import write_pcap
from host_agents import headers, wire
from host_agents.cc.accurate import FRP, INIT
from host_agents.cc.dart import LOOK_AHEAD, NOTICE
from host_agents.errors import PacketError
from host_agents.packets import IPV4, MAC, TO_REACTION_POINT, Field, Header, Opcodes, Packet, Records
from p4cc._link import Wire, connect, pair
from wireformats.wireshark import dissector

needs_tshark = pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
SHIM = headers.WITH_INT.encode(
    [{"link_rate_code": 10, "timestamp_ns": 0xABCDEF, "tx_units": 0x12345, "queue_cells": 77}, {"link_rate_code": 11}],
    path_id=0x5A5,
)


def tshark(folder: Path, frames: Sequence[bytes], opcodes: Opcodes, *options: str) -> list[str]:
    (folder / "p4cc.lua").write_text(dissector(opcodes))
    write_pcap(folder / "x.pcapng", [(number, "link", frame) for number, frame in enumerate(frames)])
    command = ["tshark", "-X", f"lua_script:{folder / 'p4cc.lua'}", "-r", str(folder / "x.pcapng"), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert "Lua" not in done.stderr
    return done.stdout.splitlines()


def fields(*names: str) -> list[str]:
    return ["-T", "fields", *(f"-e{name}" for name in names)]


def sent(protocol: str, size_bytes: int, **options: str) -> list[bytes]:
    """Return the frames of one message as on a real wire."""
    a, b = pair(protocol, **cast(Any, options))
    qa, _ = connect(a, b, qpn=7)  # not 1, whose packets are management datagrams
    qa.post(size_bytes)
    link = Wire(a, b)
    link.run(1_000_000)
    assert len(link.sent) > 5
    return [wire.materialize(frame) for _, _, frame in link.sent]


def frame(opcode: int, body: bytes, carried_bytes: int = 0) -> bytes:
    start = wire.header(0x0A000002, 0x0A000003, 0xC123, opcode, 77, after_bth_bytes=len(body) + carried_bytes)
    return wire.materialize(start + (5).to_bytes(4, "big") + body)


@needs_tshark
@pytest.mark.parametrize(
    ("protocol", "options", "names"),
    [
        ("hpcc", {}, {"SEND first with INT", "SEND middle with INT", "SEND last with INT", "ACK with INT"}),
        (
            "hpcc",
            {"reliability": "selective-repeat"},
            {"SEND first with INT", "SEND middle with INT", "SEND last with INT", "SACK with INT"},
        ),
        ("accurate", {}, {"FRP"}),
        ("dart", {}, {"ACK with share"}),
        ("sperc+1rc", {}, {"SPERC", "SEND first speculative", "SEND middle speculative"}),
        ("eqds", {"reliability": "selective-repeat"}, {"RTS", "pull", "SACK"}),
    ],
)
def test_every_packet_of_a_run_has_a_name(
    tmp_path: Path, protocol: str, options: dict[str, str], names: set[str]
) -> None:
    frames = sent(protocol, 200_000, **options)
    opcodes = wireformats.opcodes([protocol])
    lines = tshark(tmp_path, frames, opcodes, *fields("p4cc.packet", "_ws.col.Info", "_ws.expert"))
    found = [line.split("\t") for line in lines]
    assert len(found) == len(frames)
    assert {name for name, _, _ in found} - {""} == names
    assert not any("Unknown" in info or expert for _, info, expert in found)
    without_name = [info for name, info, _ in found if not name]
    assert all(info.startswith(("RC Send", "RC Acknowledge")) for info in without_name)  # Wireshark's own


@needs_tshark
def test_the_fields_of_a_telemetry_packet(tmp_path: Path) -> None:
    names = [
        *("p4cc.bth.dest_qp", "p4cc.bth.psn", "p4cc.int_shim.hop_count", "p4cc.int_shim.path_id"),
        *("p4cc.int_record.link_rate_code", "p4cc.int_record.timestamp_ns", "p4cc.int_record.tx_units"),
        *("p4cc.int_record.queue_cells", "p4cc.payload", "p4cc.icrc"),
    ]
    telemetry = frame(0xC4, SHIM, 8)
    (line,) = tshark(tmp_path, [telemetry], wireformats.opcodes([]), *fields(*names))
    crc = int.from_bytes(telemetry[-4:], "big")
    assert line.split("\t") == [
        *("77", "5", "2", "0x05a5", "10,11", "11259375,0", "74565,0", "77,0", "00" * 8, f"0x{crc:08x}")
    ]


@needs_tshark
def test_names_of_values_and_units_are_shown(tmp_path: Path) -> None:
    body = FRP.encode(kind=INIT, response=1, source_qp=9, current_rate=5_000, desired_rate=7_000)
    text = "\n".join(tshark(tmp_path, [frame(0xE8, body), frame(0xC4, SHIM)], wireformats.opcodes(), "-V"))
    assert "kind: init (1)" in text
    assert "current_rate: 5000 (kb/s)" in text
    assert "link_rate_code: 100 Gb/s (10)" in text
    summary = tshark(tmp_path, [frame(0xE8, body)], wireformats.opcodes())[0]
    assert "FRP QP=0x00004d PSN=5 kind=init response=1 short_circuit=0 counted=0 source_qp=9" in summary


@needs_tshark
def test_shares_and_announcements_of_dart(tmp_path: Path) -> None:
    notice = NOTICE.encode(version=4_095, state=1, n=300, receiver_rate_code=4)
    announced = LOOK_AHEAD.encode([{"nic": 7}, {"nic": 65_535}, {"nic": 9}], group=3)
    names = [f"p4cc.dart_share.{place}" for place in ("version", "state", "n")]
    names += ["p4cc.look_ahead.group", "p4cc.look_ahead.count", "p4cc.look_ahead_member.nic", "p4cc.packet"]
    frames = [frame(0xEB, notice), frame(0xEC, announced)]
    found = [line.split("\t") for line in tshark(tmp_path, frames, wireformats.opcodes(["dart"]), *fields(*names))]
    assert found == [
        ["4095", "1", "300", "", "", "", "share notice"],
        ["", "", "", "3", "3", "7,65535,9", "look-ahead"],
    ]


@needs_tshark
def test_any_declaration(tmp_path: Path) -> None:
    """Check odd widths, wide fields, addresses, records of a fixed number, and a header that data packets carry."""
    odd = Header(
        "odd",
        (
            *(Field("a", 3), Field("b", 42), Field("c", 3), Field("wide", 64), Field("widest", 72)),
            *(Field("mac", 48, display=MAC), Field("ip", 32, display=IPV4)),
        ),
    )
    item = Header("item", (Field("x", 12), Field("y", 4, values={7: "seven"})))
    mine = Packet("mine", 0xE8, (odd, Records(item, 3, align_bytes=8)), to=TO_REACTION_POINT)
    carried = Packet("early", 0xF0, (Header("early", (Field("epoch", 16),)),), opcodes=6, wraps=True)
    opcodes = Opcodes({"the transport": headers.TRANSPORT, "mine": (mine, carried)})
    body = mine.encode(
        [{"x": 1, "y": 7}, {"x": 4095}],
        a=5,
        b=(1 << 42) - 2,
        c=6,
        wide=(1 << 64) - 1,
        widest=258,
        mac=0x02,
        ip=0x0A000001,
    )
    names = [f"p4cc.odd.{place}" for place in odd.places]
    names += ["p4cc.item.x", "p4cc.item.y", "p4cc.packet", "p4cc.early.epoch", "p4cc.payload"]
    lines = tshark(tmp_path, [frame(0xE8, body), frame(0xF2, b"\0\x0d", 4)], opcodes, *fields(*names))
    assert lines[0].split("\t") == [
        *("5", "4398046511102", "6", "18446744073709551615", "000000000000000102", "00:00:00:00:00:02", "10.0.0.1"),
        *("1,4095,0", "7,0,0", "mine", "", ""),
    ]
    assert lines[1].split("\t")[-3:] == ["SEND last early", "13", "00000000"]


@needs_tshark
def test_a_packet_that_is_cut_off_is_malformed_and_trimmed_ones_have_no_icrc(tmp_path: Path) -> None:
    frames = [frame(0xE8, bytes(11)), frame(0xC4, SHIM[:9]), frame(wire.TRIMMED, b"\1" * 10)]
    lines = tshark(tmp_path, frames, wireformats.opcodes(), *fields("p4cc.packet", "p4cc.truncated", "p4cc.payload"))
    assert [line.split("\t")[:2] for line in lines] == [
        ["FRP", "1"],
        ["SEND only with INT", "1"],
        ["trimmed", ""],
    ]
    assert lines[2].split("\t")[2].startswith("01" * 10)


def test_two_headers_of_one_name() -> None:
    one, other = (Packet(f"p{i}", 0xE8 + i, (Header("h", (Field("a", 8),)),)) for i in range(2))
    with pytest.raises(PacketError, match="two headers h, one of 'p1'"):
        dissector(Opcodes({"mine": (one, other)}))
