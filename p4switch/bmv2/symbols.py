"""Symbols of BMv2 JSON: headers with their types, stacks, unions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from p4switch import ir
from p4switch.bmv2 import schema
from p4switch.bmv2.schema import MAX_FIELD_BITS, JsonError
from p4switch.compiler import ast, types

VALID = "$valid$"  # the hidden field of every header
_Found = TypeVar("_Found")


def unique(what: str, values: Iterable[str | int]) -> None:
    """Raise JsonError if a value occurs twice."""
    seen: set[str | int] = set()
    for value in values:
        if value in seen:
            raise JsonError(f"BMv2 JSON: two have the same {what}: {value}")
        seen.add(value)


def found(
    what: str, name: str | int | None, known: Mapping[str, _Found] | Mapping[int, _Found], where: str = ""
) -> _Found:
    """Return the object with a name or number. Raises JsonError, whose message names `where`."""
    if name not in known:
        raise JsonError(f"BMv2 JSON: {where}there is no {what} {name}")
    return known[name]  # type: ignore[index]


def header_type(name: str, fields: Sequence[tuple[str, types.Type]]) -> types.Header:
    """Return a header type with these fields, which are scalars."""
    return types.Header(ast.HeaderDecl(0, name, [], []), (), _fields(fields))


def union_type(name: str, members: Sequence[tuple[str, types.Type]]) -> types.Union:
    """Return a union type of these headers."""
    return types.Union(ast.UnionDecl(0, name, [], []), (), _fields(members))


def _fields(fields: Sequence[tuple[str, types.Type]]) -> list[types.Field]:
    return [types.Field(name, t, ast.FieldDecl(0, name, ast.NamedTypeExpr(0, "", []))) for name, t in fields]


def _header(item: schema.HeaderType) -> types.Header:
    """Return a header type. A varbit field may take all bits that the other fields leave."""
    unique(f"field name in {item.name}", (name for name, *_ in item.fields))
    fixed = sum(width for _, width, *_ in item.fields if width != "*")
    if len(item.fields) - sum(width != "*" for _, width, *_ in item.fields) > 1:
        raise JsonError(f"BMv2 JSON: header type {item.name} has two fields of variable length")
    fields: list[tuple[str, types.Type]] = []
    for name, width, *signed in item.fields:
        if width != "*" and not 0 < width <= MAX_FIELD_BITS:
            raise JsonError(
                f"BMv2 JSON: field {item.name}.{name} has {width} bits; expected 1 to {MAX_FIELD_BITS}"
            )
        fields.append((name, types.Varbit(8 * (item.max_length or 0) - fixed) if width == "*" else
                       types.Bits(width, bool(signed and signed[0]))))
    return header_type(item.name, fields)


class Symbols:
    """Symbol table; each look-up raises JsonError for an unknown name."""

    def __init__(self, json: schema.Program) -> None:
        self.types = {item.name: _header(item) for item in json.header_types}
        unique("header", (item.name for item in json.headers))
        unique("header id", (item.id for item in json.headers))
        self.instances = [ir.Instance(item.name, self._type(item.header_type), item.metadata) for item in json.headers]
        self._headers = {instance.name: instance for instance in self.instances}
        self._by_id = {item.id: self._headers[item.name] for item in json.headers}
        self._in_stacks: set[str] = set()
        self.stacks: list[tuple[ir.StackRef, list[str]]] = []
        for stack in json.header_stacks:
            self._add_stack(stack)
        unions = {item.name: self._union(item) for item in json.header_union_types}
        self._union_types = {item.name: unions.get(item.union_type) for item in json.header_unions}
        self.unions: list[tuple[ir.UnionRef, list[str]]] = []
        for item in json.header_unions:
            self._add_union(item)
        self._members = {ref.name: tuple(self.header(name) for name in names) for ref, names in self.unions}
        for union_stack in json.header_union_stacks:
            self._add_union_stack(union_stack, unions, {item.id: item for item in json.header_unions})
        self._stacks = {ref.name: ref for ref, _ in self.stacks}

    def _type(self, name: str) -> types.Header:
        return found("header type", name, self.types)

    def _union(self, item: schema.HeaderUnionType) -> types.Union:
        return union_type(item.name, [(member, self._type(name)) for member, name in item.headers])

    def _add_stack(self, item: schema.HeaderStack) -> None:
        if not item.header_ids:
            raise JsonError(f"BMv2 JSON: header stack {item.name} has no elements")
        ref = ir.StackRef(item.name, self._type(item.header_type), len(item.header_ids))
        self.stacks.append((ref, self._elements(item.name, self._type(item.header_type), item.header_ids)))

    def _elements(self, stack: str, of: types.Header, ids: Sequence[int]) -> list[str]:
        """Return the names of the elements of a stack."""
        instances = [found("header with id", ident, self._by_id) for ident in ids]
        for each in instances:
            if each.type is not of or each.metadata:
                raise JsonError(f"BMv2 JSON: header {each.name} cannot be an element of {stack}")
            if each.name in self._in_stacks:
                raise JsonError(f"BMv2 JSON: header {each.name} is in two stacks or unions")
            self._in_stacks.add(each.name)
        return [each.name for each in instances]

    def _add_union(self, item: schema.HeaderUnion) -> None:
        members = [found("header with id", ident, self._by_id) for ident in item.header_ids]
        for each in members:
            if each.metadata:
                raise JsonError(f"BMv2 JSON: header {each.name} cannot be a member of {item.name}: metadata")
        t = self._union_types[item.name]
        if t is None:
            raise JsonError(f"BMv2 JSON: header union {item.name} names a type that does not exist")
        self.unions.append((ir.UnionRef(t, item.name), [each.name for each in members]))

    def _add_union_stack(
        self, item: schema.HeaderUnionStack, unions: Mapping[str, types.Union],
        by_id: Mapping[int, schema.HeaderUnion],
    ) -> None:
        of = unions.get(item.union_type)
        elements = [by_id[ident] for ident in item.header_union_ids if ident in by_id]
        if of is None or len(elements) != len(item.header_union_ids) or not elements:
            raise JsonError(f"BMv2 JSON: header union stack {item.name} names a type or union that does not exist")
        if any(len(element.header_ids) != len(of.fields) for element in elements):
            raise JsonError(f"BMv2 JSON: header union stack {item.name} does not fit its type")
        for i, member in enumerate(of.fields):
            assert isinstance(member.type, types.Header)
            self._elements(f"{item.name}.{member.name}", member.type, [e.header_ids[i] for e in elements])
        self.stacks.append((ir.StackRef(item.name, of, len(elements)), [e.name for e in elements]))

    def header(self, name: str) -> ir.HeaderRef:
        return ir.HeaderRef(found("header", name, self._headers).type, name)

    def stack(self, name: str) -> ir.StackRef:
        known = self._stacks.get(name)
        if known is None or not isinstance(known.element, types.Header):
            raise JsonError(f"BMv2 JSON: there is no header stack {name}")
        return known

    def union_stack(self, name: str) -> ir.StackRef:
        known = self._stacks.get(name)
        if known is None or not isinstance(known.element, types.Union):
            raise JsonError(f"BMv2 JSON: there is no header union stack {name}")
        return known

    def union(self, name: str) -> ir.UnionRef:
        t = found("header union", name, self._union_types)
        assert t is not None
        return ir.UnionRef(t, name)

    def members(self, union: ir.UnionRef) -> tuple[ir.HeaderRef, ...]:
        """Return the headers of a union, in order."""
        return self._members[union.name]

    def member(self, stack: ir.StackRef, name: str, index: ir.Expr | None = None, where: str = "") -> ir.HeaderRef:
        """Return the header `name` of an element of a stack of unions."""
        assert isinstance(stack.element, types.Union)
        for position, field in enumerate(stack.element.fields):
            if field.name == name and isinstance(field.type, types.Header):
                return ir.HeaderRef(field.type, "", stack.name, index, where, name, position)
        raise JsonError(f"BMv2 JSON: {stack.name} has no member {name}")

    @staticmethod
    def field(header: types.Header, name: str) -> types.Type:
        known = header.find(name)
        if known is None:
            raise JsonError(f"BMv2 JSON: header type {header.name} has no field {name}")
        return known.type
