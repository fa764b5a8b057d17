"""Markdown of the declared packets, as `p4cc packets --docs FILE` and the documentation's site have it."""

from __future__ import annotations

from host_agents.packets import DECIMAL, SIDES, Field, Header, Opcodes, Packet, Records

_FEW = 8  # fields with more values have a table of their own


def page(opcodes: Opcodes) -> str:
    """Return a page with all packets by opcode, the fields of each, and the values of long lists."""
    lines = [
        "# Packets",
        "",
        "This page is for those who parse frames. Fields are big-endian, and bit 0 is the most significant.",
        "",
        *opcode_table(opcodes),
        "",
    ]
    of_layout: dict[tuple[int, ...], list[Packet]] = {}
    for packet in opcodes.all():
        if packet.parts:
            of_layout.setdefault(tuple(map(id, packet.parts)), []).append(packet)
    for alike in of_layout.values():
        lines += [f"## {', '.join(packet.name for packet in alike)}", "", *layout_table(alike[0]), ""]
    for header in opcodes.headers():
        for field in header.fields:
            if len(field.values) > _FEW:
                lines += [f"## {header.name}.{field.name}", "", *value_table(field), ""]
    return "\n".join(lines)


def opcode_table(opcodes: Opcodes) -> list[str]:
    """Return a table of all packets: opcode, name, owner, contents after the BTH, description."""
    lines = ["| opcode | packet | owner | after the BTH | meaning |", "|---|---|---|---|---|"]
    for number, name, owner, parts, _, meaning in _described(opcodes):
        lines.append(f"| {number} | {name} | {owner} | {parts} | {meaning} |")
    return lines


def listing(opcodes: Opcodes) -> list[str]:
    """Return the catalog for a terminal, in aligned columns."""
    rows = _described(opcodes)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _described(opcodes: Opcodes) -> list[tuple[str, ...]]:
    owners: dict[int, str] = {}
    for owner, own in opcodes.packets.items():
        for packet in own:
            owners.setdefault(id(packet), owner)
    return [
        (numbers(packet), packet.name, owners[id(packet)], contents(packet), recipient(packet), packet.meaning)
        for packet in opcodes.all()
    ]


def numbers(packet: Packet) -> str:
    """Return the packet's opcode or opcodes."""
    if packet.opcodes == 1:
        return f"0x{packet.opcode:02X}"
    return f"0x{packet.opcode:02X} + n, n < 0x{packet.opcodes:02X}"


def contents(packet: Packet) -> str:
    """Return the headers after the BTH, with sizes in bytes."""
    described = [
        f"{part.header.name} {part.header.size_bytes} × {part.counter or part.fixed}"
        if isinstance(part, Records)
        else f"{part.name} {part.size_bytes}"
        for part in packet.parts
    ]
    if packet.wraps:
        described.append("as RC opcode n")
    return ", ".join([*described, "payload"] if packet.payload else described) or "nothing"


def recipient(packet: Packet) -> str:
    """Return the recipient of the packet, and that of its replies."""
    if not packet.reply:
        return SIDES[packet.to]
    return f"{SIDES[packet.to]}; {SIDES[3 - packet.to]} if `{packet.reply}`"


def layout_table(packet: Packet) -> list[str]:
    """Return a table of the fields after the BTH: start byte and bit (0: the most significant), and width."""
    lines = ["| byte:bit | bits | field | meaning |", "|---|---|---|---|"]
    start, growth = 0, ""  # growth: bytes of earlier records whose number a field gives, as text
    for part in packet.parts:
        if isinstance(part, Header):
            lines += _rows(part, start, growth)
            start += part.size_bytes
            continue
        lines += _rows(part.header, start, f" + {part.header.size_bytes}i")
        if part.fixed >= 0:
            start += part.size_bytes(part.fixed)
        else:
            growth = f" + {part.header.size_bytes} `{part.counter}`"
    return lines


def value_table(field: Field) -> list[str]:
    """Return a table of the named values of a field."""
    lines = ["| value | meaning |", "|---|---|"]
    return lines + [f"| {_number(field, value)} | {name} |" for value, name in field.values.items()]


def _rows(header: Header, start: int, growth: str) -> list[str]:
    rows = []
    for place in header.places.values():
        field = place.field
        named = [f"{_number(field, value)} {name}" for value, name in field.values.items()]
        if len(named) > _FEW:
            named = []
        unit = f"[{field.unit}]" * bool(field.unit)
        text = " ".join(filter(None, (unit, "; ".join(filter(None, (field.meaning, ", ".join(named)))))))
        cells = (f"{start + place.byte}:{place.bit % 8}{growth}", field.bits, f"`{field.name}`", text)
        rows.append(f"| {' | '.join(map(str, cells))} |")
    return rows


def _number(field: Field, value: int) -> str:
    return str(value) if field.display == DECIMAL else f"0x{value:X}"
