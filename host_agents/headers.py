"""The headers that every frame has, and the packets that every NIC knows.

Sources: IEEE 802.3; RFC 791, 768; IBTA volume 1, 9.2 (BTH), 9.3.5 (AETH), annex A17 (RoCEv2).
Headers of a protocol are declared in the protocol's file.
"""

from __future__ import annotations

from typing import Final

from host_agents import wire
from host_agents.packets import HEXADECIMAL, IPV4, MAC, Field, Header, Packet, Records

ETHERNET: Final = Header(
    "ethernet",
    (
        Field("dst_addr", 48, display=MAC),
        Field("src_addr", 48, display=MAC),
        Field("ether_type", 16, display=HEXADECIMAL),
    ),
)
IP: Final = Header(
    "ipv4",
    (
        Field("version", 4, initial=4),
        Field("ihl", 4, "header length in words of 4 bytes", initial=5),
        Field("dscp", 6),
        Field("ecn", 2),
        Field("total_len", 16, unit="bytes"),
        Field("identification", 16, display=HEXADECIMAL),
        Field("flags", 3),
        Field("frag_offset", 13),
        Field("ttl", 8, initial=wire.INITIAL_TTL),
        Field("protocol", 8),
        Field("hdr_checksum", 16, display=HEXADECIMAL),
        Field("src_addr", 32, display=IPV4),
        Field("dst_addr", 32, display=IPV4),
    ),
)
UDP: Final = Header(
    "udp",
    (
        Field("src_port", 16, "entropy"),
        Field("dst_port", 16, initial=wire.ROCE_PORT),
        Field("length", 16, unit="bytes"),
        Field("checksum", 16, display=HEXADECIMAL),
    ),
)
BTH: Final = Header(
    "bth",
    (
        Field("opcode", 8, display=HEXADECIMAL),
        Field("solicited_event", 1, "of a NACK: the packet was trimmed at its last hop"),
        Field("migration_request", 1),
        Field("pad_count", 2, unit="bytes"),
        Field("transport_version", 4),
        Field("partition_key", 16, display=HEXADECIMAL, initial=0xFFFF),
        Field("fecn", 1),
        Field("becn", 1, "the packet that this one answers had ECN CE"),
        Field("tokens", 3, "how often a switch may still deflect the packet (dart.p4); 0: it keeps to its path"),
        Field("reserved", 3),
        Field("dest_qp", 24, "the receiver's queue pair"),
        Field("ack_request", 1),
        Field("reserved2", 7),
        Field("psn", 24, "packet sequence number"),
    ),
    "InfiniBand base transport header.",
)
_SYNDROMES: Final = {wire.SYNDROME_ACK: "ack", wire.SYNDROME_NAK_SEQUENCE: "nak_sequence"}
AETH: Final = Header(
    "aeth",
    (
        Field("syndrome", 8, values=_SYNDROMES, display=HEXADECIMAL),
        Field("msn", 24, "number of messages completed"),
    ),
    "InfiniBand ACK extended transport header.",
)

# Link rates by their code in an INT record; 0: unknown.
LINK_RATES_BPS: Final[list[float]] = [
    *(0.0, 1e9, 2.5e9, 5e9, 10e9, 20e9, 25e9, 40e9),
    *(50e9, 56e9, 100e9, 200e9, 400e9, 800e9, 1600e9, 3200e9),
]

INT_SHIM: Final = Header(
    "int_shim",
    (
        Field("hop_count", 4, "number of records"),
        Field("path_id", 12, "XOR of the ids of the recorded links", display=HEXADECIMAL),
    ),
    "In-band telemetry, directly after the BTH; one record a hop follows.",
)
INT_RECORD: Final = Header(
    "int_record",
    (
        Field(
            "link_rate_code",
            4,
            "rate of the link that the packet leaves on",
            values={
                code: f"{rate_bps / 1e9:g} Gb/s" if rate_bps > 0.0 else "not known"
                for code, rate_bps in enumerate(LINK_RATES_BPS)
            },
        ),
        Field("timestamp_ns", 24, "model time at which the packet left the queue, modulo 2^24 (16.8 ms)", unit="ns"),
        Field(
            "tx_units",
            20,
            "sent by the port before this packet, modulo 2^20 (134 MB: 1.3 ms at 800 Gb/s)",
            unit="128 bytes",
        ),
        Field("queue_cells", 16, "rest of the queue that the packet left, at most 65535", unit="cells"),
    ),
    "What one hop reports.",
)
INT_RECORDS: Final = Records(INT_RECORD, "hop_count")

SACK_HEADER: Final = Header(
    "sack",
    (
        Field("first_missing_psn", 24, "PSN of the first packet missing: all before it have arrived"),
        Field("map_psn", 24, "PSN of the first packet in the map"),
        Field(
            "map",
            wire.SACK_BITS,
            "bit i, from the least significant: packet `map_psn` + i has arrived early",
            display=HEXADECIMAL,
        ),
    ),
    "Selective acknowledgement, after the AETH.",
)

CUMULATIVE_HEADER: Final = Header(
    "cumulative",
    (Field("first_missing_psn", 24, "as in a SACK; nothing has arrived early"), Field("reserved", 8)),
    "Acknowledgement of TCP's length without a block of SACK, after the AETH.",
)

SENDS: Final = (
    Packet("SEND first", wire.SEND_FIRST, payload=True, meaning="data: a message's first packet"),
    Packet("SEND middle", wire.SEND_MIDDLE, payload=True, meaning="data"),
    Packet("SEND last", wire.SEND_LAST, payload=True, meaning="data: a message's last packet"),
    Packet("SEND only", wire.SEND_ONLY, payload=True, meaning="data: a message of one packet"),
)
ACKNOWLEDGE: Final = Packet("ACK", wire.ACKNOWLEDGE, (AETH,), meaning="ACK or NAK")
CNP: Final = Packet(
    "CNP",
    wire.CNP,
    (Header("cnp", (Field("reserved", 128),)),),
    meaning="congestion notification packet of RoCEv2 (annex A17.9.3)",
)
WITH_INT: Final = Packet(
    "with INT",
    wire.WITH_INT,
    (INT_SHIM, INT_RECORDS),
    opcodes=wire.FIRST_CONTROL - wire.WITH_INT,
    wraps=True,
    meaning="RC opcode n with an INT shim after the BTH",
)
SACK: Final = Packet("SACK", wire.SACK, (AETH, SACK_HEADER), meaning="selective acknowledgement")
SACK_WITH_INT: Final = Packet(
    "SACK with INT",
    wire.SACK_WITH_INT,
    (INT_SHIM, INT_RECORDS, AETH, SACK_HEADER),
    meaning="SACK that echoes an INT shim",
)
TRIMMED: Final = Packet(
    "trimmed", wire.TRIMMED, payload=True, icrc=False, meaning="data packet that a switch cut off after its start"
)
NACK: Final = Packet("NACK", wire.NACK, meaning="request to send a trimmed packet again")
CUMULATIVE: Final = Packet(
    "cumulative ACK", wire.CUMULATIVE, (AETH, CUMULATIVE_HEADER), meaning="ACK of TCP: a SACK without a map"
)

THE_TRANSPORT: Final = "the transport"  # owner of the packets in `TRANSPORT`
FRAME: Final = (ETHERNET, IP, UDP, BTH)  # headers at the beginning of every frame
TRANSPORT: Final = (*SENDS, ACKNOWLEDGE, CNP, WITH_INT, SACK, SACK_WITH_INT, TRIMMED, NACK, CUMULATIVE)
