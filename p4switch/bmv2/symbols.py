"""Symbols of BMv2 JSON: headers with their types, stacks, unions."""

from __future__ import annotations

from p4switch import ir
from p4switch.bmv2 import schema
from p4switch.bmv2.schema import JsonError
from p4switch.compiler import ast, types

VALID = "$valid$"  # the hidden field of every header


def _fields(fields: list[tuple[str, types.Type]]) -> list[types.Field]:
    return [types.Field(name, t, ast.FieldDecl(0, name, ast.NamedTypeExpr(0, "", []))) for name, t in fields]


def _header(item: schema.HeaderType) -> types.Header:
    fields: list[tuple[str, types.Type]] = []
    for name, width, *signed in item.fields:
        fields.append((name, types.Varbit(8 * (item.max_length or 0)) if width == "*" else
                       types.Bits(int(width), bool(signed and signed[0]))))
    return types.Header(ast.HeaderDecl(0, item.name, [], []), (), _fields(fields))


class Symbols:
    """Table of symbols; each look-up raises JsonError for an unknown name."""

    def __init__(self, json: schema.Program) -> None:
        self.types = {item.name: _header(item) for item in json.header_types}
        self._headers = {item.name: self._type(item.header_type) for item in json.headers}
        by_id = {item.id: item.name for item in json.headers}
        self._stacks = {
            item.name: ir.StackRef(item.name, self._type(item.header_type), len(item.header_ids))
            for item in json.header_stacks
        }
        unions = {item.name: self._union(item) for item in json.header_union_types}
        self._unions = {
            item.name: tuple(self.header(by_id[i]) for i in item.header_ids if i in by_id)
            for item in json.header_unions
        }
        self._union_types = {item.name: unions.get(item.union_type) for item in json.header_unions}
        for item in json.header_union_stacks:
            element = unions.get(item.union_type)
            if element is None:
                raise JsonError(f"BMv2 JSON: header union stack {item.name} names a type that is not there")
            self._stacks[item.name] = ir.StackRef(item.name, element, len(item.header_union_ids))

    def _type(self, name: str) -> types.Header:
        if name not in self.types:
            raise JsonError(f"BMv2 JSON: there is no header type {name}")
        return self.types[name]

    def _union(self, item: schema.HeaderUnionType) -> types.Union:
        members: list[tuple[str, types.Type]] = [(member, self._type(name)) for member, name in item.headers]
        return types.Union(ast.UnionDecl(0, item.name, [], []), (), _fields(members))

    def header(self, name: str) -> ir.HeaderRef:
        if name not in self._headers:
            raise JsonError(f"BMv2 JSON: there is no header {name}")
        return ir.HeaderRef(self._headers[name], name)

    def stack(self, name: str) -> ir.StackRef:
        found = self._stacks.get(name)
        if found is None or not isinstance(found.element, types.Header):
            raise JsonError(f"BMv2 JSON: there is no header stack {name}")
        return found

    def union_stack(self, name: str) -> ir.StackRef:
        found = self._stacks.get(name)
        if found is None or not isinstance(found.element, types.Union):
            raise JsonError(f"BMv2 JSON: there is no header union stack {name}")
        return found

    def union(self, name: str) -> ir.UnionRef:
        found = self._union_types.get(name)
        if name not in self._unions:
            raise JsonError(f"BMv2 JSON: there is no header union {name}")
        if found is None:
            raise JsonError(f"BMv2 JSON: header union {name} names a type that is not there")
        return ir.UnionRef(found, name)

    def members(self, union: ir.UnionRef) -> tuple[ir.HeaderRef, ...]:
        """Return the headers of a union, in order."""
        return self._unions[union.name]

    def member(self, stack: ir.StackRef, name: str, index: ir.Expr | None = None, where: str = "") -> ir.HeaderRef:
        """Return the header `name` of an element of a stack of unions."""
        assert isinstance(stack.element, types.Union)
        for position, field in enumerate(stack.element.fields):
            if field.name == name and isinstance(field.type, types.Header):
                return ir.HeaderRef(field.type, "", stack.name, index, where, name, position)
        raise JsonError(f"BMv2 JSON: {stack.name} has no member {name}")

    @staticmethod
    def field(header: types.Header, name: str) -> types.Type:
        found = header.find(name)
        if found is None:
            raise JsonError(f"BMv2 JSON: header type {header.name} has no field {name}")
        return found.type
