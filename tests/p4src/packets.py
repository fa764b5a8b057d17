"""Packets of the tests, built and read by scapy.

The scapy layers of p4cc's headers are derived from their declarations. `tests/host_agents` checks
the bytes.
"""

from __future__ import annotations

import functools
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict

from scapy.fields import BitField, ByteField, XBitField
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw
from scapy.utils import checksum

from host_agents.cc.accurate import FRP
from host_agents.wire import WITH_INT
from wireformats import scapy_layers

if TYPE_CHECKING:
    from typing_extensions import Unpack

ROCEV2 = 4791
TOS, PSN = 15, slice(51, 54)  # positions in a frame
_IP, _IP_ID, _IP_CHECKSUM = slice(14, 34), 18, 24

WRITE_ONLY = 0x0A
ACKNOWLEDGE = 0x11
FRP_OPCODE = FRP.opcode

NOT_ECT, ECT1, ECT0, CE = range(4)


class BTH(Packet):
    name = "BTH"
    fields_desc = [
        ByteField("opcode", WRITE_ONLY),
        BitField("solicited_event", 0, 1),
        BitField("migration_request", 1, 1),
        BitField("pad_count", 0, 2),
        BitField("transport_version", 0, 4),
        XBitField("partition_key", 0xFFFF, 16),
        BitField("fecn", 0, 1),
        BitField("becn", 0, 1),
        BitField("tokens", 0, 3),
        BitField("reserved", 0, 3),
        BitField("dest_qp", 0, 24),
        BitField("ack_request", 0, 1),
        BitField("reserved2", 0, 7),
        BitField("psn", 0, 24),
    ]


_LAYERS = scapy_layers.load()
IntRecord, IntShim, FlowRate = _LAYERS["int_record"], _LAYERS["int_shim"], _LAYERS["frp"]


def mac(address: str) -> str:
    return "02:00:" + ":".join(f"{int(byte):02x}" for byte in address.split("."))


class _Options(TypedDict, total=False):
    """Keyword arguments of `Flow.frame` for a data packet."""

    payload: bytes
    ecn: int
    dscp: int
    ttl: int
    wire_bytes: int


@dataclass(frozen=True)
class Flow:
    """Source and destination of packets, and `entropy`, their UDP source port."""

    source: str = "10.0.0.2"
    destination: str = "10.0.0.3"
    entropy: int = 49152

    def frame(
        self,
        above: Packet,
        payload: bytes = bytes(32),
        *,
        psn: int = 0,
        ecn: int = ECT0,
        dscp: int = 24,
        ttl: int = 64,
        wire_bytes: int | None = None,
    ) -> bytes:
        """Return a frame of Ethernet, IPv4, UDP, `above` (a BTH and more) and payload, padded to `wire_bytes`."""
        head = (
            Ether(src=mac(self.source), dst=mac(self.destination))
            / IP(src=self.source, dst=self.destination, tos=dscp << 2 | ecn, ttl=ttl, flags="DF", id=psn & 0xFFFF)
            / UDP(sport=self.entropy, dport=ROCEV2, chksum=0)
            / above
        )
        if wire_bytes is not None:
            payload = bytes(wire_bytes - len(head))
        return bytes(head / Raw(payload))

    def data(self, psn: int = 0, opcode: int = WRITE_ONLY, **options: Unpack[_Options]) -> bytes:
        """Return a plain RoCEv2 data packet."""
        frame = bytearray(_first_data(self, opcode, **options))
        struct.pack_into("!H", frame, _IP_ID, psn & 0xFFFF)
        struct.pack_into("!H", frame, _IP_CHECKSUM, 0)
        struct.pack_into("!H", frame, _IP_CHECKSUM, checksum(bytes(frame[_IP])))
        frame[PSN] = psn.to_bytes(3, "big")
        return bytes(frame)

    def telemetry(
        self, records: int = 0, psn: int = 0, opcode: int = WITH_INT + WRITE_ONLY, **options: Unpack[_Options]
    ) -> bytes:
        """Return a packet with an INT shim of `records` records; record i has link rate code i + 1."""
        known = [IntRecord(link_rate_code=i + 1, timestamp_ns=i, tx_units=i, queue_cells=i) for i in range(records)]
        shim = IntShim(hop_count=records, path_id=0x5A5, records=known)
        return self.frame(BTH(opcode=opcode, psn=psn, dest_qp=7) / shim, psn=psn, **options)

    def flow_rate(self, current_kbps: int, desired_kbps: int, kind: int = 0, psn: int = 0, response: int = 0) -> bytes:
        """Return an ACCurate FRP that is on its way to the destination."""
        above = BTH(opcode=FRP_OPCODE, psn=psn, dest_qp=7) / FlowRate(
            kind=kind, response=response, source_qp=9, current_rate=current_kbps, desired_rate=desired_kbps
        )
        return self.frame(above, bytes(4), psn=psn, ecn=NOT_ECT, dscp=48)


@functools.cache
def _first_data(flow: Flow, opcode: int, **options: Unpack[_Options]) -> bytes:
    """Return a packet with PSN 0.

    Callers write other values into it, because scapy takes a millisecond per packet.
    """
    return flow.frame(BTH(opcode=opcode, dest_qp=7), **options)


def reverse_of(flow: Flow) -> Flow:
    return Flow(flow.destination, flow.source, flow.entropy)


def dissect(frame: bytes) -> Packet:
    """Return Ethernet, IP, UDP, BTH and the headers of the opcode."""
    packet = Ether(frame)
    if UDP in packet and packet[UDP].dport == ROCEV2:
        bth = BTH(bytes(packet[UDP].payload))
        rest = bytes(bth.payload)
        bth.remove_payload()
        if WITH_INT <= bth.opcode < WITH_INT + 0x20:
            above: Packet = bth / IntShim(rest)
        elif bth.opcode == FRP_OPCODE:
            above = bth / FlowRate(rest)
        else:
            above = bth / Raw(rest)
        packet[UDP].remove_payload()
        packet = packet / above
    return packet


def ip_checksum_ok(frame: bytes) -> bool:
    """Return whether IPv4's header checksum is correct (RFC 1071: the sum of all words is all ones)."""
    words = [int.from_bytes(frame[i : i + 2], "big") for i in range(14, 34, 2)]
    total = sum(words)
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total == 0xFFFF


def ecn_of(frame: bytes) -> int:
    return frame[TOS] & 3


def psn_of(frame: bytes) -> int:
    return int.from_bytes(frame[PSN], "big")


def numbered(frame: bytes, psn: int) -> bytes:
    """Return the frame with another PSN.

    scapy takes a millisecond for a frame.
    """
    return frame[: PSN.start] + psn.to_bytes(3, "big") + frame[PSN.stop :]
