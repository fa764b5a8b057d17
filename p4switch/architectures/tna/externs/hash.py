"""`Hash` and `CRCPolynomial`: bits of fields, as a CRC of any polynomial has them, an exclusive or, or as they are.

The fields are one number, the first the highest; a number that is no whole bytes has zeros in front.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from p4switch import ir
from p4switch.architectures.extern import ExternType, Method
from p4switch.architectures.tna import EXTERNS
from p4switch.architectures.v1model.externs.hash import calculation
from p4switch.bits.checksums import crc_name
from p4switch.compiler import types
from p4switch.compiler.midend import fold
from p4switch.compiler.midend.elaborate import ExternObject
from p4switch.compiler.midend.values import ListValue
from p4switch.engine import cexpr
from p4switch.engine.cexpr import C

if TYPE_CHECKING:
    from p4switch.bmv2.arguments import Arguments
    from p4switch.compiler import ast
    from p4switch.compiler.midend.lowering import Lowering
    from p4switch.compiler.midend.values import Value
    from p4switch.engine.statements import Statements
    from p4switch.fit.flow import Pipeline
    from p4switch.testgen.machine import Machine

_STANDARD = {
    "CRC8": crc_name(8, 0x07, 0, 0, reflected=False),
    "CRC16": crc_name(16, 0x8005, 0, 0, reflected=True),
    "CRC32": crc_name(32, 0x04C11DB7, 0xFFFFFFFF, 0xFFFFFFFF, reflected=True),
    "CRC64": crc_name(64, 0x42F0E1EBA9EA3693, 0, 0, reflected=False),
    # A chip draws a matrix of bits when a program is loaded; this is one that always is the same.
    "RANDOM": crc_name(64, 0xAD93D23594C935A9, 0xFFFFFFFFFFFFFFFF, 0, reflected=True),
    "XOR8": "xor8",
    "XOR16": "xor16",
    "XOR32": "xor32",
    "IDENTITY": "identity",
}
_WIDTHS = {"CRC8": 8, "CRC16": 16, "CRC32": 32, "XOR8": 8, "XOR16": 16, "XOR32": 32}
_LARGEST_BITS = 64


@EXTERNS.register("CRCPolynomial")
class CrcPolynomial(ExternType):
    """Argument of a Hash."""


def _number(extern: ExternObject, name: str) -> int:
    value = extern.args[name]
    assert isinstance(value, ir.Const)
    return value.value


def _polynomial(extern: ExternObject) -> ExternObject | None:
    found = extern.args.get("poly")
    return found if isinstance(found, ExternObject) else None


def algorithm_of(extern: ExternObject) -> str:
    """Return the algorithm of a Hash, by the name that the engine has for it."""
    algorithm, polynomial = extern.args["algo"], _polynomial(extern)
    assert isinstance(algorithm, ir.Const)
    if polynomial is None:
        return _STANDARD[algorithm.member]
    width = types.width_of(polynomial.type_args[0]) or 1
    coefficients, first, last = (_number(polynomial, name) & (1 << width) - 1 for name in ("coeff", "init", "xor"))
    return crc_name(width, coefficients, first, last, reflected=bool(_number(polynomial, "reversed")))


@dataclass(slots=True, eq=False)
class HashGet(ir.ExternOperation):
    """`target` becomes the hash, shifted down by `shift` bits."""

    target: ir.Place
    calculation: ir.Calculation
    shift: int
    span: int | None = None
    primitive = "_Hash_get"
    effects = ir.NOTHING

    @property
    def reads(self) -> tuple[ir.Read, ...]:
        return tuple(self.calculation.inputs)

    @property
    def writes(self) -> tuple[ir.Written, ...]:
        return (self.target,)

    @property
    def arguments(self) -> list[ir.Argument]:
        shift = ir.Const(self.shift, ir.Bits(8))
        return [self.target, ir.Named("calculation", self.calculation.name), shift]

    @classmethod
    def read(cls, arguments: Arguments) -> HashGet:
        return cls(arguments.place(), arguments.calculation(), arguments.number(), arguments.span)

    def emit(self, to: Statements) -> None:
        found = C(f"{to.program.calculation(self.calculation.name)}(sw, p)", "uint64_t")
        to.store(to.x.place(self.target), cexpr.binary(">>", found, str(self.shift)) if self.shift else found)

    def run(self, machine: Machine) -> None:
        hashed = machine.hashed(self.calculation, ("hash", self.span))
        machine.assign(self.target, machine.number(hashed >> self.shift, self.target.type))

    def fit(self, pipeline: Pipeline) -> None:
        label = f"hash {self.calculation.algorithm}"
        pipeline.step(self, self.primitive, kind="hash", label=label, constant=None, ahead=True)


@EXTERNS.register("Hash")
class Hash(ExternType):
    operations = (HashGet,)

    @property
    def methods(self) -> Mapping[str, Method]:
        return {"get": self._get}

    def _get(self, call: ast.Call, extern: ExternObject, to: Lowering) -> Value | None:
        (data,) = to.externs.call_arguments(call)
        t = types.strip_newtype(to.type_of(call))
        bits = types.width_of(t) or 1
        fields = to.externs.fields_of(data, call)
        if any(types.width_of(field.type) is None for field in fields):
            raise to.error(call, "only fields of fixed width can be hashed on this target")
        algorithm = extern.args["algo"]
        assert isinstance(algorithm, ir.Const)
        if algorithm.member == "IDENTITY":
            return fold.make("cast", t, joined([to.tables.simple(field) for field in fields]))
        if bits > _LARGEST_BITS:
            raise to.error(call, f"a hash of {bits} bits is not supported, at most {_LARGEST_BITS}")
        fill = -sum(types.width_of(field.type) or 0 for field in fields) % 8
        padding = [fold.const(0, ir.Bits(fill))] if fill else []
        made = calculation(algorithm_of(extern), ListValue([*padding, *fields]), call, to)
        polynomial = _polynomial(extern)
        width = _WIDTHS.get(algorithm.member, 64)
        if polynomial is not None:
            width = types.width_of(polynomial.type_args[0]) or 1
        shift = width - bits if polynomial is not None and _number(polynomial, "msb") and width > bits else 0
        place = to.externs.result(call, lambda place: HashGet(place, made, shift, call.pos))
        if polynomial is not None and _number(polynomial, "extended") and bits > width:
            assert isinstance(place, ir.FieldRef)
            once = to.copies.saved(fold.slice_(place, width - 1, 0))
            return fold.make("cast", t, joined([once] * -(-bits // width)))
        return place


def joined(fields: list[ir.Expr]) -> ir.Expr:
    """Return the fields, which have fixed widths, as one number, the first the highest."""
    whole: ir.Expr | None = None
    filled = 0
    for field in fields:
        width = types.width_of(field.type) or 1
        filled += width
        number = fold.make("cast", ir.Bits(width), field)
        whole = number if whole is None else fold.make("++", ir.Bits(filled), whole, number)
    assert whole is not None
    return whole
