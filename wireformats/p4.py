"""P4 includes: header types, opcodes and named values as constants.

The includes of p4cc's protocols are committed in `p4src/include/packets/`: `roce.p4` has the headers of every frame and
of the transport, and a protocol with packets has a file of its own name. `p4cc packets --p4 p4src` writes them. The
include of an external protocol is beside the compiled programs; `include_path` is passed to the compiler.
"""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path

from host_agents.headers import FRAME, THE_TRANSPORT, TRANSPORT
from host_agents.packets import HEXADECIMAL, Field, Header, Opcodes, Packet, Records
from p4switch import cache
from p4switch.errors import UserError
from p4switch.sources import SOURCE_DIRECTORY

FOLDER = Path("include", "packets")  # under p4src, and under any other folder of the include path
ROCE = "roce"
_TYPEDEFS = {"mac": (48, "mac_addr_t"), "ipv4": (32, "ipv4_addr_t")}
_COLUMNS = 100
_CONSTANT = '@noWarn("unused") const'  # a program includes more than it uses


def roce() -> str:
    """Return the include of the headers of all frames and of the transport."""
    typedefs = [f"typedef bit<{bits}> {name};" for bits, name in _TYPEDEFS.values()]
    return _include(ROCE, typedefs, FRAME, TRANSPORT)


def include(name: str, packets: Sequence[Packet]) -> str:
    """Return the include of a protocol, without the headers of the transport's include."""
    return _include(name, [f'#include "{ROCE}.p4"'], (), packets)


def includes(opcodes: Opcodes) -> dict[str, str]:
    """Return the text of each include by file name: the transport's, and one for each distinct set of packets."""
    texts = {f"{ROCE}.p4": roce()}
    own: dict[str, Sequence[Packet]] = {}
    for owner, packets in opcodes.packets.items():
        if owner != THE_TRANSPORT and packets and packets not in own.values():
            own[owner] = packets
    return texts | {f"{owner}.p4": include(owner, packets) for owner, packets in own.items()}


def write(folder: Path, *runs: Opcodes) -> list[Path]:
    """Write the includes of these packets under `folder` and return the changed ones."""
    changed = []
    for name, text in _of_all(runs).items():
        path = folder / FOLDER / name
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            scratch = path.with_name(f".{os.getpid()}-{name}")
            scratch.write_text(text, encoding="utf-8")
            scratch.replace(path)  # complete, even if others write it at the same time
            changed.append(path)
    return changed


def _of_all(runs: Iterable[Opcodes]) -> dict[str, str]:
    return {name: text for opcodes in runs for name, text in includes(opcodes).items()}


def include_path(*runs: Opcodes) -> list[Path]:
    """Return the include path for a program that serves runs with these packets.

    It is the folder of p4cc's programs and, if there are external protocols with packets of their own, a folder in the
    cache with the includes of all these protocols. Raises UserError if the cache is not writable.
    """
    texts = _of_all(runs)
    if all((SOURCE_DIRECTORY / FOLDER / name).is_file() for name in texts):
        return [SOURCE_DIRECTORY]
    folder = cache.root() / "includes" / cache.digest(*(part for name in sorted(texts) for part in (name, texts[name])))
    try:
        write(folder, *runs)
    except OSError as error:
        raise UserError(
            f"cache folder {folder}: {error.strerror or error}; P4CC_CACHE names a folder that can be written to"
        ) from error
    return [SOURCE_DIRECTORY, folder]


def _include(name: str, start: Sequence[str], frame: Sequence[Header], packets: Sequence[Packet]) -> str:
    guard = f"P4CC_PACKETS_{name.upper()}_P4"
    lines = [
        "// Made by `p4cc packets` from the declarations in host_agents: not to be edited.",
        f"#ifndef {guard}",
        f"#define {guard}",
        "",
        *start,
    ]
    known = [] if frame else [header for packet in TRANSPORT for header in _headers(packet)]
    headers = [*frame, *(header for packet in packets for header in _headers(packet))]
    opcodes = ((_constant(packet.name), packet.opcode) for packet in packets)
    lines += ["", *(f"{_CONSTANT} bit<8> OPCODE_{constant} = 0x{opcode:02X};" for constant, opcode in opcodes)]
    done: list[Header] = []
    for header in headers:
        if header not in done and header not in known:
            done.append(header)
            lines += ["", *_header(header)]
    return "\n".join([*lines, "", "#endif", ""])


def _headers(packet: Packet) -> list[Header]:
    return [part.header if isinstance(part, Records) else part for part in packet.parts]


def _header(header: Header) -> list[str]:
    lines = [
        f"{_CONSTANT} bit<{field.bits}> {_constant(header.name)}_{_constant(text)} = {_number(field, value)};"
        for field in header.fields
        for value, text in field.values.items()
        if text.isidentifier()
    ]
    types = [_type(field) for field in header.fields]
    width = max(map(len, types))
    if header.meaning:
        lines.append(f"// {header.meaning}")
    lines.append(f"header {header.name}_t {{")
    for kind, field in zip(types, header.fields, strict=True):
        line = f"    {kind:{width}} {field.name};"
        note = " ".join(filter(None, (field.unit and f"[{field.unit}]", field.meaning)))
        if len(line) + len(note) + 5 > _COLUMNS:
            lines += textwrap.wrap(note, _COLUMNS, initial_indent="    // ", subsequent_indent="    // ")
            note = ""
        lines.append(f"{line}  // {note}" if note else line)
    return [*lines, "}"]


def _type(field: Field) -> str:
    if field.display in _TYPEDEFS and field.bits == _TYPEDEFS[field.display][0]:
        return _TYPEDEFS[field.display][1]
    return f"bit<{field.bits}>"


def _number(field: Field, value: int) -> str:
    return f"0x{value:X}" if field.display == HEXADECIMAL else str(value)


def _constant(name: str) -> str:
    return "".join(letter if letter.isalnum() else "_" for letter in name).upper()
