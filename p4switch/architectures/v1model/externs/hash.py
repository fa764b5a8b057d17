"""`hash`: a hash of fields, mapped to a range."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from p4switch import ir
from p4switch.architectures.extern import ExternFunction
from p4switch.architectures.v1model import EXTERNS
from p4switch.engine import cexpr

if TYPE_CHECKING:
    from p4switch.tool_types import Lowering, Machine, Pipeline, Statements, Value, ast


@dataclass(slots=True, eq=False)
class Hash(ir.ExternOperation):
    """Hash of fields: `target` is set to `base` plus the hash modulo `size`, or to `base` if `size` is 0."""

    target: ir.Place = field(metadata=ir.WRITTEN)
    base: ir.Expr = field(metadata=ir.READ)
    calculation: ir.Calculation = field(metadata=ir.CALCULATION)
    size: ir.Expr = field(metadata=ir.READ)
    span: int | None = None
    primitive = "modify_field_with_hash_based_offset"
    effects = ir.NOTHING

    def emit(self, to: Statements) -> None:
        place, size = to.x.place(self.target), to.x.data(self.size)
        low = size.lowest(to.em, 64)
        hash_value = cexpr.call(to.program.calculation(self.calculation.name), "uint64_t", "sw", "p")
        if size.constant is None:
            modulus = to.em.temp("uint64_t", low)
            hash_value = cexpr.binary("%", hash_value, cexpr.chosen(modulus, modulus, 1, "uint64_t"))
        elif size.constant & (1 << 64) - 1 <= 1:
            hash_value = cexpr.literal(0)
        elif size.constant & size.constant - 1 == 0:
            hash_value = cexpr.binary("&", hash_value, cexpr.literal((size.constant & (1 << 64) - 1) - 1))
        else:
            hash_value = cexpr.binary("%", hash_value, low)
        to.store(place, cexpr.binary("+", hash_value, to.x.low(self.base, 64)))

    def run(self, machine: Machine) -> None:
        hashed = machine.checksums.hashed(self.calculation, ("hash", self.span))
        modulus, low = machine.value(self.size).number, machine.value(self.base).number
        machine.assign(self.target, machine.number(low + (hashed % modulus if modulus else 0), self.target.type))

    def fit(self, pipeline: Pipeline) -> None:
        constant = self.size.value if isinstance(self.size, ir.Const) else None
        label = f"hash {self.calculation.algorithm}"
        pipeline.step(self, self.primitive, kind="hash", label=label, constant=constant, ahead=True)


def calculation(algorithm: str, data: Value, call: ast.Call, to: Lowering) -> ir.Calculation:
    """Return a new calculation over `data`, an argument of `call`; `algorithm` is BMv2's name."""
    inputs = [_input(value, to) for value in to.externs.fields_of(data, call)]
    new = ir.Calculation(f"calc_{len(to.out.calculations)}", algorithm, inputs, span=call.pos)
    to.out.calculations.append(new)
    return new


def _input(value: ir.Expr, to: Lowering) -> ir.Input:
    """Return a value as a field or constant, the only inputs of calculations."""
    if isinstance(value, (ir.FieldRef, ir.Const)):
        return value
    place = to.temp(value.type)
    to.copies.assign(place, value)
    assert isinstance(place, ir.FieldRef)
    return place


@EXTERNS.register("hash")
class HashFunction(ExternFunction):
    operations = (Hash,)

    def lower(self, call: ast.Call, to: Lowering) -> None:
        result, algorithm, base, data, modulus = to.externs.call_arguments(call)
        if not isinstance(algorithm, ir.Const):
            raise to.error(call, "the hash algorithm has to be a compile-time constant")
        hashing = calculation(algorithm.member, data, call, to)
        low, size = to.externs.scalar_argument(call, 2, base), to.externs.scalar_argument(call, 4, modulus)
        to.externs.into(call, 0, result, lambda place: Hash(place, low, hashing, size, call.pos))
