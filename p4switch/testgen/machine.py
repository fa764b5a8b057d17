"""Running one packet through a program by v1model's rules, with formulas beside the numbers.

The rules are those of the v1model architecture as simple_switch documents them: parser, checksums, ingress, packet
replication, egress, deparser; resubmission and recirculation up to `MAX_PASSES`. The built-in engine is not used.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import z3

from p4switch.compiler import types
from p4switch.compiler.midend import ir
from p4switch.compiler.midend.storage import flat_fields
from p4switch.ports import DROP_PORT, MAX_PORT
from p4switch.stf.draws import DRAW_BITS
from p4switch.testgen.code import Code
from p4switch.testgen.rules import Rules
from p4switch.testgen.values import (
    ZERO,
    Scalar,
    Variables,
    as_bits,
    checksum16_formula,
    formula,
    hashed,
    is_signed,
    operate,
    resize,
    typed,
    width,
)

MAX_PASSES = 5
MAX_STEPS = 50_000
_RESTARTS = 100
MAX_PACKET_BYTES = 1500
ENVIRONMENTS = 4
"""Runs that a test has to survive unchanged: with other contents of what is undefined."""

_NORMAL, _INGRESS_CLONE, _EGRESS_CLONE, _RECIRCULATED, _REPLICA, _RESUBMITTED = 0, 1, 2, 4, 5, 6
_STANDARD = "standard_metadata"
_CLOCKS = ("ingress_global_timestamp", "egress_global_timestamp", "enq_timestamp", "deq_timedelta")
_COLOURS = [0, 1, 2]  # green, yellow, red: rates that allow everything, the peak rate's or nothing
_OPEN_KINDS = ("lpm", "ternary", "range", "optional")  # of keys that may match anything
_DEPTHS = ("enq_qdepth", "deq_qdepth")


@functools.cache
def unknown_values(number: int, bits: int) -> tuple[int, ...]:
    """What the undefined value `number` of a run is in each environment: zero in the first one.

    Each bit is set somewhere, and those of seven values in a row, beginning with a multiple of seven, differ somewhere.
    """
    block, place = divmod(number, 7)
    rng = random.Random(block)
    where = [1 + (place + rng.randrange(7)) % 7 for _ in range(bits)]  # the environments in which it is set
    return 0, *(sum((w >> e & 1) << i for i, w in enumerate(where)) for e in range(ENVIRONMENTS - 1))


@functools.cache
def _variable(name: str, bits: int) -> Any:
    return z3.BitVec(name, bits)


class Inputs:
    """What a run depends on: numbers by name, and choices of entries. What is not given is drawn from `seed`."""

    def __init__(self, seed: int, numbers: dict[str, int] | None = None, choices: dict[Any, Any] | None = None) -> None:
        self.seed = seed
        self.numbers = dict(numbers or {})
        self.choices = dict(choices or {})

    def number(self, name: str, bits: int, draw: Callable[[random.Random], int] | None = None) -> int:
        if name not in self.numbers:
            rng = random.Random(f"{self.seed} {name}")
            self.numbers[name] = rng.getrandbits(bits) if draw is None else draw(rng)
        return self.numbers[name]

    def choice(self, key: Any, options: list[Any]) -> Any:
        if key not in self.choices:
            self.choices[key] = random.Random(f"{self.seed} {key}").choice(options)
        return self.choices[key]

    def copy(self) -> Inputs:
        return Inputs(self.seed, self.numbers, self.choices)


@dataclass(frozen=True, slots=True)
class Alternative:
    """Another way a decision could go: under `formula`, or with other `choices`. `own` and `reach` are statements.

    `formula` may be a function that makes it: one of many of which few are asked for. See `condition`.
    `by_chance`: nothing says where it leads, and there is always another one, so that somebody has to end it.
    """

    site: Any
    own: int
    reach: int
    formula: Any = None
    choices: tuple[tuple[Any, Any], ...] = ()
    by_chance: bool = False

    def condition(self) -> Any:
        """`formula`, made. Raises TimeoutError if there is no time left to make it."""
        return self.formula() if callable(self.formula) else self.formula


@dataclass(frozen=True, slots=True)
class Decision:
    """`context`: the headers that were valid then, and what the last table did. The same place is worth another try
    in another context. `open`: the statements that those headers leave open."""

    formula: Any  # holds in this run; None: not of inputs
    alternatives: tuple[Alternative, ...] = ()
    context: tuple[frozenset[str], Any] = frozenset(), None
    open: int = -1


@dataclass(slots=True)
class Entry:
    table: ir.Table
    keys: list[tuple[ir.Key, int | None]]  # None: whatever the key is
    action: ir.Action
    args: list[int]
    colour: int | None = None  # of its direct meter


@dataclass(slots=True)
class Run:
    """What happened. `problem`: why no test can be made of it; `failed`: the span of an assertion that did not hold."""

    inputs: Inputs
    decisions: list[Decision] = field(default_factory=list)
    signature: list[Any] = field(default_factory=list)
    covered: int = 0
    environment: dict[str, tuple[Any, tuple[int, ...]]] = field(default_factory=dict)
    variables: dict[str, Any] = field(default_factory=dict)
    outputs: list[tuple[int, bytes]] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)
    defaults: dict[str, tuple[ir.Table, ir.Action, list[int]]] = field(default_factory=dict)
    registers: dict[tuple[str, int], int] = field(default_factory=dict)  # what was in those that were read
    draws: dict[str, int] = field(default_factory=dict)  # random numbers, by `FILE:LINE`
    sessions: dict[int, int] = field(default_factory=dict)
    groups: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    members: list[tuple[str, int]] = field(default_factory=list)  # of value sets, the fields as one number
    port: int = 0
    packet: bytes = b""
    parsed_bytes: int = 0
    length_read: bool = False
    clock: int | None = None  # microseconds at which the packet arrives; None: it does not matter
    depth: int | None = None  # cells of the queues, likewise
    meters: dict[tuple[str, int], int] = field(default_factory=dict)  # colours of those that are executed
    problem: str | None = None
    failed: int | None = None

    def formulas(self, count: int) -> list[Any]:
        return [d.formula for d in self.decisions[:count] if d.formula is not None]


class _StopError(Exception):
    """The run ends here; it is no test."""


class _LongerError(Exception):
    def __init__(self, length: int) -> None:
        super().__init__()
        self.length = length


class _ParserError(Exception):
    def __init__(self, name: str | int) -> None:
        super().__init__(name)
        self.name = name


@dataclass(slots=True)
class _Packet:
    """A packet in the switch: its bytes, and where the parser is in bits."""

    data: list[Scalar]
    position: int = 0


@dataclass(slots=True)
class _State:
    """A packet between two pipelines. `rest` is what the parser left of it."""

    store: dict[tuple[str, str], Scalar]
    valid: set[str]
    next: dict[str, int]
    length: Scalar
    rest: list[Scalar]
    truncate: int | None


@dataclass(slots=True)
class _Marks:
    """What is to happen at the end of a pipeline."""

    clone: tuple[int, int] | None = None  # session, field list
    again: int | None = None  # field list of resubmit or recirculate
    truncate: int | None = None
    exited: bool = False


class Machine:
    """Runs `code`; `assume` gets the machine after the parser and returns a bool about the packet."""

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
        self._assume = assume
        self._deadline = deadline
        self._headers = {i.name: i.type for i in self.program.headers}
        self._stacks = {ref.name: names for ref, names in self.program.stacks}
        self._siblings = {m: members for _, members in self.program.unions for m in members}
        self._calculations = {c.name: c for c in self.program.calculations}
        self._sizes = {r.name: (r.size, r.width) for r in self.program.registers}
        self._meters = {m.name: m for m in self.program.meters}

    def run(self) -> Run:
        for _ in range(_RESTARTS):
            self._begin()
            try:
                self._whole_packet()
            except _LongerError as longer:
                if longer.length > MAX_PACKET_BYTES:
                    self.out.problem = "the packet becomes too long"
                    return self.out
                self.inputs.numbers["len"] = longer.length
                continue
            except _StopError as stop:
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
        self._next: dict[str, int] = {}
        self._length = ZERO  # of the packet, as the switch keeps count
        self._registers: dict[tuple[str, int], Scalar] = {}
        self._found: dict[str, dict[tuple[int | None, ...], int | None]] = {}
        self._looked_for: dict[str, dict[tuple[int, ...], bool]] = {}  # of value sets: what was looked for
        self._args: dict[tuple[str, tuple[int | None, ...]], list[Scalar]] = {}
        self._applied: dict[str, int] = {}
        self._never_hit: set[str] = set()  # tables whose keys a test cannot set, and entries have to say
        self._params: list[Scalar] = []
        self._did: Any = None
        self._ahead = 0  # the statements that can follow
        self._marks = _Marks()
        self._parsing = False
        self._steps = self._passes = self._extracts = self._looked_at = self._unknowns = 0
        self._waiting: list[tuple[Any, ...]] = []

    # Inputs

    def _input(self, name: str, bits: int, draw: Callable[[random.Random], int] | None = None) -> Scalar:
        number = self.inputs.number(name, bits, draw)
        if not self.symbolic:
            return Scalar(number)
        variable = self.out.variables.setdefault(name, _variable(name, bits))
        return Scalar(number, variable)

    def _undefined(self, bits: int) -> Scalar:
        """What a test cannot set: another value in each environment."""
        self._unknowns += 1
        values = unknown_values(self._unknowns, bits)
        if not self.symbolic:
            return Scalar(values[self.environment])
        name = f"undefined {self._unknowns}"
        variable = _variable(f"?{name}", bits)
        self.out.environment[name] = variable, values
        return Scalar(values[self.environment], variable)

    def _port(self, name: str) -> Scalar:
        port = self._input(name, 9, lambda rng: rng.randrange(1, 8))
        below = None if port.formula is None else z3.ULE(port.formula, MAX_PORT)
        self._require(Scalar(int(port.number <= MAX_PORT), below))
        return port

    # Decisions

    def _decide(self, outcome: Any, holds: Any, alternatives: tuple[Alternative, ...] = ()) -> None:
        self.out.signature.append(outcome)
        if self.symbolic and (holds is not None or alternatives):
            left = self.code.all | self.code.assertions if self._parsing else self.code.open(self.valid)
            self.out.decisions.append(Decision(holds, alternatives, (frozenset(self.valid), self._did), left))

    def _require(self, condition: Scalar) -> None:
        """Stops a run in which `condition` does not hold."""
        if condition.formula is not None:
            self._decide("required", condition.formula)
        if not condition.number:
            raise _StopError("an input is out of its range")

    def _pin(self, value: Scalar) -> int:
        """The number of `value`, which is the same from here on."""
        if value.formula is not None and self.symbolic:
            self.out.decisions.append(Decision(value.formula == value.number))
        self.out.signature.append(value.number)
        return value.number

    def _cover(self, span: int | None) -> None:
        self.out.covered |= self.code.bit(span)

    # The switch

    def _whole_packet(self) -> None:
        port = self._port("port")
        self.out.port = port.number
        length = self.inputs.number("len", 11, lambda rng: 60)
        data = [self._input(f"p{i}", 8) for i in range(length)]
        self.out.packet = bytes(s.number for s in data)
        size = Scalar(length, self.out.variables.setdefault("len", _variable("len", 32)) if self.symbolic else None)
        self._port_in, self._length_in = port, size  # of the packet that arrived
        self._waiting.append(("ingress", data, size, {"ingress_port": port}, {}))
        while self._waiting:
            kind, *rest = self._waiting.pop(0)
            self._passes += 1
            if self._passes > MAX_PASSES * 4:
                raise _StopError(f"more than {MAX_PASSES} passes of the pipeline")
            if kind == "ingress":
                self._ingress(*rest)
            else:
                self._egress(*rest)

    def _fresh(self, standard: dict[str, Scalar], kept: dict[tuple[str, str], Scalar]) -> None:
        """Metadata as a packet begins with."""
        self.store = {k: v for k, v in self.store.items() if k[0] in self._headers}
        self.store |= kept
        self.store |= {(_STANDARD, name): value for name, value in standard.items()}

    def _ingress(
        self, data: list[Scalar], length: Scalar, standard: dict[str, Scalar], kept: dict[tuple[str, str], Scalar]
    ) -> None:
        first = self._passes == 1
        self.valid, self._next, self._length, self._marks = set(), {}, length, _Marks()
        self.store.clear()
        self._fresh({**standard, "packet_length": length}, kept)
        if first:  # what comes again has no time of arrival, as in simple_switch
            self.store[_STANDARD, "ingress_global_timestamp"] = self._input("clock", 48)
        rest = self._parse(_Packet(data))
        if first:
            self.out.parsed_bytes = len(data) - len(rest)
            if self._assume is not None:
                condition = self._assume(self)
                site = Alternative("assume", 0, self.code.all, condition.formula)
                if condition.number:
                    self._decide(1, condition.formula)
                else:
                    negated = None if condition.formula is None else z3.Not(condition.formula)
                    self._decide(0, negated, (site,) if condition.formula is not None else ())
                    raise _StopError("not what is assumed of packets")
        self._verify_checksums(rest)
        self._code(self.code.ingress, [])
        marks, self._marks = self._marks, _Marks()
        if marks.clone is not None:
            self._clone_ingress(data, length, marks.clone)
        if marks.again is not None:
            again = {"instance_type": Scalar(_RESUBMITTED)}
            self._waiting.append(("ingress", data, length, again, self._listed(marks.again)))
            return
        group = self._pin(self.store.get((_STANDARD, "mcast_grp"), ZERO))
        if group:  # replicas are not truncated by what ingress says, as in simple_switch
            self._replicate(group, self._state(rest))
            return
        spec = self.store.get((_STANDARD, "egress_spec"), ZERO)
        if spec.number != DROP_PORT:
            self._below(spec, MAX_PORT + 1, 9, f"a port above {MAX_PORT}")
        port = self._pin(spec)
        if port != DROP_PORT:
            state = self._state(rest, marks.truncate)
            self._waiting.append(("egress", port, {"instance_type": Scalar(_NORMAL)}, state))

    def _state(self, rest: list[Scalar], truncate: int | None = None) -> _State:
        return _State(dict(self.store), set(self.valid), dict(self._next), self._length, rest, truncate)

    def _enter(self, state: _State) -> None:
        self.store, self.valid, self._next = dict(state.store), set(state.valid), dict(state.next)
        self._length = state.length

    def _listed(self, index: int) -> dict[tuple[str, str], Scalar]:
        kept: dict[tuple[str, str], Scalar] = {}
        for element in self.program.field_lists[index - 1].elements:
            if isinstance(element, ir.FieldRef):
                kept[element.header, element.name] = self.value(element)
        return kept

    def _clone_ingress(self, data: list[Scalar], length: Scalar, clone: tuple[int, int]) -> None:
        """The packet is parsed anew, and has no metadata afterwards but those of a field list."""
        session, fields = clone
        kept = self._listed(fields)
        before = self._state([])
        self.valid, self._next, self._length = set(), {}, length
        self.store = {(_STANDARD, "ingress_port"): self._port_in}
        rest = self._parse(_Packet(data))
        self._fresh({}, kept)
        self._mirror(session, self._state(rest), _INGRESS_CLONE)
        self._enter(before)

    def _mirror(self, session: int, state: _State, instance: int) -> None:
        port = self._port(f"session {session}")
        self.out.sessions[session] = self._pin(port)
        self._waiting.append(("egress", port.number, {"instance_type": Scalar(instance)}, state))

    def _replicate(self, group: int, state: _State) -> None:
        if group > 0xFFFF:
            raise _StopError("a multicast group above 65535")
        replicas: list[tuple[int, int]] = []
        for i in range(2):
            port = self._port(f"group {group} port {i}")
            rid = self._input(f"group {group} rid {i}", 16, lambda rng: rng.randrange(4))
            replicas.append((self._pin(port), rid.number))
            standard = {"instance_type": Scalar(_REPLICA), "egress_rid": rid}
            self._waiting.append(("egress", port.number, standard, state))
        if replicas[0][0] == replicas[1][0] or replicas[0] == replicas[1]:
            self.inputs.numbers[f"group {group} port 1"] = replicas[0][0] % 8 + 1
            raise _LongerError(self.inputs.numbers["len"])
        self.out.groups[group] = replicas

    def _egress(self, port: int, standard: dict[str, Scalar], state: _State) -> None:
        self._enter(state)
        rest = state.rest
        clock, depth = self._input("clock", 48), self._input("depth", 19, lambda rng: 0)
        self.store |= {
            (_STANDARD, name): value
            for name, value in {
                **standard, "egress_port": Scalar(port), "egress_spec": ZERO, "packet_length": self._length,
                "enq_qdepth": depth, "deq_qdepth": depth, "deq_timedelta": ZERO,
                "enq_timestamp": _low_32(clock), "egress_global_timestamp": clock,
            }.items()
        }  # fmt: skip
        self._marks = _Marks(truncate=state.truncate)
        self._code(self.code.egress, [])
        marks, self._marks = self._marks, _Marks()
        if marks.clone is not None:
            session, fields = marks.clone
            kept = self._listed(fields)
            before = self._state(rest)
            self._fresh({}, kept)
            self._mirror(session, self._state(rest), _EGRESS_CLONE)
            self._enter(before)
        if self._pin(self.store.get((_STANDARD, "egress_spec"), ZERO)) == DROP_PORT:
            return
        self._update_checksums(rest)
        for op in self.program.deparser_ops:
            self._operation(op)
        data = [*self._deparsed(), *rest]
        if marks.again is not None:
            if self._passes > MAX_PASSES:
                raise _StopError(f"more than {MAX_PASSES} passes of the pipeline")
            length = _grown(self._length_in, len(data) - self._length_in.number)
            again = {"instance_type": Scalar(_RECIRCULATED)}
            self._waiting.append(("ingress", data, length, again, self._listed(marks.again)))
            return
        octets = bytes(s.number for s in data)
        self.out.outputs.append((port, octets if marks.truncate is None else octets[: marks.truncate]))

    # Parser

    def _parse(self, packet: _Packet) -> list[Scalar]:
        self._packet = packet
        self._parsing = True
        error = 0
        try:
            self._code(self.code.parser, [])
        except _ParserError as failure:
            error = failure.name if isinstance(failure.name, int) else self.program.errors.index(failure.name)
        self._parsing = False
        self.store[_STANDARD, "parser_error"] = Scalar(error)
        return packet.data[packet.position // 8 :]

    def _bits(self, position: int, count: int) -> Scalar:
        first, last = position // 8, -(-(position + count) // 8)
        octets = self._packet.data[first:last]
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

    def _need(self, count: int) -> None:
        """Makes sure that `count` bits more are there; a short packet is an alternative."""
        key = ("short", self._passes, self._extracts)
        self._extracts += 1
        end = self._packet.position + count
        there = len(self._packet.data) * 8
        if self._passes > 1:
            if end > there:
                raise _ParserError("PacketTooShort")
            return
        before = max(self._packet.position // 8, self._looked_at)  # bytes: what was read until now is there
        needed = -(-end // 8)
        if self.inputs.choices.get(key) and before < needed:
            if there // 8 != before:
                raise _LongerError(before)
            self.out.signature.append("short")
            raise _ParserError("PacketTooShort")
        if end > MAX_PACKET_BYTES * 8:
            raise _ParserError("PacketTooShort")
        if end > there:
            raise _LongerError(needed)
        self._looked_at = max(self._looked_at, needed)
        if before >= needed:
            return
        reach = self.code.reach(self.code.ingress)
        self._decide("long", None, (Alternative(key, 0, reach, None, ((key, True),)),))

    def _extract(self, op: ir.Extract) -> None:
        name = op.header.name
        if op.header.stack:
            index = self._next.get(op.header.stack, 0)
            elements = self._stacks[op.header.stack]
            if op.header.where == "next":
                if index >= len(elements):
                    raise _ParserError("StackOutOfBounds")
                self._next[op.header.stack] = index + 1
                name = elements[index] + (f".{op.header.member}" if op.header.member else "")
            else:
                name = self._resolve(op.header)
        fields = flat_fields(op.header.type)
        variable = longest = 0
        if op.length is not None:
            longest = next(width(t) for _, t in fields if isinstance(t, types.Varbit))
            variable = self._varbit_length(op, self.value(op.length), longest)
            if variable % 8:
                raise _ParserError("ParserInvalidArgument")
        widths = [variable if isinstance(t, types.Varbit) else width(t) for _, t in fields]
        self._need(sum(widths))
        if variable > longest:  # after the packet's length, as in simple_switch
            raise _ParserError("HeaderTooShort")
        self._set_valid(name)
        for (f, t), bits in zip(fields, widths, strict=True):
            value = self._bits(self._packet.position, bits)
            if isinstance(t, types.Varbit):
                value = Scalar(value.number)
                self.store[name, f"{f}#"] = Scalar(bits)
            self.store[name, f] = typed(value, t)
            self._packet.position += bits

    def _varbit_length(self, op: ir.Extract, value: Scalar, longest: int) -> int:
        """The bits of a varbit; none, some, too many and parts of bytes are alternatives."""
        if value.formula is not None:
            z = value.formula
            fits = [z3.ULE(z, longest)] if longest < 1 << z.size() else []
            kinds = [z == 0, z3.And(z3.Not(z == 0), z & 7 == 0, *fits), z3.Not(z & 7 == 0)]
            kinds += [z3.And(z & 7 == 0, z3.Not(fit)) for fit in fits]
            number = value.number
            taken = 2 if number % 8 else 3 if number > longest else 1 if number else 0
            others = ((kind, z) for kind, z in enumerate(kinds) if kind != taken)
            ways = tuple(Alternative((id(op), kind), 0, self.code.all, z) for kind, z in others)
            self._decide((id(op), taken), kinds[taken], ways)
        return self._pin(value)

    def _deparsed(self) -> list[Scalar]:
        number, bits = 0, 0
        parts: list[Any] = []
        known = True
        for ref in self.program.deparser:
            if ref.name not in self.valid:
                continue
            for f, t in flat_fields(ref.type):
                value = self._load(ref.name, f, t)
                count = self._width(ref.name, f, t)
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
        """The number, bits and, if all of it is known, the formulas of the data of a checksum or hash."""
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
                count = self._width(expression.header, expression.name, expression.type)
            number, bits = number << count | value.number & (1 << count) - 1, bits + count
            if parts is not None and count:
                parts.append((resize(as_bits(formula(value, expression.type)), count), count))
        for octet in rest or ():
            number, bits = number << 8 | octet.number, bits + 8
            if parts is not None:
                parts.append((formula(octet, types.Bits(8)), 8))
        return number, bits, parts

    def _checksum(self, checksum: ir.Checksum, rest: list[Scalar]) -> Scalar:
        number, bits, parts = self._gathered(checksum.inputs, rest if checksum.with_payload else None)
        result = hashed(checksum.algorithm, number, bits)
        if result is None:
            raise _StopError(f"checksum {checksum.algorithm} is not known here")
        if checksum.algorithm == "csum16" and parts:
            return Scalar(result, checksum16_formula(parts))
        return Scalar(result)

    def _verify_checksums(self, rest: list[Scalar]) -> None:
        """Whether one is wrong is a value of the packet, and no decision."""
        wrong = 0
        formulas: list[Any] = []
        for checksum in self.program.checksums:
            header, bits = checksum.target.header, width(checksum.target.type)
            absent = header in self._headers and header not in self.valid  # such are right in both switches
            if not checksum.verify or absent or not self._applies(checksum, self.code.reach(self.code.ingress)):
                continue
            computed, there = self._checksum(checksum, rest), self.value(checksum.target)
            differs = int(computed.number & (1 << bits) - 1 != there.number)
            if computed.formula is not None or there.formula is not None:
                z = resize(formula(computed, types.Bits(16)), bits) == formula(there, checksum.target.type)
                formulas.append(z3.Not(z))
            elif differs:
                formulas.append(z3.BoolVal(True))
            wrong |= differs
        self.store[_STANDARD, "checksum_error"] = Scalar(wrong, as_bits(z3.Or(*formulas)) if formulas else None)

    def _update_checksums(self, rest: list[Scalar]) -> None:
        for checksum in self.program.checksums:
            if not checksum.verify and self._applies(checksum, 0):
                computed = self._checksum(checksum, rest)
                bits = width(checksum.target.type)
                z = None if computed.formula is None else resize(computed.formula, bits)
                self._assign(checksum.target, Scalar(computed.number & (1 << bits) - 1, z))

    def _applies(self, checksum: ir.Checksum, reach: int) -> bool:
        """Whether the condition holds; `reach` are the statements behind that depend on it."""
        value, own = self.value(checksum.condition), self.code.bit(checksum.span)
        if value.formula is not None:
            holds = value.formula if value.number else z3.Not(value.formula)
            gained = 0 if value.number else own
            site = "checksum", checksum.span
            way = Alternative((site, not value.number), gained, gained | reach, z3.Not(holds))
            self._decide((site, value.number), holds, (way,))
        if value.number:
            self._cover(checksum.span)
        return bool(value.number)

    # Code

    def _flip(
        self, site: Any, taken: int, z: Any, if_true: ir.Block | None, if_false: ir.Block | None, reach: int = 0
    ) -> None:
        holds, other = (z, z3.Not(z)) if taken else (z3.Not(z), z)
        target = if_false if taken else if_true
        way = Alternative((site, not taken), self.code.own(target), reach or self.code.reach(target), other)
        self._decide((site, taken), holds, (way,))

    def _code(self, block: ir.Block | None, params: list[Scalar], behind: int = 0) -> None:
        """Follows `block` to its end; `behind` are the statements that can come then, of which it does not know."""
        saved, self._params = self._params, params
        while block is not None:
            self._ahead = self.code.reach(block) | behind
            self._steps += 1
            if self._steps > MAX_STEPS:
                raise _StopError("too many steps")
            if self._deadline():
                raise TimeoutError
            for op in block.ops:
                self._operation(op)
            end = block.end
            if isinstance(end, ir.Goto):
                block = end.target
            elif isinstance(end, ir.Branch):
                self._cover(end.span)
                value = self.value(end.condition)
                if value.formula is not None:
                    self._flip(id(block), value.number, value.formula, end.if_true, end.if_false)
                else:
                    self.out.signature.append(value.number)
                block = end.if_true if value.number else end.if_false
            elif isinstance(end, ir.Apply):
                block = self._apply(end)
                if self._marks.exited:
                    break
            elif isinstance(end, ir.Select):
                block = self._select(end)
            else:
                block = None
        self._params = saved

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
                made = None if decided or (i < taken and asked) else whole  # what came before does not match as it is
                own, reach = self.code.own(target), self.code.reach(target or self.code.ingress)
                ways.append(Alternative((outcome[0], i), own, reach, made, tuple(choices)))
        self._decide(outcome, holds, tuple(ways))

    def _in_value_set(self, name: str, keys: list[Scalar], end: ir.Select, asked: bool) -> tuple[bool, tuple[Any, ...]]:
        """Whether the numbers of `keys` are in the value set, and the choice that decides it, if there is one.

        Not `asked`: an earlier case has them, so that the set may have them or not.
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
            self._assign(result, self._entry_colour(table, keys, end) if index is not None else ZERO)
        if action is not None:
            self._code(action.body, args, self._ahead)
        labels = [label for label in end.on if isinstance(label, bool)]
        hit = index is not None
        if labels:
            return next((b for label, b in end.on.items() if label is hit), end.default)
        number = table.actions.index(action) if action in table.actions else None
        return end.default if number is None else end.on.get(number, end.default)

    def _entry_colour(self, table: ir.Table, keys: list[Scalar], end: ir.Apply) -> Scalar:
        """Of the direct meter of the entry that was hit; constant entries have no rates."""
        numbers = [k.number for k in keys]
        ours = (e for e in self.out.entries if e.table is table)
        found = next((e for e in ours if _fits([n for _, n in e.keys], numbers)), None)
        if found is None:
            return ZERO
        found.colour = self._colour(("meter", table.meter, *numbers), (id(end), "meter"))
        return Scalar(found.colour)

    def _colour(self, key: Any, site: Any) -> int:
        colour: int = self.inputs.choice(key, _COLOURS)
        reach = self.code.reach(self.code.ingress)
        ways = tuple(Alternative((site, c), 0, reach, None, ((key, c),)) for c in _COLOURS if c != colour)
        self._decide((site, colour), None, ways)
        return colour

    def _follow(self, end: ir.Apply, index: int | None, hit: bool) -> tuple[int, int]:
        """The statements of action `index` of the table, and what can be reached through it."""
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
        for pattern, found in known.items():
            if _fits(pattern, numbers):
                self.out.signature.append((table.name, found))
                return found, self._args.get((table.name, pattern), [])
        loose = self._unset(table, keys, count) if not known else ()
        options: list[int | None] = [None, *self.code.usable(table, "defaultonly")]
        if any(table.keys[i].match_kind not in _OPEN_KINDS for i in loose):  # no entry is hit on every switch
            self._never_hit.add(table.name)
            options = [None]
        key = ("table", table.name, count)
        found = self.inputs.choice(key, options)
        if len(known) >= table.size or found not in options:
            found = None
        ways = []
        for option in options:
            if option != found:
                default = None if option is not None or table.default is None else table.default.action
                shown = option if default is None or default not in table.actions else table.actions.index(default)
                own, reach = self._follow(end, shown, option is not None)
                ways.append(Alternative((table.name, option), own, reach, None, ((key, option),)))
        self._decide((table.name, found, numbers), None, tuple(ways))
        if found is None:
            known[numbers] = found
            return None, []
        pattern = tuple(None if i in loose else number for i, number in enumerate(numbers))
        known[pattern] = found
        action = table.actions[found]
        args = self._arguments(action, f"{table.name} {count}")
        self._args[table.name, pattern] = args
        entry = Entry(table, list(zip(table.keys, pattern, strict=True)), action, [a.number for a in args])
        self.out.entries.append(entry)
        return found, args

    def _unset(self, table: ir.Table, keys: list[Scalar], count: int) -> tuple[int, ...]:
        """The keys that a test cannot set. Runs without formulas take them over."""
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
                args.append(typed(self._input(f"data {name} {action.name} {i}", width(t)), t))
            else:
                args.append(ZERO)
        return args

    def _default(self, table: ir.Table, end: ir.Apply) -> tuple[ir.Action, list[Scalar]] | None:
        """Another default action than the program's, for actions that no entry can have."""
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
        self._decide((table.name, "default", chosen), None, tuple(ways))
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
                    made = functools.partial(self._entry_taken, rules, i, keys)
                    ways.append(Alternative((table.name, "entry", i), own, reach, made))
        self._decide((table.name, "entry", taken), holds, tuple(ways))
        if taken == len(entries):
            return None, []
        call = entries[taken].call
        args = [Scalar(a & (1 << width(t)) - 1) for a, (_, t) in zip(call.args, call.action.params, strict=True)]
        return table.actions.index(call.action), args

    def _entry_taken(self, rules: Rules, index: int, keys: list[Scalar]) -> Any:
        """The formula that the entry is hit; of the number of entries: that none is."""
        return (rules.missed if index == len(rules) else rules.taken)(index, keys, self._deadline)

    # Operations

    def _operation(self, op: ir.Operation) -> None:
        self._cover(op.span)
        if isinstance(op, ir.Assign):
            self._assign(op.dst, self.value(op.src), op.src)
        elif isinstance(op, ir.Extract):
            self._extract(op)
        elif isinstance(op, ir.Advance):
            bits = self._pin(self.value(op.bits))
            if bits % 8:
                raise _ParserError("ParserInvalidArgument")
            self._need(bits)
            self._packet.position += bits
        elif isinstance(op, ir.Verify):
            condition = self.value(op.condition)
            if condition.formula is not None:
                ingress, reach = self.code.ingress, self.code.reach(self.code.parser)
                self._flip(id(op), condition.number, condition.formula, ingress, ingress, reach)
            if not condition.number:
                raise _ParserError(self._pin(self.value(op.error)))
        else:
            getattr(self, f"_do_{op.op}", self._unsupported)(op)

    def _unsupported(self, op: ir.Prim) -> None:
        raise _StopError(f"'{op.op}' is not supported here")

    def _do_mark_to_drop(self, op: ir.Prim) -> None:
        self.store[_STANDARD, "egress_spec"] = Scalar(DROP_PORT)
        self.store[_STANDARD, "mcast_grp"] = ZERO

    def _do_exit(self, op: ir.Prim) -> None:
        self._marks.exited = True

    def _do_add_header(self, op: ir.Prim) -> None:
        name = self._resolve(op.args[0])
        if name in self.valid:
            return
        self._set_valid(name)
        for f, t in flat_fields(self._headers[name]):
            if isinstance(t, types.Varbit):
                if self._width(name, f, t):  # none in the built-in switch, what it was in BMv2
                    raise _StopError("the length of a varbit is not defined")
                self.store[name, f"{f}#"] = ZERO
        self._length = _grown(self._length, self._bytes(name))

    def _width(self, header: str, name: str, t: types.Type) -> int:
        """The bits of a field; of a varbit those that it has now, or had when its header was valid."""
        return self.store.get((header, f"{name}#"), ZERO).number if isinstance(t, types.Varbit) else width(t)

    def _bytes(self, header: str) -> int:
        """The length of the header in a packet."""
        return sum(self._width(header, f, t) for f, t in flat_fields(self._headers[header])) // 8

    def _set_valid(self, name: str) -> None:
        if name not in self.valid:
            self._forget(name)
        for sibling in self._siblings.get(name, ()):
            self.valid.discard(sibling)
        self.valid.add(name)

    def _forget(self, name: str) -> None:
        """The values of a header's fields. How long a varbit was is kept."""
        for key in [k for k in self.store if k[0] == name and not k[1].endswith("#")]:
            del self.store[key]

    def _do_remove_header(self, op: ir.Prim) -> None:
        name = self._resolve(op.args[0])
        if name in self.valid:
            self._length = _grown(self._length, -self._bytes(name))
        self.valid.discard(name)
        self._forget(name)

    def _do_assign_header(self, op: ir.Prim) -> None:
        self._copy(self._resolve(op.args[0]), self._resolve(op.args[1]))

    def _copy(self, target: str, source: str) -> None:
        fields = {k[1]: v for k, v in self.store.items() if k[0] == source}
        if source in self.valid:
            self._set_valid(target)
        else:
            self.valid.discard(target)
        self._forget(target)
        self.store |= {(target, f): v for f, v in fields.items()}

    def _members(self, ref: ir.StackRef | ir.UnionRef) -> list[str]:
        """The headers in a stack or union."""
        if isinstance(ref, ir.UnionRef):
            return next(members for u, members in self.program.unions if u.name == ref.name)
        unions = {u.name: members for u, members in self.program.unions}
        return [h for e in self._stacks[ref.name] for h in unions.get(e, [e])]

    def _do_assign_header_stack(self, op: ir.Prim) -> None:
        copies = list(zip(self._members(op.args[0]), self._members(op.args[1]), strict=True))
        self.valid.difference_update(target for target, _ in copies)
        for target, source in copies:
            self._copy(target, source)
        if isinstance(op.args[0], ir.StackRef):
            self._next[op.args[0].name] = self._next.get(op.args[1].name, 0)

    _do_assign_union = _do_assign_union_stack = _do_assign_header_stack

    def _do_push(self, op: ir.Prim) -> None:
        self._move(op.args[0], op.args[1].value)

    def _do_pop(self, op: ir.Prim) -> None:
        self._move(op.args[0], -op.args[1].value)

    def _move(self, ref: ir.StackRef, by: int) -> None:
        if isinstance(ref.element, types.Union):
            raise _StopError("moving a stack of unions is not supported here")
        elements = self._stacks[ref.name]
        before = {e: (e in self.valid, {k[1]: v for k, v in self.store.items() if k[0] == e}) for e in elements}
        for i, element in enumerate(elements):
            self.valid.discard(element)
            self._forget(element)
            if 0 <= i - by < len(elements):
                was_valid, fields = before[elements[i - by]]
                if was_valid:
                    self.valid.add(element)
                self.store |= {(element, f): v for f, v in fields.items()}
        self._next[ref.name] = max(0, min(len(elements), self._next.get(ref.name, 0) + by))

    def _do_count(self, op: ir.Prim) -> None:
        self._pin(self.value(op.args[1]))

    def _do_execute_meter(self, op: ir.Prim) -> None:
        meter = self._meters[op.args[0].value]
        self._below(self.value(op.args[1]), meter.size, width(op.args[1].type), f"an index outside of '{meter.name}'")
        index = self._pin(self.value(op.args[1]))
        colour = self.out.meters[meter.name, index] = self._colour(("meter", meter.name, index), id(op))
        self._assign(op.args[2], Scalar(colour))

    def _do_register_read(self, op: ir.Prim) -> None:
        key = self._cell(op.args[1].value, op.args[2])
        bits = self._sizes[key[0]][1]
        if key not in self._registers:
            self._registers[key] = self._input(f"register {key[0]} {key[1]}", bits)
            self.out.registers[key] = self._registers[key].number
        self._assign(op.args[0], self._registers[key])

    def _do_register_write(self, op: ir.Prim) -> None:
        key = self._cell(op.args[0].value, op.args[1])
        value = self.value(op.args[2])
        bits = self._sizes[key[0]][1]
        z = None if value.formula is None else resize(formula(value, op.args[2].type), bits)
        self._registers[key] = Scalar(value.number & (1 << bits) - 1, z)

    def _cell(self, register: str, index: ir.Expr) -> tuple[str, int]:
        value = self.value(index)
        size = self._sizes[register][0]
        self._below(value, size, width(index.type), f"an index outside of register '{register}'")
        return register, self._pin(value)

    def _below(self, value: Scalar, limit: int, bits: int, problem: str) -> None:
        """Stops a run in which `value` is not below `limit`; one in which it is is an alternative."""
        if value.formula is not None and limit < 1 << bits:
            inside = z3.ULT(value.formula, limit)
            if value.number < limit:
                self._decide("inside", inside)
            else:
                self._decide("outside", z3.Not(inside), (Alternative(problem, 0, self.code.all, inside),))
        if value.number >= limit:
            raise _StopError(problem)

    def _do_modify_field_with_hash_based_offset(self, op: ir.Prim) -> None:
        place, base, name, size = op.args
        calculation = self._calculations[name.value]
        number, bits, parts = self._gathered(calculation.inputs, None)
        if parts and any(not z3.is_bv_value(z) for z, _ in parts):  # what comes of other data is left to chance
            data = z3.Concat(*(z for z, _ in parts)) if len(parts) > 1 else parts[0][0]
            key = ("hash", op.span)
            had = (*self.inputs.choices.get(key, ()), number)
            others = z3.And(*(z3.Not(data == z3.BitVecVal(n, bits)) for n in had))
            reach = self.code.all if self.code.again else self._ahead
            way = Alternative(key, 0, reach, others, ((key, had),), by_chance=True)
            self._decide(("hash", number), None, (way,))
        result = hashed(calculation.algorithm, number, bits)
        if result is None:
            raise _StopError(f"hash {calculation.algorithm} is not known here")
        modulus, low = self.value(size).number, self.value(base).number
        total = low + (result % modulus if modulus else 0)
        self._assign(place, Scalar(total & (1 << width(place.type)) - 1))

    def _do_modify_field_rng_uniform(self, op: ir.Prim) -> None:
        place, low, high = op.args
        if is_signed(place.type) or width(place.type) > DRAW_BITS:  # v1model does not say what it is
            self._assign(place, self._undefined(width(place.type)))
            return
        least, most = self.value(low), self.value(high)
        at = self.code.place(op.span)
        drawn = self._input(f"random {at}", DRAW_BITS, lambda rng: _between(rng, least.number, most.number))
        inside = least.number <= drawn.number <= most.number
        if drawn.formula is not None:
            low_z, high_z = (resize(as_bits(formula(v, e.type)), DRAW_BITS) for v, e in ((least, low), (most, high)))
            within = z3.And(z3.ULE(low_z, drawn.formula), z3.ULE(drawn.formula, high_z))
            if inside:
                self._decide("drawn", within)
            else:
                self._decide("not drawn", z3.Not(within), (Alternative(f"random {at}", 0, self.code.all, within),))
        if not inside:
            raise _StopError("a random number outside of its bounds")
        self.out.draws[at] = drawn.number
        z = None if drawn.formula is None else resize(drawn.formula, width(place.type))
        self._assign(place, typed(Scalar(drawn.number, z), place.type))

    def _do_clone_ingress_pkt_to_egress(self, op: ir.Prim) -> None:
        self._marks.clone = self._pin(self.value(op.args[0])) & 0x7FFF, op.args[1].value

    _do_clone_egress_pkt_to_egress = _do_clone_ingress_pkt_to_egress

    def _do_resubmit(self, op: ir.Prim) -> None:
        self._marks.again = op.args[0].value

    _do_recirculate = _do_resubmit

    def _do_truncate(self, op: ir.Prim) -> None:
        length = self._pin(self.value(op.args[0]))
        self._marks.truncate = length if self._marks.truncate is None else min(length, self._marks.truncate)

    def _do_log_msg(self, op: ir.Prim) -> None:
        pass

    _do_generate_digest = _do_log_msg

    def _do_assert(self, op: ir.Prim) -> None:
        condition = self.value(op.args[0])
        if condition.formula is not None:
            holds = condition.formula if condition.number else z3.Not(condition.formula)
            broken = self.code.assertion(op.span) if condition.number and op.op == "assert" else 0
            reach = broken if condition.number else self.code.all
            way = Alternative((id(op), not condition.number), broken, reach, z3.Not(holds))
            self._decide((id(op), condition.number), holds, (way,))
        if not condition.number:
            self.out.failed = op.span if op.op == "assert" else None
            raise _StopError("an assertion of the program does not hold")

    _do_assume = _do_assert

    # Places and expressions

    def _resolve(self, ref: ir.HeaderRef) -> str:
        if not ref.stack:
            return ref.name
        elements = self._stacks[ref.stack]
        if ref.index is not None:
            value = self.value(ref.index)
            self._below(value, len(elements), width(ref.index.type), f"an index outside of stack '{ref.stack}'")
            index = self._pin(value)
        else:
            index = self._next.get(ref.stack, 0) - (ref.where == "last")
        if not 0 <= index < len(elements):
            raise _StopError(f"an index outside of stack '{ref.stack}'")
        return elements[index] + (f".{ref.member}" if ref.member else "")

    def _place(self, place: ir.Expr) -> tuple[str, str]:
        if isinstance(place, ir.FieldRef):
            return place.header, place.name
        assert isinstance(place, (ir.LastField, ir.ElemField))
        index = place.index if isinstance(place, ir.ElemField) else None
        member = place.member if isinstance(place, ir.LastField) else ""
        ref = ir.HeaderRef(None, stack=place.stack, index=index, where="last", member=member)  # type: ignore[arg-type]
        return self._resolve(ref), place.name

    def _assign(self, place: ir.Expr, value: Scalar, source: ir.Expr | None = None) -> None:
        header, name = self._place(place)
        if header in self._headers and header not in self.valid:
            return  # what is written to a header that is not valid cannot be read
        self.store[header, name] = value
        if isinstance(place.type, types.Varbit) and isinstance(source, ir.FieldRef):
            self.store[header, f"{name}#"] = self.store.get((source.header, f"{source.name}#"), ZERO)

    def _load(self, header: str, name: str, t: types.Type) -> Scalar:
        value = self.store.get((header, name))
        if value is not None and (header in self.valid or header not in self._headers):
            if header == _STANDARD:
                self._note(name)
            return value
        if header not in self._headers:
            return ZERO  # metadata and variables start as zero in both switches
        return typed(self._undefined(width(t)), t)

    def _note(self, name: str) -> None:
        """Keeps that a field is read which the test has to decide."""
        if name == "packet_length":
            self.out.length_read = True
        elif name in _CLOCKS:
            self.out.clock = self.inputs.numbers["clock"]
        elif name in _DEPTHS:
            self.out.depth = self.inputs.numbers.get("depth")

    def value(self, expr: ir.Expr) -> Scalar:
        """The value of `expr` now."""
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
            return Scalar(int(self._resolve(expr.header) in self.valid))
        if isinstance(expr, ir.Lookahead):
            self._need(expr.offset + expr.width)
            return typed(self._bits(self._packet.position + expr.offset, expr.width), expr.type)
        if isinstance(expr, ir.LastIndex):
            return Scalar((self._next.get(expr.stack, 0) - 1) & 0xFFFFFFFF)
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


def _between(rng: random.Random, least: int, most: int) -> int:
    return rng.randint(least, most) if least <= most else least


def _grown(length: Scalar, count: int) -> Scalar:
    """`length`, which has 32 bits, of a packet that has `count` bytes more."""
    return Scalar(length.number + count & 0xFFFFFFFF, None if length.formula is None else length.formula + count)


def _low_32(value: Scalar) -> Scalar:
    return Scalar(value.number & 0xFFFFFFFF, None if value.formula is None else resize(value.formula, 32))


def _fits(pattern: Sequence[int | None], numbers: Sequence[int]) -> bool:
    """Whether an entry with the keys `pattern` is hit."""
    return all(wanted is None or wanted == number for wanted, number in zip(pattern, numbers, strict=True))
