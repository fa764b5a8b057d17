"""Calls of extern functions and methods, and the helpers that the externs (`p4switch/architectures`) use for them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from p4switch import ir
from p4switch.architectures.extern import ExternFunction
from p4switch.compiler import ast, types
from p4switch.compiler.facts import CallKind
from p4switch.compiler.midend import fold
from p4switch.compiler.midend.elaborate import ExternObject
from p4switch.compiler.midend.limits import MAX_CELLS, MAX_SIZE
from p4switch.compiler.midend.storage import scalar_type
from p4switch.compiler.midend.values import (
    EXPRS,
    HeaderValue,
    Ignored,
    ListValue,
    StackValue,
    StructValue,
    Value,
)
from p4switch.compiler.superseded import instead
from p4switch.compiler.walk import walk

if TYPE_CHECKING:
    from p4switch.compiler.midend.lowering import Lowering


class Externs:
    def __init__(self, low: Lowering) -> None:
        self.low = low
        self.facts = low.facts
        self._profiles: dict[ExternObject, ir.Profile] = {}
        self._direct_meters: dict[ExternObject, ir.FieldRef] = {}
        self.digests: list[types.Type] = []

    def extern_call(self, call: ast.Call) -> Value | None:
        architecture, binding = self.low.architecture, self.facts.bindings[call]
        if binding.kind is CallKind.EXTERN_FUNCTION:
            function = architecture.extern(binding.method)
            if function is None or not issubclass(function, ExternFunction):
                hint = instead(binding.method, architecture)
                raise self.low.error(call, f"extern function '{binding.method}' is not supported on this target{hint}")
            return function().lower(call, self.low)
        if binding.kind is not CallKind.EXTERN_METHOD or binding.receiver is None:
            raise self.low.error(call, f"a call of '{binding.method}' is not supported on this target")
        receiver = self.low.expressions.expr(binding.receiver)
        if not isinstance(receiver, ExternObject):
            raise self.low.error(call, "a method is called on something that is not an extern object")
        name = f"{receiver.decl.name}.{binding.method}"
        kind = architecture.extern_type(receiver.decl.name)
        method = None if kind is None else kind.methods.get(binding.method)
        if kind is None or method is None:
            hint = instead(name, architecture)
            raise self.low.error(call, f"method '{name}' is not supported on this target{hint}")
        if self.low.site.parses and not kind.in_parsers:
            raise self.low.error(call, f"'{binding.method}' cannot be called in a parser on this target")
        return method(call, receiver, self.low)

    # Helpers

    @cached_property
    def slices(self) -> dict[ast.Call, ast.Slice]:
        """For each extern call whose result is sliced, the slice that the program takes."""
        nodes = (node for decl in self.low.source.declarations for node in walk(decl, self.facts))
        found = (node for node in nodes if isinstance(node, ast.Slice))
        return {node.base: node for node in found if isinstance(node.base, ast.Call)}

    def call_arguments(self, call: ast.Call) -> list[Value]:
        binding = self.facts.bindings[call]
        return self.low.calls.arguments(binding.params, binding.bound)

    def scalar_argument(self, call: ast.Call, index: int, value: Value) -> ir.Expr:
        binding = self.facts.bindings[call]
        if not isinstance(value, EXPRS):
            raise self.low.error(binding.bound[index] or call, "a number is expected here")
        t = scalar_type(self.low.resolve(binding.param_types[index]))
        if isinstance(value, ir.Const) and isinstance(value.type, types.InfInt) and isinstance(t, types.Bits):
            return fold.const(value.value, t)
        return self.low.tables.simple(value)

    def into(self, call: ast.Call, index: int, value: Value, make: Callable[[ir.FieldRef], ir.ExternOperation]) -> None:
        """Emit the operation that `make` returns for a field, and copy the field to the place `value`.

        The place is argument `index` of the call.
        """
        if isinstance(value, ir.FieldRef):
            self.low.emit(make(value))
            return
        t = self.low.resolve(self.facts.bindings[call].param_types[index])
        place = self.low.temp(t)
        if not isinstance(place, ir.FieldRef):
            raise self.low.error(call, f"a result of type {t} is not supported on this target")
        self.low.emit(make(place))
        if not isinstance(value, Ignored):
            self.low.copies.assign(value, place, call.pos)

    def result(self, call: ast.Call, make: Callable[[ir.FieldRef], ir.ExternOperation]) -> Value:
        """Return a new field with the result of a call. The operation that `make` returns writes the field."""
        t = self.low.type_of(call)
        place = self.low.temp(t)
        if not isinstance(place, ir.FieldRef):
            raise self.low.error(call, f"a result of type {t} is not supported on this target")
        self.low.emit(make(place))
        return place

    def only_in(self, call: ast.Call, *places: str) -> None:
        if self.low.site.name not in places:
            method = self.facts.bindings[call].method
            raise self.low.error(call, f"'{method}' can only be called in {' or '.join(places)} on this target")

    def fields_of(self, value: Value, node: ast.Node) -> list[ir.Expr]:
        """Return the scalars in `value`, in order."""
        if isinstance(value, EXPRS):
            return [value]
        if isinstance(value, StructValue):
            return [leaf for v in value.fields.values() for leaf in self.fields_of(v, node)]
        if isinstance(value, ListValue):
            return [leaf for v in value.items for leaf in self.fields_of(v, node)]
        if isinstance(value, (ir.HeaderRef, HeaderValue)):
            return list((self.low.copies.header_leaves(value) or {}).values())
        if isinstance(value, StackValue):
            return [leaf for e in value.elements for leaf in self.fields_of(e, node)]
        raise self.low.error(node, "only fields, structs and lists of them are supported here")

    # Objects

    def profile(self, extern: ExternObject) -> ir.Profile:
        kind = self.low.architecture.extern_type(extern.decl.name)
        assert kind is not None
        members = kind.profile(extern)
        profile = self._profiles.get(members)
        if profile is None:
            size = members.args["size"]
            assert isinstance(size, ir.Const)
            number = self.low.size_of(members.node, size.value, MAX_SIZE)
            profile = self._profiles[members] = ir.Profile(members.path, number, span=members.node.pos)
        if profile.algorithm:
            profile.inputs.clear()  # each table that shares the profile has the same key
        else:
            profile.algorithm = kind.algorithm(extern)
        return profile

    def size_argument(self, extern: ExternObject, name: str = "size") -> int:
        """Return the size passed as argument `name` to the constructor of a counter, meter or register."""
        size = extern.args[name]
        if not isinstance(size, ir.Const):
            raise self.low.error(extern.node, "the size has to be a compile-time constant")
        return self.low.size_of(extern.node, size.value, MAX_CELLS)

    def enum_argument(self, extern: ExternObject, name: str) -> str:
        """Return the enum member passed to the constructor."""
        value = extern.args[name]
        assert isinstance(value, ir.Const)
        return value.member

    def table_of(self, extern: ExternObject) -> ir.Table | None:
        """Return the table that a direct object belongs to."""
        tables = self.low.tables.tables.values()
        return next((t.ir for t in tables if extern in (t.counter, t.meter, *t.direct)), None)

    def entry_cells(self, extern: ExternObject) -> int | None:
        """Return the number of cells of a direct object, or None if no table uses the object.

        There is a cell for each entry of the table, and one for the default action.
        """
        table = self.table_of(extern)
        return None if table is None else table.room + 1

    def direct_meter_result(self, extern: ExternObject) -> ir.FieldRef:
        """Return the field to which the table writes the colour of a direct meter."""
        place = self._direct_meters.get(extern)
        if place is None:
            t = scalar_type(extern.type_args[0]) if extern.type_args else types.Bits(2)
            colour = self.low.storage.allocate(t or types.Bits(2), f"{extern.path}.color")
            assert isinstance(colour, ir.FieldRef)
            place = self._direct_meters[extern] = colour
        return place
