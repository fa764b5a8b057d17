"""Match keys and actions between P4Runtime's messages and the engine's form.

Both directions are exact: `encode_*` of the result of `decode_*` is the canonical form of the message.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from p4switch.p4runtime.bytestring import parse, shortest
from p4switch.p4runtime.errors import denied, invalid
from p4switch.p4runtime.messages import Message, p4runtime_pb2
from p4switch.p4runtime.pipeline import Action, Call, Field, Table, Value

if TYPE_CHECKING:
    from p4switch.engine._engine import KeyField


_MOST_CALLS = 4096  # maximum number of a table's decoded actions that are kept for sharing


def number(value: bytes, of: Value, where: str) -> int:
    """Return a byte string as a number.

    Raises P4RuntimeError (INVALID_ARGUMENT) if the number does not fit the value's width.
    """
    try:
        return parse(value, of.bits)
    except ValueError as error:
        invalid(f"{where}: {of.name}: {error}")


def fixed(value: bytes, of: Value, where: str) -> bytes:
    """Check a byte string like `number`, and return it in the engine's form."""
    return number(value, of, where).to_bytes(of.size, "big")


def decode_match(table: Table, matches: Sequence[Message]) -> tuple[KeyField, ...]:
    """Return the engine's key of a table entry.

    Raises P4RuntimeError (INVALID_ARGUMENT) if a match field is unknown, repeated, missing or not valid.
    """
    return _decode(table.name, table.fields, matches, table.position, table.anything, table.required)


def decode_member(name: str, fields: Sequence[Field], matches: Sequence[Message]) -> tuple[KeyField, ...]:
    """Return the engine's key for a member of a value set.

    This is like `decode_match`, but an exact field may have a mask.
    """
    masked = {m.field_id for m in matches if m.WhichOneof("field_match_type") == "ternary"}
    fields = [replace(f, kind="ternary") if f.kind == "exact" and f.id in masked else f for f in fields]
    return _decode(name, fields, matches, {f.id: i for i, f in enumerate(fields)}, tuple(f.anything for f in fields),
                   frozenset(i for i, f in enumerate(fields) if f.kind == "exact"))


def _decode(name: str, fields: Sequence[Field], matches: Sequence[Message], position: object,
            anything: tuple[KeyField, ...], required: frozenset[int]) -> tuple[KeyField, ...]:
    assert isinstance(position, dict)
    key = list(anything)
    seen = set()
    for match in matches:
        index = position.get(match.field_id)
        if index is None:
            invalid(f"{name}: no match field has the id {match.field_id}")
        if index in seen:
            invalid(f"{name}: match field {fields[index].name} is given twice")
        seen.add(index)
        key[index] = _decode_field(fields[index], match, name)
    if not required <= seen:
        missing = ", ".join(fields[i].name for i in sorted(required - seen))
        invalid(f"{name}: exact match fields are missing: {missing}")
    return tuple(key)


def _decode_field(f: Field, match: Message, where: str) -> KeyField:
    kind = match.WhichOneof("field_match_type")
    if kind != f.kind:
        invalid(f"{where}: match field {f.name} is {f.kind}, not {kind or 'unset'}")
    if kind == "exact":
        return (fixed(match.exact.value, f, where), b"")
    if kind == "lpm":
        length = match.lpm.prefix_len
        if not 0 < length <= f.width:
            invalid(f"{where}: {f.name}: prefix length {length}; expected 1 to {f.width} (don't care: no field)")
        value = number(match.lpm.value, f, where)
        if value & (f.maximum >> length):
            invalid(f"{where}: {f.name}: bits beyond the prefix must be 0")
        return (value.to_bytes(f.size, "big"), length)
    if kind == "ternary":
        value, mask = number(match.ternary.value, f, where), number(match.ternary.mask, f, where)
        if not mask:
            invalid(f"{where}: {f.name}: mask is 0; leave out a field for don't care")
        if value & ~mask:
            invalid(f"{where}: {f.name}: bits that the mask excludes must be 0")
        return (value.to_bytes(f.size, "big"), mask.to_bytes(f.size, "big"))
    if kind == "range":
        low, high = number(match.range.low, f, where), number(match.range.high, f, where)
        if low > high:
            invalid(f"{where}: {f.name}: range from {low} down to {high}")
        if low == 0 and high == (1 << f.bits) - 1:
            invalid(f"{where}: {f.name}: range includes every value; leave out a field for don't care")
        return (low.to_bytes(f.size, "big"), high.to_bytes(f.size, "big"))
    value_bytes = fixed(match.optional.value, f, where)
    return (value_bytes, f.maximum.to_bytes(f.size, "big") if f.engine_kind == "ternary" else b"")


def encode_match(fields: Sequence[Field], key: Sequence[KeyField], into: Message) -> None:
    """Add the canonical FieldMatch messages of a key to the repeated field `into`."""
    for f, part in zip(fields, key, strict=True):
        first, second = part
        if first is None or (f.kind != "exact" and part == f.anything):
            continue
        match = into.add(field_id=f.id)
        if f.kind == "exact" and not second:
            match.exact.value = shortest(first)
        elif f.kind == "lpm":
            match.lpm.value = shortest(first)
            match.lpm.prefix_len = second
        elif f.kind in ("exact", "ternary"):
            assert isinstance(second, bytes)
            match.ternary.value = shortest(first)
            match.ternary.mask = shortest(second)
        elif f.kind == "range":
            assert isinstance(second, bytes)
            match.range.low = shortest(first)
            match.range.high = shortest(second)
        else:
            match.optional.value = shortest(first)


def decode_action(table: Table, action: Message, *, default: bool = False) -> Call:
    """Return an action of a table. Equal actions on all devices with the program share one object.

    Raises P4RuntimeError (INVALID_ARGUMENT) if the table does not have the action or if its parameters
    are wrong, and P4RuntimeError (PERMISSION_DENIED) if the action must not be used here.
    """
    content = (action.SerializeToString(), default)
    call = table.calls.get(content)
    if call is None:
        call = _decode_action(table, action, default)
        if len(table.calls) < _MOST_CALLS:
            table.calls[content] = call
    return call


def _decode_action(table: Table, action: Message, default: bool) -> Call:
    ref = table.actions.get(action.action_id)
    if ref is None:
        invalid(f"{table.name}: no action of this table has the id {action.action_id}")
    if not (ref.as_default if default else ref.in_entries):
        denied(f"{table.name}: action {ref.action.name} may not be {'the default' if default else 'in an entry'}")
    return decode_call(ref.action, action.params, table.name)


def decode_call(action: Action, params: Sequence[Message], where: str) -> Call:
    """Return an action with its data in the engine's form.

    Raises P4RuntimeError (INVALID_ARGUMENT) if a parameter is unknown, repeated, missing or does not fit.
    """
    expected = len(action.params)
    args: list[bytes | None] = [None] * expected
    for param in params:
        index = action.position.get(param.param_id)
        if index is None:
            invalid(f"{where}: action {action.name} has no parameter with the id {param.param_id}")
        if args[index] is not None:
            invalid(f"{where}: action {action.name}: parameter {action.params[index].name} is given twice")
        args[index] = fixed(param.value, action.params[index], where)
    if len(params) != expected:
        missing = ", ".join(p.name for p, arg in zip(action.params, args, strict=True) if arg is None)
        invalid(f"{where}: action {action.name}: parameters are missing: {missing}")
    return Call(action, tuple(arg for arg in args if arg is not None))


def encode_action(call: Call, into: Message) -> None:
    """Fill an Action message."""
    into.action_id = call.action.id
    for param, arg in zip(call.action.params, call.args, strict=True):
        into.params.append(p4runtime_pb2.Action.Param(param_id=param.id, value=shortest(arg)))
