"""Layout of the keys of tables and value sets, whose fields are packed into 64-bit words.

Fields of up to 64 bits share a word if they fit. A wider field takes whole words, the most significant word first.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass

from p4switch.compiler.types import Bits
from p4switch.engine import cexpr
from p4switch.engine.cexpr import C, Fields, Rows, String
from p4switch.engine.emit import Emitter
from p4switch.engine.value import Value, convert, low_rep, wrapped
from p4switch.ir.errors import ProgramError


@dataclass(frozen=True)
class KeyField:
    """Field of a key, with its position in the words.

    `shift` is 0 for wide fields. `kind` is an enumerator of p4_match_kind.
    """

    name: str
    width: int
    kind: str
    word: int
    shift: int
    mask: int | None = None

    @property
    def words(self) -> int:
        return (self.width + 63) // 64

    @property
    def nbytes(self) -> int:
        return (self.width + 7) // 8


def layout(fields: Sequence[tuple[str, int, str, int | None]]) -> tuple[list[KeyField], int]:
    """Lay out (name, width, kind, static mask) consecutively; return the fields and the number of words."""
    placed: list[KeyField] = []
    word, used = -1, 64
    for name, width, kind, mask in fields:
        if width > 64:
            placed.append(KeyField(name, width, kind, word + 1, 0, mask))
            word, used = word + (width + 63) // 64, 64
            continue
        if used + width > 64:
            word, used = word + 1, 0
        placed.append(KeyField(name, width, kind, word, used, mask))
        used += width
    if word + 1 > 255:
        raise ProgramError(f"a key of {sum(f.width for f in placed)} bits is too wide")
    return placed, word + 1


def pack(em: Emitter, fields: Sequence[KeyField], words: int, values: Sequence[Value], valid: Sequence[C]) -> C:
    """Declare an array with the words of a key and return it. A value whose `valid` is false counts as 0."""
    parts: list[list[C]] = [[] for _ in range(max(words, 1))]
    for field, value, condition in zip(fields, values, valid, strict=True):
        low = convert(em, wrapped(value, Bits(field.width)), low_rep(field.width))
        for i in range(field.words):
            below = field.words - 1 - i  # number of less significant limbs
            if field.width <= 64:
                code = low
            elif field.width <= 128:
                code = cexpr.cast("uint64_t", cexpr.shifted(">>", low, 64) if below else low)
            else:
                code = low.limb(below)
            if field.mask is not None:
                code = cexpr.binary("&", code, cexpr.literal(field.mask >> 64 * below & (1 << 64) - 1))
            if condition.value != 1:
                code = cexpr.chosen(condition, code, 0, "uint64_t")
            parts[field.word + i].append(cexpr.shifted("<<", code, field.shift))
    joined = [functools.reduce(lambda a, b: cexpr.binary("|", a, b), each, cexpr.literal(0)) for each in parts]
    return em.declare("const uint64_t", em.name("key"), Rows(joined), max(words, 1))


def description(fields: Sequence[KeyField]) -> list[Fields]:
    """Return the initialisers of p4_key_info."""
    return [
        Fields({
            "name": String(f.name),
            "width": f.width,
            "kind": f.kind,
            "word": f.word,
            "shift": f.shift,
            "mask": "NULL" if f.mask is None else byte_array(f.mask.to_bytes(f.nbytes, "big")),
        })
        for f in fields
    ]


def byte_array(data: bytes) -> Rows:
    """Return a C expression that points to constant bytes."""
    return Rows(data, "uint8_t")
