"""Lookups and control plane of tables, compared with a reference that checks every entry."""

import random
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from tests.p4switch.engine.jsonbuilder import ProgramBuilder, assign, const, field, param

if TYPE_CHECKING:
    from p4switch.engine._engine import KeyField, Switch

Json = Any
WIDTHS = {"a": 8, "b": 4, "c": 12, "d": 32, "e": 48, "f": 128, "g": 72}
PAD = -sum(WIDTHS.values()) % 8
TABLE = "MyIngress.my table \\ \"%s\""  # names may have any characters


def key_program(kinds: dict[str, str], **more: Json) -> ProgramBuilder:
    """Return a table over header fields; a hit writes its 32-bit argument to o, and a miss leaves all ones."""
    b = ProgramBuilder()
    b.header_type("k_t", *WIDTHS.items(), *([("pad", PAD)] if PAD else []))
    b.header_type("o_t", ("v", 32), ("w", 16))
    b.header("k", "k_t", emit=False)
    b.header("o", "o_t")
    b.state("start", b.extract("k"))
    b.run([{"op": "add_header", "parameters": [{"type": "header", "value": "o"}]}])
    hit = b.action("set", [assign(field("o", "v"), param(0)), assign(field("o", "w"), param(1))], v=32, w=9)
    miss = b.action("miss", [assign(field("o", "v"), const(0xFFFFFFFF))])
    b.table(TABLE, [(kind, field("k", name)) for name, kind in kinds.items()], [hit, miss], default=miss, **more)
    return b


def packet(values: dict[str, int]) -> bytes:
    bits = 0
    for name, width in WIDTHS.items():
        bits = bits << width | values.get(name, 0)
    return (bits << PAD).to_bytes((sum(WIDTHS.values()) + PAD) // 8, "big")


def result(switch: "Switch", values: dict[str, int]) -> int:
    [(_, frame)] = switch.process(0, packet(values))
    return int.from_bytes(frame[:4], "big")


def value_bytes(value: int, width: int) -> bytes:
    return value.to_bytes((width + 7) // 8, "big")


def target(number: int) -> tuple[str, str, list[bytes]]:
    return ("action", "set", [number.to_bytes(4, "big"), (number % 512).to_bytes(2, "big")])


@dataclass
class Entry:
    """Entry of the reference: for each field one (value, mask, prefix length or high)."""

    key: dict[str, tuple[int, int]]
    priority: int
    number: int
    handle: int = -1


class Reference:
    def __init__(self, kinds: dict[str, str]) -> None:
        self.kinds = kinds
        self.entries: list[Entry] = []

    def matches(self, entry: Entry, values: dict[str, int]) -> bool:
        for name, kind in self.kinds.items():
            a, b = entry.key[name]
            v, width = values[name], WIDTHS[name]
            if kind == "exact" and v != a:
                return False
            if kind == "lpm" and (v ^ a) >> width - b:
                return False
            if kind == "ternary" and (v ^ a) & b:
                return False
            if kind == "range" and not a <= v <= b:
                return False
        return True

    def find(self, values: dict[str, int]) -> int:
        found = [e for e in self.entries if self.matches(e, values)]
        if not found:
            return 0xFFFFFFFF
        kinds = set(self.kinds.values())
        if kinds & {"ternary", "range"}:
            return min(found, key=lambda e: (-e.priority, e.handle)).number
        prefixes = [n for n, k in self.kinds.items() if k == "lpm"]
        return max(found, key=lambda e: sum(e.key[n][1] for n in prefixes)).number

    def key(self, entry: Entry) -> list[tuple[bytes, bytes | int]]:
        out: list[tuple[bytes, bytes | int]] = []
        for name, kind in self.kinds.items():
            a, b = entry.key[name]
            width = WIDTHS[name]
            second: bytes | int = b"" if kind == "exact" else b if kind == "lpm" else value_bytes(b, width)
            out.append((value_bytes(a, width), second))
        return out


def near(rng: random.Random, width: int) -> int:
    """Draw values that often collide in their high and low bits."""
    kind = rng.random()
    if kind < 0.4:
        return rng.randrange(min(8, 1 << width))
    if kind < 0.8:
        return rng.randrange(min(8, 1 << width)) << max(width - 3, 0)
    return rng.getrandbits(width)


@pytest.mark.parametrize("kinds", [
    {"d": "exact"},
    {"a": "exact", "b": "exact", "e": "exact", "f": "exact", "g": "exact"},
    {"d": "lpm"},
    {"f": "lpm"},
    {"a": "exact", "d": "lpm", "c": "exact"},
    {"d": "ternary"},
    {"g": "ternary", "b": "exact", "d": "lpm"},
    {"c": "range"},
    {"f": "range", "a": "exact", "d": "lpm", "e": "ternary"},
], ids=lambda k: "-".join(f"{n}.{v}" for n, v in k.items()))
def test_lookup(kinds: dict[str, str]) -> None:
    rng = random.Random(repr(kinds))
    switch = key_program(kinds).switch()
    reference = Reference(kinds)
    number = 0
    for _ in range(400):
        action = rng.random()
        if action < 0.3 and len(reference.entries) < 60:
            number += 1
            entry = Entry({}, rng.randrange(4), number)
            for name, kind in kinds.items():
                width = WIDTHS[name]
                a, b = near(rng, width), near(rng, width)
                if kind == "lpm":
                    b = rng.choice([0, 1, width // 2, width - 3, width])
                if kind == "range":
                    a, b = min(a, b), max(a, b)
                if kind == "ternary":
                    b = rng.choice([0, (1 << width) - 1, b])
                entry.key[name] = (a, b)
            try:
                entry.handle = switch.table_add(TABLE, reference.key(entry), entry.priority, target(number))
                reference.entries.append(entry)
            except ValueError as error:
                assert "already" in str(error)  # noqa: PT017
        elif action < 0.4 and reference.entries:
            entry = reference.entries.pop(rng.randrange(len(reference.entries)))
            switch.table_delete(TABLE, entry.handle)
        elif action < 0.45 and reference.entries:
            entry = rng.choice(reference.entries)
            number += 1
            entry.number = number
            switch.table_modify(TABLE, entry.handle, target(number))
        values = {name: near(rng, width) for name, width in WIDTHS.items()}
        if reference.entries and rng.random() < 0.5:
            entry = rng.choice(reference.entries)
            values |= {name: key[0] for name, key in entry.key.items()}
        assert result(switch, values) == reference.find(values)
    switch.table_clear(TABLE)
    assert result(switch, {}) == 0xFFFFFFFF


def test_many_entries_come_and_go() -> None:
    switch = key_program({"d": "exact"}, max_size=20000).switch()
    handles = [switch.table_add(TABLE, [((i * 7).to_bytes(4, "big"), b"")], 0, target(i)) for i in range(20000)]
    for i in range(0, 20000, 3):
        switch.table_delete(TABLE, handles[i])
    for i in range(0, 20000, 37):
        assert result(switch, {"d": i * 7}) == (i if i % 3 else 0xFFFFFFFF)


def test_a_hundred_thousand_prefixes() -> None:
    rng = random.Random(1)
    switch = key_program({"d": "lpm"}, max_size=100_000).switch()
    known: dict[tuple[int, int], int] = {}  # key: prefix length and prefix
    while len(known) < 100_000:
        length = rng.choice((8, 16, 20, 22, 24, 24, 24, 28, 32))
        known.setdefault((length, rng.getrandbits(length)), len(known))
    for (length, bits), number in known.items():
        switch.table_add(TABLE, [(value_bytes(bits << 32 - length, 32), length)], 0, target(number))
    places = list(known)
    for _ in range(20_000):
        length, bits = rng.choice(places)
        address = bits << 32 - length | rng.getrandbits(32 - length)
        found = (known.get((n, address >> 32 - n)) for n in range(32, -1, -1))
        assert result(switch, {"d": address}) == next(number for number in found if number is not None)


def test_bad_calls_change_nothing() -> None:
    switch = key_program({"b": "exact", "d": "lpm"}, max_size=2).switch()
    good: list[KeyField] = [(b"\1", b""), (b"\12\0\0\0", 8)]
    handle = switch.table_add(TABLE, good, 0, target(1))
    bad_keys: list[Any] = [
        [], good[:1], [*good, good[0]], [(b"", b""), good[1]], [(b"\1\1", b""), good[1]], [(b"\x11", b""), good[1]],
        [(None, b""), good[1]], [good[0], (b"\12\0\0\0", 33)], [good[0], (b"\12\0\0\0", -1)], [good[0], b"\1"],
        [good[0], (b"\12\0\0\0",)], good,
    ]
    for key in bad_keys:
        with pytest.raises(ValueError, match=r".+"):
            switch.table_add(TABLE, key, 0, target(2))
    bad_targets: list[Any] = [
        ("action", "none", []), ("action", "set", []), ("action", "set", [bytes(4), bytes(3)]),
        ("action", "set", [bytes(4), b"\2\0"]), ("member", 0), ("group", 0), ("action",), ("other", 1), (),
    ]
    for bad in bad_targets:
        with pytest.raises(ValueError, match=r".+"):
            switch.table_add(TABLE, [(b"\2", b""), good[1]], 0, bad)
        with pytest.raises(ValueError, match=r".+"):
            switch.table_modify(TABLE, handle, bad)
    with pytest.raises(ValueError, match="no table"):
        switch.table_add("nowhere", good, 0, target(2))
    held = sys.getrefcount(good)
    with pytest.raises(ValueError, match="expected a name"):
        switch.table_add(TABLE + "\0", good, 0, target(2))
    with pytest.raises(TypeError, match="expected a name"):
        switch.table_add(5, good, 0, target(2))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="expected"):
        switch.table_add(TABLE, good, 0, ("other", 1))
    with pytest.raises(ValueError, match="no action"):
        switch.table_add(TABLE, good, 0, ("action", "none", []))
    assert sys.getrefcount(good) == held
    with pytest.raises(ValueError, match="no entry"):
        switch.table_delete(TABLE, 1)
    assert result(switch, {"b": 1, "d": 0x0A000001}) == 1
    switch.table_add(TABLE, [(b"\2", b""), good[1]], 0, target(2))
    with pytest.raises(OverflowError, match="full"):
        switch.table_add(TABLE, [(b"\3", b""), good[1]], 0, target(3))
    assert result(switch, {"b": 3, "d": 0x0A000001}) == 0xFFFFFFFF


def test_default_entries() -> None:
    switch = key_program({"d": "exact"}).switch()
    switch.table_set_default(TABLE, target(77))
    assert result(switch, {}) == 77
    switch.table_set_default(TABLE, None)
    assert result(switch, {}) == 0xFFFFFFFF
    fixed = {"action_id": 1, "action_const": True, "action_data": ["0x5", "0x6"], "action_entry_const": False}
    b = key_program({"d": "exact"}, default_entry=fixed)
    switch = b.switch()
    assert result(switch, {}) == 5
    switch.table_set_default(TABLE, target(6))
    assert result(switch, {}) == 6
    with pytest.raises(ValueError, match="constant"):
        switch.table_set_default(TABLE, ("action", "miss", []))
    switch = key_program({"d": "exact"}, default_entry={**fixed, "action_entry_const": True}).switch()
    with pytest.raises(ValueError, match="constant"):
        switch.table_set_default(TABLE, target(6))


def test_entries_of_the_program() -> None:
    def entry(number: int, priority: int, *keys: Json) -> Json:
        return {"match_key": list(keys), "priority": priority,
                "action_entry": {"action_id": 1, "action_data": [hex(number), "0x0"]}}

    entries = [
        entry(10, 2, {"match_type": "ternary", "key": "0x10", "mask": "0xf0"},
              {"match_type": "range", "start": "0x5", "end": "0x100"}),
        entry(11, 1, {"match_type": "ternary", "key": "0x11", "mask": "0xff"},
              {"match_type": "range", "start": "0x0", "end": "0xfff"}),
    ]
    switch = key_program({"a": "ternary", "c": "range"}, entries=entries).switch()
    assert result(switch, {"a": 0x12, "c": 5}) == 10
    assert result(switch, {"a": 0x12, "c": 4}) == 0xFFFFFFFF
    assert result(switch, {"a": 0x11, "c": 5}) == 11  # in the JSON, the lower number has priority
    switch.table_delete(TABLE, 1)  # P4Info decides whether this is allowed
    assert result(switch, {"a": 0x11, "c": 5}) == 10
    switch.reset()
    assert result(switch, {"a": 0x11, "c": 5}) == 11


def test_fields_of_invalid_headers_match_as_zero() -> None:
    b = ProgramBuilder()
    b.header_type("k_t", ("d", 32))
    b.header_type("o_t", ("v", 32))
    b.header("k", "k_t", emit=False)
    b.header("o", "o_t")
    b.state("start", b.extract("k"))
    b.run([{"op": "add_header", "parameters": [{"type": "header", "value": "o"}]},
           {"op": "remove_header", "parameters": [{"type": "header", "value": "k"}]}])
    hit = b.action("set", [assign(field("o", "v"), param(0))], v=32)
    b.table("t", [("exact", field("k", "d")), ("exact", field("k", "$valid$"))], [hit])
    switch = b.switch()
    switch.table_add("t", [(bytes(4), b""), (b"\0", b"")], 0, ("action", "set", [b"\0\0\0\7"]))
    [(_, frame)] = switch.process(0, b"\1\2\3\4")
    assert frame == b"\0\0\0\7"


def test_direct_counters_and_last_hit() -> None:
    switch = key_program({"d": "exact"}, with_counters=True, support_timeout=True).switch()
    first = switch.table_add(TABLE, [(bytes(4), b"")], 0, target(1))
    second = switch.table_add(TABLE, [(b"\0\0\0\1", b"")], 0, target(2))
    frame = packet({})
    assert switch.table_last_hit(TABLE, first) == 0
    switch.process(0, frame, now=5)
    switch.process(0, frame + bytes(10), now=9)
    assert switch.direct_counter_read(TABLE, first) == (2, 2 * len(frame) + 10)
    assert switch.direct_counter_read(TABLE, second) == (0, 0)
    assert switch.table_last_hit(TABLE, first) == 9
    switch.direct_counter_write(TABLE, second, 7, 8)
    assert switch.direct_counter_read(TABLE, second) == (7, 8)
    with pytest.raises(ValueError, match="no entry"):
        switch.direct_counter_read(TABLE, 2)


def test_next_tables_by_action_and_by_hit() -> None:
    b = ProgramBuilder()
    b.header_type("h_t", ("a", 8), ("path", 8))
    b.header("h", "h_t")
    b.state("start", b.extract("h"))
    one, two = b.action("one", []), b.action("two", [])
    marks = [b.action(f"mark{i}", [assign(field("h", "path"), const(i))]) for i in range(4)]
    b.table("by_action", [("exact", field("h", "a"))], [one, two], default=two,
            next_tables={"one": "t0", "two": "by_hit"})
    b.table("by_hit", [("exact", field("h", "a"))], [one, two], default=one,
            next_tables={"__HIT__": "t1", "__MISS__": "t2"})
    for i in range(3):
        b.table(f"t{i}", [], [marks[i]], default=marks[i], next_tables={f"mark{i}": None})
    switch = b.switch()
    switch.table_add("by_action", [(b"\1", b"")], 0, ("action", "one", []))
    switch.table_add("by_hit", [(b"\2", b"")], 0, ("action", "two", []))
    assert [switch.process(0, bytes([a, 9]))[0][1][1] for a in (1, 2, 3)] == [0, 1, 2]


def test_same_key_twice_in_one_table_is_refused_only_with_the_same_priority() -> None:
    switch = key_program({"a": "ternary"}).switch()
    switch.table_add(TABLE, [(b"\1", b"\xff")], 1, target(1))
    switch.table_add(TABLE, [(b"\1", b"\xff")], 2, target(2))
    with pytest.raises(ValueError, match="already"):
        switch.table_add(TABLE, [(b"\1", b"\xff")], 2, target(3))
    assert result(switch, {"a": 1}) == 2


def test_a_key_stays_what_it_was_when_another_argument_changes_its_list() -> None:
    switch = key_program({"e": "exact"}).switch()
    key = [(value_bytes(0x0A0B0C0D0E0F, 48), b"")]
    others: list[bytes] = []

    class Emptying:
        def __index__(self) -> int:
            key.clear()
            others.extend(value_bytes(i, 48) for i in range(100))
            return 0

    switch.table_add(TABLE, key, Emptying(), target(7))  # type: ignore[arg-type]
    assert (key, len(others)) == ([], 100)
    assert result(switch, {"e": 0x0A0B0C0D0E0F}) == 7


@pytest.mark.parametrize("width", [24, 72, 136])
@pytest.mark.parametrize("kind", ["exact", "ternary"])
def test_keys_are_the_bits_of_negative_numbers(kind: str, width: int) -> None:
    b = ProgramBuilder()
    b.header_type("k_t", ("signed", width, True))
    b.header_type("o_t", ("v", 8))
    b.header("k", "k_t", emit=False)
    b.header("o", "o_t")
    b.state("start", b.extract("k"))
    b.run([{"op": "add_header", "parameters": [{"type": "header", "value": "o"}]}])
    hit = b.action("hit", [assign(field("o", "v"), const(1))])
    miss = b.action("miss", [assign(field("o", "v"), const(2))])
    b.table("t", [(kind, field("k", "signed"))], [hit, miss], default=miss)
    switch = b.switch()
    minus_two = ((1 << width) - 2).to_bytes(width // 8, "big")
    mask = b"\xff" * (width // 8) if kind == "ternary" else b""
    switch.table_add("t", [(minus_two, mask)], int(kind == "ternary"), ("action", "hit", []))
    assert [switch.process(0, key)[0][1] for key in (minus_two, bytes(width // 8))] == [b"\1", b"\2"]
