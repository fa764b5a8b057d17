"""Differences, field by field, between a packet that left and the expected packet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from p4switch.trace import events as ev
from p4switch.trace.events import hexadecimal


class Layout(NamedTuple):
    """Names and widths of the fields at the start of a frame, which the payload follows."""

    fields: tuple[tuple[str, int], ...]


def layouts(events: Iterable[ev.Event]) -> Iterator[tuple[ev.Transmitted, Layout]]:
    """Yield each frame that left, with the headers that the deparser emitted."""
    emitted: dict[tuple[int, int], list[tuple[str, int]]] = {}
    for event in events:
        key = event.packet, event.copy
        if isinstance(event, ev.Emitted):
            emitted.setdefault(key, []).extend(event.fields)
        elif isinstance(event, ev.Recirculated):
            emitted.pop(key, None)
        elif isinstance(event, ev.Transmitted):
            yield event, Layout(tuple(emitted.pop(key, ())))


def differences(expected: bytes, mask: bytes, got: bytes, layout: Layout) -> list[str]:
    """Return a line for each differing field. Bits that are 0 in `mask` are not compared.

    Bits after the end of `mask` are compared. Bytes after the headers are named by their position in
    the payload. Lengths are compared last.
    """
    lines: list[str] = []
    mask = mask.ljust(len(expected), b"\xff")
    at = 0
    common = 8 * min(len(expected), len(got))
    for name, width in layout.fields:
        if at + width > common:
            break
        want, care, have = (_bits(data, at, width) for data in (expected, mask, got))
        if (want ^ have) & care:
            lines.append(f"{name}: expected {hexadecimal(want, width)}, got {hexadecimal(have, width)}")
        at += width
    start = at // 8
    for i in range(start, common // 8):
        if (expected[i] ^ got[i]) & mask[i]:
            lines.append(f"payload byte {i - start}: expected 0x{expected[i]:02x}, got 0x{got[i]:02x}")
    if len(expected) != len(got):
        lines.append(f"length: expected {len(expected)} bytes, got {len(got)}")
    return lines


def _bits(data: bytes, at: int, width: int) -> int:
    last = at + width + -(at + width) % 8
    value = int.from_bytes(data[at // 8 : last // 8], "big")
    return value >> (last - at - width) & ((1 << width) - 1)
