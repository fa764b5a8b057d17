"""Frames to the peer of one queue pair: data, answers to data, and control packets, from templates."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from host_agents import wire
from host_agents.lb.base import FIRST_ENTROPY
from host_agents.lengths import MOST_BLOCKS, ROCE, SACK_OPTION_BYTES, Lengths
from host_agents.template import ack_frame, counter_frame, cumulative_frame, sack_frame

_NO_SHORT: Final = -(1 << 16)


class FrameLengths:
    """Lengths of the frames of one protocol's queue pairs, in the form that compiled code reads quickly.

    The length of a data packet is computed once for each size of payload.
    """

    def __init__(self, lengths: Lengths, telemetry: bool) -> None:
        # Bytes of data packets between RoCEv2's headers and the payload; if negative, that much of
        # the payload is within the headers.
        self.option_bytes: int = lengths.header_bytes - ROCE.header_bytes
        self.inside_bytes: int = max(0, -self.option_bytes)
        # Largest payload of packets of the shortest length, which carry their payload's length;
        # negative if there are none.
        self.short_bytes: int = lengths.least_bytes - lengths.header_bytes or _NO_SHORT
        self.align_bytes: int = lengths.align_bytes
        self.ack_bytes: int = lengths.ack_bytes
        self.block_bytes: int = lengths.block_bytes
        self.shim_bytes = wire.SHIM_BYTES if telemetry else 0
        self._lengths = lengths
        self._data_wire_bytes: dict[int, int] = {}  # by payload

    def data_wire_bytes(self, payload_bytes: int) -> int:
        """Return the size on the wire of a data packet as it leaves."""
        wire_bytes = self._data_wire_bytes.get(payload_bytes)
        if wire_bytes is None:
            wire_bytes = self._lengths.data_bytes(payload_bytes) + self.shim_bytes
            self._data_wire_bytes[payload_bytes] = wire_bytes
        return wire_bytes


class Frames:
    """Frame builder of one queue pair: both ends' addresses, the peer's number, priorities, lengths, and INT's shim."""

    def __init__(
        self,
        address: int,
        peer_address: int,
        peer_qpn: int,
        priority: int,
        control_priority: int,
        telemetry: bool,
        ack_opcode: int,
        partition_key: int,
        ecn: int,
        lengths: FrameLengths,
        mac_prefix: int,
    ) -> None:
        self.telemetry = telemetry
        self.lengths = lengths
        self._ecn = ecn  # ECN bits of data packets
        self.peer_address = peer_address
        self.partition_key = partition_key
        self._mac_prefix = mac_prefix
        self._ack_opcode = ack_opcode
        self._ack_hops = -1  # INT records of the template; -1: no shim
        self._ack_template = b""
        self.peer_qpn = peer_qpn
        self._address = address
        self._data_dscp = 8 * priority
        self._control_dscp = 8 * control_priority
        self._opcode_offset = wire.WITH_INT if telemetry else 0
        self._data_templates: dict[int, bytes] = {}  # by opcode and payload
        # By priority and template, created on demand like the counter templates below; most queue
        # pairs need none.
        self._templates_in_class: dict[int, dict[bytes, bytes]] | None = None
        self._cnp = b""
        self._counter_templates: dict[int, bytes] | None = None  # by opcode
        self._block_templates: dict[int, bytes] | None = None  # templates of answers by number of blocks

    def data_template(self, opcode: int, payload_bytes: int) -> bytes:
        """Return a data frame of this kind without entropy, AckReq and PSN."""
        key = opcode << 16 | payload_bytes
        template = self._data_templates.get(key)
        if template is None:
            pad = -payload_bytes % self.lengths.align_bytes
            after_bth = self.lengths.data_wire_bytes(payload_bytes) - wire.ETHERNET_BYTES - wire.OVERHEAD_BYTES
            start = wire.header(
                self._address,
                self.peer_address,
                FIRST_ENTROPY,
                opcode + self._opcode_offset,
                self.peer_qpn,
                after_bth_bytes=after_bth,
                pad_bytes=pad,
                dscp=self._data_dscp,
                ecn=self._ecn,
                partition_key=self.partition_key,
                mac_prefix=self._mac_prefix,
            )
            more = bytes(self.lengths.shim_bytes + max(0, self.lengths.option_bytes))
            if payload_bytes <= self.lengths.short_bytes:
                more = payload_bytes.to_bytes(wire.SHORT_BYTES, "big")
            template = start + bytes(4) + more
            self._data_templates[key] = template
        return template

    def in_class(self, template: bytes, priority: int) -> bytes:
        """Return a data template with another priority."""
        if self._templates_in_class is None:
            self._templates_in_class = {}
        known = self._templates_in_class.setdefault(priority, {})
        in_other_class = known.get(template)
        if in_other_class is None:
            changed = bytearray(template)
            changed[wire.TOS] = 8 * priority << 2 | self._ecn
            in_other_class = wire.checksummed(changed)
            known[template] = in_other_class
        return in_other_class

    def ack(self, psn: int, syndrome: int, messages: int, body: bytes, marked: bool, frame: bytes) -> bytes:
        """Return an ACK or NAK for the data packet `frame`, which echoes its INT shim, entropy and ECN mark.

        `messages` is the number of delivered messages (MSN). `body` is a protocol's own content of
        ACKs, which follows the AETH.
        """
        template = self._ack_template_for(frame, len(body))
        aeth = syndrome << 24 | messages & wire.PSN_MASK
        return ack_frame(template, psn, aeth, marked, frame, self._ack_hops, body)

    def sack(
        self, psn: int, messages: int, first_missing_psn: int, map_psn: int, early: i64, marked: bool, frame: bytes
    ) -> bytes:
        """Return a selective ACK for the data packet `frame`, which echoes the same fields."""
        aeth = wire.SYNDROME_ACK << 24 | messages & wire.PSN_MASK
        if self.lengths.block_bytes > 0:
            blocks = _blocks(psn, first_missing_psn, map_psn, early)
            template = self._block_template(blocks)
            if blocks == 0:
                return cumulative_frame(template, psn, aeth, marked, frame, first_missing_psn)
            return sack_frame(template, psn, aeth, marked, frame, -1, first_missing_psn, map_psn, early)
        template = self._ack_template_for(frame, wire.SACK_BYTES)
        return sack_frame(template, psn, aeth, marked, frame, self._ack_hops, first_missing_psn, map_psn, early)

    def nack(self, psn: int, marked: bool, last_hop: bool, frame: bytes) -> bytes:
        """Return a NACK for the trimmed packet `frame` with its ECN mark and whether it was trimmed at the last hop."""
        entropy = frame[wire.SOURCE_PORT] << 8 | frame[wire.SOURCE_PORT + 1]
        return self.control_frame(wire.NACK, b"", psn=psn, entropy=entropy, becn=marked, solicited=last_hop)

    def cnp(self, entropy: int) -> bytes:
        """Return a CNP (annex A17.9.3: 16 reserved bytes); all CNPs have the entropy of the first."""
        if not self._cnp:
            self._cnp = self.control_frame(wire.CNP, bytes(16), entropy=entropy, becn=True)
        return self._cnp

    def control_frame(
        self,
        opcode: int,
        body: bytes,
        *,
        psn: int = 0,
        entropy: int = FIRST_ENTROPY,
        becn: bool = False,
        solicited: bool = False,
        priority: int = -1,
    ) -> bytes:
        """Return a control packet with `body` after its BTH; the priority defaults to that of control packets."""
        prefix = wire.header(
            self._address,
            self.peer_address,
            entropy,
            opcode,
            self.peer_qpn,
            after_bth_bytes=len(body),
            dscp=self._control_dscp if priority < 0 else 8 * priority,
            becn=becn,
            solicited=solicited,
            partition_key=self.partition_key,
            mac_prefix=self._mac_prefix,
        )
        return prefix + psn.to_bytes(4, "big") + body

    def counter(self, opcode: int, value: int, entropy: int) -> bytes:
        """Return a control packet with a body of one 8-byte number."""
        if self._counter_templates is None:
            self._counter_templates = {}
        template = self._counter_templates.get(opcode)
        if template is None:
            template = self.control_frame(opcode, bytes(wire.COUNTER_BYTES))
            self._counter_templates[opcode] = template
        return counter_frame(template, entropy, value)

    def _ack_template_for(self, frame: bytes, body_bytes: int) -> bytes:
        """Return the template of a queue pair's answers, whose bodies all have the same length."""
        hops = frame[wire.AFTER_BTH] >> 4 if self.telemetry else -1
        if hops != self._ack_hops or not self._ack_template:
            self._ack_template = self._make_ack_template(hops, body_bytes)
            self._ack_hops = hops
        return self._ack_template

    def _make_ack_template(self, hops: int, body_bytes: int) -> bytes:
        """Return the start of an ACK with `hops` INT records, up to and with the BTH."""
        shim_bytes = wire.SHIM_BYTES + hops * wire.INT_RECORD_BYTES if self.telemetry else 0
        opcode = self._ack_opcode + self._opcode_offset
        if body_bytes > 0 and self._ack_opcode == wire.ACKNOWLEDGE:
            opcode = wire.SACK_WITH_INT if self.telemetry else wire.SACK
        return self._answer_template(opcode, shim_bytes + wire.AETH_BYTES + body_bytes)

    def _block_template(self, blocks: int) -> bytes:
        """Return the start of an answer of TCP's length with this many blocks, up to and with the BTH."""
        if self._block_templates is None:
            self._block_templates = {}
        template = self._block_templates.get(blocks)
        if template is None:
            length = self.lengths.ack_bytes
            if blocks > 0:
                length += SACK_OPTION_BYTES + self.lengths.block_bytes * blocks
            opcode = wire.SACK if blocks > 0 else wire.CUMULATIVE
            template = self._answer_template(opcode, length - wire.ETHERNET_BYTES - wire.OVERHEAD_BYTES)
            self._block_templates[blocks] = template
        return template

    def _answer_template(self, opcode: int, after_bth_bytes: int) -> bytes:
        """Return the start of an answer, up to and with the BTH."""
        start = wire.header(
            self._address,
            self.peer_address,
            FIRST_ENTROPY,
            opcode,
            self.peer_qpn,
            after_bth_bytes=after_bth_bytes,
            dscp=self._control_dscp,
            partition_key=self.partition_key,
            mac_prefix=self._mac_prefix,
        )
        return start + bytes(4)


def _blocks(psn: int, first_missing_psn: int, map_psn: int, early: i64) -> int:
    """Return the number of blocks of TCP's SACK for early packets: the map's runs, and a packet outside it."""
    ends: i64 = early & ~(early >> 1)  # without the top bit, which the shift repeats
    blocks = 1 if early < 0 else 0
    while ends != 0:
        ends &= ends - 1
        blocks += 1
    ahead = (psn - first_missing_psn) & wire.PSN_MASK
    outside = (psn - map_psn) & wire.PSN_MASK >= wire.SACK_BITS
    if ahead < wire.PSN_HALF and outside:
        blocks += 1
    return min(blocks, MOST_BLOCKS)
