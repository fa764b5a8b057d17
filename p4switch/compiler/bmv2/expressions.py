"""Expressions and references in BMv2 JSON.

BMv2 computes with integers of any size and truncates when it stores: what can leave the range of its type is brought
back into it by a mask or `two_comp_mod`. Bools are stored as one-bit numbers: `d2b` and `b2d` convert.

Every operand is written once, so that the JSON is in proportion to the expressions: the middle end spells out
what takes operands more than once, and holds them in temporaries.
"""

from __future__ import annotations

from typing import Any

from p4switch import ir
from p4switch.compiler import types
from p4switch.compiler.diagnostics import UnsupportedError

Json = dict[str, Any]


_WRAPS = {"+", "-", "*", "<<", ">>", "/", "%", "neg", "~"}
_NAMES = {"&&": "and", "||": "or", "!": "not"}


def hexstr(value: int, width: int = 0) -> str:
    """Return `value` in hexadecimal, padded to whole bytes of `width` bits."""
    digits = -(-width // 8) * 2
    return f"{'-' if value < 0 else ''}0x{abs(value):0{digits}x}"


def _number(value: int, width: int = 0) -> Json:
    return {"type": "hexstr", "value": hexstr(value, width)}


def _op(op: str, left: Json | None, right: Any, **more: Json) -> Json:
    return {"type": "expression", "value": {"op": op, "left": left, "right": right, **more}}


def _truncated(expr: Json, t: types.Type) -> Json:
    if not isinstance(t, types.Bits):
        return expr
    if t.signed:
        return _op("two_comp_mod", expr, _number(t.width))
    return _op("&", expr, _number((1 << t.width) - 1, t.width))


def header(ref: ir.HeaderRef) -> Json:
    """Return a header, as in primitives and expressions."""
    if not ref.stack:
        return {"type": "header", "value": ref.name}
    if ref.index is None:
        raise UnsupportedError(
            f"'{ref.where}' of stack '{ref.stack}': this target can only "
            + ("extract to it" if ref.where == "next" else "read its fields")
        )
    if ref.member:
        union = _op("dereference_union_stack", {"type": "header_union_stack", "value": ref.stack}, value(ref.index))
        return _op("access_union_header", union, ref.position)
    return _op("dereference_header_stack", {"type": "header_stack", "value": ref.stack}, value(ref.index))


def stack(ref: ir.StackRef) -> Json:
    kind = "header_stack" if isinstance(ref.element, types.Header) else "header_union_stack"
    return {"type": kind, "value": ref.name}


def place(expr: ir.Expr) -> Json:
    """Return a field, as it is stored (a bool without `d2b`)."""
    if isinstance(expr, ir.FieldRef):
        return {"type": "field", "value": [expr.header, expr.name]}
    if isinstance(expr, ir.LastField):
        if expr.member:
            return {"type": "union_stack_field", "value": [expr.stack, expr.member, expr.name]}
        return {"type": "stack_field", "value": [expr.stack, expr.name]}
    if isinstance(expr, ir.ElemField):
        element = header(
            ir.HeaderRef(
                None,  # type: ignore[arg-type]
                stack=expr.stack,
                index=expr.index,
                member=expr.member,
                position=expr.member_position,
            )
        )
        return _op("access_field", element, expr.position)
    if isinstance(expr, ir.Valid) and not expr.header.stack:
        return {"type": "field", "value": [expr.header.name, "$valid$"]}
    raise AssertionError(expr)


def value(expr: ir.Expr) -> Json:
    """Return `expr` as part of an expression."""
    if isinstance(expr, ir.Const):
        if isinstance(expr.type, types.Bool):
            return {"type": "bool", "value": bool(expr.value)}
        return _number(expr.value, types.width_of(expr.type) or 0)
    if isinstance(expr, ir.LastField) and expr.member:
        raise UnsupportedError(f"'last' of union stack '{expr.stack}': this target can only select on its fields")
    if isinstance(expr, (ir.FieldRef, ir.LastField, ir.ElemField)):
        stored = place(expr)
        return _op("d2b", None, stored) if isinstance(expr.type, types.Bool) else stored
    if isinstance(expr, ir.Param):
        local = {"type": "local", "value": expr.index}
        return _op("d2b", None, local) if isinstance(expr.type, types.Bool) else local
    if isinstance(expr, ir.Valid):
        if expr.header.stack:
            return _op("valid", None, header(expr.header))
        return _op("d2b", None, place(expr))
    if isinstance(expr, ir.LastIndex):
        return _op("last_stack_index", None, {"type": "header_stack", "value": expr.stack})
    if isinstance(expr, ir.Lookahead):
        return {"type": "lookahead", "value": [expr.offset, expr.width]}
    return _operation(expr)


def _operation(expr: ir.Op) -> Json:
    op, args, t = expr.op, expr.args, expr.type
    if op == "?:":
        return _op("?", value(args[1]), value(args[2]), cond=value(args[0]))
    if op == "cast":
        return _cast(args[0], t)
    if op == "slice":
        low = args[2]
        assert isinstance(low, ir.Const)
        shifted = _op(">>", value(args[0]), _number(low.value, 8)) if low.value else value(args[0])
        return _truncated(shifted, t)
    if op == "++":
        return _concatenation(args[0], args[1], t)
    if op in ("|+|", "|-|"):
        assert isinstance(t, types.Bits)
        plain = _op(op[1], value(args[0]), value(args[1]))
        return _op("sat_cast" if t.signed else "usat_cast", plain, _number(t.width))
    if op == "neg":
        return _truncated(_op("-", _number(0, types.width_of(t) or 0), value(args[0])), t)
    if op in ("~", "!"):
        return _truncated(_op(_NAMES.get(op, op), None, value(args[0])), t)
    result = _op(_NAMES.get(op, op), value(args[0]), value(args[1]))
    shrinks = op in (">>", "/", "%") and isinstance(t, types.Bits) and not t.signed
    return _truncated(result, t) if op in _WRAPS and not shrinks else result


def _cast(source: ir.Expr, t: types.Type) -> Json:
    inner = value(source)
    if isinstance(t, types.Bool):
        if isinstance(source.type, types.Bool):
            return inner
        return _op("!=", inner, _number(0, types.width_of(source.type) or 0))
    if isinstance(source.type, types.Bool):
        width = types.width_of(t) or 1
        return _op("?", _number(1, width), _number(0, width), cond=inner)
    if isinstance(t, types.Bits) and isinstance(source.type, types.Bits):
        fits = source.type.signed == t.signed and source.type.width <= t.width
        fits = fits or (t.signed and source.type.width < t.width and not source.type.signed)
        return inner if fits else _truncated(inner, t)
    return inner


def _concatenation(left: ir.Expr, right: ir.Expr, t: types.Type) -> Json:
    assert isinstance(left.type, types.Bits)
    assert isinstance(right.type, types.Bits)
    assert isinstance(t, types.Bits)
    width = right.type.width
    high = value(left)
    if left.type.signed:
        high = _truncated(high, types.Bits(left.type.width))
    low = value(right)
    if right.type.signed:
        low = _truncated(low, types.Bits(width))
    result = _op("|", _op("<<", high, _number(width)), low)
    return _truncated(result, t) if t.signed else result


def condition(expr: ir.Expr) -> Json:
    """Return a bool, for conditionals, `verify` and checksums."""
    return value(expr)


def argument(expr: ir.Expr) -> Json:
    """Return `expr` as an argument of a primitive or parser operation: a number."""
    if isinstance(expr, ir.Const):
        return _number(expr.value, types.width_of(expr.type) or 0)
    if isinstance(expr, (ir.FieldRef, ir.LastField)):
        return place(expr)
    if isinstance(expr, ir.ElemField):
        return {"type": "expression", "value": place(expr)}
    if isinstance(expr, ir.Param):
        return {"type": "runtime_data", "value": expr.index}
    if isinstance(expr, ir.Lookahead):
        return value(expr)
    if isinstance(expr.type, types.Bool):
        return {"type": "expression", "value": _op("b2d", None, value(expr))}
    return {"type": "expression", "value": value(expr)}
