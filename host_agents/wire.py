"""Frames: RoCEv2 over Ethernet and IPv4, and 802.1Qbb pause frames. `docs/wire-formats.md` describes them.

The offsets and sizes here are literals, which mypyc inlines. `headers` declares the same values,
and a test compares them.

A frame consists of header bytes. Its wire length is IPv4's total length plus 14, and missing bytes
(payload, ICRC) are zeros. `materialize` makes the whole frame for a real wire. Sources: IBTA volume
1, annexes A16 and A17; IEEE 802.1Qbb.
"""

from __future__ import annotations

import zlib
from typing import Final

from librt.strings import read_i64_be
from mypy_extensions import i64

ETHERNET_BYTES: Final = 14
IPV4_BYTES: Final = 20
UDP_BYTES: Final = 8
BTH_BYTES: Final = 12
AETH_BYTES: Final = 4
ICRC_BYTES: Final = 4
SHIM_BYTES: Final = 2
INT_RECORD_BYTES: Final = 8
SACK_BYTES: Final = 14
CUMULATIVE_BYTES: Final = 4
SHORT_BYTES: Final = 2  # length field of UDP's shortest data packets
COUNTER_BYTES: Final = 8  # body of a control packet with one number
# Bytes from the IPv4 header to the ICRC without payload: the overhead of a data packet without shim
# beyond Ethernet.
OVERHEAD_BYTES: Final = IPV4_BYTES + UDP_BYTES + BTH_BYTES + ICRC_BYTES

# Offsets in a frame.
IP: Final = 14
TOS: Final = 15
TOTAL_LENGTH: Final = 16
TTL: Final = 22
CHECKSUM: Final = 24
PROTOCOL: Final = 23
SOURCE: Final = 26
DESTINATION: Final = 30
SOURCE_PORT: Final = 34
DESTINATION_PORT: Final = 36
UDP_LENGTH: Final = 38
BTH: Final = 42
PAD: Final = 43  # solicited event in bit 7, pad count in bits 5-4
PARTITION: Final = 44
BECN: Final = 46  # FECN is bit 7, BECN bit 6
ACK_PSN: Final = 50  # AckReq in the top bit, then 7 reserved bits, then the PSN
AFTER_BTH: Final = 54

ROCE_PORT: Final = 4791
INITIAL_TTL: Final = 64
NOT_ECT: Final = 0
ECT0: Final = 2
CE: Final = 3
DEFAULT_PARTITION: Final = 0xFFFF
MAC_PREFIX: Final = 0x0200  # the first two bytes of MAC addresses; the other four are the IPv4 address
PSN_MASK: Final = 0xFFFFFF
QPN_MASK: Final = 0xFFFFFF
PSN_HALF: Final = 0x800000
ACK_REQUEST: Final = 0x80000000

# BTH opcodes: reliable connection.
SEND_FIRST: Final = 0x00
SEND_MIDDLE: Final = 0x01
SEND_LAST: Final = 0x02
SEND_ONLY: Final = 0x04
ACKNOWLEDGE: Final = 0x11
CNP: Final = 0x81
WITH_INT: Final = 0xC0  # added to a reliable-connection opcode if an INT shim follows the BTH
FIRST_CONTROL: Final = 0xE0  # control packets of p4cc, up to 0xFF
SACK: Final = 0xE0
SACK_WITH_INT: Final = 0xE1
TRIMMED: Final = 0xE2
NACK: Final = 0xE3
CUMULATIVE: Final = 0xFF

# AETH syndromes: an ACK without end-to-end credits, and a NAK for a PSN out of sequence.
SYNDROME_ACK: Final = 0x1F
SYNDROME_NAK_SEQUENCE: Final = 0x60
# SACK: a cumulative PSN, then the PSN at which a map begins, with one bit per packet.
SACK_BITS: Final = 64


def parse_address(text: str) -> int:
    """Return an IPv4 address in dotted form as a number.

    Raises ValueError for a text that is no such address.
    """
    address = 0
    parts = text.split(".")
    for part in parts:
        if len(parts) != 4 or not (part.isascii() and part.isdigit() and len(part) <= 3 and int(part) < 256):
            raise ValueError(f"{text!r}: expected an IPv4 address like 10.0.0.2")
        address = address << 8 | int(part)
    return address


def mac_of(address: int, prefix: int = MAC_PREFIX) -> bytes:
    """Return the MAC address of an IPv4 address: two bytes of `prefix`, then the address."""
    return (prefix << 32 | address).to_bytes(6, "big")


def ip_checksum(header: bytes) -> int:
    """Return the checksum of RFC 1071 over 20 bytes; 0 for a header with a correct checksum."""
    return complement(sum(int.from_bytes(header[i : i + 2], "big") for i in range(0, IPV4_BYTES, 2)))


def complement(total: int) -> int:
    """Return the ones' complement of a sum of 16-bit words (RFC 1071)."""
    total = (total & 0xFFFF) + (total >> 16)
    return 0xFFFF - ((total & 0xFFFF) + (total >> 16))


def checksummed(header: bytearray) -> bytes:
    """Return headers, from Ethernet's on, with their IPv4 checksum computed."""
    header[CHECKSUM : CHECKSUM + 2] = b"\0\0"
    header[CHECKSUM : CHECKSUM + 2] = ip_checksum(bytes(header[IP : IP + IPV4_BYTES])).to_bytes(2, "big")
    return bytes(header)


def checksum_holds(frame: bytes) -> bool:
    """Return whether the IPv4 header checksum of `frame` is right."""
    first: i64 = read_i64_be(frame, 14)
    second: i64 = read_i64_be(frame, 22)
    last: i64 = read_i64_be(frame, 26)
    total: i64 = (first & 0xFFFFFFFF) + ((first >> 32) & 0xFFFFFFFF) + (second & 0xFFFFFFFF)
    total += ((second >> 32) & 0xFFFFFFFF) + (last & 0xFFFFFFFF)
    total = (total & 0xFFFF) + (total >> 16)
    total = (total & 0xFFFF) + (total >> 16)
    total = (total & 0xFFFF) + (total >> 16)
    return total == 0xFFFF


def header(
    source: int,
    destination: int,
    entropy: int,
    opcode: int,
    dest_qpn: int,
    *,
    after_bth_bytes: int,
    pad_bytes: int = 0,
    dscp: int = 0,
    ecn: int = 0,
    becn: bool = False,
    solicited: bool = False,
    partition_key: int = DEFAULT_PARTITION,
    mac_prefix: int = MAC_PREFIX,
) -> bytes:
    """Return the first 50 bytes of a RoCEv2 frame: everything before AckReq and PSN.

    `after_bth_bytes` is the number of bytes after the BTH on the wire (shim, AETH, payload,
    padding), without the ICRC.
    """
    udp_bytes = UDP_BYTES + BTH_BYTES + after_bth_bytes + ICRC_BYTES
    version_tos = 0x45 << 8 | dscp << 2 | ecn
    total_bytes = IPV4_BYTES + udp_bytes
    dont_fragment = 0x4000
    ttl_protocol = INITIAL_TTL << 8 | 17
    total = version_tos + total_bytes + dont_fragment + ttl_protocol
    total += (source >> 16) + (source & 0xFFFF) + (destination >> 16) + (destination & 0xFFFF)
    checksum = complement(total)
    # Every queue pair has several of these, so numbers are combined instead of bytes.
    return (
        mac_of(destination, mac_prefix) + mac_of(source, mac_prefix) + b"\x08\x00"
        + (version_tos << 48 | total_bytes << 32 | dont_fragment).to_bytes(8, "big")
        + (ttl_protocol << 48 | checksum << 32 | source).to_bytes(8, "big")
        + (destination << 16 | entropy).to_bytes(6, "big")
        + (ROCE_PORT << 32 | udp_bytes << 16).to_bytes(6, "big")
        + (opcode << 32 | (0x80000000 if solicited else 0) | pad_bytes << 28 | partition_key << 8
           | (0x40 if becn else 0)).to_bytes(5, "big")
        + dest_qpn.to_bytes(3, "big")
    )


def wire_bytes(frame: bytes) -> int:
    """Return the length on the wire, from Ethernet to ICRC; preamble, FCS and gap do not count."""
    if frame[12:14] != b"\x08\x00":
        return len(frame)
    return ETHERNET_BYTES + int.from_bytes(frame[TOTAL_LENGTH : TOTAL_LENGTH + 2], "big")


def is_roce(frame: bytes) -> bool:
    return (
        len(frame) >= AFTER_BTH
        and frame[12:15] == b"\x08\x00\x45"
        and frame[PROTOCOL] == 17
        and frame[DESTINATION_PORT : DESTINATION_PORT + 2] == ROCE_PORT.to_bytes(2, "big")
    )


def dest_qpn(frame: bytes) -> int:
    """Return the destination queue pair number of a RoCEv2 frame."""
    word: i64 = read_i64_be(frame, BECN)
    qpn: int = (word >> 32) & QPN_MASK
    return qpn


def psn(frame: bytes) -> int:
    """Return the packet sequence number of a RoCEv2 frame."""
    word: i64 = read_i64_be(frame, BECN)
    number: int = word & PSN_MASK
    return number


def icrc(frame: bytes) -> bytes:
    """Return the ICRC of a whole RoCEv2 frame, as the four bytes that end it (annex A17.3.3).

    CRC-32 over eight bytes of ones, then the packet from the IPv4 header to before the ICRC, with
    the fields that switches may change (type of service, TTL, checksums, the byte with FECN and
    BECN) set to ones.
    """
    masked = bytearray(frame[IP:-ICRC_BYTES])
    for offset in (TOS, TTL, 24, 25, 40, 41, BECN):
        masked[offset - IP] = 0xFF
    return zlib.crc32(b"\xff" * 8 + bytes(masked)).to_bytes(4, "little")


# Beginning of a payload if latencies are measured: the send time in ns.
STAMP_BYTES: Final = 8


def stamp_ns(frame: bytes, payload_bytes: int) -> int:
    """Return the send time at the beginning of a data packet's payload; -1 if the payload is too short.

    `payload_bytes` is the number of bytes between headers and padding.
    """
    begin = wire_bytes(frame) - ICRC_BYTES - (frame[PAD] >> 4 & 3) - payload_bytes
    if payload_bytes < STAMP_BYTES or begin < AFTER_BTH or len(frame) < begin + STAMP_BYTES:
        return -1
    stamp: i64 = read_i64_be(frame, begin)
    return int(stamp)


def materialize(frame: bytes) -> bytes:
    """Return the whole frame for a real wire, with payload zeros and, for RoCEv2, the ICRC."""
    whole = frame.ljust(wire_bytes(frame), b"\0")
    if not is_roce(whole):
        return whole
    return whole[:-ICRC_BYTES] + icrc(whole)


def icrc_holds(frame: bytes) -> bool:
    """Return whether a whole frame off a real wire has the correct ICRC."""
    return len(frame) == wire_bytes(frame) and frame[-ICRC_BYTES:] == icrc(frame)


QUANTUM_BITS: Final = 512


def parse_pause(frame: bytes) -> dict[int, int] | None:
    """Return the pause times of a priority pause frame by class, in quanta of 512 bit times; None for other frames."""
    if len(frame) < 34 or frame[12:16] != b"\x88\x08\x01\x01":
        return None
    enable = int.from_bytes(frame[16:18], "big")
    return {p: int.from_bytes(frame[18 + 2 * p : 20 + 2 * p], "big") for p in range(8) if enable >> p & 1}
