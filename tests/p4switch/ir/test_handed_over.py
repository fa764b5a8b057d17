"""The program that the compiler passes to the engine equals, node by node, the one read from its JSON."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest

from p4switch import ir
from p4switch.bmv2 import read
from p4switch.compiler import _compile, compile_program, types
from p4switch.engine import generated
from tests.p4switch.ir.test_checker import PROGRAMS, SOURCES


class _Comparison:
    """Comparison of two programs. Equal spans have the same place; equal types have the same name and fields."""

    def __init__(self, a: ir.Program, b: ir.Program) -> None:
        self._places = a.place, b.place
        self._seen: set[tuple[int, int]] = set()
        self._waiting: list[tuple[str, Any, Any]] = [("", a, b)]

    def differences(self) -> Iterator[str]:
        while self._waiting:
            where, a, b = self._waiting.pop()
            if (id(a), id(b)) in self._seen:
                continue
            if type(a) is not type(b):
                yield f"{where}: {type(a).__name__} and {type(b).__name__}"
            elif isinstance(a, types.Header | types.Union):
                self._seen.add((id(a), id(b)))
                self._all(where, [(a.name, *((f.name, f.type) for f in a.fields))],
                          [(b.name, *((f.name, f.type) for f in b.fields))])
            elif is_dataclass(a):
                self._seen.add((id(a), id(b)))
                for field in fields(a):
                    self._field(f"{where}.{field.name}", getattr(a, field.name), getattr(b, field.name))
            elif isinstance(a, dict):
                self._all(where, [*map(repr, a)], [*map(repr, b)])  # True is not 1
                self._all(where, [*a.values()], [*b.values()])
            elif isinstance(a, list | tuple):
                self._all(where, a, b)
            elif a != b:
                yield f"{where}: {a} and {b}"

    def _all(self, where: str, a: Any, b: Any) -> None:
        if len(a) != len(b):
            self._waiting.append((where, len(a), len(b)))
        self._waiting += [(f"{where}[{i}]", x, y) for i, (x, y) in enumerate(zip(a, b, strict=False))]

    def _field(self, where: str, a: Any, b: Any) -> None:
        name = where.rpartition(".")[2]
        if name in ("span", "spans"):
            (one, other), spans = self._places, [(a, b)] if name == "span" else list(zip(a, b, strict=True))
            self._waiting += [(where, one(x), other(y)) for x, y in spans]
        elif name != "place":
            self._waiting.append((where, a, b))


def differences(a: ir.Program, b: ir.Program) -> list[str]:
    return list(_Comparison(a, b).differences())


@pytest.mark.parametrize("path", sorted(PROGRAMS), ids=lambda path: path.stem)
def test_a_program_is_what_its_json_says(path: Path) -> None:
    made = _compile(path, [SOURCES, path.parent], None)
    assert made.program is not None
    assert differences(made.program, read(made.json)) == []


def test_the_comparison_sees_each_difference() -> None:
    document = _compile(SOURCES / "collective.p4", [SOURCES], None).json
    assert differences(read(document), read(document)) == []
    for path, value in (
        (("pipelines", 0, "conditionals", 0, "true_next"), None),
        (("actions", 5, "primitives", 0, "source_info", "line"), 1),
        (("header_types", 1, "fields", 0, 1), 7),
        (("pipelines", 0, "tables", 1, "max_size"), 3),
        (("register_arrays", 0, "size"), 9),
        (("parsers", 0, "parse_states", 0, "transitions", 0, "next_state"), None),
    ):
        changed = copy.deepcopy(document)
        inner: Any = changed
        for key in path[:-1]:
            inner = inner[key]
        assert inner[path[-1]] != value
        inner[path[-1]] = value
        assert differences(read(document), read(changed)), path


def test_nodes_are_handed_over_where_a_program_is_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("P4CC_CACHE", str(tmp_path))
    first, again = (compile_program(SOURCES / "ecn.p4") for _ in range(2))
    assert first.program.place.__module__ == "p4switch.compiler.bmv2.source"
    assert again.program.place.__module__ == "p4switch.bmv2.program"
    assert first.json == again.json
    assert generated(first.program).text == generated(again.program).text
