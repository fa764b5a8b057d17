"""scapy layers of the declared headers, above scapy's own BTH (`scapy.contrib.roce`).

    layers = load(["accurate"])
    frame = Ether() / IP(dst="10.0.0.3") / UDP() / BTH(dqpn=7) / layers["frp"](kind="init", current_rate=5_000)
    Ether(capture)[layers["frp"]].current_rate

A layer has its header's name and fields; records that follow a header are its field `records`, and the field that
counts them is set automatically.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from scapy.contrib.roce import BTH
from scapy.fields import (
    BitEnumField,
    BitField,
    BitFieldLenField,
    IPField,
    MACField,
    PacketListField,
    PadField,
    XBitField,
)
from scapy.packet import Packet, bind_bottom_up, bind_top_down

import wireformats
from host_agents.packets import HEXADECIMAL, IPV4, MAC, Field, Header, Opcodes, Place, Records
from host_agents.packets import Packet as Declared
from host_agents.wire import WITH_INT

Layer = type[Any]  # a class of scapy's packets

# Opcode -> the layers that follow the BTH.
_stacks: dict[int, list[Layer]] = {}


def load(protocols: Sequence[str] = ()) -> dict[str, Layer]:
    """Return the scapy layers of these protocols' packets by name, bound to scapy's BTH; of all protocols by default.

    Earlier bindings of the same opcodes are removed. Raises UnknownNameError, PacketError.
    """
    return bind(wireformats.opcodes(protocols))


def bind(opcodes: Opcodes) -> dict[str, Layer]:
    """Return the layers of these packets, bound to scapy's BTH."""
    known: dict[tuple[int, int], Layer] = {}
    layers: dict[str, Layer] = {}
    opcodes.headers()  # each name once
    for packet in opcodes.all():
        if packet.opcode < WITH_INT:
            continue  # scapy has those
        stack = [_layer(header, records, known, layers) for header, records in _stacked(packet)]
        for number in range(packet.opcodes):
            opcode = packet.opcode + number
            inner = opcodes.find(number) if packet.wraps else None
            within = [_layer(header, records, known, layers) for header, records in _stacked(inner)] if inner else []
            name = f"{inner.name} {packet.name}" if inner else packet.name
            _bind(opcode, [*stack, *within], name)
    for first in layers.values():
        matching = [opcode for opcode, stack in _stacks.items() if stack[:1] == [first]]
        if len(matching) == 1:
            bind_top_down(BTH, first, opcode=matching[0])
    return layers


def _bind(opcode: int, stack: list[Layer], name: str) -> None:
    BTH.payload_guess = [guess for guess in BTH.payload_guess if guess[0] != {"opcode": opcode}]
    _stacks[opcode] = stack
    if stack:
        bind_bottom_up(BTH, stack[0], opcode=opcode)
    names: Any = BTH.fields_desc[0]
    names.s2i.pop(names.i2s.get(opcode), None)
    names.i2s[opcode] = name
    names.s2i[name] = opcode


def _stacked(packet: Declared) -> list[tuple[Header | None, Records | None]]:
    """Return the packet's layers: headers with the records that follow them, or records alone without a header."""
    layers: list[tuple[Header | None, Records | None]] = []
    for part in packet.parts:
        if isinstance(part, Header):
            layers.append((part, None))
        elif layers:
            layers[-1] = (layers[-1][0], part)
        else:
            layers.append((None, part))
    return layers


def _layer(
    header: Header | None, records: Records | None, known: dict[tuple[int, int], Layer], layers: dict[str, Layer]
) -> Layer:
    key = (id(header), id(records))
    if key not in known:
        name = header.name if header is not None else f"{records.header.name}s" if records is not None else ""
        counter = records.counter if records is not None else ""
        fields = [field_of(place, counter) for place in header.places.values()] if header is not None else []
        if records is not None:
            fields.append(_records(records, _record(records.header, layers)))
        known[key] = type(name, (_AboveBth,), {"name": name, "fields_desc": fields})
        layers[name] = known[key]
    return known[key]


def _record(header: Header, layers: dict[str, Layer]) -> Layer:
    fields = [field_of(place) for place in header.places.values()]
    return layers.setdefault(header.name, type(header.name, (_Record,), {"name": header.name, "fields_desc": fields}))


def _records(records: Records, item: Layer) -> Any:
    fixed = records.fixed

    def count(layer: Any) -> int:
        number: int = fixed if fixed >= 0 else layer.getfieldval(records.counter)
        return number

    default = [item() for _ in range(max(fixed, 0))]
    listed = PacketListField("records", default, item, count_from=count)
    return PadField(listed, records.align_bytes) if records.align_bytes > 1 else listed


def field_of(place: Place, counter: str = "") -> Any:
    """Return scapy's field for a declared one; `counter` names the field that counts records."""
    field: Field = place.field
    if field.name == counter:
        return BitFieldLenField(field.name, None, field.bits, count_of="records")
    if place.bit % 8 == 0 and field.display == MAC and field.bits == 48:
        return MACField(field.name, None)
    if place.bit % 8 == 0 and field.display == IPV4 and field.bits == 32:
        return IPField(field.name, "0.0.0.0")
    if field.values:
        return BitEnumField(field.name, field.initial, field.bits, field.values)
    kind = XBitField if field.display == HEXADECIMAL else BitField
    return kind(field.name, field.initial, field.bits)


class _AboveBth(Packet):
    """Layer above the BTH, whose opcode determines the next layer."""

    def guess_payload_class(self, payload: bytes) -> Layer:
        depth, layer = 0, self.underlayer
        while layer is not None and not isinstance(layer, BTH):
            depth, layer = depth + 1, layer.underlayer
        stack = _stacks.get(layer.opcode, []) if layer is not None else []
        if depth + 1 < len(stack):
            return stack[depth + 1]
        following: Layer = self.default_payload_class(payload)
        return following


class _Record(Packet):
    def extract_padding(self, s: bytes) -> tuple[bytes, bytes]:
        """Return the rest as the next record."""
        return b"", s
