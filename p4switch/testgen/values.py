"""Scalars that are a number and, where inputs decide it, a formula: concolic execution of expressions.

A number stands for the value in one concrete run; the formula (of z3) says how it depends on the inputs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import z3

from p4switch import ir
from p4switch.compiler import types


class Scalar(NamedTuple):
    """`number` is unsigned, two's complement for signed types; `formula` is None for what no input decides."""

    number: int
    formula: Any = None  # z3.BitVecRef, or z3.BoolRef for bools


ZERO = Scalar(0)


def width(t: types.Type) -> int:
    return t.max_width if isinstance(t, types.Varbit) else types.width_of(t) or 1


def is_signed(t: types.Type) -> bool:
    return isinstance(t, types.Bits) and t.signed


def signed(number: int, bits: int) -> int:
    return number - (1 << bits) if bits and number >> (bits - 1) else number


def formula(value: Scalar, t: types.Type) -> Any:
    """The formula of `value`, a constant where it has none."""
    if value.formula is not None:
        return value.formula
    if isinstance(t, types.Bool):
        return z3.BoolVal(bool(value.number))
    plain = types.width_of(t) is None and not isinstance(t, types.Varbit)  # a literal, by which something is shifted
    return z3.BitVecVal(value.number, max(1, value.number.bit_length()) if plain else width(t))


def typed(value: Scalar, t: types.Type) -> Scalar:
    """`value`, bits of a packet or an input, as a value of type `t`: the formula of a bool is a bool, too."""
    if isinstance(t, types.Bool) and z3.is_bv(value.formula):
        return Scalar(value.number, value.formula == 1)
    return value


def as_bits(z: Any) -> Any:
    """A bit vector, of one bit where `z` is a bool."""
    return z3.If(z, z3.BitVecVal(1, 1), z3.BitVecVal(0, 1)) if isinstance(z, z3.BoolRef) else z


def operate(expr: ir.Op, args: list[Scalar]) -> Scalar:
    """The value of `expr`, whose operands are `args`."""
    number = _number(expr, [a.number for a in args])
    if all(a.formula is None for a in args):
        return Scalar(number)
    return Scalar(number, _formula(expr, args))


def _number(expr: ir.Op, args: list[int]) -> int:
    op, t = expr.op, expr.type
    bits = width(t)
    full = (1 << bits) - 1
    kinds = [a.type for a in expr.args]
    if op == "cast":
        return _cast(args[0], kinds[0], t)
    if op == "slice":
        return args[0] >> args[2] & full
    if op == "++":
        return args[0] << width(kinds[1]) | args[1]
    if op == "?:":
        return args[1] if args[0] else args[2]
    if op == "neg":
        return -args[0] & full
    if op == "~":
        return ~args[0] & full
    if op == "!":
        return int(not args[0])
    if op in ("&&", "||"):
        return int(bool(args[0] and args[1]) if op == "&&" else bool(args[0] or args[1]))
    if op in ("==", "!="):
        return int((args[0] == args[1]) == (op == "=="))
    a, b = args
    if is_signed(kinds[0]):
        a = signed(a, width(kinds[0]))
        b = signed(b, width(kinds[1])) if is_signed(kinds[1]) else b
    if op in ("<", "<=", ">", ">="):
        return int({"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[op])
    if op == "<<":
        return (a << b) & full if b < bits else 0
    if op == ">>":
        return (a >> min(b, bits)) & full
    if op in ("|+|", "|-|"):
        exact = a + b if op == "|+|" else a - b
        low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if is_signed(t) else (0, full)
        return max(low, min(high, exact)) & full
    if op == "/":
        return (a // b if b else 0) & full
    if op == "%":
        return (a % b if b else 0) & full
    return {"+": a + b, "-": a - b, "*": a * b, "&": a & b, "|": a | b, "^": a ^ b}[op] & full


def _cast(number: int, source: types.Type, target: types.Type) -> int:
    if isinstance(target, types.Bool):
        return int(number != 0)
    if is_signed(source):
        number = signed(number, width(source))
    return number & (1 << width(target)) - 1


def _formula(expr: ir.Op, args: list[Scalar]) -> Any:
    op, t = expr.op, expr.type
    bits = width(t)
    kinds = [a.type for a in expr.args]
    z = [formula(a, k) for a, k in zip(args, kinds, strict=True)]
    if op == "cast":
        return _cast_formula(z[0], kinds[0], t)
    if op == "slice":
        return z3.Extract(args[1].number, args[2].number, z[0])
    if op == "++":
        return z3.Concat(z[0], z[1])
    if op == "?:":
        return z3.If(z[0], z[1], z[2])
    if op in ("neg", "~", "!"):
        return {"neg": lambda x: -x, "~": lambda x: ~x, "!": z3.Not}[op](z[0])
    if op in ("&&", "||"):
        return z3.And(*z) if op == "&&" else z3.Or(*z)
    if op in ("==", "!="):
        return z[0] == z[1] if op == "==" else z3.Not(z[0] == z[1])  # z3's solver for bit vectors has no "distinct"
    a, b = z
    negative = is_signed(kinds[0])
    if op in ("<", "<=", ">", ">="):
        if negative:
            return {"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[op]
        return {"<": z3.ULT, "<=": z3.ULE, ">": z3.UGT, ">=": z3.UGE}[op](a, b)
    if op in ("<<", ">>"):
        return _shift(op, a, b, bits, negative)
    if op in ("|+|", "|-|"):
        return _saturating(op, a, b, bits, negative)
    if op == "/":
        return z3.UDiv(a, b)
    if op == "%":
        return z3.URem(a, b)
    return {"+": lambda: a + b, "-": lambda: a - b, "*": lambda: a * b, "&": lambda: a & b, "|": lambda: a | b}.get(
        op, lambda: a ^ b
    )()


def _cast_formula(z: Any, source: types.Type, target: types.Type) -> Any:
    if isinstance(source, types.Bool):
        one, zero = (z3.BitVecVal(n, width(target)) for n in (1, 0))
        return z if isinstance(target, types.Bool) else z3.If(z, one, zero)
    if isinstance(target, types.Bool):
        return z3.Not(z == 0)
    return resize(z, width(target), is_signed(source))


def resize(z: Any, bits: int, negative: bool = False) -> Any:
    """A bit vector with `bits` bits: cut off, or extended."""
    if z.size() > bits:
        return z3.Extract(bits - 1, 0, z)
    if z.size() < bits:
        return (z3.SignExt if negative else z3.ZeroExt)(bits - z.size(), z)
    return z


def _shift(op: str, a: Any, b: Any, bits: int, negative: bool) -> Any:
    """Amounts have a width of their own."""
    wide = max(bits, b.size())
    amount = resize(b, wide)
    value = resize(a, wide, negative)
    if op == "<<":
        shifted = value << amount
    else:
        shifted = value >> amount if negative else z3.LShR(value, amount)
    return resize(shifted, bits)


def _saturating(op: str, a: Any, b: Any, bits: int, negative: bool) -> Any:
    extend = z3.SignExt if negative else z3.ZeroExt
    wide_a, wide_b = extend(2, a), extend(2, b)
    exact = wide_a + wide_b if op == "|+|" else wide_a - wide_b
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if negative else (0, (1 << bits) - 1)
    limit_low, limit_high = z3.BitVecVal(low, bits + 2), z3.BitVecVal(high, bits + 2)
    inside = z3.If(exact < limit_low, limit_low, z3.If(exact > limit_high, limit_high, exact))
    return z3.Extract(bits - 1, 0, inside)


class Variables:
    """The names of variables in formulas. Formulas share parts, so each part is looked at once."""

    def __init__(self) -> None:
        # By z3's number of the part, which is kept: once it is gone, another gets its number.
        self._known: dict[int, tuple[Any, frozenset[str]]] = {}

    def of(self, whole: Any) -> frozenset[str]:
        waiting = [whole]
        while waiting:
            part = waiting[-1]
            if part.get_id() in self._known:
                waiting.pop()
                continue
            parts = part.children()
            missing = [p for p in parts if p.get_id() not in self._known]
            if missing:
                waiting += missing
                continue
            waiting.pop()
            if parts:
                names = frozenset().union(*(self._known[p.get_id()][1] for p in parts))
            else:
                names = frozenset([part.decl().name()] if part.decl().kind() == z3.Z3_OP_UNINTERPRETED else [])
            self._known[part.get_id()] = part, names
        return self._known[whole.get_id()][1]


# Checksums and hashes


def checksum16(data: int, bits: int) -> int:
    """The Internet checksum (RFC 1071) of `bits` bits, filled up with zeros."""
    fill = -bits % 16
    data, bits = data << fill, bits + fill
    total = 0
    while bits:
        bits -= 16
        total += data >> bits & 0xFFFF
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def checksum16_formula(parts: list[tuple[Any, int]]) -> Any:
    """The same of bit vectors with their widths."""
    whole = z3.Concat(*(z for z, _ in parts)) if len(parts) > 1 else parts[0][0]
    bits = sum(b for _, b in parts)
    if bits % 16:
        whole = z3.Concat(whole, z3.BitVecVal(0, -bits % 16))
        bits += -bits % 16
    total = z3.BitVecVal(0, 32)
    for low in range(0, bits, 16):
        total = total + z3.ZeroExt(16, z3.Extract(low + 15, low, whole))
    for _ in range(2):
        total = (total & 0xFFFF) + z3.LShR(total, 16)
    return ~z3.Extract(15, 0, total)


def _crc(data: bytes, polynomial: int, bits: int, initial: int, final: int) -> int:
    """A CRC that takes the lowest bit of a byte first; `polynomial` is reflected."""
    value = initial
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (polynomial if value & 1 else 0)
    return value ^ final & (1 << bits) - 1


def hashed(algorithm: str, data: int, bits: int) -> int | None:
    """What v1model's `algorithm` makes of `bits` bits, filled up with zeros to whole bytes; None if it is not known."""
    octets = (data << -bits % 8).to_bytes(-(-bits // 8), "big")
    if algorithm == "csum16":
        return checksum16(data, bits)
    if algorithm == "crc32":
        return _crc(octets, 0xEDB88320, 32, 0xFFFFFFFF, 0xFFFFFFFF)
    if algorithm == "crc16":
        return _crc(octets, 0xA001, 16, 0, 0)
    if algorithm == "identity":
        return int.from_bytes(octets[:8], "big")
    if algorithm == "xor16":
        padded = octets + b"\0" * (len(octets) % 2)
        result = 0
        for i in range(0, len(padded), 2):
            result ^= padded[i] << 8 | padded[i + 1]
        return result
    return None
