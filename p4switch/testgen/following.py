"""Successors of a block in a proof, with the condition of each successor."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import z3

from p4switch import ir
from p4switch.compiler import types
from p4switch.ir.graph import reverse_postorder
from p4switch.testgen.conditions import ALWAYS, conjunction, disjunction, matching, negation, same, truth
from p4switch.testgen.reached import Edge
from p4switch.testgen.transfer import SHORT
from p4switch.testgen.values import ZERO, Scalar, constants, formula

if TYPE_CHECKING:
    from p4switch.testgen.proof import Prover, State


class Successor(NamedTuple):
    """Successor `block` (None: the end), the state of packets that get there, and the decision to go there."""

    block: ir.Block | None
    state: State
    span: Any
    decision: str


class Following(ir.TerminatorVisitor[Iterator[Successor]]):
    """Successors of `block`. `state` is the state of packets at the end of the block."""

    def __init__(self, prover: Prover, block: ir.Block, state: State) -> None:
        self._prover, self._block, self._state = prover, block, state

    def _value(self, expr: ir.Expr) -> Scalar:
        return self._prover.value(expr, self._state)

    def goto(self, end: ir.Goto) -> Iterator[Successor]:
        yield Successor(end.target, self._state, None, "nothing leads on")

    def branch(self, end: ir.Branch) -> Iterator[Successor]:
        self._prover.reached.cover(end.span, self._state.guard)
        condition = truth(self._value(end.condition))
        yield Successor(end.if_true, self._state.under(condition), end.span, "the condition is never true")
        yield Successor(end.if_false, self._state.under(negation(condition)), end.span, "the condition is never false")

    def select(self, end: ir.Select) -> Iterator[Successor]:
        if any(isinstance(k, ir.Lookahead) for k in end.keys):
            self._prover.may_fail(self._state, SHORT)
        keys = [self._value(k) for k in end.keys]
        rest = ALWAYS
        spans = [*end.spans, *[None] * len(end.cases)]
        for (case, target), span in zip(end.cases, spans, strict=False):
            matches = self._prover.flag() if isinstance(case, str) else matching(keys, case, end.keys)
            yield Successor(target, self._state.under(conjunction(rest, matches)), span, "the case is never taken")
            rest = conjunction(rest, negation(matches))
        self._prover.ends.append(self._state.under(rest))  # as in both switches, parsing ends without an error

    def apply(self, end: ir.Apply) -> Iterator[Successor]:
        table, state, prover = end.table, self._state, self._prover
        for place in (prover.program.meter_result(table), table.entry):
            if isinstance(place, ir.FieldRef):
                prover.assign(place, prover.free(place.type), state)
        idle = list(table.actions)
        by_target: dict[ir.Block, list[State]] = {}
        for action, args, hit, condition in self._outcomes(table):
            after = state.under(condition)
            if action is not None:
                text = f"table {table.name} never runs the action; it is declared"
                prover.reached.lead(action.body, Edge(self._block, after.guard, table.span, text))
                after = prover.ran(action, args, after)
                idle = [other for other in idle if other is not action]
            by_target.setdefault(end.after(action, hit), []).append(after)
        for action in idle:
            prover.skip(reverse_postorder(action.body))
        text = f"what table {table.name} does never leads on to it; it is declared"
        for target in dict.fromkeys([*end.on.values(), end.default]):
            yield Successor(target, prover.joined(by_target.get(target, [])), table.span, text)

    def _outcomes(self, table: ir.Table) -> Iterator[tuple[ir.Action | None, list[Scalar], bool, Any]]:
        """Yield each action with its data, whether it is a hit, and the condition under which it runs."""
        rest = ALWAYS
        constant = table.entries is not None and all(entry.const for entry in table.entries)
        if constant:
            keys = [self._value(k.target) for k in table.keys]
            entries, rules = self._prover.code.entries(table)
            hits: dict[ir.Action, list[tuple[Any, ir.ActionCall]]] = {}
            for i, entry in enumerate(entries):
                self._prover.in_time()
                matches = rules.fits(i, keys)
                hits.setdefault(entry.call.action, []).append((conjunction(rest, matches), entry.call))
                rest = conjunction(rest, negation(matches))
            for action, calls in hits.items():
                yield action, _one_of_data(calls), True, disjunction(*(condition for condition, _ in calls))
        chosen_freely = [("defaultonly", True)] if table.keys and not constant else []
        chosen_freely += [] if table.default_const else [("tableonly", False)]
        for excluded, hit in chosen_freely:
            for index in self._prover.code.usable(table, excluded):
                action, chosen = table.actions[index], self._prover.flag()
                yield action, self._arguments(action), hit, conjunction(rest, chosen)
                rest = conjunction(rest, negation(chosen))
        if table.default is None:
            yield None, [], False, rest
        else:
            yield table.default.action, constants(table.default), False, rest

    def _arguments(self, action: ir.Action) -> list[Scalar]:
        return [self._prover.free(t) if types.width_of(t) != 0 else ZERO for _, t in action.params]


def _one_of_data(calls: list[tuple[Any, ir.ActionCall]]) -> list[Scalar]:
    """Return the data of an action, which are the data of the call whose condition holds."""
    data = constants(calls[0][1])
    kinds = [t for _, t in calls[0][1].action.params]
    for condition, call in calls[1:]:
        data = [
            old if same(old, new) else Scalar(0, z3.If(condition, formula(new, t), formula(old, t)))
            for old, new, t in zip(data, constants(call), kinds, strict=True)
        ]
    return data
