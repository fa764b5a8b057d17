"""A small part of P4-16 with its own trees, text and semantics, for comparison in tests of the evaluation order.

Numbers are of 8 bits. Places are the fields `hdr.data.a` to `d`, the elements of the stack `hdr.items` and of the array
`meta.cells`, and variables and parameters. Meaning follows the language specification: expressions from left to right
(section 8.1), calls by copy-in and copy-out (6.8), assignments (12.1), keys in order (14.2.3). Nothing of the compiler
is used.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

ELEMENTS = 4
FIELDS = ("hdr.data.a", "hdr.data.b", "hdr.data.c", "hdr.data.d")
ARRAYS = ("hdr.items", "meta.cells")


# Expressions


@dataclass(frozen=True)
class Number:
    value: int


@dataclass(frozen=True)
class Variable:
    """A field, variable or parameter."""

    name: str


@dataclass(frozen=True)
class Element:
    """An element of one of `ARRAYS`; the index is taken modulo their size."""

    array: str
    index: Expr


@dataclass(frozen=True)
class Binary:
    op: str
    left: Expr
    right: Expr


@dataclass(frozen=True)
class Concatenation:
    """The low halves of two numbers, side by side."""

    left: Expr
    right: Expr


@dataclass(frozen=True)
class Bits:
    """Bits `high` to `low` of a number, as a number."""

    base: Expr
    high: int
    low: int


@dataclass(frozen=True)
class Conditional:
    condition: Condition
    then: Expr
    otherwise: Expr


@dataclass(frozen=True)
class Call:
    """Call with `arguments` in their order: the index of the parameter, and an expression or place."""

    function: Callee
    arguments: tuple[tuple[int, Expr], ...]
    named: bool


@dataclass(frozen=True)
class PartOfPair:
    """One field of a `pair_t` made from two expressions, which are evaluated in the order `names`."""

    names: tuple[str, str]
    values: tuple[Expr, Expr]
    part: str


@dataclass(frozen=True)
class Comparison:
    op: str
    left: Expr
    right: Expr


@dataclass(frozen=True)
class Lists:
    """Comparison of two lists of two numbers each."""

    left: tuple[Expr, Expr]
    right: tuple[Expr, Expr]


@dataclass(frozen=True)
class Logic:
    op: str
    left: Condition
    right: Condition


@dataclass(frozen=True)
class Not:
    operand: Condition


Expr: TypeAlias = "Number | Variable | Element | Binary | Concatenation | Bits | Conditional | Call | PartOfPair"
Condition: TypeAlias = "Comparison | Lists | Logic | Not"


# Statements


@dataclass(frozen=True)
class Assign:
    """Assignment to a place, or to its `bits`; `op` is that of a compound assignment, or empty."""

    place: Expr
    op: str
    value: Expr
    bits: tuple[int, int] | None = None


@dataclass(frozen=True)
class SetElement:
    """`hdr.items[index] = { value }`, a header."""

    index: Expr
    value: Expr


@dataclass(frozen=True)
class Run:
    """Call for its effects only: of an action or function, or the application of a control or parser."""

    call: Call


@dataclass(frozen=True)
class If:
    condition: Condition
    then: tuple[Statement, ...]
    otherwise: tuple[Statement, ...]


@dataclass(frozen=True)
class Switch:
    value: Expr
    cases: tuple[tuple[int, tuple[Statement, ...]], ...]
    default: tuple[Statement, ...]


@dataclass(frozen=True)
class ForIn:
    variable: str
    values: tuple[Expr, ...]
    body: tuple[Statement, ...]


@dataclass(frozen=True)
class Apply:
    """Application of the table `keys`, whose only entry `entry` sets `hdr.data.d`.

    `hit` are the statements after a hit.
    """

    name: str
    keys: tuple[Expr, ...]
    entry: tuple[int, ...]
    hit: tuple[Statement, ...]


@dataclass(frozen=True)
class ReadRegister:
    place: Expr
    index: Expr


@dataclass(frozen=True)
class WriteRegister:
    index: Expr
    value: Expr


@dataclass(frozen=True)
class Return:
    value: Expr


Statement: TypeAlias = "Assign | SetElement | Run | If | Switch | ForIn | Apply | ReadRegister | WriteRegister | Return"


@dataclass(frozen=True)
class Callee:
    """A function, action, control or parser. Only actions see the variables around them."""

    kind: str  # "function", "action", "control" or "parser"
    name: str
    parameters: tuple[tuple[str, str], ...]  # direction, name
    body: tuple[Statement, ...]


@dataclass(frozen=True)
class Program:
    callees: tuple[Callee, ...]
    parser: tuple[Statement, ...]
    select: tuple[tuple[Expr, ...], tuple[int, ...], tuple[Statement, ...]]  # keys, values, statements if they match
    ingress: tuple[Statement, ...]


# Meaning

_BINARY = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
    "|+|": lambda a, b: min(a + b, 255),
    "|-|": lambda a, b: max(a - b, 0),
    "<<": lambda a, b: a << b,
    ">>": lambda a, b: a >> b,
}
_COMPARISON = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    ">=": lambda a, b: a >= b,
}

Location: TypeAlias = "tuple[str, int | None]"


class _Returned(Exception):  # noqa: N818
    def __init__(self, value: int) -> None:
        self.value = value


@dataclass
class Evaluator:
    """The state of one packet, which statements change."""

    state: dict[str, list[int]] = field(default_factory=dict)  # number or elements of each name
    register: list[int] = field(default_factory=lambda: [0] * ELEMENTS)

    def locate(self, place: Expr) -> Location:
        """Return the place with its index evaluated."""
        if isinstance(place, Element):
            return place.array, self.number(place.index) % ELEMENTS
        assert isinstance(place, Variable)
        return place.name, None

    def get(self, location: Location) -> int:
        name, index = location
        return self.state[name][index or 0]

    def set(self, location: Location, value: int) -> None:
        name, index = location
        self.state[name][index or 0] = value & 0xFF

    def number(self, e: Expr) -> int:
        return self._number(e) & 0xFF

    def _number(self, e: Expr) -> int:
        if isinstance(e, Number):
            return e.value
        if isinstance(e, Variable):
            return self.get((e.name, None))
        if isinstance(e, Element):
            elements = list(self.state[e.array])
            return elements[self.number(e.index) % ELEMENTS]
        if isinstance(e, Binary):
            left = self.number(e.left)
            right: int = _BINARY[e.op](left, self.number(e.right))
            return right
        if isinstance(e, Concatenation):
            left = self.number(e.left)
            return (left & 15) << 4 | self.number(e.right) & 15
        if isinstance(e, Bits):
            return self.number(e.base) >> e.low & (1 << e.high - e.low + 1) - 1
        if isinstance(e, Conditional):
            return self.number(e.then if self.holds(e.condition) else e.otherwise)
        if isinstance(e, PartOfPair):
            values = [self.number(v) for v in e.values]
            return values[e.names.index(e.part)]
        return self.call(e)

    def holds(self, c: Condition) -> bool:
        if isinstance(c, Comparison):
            left = self.number(c.left)
            result: bool = _COMPARISON[c.op](left, self.number(c.right))
            return result
        if isinstance(c, Lists):
            left_values = [self.number(e) for e in c.left]
            return left_values == [self.number(e) for e in c.right]
        if isinstance(c, Not):
            return not self.holds(c.operand)
        if self.holds(c.left) == (c.op == "||"):
            return c.op == "||"
        return self.holds(c.right)

    def call(self, call: Call) -> int:
        callee = call.function
        directions = [direction for direction, _ in callee.parameters]
        values, copied_out = {}, []
        for i, argument in call.arguments:
            if directions[i] == "in":
                values[i] = self.number(argument)
            else:
                location = self.locate(argument)
                values[i] = self.get(location)  # also for an `out` parameter, which is not read before it is set
                copied_out.append((i, location))
        names = [name for _, name in callee.parameters]
        hidden = {name: self.state.pop(name) for name in names if name in self.state}
        self.state.update({name: [values[i]] for i, name in enumerate(names)})
        result = self.run_body(callee.body)
        final = [self.state.pop(name)[0] for name in names]
        self.state.update(hidden)
        for i, location in copied_out:
            self.set(location, final[i])
        return result

    def run_body(self, body: Sequence[Statement]) -> int:
        try:
            self.run(body)
        except _Returned as returned:
            return returned.value
        return 0

    def run(self, body: Sequence[Statement]) -> None:
        for statement in body:
            self.statement(statement)

    def statement(self, s: Statement) -> None:
        if isinstance(s, Assign):
            self._assign(s)
        elif isinstance(s, SetElement):
            index = self.number(s.index) % ELEMENTS
            self.state["hdr.items"][index] = self.number(s.value)
        elif isinstance(s, Run):
            self.call(s.call)
        elif isinstance(s, If):
            self.run(s.then if self.holds(s.condition) else s.otherwise)
        elif isinstance(s, Switch):
            value = self.number(s.value)
            self.run(next((body for label, body in s.cases if label == value), s.default))
        elif isinstance(s, ForIn):
            for value in [self.number(v) for v in s.values]:
                self.state[s.variable] = [value]
                self.run(s.body)
        elif isinstance(s, Apply):
            if tuple(self.number(k) for k in s.keys) == s.entry:
                self.state["hdr.data.d"] = [0x44]
                self.run(s.hit)
        elif isinstance(s, ReadRegister):
            location = self.locate(s.place)
            self.set(location, self.register[self.number(s.index) % ELEMENTS])
        elif isinstance(s, WriteRegister):
            index = self.number(s.index) % ELEMENTS
            self.register[index] = self.number(s.value)
        else:
            raise _Returned(self.number(s.value))

    def _assign(self, s: Assign) -> None:
        location = self.locate(s.place)
        if s.bits is not None:
            high, low = s.bits
            value, mask = self.number(s.value), (1 << high - low + 1) - 1 << low
            self.set(location, self.get(location) & ~mask | value << low & mask)
        elif s.op:
            old = self.get(location)
            self.set(location, _BINARY[s.op](old, self.number(s.value)))
        else:
            self.set(location, self.number(s.value))


def run(program: Program, frame: bytes) -> bytes:
    """Run the program on a frame of four fields and four elements; return these, the cells and the registers."""
    evaluator = Evaluator({name: [frame[i]] for i, name in enumerate(FIELDS)})
    evaluator.state["hdr.items"] = list(frame[4:8])
    evaluator.state["meta.cells"] = [0] * ELEMENTS
    evaluator.run(program.parser)
    keys, values, matched = program.select
    if tuple(evaluator.number(k) for k in keys) == values:
        evaluator.run(matched)
    evaluator.state["x"], evaluator.state["y"] = [1], [2]
    evaluator.run(program.ingress)
    state = [n for name in (*FIELDS, *ARRAYS) for n in evaluator.state[name]]
    return bytes([*state, evaluator.state["x"][0], evaluator.state["y"][0], *evaluator.register])


# Text


def text(e: Expr) -> str:
    if isinstance(e, Number):
        return f"8w{e.value}"
    if isinstance(e, Variable):
        return e.name
    if isinstance(e, Element):
        return f"{e.array}[{text(e.index)} & 3]" + (".f" if e.array == "hdr.items" else "")
    if isinstance(e, Binary):
        return f"({text(e.left)} {e.op} {text(e.right)})"
    if isinstance(e, Concatenation):
        return f"(({text(e.left)})[3:0] ++ ({text(e.right)})[3:0])"
    if isinstance(e, Bits):
        return f"(bit<8>)(({text(e.base)})[{e.high}:{e.low}])"
    if isinstance(e, Conditional):
        return f"({condition_text(e.condition)} ? {text(e.then)} : {text(e.otherwise)})"
    if isinstance(e, PartOfPair):
        parts = ", ".join(f"{n} = {text(v)}" for n, v in zip(e.names, e.values, strict=True))
        return f"{e.part}_of({{{parts}}})"
    return call_text(e)


def condition_text(c: Condition) -> str:
    if isinstance(c, Comparison):
        return f"({text(c.left)} {c.op} {text(c.right)})"
    if isinstance(c, Lists):
        left, right = (f"(pair_t){{{text(a)}, {text(b)}}}" for a, b in (c.left, c.right))
        return f"({left} == {right})"
    if isinstance(c, Not):
        return f"!{condition_text(c.operand)}"
    return f"({condition_text(c.left)} {c.op} {condition_text(c.right)})"


_BLOCKS = ("control", "parser")


def call_text(call: Call) -> str:
    names = [name for _, name in call.function.parameters]
    arguments = [f"{names[i]} = {text(e)}" if call.named else text(e) for i, e in call.arguments]
    if call.function.kind == "parser":
        arguments.append("pkt = pkt" if call.named else "pkt")
    name = call.function.name + (".apply" if call.function.kind in _BLOCKS else "")
    return f"{name}({', '.join(arguments)})"


def body_text(body: Sequence[Statement]) -> str:
    return " ".join(statement_text(s) for s in body)


def statement_text(s: Statement) -> str:
    if isinstance(s, Assign):
        if s.bits is not None:
            width = s.bits[0] - s.bits[1] + 1
            return f"{text(s.place)}[{s.bits[0]}:{s.bits[1]}] = (bit<{width}>)({text(s.value)});"
        return f"{text(s.place)} {s.op}= {text(s.value)};"
    if isinstance(s, SetElement):
        return f"hdr.items[{text(s.index)} & 3] = {{ {text(s.value)} }};"
    if isinstance(s, Run):
        return f"{call_text(s.call)};"
    if isinstance(s, If):
        otherwise = f" else {{ {body_text(s.otherwise)} }}" if s.otherwise else ""
        return f"if ({condition_text(s.condition)}) {{ {body_text(s.then)} }}{otherwise}"
    if isinstance(s, Switch):
        cases = " ".join(f"{label}: {{ {body_text(body)} }}" for label, body in s.cases)
        return f"switch ({text(s.value)}) {{ {cases} default: {{ {body_text(s.default)} }} }}"
    if isinstance(s, ForIn):
        values = ", ".join(map(text, s.values))
        return f"for (bit<8> {s.variable} in (list<bit<8>>){{{values}}}) {{ {body_text(s.body)} }}"
    if isinstance(s, Apply):
        return f"if ({s.name}.apply().hit) {{ {body_text(s.hit)} }}"
    if isinstance(s, ReadRegister):
        return f"kept.read({text(s.place)}, (bit<32>)({text(s.index)} & 3));"
    if isinstance(s, WriteRegister):
        return f"kept.write((bit<32>)({text(s.index)} & 3), {text(s.value)});"
    return f"return {text(s.value)};"


HEAD = """#include <core.p4>
#include <v1model.p4>
header data_t { bit<8> a; bit<8> b; bit<8> c; bit<8> d; }
header item_t { bit<8> f; }
header report_t {
    bit<8> c0; bit<8> c1; bit<8> c2; bit<8> c3; bit<8> x; bit<8> y; bit<8> r0; bit<8> r1; bit<8> r2; bit<8> r3;
}
struct headers_t { data_t data; item_t[4] items; report_t report; }
struct pair_t { bit<8> one; bit<8> two; }
bit<8> one_of(in pair_t p) { return p.one; }
bit<8> two_of(in pair_t p) { return p.two; }
"""
PARAMETERS = "inout headers_t hdr, inout meta_t meta"
REPORT = """
        hdr.report.setValid();
        hdr.report.c0 = CELL0; hdr.report.c1 = CELL1; hdr.report.c2 = CELL2; hdr.report.c3 = CELL3;
        hdr.report.x = x; hdr.report.y = y;
        kept.read(hdr.report.r0, 0); kept.read(hdr.report.r1, 1);
        kept.read(hdr.report.r2, 2); kept.read(hdr.report.r3, 3);"""


def callee_text(callee: Callee) -> str:
    parameters = ", ".join(f"{direction} bit<8> {name}" for direction, name in callee.parameters)
    if callee.kind == "control":
        return f"control {callee.name}_t({parameters}) {{ apply {{ {body_text(callee.body)} }} }}"
    if callee.kind == "parser":
        body = f"state start {{ {body_text(callee.body)} transition accept; }}"
        return f"parser {callee.name}_t({parameters}, packet_in pkt) {{ {body} }}"
    what = "action" if callee.kind == "action" else "bit<8>"
    return f"{what} {callee.name}({parameters}) {{ {body_text(callee.body)} }}"


def applied(body: Sequence[Statement]) -> Iterator[Apply]:
    for s in body:
        if isinstance(s, Apply):
            yield s
            yield from applied(s.hit)
        elif isinstance(s, If):
            yield from applied((*s.then, *s.otherwise))


def table_text(table: Apply) -> str:
    keys = " ".join(f'{text(k)} : exact @name("k{i}");' for i, k in enumerate(table.keys))
    entry = ", ".join(map(str, table.entry))
    return (
        f"table {table.name} {{ key = {{ {keys} }} actions = {{ mark; NoAction; }}"
        f" const default_action = NoAction; const entries = {{ ({entry}) : mark(); }} }}"
    )


def program_text(program: Program, cells: bool = True) -> str:
    """Return the program for v1model. Without `cells` there is no array `meta.cells`, and its elements read as 0."""
    report = REPORT
    for i in range(ELEMENTS):
        report = report.replace(f"CELL{i}", f"meta.cells[{i}]" if cells else "0")
    metadata = "struct meta_t { bit<8>[4] cells; }\n" if cells else "struct meta_t { }\n"
    keys, values, matched = program.select
    outside = [callee_text(c) for c in program.callees if c.kind != "action"]
    inside = [callee_text(c) for c in program.callees if c.kind == "action"]
    instances, parsers = ([f"{c.name}_t() {c.name};" for c in program.callees if c.kind == kind] for kind in _BLOCKS)
    tables = [table_text(table) for table in applied(program.ingress)]
    lines = "\n    ".join([*instances, *inside, *tables])
    select = f"({', '.join(map(text, keys))}) {{ ({', '.join(map(str, values))}): matched; default: accept; }}"
    extracts = " ".join(["pkt.extract(hdr.items.next);"] * ELEMENTS)
    return (
        HEAD
        + metadata
        + "\n".join(outside)
        + f"""
parser parse(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {{
    {" ".join(parsers)}
    state start {{ pkt.extract(hdr.data); {extracts} {body_text(program.parser)}
        transition select{select} }}
    state matched {{ {body_text(matched)} transition accept; }}
}}
control verify_sums({PARAMETERS}) {{ apply {{ }} }}
control ingress({PARAMETERS}, inout standard_metadata_t std) {{
    register<bit<8>>(4) kept;
    bit<8> x = 1;
    bit<8> y = 2;
    action mark() {{ hdr.data.d = 0x44; }}
    {lines}
    apply {{
        std.egress_spec = 1;
        {body_text(program.ingress)}{report}
    }}
}}
control egress({PARAMETERS}, inout standard_metadata_t std) {{ apply {{ }} }}
control update_sums({PARAMETERS}) {{ apply {{ }} }}
control deparse(packet_out pkt, in headers_t hdr) {{ apply {{ pkt.emit(hdr); }} }}
V1Switch(parse(), verify_sums(), ingress(), egress(), update_sums(), deparse()) main;
"""
    )


# Random programs


@dataclass(frozen=True)
class Scope:
    """Names that exist in a place.

    `control` is true where tables and registers exist; `blocks` are the kinds of blocks that can be
    called besides functions.
    """

    readable: tuple[str, ...]
    writable: tuple[str, ...]
    arrays: tuple[str, ...]
    control: bool = False
    blocks: tuple[str, ...] = ()

    def with_variable(self, name: str, writable: bool = True) -> Scope:
        return replace(
            self,
            readable=(*self.readable, name),
            writable=(*self.writable, name) if writable else self.writable,
        )


class Maker:
    """Generator of programs in which the evaluation of one part changes a value that another part reads.

    `plain` programs have no arrays, loops or compound assignments, which p4c's back end for BMv2
    does not accept everywhere.
    """

    def __init__(self, rng: random.Random, plain: bool = False) -> None:
        self.rng = rng
        self.plain = plain
        self.arrays = () if plain else ARRAYS
        self.callees: list[Callee] = []
        self.names = 0

    def program(self) -> Program:
        for i in range(3):
            self.callees.append(self.callee("function", f"f{i}", Scope((), (), ())))
        self.callees.append(self.callee("parser", "p0", Scope((), (), ())))
        parser = Scope(FIELDS, FIELDS, self.arrays, blocks=("parser",))
        statements, keys = self.body(parser, 2), (self.number(parser, 2), self.number(parser, 2))
        select = keys, (self.small(), self.small()), self.body(parser, 1)
        control = Scope((*FIELDS, "x", "y"), (*FIELDS, "x", "y"), self.arrays, True, ("control", "action"))
        self.callees.append(self.callee("control", "c0", Scope((), (), ())))
        self.callees.append(self.callee("action", "a0", replace(control, control=False, blocks=())))
        return Program(tuple(self.callees), statements, select, self.body(control, 6))

    def small(self) -> int:
        return self.rng.randrange(4)

    def new_name(self, prefix: str) -> str:
        self.names += 1
        return f"{prefix}{self.names}"

    # Callees and statements

    def callee(self, kind: str, name: str, scope: Scope) -> Callee:
        directions = [self.rng.choice(["in", "inout", "inout", "out"]) for _ in range(self.rng.randrange(1, 4))]
        parameters = tuple((direction, f"{name}_{i}") for i, direction in enumerate(directions))
        for direction, parameter in parameters:
            if direction != "out":
                scope = scope.with_variable(parameter, direction == "inout")
        body: list[Statement] = []
        for direction, parameter in parameters:
            if direction == "out":  # an `out` parameter has no value before
                body.append(Assign(Variable(parameter), "", self.number(scope, 1)))
                scope = scope.with_variable(parameter)
        if scope.writable:
            body += [self.assignment(scope, 1) for _ in range(self.rng.randrange(1, 3))]
        if kind == "function":
            if self.rng.random() < 0.3:
                body.append(If(self.condition(scope, 1), (Return(self.number(scope, 1)),), ()))
            body.append(Return(self.number(scope, 1)))
        return Callee(kind, name, parameters, tuple(body))

    def body(self, scope: Scope, most: int) -> tuple[Statement, ...]:
        return tuple(self.statement(scope) for _ in range(self.rng.randrange(1, most + 1)))

    def statement(self, scope: Scope) -> Statement:
        inner = replace(scope, control=False, blocks=())
        choice = self.rng.randrange(15 if scope.control else 6)
        if choice <= 2:
            return self.assignment(scope, 3)
        if choice == 3 and not self.plain:
            return SetElement(self.number(scope, 2), self.number(scope, 2))
        if choice <= 4:
            return Run(self.call(scope, 2, self.rng.choice(["function", *scope.blocks])))
        if choice == 5:
            return If(self.condition(scope, 3), self.body(inner, 2), self.body(inner, 1))
        if choice <= 7:
            cases = tuple((label, self.body(inner, 1)) for label in self.rng.sample(range(6), 2))
            return Switch(self.number(scope, 2), cases, self.body(inner, 1))
        if choice == 8 and not self.plain:
            variable = self.new_name("n")
            values = (self.number(scope, 2), self.number(scope, 2), self.number(scope, 2))
            return ForIn(variable, values, (self.assignment(inner.with_variable(variable), 1),))
        if choice <= 11:
            keys = tuple(self.number(scope, 2) for _ in range(self.rng.randrange(2, 4)))
            return Apply(self.new_name("t"), keys, tuple(self.small() for _ in keys), self.body(inner, 1))
        if choice <= 13:
            return ReadRegister(self.place(scope, 2), self.number(scope, 2))
        return WriteRegister(self.number(scope, 2), self.number(scope, 2))

    def assignment(self, scope: Scope, depth: int) -> Assign:
        place, value = self.place(scope, depth), self.number(scope, depth)
        choice = self.rng.random()
        if choice < 0.15:
            low = self.rng.randrange(7)
            return Assign(place, "", value, (self.rng.randrange(low, 8), low))
        compound = choice < 0.35 and not self.plain
        return Assign(place, self.rng.choice(["+", "-", "^", "|+|"]) if compound else "", value)

    # Expressions

    def place(self, scope: Scope, depth: int) -> Expr:
        if scope.arrays and self.rng.random() < 0.4:
            return Element(self.rng.choice(scope.arrays), self.number(scope, depth - 1))
        return Variable(self.rng.choice(scope.writable))

    def leaf(self, scope: Scope) -> Expr:
        if not scope.readable or self.rng.random() < 0.2:
            return Number(self.small())
        return Variable(self.rng.choice(scope.readable))

    def number(self, scope: Scope, depth: int) -> Expr:
        choice = self.rng.randrange(12)
        if depth <= 0 or choice <= 1:
            return self.leaf(scope)
        if choice <= 5 and self.callees and scope.writable:
            return self.call(scope, depth, "function")
        first, second = self.number(scope, depth - 1), self.number(scope, depth - 1)
        if choice <= 7:
            return Binary(self.rng.choice(list(_BINARY)), first, second)
        if choice == 8:
            return Concatenation(first, second)
        if choice == 9:
            return Conditional(self.condition(scope, depth - 1), first, second)
        if choice == 10:
            names = ("one", "two") if self.rng.random() < 0.5 else ("two", "one")
            return PartOfPair(names, (first, second), self.rng.choice(names))
        if scope.arrays and self.rng.random() < 0.7:
            return Element(self.rng.choice(scope.arrays), first)
        low = self.rng.randrange(7)
        return Bits(first, self.rng.randrange(low, 8), low)

    def condition(self, scope: Scope, depth: int) -> Condition:
        choice = self.rng.randrange(5) if depth > 0 else 0
        if choice <= 1:
            return Comparison(
                self.rng.choice(list(_COMPARISON)), self.number(scope, depth - 1), self.number(scope, depth - 1)
            )
        if choice == 2:
            a, b, c, d = (self.number(scope, depth - 1) for _ in range(4))
            return Lists((a, b), (c, d))
        if choice == 3:
            return Not(self.condition(scope, depth - 1))
        return Logic(self.rng.choice(["&&", "||"]), self.condition(scope, depth - 1), self.condition(scope, depth - 1))

    def call(self, scope: Scope, depth: int, kind: str) -> Call:
        callee = self.rng.choice([c for c in self.callees if c.kind == kind])
        arguments = [
            (i, self.number(scope, depth - 1) if direction == "in" else self.place(scope, depth - 1))
            for i, (direction, _) in enumerate(callee.parameters)
        ]
        named = self.rng.random() < 0.4
        if named:
            self.rng.shuffle(arguments)
        return Call(callee, tuple(arguments), named)
