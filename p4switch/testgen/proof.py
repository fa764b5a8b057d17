"""Proofs of unreachable statements: all paths of a program at once, as formulas.

Where paths join, a value is a formula over all of them. Values that tests may choose are free variables: bytes of the
packet, entries, contents of registers, clocks. So are values that this module does not follow: hashes, stack elements
at run-time indices, and everything that loops may change. A statement whose formula has no solution is unreachable. One
whose formula has a solution may still be unreachable, and nothing is concluded about statements that were not followed.
(State merging: Kuznetsov et al., "Efficient State Merging in Symbolic Execution", PLDI 2012; for P4: Albab et al.,
"SwitchV", SIGCOMM 2022.)
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import z3

from p4switch import ir
from p4switch.bits.domain import is_signed, width
from p4switch.compiler import types
from p4switch.compiler.midend.storage import flat_fields
from p4switch.compiler.source import Location
from p4switch.ir.graph import reverse_postorder, successors
from p4switch.testgen.code import Code
from p4switch.testgen.transfer import SHORT, Transfer
from p4switch.testgen.values import ZERO, Scalar, formula, operate

_RESOURCES = 1_500_000  # of one question to z3, in its own units
_WIDEST_DRAWN = 64  # bits of a random number, in BMv2
_ALWAYS = z3.BoolVal(True)
_NEVER = z3.BoolVal(False)

Place = tuple[str, str]


@dataclass(slots=True)
class State:
    """State of the packet on all paths to a place.

    `guard` is the condition on inputs that lead there. Headers that are not in `valid` are invalid.
    """

    guard: Any
    store: dict[Place, Scalar] = field(default_factory=dict)
    valid: dict[str, Any] = field(default_factory=dict)

    def under(self, condition: Any) -> State:
        return State(_and(self.guard, condition), dict(self.store), dict(self.valid))


@dataclass(frozen=True, slots=True)
class Edge:
    """Edge from a block to another; `span` and `text` describe the decision."""

    source: ir.Block
    guard: Any
    span: Any
    text: str


@dataclass(frozen=True, slots=True)
class Unreachable:
    """Unreachable statement at `place`. `reason` describes the nearest decision that never leads to it."""

    bit: int
    place: Location
    reason: str


def _and(a: Any, b: Any) -> Any:
    if z3.is_false(a) or z3.is_true(b):
        return a
    return b if z3.is_false(b) or z3.is_true(a) else z3.And(a, b)


def _or(*options: Any) -> Any:
    some = [o for o in options if not z3.is_false(o)]
    if any(z3.is_true(o) for o in some):
        return _ALWAYS
    return z3.Or(*some) if len(some) > 1 else some[0] if some else _NEVER


def _not(a: Any) -> Any:
    return _NEVER if z3.is_true(a) else _ALWAYS if z3.is_false(a) else z3.Not(a)


def _bool(value: Scalar) -> Any:
    if value.formula is None:
        return _ALWAYS if value.number else _NEVER
    return value.formula


class Prover:
    """Formulas of `code`, built until `deadline`, a time of `time.monotonic`. Raises TimeoutError.

    `stable`: a field of an invalid header reads the same every time, which P4 does not promise.
    """

    def __init__(self, code: Code, deadline: float, stable: bool = False) -> None:
        self.code, self.program = code, code.program
        self._deadline = deadline
        self.headers = {i.name: i.type for i in self.program.headers}
        self._stacks = {ref.name: names for ref, names in self.program.stacks}
        self.siblings = {m: members for _, members in self.program.unions for m in members}
        blocks = _with_actions(block for start in code.blocks.values() for block in reverse_postorder(start))
        self.parser_error: Place | None = None  # where the target has the error of the parser that is followed
        self._types: dict[Place, types.Type] = {
            **{(i, n): t for i, h in self.headers.items() for n, t in flat_fields(h)},
            **{(m.name, n): t for m in self.program.metadata for n, t in m.fields},
            **{("scalars", n): t for n, t in self.program.scalars.items()},
        }
        self._count = 0
        self._stale: dict[Place, Scalar] | None = {} if stable else None
        self._where: dict[int, list[Any]] = {}  # guards of each statement
        self._guards: dict[ir.Block, list[Any]] = {}
        self._edges: dict[ir.Block, list[Edge]] = {}
        self._blocks: dict[int, list[ir.Block]] = {}  # of each statement
        self._conditions: dict[int, str] = {}  # what keeps checksums from being one
        for block in blocks:
            for span in _spans(block):
                self._blocks.setdefault(self.code.bit(span), []).append(block)
        self.ends: list[State] = []  # of the pipeline, by exit or an error of the parser
        self._params: list[Scalar] = []
        code.lowered.package.prove(self)

    def unreachable(self, wanted: int) -> list[Unreachable]:
        """Return the statements of `wanted` that are proven unreachable within the time."""
        proven = []
        for number in range(wanted.bit_length()):
            bit = 1 << number
            if wanted & bit and self._followed(bit) and self._never(self._where[bit]):
                reason = self._reason(bit)
                if self._stale is not None:
                    reason += ", unless a field of a header that is not valid changes between two reads"
                proven.append(Unreachable(bit, self.code.location(bit), reason))
        return proven

    def _followed(self, bit: int) -> bool:
        """Return whether the guards of all blocks with the statement are known."""
        return bit in self._where and all(block in self._guards for block in self._blocks.get(bit, []))

    def _never(self, guards: list[Any]) -> bool:
        whole = _or(*guards)
        if z3.is_false(whole):
            return True
        left = self._deadline - time.monotonic()
        if z3.is_true(whole) or left <= 0:
            return False
        solver = z3.Solver()
        solver.set("rlimit", _RESOURCES)
        solver.set("timeout", max(1, int(1000 * left)))
        solver.add(whole)
        return bool(solver.check() == z3.unsat)

    def _reason(self, bit: int) -> str:
        """Return the nearest reached decisions that never lead to the statement."""
        waiting = list(self._blocks.get(bit, []))
        seen = set(waiting)
        reasons: list[str] = []
        while waiting:
            for edge in self._edges.get(waiting.pop(0), []):
                if not self._never(self._guards.get(edge.source, [])):
                    place = None if edge.span is None else self.code.lowered.source.source.locate(edge.span)
                    reasons.append(edge.text if place is None else f"{edge.text} at line {place.line}")
                elif edge.source not in seen:
                    seen.add(edge.source)
                    waiting.append(edge.source)
        return "; ".join(dict.fromkeys(reasons)) or self._conditions.get(bit, "nothing leads there")

    # For the architecture's packet path

    always = _ALWAYS

    @staticmethod
    def fresh() -> State:
        """Return a state that contains all packets."""
        return State(_ALWAYS)

    @staticmethod
    def besides(states: Iterable[State]) -> Any:
        """Return the condition of being in none of `states`."""
        return _not(_or(*(state.guard for state in states)))

    def checksums(self, state: State, verify: bool) -> None:
        for checksum in self.program.checksums:
            if checksum.verify == verify:
                header = checksum.target.header
                there = state.valid.get(header, _NEVER) if verify and header in self.headers else _ALWAYS
                applies = _and(there, _bool(self.value(checksum.condition, state)))
                self.cover(checksum.span, _and(state.guard, applies))
                self._conditions[self.code.bit(checksum.span)] = "the checksum's condition is never true there"

    def one_of(self, numbers: list[int], at: Place, state: State) -> Scalar:
        """Return an arbitrary one of the numbers, which becomes the value of a field of at most 32 bits."""
        value = ZERO
        if len(numbers) > 1:
            free = self.free(types.Bits(32))
            state.guard = _and(state.guard, z3.Or(*(free.formula == n for n in numbers)))
            value = free
        else:
            value = Scalar(numbers[0])
        state.store[at] = value
        return value

    def free_field(self, state: State, instance: str, name: str) -> None:
        """Make a field of the target's metadata free, if the program has it."""
        t = self._types.get((instance, name))
        if t is not None:
            state.store[instance, name] = self.free(t)

    def free_metadata(self, state: State) -> None:
        """Make free all metadata that the target and the program exchange."""
        for metadata in self.program.metadata:
            for name, _ in metadata.fields:
                self.free_field(state, metadata.name, name)

    def carry_over(self, state: State, condition: Any) -> None:
        """Carry over metadata that packets may bring along where `condition` holds (None: they never do)."""
        if condition is None:
            return
        for fields in self.program.field_lists:
            for element in fields.elements:
                if isinstance(element, ir.FieldRef) and element.header not in self.headers:
                    here = (element.header, element.name)
                    self._merge_value(state.store, here, element.type, condition, self.free(element.type))

    def parsed(self, name: str, state: State) -> State:
        """Return the state after the parser with that name."""
        start = self.code.blocks[name]
        order = reverse_postorder(start)
        position = {block: i for i, block in enumerate(order)}
        if all(position[t] > i for i, block in enumerate(order) for t in successors(block)):
            return self.through(start, state)
        for block in order:  # loops: whatever the parser touches may be anything afterwards
            self._note(block, _ALWAYS)
            for span in _spans(block):
                self.cover(span, _ALWAYS)
        self._loosen(state, order)
        return state

    # Values

    def free(self, t: types.Type) -> Scalar:
        self._count += 1
        name = f"free {self._count}"
        return Scalar(0, z3.Bool(name) if isinstance(t, types.Bool) else z3.BitVec(name, width(t)))

    def flag(self) -> Any:
        return self.free(types.BOOL).formula

    def forget(self, state: State, header: str) -> None:
        """Make validity and contents of `header` free."""
        state.valid[header] = self.flag()
        for name, t in flat_fields(self.headers[header]):
            state.store[header, name] = self.free(t)

    def _loosen(self, state: State, blocks: Iterable[ir.Block]) -> None:
        """Make free what `blocks` may change: metadata that they write, all headers, all metadata of the target."""
        self.free_metadata(state)
        for header in self.headers:
            self.forget(state, header)
        for block in _with_actions(blocks):
            places: list[Any] = []
            for op in block.ops:
                places += op.writes
            if isinstance(block.end, ir.Apply):
                places.append(self._meter_result(block.end.table))
            for place in places:
                if isinstance(place, ir.FieldRef):
                    self.assign(place, self.free(place.type), state)

    def _merge_value(self, store: dict[Place, Scalar], at: Place, t: types.Type, condition: Any, new: Scalar) -> None:
        """Store `new` where `condition` holds, and keep the old value elsewhere."""
        old = store.get(at)
        if z3.is_true(condition):
            store[at] = new
            return
        if old is None:
            old = self.free(t) if at[0] in self.headers else ZERO
        if old is not new and (old.formula is not None or new.formula is not None or old.number != new.number):
            store[at] = Scalar(0, z3.If(condition, formula(new, t), formula(old, t)))

    def joined(self, states: list[State]) -> State:
        states = [s for s in states if not z3.is_false(s.guard)]
        if not states:
            return State(_NEVER)
        result = states[0].under(_ALWAYS)
        for other in states[1:]:
            for header in {**result.valid, **other.valid}:
                mine, theirs = (s.valid.get(header, _NEVER) for s in (result, other))
                if not mine.eq(theirs):
                    result.valid[header] = z3.simplify(z3.If(other.guard, theirs, mine))
            for at in {**result.store, **other.store}:
                mine, theirs = result.store.get(at), other.store.get(at)
                if _same(mine, theirs):
                    continue
                t = self._types[at]
                if theirs is None:
                    theirs = self.free(t) if at[0] in self.headers else ZERO
                self._merge_value(result.store, at, t, other.guard, theirs)
            result.guard = _or(result.guard, other.guard)
        return result

    # Code

    def through(self, start: ir.Block, state: State) -> State:
        """Return the state at the end of a parser or pipeline, however it ends."""
        self.ends = []
        out = self._graph(start, state)
        return self.joined([out, *self.ends])

    def _graph(self, start: ir.Block, state: State) -> State:
        """Return the state at the end of code.

        A loop is followed once, for an arbitrary round: its head starts with anything that earlier rounds may have
        left.
        """
        arriving: dict[ir.Block, list[State]] = {start: [state]}
        ends: list[State] = []
        order = reverse_postorder(start)
        position = {block: i for i, block in enumerate(order)}
        heads = {t for i, block in enumerate(order) for t in successors(block) if position[t] <= i}
        for block in order:
            state = self.joined(arriving.pop(block, []))
            if z3.is_false(state.guard) or time.monotonic() > self._deadline:
                self._skip([block])
                continue
            self._note(block, state.guard)
            if block in heads:
                self._loosen(state, _loop(block))
            transfer = Transfer(self, state)
            for op in block.ops:
                self.cover(op.span, state.guard)
                op.accept(transfer)
            for target, following, span, text in self._following(block, state):
                if target is None:
                    ends.append(following)
                else:
                    arriving.setdefault(target, []).append(following)
                    self._edges.setdefault(target, []).append(Edge(block, following.guard, span, text))
        if time.monotonic() > self._deadline:
            raise TimeoutError
        return self.joined(ends)

    def _note(self, block: ir.Block, guard: Any) -> None:
        self._guards.setdefault(block, []).append(guard)

    def _skip(self, blocks: Iterable[ir.Block]) -> None:
        """Mark `blocks`, and the actions of their tables, as not reached here."""
        for block in _with_actions(blocks):
            self._note(block, _NEVER)
            for span in _spans(block):
                self.cover(span, _NEVER)

    def cover(self, span: Any, guard: Any) -> None:
        self._where.setdefault(self.code.bit(span), []).append(guard)

    def _following(self, block: ir.Block, state: State) -> Iterator[tuple[ir.Block | None, State, Any, str]]:
        """Yield the successors, where None is the end, with the decision that leads to each."""
        end = block.end
        if isinstance(end, ir.Goto):
            yield end.target, state, None, "nothing leads on"
        elif isinstance(end, ir.Branch):
            self.cover(end.span, state.guard)
            condition = _bool(self.value(end.condition, state))
            yield end.if_true, state.under(condition), end.span, "the condition is never true"
            yield end.if_false, state.under(_not(condition)), end.span, "the condition is never false"
        elif isinstance(end, ir.Apply):
            yield from self._apply(block, end, state)
        elif isinstance(end, ir.Select):
            yield from self._select(end, state)
        else:
            yield None, state, None, ""

    def _select(self, end: ir.Select, state: State) -> Iterator[tuple[ir.Block | None, State, Any, str]]:
        if any(isinstance(k, ir.Lookahead) for k in end.keys):
            self.may_fail(state, SHORT)
        keys = [self.value(k, state) for k in end.keys]
        rest = _ALWAYS
        spans = [*end.spans, *[None] * len(end.cases)]
        for (case, target), span in zip(end.cases, spans, strict=False):
            matches = self.flag() if isinstance(case, str) else _matching(keys, case, end.keys)
            yield target, state.under(_and(rest, matches)), span, "the case is never taken"
            rest = _and(rest, _not(matches))
        self.ends.append(state.under(rest))  # without an error, as in both switches

    def may_fail(self, state: State, *errors: str) -> None:
        fails = self.flag()
        self._fail(state.under(fails), list(errors))
        state.guard = _and(state.guard, _not(fails))

    def _fail(self, state: State, errors: list[str]) -> None:
        """End the parser with one of the errors."""
        if self.parser_error is not None:
            self.one_of([self.program.errors[name] for name in errors], self.parser_error, state)
        self.ends.append(state)

    # Tables

    def _apply(self, block: ir.Block, end: ir.Apply, state: State) -> Iterator[tuple[ir.Block | None, State, Any, str]]:
        table = end.table
        result = self._meter_result(table)
        if result is not None:
            self.assign(result, self.free(result.type), state)
        if isinstance(table.entry, ir.FieldRef):
            self.assign(table.entry, self.free(table.entry.type), state)
        idle = list(table.actions)
        by_target: dict[ir.Block, list[State]] = {}
        for action, args, hit, condition in self._outcomes(table, state):
            after = state.under(condition)
            if action is not None:
                saved, self._params = self._params, args
                text = f"table {table.name} never runs the action; it is declared"
                self._edges.setdefault(action.body, []).append(Edge(block, after.guard, table.span, text))
                after = self._graph(action.body, after)
                self._params = saved
                idle = [other for other in idle if other is not action]
            if any(isinstance(label, bool) for label in end.on):
                target = end.on.get(hit, end.default)
            else:
                number = table.actions.index(action) if action in table.actions else None
                target = end.on.get(number, end.default)
            by_target.setdefault(target, []).append(after)
        for action in idle:
            self._skip(reverse_postorder(action.body))
        for target in dict.fromkeys([*end.on.values(), end.default]):
            joined = self.joined(by_target.get(target, []))
            yield target, joined, table.span, f"what table {table.name} does never leads on to it; it is declared"

    def _meter_result(self, table: ir.Table) -> ir.FieldRef | None:
        """Return the field that the direct meter of `table` writes."""
        result = next((m.result for m in self.program.meters if table.meter and m.name == table.meter), None)
        assert result is None or isinstance(result, ir.FieldRef)
        return result

    def _outcomes(self, table: ir.Table, state: State) -> Iterator[tuple[ir.Action | None, list[Scalar], bool, Any]]:
        """Yield actions with their data, whether they are hits, and their conditions."""
        rest = _ALWAYS
        if table.entries is not None and all(entry.const for entry in table.entries):
            keys = [self.value(k.target, state) for k in table.keys]
            entries, rules = self.code.entries(table)
            hits: dict[ir.Action, list[tuple[Any, ir.ActionCall]]] = {}
            for i, entry in enumerate(entries):
                if time.monotonic() > self._deadline:
                    raise TimeoutError
                matches = rules.fits(i, keys)
                hits.setdefault(entry.call.action, []).append((_and(rest, matches), entry.call))
                rest = _and(rest, _not(matches))
            for action, calls in hits.items():
                yield action, _one_of_data(calls), True, _or(*(condition for condition, _ in calls))
        elif table.keys:
            for index in self.code.usable(table, "defaultonly"):
                chosen = self.flag()
                action = table.actions[index]
                yield action, self._arguments(action), True, _and(rest, chosen)
                rest = _and(rest, _not(chosen))
        if not table.default_const:
            for index in self.code.usable(table, "tableonly"):
                chosen = self.flag()
                action = table.actions[index]
                yield action, self._arguments(action), False, _and(rest, chosen)
                rest = _and(rest, _not(chosen))
        call_or_none = table.default
        if call_or_none is None:
            yield None, [], False, rest
        else:
            yield call_or_none.action, _constants(call_or_none), False, rest

    def _arguments(self, action: ir.Action) -> list[Scalar]:
        return [self.free(t) if types.width_of(t) != 0 else ZERO for _, t in action.params]

    # Services for operations and externs

    def number(self, number: int) -> Scalar:
        return Scalar(number)

    def require(self, condition: ir.Expr, state: State) -> None:
        """Restrict the state to packets for which `condition` holds."""
        state.guard = _and(state.guard, _bool(self.value(condition, state)))

    def fail_unless(self, condition: ir.Expr, error: ir.Expr, state: State) -> None:
        """End the parser with `error` for packets for which `condition` does not hold."""
        holds = _bool(self.value(condition, state))
        failed = state.under(_not(holds))
        if self.parser_error is not None:
            failed.store[self.parser_error] = self.value(error, state)
        self.ends.append(failed)
        state.guard = _and(state.guard, holds)

    def leave(self, state: State) -> None:
        """End the pipeline here for all packets."""
        self.ends.append(state.under(_ALWAYS))
        state.guard = _NEVER

    def anything_in(self, op: ir.Operation, state: State) -> None:
        """Make free what `op` writes."""
        for written in op.writes:
            if isinstance(written, ir.FieldRef | ir.LastField | ir.ElemField):
                self.assign(written, self.free(written.type), state)
            elif isinstance(written, ir.Valid):
                for header in self.headers_of(written.header):
                    state.valid[header] = self.flag()
            else:
                for header in self.headers_of(written):
                    self.forget(state, header)

    def drawn(self, t: types.Type, low: ir.Expr, high: ir.Expr, state: State) -> Scalar:
        """Return a number of type `t` from `low` to `high`, any number if the bounds are not known."""
        least, most = self.value(low, state), self.value(high, state)
        known = least.formula is None and most.formula is None and least.number <= most.number
        if not known or is_signed(low.type) or not width(low.type) == width(t) <= _WIDEST_DRAWN:
            return self.free(t)
        drawn = self.free(t).formula
        inside = z3.And(z3.UGE(drawn, least.number), z3.ULE(drawn, most.number))
        return Scalar(0, z3.If(inside, drawn, formula(least, low.type)))

    def make_valid(self, header: str, state: State) -> None:
        """Make a header valid; its fields hold anything."""
        before = state.valid.get(header, _NEVER)
        for sibling in self.siblings.get(header, ()):
            state.valid[sibling] = _NEVER
        state.valid[header] = _ALWAYS
        if not z3.is_true(before):
            for name, t in flat_fields(self.headers[header]):
                new = self.free(t)
                if not z3.is_false(before):
                    old = state.store.get((header, name), new)
                    new = Scalar(0, z3.If(before, formula(old, t), formula(new, t)))
                state.store[header, name] = new

    def make_invalid(self, header: str, state: State) -> None:
        state.valid[header] = _NEVER

    def extract(self, header: str, state: State) -> None:
        for sibling in self.siblings.get(header, ()):
            state.valid[sibling] = _NEVER
        state.valid[header] = _ALWAYS
        for name, t in flat_fields(self.headers[header]):
            state.store[header, name] = self.free(t)

    def each(self, ref: ir.HeaderRef, state: State, act: Callable[[str, State], None]) -> None:
        """Call `act` on a header, or on every element that a stack reference may denote."""
        if not ref.stack:
            act(ref.name, state)
            return
        for header in self.headers_of(ref):
            self.forget(state, header)

    def headers_of(self, ref: ir.Reference) -> list[str]:
        """Return all headers that `ref` may denote."""
        return [ref.name] if isinstance(ref, ir.HeaderRef) and not ref.stack else self._members(_root(ref))

    def _members(self, name: str) -> list[str]:
        """Return the headers in a stack or union."""
        unions = {u.name: members for u, members in self.program.unions}
        return [h for e in self._stacks.get(name, [name]) for h in unions.get(e, [e])]

    def copy(self, target: str, source: str, state: State) -> None:
        state.valid[target] = state.valid.get(source, _NEVER)
        for name, t in flat_fields(self.headers[target]):
            state.store[target, name] = self._load((source, name), t, state)

    # Places and expressions

    def assign(self, place: ir.Expr, value: Scalar, state: State) -> None:
        if isinstance(place.type, types.Varbit):
            return
        if isinstance(place, ir.FieldRef):
            state.store[place.header, place.name] = value
            return
        assert isinstance(place, (ir.LastField, ir.ElemField))
        for header in self._members(place.stack):
            for name, t in flat_fields(self.headers[header]):
                if name == place.name:
                    state.store[header, name] = self.free(t)

    def _load(self, at: Place, t: types.Type, state: State) -> Scalar:
        header = at[0]
        if isinstance(t, types.Varbit):
            return self.free(t)
        if header not in self.headers:
            return state.store.get(at, ZERO)
        valid = state.valid.get(header, _NEVER)
        there = state.store.get(at)
        if there is not None and z3.is_true(valid):
            return there
        undefined = self.free(t) if self._stale is None else self._stale.setdefault(at, self.free(t))
        if there is None or z3.is_false(valid):
            return undefined
        return Scalar(0, z3.If(valid, formula(there, t), formula(undefined, t)))

    def value(self, expr: ir.Expr, state: State) -> Scalar:
        if isinstance(expr, ir.FieldRef):
            return self._load((expr.header, expr.name), expr.type, state)
        if isinstance(expr, ir.Const):
            bits = types.width_of(expr.type)
            return Scalar(expr.value if bits is None else expr.value & (1 << bits) - 1)
        if isinstance(expr, ir.Op):
            return self._operate(expr, state)
        if isinstance(expr, ir.Param):
            return self._params[expr.index]
        if isinstance(expr, ir.Valid) and not expr.header.stack:
            valid = state.valid.get(expr.header.name, _NEVER)
            known = z3.is_true(valid) or z3.is_false(valid)
            return Scalar(int(z3.is_true(valid)), None if known else valid)
        return self.free(expr.type)

    def _operate(self, expr: ir.Op, state: State) -> Scalar:
        args = [self.value(expr.args[0], state)]
        first = args[0]
        if expr.op in ("&&", "||") and first.formula is None and bool(first.number) == (expr.op == "||"):
            return first
        if expr.op == "?:" and first.formula is None:
            return self.value(expr.args[1 if first.number else 2], state)
        args += [self.value(a, state) for a in expr.args[1:]]
        if expr.op in ("&&", "||") and first.formula is None:
            return args[1]
        return operate(expr, args)


def _with_actions(blocks: Iterable[ir.Block]) -> list[ir.Block]:
    """Return `blocks`, and those of the actions of tables that they apply, each once."""
    reached: dict[ir.Block, None] = {}
    for block in blocks:
        reached[block] = None
        if isinstance(block.end, ir.Apply):
            for action in block.end.table.actions:
                reached.update(dict.fromkeys(reverse_postorder(action.body)))
    return list(reached)


def _root(ref: ir.Reference) -> str:
    """Return the stack or union that `ref` denotes or belongs to."""
    return ref.stack if isinstance(ref, ir.HeaderRef) else ref.name


def _loop(head: ir.Block) -> list[ir.Block]:
    """Return the blocks that follow `head` and lead back to it."""
    return [block for block in reverse_postorder(head) if head in reverse_postorder(block)]


def _spans(block: ir.Block) -> list[Any]:
    """Return the spans of the statements in `block`."""
    spans = [op.span for op in block.ops]
    return [*spans, block.end.span] if isinstance(block.end, ir.Branch) else spans


def _same(a: Scalar | None, b: Scalar | None) -> bool:
    if a is None or b is None or a is b:
        return a is b
    if a.formula is None or b.formula is None:
        return a.formula is b.formula and a.number == b.number
    return bool(a.formula.eq(b.formula))


def _one_of_data(calls: list[tuple[Any, ir.ActionCall]]) -> list[Scalar]:
    """Return the data of an action: those of the call whose condition holds."""
    data = _constants(calls[0][1])
    kinds = [t for _, t in calls[0][1].action.params]
    for condition, call in calls[1:]:
        data = [
            old if _same(old, new) else Scalar(0, z3.If(condition, formula(new, t), formula(old, t)))
            for old, new, t in zip(data, _constants(call), kinds, strict=True)
        ]
    return data


def _constants(call: ir.ActionCall) -> list[Scalar]:
    return [Scalar(a & (1 << width(t)) - 1) for a, (_, t) in zip(call.args, call.action.params, strict=True)]


def _matching(keys: list[Scalar], case: list[tuple[int, int | None]], exprs: list[ir.Expr]) -> Any:
    """Return whether the keys match a case of a select."""
    result = _ALWAYS
    for value, (k, m), e in zip(keys, case, exprs, strict=True):
        full = (1 << width(e.type)) - 1
        mask = full if m is None else m & full
        if value.formula is None:
            result = _and(result, _ALWAYS if value.number & mask == k & mask else _NEVER)
        elif isinstance(value.formula, z3.BoolRef):
            result = _and(result, value.formula == bool(k & 1)) if mask else result
        elif mask:
            result = _and(result, (value.formula if mask == full else value.formula & mask) == (k & mask))
    return result
