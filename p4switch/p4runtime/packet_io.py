"""Packet-in and packet-out ("Packet I/O"): conversion between @controller_header headers and metadata.

On the CPU port's wire, the fields of such a header are consecutive, without padding, as in its P4 declaration.
"""
from __future__ import annotations

from collections.abc import Sequence

from p4switch.p4runtime.bytestring import canonical
from p4switch.p4runtime.errors import invalid
from p4switch.p4runtime.match import number
from p4switch.p4runtime.messages import Message, p4runtime_pb2
from p4switch.p4runtime.pipeline import Pipeline, Value


def packet_in(pipeline: Pipeline, frame: bytes) -> Message:
    """Return the PacketIn for a frame that the switch sent to the CPU port.

    Raises ValueError if the frame is shorter than the header.
    """
    values = pipeline.packet_in or ()
    bits = sum(v.width for v in values)
    length = (bits + 7) // 8
    if len(frame) < length:
        raise ValueError(f"a frame of {len(frame)} bytes at the CPU port is shorter than the packet_in header")
    header = int.from_bytes(frame[:length], "big") >> (length * 8 - bits)
    message = p4runtime_pb2.PacketIn(payload=frame[length:])
    for value in values:
        bits -= value.width
        field = header >> bits & (1 << value.width) - 1
        message.metadata.add(metadata_id=value.id, value=canonical(field))
    return message


def packet_out(pipeline: Pipeline, message: Message) -> bytes:
    """Return the frame that enters the switch by the CPU port.

    Raises P4RuntimeError (INVALID_ARGUMENT) if a metadata field is unknown, repeated, missing or does not fit.
    """
    values = pipeline.packet_out or ()
    return b"".join((_header(values, message.metadata), message.payload))


def _header(values: Sequence[Value], metadata: Sequence[Message]) -> bytes:
    given: dict[int, bytes] = {}
    known = {v.id for v in values}
    for m in metadata:
        if m.metadata_id not in known:
            invalid(f"packet-out: no metadata field has the id {m.metadata_id}")
        if m.metadata_id in given:
            invalid(f"packet-out: metadata field {m.metadata_id} is given twice")
        given[m.metadata_id] = m.value
    header = bits = 0
    for value in values:
        if value.id not in given:
            invalid(f"packet-out: metadata field {value.name} is missing")
        header = header << value.width | number(given[value.id], value, "packet-out")
        bits += value.width
    length = (bits + 7) // 8
    return (header << (length * 8 - bits)).to_bytes(length, "big")
