"""Bytes that deparsers put in front of copies. They enter the packet path as intrinsic metadata, 64 bits per field."""

from __future__ import annotations

from typing import TYPE_CHECKING

from p4switch import ir
from p4switch.architectures.tna.externs.hash import joined
from p4switch.compiler import types
from p4switch.compiler.midend import fold

if TYPE_CHECKING:
    from p4switch.tool_types import Lowering, Value, ast

_CHUNK = 64
_BYTES, _FLAG = ir.Bits(8), ir.Bits(1)


def put(instance: str, field: str, value: ir.Expr, t: types.Type, call: ast.Call, to: Lowering) -> None:
    """Assign `value` to a field of the packet path's metadata; instance and field are created if necessary."""
    metadata = next((m for m in to.out.metadata if m.name == instance), None)
    if metadata is None:
        metadata = ir.Metadata(instance)
        to.out.metadata.append(metadata)
    if (field, t) not in metadata.fields:
        metadata.fields.append((field, t))
    to.emit(ir.Assign(ir.FieldRef(instance, field, t), fold.make("cast", t, value), call.pos))


def put_data(instance: str, data: list[Value], most_bits: int, call: ast.Call, to: Lowering) -> None:
    """Put `data`, padded to whole bytes, and its length in bytes into fields of an instance."""
    fields = [field for value in data for field in to.externs.fields_of(value, call)]
    widths = [types.width_of(field.type) for field in fields]
    bits = sum(width or 0 for width in widths)
    if None in widths or any(isinstance(field.type, types.Varbit) for field in fields):
        raise to.error(call, "only fields of fixed width can be sent with a copy")
    if bits > most_bits:
        raise to.error(call, f"what is sent with a copy has {bits // 8} bytes, at most {most_bits // 8}")
    put(instance, "emitted", fold.const(1, _FLAG), _FLAG, call, to)
    put(instance, "bytes", fold.const(-(-bits // 8), _BYTES), _BYTES, call, to)
    chunk: list[ir.Expr] = []
    filled = number = 0
    for field in fields:
        left = types.width_of(field.type) or 0
        value = fold.make("cast", ir.Bits(left), field)
        while left:
            take = min(left, _CHUNK - filled)
            chunk.append(fold.slice_(value, left - 1, left - take))
            left -= take
            filled += take
            if filled == _CHUNK:
                put(instance, f"data{number}", joined(chunk), ir.Bits(_CHUNK), call, to)
                chunk, filled, number = [], 0, number + 1
    if filled:
        chunk.append(fold.const(0, ir.Bits(_CHUNK - filled)))
        put(instance, f"data{number}", joined(chunk), ir.Bits(_CHUNK), call, to)
