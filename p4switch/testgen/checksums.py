"""Checksums and hashes in the execution of a program by a `Machine`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import z3

from p4switch import ir
from p4switch.bits.checksums import INTERNET_CHECKSUM, hashed, internet_checksum
from p4switch.bits.domain import width
from p4switch.bits.formulas import FORMULAS, resize
from p4switch.compiler import types
from p4switch.compiler.midend.storage import flat_fields
from p4switch.testgen.run import Alternative, StopError
from p4switch.testgen.values import Scalar, as_bits, formula, joined

if TYPE_CHECKING:
    from p4switch.testgen.machine import Machine


class Checksums:
    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    def _gathered(
        self, inputs: list[ir.Input], rest: list[Scalar] | None
    ) -> tuple[int, int, list[tuple[Any, int]] | None]:
        """Return the data of a checksum or hash: the number, its width in bits and, if all are known, its formulas."""
        m = self._machine
        number = bits = 0
        parts: list[tuple[Any, int]] | None = [] if m.symbolic else None
        expressions: list[ir.Expr] = []
        for element in inputs:
            if isinstance(element, ir.HeaderRef):
                for f, t in flat_fields(element.type):
                    expressions.append(ir.FieldRef(element.name, f, t))
            else:
                expressions.append(element)
        for expression in expressions:
            value, count = m.value(expression), width(expression.type)
            if isinstance(expression, ir.FieldRef):
                count = m.width_of(expression.header, expression.name, expression.type)
            number, bits = number << count | value.number & (1 << count) - 1, bits + count
            if parts is not None and count:
                parts.append((resize(as_bits(formula(value, expression.type)), count), count))
        for octet in rest or ():
            number, bits = number << 8 | octet.number, bits + 8
            if parts is not None:
                parts.append((formula(octet, types.Bits(8)), 8))
        return number, bits, parts

    def of(self, calculation: ir.Calculation, rest: list[Scalar], valid_only: bool = False) -> Scalar:
        """Return a checksum over fields, and over the payload `rest` if it includes the payload.

        Only the Internet checksum has a formula. With `valid_only`, fields of invalid headers are left out.
        """
        m = self._machine
        absent = set(m.headers).difference(m.valid) if valid_only else ()
        inputs = [i for i in calculation.inputs if not (isinstance(i, ir.FieldRef) and i.header in absent)]
        number, bits, parts = self._gathered(inputs, rest if calculation.with_payload else None)
        result = _number(calculation, number, bits)
        if calculation.algorithm == INTERNET_CHECKSUM and parts:
            return Scalar(result, internet_checksum(FORMULAS, joined([z for z, _ in parts]), bits))
        return Scalar(result)

    def verify(self, rest: list[Scalar]) -> None:
        """Verify the checksums. The result is not a decision of the run, but a value that depends on the inputs."""
        m = self._machine
        wrong = 0
        formulas: list[Any] = []
        for checksum in m.program.checksums:
            header, bits = checksum.target.header, width(checksum.target.type)
            absent = header in m.headers and header not in m.valid  # both switches count it as correct
            if not checksum.verify or absent or not self._applies(checksum, m.code.behind(m.code.first)):
                continue
            computed, there = self.of(checksum.calculation, rest), m.value(checksum.target)
            differs = int(computed.number & (1 << bits) - 1 != there.number)
            if computed.formula is not None or there.formula is not None:
                z = resize(formula(computed, types.Bits(16)), bits) == formula(there, checksum.target.type)
                formulas.append(z3.Not(z))
            elif differs:
                formulas.append(z3.BoolVal(True))
            wrong |= differs
        m.way.wrong_checksum(Scalar(wrong, as_bits(z3.Or(*formulas)) if formulas else None))

    def update(self, rest: list[Scalar]) -> None:
        m = self._machine
        for checksum in m.program.checksums:
            if not checksum.verify and self._applies(checksum, 0):
                computed = self.of(checksum.calculation, rest)
                bits = width(checksum.target.type)
                z = None if computed.formula is None else resize(computed.formula, bits)
                m.assign(checksum.target, Scalar(computed.number & (1 << bits) - 1, z))

    def _applies(self, checksum: ir.Checksum, reach: int) -> bool:
        """Return whether a checksum's condition holds. `reach` are later statements that depend on it."""
        m = self._machine
        value, own = m.value(checksum.condition), m.code.bit(checksum.span)
        gained = 0 if value.number else own
        m.flip(("checksum", checksum.span), value, gained, gained | reach)
        if value.number:
            m.cover(checksum.span)
        return bool(value.number)

    def hashed(self, calculation: ir.Calculation, key: Any) -> int:
        """Return the number of a hash. Other data are an alternative at `key`, whose hash is left to chance."""
        m = self._machine
        number, bits, parts = self._gathered(calculation.inputs, None)
        if parts and any(not z3.is_bv_value(z) for z, _ in parts):
            data = joined([z for z, _ in parts])
            had = (*m.inputs.choices.get(key, ()), number)
            others = z3.And(*(z3.Not(data == z3.BitVecVal(n, bits)) for n in had))
            reach = m.code.all if m.code.again else m.ahead
            way = Alternative(key, 0, reach, others, ((key, had),), by_chance=True)
            m.decide(("hash", number), None, (way,))
        return _number(calculation, number, bits)


def _number(calculation: ir.Calculation, data: int, bits: int) -> int:
    """Return the result of a calculation over `bits` bits of data."""
    result = hashed(calculation.algorithm, data, bits)
    if result is None:
        raise StopError(f"algorithm {calculation.algorithm} is not known here")
    return result
