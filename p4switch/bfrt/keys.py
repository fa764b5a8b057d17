"""Conversion of keys of match-action tables and value sets between the messages of BfRuntime and P4Runtime.

If a key omits a field, an exact field matches 0, and any other field matches every value. In BfRuntime the entry with
the lowest `$MATCH_PRIORITY` wins; in P4Runtime the entry with the highest priority wins.
"""

from __future__ import annotations

from p4switch.bfrt.fields import Id, Json
from p4switch.bfrt.messages import Message, bfruntime_pb2
from p4switch.p4runtime.bytestring import canonical, size
from p4switch.p4runtime.errors import invalid
from p4switch.p4runtime.messages import p4runtime_pb2

LOWEST = (1 << 31) - 1
"""P4Runtime priority of an entry whose `$MATCH_PRIORITY` is 0."""
_KINDS = {"Exact": "exact", "ATCAM": "exact", "Ternary": "ternary", "LPM": "lpm", "Range": "range",
          "Optional": "optional"}  # fmt: skip


def number(value: bytes, width: int, where: str) -> int:
    """Return a number that fits into its field. Raises P4RuntimeError (INVALID_ARGUMENT)."""
    if len(value) != size(width):
        invalid(f"{where}: {len(value)} bytes; expected {size(width)}")
    decoded = int.from_bytes(value, "big")
    if decoded >> width:
        invalid(f"{where}: {decoded:#x} does not fit in {width} bits")
    return decoded


def own_name(name: str) -> str:
    """Return a name of `bf-rt.json` without the name of the pipe that may precede it."""
    return name.partition(".")[2] or name


def width_of(field: Json) -> int:
    """Return the width in bits of a field of `bf-rt.json`."""
    t = field["type"]
    widths = {"bytes": t.get("width", 0), "uint8": 8, "uint16": 16, "uint32": 32, "uint64": 64, "bool": 1}
    return int(widths[t["type"]])


class Keys:
    """Keys of the table `info` of `bf-rt.json`."""

    def __init__(self, info: Json) -> None:
        self._name = info["name"]
        self._fields = {f["id"]: f for f in info["key"] if f["id"] != Id.MATCH_PRIORITY}
        self.masks: dict[int, int] = {}
        """Masks of exact fields, by id, except masks of all ones."""
        self._has_priority = any(f["id"] == Id.MATCH_PRIORITY for f in info["key"])

    def decode(self, key: Message) -> tuple[list[Message], int]:
        """Return P4Runtime's matches, in canonical form, and the priority. Raises P4RuntimeError (INVALID_ARGUMENT)."""
        given: dict[int, Message] = {}
        priority = 0
        for field in key.fields:
            if field.field_id == Id.MATCH_PRIORITY and self._has_priority:
                priority = number(field.exact.value, 32, f"{self._name}: $MATCH_PRIORITY")
                if priority >= LOWEST:
                    invalid(f"{self._name}: $MATCH_PRIORITY {priority}; expected less than {LOWEST}")
            elif field.field_id not in self._fields:
                invalid(f"{self._name}: no key field has the id {field.field_id}")
            elif field.field_id in given:
                invalid(f"{self._name}: key field {self._fields[field.field_id]['name']} is given twice")
            given[field.field_id] = field
        matches = [self._match(f, given.get(number)) for number, f in self._fields.items()]
        return [m for m in matches if m is not None], LOWEST - priority if self._has_priority else 0

    def _match(self, info: Json, given: Message | None) -> Message | None:
        """Return the match of one field, or None if it matches any value."""
        kind, width = _KINDS[info["match_type"]], width_of(info)
        where = f"{self._name}: key field {info['name']}"
        match = p4runtime_pb2.FieldMatch(field_id=info["id"])
        if given is None:
            if kind != "exact":
                return None
            match.exact.value = canonical(0)
            return match
        if given.WhichOneof("match_type") != kind:
            invalid(f"{where}: {given.WhichOneof('match_type') or 'no value'}; expected {kind}")
        whole = (1 << width) - 1
        if kind == "exact":
            mask = self.masks.get(info["id"], whole)
            match.exact.value = canonical(number(given.exact.value, width, where) & mask)
        elif kind == "ternary":
            mask = number(given.ternary.mask, width, where)
            if not mask:
                return None
            match.ternary.value = canonical(number(given.ternary.value, width, where) & mask)
            match.ternary.mask = canonical(mask)
        elif kind == "lpm":
            length = given.lpm.prefix_len
            if not 0 <= length <= width:
                invalid(f"{where}: prefix length {length}; expected 0 to {width}")
            if not length:
                return None
            mask = whole & ~(whole >> length)
            match.lpm.value = canonical(number(given.lpm.value, width, where) & mask)
            match.lpm.prefix_len = length
        elif kind == "range":
            low, high = (number(end, width, where) for end in (given.range.low, given.range.high))
            if low > high:
                invalid(f"{where}: low {low} is above high {high}")
            if (low, high) == (0, whole):
                return None
            match.range.low, match.range.high = canonical(low), canonical(high)
        else:
            if not given.optional.is_valid:
                return None
            match.optional.value = canonical(number(given.optional.value, width, where))
        return match

    def encode(self, matches: list[Message], priority: int) -> Message:
        """Return the BfRuntime key for P4Runtime's matches and priority."""
        key = bfruntime_pb2.TableKey()
        by_id = {m.field_id: m for m in matches}
        for ident, info in self._fields.items():
            field, width = key.fields.add(field_id=ident), width_of(info)
            kind, match = _KINDS[info["match_type"]], by_id.get(ident)
            _encode(field, kind, width, match)
        if self._has_priority:
            field = key.fields.add(field_id=Id.MATCH_PRIORITY)
            field.exact.value = (LOWEST - priority).to_bytes(4, "big")
        return key


def _encode(field: Message, kind: str, width: int, match: Message | None) -> None:
    def fixed(value: bytes) -> bytes:
        return int.from_bytes(value, "big").to_bytes(size(width), "big")

    if kind == "exact":
        field.exact.value = fixed(match.exact.value if match is not None else b"")
    elif kind == "ternary":
        field.ternary.value = fixed(match.ternary.value if match is not None else b"")
        field.ternary.mask = fixed(match.ternary.mask if match is not None else b"")
    elif kind == "lpm":
        field.lpm.value = fixed(match.lpm.value if match is not None else b"")
        field.lpm.prefix_len = match.lpm.prefix_len if match is not None else 0
    elif kind == "range":
        field.range.low = fixed(match.range.low if match is not None else b"")
        field.range.high = fixed(match.range.high if match is not None else canonical((1 << width) - 1))
    else:
        field.optional.value = fixed(match.optional.value if match is not None else b"")
        field.optional.is_valid = match is not None
