"""Proofs of unreachable statements, in which formulas represent all paths of a program at once.

Where paths join, the formula of a value covers all of them. Values that tests may choose are free variables: bytes of
the packet, entries, contents of registers, clocks. Values that this module does not follow are also free variables:
hashes, stack elements at run-time indices, and all values that loops may change. A statement whose formula has no
solution is unreachable. A statement whose formula has a solution may still be unreachable. Nothing is concluded about
statements that were not followed. (State merging: Kuznetsov et al., "Efficient State Merging in Symbolic Execution",
PLDI 2012; for P4: Albab et al., "SwitchV", SIGCOMM 2022.)
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import z3

from p4switch import ir
from p4switch.bits.domain import is_signed, width
from p4switch.compiler import types
from p4switch.compiler.midend.storage import flat_fields
from p4switch.ir.graph import reverse_postorder, successors
from p4switch.testgen.code import Code
from p4switch.testgen.conditions import ALWAYS, NEVER, conjunction, disjunction, negation, same, truth
from p4switch.testgen.following import Following
from p4switch.testgen.formulas import Formulas
from p4switch.testgen.reached import Edge, Reached, with_actions
from p4switch.testgen.transfer import Transfer
from p4switch.testgen.values import ZERO, Scalar, formula

_WIDEST_DRAWN = 64  # maximum width of a random number in BMv2

Place = tuple[str, str]


@dataclass(slots=True)
class State:
    """State of the packet on all paths to a place.

    `guard` is the condition on the inputs under which packets get there. Headers that are not in `valid` are invalid.
    """

    guard: Any
    store: dict[Place, Scalar] = field(default_factory=dict)
    valid: dict[str, Any] = field(default_factory=dict)

    def under(self, condition: Any) -> State:
        return State(conjunction(self.guard, condition), dict(self.store), dict(self.valid))


class Prover:
    """Builder of the formulas of `code`. After `deadline`, a time of `time.monotonic`, it raises TimeoutError.

    With `stable`, all reads of a field of an invalid header return the same value, which P4 does not
    guarantee.
    """

    def __init__(self, code: Code, deadline: float, stable: bool = False) -> None:
        self.code, self.program = code, code.program
        self._deadline = deadline
        self.headers = {i.name: i.type for i in self.program.headers}
        self._stacks = {ref.name: names for ref, names in self.program.stacks}
        self.siblings = {m: members for _, members in self.program.unions for m in members}
        self.parser_error: Place | None = None  # place of the parser's error in the target's metadata
        self._types: dict[Place, types.Type] = {
            **{(i, n): t for i, h in self.headers.items() for n, t in flat_fields(h)},
            **{(m.name, n): t for m in self.program.metadata for n, t in m.fields},
            **{("scalars", n): t for n, t in self.program.scalars.items()},
        }
        self._count = 0
        self._stale: dict[Place, Scalar] | None = {} if stable else None
        proviso = ", unless a field of a header that is not valid changes between two reads" if stable else ""
        self.reached = Reached(code, deadline, proviso)
        self.ends: list[State] = []  # states at the ends of a pipeline by exit or by a parser error
        self.params: list[Scalar] = []  # arguments of the action that is followed
        code.lowered.package.prove(self)

    # Methods for the architecture's packet path

    always = ALWAYS

    @staticmethod
    def fresh() -> State:
        """Return a state that contains all packets."""
        return State(ALWAYS)

    @staticmethod
    def besides(states: Iterable[State]) -> Any:
        """Return the condition that a packet is in none of `states`."""
        return negation(disjunction(*(state.guard for state in states)))

    def checksums(self, state: State, verify: bool) -> None:
        for checksum in self.program.checksums:
            if checksum.verify == verify:
                header = checksum.target.header
                there = state.valid.get(header, NEVER) if verify and header in self.headers else ALWAYS
                applies = conjunction(there, truth(self.value(checksum.condition, state)))
                self.reached.cover(checksum.span, conjunction(state.guard, applies))
                self.reached.explain(checksum.span, "the checksum's condition is never true there")

    def one_of(self, numbers: list[int], at: Place, state: State) -> Scalar:
        """Set a field of at most 32 bits to an arbitrary one of the numbers, and return its value."""
        value = ZERO
        if len(numbers) > 1:
            free = self.free(types.Bits(32))
            state.guard = conjunction(state.guard, z3.Or(*(free.formula == n for n in numbers)))
            value = free
        else:
            value = Scalar(numbers[0])
        state.store[at] = value
        return value

    def free_field(self, state: State, instance: str, name: str) -> None:
        """Make a field of the target's metadata a free variable, if the program has it."""
        t = self._types.get((instance, name))
        if t is not None:
            state.store[instance, name] = self.free(t)

    def free_metadata(self, state: State) -> None:
        """Make all metadata that the target and the program exchange free variables."""
        for metadata in self.program.metadata:
            for name, _ in metadata.fields:
                self.free_field(state, metadata.name, name)

    def carry_over(self, state: State, condition: Any) -> None:
        """Make metadata that packets may keep from an earlier pass free if `condition` holds (None: never)."""
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
        self.reached.touch(order, ALWAYS)  # with a loop, all that the parser writes may have any value afterwards
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
        """Make validity and fields of `header` free variables."""
        state.valid[header] = self.flag()
        for name, t in flat_fields(self.headers[header]):
            state.store[header, name] = self.free(t)

    def _loosen(self, state: State, blocks: Iterable[ir.Block]) -> None:
        """Make all values free that `blocks` may change.

        These are metadata that they write, all headers, and all metadata of the target.
        """
        self.free_metadata(state)
        for header in self.headers:
            self.forget(state, header)
        for block in with_actions(blocks):
            places: list[Any] = []
            for op in block.ops:
                places += op.writes
            if isinstance(block.end, ir.Apply):
                places.append(self.program.meter_result(block.end.table))
            for place in places:
                if isinstance(place, ir.FieldRef):
                    self.assign(place, self.free(place.type), state)

    def _merge_value(self, store: dict[Place, Scalar], at: Place, t: types.Type, condition: Any, new: Scalar) -> None:
        """Store `new` if `condition` holds, and keep the old value otherwise."""
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
            return State(NEVER)
        result = states[0].under(ALWAYS)
        for other in states[1:]:
            for header in {**result.valid, **other.valid}:
                mine, theirs = (s.valid.get(header, NEVER) for s in (result, other))
                if not mine.eq(theirs):
                    result.valid[header] = z3.simplify(z3.If(other.guard, theirs, mine))
            for at in {**result.store, **other.store}:
                mine, theirs = result.store.get(at), other.store.get(at)
                if same(mine, theirs):
                    continue
                t = self._types[at]
                if theirs is None:
                    theirs = self.free(t) if at[0] in self.headers else ZERO
                self._merge_value(result.store, at, t, other.guard, theirs)
            result.guard = disjunction(result.guard, other.guard)
        return result

    # Code

    def through(self, start: ir.Block, state: State) -> State:
        """Return the state at all ends of a parser or pipeline together."""
        self.ends = []
        out = self._graph(start, state)
        return self.joined([out, *self.ends])

    def _graph(self, start: ir.Block, state: State) -> State:
        """Return the state at the end of code.

        A loop is followed once, for an arbitrary round. The state at its head covers all values that
        earlier rounds can produce.
        """
        arriving: dict[ir.Block, list[State]] = {start: [state]}
        ends: list[State] = []
        order = reverse_postorder(start)
        position = {block: i for i, block in enumerate(order)}
        heads = {t for i, block in enumerate(order) for t in successors(block) if position[t] <= i}
        for block in order:
            self.in_time()
            state = self.joined(arriving.pop(block, []))
            if z3.is_false(state.guard):
                self.skip([block])
                continue
            self.reached.note(block, state.guard)
            if block in heads:
                self._loosen(state, _loop(block))
            transfer = Transfer(self, state)
            for op in block.ops:
                self.reached.cover(op.span, state.guard)
                op.accept(transfer)
            if block.end is None:
                ends.append(state)
                continue
            for target, following, span, decision in block.end.accept(Following(self, block, state)):
                if target is None:
                    ends.append(following)
                else:
                    arriving.setdefault(target, []).append(following)
                    self.reached.lead(target, Edge(block, following.guard, span, decision))
        return self.joined(ends)

    def ran(self, action: ir.Action, data: list[Scalar], state: State) -> State:
        """Return the state after `action` with its data."""
        saved, self.params = self.params, data
        after = self._graph(action.body, state)
        self.params = saved
        return after

    def skip(self, blocks: Iterable[ir.Block]) -> None:
        """Record that `blocks`, and the actions of their tables, are not reached here."""
        self.reached.touch(with_actions(blocks), NEVER)

    def in_time(self) -> None:
        """Raise TimeoutError if the deadline has passed."""
        if time.monotonic() > self._deadline:
            raise TimeoutError

    def may_fail(self, state: State, *errors: str) -> None:
        fails = self.flag()
        self._fail(state.under(fails), list(errors))
        state.guard = conjunction(state.guard, negation(fails))

    def _fail(self, state: State, errors: list[str]) -> None:
        """End the parser with one of the errors."""
        if self.parser_error is not None:
            self.one_of([self.program.errors[name] for name in errors], self.parser_error, state)
        self.ends.append(state)

    # Methods for operations and externs

    def number(self, number: int) -> Scalar:
        return Scalar(number)

    def require(self, condition: ir.Expr, state: State) -> None:
        """Restrict the state to packets for which `condition` holds."""
        state.guard = conjunction(state.guard, truth(self.value(condition, state)))

    def fail_unless(self, condition: ir.Expr, error: ir.Expr, state: State) -> None:
        """End the parser with `error` for packets for which `condition` does not hold."""
        holds = truth(self.value(condition, state))
        failed = state.under(negation(holds))
        if self.parser_error is not None:
            failed.store[self.parser_error] = self.value(error, state)
        self.ends.append(failed)
        state.guard = conjunction(state.guard, holds)

    def leave(self, state: State) -> None:
        """End the pipeline here for all packets."""
        self.ends.append(state.under(ALWAYS))
        state.guard = NEVER

    def anything_in(self, op: ir.Operation, state: State) -> None:
        """Make all places that `op` writes free variables."""
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
        """Return a free number of type `t` from `low` to `high`; if the bounds are not known, it may be any number."""
        least, most = self.value(low, state), self.value(high, state)
        known = least.formula is None and most.formula is None and least.number <= most.number
        if not known or is_signed(low.type) or not width(low.type) == width(t) <= _WIDEST_DRAWN:
            return self.free(t)
        drawn = self.free(t).formula
        inside = z3.And(z3.UGE(drawn, least.number), z3.ULE(drawn, most.number))
        return Scalar(0, z3.If(inside, drawn, formula(least, low.type)))

    def make_valid(self, header: str, state: State) -> None:
        """Make a header valid. Its fields become free variables."""
        before = state.valid.get(header, NEVER)
        for sibling in self.siblings.get(header, ()):
            state.valid[sibling] = NEVER
        state.valid[header] = ALWAYS
        if not z3.is_true(before):
            for name, t in flat_fields(self.headers[header]):
                new = self.free(t)
                if not z3.is_false(before):
                    old = state.store.get((header, name), new)
                    new = Scalar(0, z3.If(before, formula(old, t), formula(new, t)))
                state.store[header, name] = new

    def make_invalid(self, header: str, state: State) -> None:
        state.valid[header] = NEVER

    def extract(self, header: str, state: State) -> None:
        for sibling in self.siblings.get(header, ()):
            state.valid[sibling] = NEVER
        state.valid[header] = ALWAYS
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
        state.valid[target] = state.valid.get(source, NEVER)
        for name, t in flat_fields(self.headers[target]):
            state.store[target, name] = self.load((source, name), t, state)

    # Places and expressions

    def value(self, expr: ir.Expr, state: State) -> Scalar:
        """Return the value of `expr` in `state`."""
        return expr.accept(Formulas(self, state))

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

    def load(self, at: Place, t: types.Type, state: State) -> Scalar:
        header = at[0]
        if isinstance(t, types.Varbit):
            return self.free(t)
        if header not in self.headers:
            return state.store.get(at, ZERO)
        valid = state.valid.get(header, NEVER)
        there = state.store.get(at)
        if there is not None and z3.is_true(valid):
            return there
        undefined = self.free(t) if self._stale is None else self._stale.setdefault(at, self.free(t))
        if there is None or z3.is_false(valid):
            return undefined
        return Scalar(0, z3.If(valid, formula(there, t), formula(undefined, t)))


def _root(ref: ir.Reference) -> str:
    """Return the stack or union that `ref` denotes or belongs to."""
    return ref.stack if isinstance(ref, ir.HeaderRef) else ref.name


def _loop(head: ir.Block) -> list[ir.Block]:
    """Return the blocks that follow `head` and lead back to it."""
    return [block for block in reverse_postorder(head) if head in reverse_postorder(block)]
