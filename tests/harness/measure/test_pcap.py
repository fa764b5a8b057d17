"""Captures have times in nanoseconds, and whole frames that dissectors decode as RoCEv2."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from scapy.contrib.roce import BTH
from scapy.utils import rdpcap

from harness.measure.pcap import write_pcap
from host_agents import wire

FRAME = wire.header(0x0A000002, 0x0A000003, 0xC123, wire.SEND_ONLY, 77, after_bth_bytes=1000, dscp=24, ecn=2)
FRAME = wire.materialize(FRAME + (wire.ACK_REQUEST | 5).to_bytes(4, "big"))
FRAMES = [(0, "h0 to s0", FRAME), (1_234_567_891, "s0 to h1", FRAME), (2**53 + 1, "h0 to s0", FRAME)]


def test_scapy_reads_them_back(tmp_path: Path) -> None:
    write_pcap(tmp_path / "x.pcapng", FRAMES)
    packets = rdpcap(str(tmp_path / "x.pcapng"))
    assert [int(packet.time * 10**9) for packet in packets] == [time for time, _, _ in FRAMES]
    assert [packet.sniffed_on for packet in packets] == [interface for _, interface, _ in FRAMES]
    for packet in packets:
        assert len(packet) == 14 + 20 + 8 + 12 + 1000 + 4
        assert packet[BTH].dqpn == 77
        assert packet[BTH].psn == 5


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
def test_tshark_decodes_rocev2_at_nanoseconds(tmp_path: Path) -> None:
    write_pcap(tmp_path / "x.pcapng", FRAMES[:2])
    fields = ["frame.time_epoch", "infiniband.bth.destqp", "infiniband.bth.psn", "infiniband.bth.opcode"]
    command = ["tshark", "-r", str(tmp_path / "x.pcapng"), "-T", "fields", *(f"-e{field}" for field in fields)]
    lines = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout.splitlines()
    assert [line.split("\t") for line in lines] == [
        ["0.000000000", "0x00004d", "5", "4"],
        ["1.234567891", "0x00004d", "5", "4"],
    ]
