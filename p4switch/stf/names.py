"""What a packet test can refer to in a program: tables, keys, actions, counters, registers, meters, value sets."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

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
    actions: dict[str, list[tuple[str, int]]]  # name -> parameters, widths
    prioritized: bool
    profile: str = ""  # its action profile or selector


@dataclass(slots=True)
class Names:
    """What a test can refer to, from the BMv2 JSON."""

    tables: dict[str, Table] = field(default_factory=dict)
    counters: dict[str, str] = field(default_factory=dict)  # -> table of a direct one, or ""
    registers: dict[str, tuple[int, int]] = field(default_factory=dict)  # size, width
    meters: dict[str, tuple[int, str]] = field(default_factory=dict)  # size, table
    value_sets: dict[str, list[int]] = field(default_factory=dict)  # widths of what is selected on

    @classmethod
    def of(cls, json: dict[str, Any]) -> Names:
        widths: dict[tuple[str, str], int] = {}
        types = {t["name"]: t for t in json["header_types"]}
        for h in json["headers"]:
            for f in types[h["header_type"]]["fields"]:
                widths[h["name"], f[0]] = f[1]
        actions = {a["id"]: a for a in json["actions"]}
        names = cls()
        for pipeline in json["pipelines"]:
            for t in pipeline["tables"]:
                keys = [
                    Key(k.get("name") or ".".join(k["target"]), k["match_type"], widths.get(tuple(k["target"]), 1))
                    for k in t["key"]
                ]
                params = {
                    actions[i]["name"]: [(p["name"], p["bitwidth"]) for p in actions[i]["runtime_data"]]
                    for i in t["action_ids"]
                }
                prioritized = t["match_type"] in ("ternary", "range")
                names.tables[t["name"]] = Table(t["name"], keys, params, prioritized, t.get("action_profile", ""))
        for c in json["counter_arrays"]:
            names.counters[c["name"]] = c["binding"] if c["is_direct"] else ""
        names.registers = {r["name"]: (r["size"], r["bitwidth"]) for r in json["register_arrays"]}
        names.meters = {m["name"]: (m["size"], m.get("binding", "")) for m in json["meter_arrays"]}
        names.value_sets = {v["name"]: [v["compressed_bitwidth"]] for v in json.get("parse_vsets", ())}
        for state in (state for parser in json.get("parsers", ()) for state in parser["parse_states"]):
            for transition in state["transitions"]:
                if transition["type"] == "parse_vset":
                    found = [_key_width(key, widths, json) for key in state["transition_key"]]
                    names.value_sets[transition["value"]] = found
        return names


def _key_width(key: dict[str, Any], widths: dict[tuple[str, str], int], json: dict[str, Any]) -> int:
    """Bits of one of the keys that a parser's state selects on."""
    place = key["value"]
    if key["type"] == "lookahead":
        return int(place[1])
    if key["type"] == "field":
        return widths[place[0], place[1]]
    stacks = {s["name"]: s["header_ids"][0] for s in json["header_stacks"]}
    if key["type"] == "stack_field":
        first = stacks[place[0]]
    else:  # of a stack of unions: the stack, the member, the field
        union = next(s["header_union_ids"][0] for s in json["header_union_stacks"] if s["name"] == place[0])
        one = next(u for u in json["header_unions"] if u["id"] == union)
        kind = next(t for t in json["header_union_types"] if t["name"] == one["union_type"])
        first = one["header_ids"][[name for name, _ in kind["headers"]].index(place[1])]
    return widths[next(h["name"] for h in json["headers"] if h["id"] == first), place[-1]]


def find(command: Command, what: str, name: str, known: Iterable[str]) -> str:
    """The one of `known` that is `name` or ends in it."""
    name, known = plain(name), list(known)
    if name in known:
        return name
    found = [k for k in known if k.endswith("." + name)] or [k for k in known if k.endswith(name)]
    if len(found) == 1:
        return found[0]
    if found:
        raise StfError(command.line, f"{what} '{name}' is ambiguous: {', '.join(found)}")
    raise StfError(command.line, f"no {what} '{name}'; there are: {', '.join(known) or 'none'}")


def key_position(command: Command, table: Table, name: str) -> int:
    """The position of key `name`. Stack elements may be written `stack$0`, validity `header.$valid$` or `valid`."""
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
    """A key as the engine takes it."""
    width, full = key.width, (1 << key.width) - 1
    found = re.fullmatch(rf"\s*({NUMBER})\s*(?:(/|&&&|\.\.|->)\s*({NUMBER}))?", text)
    assert found is not None
    left, sign, right = found.groups()
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
    """What a key matches that the test does not mention."""
    zero = pack(0, key.width)
    if key.kind == "lpm":
        return zero, 0
    if key.kind == "ternary":
        return zero, zero
    if key.kind == "range":
        return zero, pack(-1, key.width)
    return zero, b""
