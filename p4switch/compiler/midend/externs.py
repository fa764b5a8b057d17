"""The extern functions and objects of core.p4 and v1model, as primitives of BMv2's simple_switch."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from p4switch import ir
from p4switch.architectures.v1model.externs.assertion import Assert, Assume
from p4switch.architectures.v1model.externs.clone import CloneEgress, CloneIngress
from p4switch.architectures.v1model.externs.counter import Count
from p4switch.architectures.v1model.externs.digest import Digest
from p4switch.architectures.v1model.externs.hash import Hash
from p4switch.architectures.v1model.externs.log_msg import LogMsg
from p4switch.architectures.v1model.externs.mark_to_drop import MarkToDrop
from p4switch.architectures.v1model.externs.meter import ExecuteMeter
from p4switch.architectures.v1model.externs.random import Random
from p4switch.architectures.v1model.externs.register import RegisterRead, RegisterWrite
from p4switch.architectures.v1model.externs.resubmit import Recirculate, Resubmit
from p4switch.architectures.v1model.externs.truncate import Truncate
from p4switch.compiler import ast, types
from p4switch.compiler.midend import fold
from p4switch.compiler.midend.assign import Leaf
from p4switch.compiler.midend.base import MAX_SIZE
from p4switch.compiler.midend.elaborate import ExternObject
from p4switch.compiler.midend.storage import flat_fields, header_field, scalar_type
from p4switch.compiler.midend.tables import Tables
from p4switch.compiler.midend.values import (
    EXPRS,
    HeaderValue,
    Ignored,
    ListValue,
    Packet,
    StackValue,
    StructValue,
    Text,
    UnionValue,
    Value,
)
from p4switch.compiler.superseded import FUNCTIONS, METHODS, instead


def _in_list(field: ast.Declaration, index: int) -> bool:
    """Whether the field has `@field_list` with `index` among its arguments."""
    return any(
        isinstance(argument, ast.IntLiteral) and argument.value == index
        for annotation in field.annotations
        if annotation.name == "field_list"
        for argument in annotation.args or ()
    )


class Externs(Tables):
    def __init__(self, program: ast.Program) -> None:
        super().__init__(program)
        self.user_metadata: Value | None = None
        self.program_headers: set[Leaf] = set()  # those of the package, which a deparser only reads
        self._standard = StructValue(types.VOID, {})
        self._profiles: dict[ExternObject, ir.Profile] = {}
        self._direct_meters: dict[ExternObject, ir.FieldRef] = {}
        self._field_lists: dict[int, int] = {}  # index in @field_list -> id
        self._functions: dict[str, Callable[[ast.Call], None]] = {
            "mark_to_drop": self._mark_to_drop,
            "clone": self._clone,
            "clone_preserving_field_list": self._clone,
            "resubmit_preserving_field_list": self._again,
            "recirculate_preserving_field_list": self._again,
            "digest": self._digest,
            "hash": self._hash,
            "random": self._random,
            "truncate": self._truncate,
            "assert": self._assert,
            "assume": self._assert,
            "log_msg": self._log_msg,
            "verify": self._verify,
        }
        self._methods: dict[tuple[str, str], Callable[[ast.Call, ExternObject], None]] = {
            ("counter", "count"): self._count,
            ("direct_counter", "count"): lambda call, extern: None,
            ("meter", "execute_meter"): self._execute_meter,
            ("direct_meter", "read"): self._read_direct_meter,
            ("register", "read"): self._register_read,
            ("register", "write"): self._register_write,
        }

    def extern_call(self, call: ast.Call) -> Value | None:
        if call.kind is ast.CallKind.EXTERN_FUNCTION:
            function = self._functions.get(call.method)
            if function is None:
                hint = instead(FUNCTIONS.get(call.method))
                raise self.error(call, f"extern function '{call.method}' is not supported on this target{hint}")
            function(call)
            return None
        if call.kind is not ast.CallKind.EXTERN_METHOD or call.receiver is None:
            raise self.error(call, f"a call of '{call.method}' is not supported on this target")
        receiver = self.expr(call.receiver)
        if isinstance(receiver, Packet):
            return self._packet(call, receiver)
        if not isinstance(receiver, ExternObject):
            raise self.error(call, "a method is called on something that is not an extern object")
        name = receiver.decl.name, call.method
        method = self._methods.get(name)
        if method is None:
            hint = instead(METHODS.get(name))
            raise self.error(call, f"method '{'.'.join(name)}' is not supported on this target{hint}")
        if self.where == "parser":
            raise self.error(call, f"'{call.method}' cannot be called in a parser on this target")
        method(call, receiver)
        return None

    # Helpers

    def _args(self, call: ast.Call) -> list[Value]:
        return self.arguments(call.params, call.bound)

    def _scalar_arg(self, call: ast.Call, index: int, value: Value) -> ir.Expr:
        if not isinstance(value, EXPRS):
            raise self.error(call.bound[index] or call, "a number is expected here")
        t = scalar_type(self.resolve(call.param_types[index]))
        if isinstance(value, ir.Const) and isinstance(value.type, types.InfInt) and isinstance(t, types.Bits):
            return fold.const(value.value, t)
        return self.simple(value)

    def _into(self, call: ast.Call, index: int, value: Value, emit: Callable[[ir.FieldRef], None]) -> None:
        """Calls `emit` with a field for the result, which is then copied to the place `value`."""
        if isinstance(value, ir.FieldRef):
            emit(value)
            return
        t = self.resolve(call.param_types[index])
        place = self.temp(t)
        if not isinstance(place, ir.FieldRef):
            raise self.error(call, f"a result of type {t} is not supported on this target")
        emit(place)
        if not isinstance(value, Ignored):
            self.assign(value, place, call.pos)

    def _only_in(self, call: ast.Call, *places: str) -> None:
        if self.where not in places:
            raise self.error(call, f"'{call.method}' can only be called in {' or '.join(places)} on this target")

    def fields_of(self, value: Value, node: ast.Node) -> list[ir.Expr]:
        """The scalars in `value`, in order."""
        if isinstance(value, EXPRS):
            return [value]
        if isinstance(value, StructValue):
            return [leaf for v in value.fields.values() for leaf in self.fields_of(v, node)]
        if isinstance(value, ListValue):
            return [leaf for v in value.items for leaf in self.fields_of(v, node)]
        if isinstance(value, (ir.HeaderRef, HeaderValue)):
            return list((self.header_leaves(value) or {}).values())
        if isinstance(value, StackValue):
            return [leaf for e in value.elements for leaf in self.fields_of(e, node)]
        raise self.error(node, "only fields, structs and lists of them are supported here")

    def _fields_only(self, values: list[ir.Expr], constants: bool) -> list[ir.Expr]:
        result: list[ir.Expr] = []
        for value in values:
            if isinstance(value, ir.FieldRef) or (constants and isinstance(value, ir.Const)):
                result.append(value)
            elif isinstance(value, (ir.Const, ir.Param)):
                place = self.temp(value.type)
                self.assign(place, value)
                assert isinstance(place, EXPRS)
                result.append(place)
            else:
                result.append(self.saved(value))
        return result

    # Functions

    def _mark_to_drop(self, call: ast.Call) -> None:
        self._only_in(call, "ingress", "egress")
        self.emit(MarkToDrop(call.pos))
        for arg in self._args(call):
            # In a copy of the standard metadata the fields have to follow: it is copied back later.
            if isinstance(arg, StructValue):
                for name in ("egress_spec", "mcast_grp"):
                    self.assign(arg.fields[name], self._standard.fields[name], call.pos)

    def field_list(self, index: int) -> int:
        """The id of the list of the metadata fields marked with `@field_list(index)`."""
        if index not in self._field_lists:
            elements = [] if self.user_metadata is None else self._listed(self.user_metadata, index)
            self.out.field_lists.append(ir.FieldList(f"field_list{index}" if elements else f"empty{index}", elements))
            self._field_lists[index] = len(self.out.field_lists)
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

    def _clone(self, call: ast.Call) -> None:
        args = self._args(call)
        kind = args[0]
        if not isinstance(kind, ir.Const):
            raise self.error(call, "the clone type has to be a compile-time constant")
        self._only_in(call, "ingress" if kind.member == "I2E" else "egress")
        clone = CloneIngress if kind.member == "I2E" else CloneEgress
        fields = -1
        if len(args) > 2:
            index = args[2]
            if not isinstance(index, ir.Const):
                raise self.error(call, "the index of the field list has to be a compile-time constant")
            fields = index.value
        self.emit(clone(self._scalar_arg(call, 1, args[1]), self.field_list(fields), call.pos))

    def _again(self, call: ast.Call) -> None:
        resubmit = call.method.startswith("resubmit")
        self._only_in(call, "ingress" if resubmit else "egress")
        index = self._args(call)[0]
        if not isinstance(index, ir.Const):
            raise self.error(call, "the index of the field list has to be a compile-time constant")
        self.emit((Resubmit if resubmit else Recirculate)(self.field_list(index.value), call.pos))

    def _digest(self, call: ast.Call) -> None:
        self._only_in(call, "ingress")
        receiver, data = self._args(call)
        t = self.resolve(call.param_types[1])
        name = "digest"
        if isinstance(t, types.Struct):
            name = next((a.string for a in t.decl.annotations if a.name == "name" and a.string), t.name)
        # simple_switch reads the fields at the end of ingress: what the program means is their values now.
        copies: list[ir.Expr] = []
        values = self.fields_of(data, call)
        for field, value in zip(_member_names(t, len(values)), values, strict=True):
            place = self.storage.allocate(value.type, f"{self.prefix}{name}.{field}")
            self.assign(place, value, call.pos)
            assert isinstance(place, EXPRS)
            copies.append(place)
        self.out.learn_lists.append(ir.FieldList(name, copies))
        self.emit(Digest(self._scalar_arg(call, 0, receiver), len(self.out.learn_lists), call.pos))
        self.digests.append((t, self.out.learn_lists[-1]))

    @property
    def digests(self) -> list[tuple[types.Type, ir.FieldList]]:
        raise NotImplementedError

    def _hash(self, call: ast.Call) -> None:
        result, algorithm, base, data, modulus = self._args(call)
        if not isinstance(algorithm, ir.Const):
            raise self.error(call, "the hash algorithm has to be a compile-time constant")
        inputs = self._fields_only(self.fields_of(data, call), constants=True)
        name = f"calc_{len(self.out.calculations)}"
        calculation = ir.Calculation(name, algorithm.member, inputs, span=call.pos)
        self.out.calculations.append(calculation)
        low, size = self._scalar_arg(call, 2, base), self._scalar_arg(call, 4, modulus)
        self._into(call, 0, result, lambda place: self.emit(Hash(place, low, calculation, size, call.pos)))

    def _random(self, call: ast.Call) -> None:
        result, low, high = self._args(call)
        least, most = self._scalar_arg(call, 1, low), self._scalar_arg(call, 2, high)
        self._into(call, 0, result, lambda place: self.emit(Random(place, least, most, call.pos)))

    def _truncate(self, call: ast.Call) -> None:
        self._only_in(call, "ingress", "egress")
        self.emit(Truncate(self._scalar_arg(call, 0, self._args(call)[0]), call.pos))

    def _assert(self, call: ast.Call) -> None:
        condition = self._args(call)[0]
        assert isinstance(condition, EXPRS)
        self.emit((Assert if call.method == "assert" else Assume)(condition, call.pos))

    def _log_msg(self, call: ast.Call) -> None:
        args = self._args(call)
        text = args[0]
        if not isinstance(text, Text):
            raise self.error(call, "the message has to be a compile-time constant")
        data = args[1] if len(args) > 1 else None
        items: list[Value] = [] if data is None else [data]
        if isinstance(data, StructValue):
            items = list(data.fields.values())
        parts = text.value.split("{}")
        message = parts[0]
        for i, part in enumerate(parts[1:]):
            message += (self._format(items[i], call) if i < len(items) else "{}") + part
        values = [leaf for item in items for leaf in self.fields_of(item, call)]
        self.emit(LogMsg(message, values, call.pos))

    def _format(self, value: Value, node: ast.Node) -> str:
        """Placeholders for the scalars in `value`, with the names of fields."""
        if isinstance(value, StructValue):
            inner = [f"{name}:{self._format(v, node)}" for name, v in value.fields.items()]
        elif isinstance(value, (ir.HeaderRef, HeaderValue)):
            inner = [f"{name}:{{}}" for name in self.header_leaves(value) or ()]
        elif isinstance(value, EXPRS):
            return "{}"
        else:
            inner = ["{}" for _ in self.fields_of(value, node)]
        return f"({','.join(inner)})"

    def _verify(self, call: ast.Call) -> None:
        self._only_in(call, "parser")
        condition, error = self._args(call)
        assert isinstance(condition, EXPRS)
        assert isinstance(error, EXPRS)
        self.emit(ir.Verify(condition, error, call.pos))

    # Objects

    def profile(self, extern: ExternObject) -> ir.Profile:
        profile = self._profiles.get(extern)
        if profile is None:
            size = extern.args["size"]
            assert isinstance(size, ir.Const)
            number = self.size_of(extern.node, size.value, MAX_SIZE)
            profile = self._profiles[extern] = ir.Profile(extern.path, number, span=extern.node.pos)
            algorithm = extern.args.get("algorithm")
            if isinstance(algorithm, ir.Const):
                profile.algorithm = algorithm.member
        elif profile.algorithm:
            profile.inputs.clear()  # the same key in every table that shares it
        return profile

    def _count(self, call: ast.Call, extern: ExternObject) -> None:
        index = self._scalar_arg(call, 0, self._args(call)[0])
        self.emit(Count(extern.path, index, call.pos))

    def _execute_meter(self, call: ast.Call, extern: ExternObject) -> None:
        index_value, result = self._args(call)
        index = self._scalar_arg(call, 0, index_value)
        self._into(call, 1, result, lambda place: self.emit(ExecuteMeter(extern.path, index, place, call.pos)))

    def direct_meter_result(self, extern: ExternObject) -> ir.FieldRef:
        """The field that the table writes the colour to."""
        place = self._direct_meters.get(extern)
        if place is None:
            t = scalar_type(extern.type_args[0]) if extern.type_args else types.Bits(2)
            made = self.storage.allocate(t or types.Bits(2), f"{extern.path}.color")
            assert isinstance(made, ir.FieldRef)
            place = self._direct_meters[extern] = made
        return place

    def _read_direct_meter(self, call: ast.Call, extern: ExternObject) -> None:
        self.assign(self._args(call)[0], self.direct_meter_result(extern), call.pos)

    def _register_read(self, call: ast.Call, extern: ExternObject) -> None:
        result, index_value = self._args(call)
        index = self._scalar_arg(call, 1, index_value)
        self._into(call, 0, result, lambda place: self.emit(RegisterRead(place, extern.path, index, call.pos)))

    def _register_write(self, call: ast.Call, extern: ExternObject) -> None:
        args = self._args(call)
        index, value = self._scalar_arg(call, 0, args[0]), self._scalar_arg(call, 1, args[1])
        self.emit(RegisterWrite(extern.path, index, value, call.pos))

    # Packets

    def _packet(self, call: ast.Call, packet: Packet) -> Value | None:
        if call.method == "emit":
            self._emit(self._args(call)[0], call)
            return None
        if call.method == "extract":
            self._extract(call)
            return None
        if call.method == "lookahead":
            return self._lookahead(call)
        if call.method == "advance":
            bits = self._args(call)[0]
            assert isinstance(bits, EXPRS)
            self.emit(ir.Advance(bits, call.pos))
            return None
        if call.method == "length":
            return ir.FieldRef("standard_metadata", "packet_length", types.Bits(32))
        raise self.error(call, f"'{call.method}' is not supported on this target")

    def _emit(self, value: Value, call: ast.Call) -> None:
        if isinstance(value, ir.HeaderRef) and not value.stack:
            # The target emits when all statements have run: a header that one of them may change still is copied.
            own = self.overlap(set(self.leaves(value)), self.program_headers)
            emitted = value if own else self.snapshot(value)
            assert isinstance(emitted, ir.HeaderRef)
            self.out.deparser.append(emitted)
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
            raise self.error(call, "only headers, stacks, unions and structs of them can be emitted on this target")

    def _extract(self, call: ast.Call) -> None:
        args = self._args(call)
        if not args:
            raise self.error(call, "extract() needs the header to extract to")
        target = args[0]
        length: ir.Expr | None = None
        if len(args) > 1:
            assert isinstance(args[1], EXPRS)
            length = args[1]
        t = self.resolve(call.param_types[0])
        if not isinstance(t, types.Header):
            raise self.error(call, f"only headers can be extracted: this is of type {t}")
        varbits = [n for n, ft in flat_fields(t) if isinstance(ft, types.Varbit)]
        if bool(varbits) != (length is not None):
            expected = "a second argument, the length of the varbit" if varbits else "a header with a varbit field"
            raise self.error(call, f"extract of '{t}': expected {expected}")
        if isinstance(target, ir.HeaderRef) and target.index is None and target.where != "last":
            self.emit(ir.Extract(target, length, call.pos))
            return
        place = self.temp(t)
        assert isinstance(place, ir.HeaderRef)
        self.emit(ir.Extract(place, length, call.pos))
        if not isinstance(target, Ignored):
            self.assign(target, place, call.pos)

    def _lookahead(self, call: ast.Call) -> Value:
        if self.where != "parser":
            raise self.error(call, "'lookahead' can only be called in a parser")
        t = types.strip_newtype(self.type_of(call))
        place = self.temp(t, "lookahead")
        if isinstance(place, ir.HeaderRef):
            self.emit(ir.SetValid(place, call.pos))
        targets = self.fields_of(place, call)
        if isinstance(place, ir.HeaderRef):
            targets = [v for n, _ in flat_fields(place.type) if isinstance(v := header_field(place, n), EXPRS)]
        offset = 0
        reads: list[ir.Assign] = []
        for target in targets:
            width = types.width_of(target.type)
            if width is None or isinstance(target.type, types.Varbit) or not isinstance(target, ir.FieldRef):
                raise self.error(call, f"a lookahead of type {t} is not supported")
            reads.append(ir.Assign(target, ir.Lookahead(offset, width, target.type), call.pos))
            offset += width
        # From the last to the first: if the packet is too short nothing has been assigned when the error is raised.
        for read in reversed(reads):
            self.emit(read)
        return place


def _member_names(t: types.Type, count: int) -> list[str]:
    """Names for `count` scalars of type `t`: its members' where they are told apart, else numbers."""
    names = [name for name, _ in flat_fields(t)] if isinstance(t, types.Struct | types.Header) else []
    return names if len(names) == count else [str(i) for i in range(count)]
