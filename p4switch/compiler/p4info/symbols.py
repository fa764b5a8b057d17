"""Ids and aliases of P4Info objects.

An id consists of the kind of the object (8 bits) and of 24 bits from `@id` or from a hash of the
name. Names are processed in order, and a hash is increased until its id is free. An alias is the
shortest unique suffix of the name's components.
"""

from __future__ import annotations

from collections.abc import Iterable

from p4switch.compiler import ast


def name_hash(name: str) -> int:
    """Return Bob Jenkins' one-at-a-time hash, 32 bits."""
    h = 0
    for byte in name.encode():
        h = (h + byte) & 0xFFFFFFFF
        h = (h + (h << 10)) & 0xFFFFFFFF
        h ^= h >> 6
    h = (h + (h << 3)) & 0xFFFFFFFF
    h ^= h >> 11
    return (h + (h << 15)) & 0xFFFFFFFF


def id_annotation(annotations: list[ast.Annotation]) -> int | None:
    """Return the number of `@id(number)`."""
    for annotation in annotations:
        if annotation.name == "id" and annotation.args and isinstance(annotation.args[0], ast.IntLiteral):
            return annotation.args[0].value
    return None


class Symbols:
    """Collector of names (`add`). When it has all names, `number` assigns an id to each."""

    def __init__(self) -> None:
        self._given: dict[tuple[int, str], int | None] = {}
        self._ids: dict[tuple[int, str], int] = {}
        self._names: dict[str, None] = {}
        self._suffixes: dict[tuple[str, ...], int] = {}

    def add(self, kind: int, name: str, annotations: list[ast.Annotation]) -> None:
        if (kind, name) in self._given:
            return
        number = id_annotation(annotations)
        self._given[kind, name] = None if number is None else number | kind << 24
        if name not in self._names:
            self._names[name] = None
            parts = name.split(".")
            for i in range(len(parts)):
                suffix = tuple(parts[i:])
                self._suffixes[suffix] = self._suffixes.get(suffix, 0) + 1

    def number(self) -> None:
        taken = {n for n in self._given.values() if n is not None}
        for (kind, name), given in sorted(self._given.items(), key=lambda item: item[0]):
            number = given
            if number is None:
                value = name_hash(name)
                number = kind << 24 | (value & 0xFFFFFF)
                while number in taken:
                    value += 1
                    number = kind << 24 | (value & 0xFFFFFF)
                taken.add(number)
            self._ids[kind, name] = number

    def id(self, kind: int, name: str) -> int:
        return self._ids[kind, name]

    def alias(self, name: str) -> str:
        parts = name.split(".")
        for i in reversed(range(len(parts))):
            if self._suffixes[tuple(parts[i:])] == 1:
                return ".".join(parts[i:])
        return name


def field_ids(annotated: Iterable[list[ast.Annotation]]) -> list[int]:
    """Return the ids of match fields, parameters and the like.

    An id is `@id`, or the next free number from 1 on.
    """
    given = [id_annotation(a) for a in annotated]
    taken = {n for n in given if n is not None}
    result: list[int] = []
    index = 1
    for number in given:
        if number is not None:
            index += 1
            result.append(number)
            continue
        while index in taken:
            index += 1
        taken.add(index)
        result.append(index)
    return result
