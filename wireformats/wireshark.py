"""Wireshark dissector, in Lua, for packets whose opcodes InfiniBand does not define.

The Lua code is the same for all packets (`dissector.lua.j2`); their declarations are tables in it.
Other RoCEv2 packets are left to Wireshark's own dissector.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import jinja2

from host_agents import wire
from host_agents.headers import BTH
from host_agents.packets import Header, Opcodes, Packet, Records
from wireformats import uet

_COLUMNS = 180


def dissector(opcodes: Opcodes) -> str:
    """Return the text of a dissector of these packets, whose fields are named `p4cc.HEADER.FIELD`.

    Raises PacketError if two different headers have the same name.
    """
    packets = opcodes.all()
    headers = [BTH, *opcodes.headers()]
    return _template("dissector.lua.j2").render(
        headers=[_header(header) for header in headers],
        packets=[_packet(packet, headers) for packet in packets],
        by_opcode={
            opcode: number
            for number, packet in enumerate(packets, start=1)  # Lua counts from 1
            for opcode in range(packet.opcode, packet.opcode + packet.opcodes)
        },
        first_own_opcode=wire.WITH_INT,
        icrc_bytes=wire.ICRC_BYTES,
        roce_port=wire.ROCE_PORT,
    )


def uet_dissector() -> str:
    """Return the text of the dissector of Ultra Ethernet's packets. Its fields are named `uet_pds.HEADER.FIELD`."""
    return _template("uet.lua.j2").render(
        headers=[_header(header) for header in uet.HEADERS],
        packets={
            packet.type: {
                "headers": [uet.HEADERS.index(header) + 1 for header in packet.headers],
                "states": [uet.HEADERS.index(header) + 1 for header in packet.states],
            }
            for packet in uet.PACKETS
        },
        types=uet.TYPES,
        port=uet.PORT,
    )


def _template(name: str) -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        autoescape=False,
    )
    environment.filters["lua"] = _lua
    return environment.get_template(name)


def _header(header: Header) -> dict[str, object]:
    return {
        "name": header.name,
        "meaning": header.meaning,
        "bytes": header.size_bytes,
        "fields": [
            {
                "name": place.field.name,
                "bit": place.bit,
                "bits": place.field.bits,
                "display": place.field.display,
                "unit": place.field.unit,
                "meaning": place.field.meaning,
                "values": place.field.values,
            }
            for place in header.places.values()
        ],
    }


def _packet(packet: Packet, headers: list[Header]) -> dict[str, object]:
    return {
        "name": packet.name,
        "opcode": packet.opcode,
        "parts": [_part(part, headers) for part in packet.parts],
        "wraps": packet.wraps,
        "icrc": packet.icrc,
    }


def _part(part: Header | Records, headers: list[Header]) -> dict[str, object]:
    """Return the template's values of a part; headers are numbered from 1."""
    if isinstance(part, Header):
        return {"header": headers.index(part) + 1}
    return {"header": headers.index(part.header) + 1, "count": part.counter or part.fixed, "align": part.align_bytes}


def _lua(value: object, indent: str = "") -> str:
    """Return a Lua expression; sequences become tables from 1 on."""
    if isinstance(value, Mapping):
        keys = [key if isinstance(key, str) else f"[{key}]" for key in value]
        items = [f"{key} = {_lua(of, indent + '    ')}" for key, of in zip(keys, value.values(), strict=True)]
    elif isinstance(value, Sequence) and not isinstance(value, str):
        items = [_lua(item, indent + "    ") for item in value]
    else:
        return json.dumps(value, ensure_ascii=False)  # numbers, truth values and strings are written alike
    if not items:
        return "{}"
    flat = "{ " + ", ".join(items) + " }"
    if len(indent) + len(flat) <= _COLUMNS:
        return flat
    return "{\n" + "".join(f"{indent}    {item},\n" for item in items) + indent + "}"
