"""Transitions after a block: execution of terminators by a `Machine`."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from p4switch import ir
from p4switch.bits.domain import width
from p4switch.testgen.lookups import Lookups
from p4switch.testgen.rules import Rules
from p4switch.testgen.run import Alternative
from p4switch.testgen.values import Scalar

if TYPE_CHECKING:
    from p4switch.testgen.machine import Machine


class Transitions(ir.TerminatorVisitor[ir.Block | None]):
    """Transitions of one run."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._looked_for: dict[str, dict[tuple[int, ...], bool]] = {}  # results of lookups in value sets, by key
        self._lookups = Lookups(machine)

    def goto(self, end: ir.Goto) -> ir.Block:
        return end.target

    def branch(self, end: ir.Branch) -> ir.Block:
        m = self._machine
        m.cover(end.span)
        value = m.value(end.condition)
        taken, other = (end.if_true, end.if_false) if value.number else (end.if_false, end.if_true)
        if value.formula is not None:
            m.flip(id(end), value, m.code.own(other), m.code.reach(other))
        else:
            m.out.signature.append(value.number)
        return taken

    def apply(self, end: ir.Apply) -> ir.Block:
        return self._lookups.apply(end)

    def select(self, end: ir.Select) -> ir.Block | None:
        m = self._machine
        keys = [m.value(k) for k in end.keys]
        rules = m.code.cases(end)
        first = rules.first([k.number for k in keys])
        # Number of the rule; whether it is a rule, not a value set or the end; the target; a value set's choices.
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
            if taken is not None and (not m.symbolic or (options[-1][1] and rules.always(index - 1))):
                break
        else:  # as in both switches, parsing ends without an error
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
        m = self._machine
        ways: list[Alternative] = []
        holds: Any = None
        outside: list[tuple[Any, bool]] = []  # choices of the value sets before this case
        for i, (index, is_rule, target, asked) in enumerate(options if m.symbolic else ()):
            whole = functools.partial(rules.taken if is_rule else rules.missed, index, keys, m.out_of_time)
            choices = [*outside, *((key, True) for key in asked)]
            decided = not index and (not is_rule or rules.always(0))
            if i == taken:
                holds = None if decided else whole()
                outside = [(key, False) for key in asked]
            elif (not decided or choices) and (not is_rule or rules.possible(index, keys)):
                when = None if decided or (i < taken and asked) else whole  # earlier cases do not match
                own = m.code.own(target)
                reach = m.code.behind(m.part) if target is None else m.code.reach(target)
                ways.append(Alternative((outcome[0], i), own, reach, when, tuple(choices)))
        m.decide(outcome, holds, tuple(ways))

    def _in_value_set(self, name: str, keys: list[Scalar], end: ir.Select, asked: bool) -> tuple[bool, tuple[Any, ...]]:
        """Return whether the values of `keys` are in the value set, and the choices that decide this.

        `asked` is False if an earlier case matches the keys. Then it does not matter whether the set
        contains them.
        """
        m = self._machine
        numbers = tuple(k.number for k in keys)
        known = self._looked_for.setdefault(name, {})
        if numbers in known:
            return known[numbers], ()
        size = next(v.size for v in m.program.value_sets if v.name == name)
        if sum(known.values()) >= size:
            return False, ()
        key = ("value set", name, len(known))
        if not asked:
            return False, (key,)
        known[numbers] = m.inputs.choice(key, [False, True])
        if known[numbers]:
            whole = 0
            for number, k in zip(numbers, end.keys, strict=True):
                whole = whole << width(k.type) | number
            m.out.members.append((name, whole))
        return known[numbers], (key,)
