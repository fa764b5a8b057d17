"""Protobuf messages with random fields, from their descriptors."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

Message = Any
_IDS = (0, 1, 2, 3, 255, 2**31, 2**32 - 1)


class Filler:
    """Generator of messages, in which numbers are often valid `ids`."""

    def __init__(self, ids: Sequence[int], rng: random.Random) -> None:
        self.rng = rng
        self._ids = [*_IDS, *ids]

    def fill(self, message: Message, depth: int = 0) -> Message:
        """Set fields of `message` at random, by its descriptor."""
        rng = self.rng
        for field in message.DESCRIPTOR.fields:
            if rng.random() < (0.45 if depth < 6 else 0.9):
                continue
            if field.is_repeated:
                times = rng.choice((1, 1, 1, 2, 5))
                if field.message_type is not None and field.message_type.GetOptions().map_entry:
                    continue
                for _ in range(times):
                    if field.message_type is not None:
                        self.fill(getattr(message, field.name).add(), depth + 1)
                    else:
                        getattr(message, field.name).append(self._scalar(field))
            elif field.message_type is not None:
                self.fill(getattr(message, field.name), depth + 1)
                getattr(message, field.name).SetInParent()
            else:
                setattr(message, field.name, self._scalar(field))
        return message

    def stream(self, kind: type[Message]) -> list[bytes]:
        """Return a few messages of a kind as bytes, some of them damaged."""
        filled = [self.fill(kind()).SerializeToString() for _ in range(self.rng.randint(1, 5))]
        return [spoilt(data, self.rng) if self.rng.random() < 0.4 else data for data in filled]

    def _scalar(self, field: Any) -> object:
        rng = self.rng
        kinds = type(field)
        if field.type == kinds.TYPE_BYTES:
            return rng.choice((b"", b"\0", b"\1", rng.randbytes(rng.choice((1, 2, 4, 16, 300)))))
        if field.type == kinds.TYPE_STRING:
            return rng.choice(("", "x", "role", "é" * 9))
        if field.type == kinds.TYPE_ENUM:
            return rng.choice(field.enum_type.values).number
        if field.type == kinds.TYPE_BOOL:
            return rng.random() < 0.5
        if field.type in (kinds.TYPE_DOUBLE, kinds.TYPE_FLOAT):
            return rng.choice((0.0, 1.5, float("nan"), float("inf")))
        signed = field.type in (kinds.TYPE_INT32, kinds.TYPE_INT64, kinds.TYPE_SINT32, kinds.TYPE_SINT64)
        wide = field.type in (kinds.TYPE_INT64, kinds.TYPE_UINT64, kinds.TYPE_SINT64)
        top = 2 ** ((64 if wide else 32) - signed) - 1
        value = rng.choice((*self._ids, 0, 1, 2, 7, 511, top)) if rng.random() < 0.9 else rng.randrange(top)
        return -rng.choice((1, top)) if signed and rng.random() < 0.1 else min(value, top)


def spoilt(data: bytes, rng: random.Random) -> bytes:
    """Return data with a few bytes changed, cut off or added."""
    out = bytearray(data[: rng.randrange(len(data) + 1)] if rng.random() < 0.3 else data)
    for _ in range(rng.randrange(4) if out else 0):
        out[rng.randrange(len(out))] = rng.randrange(256)
    return bytes(out) + rng.randbytes(rng.choice((0, 0, 0, 5)))
