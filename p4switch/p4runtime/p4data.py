"""Conversion between P4Data (specification, "Representation of Arbitrary P4 Types") and the engine's bytes.

A value is the sequence of its leaves, each in ceil(width / 8) bytes. Leaves are bit<W>, int<W>, bool and enums with an
underlying type. Structs and tuples may be nested. Other types (headers, stacks, varbit) are refused (UNIMPLEMENTED).
"""
from __future__ import annotations

from collections.abc import Callable, Sequence

from p4switch.p4runtime.bytestring import canonical_signed, parse, parse_signed, shortest, size
from p4switch.p4runtime.errors import P4RuntimeError, invalid, out_of_range, unimplemented
from p4switch.p4runtime.messages import Message, p4data_pb2

MAX_DEPTH = 32
MAX_LEAVES = 4096
"""Maximum number of parts of a type, because all parts are visited for every value."""


def encoder(spec: Message, types: Message) -> Callable[[bytes], Message]:
    """Return a function that encodes values as P4Data. The type is examined only once.

    `types` is P4Info's type_info.

    Raises P4RuntimeError (UNIMPLEMENTED) for a type that cannot be represented.
    """
    encode, length = _encoder(spec, types)

    def encode_whole(data: bytes) -> Message:
        assert len(data) == length, f"{len(data)} bytes, not {length}"
        return encode(data)

    return encode_whole


def _encoder(spec: Message, types: Message) -> tuple[Callable[[bytes], Message], int]:
    """Return the encoder of a type, and the length of its values in bytes."""
    spec = _resolve(spec, types)
    kind = spec.WhichOneof("type_spec")
    if (members := _members(spec, types)) is not None:
        return _encoder_of_members(kind, [_encoder(member, types) for member in members])
    p4data = p4data_pb2.P4Data
    width, signed = _leaf(spec, types)

    def encode_signed(data: bytes) -> Message:
        number = int.from_bytes(data, "big")
        return p4data(bitstring=canonical_signed(number - (1 << width) if number >> (width - 1) else number))

    if kind == "bool":
        return (lambda data: p4data(bool=any(data))), size(width)
    if kind == "serializable_enum":
        return (lambda data: p4data(enum_value=shortest(data))), size(width)
    return encode_signed if signed else (lambda data: p4data(bitstring=shortest(data))), size(width)


def _encoder_of_members(
    kind: str, members: Sequence[tuple[Callable[[bytes], Message], int]]
) -> tuple[Callable[[bytes], Message], int]:
    def encode(data: bytes) -> Message:
        value = p4data_pb2.P4Data()
        target = value.struct if kind == "struct" else value.tuple
        target.SetInParent()
        start = 0
        for member, length in members:
            target.members.append(member(data[start : start + length]))
            start += length
        return value

    return encode, sum(length for _, length in members)


def decode(spec: Message, types: Message, value: Message) -> bytes:
    """Return the engine's bytes of a P4Data.

    Raises P4RuntimeError for a value that is not of the type (INVALID_ARGUMENT), a number that does
    not fit (OUT_OF_RANGE), or a type that cannot be represented (UNIMPLEMENTED).
    """
    spec = _resolve(spec, types)
    kind = spec.WhichOneof("type_spec")
    given = value.WhichOneof("data")
    if (members := _members(spec, types)) is not None:
        expected = "struct" if kind == "struct" else "tuple"
        parts = getattr(value, expected).members
        if given != expected or len(parts) != len(members):
            invalid(f"data: expected a {expected} of {len(members)} members, not {given or 'nothing'}")
        return b"".join(decode(member, types, part) for member, part in zip(members, parts, strict=True))
    width, signed = _leaf(spec, types)
    expected = {"bool": "bool", "serializable_enum": "enum_value"}.get(str(kind), "bitstring")
    if given != expected:
        invalid(f"data: expected {expected}, not {given or 'nothing'}")
    if expected == "bool":
        return bytes([value.bool])
    try:
        if signed:
            number = parse_signed(value.bitstring, width) & ((1 << width) - 1)
        else:
            number = parse(getattr(value, expected), width)
    except ValueError as error:
        out_of_range(f"data: {error}")
    return number.to_bytes(size(width), "big")


def check(spec: Message, types: Message) -> None:
    """Raise P4RuntimeError (UNIMPLEMENTED) for a type that cannot be represented."""
    spec = _resolve(spec, types)
    members = _members(spec, types)
    if members is None:
        _leaf(spec, types)
    else:
        for member in members:
            check(member, types)


def leaves(spec: Message, types: Message, where: str) -> list[int | None]:
    """Return the widths of a type's leaves in bits, with None for leaves that cannot be represented.

    This has to be called before any other use of a type. Raises P4RuntimeError (INVALID_ARGUMENT) for
    a type that is not declared, contains itself, or is too large.
    """
    widths: list[int | None] = []

    def walk(spec: Message, around: tuple[tuple[str, str], ...]) -> None:
        kind = str(spec.WhichOneof("type_spec"))
        declared = {"new_type": types.new_types, "struct": types.structs,
                    "serializable_enum": types.serializable_enums}.get(kind)
        if declared is not None:
            name = getattr(spec, kind).name
            if name not in declared:
                invalid(f"{where}: {kind} {name} is not in type_info")
            if (kind, name) in around:
                invalid(f"{where}: {kind} {name} contains itself")
            around = (*around, (kind, name))
        if len(around) > MAX_DEPTH or len(widths) > MAX_LEAVES:
            invalid(f"{where}: expected a type nested at most {MAX_DEPTH} deep, of at most {MAX_LEAVES} values")
        if kind == "new_type" and types.new_types[name].WhichOneof("representation") == "original_type":
            walk(types.new_types[name].original_type, around)
        elif (members := _members(spec, types)) is not None:
            for member in members:
                walk(member, around if declared is not None else (*around, (kind, "")))
        else:
            try:
                widths.append(_leaf(spec, types)[0])
            except P4RuntimeError:
                widths.append(None)

    walk(spec, ())
    return widths


def _resolve(spec: Message, types: Message) -> Message:
    """Return the type that `type` declarations finally stand for. `leaves` has checked that they are not cyclic."""
    while spec.WhichOneof("type_spec") == "new_type":
        new_type = types.new_types[spec.new_type.name]
        if new_type.WhichOneof("representation") != "original_type":
            unimplemented(f"type {spec.new_type.name}: translated types are not supported here")
        spec = new_type.original_type
    return spec


def _members(spec: Message, types: Message) -> list[Message] | None:
    kind = spec.WhichOneof("type_spec")
    if kind == "struct":
        return [member.type_spec for member in types.structs[spec.struct.name].members]
    if kind == "tuple":
        return list(spec.tuple.members)
    return None


def _leaf(spec: Message, types: Message) -> tuple[int, bool]:
    """Return the width of a leaf in bits, and whether it is in two's complement."""
    kind = spec.WhichOneof("type_spec")
    if kind == "bool":
        return 1, False
    if kind == "serializable_enum":
        return types.serializable_enums[spec.serializable_enum.name].underlying_type.bitwidth, False
    if spec.bitstring.HasField("bit"):
        return spec.bitstring.bit.bitwidth, False
    if spec.bitstring.HasField("int"):
        return spec.bitstring.int.bitwidth, True
    return unimplemented(f"values of type {kind} are not supported; expected bit, int, bool, enum, struct or tuple")
