"""Execution of the operations of P4-16 itself by a `Machine`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import z3

from p4switch import ir
from p4switch.bits.domain import width
from p4switch.compiler import types
from p4switch.compiler.midend.storage import flat_fields
from p4switch.testgen.run import Alternative, ParserError, StopError
from p4switch.testgen.values import ZERO, Scalar, packet_fields, typed

if TYPE_CHECKING:
    from p4switch.testgen.machine import Machine


class Operations(ir.OperationVisitor[None]):
    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    def assign(self, op: ir.Assign) -> None:
        self._machine.assign(op.dst, self._machine.value(op.src), op.src)

    def exit(self, op: ir.Exit) -> None:
        self._machine.exited = True

    def extern(self, op: ir.ExternOperation) -> None:
        op.run(self._machine)

    # Headers

    def set_valid(self, op: ir.SetValid) -> None:
        m = self._machine
        name = m.resolve(op.header)
        if name in m.valid:
            return
        m.set_valid(name)
        for f, t in flat_fields(m.headers[name]):
            if isinstance(t, types.Varbit):
                if m.width_of(name, f, t):  # empty in the built-in switch, the previous value in BMv2
                    raise StopError("the length of a varbit is not defined")
                m.store[name, f"{f}#"] = ZERO
        m.grow(m.bytes_in(name))

    def set_invalid(self, op: ir.SetInvalid) -> None:
        m = self._machine
        name = m.resolve(op.header)
        if name in m.valid:
            m.grow(-m.bytes_in(name))
        m.valid.discard(name)
        m.forget(name)

    def copy_header(self, op: ir.CopyHeader) -> None:
        self._copy(self._machine.resolve(op.dst), self._machine.resolve(op.src))

    def copy_union(self, op: ir.CopyUnion) -> None:
        members = {u.name: names for u, names in self._machine.program.unions}
        self._copy_all(members[op.dst.name], members[op.src.name])

    def copy_stack(self, op: ir.CopyStack) -> None:
        self._copy_all(self._headers_in(op.dst), self._headers_in(op.src))
        self._machine.next[op.dst.name] = self._machine.next.get(op.src.name, 0)

    def _headers_in(self, stack: ir.StackRef) -> list[str]:
        unions = {u.name: members for u, members in self._machine.program.unions}
        return [h for e in self._machine.stacks[stack.name] for h in unions.get(e, [e])]

    def _copy_all(self, targets: list[str], sources: list[str]) -> None:
        self._machine.valid.difference_update(targets)
        for target, source in zip(targets, sources, strict=True):
            self._copy(target, source)

    def _copy(self, target: str, source: str) -> None:
        m = self._machine
        fields = {k[1]: v for k, v in m.store.items() if k[0] == source}
        if source in m.valid:
            m.set_valid(target)
        else:
            m.valid.discard(target)
        m.forget(target)
        m.store |= {(target, f): v for f, v in fields.items()}

    def move_stack(self, op: ir.MoveStack) -> None:
        m = self._machine
        if isinstance(op.stack.element, types.Union):
            raise StopError("moving a stack of unions is not supported here")
        elements = m.stacks[op.stack.name]
        before = {e: (e in m.valid, {k[1]: v for k, v in m.store.items() if k[0] == e}) for e in elements}
        for i, element in enumerate(elements):
            m.valid.discard(element)
            m.forget(element)
            if 0 <= i - op.by < len(elements):
                was_valid, fields = before[elements[i - op.by]]
                if was_valid:
                    m.valid.add(element)
                m.store |= {(element, f): v for f, v in fields.items()}
        m.next[op.stack.name] = max(0, min(len(elements), m.next.get(op.stack.name, 0) + op.by))

    # Parsers

    def advance(self, op: ir.Advance) -> None:
        m = self._machine
        bits = m.pin(m.value(op.bits))
        if bits % 8:
            raise ParserError("ParserInvalidArgument")
        m.need(bits)
        m.packet.position += bits

    def verify(self, op: ir.Verify) -> None:
        m = self._machine
        condition = m.value(op.condition)
        m.flip(id(op), condition, m.code.own(m.code.following(m.part)), m.code.reach(m.code.blocks[m.part]))
        if not condition.number:
            raise ParserError(m.pin(m.value(op.error)))

    def extract(self, op: ir.Extract) -> None:
        m = self._machine
        name = self._target(op.header)
        fields = packet_fields(op.header.type)
        variable = longest = 0
        if op.length is not None:
            longest = next(width(t) for _, t in fields if isinstance(t, types.Varbit))
            variable = self._varbit_length(op, m.value(op.length), longest)
            if variable % 8:
                raise ParserError("ParserInvalidArgument")
        widths = [variable if isinstance(t, types.Varbit) else width(t) for _, t in fields]
        m.need(sum(widths))
        if variable > longest:  # as in simple_switch, the packet's length is checked first
            raise ParserError("HeaderTooShort")
        m.set_valid(name)
        for (f, t), bits in zip(fields, widths, strict=True):
            value = m.bits(m.packet.position, bits)
            if isinstance(t, types.Varbit):
                value = Scalar(value.number)
                m.store[name, f"{f}#"] = Scalar(bits)
            m.store[name, f] = typed(value, t)
            m.packet.position += bits

    def _target(self, header: ir.HeaderRef) -> str:
        """Return the header that is the target of an extraction. `next` of a stack advances."""
        m = self._machine
        if header.where != "next":
            return m.resolve(header)
        index, elements = m.next.get(header.stack, 0), m.stacks[header.stack]
        if index >= len(elements):
            raise ParserError("StackOutOfBounds")
        m.next[header.stack] = index + 1
        return elements[index] + (f".{header.member}" if header.member else "")

    def _varbit_length(self, op: ir.Extract, value: Scalar, longest: int) -> int:
        """Return the width of a varbit in bits. Alternatives are no, some, too many and partial bytes."""
        m = self._machine
        if value.formula is not None:
            z = value.formula
            fits = [z3.ULE(z, longest)] if longest < 1 << z.size() else []
            kinds = [z == 0, z3.And(z3.Not(z == 0), z & 7 == 0, *fits), z3.Not(z & 7 == 0)]
            kinds += [z3.And(z & 7 == 0, z3.Not(fit)) for fit in fits]
            number = value.number
            taken = 2 if number % 8 else 3 if number > longest else 1 if number else 0
            others = ((kind, z) for kind, z in enumerate(kinds) if kind != taken)
            ways = tuple(Alternative((id(op), kind), 0, m.code.all, z) for kind, z in others)
            m.decide((id(op), taken), kinds[taken], ways)
        return m.pin(value)
