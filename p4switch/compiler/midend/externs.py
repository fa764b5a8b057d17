"""The extern functions and objects of core.p4 and v1model, as primitives of BMv2's simple_switch."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from p4switch import ir
from p4switch.architectures.extern import ExternFunction, extern_type
from p4switch.architectures.v1model import EXTERNS
from p4switch.compiler import ast, types
from p4switch.compiler.facts import CallKind
from p4switch.compiler.midend import fold
from p4switch.compiler.midend.assign import Leaf
from p4switch.compiler.midend.elaborate import ExternObject
from p4switch.compiler.midend.limits import MAX_CELLS, MAX_SIZE
from p4switch.compiler.midend.storage import flat_fields, header_field, scalar_type
from p4switch.compiler.midend.values import (
    EXPRS,
    HeaderValue,
    Ignored,
    ListValue,
    Packet,
    StackValue,
    StructValue,
    UnionValue,
    Value,
)
from p4switch.compiler.superseded import FUNCTIONS, METHODS, instead

if TYPE_CHECKING:
    from p4switch.compiler.midend.lowering import Lowering


def _in_list(field: ast.Declaration, index: int) -> bool:
    """Whether the field has `@field_list` with `index` among its arguments."""
    return any(
        isinstance(argument, ast.IntLiteral) and argument.value == index
        for annotation in field.annotations
        if annotation.name == "field_list"
        for argument in annotation.args or ()
    )


class Externs:
    def __init__(self, low: Lowering) -> None:
        self.low = low
        self.facts = low.facts
        self.user_metadata: Value | None = None
        self.program_headers: set[Leaf] = set()  # those of the package, which a deparser only reads
        self.standard = StructValue(types.VOID, {})
        self._profiles: dict[ExternObject, ir.Profile] = {}
        self._direct_meters: dict[ExternObject, ir.FieldRef] = {}
        self._field_lists: dict[int, int] = {}  # index in @field_list -> id
        self.digests: list[types.Type] = []

    def extern_call(self, call: ast.Call) -> Value | None:
        binding = self.facts.bindings[call]
        if binding.kind is CallKind.EXTERN_FUNCTION:
            if binding.method == "verify":
                self._verify(call)
                return None
            function = EXTERNS.get(binding.method)
            if function is None or not issubclass(function, ExternFunction):
                hint = instead(FUNCTIONS.get(binding.method))
                raise self.low.error(call, f"extern function '{binding.method}' is not supported on this target{hint}")
            function().lower(call, self.low)
            return None
        if binding.kind is not CallKind.EXTERN_METHOD or binding.receiver is None:
            raise self.low.error(call, f"a call of '{binding.method}' is not supported on this target")
        receiver = self.low.expressions.expr(binding.receiver)
        if isinstance(receiver, Packet):
            return self._packet(call, receiver)
        if not isinstance(receiver, ExternObject):
            raise self.low.error(call, "a method is called on something that is not an extern object")
        name = receiver.decl.name, binding.method
        kind = extern_type(EXTERNS, receiver.decl.name)
        method = None if kind is None else kind.methods.get(binding.method)
        if method is None:
            hint = instead(METHODS.get(name))
            raise self.low.error(call, f"method '{'.'.join(name)}' is not supported on this target{hint}")
        if self.low.where == "parser":
            raise self.low.error(call, f"'{binding.method}' cannot be called in a parser on this target")
        method(call, receiver, self.low)
        return None

    # Helpers

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
        """Emit what `make` returns for the field of the result, which is then copied to the place `value`."""
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

    def only_in(self, call: ast.Call, *places: str) -> None:
        if self.low.where not in places:
            method = self.facts.bindings[call].method
            raise self.low.error(call, f"'{method}' can only be called in {' or '.join(places)} on this target")

    def fields_of(self, value: Value, node: ast.Node) -> list[ir.Expr]:
        """The scalars in `value`, in order."""
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

    # Field lists

    def field_list_index(self, call: ast.Call, index: Value) -> int:
        """The argument of a call that names a field list."""
        if not isinstance(index, ir.Const):
            raise self.low.error(call, "the index of the field list has to be a compile-time constant")
        return index.value

    def field_list(self, index: int) -> int:
        """The id of the list of the metadata fields marked with `@field_list(index)`."""
        if index not in self._field_lists:
            elements = [] if self.user_metadata is None else self._listed(self.user_metadata, index)
            self.low.out.field_lists.append(
                ir.FieldList(f"field_list{index}" if elements else f"empty{index}", elements)
            )
            self._field_lists[index] = len(self.low.out.field_lists)
        return self._field_lists[index]

    def _listed(self, value: Value, index: int) -> list[ir.Expr]:
        """The scalars in `value` whose field, or one around it, has `@field_list(index)`, in order of declaration."""
        if isinstance(value, StructValue) and isinstance(value.type, types.Struct):
            fields = [(f.decl, value.fields[f.name]) for f in value.type.fields]
        elif isinstance(value, ir.HeaderRef):
            fields = [(f.decl, header_field(value, f.name)) for f in value.type.fields]
        elif isinstance(value, UnionValue):
            fields = [(f.decl, value.members[f.name]) for f in value.ref.type.fields]
        else:
            parts: Iterable[Value] = ()
            if isinstance(value, StructValue):
                parts = value.fields.values()
            elif isinstance(value, ListValue):
                parts = value.items
            elif isinstance(value, StackValue):
                parts = value.elements
            return [leaf for part in parts for leaf in self._listed(part, index)]
        return [
            leaf
            for decl, inner in fields
            for leaf in (self.fields_of(inner, decl) if _in_list(decl, index) else self._listed(inner, index))
        ]

    def _verify(self, call: ast.Call) -> None:
        self.only_in(call, "parser")
        condition, error = self.call_arguments(call)
        assert isinstance(condition, EXPRS)
        assert isinstance(error, EXPRS)
        self.low.emit(ir.Verify(condition, error, call.pos))

    # Objects

    def profile(self, extern: ExternObject) -> ir.Profile:
        profile = self._profiles.get(extern)
        if profile is None:
            size = extern.args["size"]
            assert isinstance(size, ir.Const)
            number = self.low.size_of(extern.node, size.value, MAX_SIZE)
            profile = self._profiles[extern] = ir.Profile(extern.path, number, span=extern.node.pos)
            algorithm = extern.args.get("algorithm")
            if isinstance(algorithm, ir.Const):
                profile.algorithm = algorithm.member
        elif profile.algorithm:
            profile.inputs.clear()  # the same key in every table that shares it
        return profile

    def size_argument(self, extern: ExternObject) -> int:
        """The size that the constructor of a counter, meter or register is given."""
        size = extern.args["size"]
        if not isinstance(size, ir.Const):
            raise self.low.error(extern.node, "the size has to be a compile-time constant")
        return self.low.size_of(extern.node, size.value, MAX_CELLS)

    def enum_argument(self, extern: ExternObject, name: str) -> str:
        """The member of an enum that the constructor is given."""
        value = extern.args[name]
        assert isinstance(value, ir.Const)
        return value.member

    def table_of(self, extern: ExternObject) -> ir.Table | None:
        """The table that a direct counter or meter belongs to."""
        return next((t.ir for t in self.low.tables.tables.values() if extern in (t.counter, t.meter)), None)

    def direct_meter_result(self, extern: ExternObject) -> ir.FieldRef:
        """The field that the table writes the colour to."""
        place = self._direct_meters.get(extern)
        if place is None:
            t = scalar_type(extern.type_args[0]) if extern.type_args else types.Bits(2)
            made = self.low.storage.allocate(t or types.Bits(2), f"{extern.path}.color")
            assert isinstance(made, ir.FieldRef)
            place = self._direct_meters[extern] = made
        return place

    # Packets

    def _packet(self, call: ast.Call, packet: Packet) -> Value | None:
        binding = self.facts.bindings[call]
        if binding.method == "emit":
            self._emit(self.call_arguments(call)[0], call)
            return None
        if binding.method == "extract":
            self._extract(call)
            return None
        if binding.method == "lookahead":
            return self._lookahead(call)
        if binding.method == "advance":
            bits = self.call_arguments(call)[0]
            assert isinstance(bits, EXPRS)
            self.low.emit(ir.Advance(bits, call.pos))
            return None
        if binding.method == "length":
            return ir.FieldRef("standard_metadata", "packet_length", types.Bits(32))
        raise self.low.error(call, f"'{binding.method}' is not supported on this target")

    def _emit(self, value: Value, call: ast.Call) -> None:
        if isinstance(value, ir.HeaderRef) and not value.stack:
            # The target emits when all statements have run: a header that one of them may change still is copied.
            own = self.low.copies.overlap(set(self.low.copies.leaves(value)), self.program_headers)
            emitted = value if own else self.low.copies.snapshot(value)
            assert isinstance(emitted, ir.HeaderRef)
            self.low.out.deparser.append(emitted)
        elif isinstance(value, StructValue):
            for inner in value.fields.values():
                self._emit(inner, call)
        elif isinstance(value, StackValue):
            for element in value.elements:
                self._emit(element, call)
        elif isinstance(value, UnionValue) and value.ref.name:
            for member in value.members.values():
                self._emit(member, call)
        else:
            raise self.low.error(call, "only headers, stacks, unions and structs of them can be emitted on this target")

    def _extract(self, call: ast.Call) -> None:
        args = self.call_arguments(call)
        if not args:
            raise self.low.error(call, "extract() needs the header to extract to")
        target = args[0]
        length: ir.Expr | None = None
        if len(args) > 1:
            assert isinstance(args[1], EXPRS)
            length = args[1]
        t = self.low.resolve(self.facts.bindings[call].param_types[0])
        if not isinstance(t, types.Header):
            raise self.low.error(call, f"only headers can be extracted: this is of type {t}")
        varbits = [n for n, ft in flat_fields(t) if isinstance(ft, types.Varbit)]
        if bool(varbits) != (length is not None):
            expected = "a second argument, the length of the varbit" if varbits else "a header with a varbit field"
            raise self.low.error(call, f"extract of '{t}': expected {expected}")
        if isinstance(target, ir.HeaderRef) and target.index is None and target.where != "last":
            self.low.emit(ir.Extract(target, length, call.pos))
            return
        place = self.low.temp(t)
        assert isinstance(place, ir.HeaderRef)
        self.low.emit(ir.Extract(place, length, call.pos))
        if not isinstance(target, Ignored):
            self.low.copies.assign(target, place, call.pos)

    def _lookahead(self, call: ast.Call) -> Value:
        if self.low.where != "parser":
            raise self.low.error(call, "'lookahead' can only be called in a parser")
        t = types.strip_newtype(self.low.type_of(call))
        place = self.low.temp(t, "lookahead")
        if isinstance(place, ir.HeaderRef):
            self.low.emit(ir.SetValid(place, call.pos))
        targets = self.fields_of(place, call)
        if isinstance(place, ir.HeaderRef):
            targets = [v for n, _ in flat_fields(place.type) if isinstance(v := header_field(place, n), EXPRS)]
        offset = 0
        reads: list[ir.Assign] = []
        for target in targets:
            width = types.width_of(target.type)
            if width is None or isinstance(target.type, types.Varbit) or not isinstance(target, ir.FieldRef):
                raise self.low.error(call, f"a lookahead of type {t} is not supported")
            reads.append(ir.Assign(target, ir.Lookahead(offset, width, target.type), call.pos))
            offset += width
        # From the last to the first: if the packet is too short nothing has been assigned when the error is raised.
        for read in reversed(reads):
            self.low.emit(read)
        return place
