"""Ultra Ethernet's headers, and the translation of a run's RoCEv2 frames to frames with them.

Hosts here send RoCEv2 with every protocol; the fields that Ultra Ethernet's congestion control needs are in their
packets. `translated` converts such a frame to the one that Ultra Ethernet's packet delivery sublayer (PDS) would send:
over UDP port 4793, with the same source port, which is the entropy. Wireshark and scapy then show a capture as Ultra
Ethernet. Values that RoCEv2's frames do not carry are 0: `clear_psn_offset`, `spdcid`, whether a packet is sent again,
the bytes received, the service time. There is no semantic sublayer: `next_hdr` is 0, and the payload follows.

Source: Ultra Ethernet specification 1.0, section 3.5 (PDS).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from host_agents import headers, wire
from host_agents.cc import rccc
from host_agents.errors import PacketError
from host_agents.packets import HEXADECIMAL, Field, Header

PORT: Final = 4793

TYPES: Final = {
    1: "security", 2: "RUD request", 3: "ROD request", 4: "RUDI request", 5: "RUDI response", 6: "UUD request",
    7: "ACK", 8: "ACK with CC state", 9: "ACK with extended CC state", 10: "NACK", 11: "control",
    12: "NACK with extended CC state", 13: "RUD request with CC state", 14: "ROD request with CC state",
}  # fmt: skip
RUD_REQUEST: Final = 2
ACK_CC: Final = 8
NACK_TYPE: Final = 10
CONTROL_TYPE: Final = 11
RUD_REQUEST_CC: Final = 13
NACK_CODES: Final = {1: "trimmed", 2: "trimmed at the last hop", 3: "trimmed ACK", 11: "PSN out of the window"}
CONTROL_TYPES: Final = {
    0: "no operation", 1: "ACK request", 2: "clear command", 3: "clear request", 4: "close command",
    5: "close request", 6: "probe", 7: "credit", 8: "credit request", 9: "negotiation",
}  # fmt: skip
PROBE: Final = 6
CREDIT: Final = 7
CREDIT_REQUEST: Final = 8
NSCC_STATE_TYPE: Final = 0
CREDIT_STATE_TYPE: Final = 1

_TYPE: Final = Field("type", 5, values=TYPES)
_NEXT: Final = Field("next_hdr", 4, "the header of the semantic sublayer that follows; 0: none")
_RETRANSMITTED: Final = Field("retransmitted", 1)
_MARKED: Final = Field("marked", 1, "the packet that this one answers had ECN CE")
_PDCS: Final = (
    Field("spdcid", 16, "packet delivery context of the source"),
    Field("dpdcid", 16, "packet delivery context of the destination"),
)

REQUEST: Final = Header(
    "uet_request",
    (
        _TYPE,
        _NEXT,
        Field("reserved", 2),
        _RETRANSMITTED,
        Field("ack_request", 1),
        Field("syn", 1, "opens the packet delivery context"),
        Field("reserved2", 2),
        Field("clear_psn_offset", 16, "from the PSN back to the last that need not be kept"),
        Field("psn", 32, "packet sequence number"),
        *_PDCS,
    ),
    "Data: reliable unordered or ordered delivery.",
)
REQUEST_STATE: Final = Header(
    "uet_request_cc",
    (
        Field("ccc_id", 8, "congestion control context"),
        Field("credit_target", 24, "how far the sender wants to be pulled, modulo 2^24", unit="256 bytes"),
    ),
    "What a request tells the receiver's congestion control.",
)
ACK: Final = Header(
    "uet_ack",
    (
        _TYPE,
        _NEXT,
        Field("reserved", 1),
        _MARKED,
        _RETRANSMITTED,
        Field("probe", 1, "it answers a probe"),
        Field("request", 2, "the peer is to: 0 nothing, 1 clear, 2 close"),
        Field("reserved2", 1),
        Field("ack_psn_offset", 16, "from the cumulative PSN to that of the packet that caused the ACK, signed"),
        Field("cack_psn", 32, "all packets up to this PSN have arrived"),
        *_PDCS,
    ),
    "Acknowledgement.",
)
ACK_STATE: Final = Header(
    "uet_ack_cc",
    (
        Field("cc_type", 4, values={NSCC_STATE_TYPE: "NSCC", CREDIT_STATE_TYPE: "credit"}),
        Field("cc_flags", 4),
        Field("mpr", 8, "how far ahead packets may be"),
        Field("sack_psn_offset", 16, "from the cumulative PSN to the map's first packet, signed"),
        Field("sack_bitmap", 64, "bit i: whether the packet i after the first has arrived", display=HEXADECIMAL),
    ),
    "Selective acknowledgement.",
)
NSCC_STATE: Final = Header(
    "uet_nscc_state",
    (
        Field("service_time", 16),
        Field("restore_window", 1),
        Field("window_penalty", 7, "of the receiver"),
        Field("received", 24, "bytes received so far", unit="256 bytes"),
        Field("out_of_order", 16, "packets held out of order"),
    ),
    "What an ACK tells NSCC.",
)
CREDIT_STATE: Final = Header(
    "uet_credit_state",
    (
        Field("credit", 24, "granted so far, modulo 2^24", unit="256 bytes"),
        Field("reserved", 24),
        Field("out_of_order", 16, "packets held out of order"),
    ),
    "What an ACK tells a sender that waits for credit.",
)
NACK: Final = Header(
    "uet_nack",
    (
        _TYPE,
        _NEXT,
        Field("reserved", 1),
        _MARKED,
        _RETRANSMITTED,
        Field("nack_type", 1, "1: of a request without a context"),
        Field("reserved2", 3),
        Field("nack_code", 8, values=NACK_CODES),
        Field("vendor_code", 8),
        Field("nack_psn", 32, "packet sequence number of the packet that is asked for again"),
        *_PDCS,
        Field("payload", 32, display=HEXADECIMAL),
    ),
    "Negative acknowledgement.",
)
CONTROL: Final = Header(
    "uet_control",
    (
        _TYPE,
        Field("control_type", 4, values=CONTROL_TYPES),
        Field("reserved", 1),
        Field("ordered", 1),
        _RETRANSMITTED,
        Field("ack_request", 1),
        Field("syn", 1, "opens the packet delivery context"),
        Field("reserved2", 2),
        Field("probe_opaque", 16, "an answer repeats it", display=HEXADECIMAL),
        Field("psn", 32, "packet sequence number"),
        *_PDCS,
        Field("payload", 32, "of credit and its requests: quanta, modulo 2^24", display=HEXADECIMAL),
    ),
    "Control packet.",
)


@dataclass(frozen=True)
class PdsPacket:
    """Packet of a type: the headers after UDP's, in order.

    With a `cc_type`, one of two further headers follows.
    """

    type: int
    headers: tuple[Header, ...]
    states: tuple[Header, ...] = ()

    @property
    def name(self) -> str:
        return TYPES[self.type]


PACKETS: Final = (
    PdsPacket(RUD_REQUEST, (REQUEST,)),
    PdsPacket(3, (REQUEST,)),
    PdsPacket(7, (ACK,)),
    PdsPacket(ACK_CC, (ACK, ACK_STATE), (NSCC_STATE, CREDIT_STATE)),
    PdsPacket(NACK_TYPE, (NACK,)),
    PdsPacket(CONTROL_TYPE, (CONTROL,)),
    PdsPacket(RUD_REQUEST_CC, (REQUEST, REQUEST_STATE)),
    PdsPacket(14, (REQUEST, REQUEST_STATE)),
)
HEADERS: Final = (REQUEST, REQUEST_STATE, ACK, ACK_STATE, NSCC_STATE, CREDIT_STATE, NACK, CONTROL)
_OFFSET_HALF: Final = 1 << 15
_QUANTA_MASK: Final = 0xFFFFFF


def translated(frame: bytes) -> bytes | None:
    """Return a whole RoCEv2 frame, Ethernet to ICRC, as one of Ultra Ethernet's; None if it has no counterpart.

    These frames have a counterpart: data (also trimmed, or with a pull target), selective ACKs,
    NACKs, requests and grants of credit, and probes. The payload is unchanged; padding and ICRC are
    removed. Raises PacketError for a frame that is cut short.
    """
    if not wire.is_roce(frame):
        return None
    if len(frame) < wire.wire_bytes(frame):
        raise PacketError(f"frame of {wire.wire_bytes(frame)} bytes: only {len(frame)} are there; expected all")
    opcode = frame[wire.BTH]
    pds = _pds(frame, opcode)
    if pds is None:
        return None
    payload = b""
    if opcode == wire.TRIMMED:
        payload = frame[wire.AFTER_BTH :]
    elif _is_data(opcode):
        begin = wire.AFTER_BTH + (rccc.DATA.size_bytes if opcode >= rccc.DATA.opcode else 0)
        end = len(frame) - wire.ICRC_BYTES - (frame[wire.PAD] >> 4 & 3)
        payload = frame[begin:end]
    udp_bytes = wire.UDP_BYTES + len(pds) + len(payload)
    start = bytearray(frame[: wire.BTH])
    start[wire.TOTAL_LENGTH : wire.TOTAL_LENGTH + 2] = (wire.IPV4_BYTES + udp_bytes).to_bytes(2, "big")
    start[wire.DESTINATION_PORT : wire.DESTINATION_PORT + 2] = PORT.to_bytes(2, "big")
    start[wire.UDP_LENGTH : wire.UDP_LENGTH + 2] = udp_bytes.to_bytes(2, "big")
    return wire.checksummed(start) + pds + payload


def _is_data(opcode: int) -> bool:
    return opcode <= wire.SEND_ONLY or rccc.DATA.opcode <= opcode < rccc.DATA.opcode + wire.SEND_ONLY + 1


def _pds(frame: bytes, opcode: int) -> bytes | None:
    """Return the headers between UDP's and the payload."""
    psn = wire.psn(frame)
    dpdcid = wire.dest_qpn(frame) & 0xFFFF
    at = wire.AFTER_BTH
    if _is_data(opcode) or opcode == wire.TRIMMED:
        asks = frame[wire.ACK_PSN] >> 7
        target = opcode >= rccc.DATA.opcode
        kind = RUD_REQUEST_CC if target else RUD_REQUEST
        if opcode == wire.SEND_ONLY and wire.wire_bytes(frame) == at + wire.ICRC_BYTES and asks:
            return _control(PROBE, psn, dpdcid, 0)
        request = REQUEST.encode({"type": kind, "ack_request": asks, "psn": psn, "dpdcid": dpdcid})
        if not target:
            return request
        quanta = rccc.DATA.get("target", frame, at) & _QUANTA_MASK
        return request + REQUEST_STATE.encode({"credit_target": quanta})
    if opcode == wire.SACK:
        said = headers.SACK.decode(frame, at)
        cumulative = (said["first_missing_psn"] - 1) & wire.PSN_MASK
        ack = ACK.encode(
            {
                "type": ACK_CC,
                "marked": frame[wire.BECN] >> 6 & 1,
                "ack_psn_offset": _offset(cumulative, psn),
                "cack_psn": cumulative,
                "dpdcid": dpdcid,
            }
        )
        state = {"sack_psn_offset": _offset(cumulative, said["map_psn"]), "sack_bitmap": said["map"]}
        return ack + ACK_STATE.encode(state) + NSCC_STATE.encode({})
    if opcode == wire.NACK:
        code = 2 if frame[wire.PAD] & 0x80 else 1
        marked = frame[wire.BECN] >> 6 & 1
        said = {"type": NACK_TYPE, "marked": marked, "nack_code": code, "nack_psn": psn, "dpdcid": dpdcid}
        return NACK.encode(said)
    if opcode == rccc.PULL.opcode and rccc.PULL.fits(frame, at):
        return _control(CREDIT, psn, dpdcid, rccc.PULL.get("granted", frame, at) & _QUANTA_MASK)
    if opcode == rccc.RTS.opcode and rccc.RTS.fits(frame, at):
        return _control(CREDIT_REQUEST, psn, dpdcid, rccc.RTS.get("target", frame, at) & _QUANTA_MASK)
    return None


def _control(kind: int, psn: int, dpdcid: int, payload: int) -> bytes:
    said = {"type": CONTROL_TYPE, "control_type": kind, "psn": psn, "dpdcid": dpdcid, "payload": payload}
    return CONTROL.encode(said)


def _offset(cumulative: int, psn: int) -> int:
    """Return the difference of two 24-bit PSNs as a signed number of 16 bits.

    Raises PacketError if it does not fit.
    """
    ahead = (psn - cumulative) & wire.PSN_MASK
    if ahead >= wire.PSN_HALF:
        ahead -= wire.PSN_MASK + 1
    if not -_OFFSET_HALF <= ahead < _OFFSET_HALF:
        raise PacketError(f"PSN {psn} is {ahead} after {cumulative}; expected an offset of 16 bits")
    return ahead & 0xFFFF
