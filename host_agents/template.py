"""Frames from templates: frames of a queue pair differ in a few bytes, which are patched before copying.

All queue pairs share one writer, so that only the template's bytes of a queue pair are accessed
(see docs/decisions/).
"""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter, read_i64_be, write_i16_be, write_i32_be, write_i64_be
from mypy_extensions import i16, i32, i64

from host_agents import wire
from host_agents.packets import Packet

_writer: Final = BytesWriter()


def data_frame(template: bytes, entropy: int, psn: int, ack_request: bool) -> bytes:
    """Return the data frame of a template that ends with the BTH or an empty INT shim."""
    w = _writer
    w.truncate(0)
    w.write(template)
    w[wire.SOURCE_PORT] = entropy >> 8
    w[wire.SOURCE_PORT + 1] = entropy & 0xFF
    w[wire.ACK_PSN] = 0x80 if ack_request else 0
    w[wire.ACK_PSN + 1] = psn >> 16
    w[wire.ACK_PSN + 2] = psn >> 8 & 0xFF
    w[wire.ACK_PSN + 3] = psn & 0xFF
    return w.getvalue()


def ack_frame(template: bytes, psn: int, aeth: int, marked: bool, data: bytes, hops: int, body: bytes) -> bytes:
    """Return the ACK of the frame `data`, with its entropy, ECN mark and INT shim.

    The shim has `hops` records; -1 means no shim.
    """
    _write_ack(template, psn, aeth, marked, data, hops)
    if body:
        _writer.write(body)
    return _writer.getvalue()


def sack_frame(
    template: bytes,
    psn: int,
    aeth: int,
    marked: bool,
    data: bytes,
    hops: int,
    first_missing_psn: int,
    map_psn: int,
    early: i64,
) -> bytes:
    """Return the SACK of the frame `data`; `early` is its map, as a signed number of 64 bits."""
    _write_ack(template, psn, aeth, marked, data, hops)
    both: i64 = first_missing_psn
    both = both << 24 | map_psn
    # The top bit of each number becomes its sign, so that it fits its width in the interpreter,
    # too.
    high = i32(((both >> 16) ^ 0x80000000) - 0x80000000)
    low = i16(((both & 0xFFFF) ^ 0x8000) - 0x8000)
    write_i32_be(_writer, high)
    write_i16_be(_writer, low)
    write_i64_be(_writer, early)
    return _writer.getvalue()


def cumulative_frame(template: bytes, psn: int, aeth: int, marked: bool, data: bytes, first_missing_psn: int) -> bytes:
    """Return the answer to the frame `data` that has only the first missing packet."""
    _write_ack(template, psn, aeth, marked, data, -1)
    body: i32 = i32(((first_missing_psn << 8) ^ 0x80000000) - 0x80000000)
    write_i32_be(_writer, body)
    return _writer.getvalue()


def _write_ack(template: bytes, psn: int, aeth: int, marked: bool, data: bytes, hops: int) -> None:
    w = _writer
    w.truncate(0)
    w.write(template)
    w[wire.SOURCE_PORT] = data[wire.SOURCE_PORT]
    w[wire.SOURCE_PORT + 1] = data[wire.SOURCE_PORT + 1]
    w[wire.BECN] = 0x40 if marked else 0
    w[wire.ACK_PSN + 1] = psn >> 16
    w[wire.ACK_PSN + 2] = psn >> 8 & 0xFF
    w[wire.ACK_PSN + 3] = psn & 0xFF
    if hops >= 0:
        w.append(data[wire.AFTER_BTH])
        w.append(data[wire.AFTER_BTH + 1])
        offset: i64 = wire.AFTER_BTH + wire.SHIM_BYTES
        for _ in range(hops):
            write_i64_be(w, read_i64_be(data, offset))
            offset += wire.INT_RECORD_BYTES
    aeth32: i32 = aeth
    write_i32_be(w, aeth32)


def counter_frame(template: bytes, entropy: int, value: int) -> bytes:
    """Return the control frame of a template with a body of one 8-byte number."""
    w = _writer
    w.truncate(0)
    w.write(template)
    w[wire.SOURCE_PORT] = entropy >> 8
    w[wire.SOURCE_PORT + 1] = entropy & 0xFF
    w.truncate(wire.AFTER_BTH)
    number: i64 = value
    write_i64_be(w, number)
    return w.getvalue()


class Wrapper:
    """Builder of the headers of a protocol's own data packet (`Packet.wraps`)."""

    def __init__(self, packet: Packet) -> None:
        # The usual headers wrapped last, and their start. Most packets have the same, so the
        # dictionary is seldom needed.
        self._usual = b""
        self._start = b""
        self._opcode = packet.opcode
        self._starts: dict[bytes, bytes] = {}  # headers up to the BTH, by the usual headers

    def wrap(self, headers: bytes, body: bytes) -> bytes:
        """Return the usual headers (without INT shim) converted to those of the packet.

        The opcode is the packet's, and the lengths include `body`, which follows. All bodies have
        the same length.
        """
        return self._start_for(headers, len(body)) + body

    def wrap_word(self, headers: bytes, word: int) -> bytes:
        """Return the same as `wrap` with a body of one 4-byte number."""
        start = self._start_for(headers, 4)
        w = _writer
        w.truncate(0)
        w.write(start)
        body: i32 = i32((word ^ 0x80000000) - 0x80000000)
        write_i32_be(w, body)
        return w.getvalue()

    def _start_for(self, headers: bytes, body_bytes: int) -> bytes:
        """Return the converted headers that precede a body of this length."""
        if headers is self._usual:
            return self._start
        start = self._starts.get(headers)
        if start is None:
            changed = bytearray(headers)
            for place in (wire.TOTAL_LENGTH, wire.UDP_LENGTH):
                length = int.from_bytes(headers[place : place + 2], "big") + body_bytes
                changed[place : place + 2] = length.to_bytes(2, "big")
            changed[wire.BTH] += self._opcode
            start = wire.checksummed(changed)
            self._starts[headers] = start
        self._usual = headers
        self._start = start
        return start
