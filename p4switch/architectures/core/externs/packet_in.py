"""`packet_in`: the packet that a parser extracts headers from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from p4switch import ir
from p4switch.architectures.core import EXTERNS
from p4switch.architectures.extern import ExternType, Method
from p4switch.compiler import types
from p4switch.compiler.midend.storage import flat_fields, header_field
from p4switch.compiler.midend.values import EXPRS, Ignored

if TYPE_CHECKING:
    from p4switch.tool_types import ExternObject, Lowering, Value, ast


@EXTERNS.register("packet_in")
class PacketIn(ExternType):
    in_parsers = True

    @property
    def methods(self) -> Mapping[str, Method]:
        return {"extract": _extract, "lookahead": _lookahead, "advance": _advance, "length": _length}


def _extract(call: ast.Call, packet: ExternObject, to: Lowering) -> None:
    args = to.externs.call_arguments(call)
    if not args:
        raise to.error(call, "extract() needs the header to extract to")
    target = args[0]
    length: ir.Expr | None = None
    if len(args) > 1:
        assert isinstance(args[1], EXPRS)
        length = args[1]
    t = to.resolve(to.facts.bindings[call].param_types[0])
    if not isinstance(t, types.Header):
        raise to.error(call, f"only headers can be extracted: this is of type {t}")
    varbits = [n for n, ft in flat_fields(t) if isinstance(ft, types.Varbit)]
    if bool(varbits) != (length is not None):
        expected = "a second argument, the length of the varbit" if varbits else "a header with a varbit field"
        raise to.error(call, f"extract of '{t}': expected {expected}")
    if isinstance(target, ir.HeaderRef) and target.index is None and target.where != "last":
        to.emit(ir.Extract(target, length, call.pos))
        return
    place = to.temp(t)
    assert isinstance(place, ir.HeaderRef)
    to.emit(ir.Extract(place, length, call.pos))
    if not isinstance(target, Ignored):
        to.copies.assign(target, place, call.pos)


def _lookahead(call: ast.Call, packet: ExternObject, to: Lowering) -> Value:
    return look_ahead(call, to)


def look_ahead(call: ast.Call, to: Lowering) -> Value:
    """Return the next bits of the packet as a value of the call's type, without consuming them."""
    if not to.site.parses:
        raise to.error(call, "'lookahead' can only be called in a parser")
    t = types.strip_newtype(to.type_of(call))
    place = to.temp(t, "lookahead")
    if isinstance(place, ir.HeaderRef):
        to.emit(ir.SetValid(place, call.pos))
    targets = to.externs.fields_of(place, call)
    if isinstance(place, ir.HeaderRef):
        targets = [v for n, _ in flat_fields(place.type) if isinstance(v := header_field(place, n), EXPRS)]
    offset = 0
    reads: list[ir.Assign] = []
    for target in targets:
        width = types.width_of(target.type)
        if width is None or isinstance(target.type, types.Varbit) or not isinstance(target, ir.FieldRef):
            raise to.error(call, f"a lookahead of type {t} is not supported")
        reads.append(ir.Assign(target, ir.Lookahead(offset, width, target.type), call.pos))
        offset += width
    # The last field is assigned first, so that no field is assigned if the packet is too short.
    for read in reversed(reads):
        to.emit(read)
    return place


def _advance(call: ast.Call, packet: ExternObject, to: Lowering) -> None:
    bits = to.externs.call_arguments(call)[0]
    assert isinstance(bits, EXPRS)
    to.emit(ir.Advance(bits, call.pos))


def _length(call: ast.Call, packet: ExternObject, to: Lowering) -> Value:
    return to.package.packet_length(call)
