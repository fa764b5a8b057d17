"""Execution of a program for one packet, on numbers and formulas together.

The package defines the path through the blocks of the program (`Package.way`), and this module executes a block. It
does not use the built-in engine.
"""

from __future__ import annotations

import functools
import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import z3

from p4switch import ir
from p4switch.bits.domain import is_signed, width
from p4switch.bits.formulas import resize
from p4switch.compiler import types
from p4switch.ir.graph import tables
from p4switch.stf.draws import DRAW_BITS
from p4switch.testgen.checksums import Checksums
from p4switch.testgen.code import Code
from p4switch.testgen.evaluation import Evaluation
from p4switch.testgen.operations import Operations
from p4switch.testgen.run import Alternative, Decision, Inputs, LongerError, ParserError, Run, StopError
from p4switch.testgen.transitions import Transitions
from p4switch.testgen.values import ZERO, Scalar, as_bits, formula, joined, packet_fields, typed

MAX_STEPS = 50_000
_RESTARTS = 100
MAX_PACKET_BYTES = 1500
ENVIRONMENTS = 4
"""Number of environments, which have different undefined values. A test has the same results in all of them."""

_COLOURS = [0, 1, 2]  # green, yellow, red: all rates unlimited, only the peak rate unlimited, all rates 0


@functools.cache
def unknown_values(number: int, bits: int) -> tuple[int, ...]:
    """Return the value of a run's undefined value `number` in each environment. It is 0 in the first one.

    Each bit is set in some environment. Seven consecutive undefined values, from a multiple of seven on, differ in some
    environment.
    """
    block, place = divmod(number, 7)
    rng = random.Random(block)
    where = [1 + (place + rng.randrange(7)) % 7 for _ in range(bits)]  # bit masks of environments
    return 0, *(sum((w >> e & 1) << i for i, w in enumerate(where)) for e in range(ENVIRONMENTS - 1))


@functools.cache
def _variable(name: str, bits: int) -> Any:
    return z3.BitVec(name, bits)


@dataclass(slots=True)
class _Packet:
    """Packet in the switch: its bytes, and the position of the parser in bits."""

    data: list[Scalar]
    position: int = 0
    front: int = 0  # number of bytes that the switch has put in front

    @property
    def taken(self) -> int:
        """Number of bytes that the parser has consumed, which is at least `front`."""
        return max(self.position // 8, self.front)


class Machine:
    """Execution of `code`. `assume` is called after the parser, and returns whether the packet is allowed."""

    def __init__(
        self,
        code: Code,
        inputs: Inputs,
        environment: int = 0,
        symbolic: bool = True,
        assume: Callable[[Machine], Scalar] | None = None,
        out_of_time: Callable[[], bool] = lambda: False,
    ) -> None:
        self.code, self.program = code, code.program
        self.inputs = inputs
        self.environment = environment
        self.symbolic = symbolic
        self.assume = assume
        self.out_of_time = out_of_time
        self.headers = {i.name: i.type for i in self.program.headers}
        self.stacks = {ref.name: names for ref, names in self.program.stacks}
        self.siblings = {m: members for _, members in self.program.unions for m in members}
        self.registers = {r.name: r for r in self.program.registers}
        self.meters = {m.name: m for m in self.program.meters}
        self.direct = {name for table in tables(self.program) for name in table.direct}
        self.checksums = Checksums(self)
        self._evaluation = Evaluation(self)
        self._operations = Operations(self)

    def run(self) -> Run:
        for _ in range(_RESTARTS):
            self._begin()
            try:
                self._whole_packet()
            except LongerError as longer:
                if longer.length > MAX_PACKET_BYTES:
                    self.out.problem = "the packet becomes too long"
                    return self.out
                self.inputs.numbers["len"] = longer.length
                continue
            except StopError as stop:
                self.out.problem = str(stop)
            except TimeoutError:
                self.out.problem = "there was no time left"
            return self.out
        self.out.problem = "no length of the packet suits all of its parser"
        return self.out

    def _begin(self) -> None:
        self.out = Run(self.inputs)
        self.store: dict[tuple[str, str], Scalar] = {}
        self.valid: set[str] = set()
        self.next: dict[str, int] = {}
        self.length = ZERO  # length of the packet in the switch's count
        self.cells: dict[tuple[str, int], Scalar] = {}  # cells of registers
        self.params: list[Scalar] = []  # parameters of the running action
        self.last_applied: Any = None  # the table that was applied last, and its action
        self.ahead = 0  # statements that can follow
        self.way = self.code.lowered.package.way(self)
        self.marks = self.way.marks()
        self._transitions = Transitions(self)
        self.exited = False  # True if the running control has executed `exit`
        self.part = self.code.first  # name of the running block
        self._parsing = False
        self._steps = self.passes = self._extracts = self._looked_at = self._unknowns = 0

    # Inputs

    def input(self, name: str, bits: int, draw: Callable[[random.Random], int] | None = None) -> Scalar:
        number = self.inputs.number(name, bits, draw)
        if not self.symbolic:
            return Scalar(number)
        variable = self.out.variables.setdefault(name, _variable(name, bits))
        return Scalar(number, variable)

    def undefined(self, bits: int) -> Scalar:
        """Return an undefined value. A test cannot set it, and it differs between environments."""
        self._unknowns += 1
        values = unknown_values(self._unknowns, bits)
        if not self.symbolic:
            return Scalar(values[self.environment])
        name = f"undefined {self._unknowns}"
        variable = _variable(f"?{name}", bits)
        self.out.environment[name] = variable, values
        return Scalar(values[self.environment], variable)

    # Decisions

    def decide(self, outcome: Any, holds: Any, alternatives: tuple[Alternative, ...] = ()) -> None:
        self.out.signature.append(outcome)
        if self.symbolic and (holds is not None or alternatives):
            left = self.code.all | self.code.assertions if self._parsing else self.code.open(self.valid)
            self.out.decisions.append(Decision(holds, alternatives, (frozenset(self.valid), self.last_applied), left))

    def require(self, condition: Scalar) -> None:
        """Stop the run if `condition` does not hold."""
        if condition.formula is not None:
            self.decide("required", condition.formula)
        if not condition.number:
            raise StopError("an input is out of its range")

    def pin(self, value: Scalar) -> int:
        """Fix `value` to its number for the rest of the run, and return the number."""
        if value.formula is not None and self.symbolic:
            known = bool(value.number) if isinstance(value.formula, z3.BoolRef) else value.number
            self.out.decisions.append(Decision(value.formula == known))
        self.out.signature.append(value.number)
        return value.number

    def cover(self, span: int | None) -> None:
        self.out.covered |= self.code.bit(span)

    # The switch

    @staticmethod
    def grown(length: Scalar, count: int) -> Scalar:
        """Return `length`, which has 32 bits, for a packet with `count` more bytes."""
        return Scalar(length.number + count & 0xFFFFFFFF, None if length.formula is None else length.formula + count)

    def _whole_packet(self) -> None:
        port = self.way.port("port")
        self.out.port = port.number
        length = self.inputs.number("len", 11, lambda rng: 60)
        data = [self.input(f"p{i}", 8) for i in range(length)]
        self.out.packet = bytes(s.number for s in data)
        size = Scalar(length, self.out.variables.setdefault("len", _variable("len", 32)) if self.symbolic else None)
        self.port_in, self.length_in = port, size  # port and length of the packet that arrived
        self.way.run(data)

    # Parser

    def parse(self, name: str, data: list[Scalar], front: int = 0) -> tuple[list[Scalar], int]:
        """Run a parser on a packet whose first `front` bytes are the switch's; return the rest and the error."""
        packet = self.packet = _Packet(data, front=front)
        self._parsing = True
        self.part = name
        error = 0
        try:
            self.follow(self.code.blocks[name], [])
        except ParserError as failure:
            error = failure.name if isinstance(failure.name, int) else self.program.errors[failure.name]
        self._parsing = False
        return packet.data[packet.taken :], error

    def control(self, name: str) -> None:
        """Run a control or the statements of a deparser."""
        self.part = name
        self.follow(self.code.blocks[name], [])
        self.exited = False

    def assumed(self) -> None:
        """End the run if the parsed packet violates the user's assumptions."""
        if self.assume is None:
            return
        condition = self.assume(self)
        if condition.number:
            self.decide(1, condition.formula)
            return
        negated = None if condition.formula is None else z3.Not(condition.formula)
        site = Alternative("assume", 0, self.code.all, condition.formula)
        self.decide(0, negated, (site,) if condition.formula is not None else ())
        raise StopError("not what is assumed of packets")

    def bits(self, position: int, count: int) -> Scalar:
        first, last = position // 8, -(-(position + count) // 8)
        octets = self.packet.data[first:last]
        number = 0
        for octet in octets:
            number = number << 8 | octet.number
        low = last * 8 - position - count
        number = number >> low & (1 << count) - 1
        if not self.symbolic or all(o.formula is None for o in octets) or not count:
            return Scalar(number)
        whole = joined([formula(o, types.Bits(8)) for o in octets])
        return Scalar(number, z3.Extract(low + count - 1, low, whole) if count < 8 * len(octets) else whole)

    def need(self, count: int) -> None:
        """Check that the packet has `count` more bits. A packet that is too short is an alternative."""
        key = ("short", self.passes, self._extracts)
        self._extracts += 1
        end = self.packet.position + count
        there = len(self.packet.data) * 8
        if self.passes > 1 and self.part == self.code.first:
            if end > there:
                raise ParserError("PacketTooShort")
            return
        # These are counted in bytes of the packet that arrived. Those that the first parser has read are present.
        # The present packet may have more or fewer bytes in front of them than the packet that arrived.
        others = there // 8 - self.inputs.numbers["len"]
        before = max(self.packet.taken - others, self._looked_at)
        needed = -(-end // 8) - others
        if self.inputs.choices.get(key) and before < needed:
            if self.inputs.numbers["len"] != before:
                raise LongerError(before)
            self.out.signature.append("short")
            raise ParserError("PacketTooShort")
        if end > MAX_PACKET_BYTES * 8:
            raise ParserError("PacketTooShort")
        if end > there:
            raise LongerError(needed)
        self._looked_at = max(self._looked_at, needed)
        if before >= needed:
            return
        reach = self.code.behind(self.part)
        self.decide("long", None, (Alternative(key, 0, reach, None, ((key, True),)),))

    def deparsed(self, name: str) -> list[Scalar]:
        """Return the bytes of the headers that a deparser puts in front of the packet."""
        deparser = next(d for d in self.program.deparsers if d.name == name)
        number, bits = 0, 0
        parts: list[Any] = []
        known = True
        for ref in deparser.order:
            if ref.name not in self.valid:
                continue
            for f, t in packet_fields(ref.type):
                value = self.load(ref.name, f, t)
                count = self.width_of(ref.name, f, t)
                number, bits = number << count | value.number & (1 << count) - 1, bits + count
                if count and self.symbolic:
                    known = known and value.formula is None
                    parts.append(resize(as_bits(formula(value, t)), count))
        octets = number.to_bytes(bits // 8, "big")
        if known or not parts:
            return [Scalar(o) for o in octets]
        whole = joined(parts)
        return [Scalar(o, z3.Extract(bits - 8 * i - 1, bits - 8 * i - 8, whole)) for i, o in enumerate(octets)]

    # Code

    def follow(self, block: ir.Block | None, params: list[Scalar], behind: int = 0) -> None:
        """Execute the code from `block` on. `behind` are the statements that can follow this code."""
        saved, self.params = self.params, params
        while block is not None:
            self.ahead = self.code.reach(block) | behind
            self._steps += 1
            if self._steps > MAX_STEPS:
                raise StopError("too many steps")
            if self.out_of_time():
                raise TimeoutError
            for op in block.ops:
                self.operation(op)
            block = None if block.end is None else block.end.accept(self._transitions)
            if self.exited:
                break
        self.params = saved

    def operation(self, op: ir.Operation) -> None:
        self.cover(op.span)
        op.accept(self._operations)

    # Tables

    def colour(self, key: Any, site: Any) -> int:
        colour: int = self.inputs.choice(key, _COLOURS)
        reach = self.code.behind(self.code.first)
        ways = tuple(Alternative((site, c), 0, reach, None, ((key, c),)) for c in _COLOURS if c != colour)
        self.decide((site, colour), None, ways)
        return colour

    # What operations do to headers

    def width_of(self, header: str, name: str, t: types.Type) -> int:
        """Return the width of a field in bits.

        For a varbit it is the present width, or the width when its header was last valid.
        """
        return self.store.get((header, f"{name}#"), ZERO).number if isinstance(t, types.Varbit) else width(t)

    def bytes_in(self, header: str) -> int:
        """Return the length of the header in a packet."""
        return sum(self.width_of(header, f, t) for f, t in packet_fields(self.headers[header])) // 8

    def grow(self, count: int) -> None:
        """Add `count` bytes to the packet's length in the switch's count."""
        self.length = self.grown(self.length, count)

    def set_valid(self, name: str) -> None:
        if name not in self.valid:
            self.forget(name)
        for sibling in self.siblings.get(name, ()):
            self.valid.discard(sibling)
        self.valid.add(name)

    def forget(self, name: str) -> None:
        """Remove the values of a header's fields, except the length of a varbit."""
        for key in [k for k in self.store if k[0] == name and not k[1].endswith("#")]:
            del self.store[key]

    # Services for externs

    def number(self, number: int, t: types.Type | None = None) -> Scalar:
        """Return a constant, truncated to the width of `t`."""
        return Scalar(number if t is None else number & (1 << width(t)) - 1)

    def resized(self, expr: ir.Expr, t: types.Type) -> Scalar:
        """Return the value of `expr`, truncated or zero-extended to the width of `t`."""
        value, bits = self.value(expr), width(t)
        z = None if value.formula is None else resize(formula(value, expr.type), bits)
        return Scalar(value.number & (1 << bits) - 1, z)

    def inside(self, index: ir.Expr, size: int, problem: str) -> int:
        """Fix `index` and return its number. Stop the run, with the reason `problem`, unless it is below `size`."""
        value = self.value(index)
        self.below(value, size, width(index.type), problem)
        return self.pin(value)

    def flip(self, site: Any, condition: Scalar, own: int, reach: int) -> None:
        """Record the outcome of `condition`. `own` and `reach` are the statements of the other outcome."""
        if condition.formula is not None:
            z, negated = condition.formula, z3.Not(condition.formula)
            holds, other = (z, negated) if condition.number else (negated, z)
            way = Alternative((site, not condition.number), own, reach, other)
            self.decide((site, condition.number), holds, (way,))

    def fail(self, span: int | None) -> None:
        """End the run because an assertion fails. With `span`, its packet is reported as violating that assertion."""
        self.out.failed = span
        raise StopError("an assertion of the program does not hold")

    def sum_without(self, total: ir.Expr, since: int) -> Scalar:
        """Return a one's complement sum minus the bytes that the parser has consumed from byte `since` on."""
        left = self.value(total)
        number, z = left.number, formula(left, total.type)
        taken = self.packet.data[since : self.packet.position // 8]
        for high, low in itertools.zip_longest(taken[::2], taken[1::2], fillvalue=ZERO):
            octets = types.Bits(8)
            number += 0xFFFF ^ (high.number << 8 | low.number)
            number = (number & 0xFFFF) + (number >> 16)
            wide = z3.ZeroExt(1, z) + z3.ZeroExt(1, ~z3.Concat(formula(high, octets), formula(low, octets)))
            z = z3.Extract(15, 0, wide) + z3.ZeroExt(15, z3.Extract(16, 16, wide))
        return Scalar(number, z if self.symbolic else None)

    def drawn(self, t: types.Type, low: ir.Expr, high: ir.Expr, span: int | None) -> Scalar:
        """Return a random number of type `t` from `low` to `high`. A test chooses the number for `span`."""
        if is_signed(t) or width(t) > DRAW_BITS or span is None:  # a test cannot choose it
            return self.undefined(width(t))
        least, most = self.value(low), self.value(high)
        at = self.code.place(span)
        drawn = self.input(f"random {at}", DRAW_BITS, lambda rng: _between(rng, least.number, most.number))
        inside = least.number <= drawn.number <= most.number
        if drawn.formula is not None:
            low_z, high_z = (resize(as_bits(formula(v, e.type)), DRAW_BITS) for v, e in ((least, low), (most, high)))
            within = z3.And(z3.ULE(low_z, drawn.formula), z3.ULE(drawn.formula, high_z))
            if inside:
                self.decide("drawn", within)
            else:
                self.decide("not drawn", z3.Not(within), (Alternative(f"random {at}", 0, self.code.all, within),))
        if not inside:
            raise StopError("a random number outside of its bounds")
        self.out.draws[at] = drawn.number
        z = None if drawn.formula is None else resize(drawn.formula, width(t))
        return typed(Scalar(drawn.number, z), t)

    def below(self, value: Scalar, limit: int, bits: int, problem: str) -> None:
        """Stop the run if `value` is not below `limit`, and record the alternative that it is below."""
        if value.formula is not None and limit < 1 << bits:
            inside = z3.ULT(value.formula, limit)
            if value.number < limit:
                self.decide("inside", inside)
            else:
                self.decide("outside", z3.Not(inside), (Alternative(problem, 0, self.code.all, inside),))
        if value.number >= limit:
            raise StopError(problem)

    # Places and expressions

    def value(self, expr: ir.Expr) -> Scalar:
        """Return the present value of `expr`."""
        return expr.accept(self._evaluation)

    def resolve(self, ref: ir.HeaderRef) -> str:
        """Return the name of the header that `ref` denotes now."""
        return self.element(ref.stack, ref.member, ref.index, ref.where == "last") if ref.stack else ref.name

    def element(self, stack: str, member: str, index: ir.Expr | None, last: bool) -> str:
        """Return the header at `index` of a stack. Without an index, it is the stack's `last` or `next`."""
        elements = self.stacks[stack]
        if index is None:
            number = self.next.get(stack, 0) - last
        else:
            number = self.inside(index, len(elements), f"an index outside of stack '{stack}'")
        if not 0 <= number < len(elements):
            raise StopError(f"an index outside of stack '{stack}'")
        return elements[number] + (f".{member}" if member else "")

    def assign(self, place: ir.Expr, value: Scalar, source: ir.Expr | None = None) -> None:
        """Store `value`, the value of the expression `source`, in a field."""
        header, name = self._place(place)
        if header in self.headers and header not in self.valid:
            return  # a value that is written to an invalid header cannot be read
        self.store[header, name] = value
        if isinstance(place.type, types.Varbit) and isinstance(source, ir.FieldRef):
            self.store[header, f"{name}#"] = self.store.get((source.header, f"{source.name}#"), ZERO)

    def _place(self, place: ir.Expr) -> tuple[str, str]:
        """Return the header and name of a field."""
        if isinstance(place, ir.FieldRef):
            return place.header, place.name
        if isinstance(place, ir.ElemField):
            return self.element(place.stack, place.member, place.index, False), place.name
        assert isinstance(place, ir.LastField)
        return self.element(place.stack, place.member, None, True), place.name

    def load(self, header: str, name: str, t: types.Type) -> Scalar:
        """Return the present value of a field."""
        value = self.store.get((header, name))
        if value is not None and (header in self.valid or header not in self.headers):
            self.way.loaded(header, name)
            return value
        if header not in self.headers:
            return ZERO  # metadata and variables start as zero in both switches
        return typed(self.undefined(width(t)), t)


def _between(rng: random.Random, least: int, most: int) -> int:
    return rng.randint(least, most) if least <= most else least
