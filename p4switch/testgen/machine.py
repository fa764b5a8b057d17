"""Running one packet through a program, with formulas beside the numbers.

The path through the blocks of the program is defined by the package (`Package.way`); this module runs a block. It does
not use the built-in engine.
"""

from __future__ import annotations

import functools
import itertools
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import z3

from p4switch import ir
from p4switch.bits.checksums import INTERNET_CHECKSUM, hashed, internet_checksum
from p4switch.bits.domain import is_signed, width
from p4switch.bits.formulas import FORMULAS, resize
from p4switch.compiler import types
from p4switch.compiler.midend.storage import flat_fields
from p4switch.ir.graph import tables
from p4switch.stf.draws import DRAW_BITS
from p4switch.testgen.code import Code
from p4switch.testgen.operations import Operations
from p4switch.testgen.rules import Rules
from p4switch.testgen.run import Alternative, Decision, Entry, Inputs, LongerError, ParserError, Run, StopError
from p4switch.testgen.values import ZERO, Scalar, Variables, as_bits, formula, operate, packet_fields, typed

MAX_STEPS = 50_000
_RESTARTS = 100
MAX_PACKET_BYTES = 1500
ENVIRONMENTS = 4
"""Number of runs with different undefined values that a test has to survive unchanged."""

_COLOURS = [0, 1, 2]  # green, yellow, red: rates that allow everything, the peak rate's or nothing
_OPEN_KINDS = ("lpm", "ternary", "range", "optional")  # of keys that may match anything


@functools.cache
def unknown_values(number: int, bits: int) -> tuple[int, ...]:
    """Return the value that a run's undefined value number `number` takes in each environment; zero in the first one.

    Each bit is set in some environment, and the values of seven in a row, beginning with a multiple of seven, differ in
    some environment.
    """
    block, place = divmod(number, 7)
    rng = random.Random(block)
    where = [1 + (place + rng.randrange(7)) % 7 for _ in range(bits)]  # the environments in which it is set
    return 0, *(sum((w >> e & 1) << i for i, w in enumerate(where)) for e in range(ENVIRONMENTS - 1))


@functools.cache
def _variable(name: str, bits: int) -> Any:
    return z3.BitVec(name, bits)


@dataclass(slots=True)
class _Packet:
    """Packet in the switch: its bytes, and the position of the parser in bits."""

    data: list[Scalar]
    position: int = 0
    front: int = 0  # bytes that the switch has put in front, which are always there

    @property
    def taken(self) -> int:
        """Bytes that the parser has consumed, at least those in front."""
        return max(self.position // 8, self.front)


class Machine:
    """Execution of `code`; `assume` gets the machine after the parser and returns a bool about the packet."""

    def __init__(
        self,
        code: Code,
        inputs: Inputs,
        environment: int = 0,
        symbolic: bool = True,
        assume: Callable[[Machine], Scalar] | None = None,
        deadline: Callable[[], bool] = lambda: False,
    ) -> None:
        self.code, self.program = code, code.program
        self.inputs = inputs
        self.environment = environment
        self.symbolic = symbolic
        self.assume = assume
        self._deadline = deadline
        self.headers = {i.name: i.type for i in self.program.headers}
        self.stacks = {ref.name: names for ref, names in self.program.stacks}
        self.siblings = {m: members for _, members in self.program.unions for m in members}
        self.registers = {r.name: r for r in self.program.registers}
        self.meters = {m.name: m for m in self.program.meters}
        self.direct = {name for table in tables(self.program) for name in table.direct}
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
        self.length = ZERO  # of the packet, as the switch keeps count
        self.cells: dict[tuple[str, int], Scalar] = {}  # of registers
        self._found: dict[str, dict[tuple[int | None, ...], int | None]] = {}
        self._looked_for: dict[str, dict[tuple[int, ...], bool]] = {}  # of value sets: what was looked for
        self._args: dict[tuple[str, tuple[int | None, ...]], list[Scalar]] = {}
        self._applied: dict[str, int] = {}
        self._never_hit: set[str] = set()  # tables whose keys a test cannot set, and entries have to say
        self._params: list[Scalar] = []
        self._did: Any = None
        self._ahead = 0  # the statements that can follow
        self._way = self.code.lowered.package.way(self)
        self.marks = self._way.marks()
        self.exited = False  # the control that is run
        self.part = self.code.first  # the block of the program that is run
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
        """Return an undefined value, which a test cannot set and which differs between environments."""
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
            self.out.decisions.append(Decision(holds, alternatives, (frozenset(self.valid), self._did), left))

    def require(self, condition: Scalar) -> None:
        """Stop a run in which `condition` does not hold."""
        if condition.formula is not None:
            self.decide("required", condition.formula)
        if not condition.number:
            raise StopError("an input is out of its range")

    def pin(self, value: Scalar) -> int:
        """Return the number of `value`, which is fixed from here on."""
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
        port = self._way.port("port")
        self.out.port = port.number
        length = self.inputs.number("len", 11, lambda rng: 60)
        data = [self.input(f"p{i}", 8) for i in range(length)]
        self.out.packet = bytes(s.number for s in data)
        size = Scalar(length, self.out.variables.setdefault("len", _variable("len", 32)) if self.symbolic else None)
        self.port_in, self.length_in = port, size  # of the packet that arrived
        self._way.run(data)

    # Parser

    def parse(self, name: str, data: list[Scalar], front: int = 0) -> tuple[list[Scalar], int]:
        """Run a parser over a packet with `front` bytes of the switch in front; return the rest and the error."""
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
        """End a run whose packet, once parsed, violates the user's assumptions."""
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
        parts = [formula(o, types.Bits(8)) for o in octets]
        whole = z3.Concat(*parts) if len(parts) > 1 else parts[0]
        return Scalar(number, z3.Extract(low + count - 1, low, whole) if count < 8 * len(octets) else whole)

    def need(self, count: int) -> None:
        """Check that `count` more bits are present; a short packet is an alternative."""
        key = ("short", self.passes, self._extracts)
        self._extracts += 1
        end = self.packet.position + count
        there = len(self.packet.data) * 8
        if self.passes > 1 and self.part == self.code.first:
            if end > there:
                raise ParserError("PacketTooShort")
            return
        # In bytes of the packet that arrived, of which the first parser has looked at some: they are there. Other
        # bytes stand in front of them, fewer or more than the packet had there.
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
        """Return the headers that the deparser with that name puts in front of the packet."""
        deparser = next(d for d in self.program.deparsers if d.name == name)
        number, bits = 0, 0
        parts: list[Any] = []
        known = True
        for ref in deparser.order:
            if ref.name not in self.valid:
                continue
            for f, t in packet_fields(ref.type):
                value = self._load(ref.name, f, t)
                count = self.width_of(ref.name, f, t)
                number, bits = number << count | value.number & (1 << count) - 1, bits + count
                if count and self.symbolic:
                    known = known and value.formula is None
                    parts.append(resize(as_bits(formula(value, t)), count))
        octets = number.to_bytes(bits // 8, "big")
        if known or not parts:
            return [Scalar(o) for o in octets]
        whole = z3.Concat(*parts) if len(parts) > 1 else parts[0]
        return [Scalar(o, z3.Extract(bits - 8 * i - 1, bits - 8 * i - 8, whole)) for i, o in enumerate(octets)]

    # Checksums

    def _gathered(self, inputs: list[Any], rest: list[Scalar] | None) -> tuple[int, int, list[tuple[Any, int]] | None]:
        """Return the number, bits and, if all of it is known, the formulas of the data of a checksum or hash."""
        number = bits = 0
        parts: list[tuple[Any, int]] | None = [] if self.symbolic else None
        expressions: list[ir.Expr] = []
        for element in inputs:
            if isinstance(element, ir.HeaderRef):
                for f, t in flat_fields(element.type):
                    expressions.append(ir.FieldRef(element.name, f, t))
            else:
                expressions.append(element)
        for expression in expressions:
            value, count = self.value(expression), width(expression.type)
            if isinstance(expression, ir.FieldRef):
                count = self.width_of(expression.header, expression.name, expression.type)
            number, bits = number << count | value.number & (1 << count) - 1, bits + count
            if parts is not None and count:
                parts.append((resize(as_bits(formula(value, expression.type)), count), count))
        for octet in rest or ():
            number, bits = number << 8 | octet.number, bits + 8
            if parts is not None:
                parts.append((formula(octet, types.Bits(8)), 8))
        return number, bits, parts

    def checksum(self, calculation: ir.Calculation, rest: list[Scalar], valid_only: bool = False) -> Scalar:
        """Return a checksum of fields, and of `rest` where the payload is in it; the Internet's has a formula.

        `valid_only`: fields of headers that are not valid are left out.
        """
        absent = set(self.headers).difference(self.valid) if valid_only else ()
        inputs = [i for i in calculation.inputs if not (isinstance(i, ir.FieldRef) and i.header in absent)]
        number, bits, parts = self._gathered(inputs, rest if calculation.with_payload else None)
        result = hashed(calculation.algorithm, number, bits)
        if result is None:
            raise StopError(f"checksum {calculation.algorithm} is not known here")
        if calculation.algorithm == INTERNET_CHECKSUM and parts:
            return Scalar(result, internet_checksum(FORMULAS, _joined(parts), bits))
        return Scalar(result)

    def verify_checksums(self, rest: list[Scalar]) -> None:
        """Verify the checksums; whether one is wrong is an input of the test, and not a decision."""
        wrong = 0
        formulas: list[Any] = []
        for checksum in self.program.checksums:
            header, bits = checksum.target.header, width(checksum.target.type)
            absent = header in self.headers and header not in self.valid  # such are right in both switches
            if not checksum.verify or absent or not self._applies(checksum, self.code.behind(self.code.first)):
                continue
            computed, there = self.checksum(checksum.calculation, rest), self.value(checksum.target)
            differs = int(computed.number & (1 << bits) - 1 != there.number)
            if computed.formula is not None or there.formula is not None:
                z = resize(formula(computed, types.Bits(16)), bits) == formula(there, checksum.target.type)
                formulas.append(z3.Not(z))
            elif differs:
                formulas.append(z3.BoolVal(True))
            wrong |= differs
        self._way.wrong_checksum(Scalar(wrong, as_bits(z3.Or(*formulas)) if formulas else None))

    def update_checksums(self, rest: list[Scalar]) -> None:
        for checksum in self.program.checksums:
            if not checksum.verify and self._applies(checksum, 0):
                computed = self.checksum(checksum.calculation, rest)
                bits = width(checksum.target.type)
                z = None if computed.formula is None else resize(computed.formula, bits)
                self.assign(checksum.target, Scalar(computed.number & (1 << bits) - 1, z))

    def _applies(self, checksum: ir.Checksum, reach: int) -> bool:
        """Return whether the condition holds; `reach` are the statements behind that depend on it."""
        value, own = self.value(checksum.condition), self.code.bit(checksum.span)
        gained = 0 if value.number else own
        self.flip(("checksum", checksum.span), value, gained, gained | reach)
        if value.number:
            self.cover(checksum.span)
        return bool(value.number)

    # Code

    def follow(self, block: ir.Block | None, params: list[Scalar], behind: int = 0) -> None:
        """Execute `block` to its end; `behind` are the statements that can follow, which it does not know."""
        saved, self._params = self._params, params
        while block is not None:
            self._ahead = self.code.reach(block) | behind
            self._steps += 1
            if self._steps > MAX_STEPS:
                raise StopError("too many steps")
            if self._deadline():
                raise TimeoutError
            for op in block.ops:
                self.operation(op)
            end = block.end
            if isinstance(end, ir.Goto):
                block = end.target
            elif isinstance(end, ir.Branch):
                self.cover(end.span)
                value = self.value(end.condition)
                taken, other = (end.if_true, end.if_false) if value.number else (end.if_false, end.if_true)
                if value.formula is not None:
                    self.flip(id(block), value, self.code.own(other), self.code.reach(other))
                else:
                    self.out.signature.append(value.number)
                block = taken
            elif isinstance(end, ir.Apply):
                block = self._apply(end)
                if self.exited:
                    break
            elif isinstance(end, ir.Select):
                block = self._select(end)
            else:
                block = None
        self._params = saved

    def operation(self, op: ir.Operation) -> None:
        self.cover(op.span)
        op.accept(self._operations)

    def _select(self, end: ir.Select) -> ir.Block | None:
        keys = [self.value(k) for k in end.keys]
        rules = self.code.cases(end)
        first = rules.first([k.number for k in keys])
        # The rule, whether it is one and no value set or end, the target, and what a value set decides.
        options: list[tuple[int, bool, ir.Block | None, tuple[Any, ...]]] = []
        taken: int | None = None
        index = 0
        for case, target in end.cases:
            if isinstance(case, str):
                matches, asked = self._in_value_set(case, keys, end, taken is None)
                if matches or asked:
                    options.append((index, False, target, asked))
            else:
                matches = index == first
                options.append((index, True, target, ()))
                index += 1
            if matches and taken is None:
                taken = len(options) - 1
            if taken is not None and (not self.symbolic or (options[-1][1] and rules.always(index - 1))):
                break
        else:  # parsing ends without an error, as in both switches
            options.append((index, False, None, ()))
        if taken is None:
            taken = len(options) - 1
        self._decide_case((id(end), taken), rules, keys, options, taken)
        return options[taken][2]

    def _decide_case(
        self,
        outcome: tuple[int, int],
        rules: Rules,
        keys: list[Scalar],
        options: list[tuple[int, bool, ir.Block | None, tuple[Any, ...]]],
        taken: int,
    ) -> None:
        ways: list[Alternative] = []
        holds: Any = None
        outside: list[tuple[Any, bool]] = []  # of the value set that the packet's values are in
        for i, (index, is_rule, target, asked) in enumerate(options if self.symbolic else ()):
            whole = functools.partial(rules.taken if is_rule else rules.missed, index, keys, self._deadline)
            choices = [*outside, *((key, True) for key in asked)]
            decided = not index and (not is_rule or rules.always(0))
            if i == taken:
                holds = None if decided else whole()
                outside = [(key, False) for key in asked]
            elif (not decided or choices) and (not is_rule or rules.possible(index, keys)):
                when = None if decided or (i < taken and asked) else whole  # what came before does not match as it is
                own = self.code.own(target)
                reach = self.code.behind(self.part) if target is None else self.code.reach(target)
                ways.append(Alternative((outcome[0], i), own, reach, when, tuple(choices)))
        self.decide(outcome, holds, tuple(ways))

    def _in_value_set(self, name: str, keys: list[Scalar], end: ir.Select, asked: bool) -> tuple[bool, tuple[Any, ...]]:
        """Return whether the numbers of `keys` are in the value set, and the choice that decides it, if there is one.

        Without `asked`, an earlier case matches them, so that the set may contain them or not.
        """
        numbers = tuple(k.number for k in keys)
        known = self._looked_for.setdefault(name, {})
        if numbers in known:
            return known[numbers], ()
        size = next(v.size for v in self.program.value_sets if v.name == name)
        if sum(known.values()) >= size:
            return False, ()
        key = ("value set", name, len(known))
        if not asked:
            return False, (key,)
        known[numbers] = self.inputs.choice(key, [False, True])
        if known[numbers]:
            whole = 0
            for number, k in zip(numbers, end.keys, strict=True):
                whole = whole << width(k.type) | number
            self.out.members.append((name, whole))
        return known[numbers], (key,)

    # Tables

    def _apply(self, end: ir.Apply) -> ir.Block | None:
        table = end.table
        keys = [self.value(k.target) for k in table.keys]
        index, args = self._look_up(table, keys, end)
        if index is None:
            action, default = None, table.default
            chosen = self._default(table, end)
            if chosen is not None:
                action, args = chosen
            elif default is not None:
                action = default.action
                args = [Scalar(a & (1 << width(t)) - 1) for a, (_, t) in zip(default.args, action.params, strict=True)]
        else:
            action = table.actions[index]
        self._did = table.name, None if action is None else action.name
        if table.meter:
            result = next(m.result for m in self.program.meters if m.name == table.meter)
            assert result is not None
            self.assign(result, self._entry_colour(table, keys, end) if index is not None else ZERO)
        if table.entry is not None:
            entry = table.room if index is None else self._entry_number(table, tuple(k.number for k in keys))
            self.assign(table.entry, self.number(entry))
        if action is not None:
            self.follow(action.body, args, self._ahead)
        labels = [label for label in end.on if isinstance(label, bool)]
        hit = index is not None
        if labels:
            return next((b for label, b in end.on.items() if label is hit), end.default)
        number = table.actions.index(action) if action in table.actions else None
        return end.default if number is None else end.on.get(number, end.default)

    def _entry_number(self, table: ir.Table, numbers: tuple[int, ...]) -> int:
        """Return the number of the entry that was hit, counted from 0."""
        if table.entries is not None:
            return self.code.entries(table)[1].first(list(numbers))
        hits = (pattern for pattern, entry_hit in self._found[table.name].items() if entry_hit is not None)
        return next(i for i, pattern in enumerate(hits) if _fits(pattern, numbers))

    def _entry_colour(self, table: ir.Table, keys: list[Scalar], end: ir.Apply) -> Scalar:
        """Return the colour of the direct meter of the entry that was hit; constant entries have no rates."""
        numbers = [k.number for k in keys]
        ours = (e for e in self.out.entries if e.table is table)
        entry = next((e for e in ours if _fits([n for _, n in e.keys], numbers)), None)
        if entry is None:
            return ZERO
        entry.colour = self.colour(("meter", table.meter, *numbers), (id(end), "meter"))
        return Scalar(entry.colour)

    def colour(self, key: Any, site: Any) -> int:
        colour: int = self.inputs.choice(key, _COLOURS)
        reach = self.code.behind(self.code.first)
        ways = tuple(Alternative((site, c), 0, reach, None, ((key, c),)) for c in _COLOURS if c != colour)
        self.decide((site, colour), None, ways)
        return colour

    def _follow(self, end: ir.Apply, index: int | None, hit: bool) -> tuple[int, int]:
        """Return the statements of action `index` of the table, and those that can be reached through it."""
        if any(isinstance(label, bool) for label in end.on):
            target = next((b for label, b in end.on.items() if label is hit), end.default)
        else:
            target = end.default if index is None else end.on.get(index, end.default)
        body = None if index is None else end.table.actions[index].body
        own = self.code.reach(body)
        return own | self.code.own(target), own | self.code.reach(target)

    def _look_up(self, table: ir.Table, keys: list[Scalar], end: ir.Apply) -> tuple[int | None, list[Scalar]]:
        count = self._applied[table.name] = self._applied.get(table.name, 0) + 1
        if table.entries is not None:
            return self._constant_entries(table, keys, end)
        if not table.keys:
            return None, []
        numbers = tuple(k.number for k in keys)
        known = self._found.setdefault(table.name, {})
        for pattern, outcome in known.items():
            if _fits(pattern, numbers):
                self.out.signature.append((table.name, outcome))
                return outcome, self._args.get((table.name, pattern), [])
        loose = self._unset(table, keys, count) if not known else ()
        options: list[int | None] = [None, *self.code.usable(table, "defaultonly")]
        if any(table.keys[i].match_kind not in _OPEN_KINDS for i in loose):  # no entry is hit on every switch
            self._never_hit.add(table.name)
            options = [None]
        key = ("table", table.name, count)
        outcome = self.inputs.choice(key, options)
        if len(known) >= table.size or outcome not in options:
            outcome = None
        ways = []
        for option in options:
            if option != outcome:
                default = None if option is not None or table.default is None else table.default.action
                shown = option if default is None or default not in table.actions else table.actions.index(default)
                own, reach = self._follow(end, shown, option is not None)
                ways.append(Alternative((table.name, option), own, reach, None, ((key, option),)))
        self.decide((table.name, outcome, numbers), None, tuple(ways))
        if outcome is None:
            known[numbers] = outcome
            return None, []
        pattern = tuple(None if i in loose else number for i, number in enumerate(numbers))
        known[pattern] = outcome
        action = table.actions[outcome]
        args = self._arguments(action, f"{table.name} {count}")
        self._args[table.name, pattern] = args
        entry = Entry(table, list(zip(table.keys, pattern, strict=True)), action, [a.number for a in args])
        self.out.entries.append(entry)
        return outcome, args

    def _unset(self, table: ir.Table, keys: list[Scalar], count: int) -> tuple[int, ...]:
        """Return the keys that a test cannot set; they are left to runs without formulas."""
        key = ("unset", table.name, count)
        if self.symbolic:
            names = Variables()
            self.inputs.choices[key] = tuple(
                i
                for i, value in enumerate(keys)
                if value.formula is not None and self.out.environment
                if any(name.startswith("?") for name in names.of(value.formula))
            )
        unset: tuple[int, ...] = self.inputs.choices.get(key, ())
        return unset

    def _arguments(self, action: ir.Action, name: str) -> list[Scalar]:
        args: list[Scalar] = []
        for i, (_, t) in enumerate(action.params):
            if width(t) > 0 and types.width_of(t) != 0:
                args.append(typed(self.input(f"data {name} {action.name} {i}", width(t)), t))
            else:
                args.append(ZERO)
        return args

    def _default(self, table: ir.Table, end: ir.Apply) -> tuple[ir.Action, list[Scalar]] | None:
        """Return a default action other than the program's, for actions that no entry can have."""
        if table.default_const or table.profile is not None or table.default is None:
            return None
        by_entry = table.keys and table.entries is None and table.name not in self._never_hit
        entries = set(self.code.usable(table, "defaultonly")) if by_entry else set()
        others = [i for i in self.code.usable(table, "tableonly") if i not in entries]
        if not others or (len(others) == 1 and table.actions[others[0]] is table.default.action and not others[0]):
            return None
        key = ("default", table.name)
        chosen = self.inputs.choice(key, [None, *others])
        ways = []
        for option in others:
            if option != chosen:
                own, reach = self._follow(end, option, False)
                ways.append(Alternative((table.name, "default", option), own, reach, None, ((key, option),)))
        self.decide((table.name, "default", chosen), None, tuple(ways))
        if chosen is None:
            return None
        action = table.actions[chosen]
        args = self._arguments(action, f"{table.name} default")
        self.out.defaults[table.name] = table, action, [a.number for a in args]
        return action, args

    def _constant_entries(self, table: ir.Table, keys: list[Scalar], end: ir.Apply) -> tuple[int | None, list[Scalar]]:
        entries, rules = self.code.entries(table)
        taken = rules.first([k.number for k in keys])
        ways: list[Alternative] = []
        holds: Any = None
        if self.symbolic and any(key.formula is not None for key in keys):
            holds = self._entry_taken(rules, taken, keys)
            for i, entry in enumerate([*entries, None]):
                if i != taken and (entry is None or rules.possible(i, keys)):
                    index = None if entry is None else table.actions.index(entry.call.action)
                    own, reach = self._follow(end, index, entry is not None)
                    effect = functools.partial(self._entry_taken, rules, i, keys)
                    ways.append(Alternative((table.name, "entry", i), own, reach, effect))
        self.decide((table.name, "entry", taken), holds, tuple(ways))
        if taken == len(entries):
            return None, []
        call = entries[taken].call
        args = [Scalar(a & (1 << width(t)) - 1) for a, (_, t) in zip(call.args, call.action.params, strict=True)]
        return table.actions.index(call.action), args

    def _entry_taken(self, rules: Rules, index: int, keys: list[Scalar]) -> Any:
        """Return the formula for a hit of the entry, or for a miss if `index` is the number of entries."""
        return (rules.missed if index == len(rules) else rules.taken)(index, keys, self._deadline)

    # What operations do to headers

    def width_of(self, header: str, name: str, t: types.Type) -> int:
        """Return the width of a field in bits.

        For a varbit it is the present width, or that when its header was last valid.
        """
        return self.store.get((header, f"{name}#"), ZERO).number if isinstance(t, types.Varbit) else width(t)

    def bytes_in(self, header: str) -> int:
        """Return the length of the header in a packet."""
        return sum(self.width_of(header, f, t) for f, t in packet_fields(self.headers[header])) // 8

    def grow(self, count: int) -> None:
        """Add `count` bytes to the packet's length as counted by the switch."""
        self.length = self.grown(self.length, count)

    def set_valid(self, name: str) -> None:
        if name not in self.valid:
            self.forget(name)
        for sibling in self.siblings.get(name, ()):
            self.valid.discard(sibling)
        self.valid.add(name)

    def forget(self, name: str) -> None:
        """Forget the values of a header's fields; the length of a varbit is kept."""
        for key in [k for k in self.store if k[0] == name and not k[1].endswith("#")]:
            del self.store[key]

    # Services for externs

    def number(self, number: int, t: types.Type | None = None) -> Scalar:
        """Return a value that no input determines, truncated to the width of `t`."""
        return Scalar(number if t is None else number & (1 << width(t)) - 1)

    def resized(self, expr: ir.Expr, t: types.Type) -> Scalar:
        """Return the value of `expr`, truncated or zero-extended to the width of `t`."""
        value, bits = self.value(expr), width(t)
        z = None if value.formula is None else resize(formula(value, expr.type), bits)
        return Scalar(value.number & (1 << bits) - 1, z)

    def inside(self, index: ir.Expr, size: int, problem: str) -> int:
        """Return the number of `index`; stop a run in which it is not below `size`, with `problem` as the reason."""
        value = self.value(index)
        self.below(value, size, width(index.type), problem)
        return self.pin(value)

    def flip(self, site: Any, condition: Scalar, own: int, reach: int) -> None:
        """Record which way `condition` goes; `own` and `reach` are the statements of the other way."""
        if condition.formula is not None:
            z, negated = condition.formula, z3.Not(condition.formula)
            holds, other = (z, negated) if condition.number else (negated, z)
            way = Alternative((site, not condition.number), own, reach, other)
            self.decide((site, condition.number), holds, (way,))

    def fail(self, span: int | None) -> None:
        """End a run in which an assertion fails; with `span`, the run is a packet that violates the assertion there."""
        self.out.failed = span
        raise StopError("an assertion of the program does not hold")

    def hashed(self, calculation: ir.Calculation, key: Any) -> int:
        """Return the number of a hash; different data are an alternative at `key`, whose result is left to chance."""
        number, bits, parts = self._gathered(calculation.inputs, None)
        if parts and any(not z3.is_bv_value(z) for z, _ in parts):
            data = _joined(parts)
            had = (*self.inputs.choices.get(key, ()), number)
            others = z3.And(*(z3.Not(data == z3.BitVecVal(n, bits)) for n in had))
            reach = self.code.all if self.code.again else self._ahead
            way = Alternative(key, 0, reach, others, ((key, had),), by_chance=True)
            self.decide(("hash", number), None, (way,))
        result = hashed(calculation.algorithm, number, bits)
        if result is None:
            raise StopError(f"hash {calculation.algorithm} is not known here")
        return result

    def sum_without(self, total: ir.Expr, since: int) -> Scalar:
        """Return a one's complement sum minus the bytes that the parser has consumed after `since`."""
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
        """Return a random number of type `t` from `low` to `high`, which tests choose for the statement at `span`."""
        if is_signed(t) or width(t) > DRAW_BITS or span is None:  # nothing says what it is
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
        """Stop a run in which `value` is not below `limit`; for other runs, that is an alternative."""
        if value.formula is not None and limit < 1 << bits:
            inside = z3.ULT(value.formula, limit)
            if value.number < limit:
                self.decide("inside", inside)
            else:
                self.decide("outside", z3.Not(inside), (Alternative(problem, 0, self.code.all, inside),))
        if value.number >= limit:
            raise StopError(problem)

    # Places and expressions

    def resolve(self, ref: ir.HeaderRef) -> str:
        if not ref.stack:
            return ref.name
        elements = self.stacks[ref.stack]
        if ref.index is not None:
            value = self.value(ref.index)
            self.below(value, len(elements), width(ref.index.type), f"an index outside of stack '{ref.stack}'")
            index = self.pin(value)
        else:
            index = self.next.get(ref.stack, 0) - (ref.where == "last")
        if not 0 <= index < len(elements):
            raise StopError(f"an index outside of stack '{ref.stack}'")
        return elements[index] + (f".{ref.member}" if ref.member else "")

    def _place(self, place: ir.Expr) -> tuple[str, str]:
        if isinstance(place, ir.FieldRef):
            return place.header, place.name
        assert isinstance(place, (ir.LastField, ir.ElemField))
        index = place.index if isinstance(place, ir.ElemField) else None
        ref = ir.HeaderRef(
            None,  # type: ignore[arg-type]
            stack=place.stack,
            index=index,
            where="last",
            member=place.member,
        )
        return self.resolve(ref), place.name

    def assign(self, place: ir.Expr, value: Scalar, source: ir.Expr | None = None) -> None:
        header, name = self._place(place)
        if header in self.headers and header not in self.valid:
            return  # what is written to a header that is not valid cannot be read
        self.store[header, name] = value
        if isinstance(place.type, types.Varbit) and isinstance(source, ir.FieldRef):
            self.store[header, f"{name}#"] = self.store.get((source.header, f"{source.name}#"), ZERO)

    def _load(self, header: str, name: str, t: types.Type) -> Scalar:
        value = self.store.get((header, name))
        if value is not None and (header in self.valid or header not in self.headers):
            self._way.loaded(header, name)
            return value
        if header not in self.headers:
            return ZERO  # metadata and variables start as zero in both switches
        return typed(self.undefined(width(t)), t)

    def value(self, expr: ir.Expr) -> Scalar:
        """Return the present value of `expr`."""
        if isinstance(expr, ir.FieldRef):
            return self._load(expr.header, expr.name, expr.type)
        if isinstance(expr, ir.Const):
            bits = types.width_of(expr.type)
            return Scalar(expr.value if bits is None else expr.value & (1 << bits) - 1)
        if isinstance(expr, ir.Op):
            return self._operate(expr)
        if isinstance(expr, ir.Param):
            return self._params[expr.index]
        if isinstance(expr, ir.Valid):
            return Scalar(int(self.resolve(expr.header) in self.valid))
        if isinstance(expr, ir.Lookahead):
            self.need(expr.offset + expr.width)
            return typed(self.bits(self.packet.position + expr.offset, expr.width), expr.type)
        if isinstance(expr, ir.LastIndex):
            return Scalar((self.next.get(expr.stack, 0) - 1) & 0xFFFFFFFF)
        return self._load(*self._place(expr), expr.type)

    def _operate(self, expr: ir.Op) -> Scalar:
        if expr.op in ("&&", "||"):  # the second operand only where the first does not decide
            left = self.value(expr.args[0])
            if left.formula is None and bool(left.number) == (expr.op == "||"):
                return left
            return operate(expr, [left, self.value(expr.args[1])])
        if expr.op == "?:":
            condition = self.value(expr.args[0])
            if condition.formula is None:
                return self.value(expr.args[1] if condition.number else expr.args[2])
        return operate(expr, [self.value(a) for a in expr.args])


def _joined(parts: list[tuple[Any, int]]) -> Any:
    """Return one bit vector of several."""
    return z3.Concat(*(z for z, _ in parts)) if len(parts) > 1 else parts[0][0]


def _between(rng: random.Random, least: int, most: int) -> int:
    return rng.randint(least, most) if least <= most else least


def _fits(pattern: Sequence[int | None], numbers: Sequence[int]) -> bool:
    """Return whether an entry with the keys `pattern` is hit."""
    return all(wanted is None or wanted == number for wanted, number in zip(pattern, numbers, strict=True))
