"""Frames of collectives, composed of words of 64 bits.

Frames of one opcode differ in destination and header.
"""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter, read_i64_be, write_i64_be
from librt.vecs import append, vec
from mypy_extensions import i64

from host_agents import wire
from host_agents.collective.packets import ACKNOWLEDGEMENT, HEADER, PAYLOAD_BYTES, QPN, READ, RESULT, WRITE
from host_agents.lb.base import FIRST_ENTROPY

_writer: Final = BytesWriter()
_WORDS: Final = 6  # words of 8 bytes that have the headers up to the first byte of the queue pair number
_NOWHERE: Final = 0  # destination in the words of an opcode, before a frame's own is inserted


class CollectiveFrames:
    """Frame builder of one host.

    Requests and responses have priorities of their own.
    """

    def __init__(self, address: int, request_priority: int, response_priority: int) -> None:
        self._requests = _all_words(address, 8 * request_priority)
        self._responses = _all_words(address, 8 * response_priority)

    def frame(
        self,
        opcode: int,
        destination: int,
        is_request: bool,
        operator_bits: int,
        place_bits: int,
        size_bytes: int,
        sequence: int,
        address: int,
        lanes: bytes,
    ) -> bytes:
        """Return a frame.

        `operator_bits` is the header's first byte, and `place_bits` has tree, group and rank. Lanes
        may be omitted.
        """
        words = self._requests if is_request else self._responses
        at: i64 = _WORDS * (opcode - WRITE)
        to: i64 = destination
        number: i64 = sequence
        first: i64 = operator_bits << 56 | place_bits << 16 | size_bytes
        second: i64 = _signed(number, 32) << 32 | address
        # The checksum without a destination is updated by the two words of the destination (RFC
        # 1624).
        checksum: i64 = wire.complement((words[at + 3] >> 48 & 0xFFFF ^ 0xFFFF) + (to >> 16) + (to & 0xFFFF))
        w = _writer
        w.truncate(0)
        write_i64_be(w, words[at] | to << 16)
        write_i64_be(w, words[at + 1])
        write_i64_be(w, words[at + 2])
        write_i64_be(w, words[at + 3] & 0xFFFFFFFFFFFF | _signed(checksum, 16) << 48 | to >> 16)
        write_i64_be(w, words[at + 4] | _signed(to & 0xFFFF, 16) << 48)
        write_i64_be(w, words[at + 5])
        w.append(QPN >> 8 & 0xFF)
        w.append(QPN & 0xFF)
        w.append(0)
        w.append(sequence >> 16 & 0xFF)
        w.append(sequence >> 8 & 0xFF)
        w.append(sequence & 0xFF)
        write_i64_be(w, first)
        write_i64_be(w, second)
        if lanes:
            w.write(lanes)
        return w.getvalue()


def _all_words(address: int, dscp: int) -> vec[i64]:
    """Return the header words of each opcode without destination; a frame's own fields are 0."""
    words = vec[i64]()
    for opcode in range(WRITE, RESULT + 1):
        payload_bytes = 0 if opcode in (ACKNOWLEDGEMENT, READ) else PAYLOAD_BYTES
        start = wire.header(
            address,
            _NOWHERE,
            FIRST_ENTROPY,
            opcode,
            QPN,
            after_bth_bytes=HEADER.size_bytes + payload_bytes,
            dscp=dscp,
        )
        for place in range(_WORDS):
            words = append(words, read_i64_be(start, 8 * place))
    return words


def _signed(value: i64, bits: i64) -> i64:
    """Return a number as two's complement of `bits` bits, for the top of a word."""
    return value - (value >> (bits - 1) << bits)
