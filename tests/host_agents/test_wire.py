"""Frames, compared with scapy, whose code for RoCEv2 is independent."""

from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.contrib.roce import AETH, BTH, cnp
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from host_agents import headers, lengths, wire
from host_agents.frames import FrameLengths
from host_agents.nic import Nic
from p4cc._link import connect, pair
from tests.host_agents.narrow import due_frame
from tests.host_agents.pause import pause_frame

A, B = wire.parse_address("10.0.0.2"), wire.parse_address("10.1.2.3")


def data_frame(payload: int, **options: Any) -> bytes:
    pad = -payload & 3
    start = wire.header(
        A, B, 0xC123, wire.SEND_MIDDLE, 77, after_bth_bytes=payload + pad, pad_bytes=pad, dscp=24, ecn=2, **options
    )
    return start + (1 << 31 | 5).to_bytes(4, "big")


def test_data_frame_is_read_by_scapy() -> None:
    packet = Ether(wire.materialize(data_frame(1000)))
    assert (packet.dst, packet.src) == ("02:00:0a:01:02:03", "02:00:0a:00:00:02")
    assert (packet[IP].src, packet[IP].dst, packet[IP].ttl) == ("10.0.0.2", "10.1.2.3", 64)
    assert (packet[IP].tos >> 2, packet[IP].tos & 3) == (24, 2)
    assert (packet[UDP].sport, packet[UDP].dport, packet[UDP].chksum) == (0xC123, 4791, 0)
    assert packet[UDP].len == packet[IP].len - 20 == 8 + 12 + 1000 + 4
    bth = packet[BTH]
    assert (bth.opcode, bth.dqpn, bth.psn, bth.ackreq, bth.padcount, bth.pkey) == (1, 77, 5, 1, 0, 0xFFFF)
    assert bytes(bth.payload) == bytes(1000)


def test_mac_addresses_may_begin_with_other_bytes() -> None:
    frame = data_frame(0, mac_prefix=0x0A0C)
    assert Ether(wire.materialize(frame)).dst == "0a:0c:0a:01:02:03"
    assert frame[12:] == data_frame(0)[12:]


@pytest.mark.parametrize(("payload", "pad"), [(0, 0), (1, 3), (2, 2), (3, 1), (4, 0), (1001, 3)])
def test_padding(payload: int, pad: int) -> None:
    frame = data_frame(payload)
    assert Ether(wire.materialize(frame))[BTH].padcount == pad
    assert wire.wire_bytes(frame) == 58 + payload + pad


@settings(deadline=None)
@given(st.integers(0, 400), st.integers(0xC000, 0xFFFF), st.integers(0, (1 << 24) - 1), st.booleans())
def test_icrc_and_ip_checksum_are_scapys(payload: int, entropy: int, qpn: int, becn: bool) -> None:
    pad = -payload & 3
    start = wire.header(A, B, entropy, 2, qpn, after_bth_bytes=payload + pad, pad_bytes=pad, becn=becn)
    frame = wire.materialize(start + bytes(4))
    other = Ether(frame)
    other[BTH].icrc = None
    del other[IP].chksum
    assert bytes(other) == frame
    assert wire.icrc_holds(frame)
    assert wire.checksum_holds(frame)


def test_icrc_ignores_what_switches_change_and_nothing_else() -> None:
    frame = wire.materialize(data_frame(100))
    for offset in (wire.TOS, wire.TTL, 24, 25, 40, 41, wire.BECN):
        changed = bytearray(frame)
        changed[offset] ^= 0x55
        assert wire.icrc_holds(bytes(changed)), offset
    for offset in (18, wire.PROTOCOL, wire.SOURCE, wire.SOURCE_PORT, wire.BTH, wire.ACK_PSN + 3, 60, len(frame) - 1):
        changed = bytearray(frame)
        changed[offset] ^= 1
        assert not wire.icrc_holds(bytes(changed)), offset


def test_ip_checksum_fails_for_any_changed_bit_of_the_header() -> None:
    frame = data_frame(100)
    for offset in range(14, 34):
        changed = bytearray(frame)
        changed[offset] ^= 4
        assert not wire.checksum_holds(bytes(changed)), offset


def replies(a: Nic, b: Nic, frames: list[bytes]) -> list[bytes]:
    """Return the answers of `b` to `frames` of `a`."""
    for frame in frames:
        b.receive(1000, frame)
    out = []
    while (reply := b.next_frame(1000)) is not None:
        out.append(reply)
    return out


def test_ack_is_read_by_scapy() -> None:
    a, b = pair()
    qa, _ = connect(a, b, 9)
    qa.post(500)
    (ack,) = replies(a, b, [due_frame(a, 0)])
    packet = Ether(wire.materialize(ack))
    assert (packet[BTH].opcode, packet[BTH].psn, packet[BTH].dqpn, packet[BTH].becn) == (0x11, 0, 9, 0)
    assert (packet[AETH].syndrome, packet[AETH].msn) == (0x1F, 1)
    assert packet[IP].tos == 6 * 8 << 2
    assert len(wire.materialize(ack)) == wire.wire_bytes(ack) == 62


def test_nak_is_read_by_scapy() -> None:
    a, b = pair()
    qa, _ = connect(a, b)
    qa.post(3000)
    frames = [due_frame(a, t) for t in (0, 100, 200)]
    (nak,) = replies(a, b, frames[1:])
    packet = Ether(wire.materialize(nak))
    assert (packet[BTH].opcode, packet[BTH].psn) == (0x11, 0)
    assert (packet[AETH].syndrome, packet[AETH].msn) == (0x60, 0)


def test_cnp_is_scapys() -> None:
    a, b = pair("dcqcn")
    qa, _ = connect(a, b, 5)
    qa.post(500)
    marked = bytearray(due_frame(a, 0))
    marked[wire.TOS] |= 3
    marked[24:26] = b"\0\0"
    marked[24:26] = wire.ip_checksum(bytes(marked[14:34])).to_bytes(2, "big")
    ack, notification = replies(a, b, [bytes(marked)])
    assert Ether(wire.materialize(ack))[BTH].becn == 1  # the ACK echoes the mark, too
    packet = Ether(wire.materialize(notification))
    assert packet[BTH].opcode == 0x81
    expected = cnp(dqpn=5)
    assert bytes(packet[BTH])[:-4] == bytes(IP(src="10.0.0.3") / UDP(sport=1, dport=4791) / expected)[28:-4]


def test_ack_echoes_entropy_mark_and_shim() -> None:
    a, b = pair("hpcc")
    qa, _ = connect(a, b)
    qa.post(500)
    frame = due_frame(a, 0)
    assert frame[wire.BTH] == 0xC0 + wire.SEND_ONLY
    assert frame[54:] == b"\0\0"
    assert wire.wire_bytes(frame) == 58 + 2 + 500
    record = bytes(range(8))
    stamped = bytearray(frame[:54] + b"\x1a\xbc" + record)
    stamped[16:18] = (int.from_bytes(frame[16:18], "big") + 8).to_bytes(2, "big")
    stamped[38:40] = (int.from_bytes(frame[38:40], "big") + 8).to_bytes(2, "big")
    stamped[34:36] = b"\xfa\xce"
    stamped[24:26] = b"\0\0"
    stamped[24:26] = wire.ip_checksum(bytes(stamped[14:34])).to_bytes(2, "big")
    (ack,) = replies(a, b, [bytes(stamped)])
    assert ack[wire.BTH] == 0xD1
    assert ack[34:36] == b"\xfa\xce"
    assert ack[54:64] == b"\x1a\xbc" + record
    assert ack[64:68] == bytes((0x1F, 0, 0, 1))
    assert wire.wire_bytes(ack) == len(ack) + 4 == 72


def test_pause_frame() -> None:
    frame = pause_frame(wire.mac_of(A), {3: 0xFFFF, 6: 0})
    assert len(frame) == 60
    assert frame[:6] == bytes.fromhex("0180c2000001")
    assert frame[12:18] == bytes.fromhex("880801010048")
    assert wire.parse_pause(frame) == {3: 0xFFFF, 6: 0}
    assert wire.parse_pause(data_frame(10)) is None
    assert wire.materialize(frame) == frame


@pytest.mark.parametrize("text", ["10.0.0", "10.0.0.256", "10.0.0.x", "", "1.2.3.4.5", "1.2.3.+4"])
def test_bad_address(text: str) -> None:
    with pytest.raises(ValueError, match="expected an IPv4 address"):
        wire.parse_address(text)


def test_offsets_and_sizes_are_those_of_the_declared_headers() -> None:
    ip, udp, bth = 14, 34, 42  # where they start
    bits = {
        "ETHERNET_BYTES": headers.ETHERNET.bits,
        "IPV4_BYTES": headers.IP.bits,
        "UDP_BYTES": headers.UDP.bits,
        "BTH_BYTES": headers.BTH.bits,
        "AETH_BYTES": headers.AETH.bits,
        "SHIM_BYTES": headers.INT_SHIM.bits,
        "INT_RECORD_BYTES": headers.INT_RECORD.bits,
        "SACK_BYTES": headers.SACK_HEADER.bits,
        "CUMULATIVE_BYTES": headers.CUMULATIVE_HEADER.bits,
        "IP": headers.ETHERNET.bits,
        "TOS": 8 * ip + headers.IP.place("dscp").bit,
        "TOTAL_LENGTH": 8 * ip + headers.IP.place("total_len").bit,
        "TTL": 8 * ip + headers.IP.place("ttl").bit,
        "PROTOCOL": 8 * ip + headers.IP.place("protocol").bit,
        "SOURCE": 8 * ip + headers.IP.place("src_addr").bit,
        "DESTINATION": 8 * ip + headers.IP.place("dst_addr").bit,
        "SOURCE_PORT": 8 * udp + headers.UDP.place("src_port").bit,
        "DESTINATION_PORT": 8 * udp + headers.UDP.place("dst_port").bit,
        "UDP_LENGTH": 8 * udp + headers.UDP.place("length").bit,
        "BTH": 8 * bth + headers.BTH.place("opcode").bit,
        "PAD": 8 * bth + headers.BTH.place("solicited_event").bit,
        "BECN": 8 * bth + headers.BTH.place("fecn").bit,
        "ACK_PSN": 8 * bth + headers.BTH.place("ack_request").bit,
        "AFTER_BTH": sum(header.bits for header in headers.FRAME),
    }
    assert {name: 8 * getattr(wire, name) for name in bits} == bits
    assert headers.SACK_HEADER.place("map").field.bits == wire.SACK_BITS
    # The NIC reads these from two numbers of eight bytes.
    assert [headers.SACK_HEADER.place(name).bit for name in ("first_missing_psn", "map_psn", "map")] == [0, 24, 48]
    assert [header.bits // 8 for header in headers.FRAME] == [ip, udp - ip, bth - udp, 12]
    assert (wire.SHIM_BYTES, wire.INT_RECORD_BYTES) == (lengths.INT_SHIM_BYTES, lengths.INT_RECORD_BYTES)
    assert wire.ETHERNET_BYTES + wire.OVERHEAD_BYTES == lengths.ROCE.header_bytes == lengths.ROCE.least_bytes
    assert lengths.ROCE.ack_bytes == wire.AFTER_BTH + wire.AETH_BYTES + wire.ICRC_BYTES
    assert lengths.TCP.ack_bytes == lengths.ROCE.ack_bytes + wire.CUMULATIVE_BYTES
    assert lengths.UDP.least_bytes == wire.AFTER_BTH + wire.SHORT_BYTES + wire.ICRC_BYTES


def test_the_length_of_a_data_packet_is_computed_once_for_each_payload() -> None:
    computed = []

    class Counting(lengths.Lengths):
        def data_bytes(self, payload_bytes: int) -> int:
            computed.append(payload_bytes)
            return super().data_bytes(payload_bytes)

    for one in (lengths.ROCE, lengths.TCP, lengths.UDP):
        for telemetry in (False, True):
            shim_bytes = wire.SHIM_BYTES if telemetry else 0
            shared = FrameLengths(Counting(**asdict(one)), telemetry)
            for payload_bytes in (0, 1, 1000, 1, 1000):
                assert shared.data_wire_bytes(payload_bytes) == one.data_bytes(payload_bytes) + shim_bytes
    assert computed == [0, 1, 1000] * 6


@settings(deadline=None)
@given(st.integers(0, (1 << 24) - 1), st.integers(0, (1 << 24) - 1))
def test_queue_pair_and_psn_of_a_frame(qpn: int, psn: int) -> None:
    frame = wire.header(A, B, 7, wire.ACKNOWLEDGE, qpn, after_bth_bytes=4) + psn.to_bytes(4, "big")
    assert (wire.dest_qpn(frame), wire.psn(frame)) == (qpn, psn)
    assert headers.BTH.get("dest_qp", frame, wire.BTH) == qpn
