"""Expressions of BMv2 JSON as nodes.

BMv2 computes with unlimited width and truncates when it stores a value. Operators therefore have type `int` here, and
casts truncate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from p4switch import ir
from p4switch.bmv2.schema import Json, JsonError
from p4switch.bmv2.symbols import VALID, Symbols
from p4switch.bmv2.values import pair, short, unwrap, written_number
from p4switch.compiler import types

_BINARY = {"+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>"}
_COMPARE = {"==", "!=", "<", "<=", ">", ">="}
_CONNECTIVES = {"and": "&&", "or": "||"}
_HEADERS = ("dereference_header_stack", "dereference_stack", "access_union_header")
_UNIONS = ("header_union", "dereference_union_stack")
_MAX_CAST_BITS = 4096
_MAX_LOOKAHEAD_BITS = 1 << 20


def _is_bool(expr: ir.Expr) -> bool:
    return isinstance(expr.type, types.Bool)


def as_bool(expr: ir.Expr) -> ir.Expr:
    """Return a bool unchanged, and a number as the condition that it is not 0."""
    if isinstance(expr, ir.Op) and expr.op == "cast" and _is_bool(expr.args[0]):
        return expr.args[0]
    return expr if _is_bool(expr) else ir.Op("cast", (expr,), ir.BOOL)


def as_number(expr: ir.Expr) -> ir.Expr:
    """Return a number unchanged, and a bool as 1 or 0."""
    return ir.Op("cast", (expr,), ir.Bits(1)) if _is_bool(expr) else expr


class Expressions:
    """Reader of the expressions in one piece of code; `params` are the types of action data.

    Methods raise JsonError.
    """

    def __init__(self, symbols: Symbols, params: Sequence[types.Type] = ()) -> None:
        self.symbols = symbols
        self._params = params

    # References

    def header(self, json: Json) -> ir.HeaderRef:
        json = unwrap(json)
        op = json.get("op")
        if json.get("type") == "header":
            return self.symbols.header(str(json.get("value")))
        if op in ("dereference_header_stack", "dereference_stack"):
            stack = self._plain_stack(json.get("left"))
            assert isinstance(stack.element, types.Header)
            return ir.HeaderRef(stack.element, "", stack.name, self.number(json.get("right")))
        if op == "access_union_header":
            members = self.union_members(json.get("left"))
            offset = json.get("right")
            if not isinstance(offset, int) or not 0 <= offset < len(members):
                raise JsonError(f"BMv2 JSON: a header union has no member {short(offset)}")
            return members[offset]
        raise JsonError(f"BMv2 JSON: expected a header, got {short(json)}")

    def union_members(self, json: Json) -> tuple[ir.HeaderRef, ...]:
        json = unwrap(json)
        if json.get("type") == "header_union":
            return self.symbols.members(self.symbols.union(str(json.get("value"))))
        if json.get("op") == "dereference_union_stack":
            stack = self.symbols.union_stack(str(unwrap(json.get("left")).get("value")))
            index = self.number(json.get("right"))
            assert isinstance(stack.element, types.Union)
            return tuple(self.symbols.member(stack, field.name, index) for field in stack.element.fields)
        raise JsonError(f"BMv2 JSON: expected a header union, got {short(json)}")

    def union(self, json: Json) -> ir.UnionRef | None:
        """Return a union that is not an element of a stack, or None."""
        json = unwrap(json)
        return self.symbols.union(str(json.get("value"))) if json.get("type") == "header_union" else None

    def _plain_stack(self, json: Json) -> ir.StackRef:
        json = unwrap(json)
        if json.get("type") != "header_stack":
            raise JsonError(f"BMv2 JSON: expected a header stack, got {short(json)}")
        return self.symbols.stack(str(json.get("value")))

    def stack(self, json: Json) -> ir.StackRef:
        """Return a stack of headers or of unions."""
        json = unwrap(json)
        if json.get("type") == "header_union_stack":
            return self.symbols.union_stack(str(json.get("value")))
        return self._plain_stack(json)

    # Places

    def place(self, json: Json) -> ir.Place | ir.Param | ir.Valid:
        """Return a place, which has a width and can usually be assigned to."""
        resolved = self._place(unwrap(json))
        if resolved is None:
            raise JsonError(f"BMv2 JSON: expected a field, got {short(json)}")
        return resolved

    def target(self, json: Json) -> ir.Place:
        """Return a place that can be assigned to."""
        place = self.place(json)
        if isinstance(place, ir.Param | ir.Valid):
            raise JsonError(f"BMv2 JSON: expected a field, got {short(json)}")
        return place

    def field(self, ref: Json) -> ir.FieldRef | ir.Valid:
        """Return the field of `[header, field]`; the field may be `$valid$`."""
        header_name, field_name = pair(ref)
        header = self.symbols.header(str(header_name))
        if field_name == VALID:
            return ir.Valid(header)
        return ir.FieldRef(header.name, str(field_name), self.symbols.field(header.type, str(field_name)))

    def _place(self, json: Json) -> ir.Place | ir.Param | ir.Valid | None:
        kind, value = json.get("type"), json.get("value")
        if kind == "field":
            return self.field(value)
        if kind == "stack_field":
            stack_name, field_name = pair(value)
            stack = self.symbols.stack(str(stack_name))
            assert isinstance(stack.element, types.Header)
            return ir.LastField(stack.name, str(field_name), self.symbols.field(stack.element, str(field_name)))
        if kind == "union_stack_field":
            if not isinstance(value, Sequence) or isinstance(value, str) or len(value) != 3:
                raise JsonError(f"BMv2 JSON: expected a triple, got {short(value)}")
            stack = self.symbols.union_stack(str(value[0]))
            header = self.symbols.member(stack, str(value[1])).type
            return ir.LastField(stack.name, str(value[2]), self.symbols.field(header, str(value[2])), str(value[1]))
        if kind in ("runtime_data", "local"):
            if not isinstance(value, int) or not 0 <= value < len(self._params):
                raise JsonError(f"BMv2 JSON: there is no action parameter {short(value)}")
            return ir.Param(value, self._params[value])
        if json.get("op") == "access_field":
            return self._access(self.header(json.get("left")), json.get("right"))
        return None

    def _access(self, header: ir.HeaderRef, offset: Json) -> ir.Place | ir.Valid:
        fields = header.type.fields
        if not isinstance(offset, int) or not 0 <= offset <= len(fields):
            raise JsonError(f"BMv2 JSON: header type {header.type.name} has no field at {short(offset)}")
        return ir.Valid(header) if offset == len(fields) else _field_of(header, offset)

    # Values

    def condition(self, json: Json) -> ir.Expr:
        return as_bool(self.number(json))

    def argument(self, json: Json) -> ir.Expr:
        """Return an argument of an operation as a number.

        A field that is written as an expression is cast to `int`.
        """
        value = self.number(json)
        wrapped = isinstance(json, Mapping) and json.get("type") == "expression"
        return ir.Op("cast", (value,), ir.INT) if wrapped and isinstance(value, ir.FieldRef | ir.Param) else value

    def number(self, json: Json) -> ir.Expr:
        """Return the expression for a numeric operand, which may also be a bool."""
        json = unwrap(json)
        kind = json.get("type")
        if kind == "hexstr":
            return written_number(json.get("value"))
        if kind == "bool":
            return ir.Const(int(bool(json.get("value"))), ir.BOOL)
        if kind == "lookahead":
            return lookahead(json.get("value"))
        place = self._place(json)
        return self._operation(json) if place is None else as_number(place)

    def _operation(self, json: Json) -> ir.Expr:
        op, left, right = json.get("op"), json.get("left"), json.get("right")
        if op in _BINARY:
            return ir.Op(str(op), (self.number(left), self.number(right)), ir.INT)
        if op == "~":
            return ir.Op("~", (self.number(right),), ir.INT)
        if op in ("==", "!="):
            return self._equal(str(op), left, right)
        if op in _COMPARE:
            return ir.Op(str(op), (self.number(left), self.number(right)), ir.BOOL)
        if op in _CONNECTIVES:
            return ir.Op(_CONNECTIVES[str(op)], (self.condition(left), self.condition(right)), ir.BOOL)
        if op == "not":
            return ir.Op("!", (self.condition(right),), ir.BOOL)
        if op == "b2d":
            return as_number(self.condition(right))
        if op == "d2b":
            return self.condition(right)
        if op == "valid":
            return ir.Valid(self.header(right))
        if op == "valid_union":
            return _any([ir.Valid(member) for member in self.union_members(right)])
        if op == "two_comp_mod":
            return ir.Op("cast", (self.number(left),), ir.Bits(self._width(right), True))
        if op in ("usat_cast", "sat_cast"):
            return ir.Op("saturate", (self.number(left),), ir.Bits(self._width(right), op == "sat_cast"))
        if op == "?":
            return self._choice(json)
        if op == "last_stack_index":
            return ir.LastIndex(self.stack(right).name)
        if op == "size_stack":
            return ir.Op("+", (ir.LastIndex(self.stack(right).name), ir.Const(1, ir.INT)), ir.INT)
        raise JsonError(f"BMv2 JSON: unknown expression {short(json)}")

    def _choice(self, json: Json) -> ir.Expr:
        condition = self.condition(json.get("cond"))
        a, b = self.number(json.get("left")), self.number(json.get("right"))
        if _is_bool(a):
            return ir.Op("?:", (condition, a, as_bool(b)), ir.BOOL)
        return ir.Op("?:", (condition, a, b), ir.INT)

    def _width(self, json: Json) -> int:
        value = self.number(json)
        if not isinstance(value, ir.Const) or not 0 < value.value <= _MAX_CAST_BITS:
            raise JsonError(f"BMv2 JSON: expected a width in bits, got {short(json)}")
        return value.value

    def _equal(self, op: str, left: Json, right: Json) -> ir.Expr:
        json = unwrap(left)
        if json.get("type") == "header" or json.get("op") in _HEADERS:
            same = headers_equal(self.header(left), self.header(right))
        elif json.get("type") in _UNIONS or json.get("op") in _UNIONS:
            pairs = zip(self.union_members(left), self.union_members(right), strict=True)
            same = _any([headers_equal(a, b) for a, b in pairs])
        else:
            a, b = self.number(left), self.number(right)
            if isinstance(a.type, types.Varbit) is not isinstance(b.type, types.Varbit):
                raise JsonError("BMv2 JSON: a field of variable length is compared with one that is not")
            return ir.Op(op, (a, as_bool(b) if _is_bool(a) else b), ir.BOOL)
        return same if op == "==" else ir.Op("!", (same,), ir.BOOL)


def lookahead(value: Json) -> ir.Lookahead:
    offset, width = pair(value)
    if not isinstance(offset, int) or not isinstance(width, int) or not 0 < width <= _MAX_CAST_BITS \
            or not 0 <= offset <= _MAX_LOOKAHEAD_BITS:
        raise JsonError(f"BMv2 JSON: bad lookahead {value}")
    return ir.Lookahead(offset, width, ir.Bits(width))


def _field_of(header: ir.HeaderRef, position: int) -> ir.Place:
    field = header.type.fields[position]
    if not header.stack:
        return ir.FieldRef(header.name, field.name, field.type)
    assert header.index is not None
    return ir.ElemField(header.stack, header.index, field.name, position, field.type, header.member, header.position)


def _any(conditions: Sequence[ir.Expr]) -> ir.Expr:
    disjunction = conditions[0] if conditions else ir.Const(0, ir.BOOL)
    for condition in conditions[1:]:
        disjunction = ir.Op("||", (disjunction, condition), ir.BOOL)
    return disjunction


def headers_equal(a: ir.HeaderRef, b: ir.HeaderRef) -> ir.Expr:
    """Return whether two headers are both valid and equal in all fields, as in BMv2.

    Fields of variable length are equal if their lengths and bits are equal, as in P4-16.
    """
    if len(a.type.fields) != len(b.type.fields):
        raise JsonError(f"BMv2 JSON: headers of type {a.type.name} and {b.type.name} cannot be compared")
    same: ir.Expr = ir.Op("&&", (ir.Valid(a), ir.Valid(b)), ir.BOOL)
    for i in range(len(a.type.fields)):
        same = ir.Op("&&", (same, ir.Op("==", (_field_of(a, i), _field_of(b, i)), ir.BOOL)), ir.BOOL)
    return same
