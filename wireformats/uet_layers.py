"""scapy layers of Ultra Ethernet's headers (`uet`), bound to UDP port 4793.

    layers = load()
    frame = Ether() / IP(dst="10.0.0.3") / UDP() / layers["uet_request"](type="RUD request", psn=7)
    Ether(capture)[layers["uet_ack_cc"]].sack_bitmap

Names of layers and fields are those of `wireformats`.
"""

from __future__ import annotations

from typing import Any, ClassVar

from scapy.layers.inet import UDP
from scapy.packet import NoPayload, Packet, Raw, bind_bottom_up, bind_top_down

from host_agents.packets import Header
from wireformats.scapy_layers import Layer, field_of
from wireformats.uet import ACK_STATE, HEADERS, PACKETS, PORT

_made: dict[str, Layer] = {}


class _Uet(Packet):
    """Header of Ultra Ethernet.

    The type in the first header of a packet determines the next header, and so does `cc_type` in
    its header.
    """

    name = "uet"
    fields_desc: ClassVar[list[Any]] = []

    @classmethod
    def dispatch_hook(cls, _pkt: bytes | None = None, *_args: Any, **_kwargs: Any) -> Layer:
        if cls is not _Uet:
            return cls
        kind = _pkt[0] >> 3 if _pkt else 0
        first = next((packet.headers[0] for packet in PACKETS if packet.type == kind), None)
        return Raw if first is None else _made[first.name]

    def guess_payload_class(self, payload: bytes) -> Layer:
        if self.name == ACK_STATE.name:
            states = next(packet.states for packet in PACKETS if packet.states)
            return _made[states[self.cc_type].name] if self.cc_type < len(states) else Raw
        for packet in PACKETS:
            if "type" in self.fields and packet.type == self.type and len(packet.headers) > 1:
                return _made[packet.headers[1].name]
        return Raw if payload else NoPayload


def load() -> dict[str, Layer]:
    """Return the layers by the names of their headers, once they are bound to UDP."""
    if not _made:
        _made.update({header.name: _layer(header) for header in HEADERS})
        bind_bottom_up(UDP, _Uet, dport=PORT)
        for header in HEADERS:
            bind_top_down(UDP, _made[header.name], dport=PORT)
    return dict(_made)


def _layer(header: Header) -> Layer:
    fields = [field_of(place) for place in header.places.values()]
    return type(header.name, (_Uet,), {"name": header.name, "fields_desc": fields})
