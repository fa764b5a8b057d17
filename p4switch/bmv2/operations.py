"""Primitives of actions and deparsers, and operations of parsers, as operations of the intermediate representation.

The classes of an architecture read the operations of its externs. They are found by the name of the primitive.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

from pydantic import ValidationError

from p4switch import ir
from p4switch.bmv2 import schema
from p4switch.bmv2.arguments import Arguments
from p4switch.bmv2.expressions import Expressions
from p4switch.bmv2.flat import Item, Jump, blocks
from p4switch.bmv2.schema import Json, JsonError
from p4switch.bmv2.values import hex_value, pair, unwrap
from p4switch.compiler import types
from p4switch.ir.places import Place

_JUMPS = {"_jump": 1, "_jump_if_zero": 2}
_REFERENCES = ("header", "header_stack", "header_union", "header_union_stack")
_VALUES = ("field", "stack_field", "union_stack_field", "runtime_data", "local", "hexstr", "bool", "expression",
           "lookahead")  # fmt: skip
_MAX_SHIFT_BYTES = 1 << 16
_ARITHMETIC = {"add": "+", "subtract": "-", "bit_xor": "^", "bit_or": "|", "bit_and": "&", "shift_left": "<<",
               "shift_right": ">>"}  # fmt: skip

Externs = Mapping[str, type[ir.ExternOperation]]
"""Operations of externs by the name of their primitive."""
Calculations = Mapping[str, ir.Calculation]


class Operations:
    """Reader of the code of one action, parser or deparser. Methods raise JsonError."""

    def __init__(
        self, x: Expressions, externs: Externs, calculations: Calculations, span: Callable[[Place | None], int | None]
    ) -> None:
        self.x = x
        self._externs, self._calculations, self._span = externs, calculations, span
        self._at: int | None = None  # span of the current item

    # Actions and deparsers

    def body(self, primitives: Sequence[schema.Primitive]) -> ir.Block:
        """Convert primitives with jumps to blocks, and return the first block."""
        items: list[Item] = []
        places = [0]  # number of the first item of each primitive
        for primitive in primitives:
            items += [self._jump(primitive, len(primitives))] if primitive.op in _JUMPS else self.primitive(primitive)
            places.append(len(items))
        for item in items:
            if isinstance(item, Jump):
                item.target = places[item.target]
        return blocks(items)

    def _jump(self, primitive: schema.Primitive, count: int) -> Jump:
        _arity(primitive, _JUMPS[primitive.op])
        *condition, offset = primitive.parameters
        target = unwrap(offset)
        if target.get("type") != "hexstr" or not 0 <= hex_value(target.get("value")) <= count:
            raise JsonError(f"BMv2 JSON: {primitive.op} needs the number of a primitive of its action")
        test = self.x.condition(condition[0]) if condition else None
        return Jump(hex_value(target.get("value")), test, self._span(primitive.place))

    def primitive(self, primitive: schema.Primitive) -> list[ir.Operation]:
        """Return the operations of one primitive other than a jump."""
        self._at = self._span(primitive.place)
        if primitive.op in self._HANDLERS:
            arity, handler = self._HANDLERS[primitive.op]
            _arity(primitive, arity)
            return handler(self, *primitive.parameters)
        if primitive.op in self._externs:
            return [self._extern(self._externs[primitive.op], primitive)]
        raise JsonError(f"BMv2 JSON: unknown primitive {primitive.op}; the engine has no such extern")

    def _extern(self, kind: type[ir.ExternOperation], primitive: schema.Primitive) -> ir.Operation:
        given = [self.argument(json) for json in primitive.parameters]
        arguments = Arguments(primitive.op, given, self._calculations, self._at)
        operation = kind.read(arguments)
        arguments.finish()
        return operation

    def argument(self, json: Json) -> ir.Argument:
        """Return an argument of an extern's primitive."""
        if isinstance(json, Mapping) and json.get("type") == "parameters_vector":
            items = json.get("value") or []  # p4c writes {} if there is none
            if not isinstance(items, list):
                raise JsonError("BMv2 JSON: expected a list of values")
            return [self.x.argument(item) for item in items]
        inner = unwrap(json)
        kind = inner.get("type")
        if kind in _REFERENCES and kind != "header":
            return self.x.stack(inner) if "stack" in str(kind) else self.x.symbols.union(str(inner.get("value")))
        if kind == "header":
            return self.x.header(inner)
        if kind in _VALUES or "op" in inner:
            return self.x.argument(json)
        return ir.Named(str(kind), str(inner.get("value")))

    def _assign(self, target: Json, source: Json) -> list[ir.Operation]:
        to, value = self.x.target(target), self.x.argument(source)
        if isinstance(to.type, types.Varbit) is not isinstance(value.type, types.Varbit):
            raise JsonError("BMv2 JSON: a field of variable length is assigned to one that is not, or the other way")
        return [ir.Assign(to, value, self._at)]

    def _assign_varbit(self, target: Json, source: Json) -> list[ir.Operation]:
        if not isinstance(self.x.number(target).type, types.Varbit):
            raise JsonError("BMv2 JSON: assign_VL needs fields of variable length")
        return self._assign(target, source)

    def _arithmetic(self, op: str, target: Json, a: Json, b: Json) -> list[ir.Operation]:
        return self._assign(target, {"op": op, "left": a, "right": b})

    def _assign_header(self, target: Json, source: Json) -> list[ir.Operation]:
        return [self._copied(self.x.header(target), self.x.header(source))]

    def _copied(self, to: ir.HeaderRef, of: ir.HeaderRef) -> ir.Operation:
        if [f.type for f in to.type.fields] != [f.type for f in of.type.fields]:
            raise JsonError(f"BMv2 JSON: headers of type {to.type.name} and {of.type.name} cannot be assigned")
        return ir.CopyHeader(to, of, self._at)

    def _assign_union(self, target: Json, source: Json) -> list[ir.Operation]:
        to, of = self.x.union_members(target), self.x.union_members(source)
        if len(to) != len(of):
            raise JsonError("BMv2 JSON: unions of different types cannot be assigned")
        copies = [self._copied(a, b) for a, b in zip(to, of, strict=True)]
        whole, other = self.x.union(target), self.x.union(source)
        return copies if whole is None or other is None else [ir.CopyUnion(whole, other, self._at)]

    def _assign_stack(self, target: Json, source: Json) -> list[ir.Operation]:
        to, of = self.x.stack(target), self.x.stack(source)
        if to.size != of.size or isinstance(to.element, types.Header) is not isinstance(of.element, types.Header):
            raise JsonError(f"BMv2 JSON: stacks {to.name} and {of.name} cannot be assigned")
        return [ir.CopyStack(to, of, self._at)]

    def _move(self, stack: Json, by: Json, sign: int) -> list[ir.Operation]:
        to, count = self.x.stack(stack), unwrap(by)
        if count.get("type") != "hexstr":
            raise JsonError("BMv2 JSON: push and pop take a constant")
        return [ir.MoveStack(to, sign * max(0, hex_value(count.get("value"))), self._at)]

    _HANDLERS: ClassVar[dict[str, tuple[int, Callable[..., list[ir.Operation]]]]] = {
        "assign": (2, _assign),
        "modify_field": (2, _assign),
        "assign_VL": (2, _assign_varbit),
        "assign_header": (2, _assign_header),
        "copy_header": (2, _assign_header),
        "assign_union": (2, _assign_union),
        "assign_header_stack": (2, _assign_stack),
        "assign_union_stack": (2, _assign_stack),
        "add_header": (1, lambda self, header: [ir.SetValid(self.x.header(header), self._at)]),
        "add_header_fast": (1, lambda self, header: [ir.SetValid(self.x.header(header), self._at)]),
        "remove_header": (1, lambda self, header: [ir.SetInvalid(self.x.header(header), self._at)]),
        "push": (2, lambda self, stack, by: self._move(stack, by, 1)),
        "pop": (2, lambda self, stack, by: self._move(stack, by, -1)),
        "add_to_field": (2, lambda self, field, value: self._arithmetic("+", field, field, value)),
        "subtract_from_field": (2, lambda self, field, value: self._arithmetic("-", field, field, value)),
        **{
            name: (3, lambda self, field, a, b, op=op: self._arithmetic(op, field, a, b))
            for name, op in _ARITHMETIC.items()
        },
        "no_op": (0, lambda self: []),
        "exit": (0, lambda self: [ir.Exit(self._at)]),
    }

    # Parsers

    def parser_operation(self, op: schema.ParserOp) -> list[ir.Operation]:
        arities = {"extract": 1, "extract_VL": 2, "set": 2, "verify": 2, "shift": 1, "advance": 1, "primitive": 1}
        if op.op not in arities:
            raise JsonError(f"BMv2 JSON: unknown parser operation {op.op}")
        if len(op.parameters) != arities[op.op]:
            raise _wrong_arity(f"parser operation {op.op}", arities[op.op], len(op.parameters))
        args = op.parameters
        if op.op == "primitive":
            try:
                return self.primitive(schema.Primitive.model_validate(args[0]))
            except ValidationError as error:
                raise JsonError(f"BMv2 JSON: parser operation {op.op}: {error.errors()[0]['msg']}") from error
        span = self._span(op.place)
        if op.op in ("extract", "extract_VL"):
            length = self.x.number(args[1]) if op.op == "extract_VL" else None
            return [ir.Extract(self._extracted(args[0]), length, span)]
        if op.op == "verify":
            return [ir.Verify(self.x.condition(args[0]), self.x.number(args[1]), span)]
        if op.op == "set":
            self._at = span
            return self._assign(args[0], args[1])
        if op.op == "advance":
            return [ir.Advance(self.x.argument(args[0]), span)]
        count = args[0] if isinstance(args[0], int) else hex_value(unwrap(args[0]).get("value"))
        if not 0 <= count <= _MAX_SHIFT_BYTES:
            raise JsonError(f"BMv2 JSON: parser operation shift by {count} bytes; expected 0 to {_MAX_SHIFT_BYTES}")
        return [ir.Advance(ir.Const(8 * count, ir.INT), span)]

    def _extracted(self, target: Json) -> ir.HeaderRef:
        kind, value = (target.get("type"), target.get("value")) if isinstance(target, Mapping) else (None, None)
        symbols = self.x.symbols
        if kind == "regular":
            return symbols.header(str(value))
        if kind == "stack":
            stack = symbols.stack(str(value))
            assert isinstance(stack.element, types.Header)
            return ir.HeaderRef(stack.element, "", stack.name, where="next")
        if kind == "union_stack":
            name, member = pair(value)
            return symbols.member(symbols.union_stack(str(name)), str(member), where="next")
        raise JsonError(f"BMv2 JSON: cannot extract to {kind}")


def _arity(primitive: schema.Primitive, count: int) -> None:
    if len(primitive.parameters) != count:
        raise _wrong_arity(f"primitive {primitive.op}", count, len(primitive.parameters))


def _wrong_arity(what: str, wanted: int, got: int) -> JsonError:
    return JsonError(f"BMv2 JSON: {what} takes {wanted} parameter{'s' if wanted != 1 else ''}, got {got}")
