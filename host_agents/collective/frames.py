"""Frames of collectives, from templates: one for each destination and opcode."""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter, write_i64_be
from mypy_extensions import i64

from host_agents import wire
from host_agents.collective.packets import (
    ACKNOWLEDGEMENT,
    HEADER,
    PAYLOAD_BYTES,
    QPN,
    READ,
)
from host_agents.lb.base import FIRST_ENTROPY

_writer: Final = BytesWriter()
_MOST_TEMPLATES: Final = 4096  # sources may be made up


class CollectiveFrames:
    """Of one host. `priorities`: of requests, and of responses."""

    def __init__(self, address: int, request_priority: int, response_priority: int) -> None:
        self._address = address
        self._request_dscp = 8 * request_priority
        self._response_dscp = 8 * response_priority
        self._templates: dict[int, bytes] = {}  # by opcode and destination

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
        """`operator_bits`: the header's first byte; `place_bits`: tree, group and rank. Lanes may be left out."""
        key = opcode << 32 | destination
        template = self._templates.get(key)
        if template is None:
            payload = 0 if opcode in (ACKNOWLEDGEMENT, READ) else PAYLOAD_BYTES
            template = wire.header(
                self._address,
                destination,
                FIRST_ENTROPY,
                opcode,
                QPN,
                after_bth_bytes=HEADER.size_bytes + payload,
                dscp=self._request_dscp if is_request else self._response_dscp,
            )
            if len(self._templates) >= _MOST_TEMPLATES:
                self._templates.clear()
            self._templates[key] = template
        w = _writer
        w.truncate(0)
        w.write(template)
        w.append(0)
        w.append(sequence >> 16 & 0xFF)
        w.append(sequence >> 8 & 0xFF)
        w.append(sequence & 0xFF)
        first: i64 = operator_bits << 56 | place_bits << 16 | size_bytes
        second: i64 = sequence << 32 | address
        write_i64_be(w, first)
        write_i64_be(w, second)
        if lanes:
            w.write(lanes)
        return w.getvalue()
