"""Names of a program for packet tests: tables, keys, actions, counters, registers, meters, value sets."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from p4switch import ir
from p4switch.compiler.types import width_of
from p4switch.stf.language import NUMBER, Command, StfError, digits, number, plain


@dataclass(slots=True)
class Key:
    name: str
    kind: str
    width: int


@dataclass(slots=True)
class Table:
    name: str
    keys: list[Key]
    actions: dict[str, list[tuple[str, int]]]  # names and widths of the parameters of each action
    prioritized: bool
    profile: str = ""  # name of its action profile or selector


@dataclass(slots=True)
class Names:
    """Names that a test can refer to."""

    tables: dict[str, Table] = field(default_factory=dict)
    counters: dict[str, str] = field(default_factory=dict)  # the table of a direct counter, or ""
    registers: dict[str, tuple[int, int]] = field(default_factory=dict)  # size, width
    meters: dict[str, tuple[int, str]] = field(default_factory=dict)  # size, table
    value_sets: dict[str, list[int]] = field(default_factory=dict)  # widths of the key's expressions

    @classmethod
    def of(cls, program: ir.Program) -> Names:
        """Return the names of a program."""
        names = cls()
        for table in (table for pipeline in program.pipelines for table in pipeline.tables):
            keys = [Key(key.name, key.match_kind, width_of(key.target.type) or 1) for key in table.keys]
            params = {a.name: [(name, width_of(t) or 0) for name, t in a.params] for a in table.actions}
            profile = "" if table.profile is None else table.profile.name
            names.tables[table.name] = Table(table.name, keys, params, table.ordered, profile)
        names.counters = {c.name: c.table for c in program.counters}
        names.registers = {r.name: (r.size, r.width) for r in program.registers}
        names.meters = {m.name: (m.size, m.table) for m in program.meters}
        names.value_sets = {v.name: [v.width] for v in program.value_sets}
        for end in (state.end for parser in program.parsers for state in parser.states):
            if isinstance(end, ir.Select):
                for case, _ in end.cases:
                    if isinstance(case, str):
                        names.value_sets[case] = [width_of(key.type) or 1 for key in end.keys]
        return names


def find(command: Command, what: str, name: str, known: Iterable[str]) -> str:
    """Return the element of `known` that is equal to `name` or ends in it."""
    name, known = plain(name), list(known)
    if name in known:
        return name
    matching = [k for k in known if k.endswith("." + name)] or [k for k in known if k.endswith(name)]
    if len(matching) == 1:
        return matching[0]
    if matching:
        raise StfError(command.line, f"{what} '{name}' is ambiguous: {', '.join(matching)}")
    raise StfError(command.line, f"no {what} '{name}'; there are: {', '.join(known) or 'none'}")


def key_position(command: Command, table: Table, name: str) -> int:
    """Return the position of key `name`.

    A stack element may be written `stack$0`, and a header's validity `header.$valid$` or `valid`.
    """
    name = plain(name)
    element = re.sub(r"\$(\d+)", r"[\1]", name)
    validity = re.sub(r"\.?\$?valid\$?$", ".isValid()", element)
    for candidate in (name, element, element + "$", element + ".$valid$", validity):
        suffix = "." + candidate.lstrip(".")
        for i, key in enumerate(table.keys):
            if key.name == candidate or key.name.endswith(suffix):
                return i
    known = ", ".join(k.name for k in table.keys) or "none"
    raise StfError(command.line, f"table {table.name} has no key '{name}'; it has: {known}")


def pack(value: int, width: int) -> bytes:
    return (value & ((1 << width) - 1)).to_bytes(-(-width // 8), "big")


def key_field(command: Command, key: Key, text: str) -> tuple[bytes | None, bytes | int]:
    """Return a key in the engine's form."""
    width, full = key.width, (1 << key.width) - 1
    match = re.fullmatch(rf"\s*({NUMBER})\s*(?:(/|&&&|\.\.|->)\s*({NUMBER}))?", text)
    assert match is not None
    left, sign, right = match.groups()
    value, mask, bits = digits(command, left)
    if key.kind == "lpm":
        if sign == "/":
            length = number(command, right)
        elif bits:
            length = min(width, len(left.replace("*", "")) * bits - 2 * bits)
        else:
            length = width
        return pack(value, width), length
    if key.kind == "ternary":
        if sign == "&&&":
            mask = number(command, right)
        elif sign == "/":
            mask = full & ~((1 << (width - number(command, right))) - 1)
        elif not bits:
            mask = full
        return pack(value & mask, width), pack(mask, width)
    if key.kind == "range":
        high = number(command, right) if sign in ("..", "->") else value
        return pack(value, width), pack(high, width)
    return pack(value, width), b""


def no_match(key: Key) -> tuple[bytes | None, bytes | int]:
    """Return the match of a key that the test does not mention."""
    zero = pack(0, key.width)
    if key.kind == "lpm":
        return zero, 0
    if key.kind == "ternary":
        return zero, zero
    if key.kind == "range":
        return zero, pack(-1, key.width)
    return zero, b""
