"""Lookups in tables by a `Machine`, which chooses entries and default actions."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from p4switch import ir
from p4switch.bits.domain import width
from p4switch.compiler import types
from p4switch.testgen.rules import Rules
from p4switch.testgen.run import Alternative, Entry
from p4switch.testgen.values import ZERO, Scalar, Variables, constants, typed

if TYPE_CHECKING:
    from p4switch.testgen.machine import Machine

_OPEN_KINDS = ("lpm", "ternary", "range", "optional")  # match kinds whose keys may match anything


class Lookups:
    """Lookups of one run. All lookups with the same key have the same outcome."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._found: dict[str, dict[tuple[int | None, ...], int | None]] = {}
        self._args: dict[tuple[str, tuple[int | None, ...]], list[Scalar]] = {}
        self._applied: dict[str, int] = {}
        self._never_hit: set[str] = set()  # tables with keys that a test cannot set and that entries must specify

    def apply(self, end: ir.Apply) -> ir.Block:
        """Look the key up, run the action, and return the block that follows."""
        m, table = self._machine, end.table
        keys = [m.value(k.target) for k in table.keys]
        index, args = self._look_up(table, keys, end)
        if index is None:
            action, default = None, table.default
            chosen = self._default(table, end)
            if chosen is not None:
                action, args = chosen
            elif default is not None:
                action, args = default.action, constants(default)
        else:
            action = table.actions[index]
        m.last_applied = table.name, None if action is None else action.name
        result = m.program.meter_result(table)
        if result is not None:
            m.assign(result, self._entry_colour(table, keys, end) if index is not None else ZERO)
        if table.entry is not None:
            entry = table.room if index is None else self._entry_number(table, tuple(k.number for k in keys))
            m.assign(table.entry, m.number(entry))
        if action is not None:
            m.follow(action.body, args, m.ahead)
        return end.after(action, hit=index is not None)

    def _entry_number(self, table: ir.Table, numbers: tuple[int, ...]) -> int:
        """Return the number of the entry that was hit, counted from 0."""
        if table.entries is not None:
            return self._machine.code.entries(table)[1].first(list(numbers))
        hits = (pattern for pattern, entry_hit in self._found[table.name].items() if entry_hit is not None)
        return next(i for i, pattern in enumerate(hits) if _fits(pattern, numbers))

    def _entry_colour(self, table: ir.Table, keys: list[Scalar], end: ir.Apply) -> Scalar:
        """Return the colour of the direct meter of the entry that was hit. Constant entries have no rates."""
        m = self._machine
        numbers = [k.number for k in keys]
        ours = (e for e in m.out.entries if e.table is table)
        entry = next((e for e in ours if _fits([n for _, n in e.keys], numbers)), None)
        if entry is None:
            return ZERO
        entry.colour = m.colour(("meter", table.meter, *numbers), (id(end), "meter"))
        return Scalar(entry.colour)

    def _follow(self, end: ir.Apply, index: int | None, hit: bool) -> tuple[int, int]:
        """Return the statements of action `index` of the table, and those that can be reached after it."""
        m = self._machine
        action = None if index is None else end.table.actions[index]
        target = end.after(action, hit)
        own = m.code.reach(None if action is None else action.body)
        return own | m.code.own(target), own | m.code.reach(target)

    def _look_up(self, table: ir.Table, keys: list[Scalar], end: ir.Apply) -> tuple[int | None, list[Scalar]]:
        m = self._machine
        count = self._applied[table.name] = self._applied.get(table.name, 0) + 1
        if table.entries is not None:
            return self._constant_entries(table, keys, end)
        if not table.keys:
            return None, []
        numbers = tuple(k.number for k in keys)
        known = self._found.setdefault(table.name, {})
        for pattern, outcome in known.items():
            if _fits(pattern, numbers):
                m.out.signature.append((table.name, outcome))
                return outcome, self._args.get((table.name, pattern), [])
        loose = self._unset(table, keys, count) if not known else ()
        options: list[int | None] = [None, *m.code.usable(table, "defaultonly")]
        if any(table.keys[i].match_kind not in _OPEN_KINDS for i in loose):  # no entry would be hit on every switch
            self._never_hit.add(table.name)
            options = [None]
        key = ("table", table.name, count)
        outcome = m.inputs.choice(key, options)
        if len(known) >= table.size or outcome not in options:
            outcome = None
        ways = []
        for option in options:
            if option != outcome:
                default = None if option is not None or table.default is None else table.default.action
                shown = option if default is None or default not in table.actions else table.actions.index(default)
                own, reach = self._follow(end, shown, option is not None)
                ways.append(Alternative((table.name, option), own, reach, None, ((key, option),)))
        m.decide((table.name, outcome, numbers), None, tuple(ways))
        if outcome is None:
            known[numbers] = outcome
            return None, []
        pattern = tuple(None if i in loose else number for i, number in enumerate(numbers))
        known[pattern] = outcome
        action = table.actions[outcome]
        args = self._arguments(action, f"{table.name} {count}")
        self._args[table.name, pattern] = args
        entry = Entry(table, list(zip(table.keys, pattern, strict=True)), action, [a.number for a in args])
        m.out.entries.append(entry)
        return outcome, args

    def _unset(self, table: ir.Table, keys: list[Scalar], count: int) -> tuple[int, ...]:
        """Return the positions of keys that a test cannot set. A run with formulas stores them for runs without."""
        m = self._machine
        key = ("unset", table.name, count)
        if m.symbolic:
            names = Variables()
            m.inputs.choices[key] = tuple(
                i
                for i, value in enumerate(keys)
                if value.formula is not None and m.out.environment
                if any(name.startswith("?") for name in names.of(value.formula))
            )
        unset: tuple[int, ...] = m.inputs.choices.get(key, ())
        return unset

    def _arguments(self, action: ir.Action, name: str) -> list[Scalar]:
        args: list[Scalar] = []
        for i, (_, t) in enumerate(action.params):
            if width(t) > 0 and types.width_of(t) != 0:
                args.append(typed(self._machine.input(f"data {name} {action.name} {i}", width(t)), t))
            else:
                args.append(ZERO)
        return args

    def _default(self, table: ir.Table, end: ir.Apply) -> tuple[ir.Action, list[Scalar]] | None:
        """Return a default action other than the program's, to reach actions that no entry can have."""
        m = self._machine
        if table.default_const or table.profile is not None or table.default is None:
            return None
        by_entry = table.keys and table.entries is None and table.name not in self._never_hit
        entries = set(m.code.usable(table, "defaultonly")) if by_entry else set()
        others = [i for i in m.code.usable(table, "tableonly") if i not in entries]
        if not others or (len(others) == 1 and table.actions[others[0]] is table.default.action and not others[0]):
            return None
        key = ("default", table.name)
        chosen = m.inputs.choice(key, [None, *others])
        ways = []
        for option in others:
            if option != chosen:
                own, reach = self._follow(end, option, False)
                ways.append(Alternative((table.name, "default", option), own, reach, None, ((key, option),)))
        m.decide((table.name, "default", chosen), None, tuple(ways))
        if chosen is None:
            return None
        action = table.actions[chosen]
        args = self._arguments(action, f"{table.name} default")
        m.out.defaults[table.name] = table, action, [a.number for a in args]
        return action, args

    def _constant_entries(self, table: ir.Table, keys: list[Scalar], end: ir.Apply) -> tuple[int | None, list[Scalar]]:
        m = self._machine
        entries, rules = m.code.entries(table)
        taken = rules.first([k.number for k in keys])
        ways: list[Alternative] = []
        holds: Any = None
        if m.symbolic and any(key.formula is not None for key in keys):
            holds = self._entry_taken(rules, taken, keys)
            for i, entry in enumerate([*entries, None]):
                if i != taken and (entry is None or rules.possible(i, keys)):
                    index = None if entry is None else table.actions.index(entry.call.action)
                    own, reach = self._follow(end, index, entry is not None)
                    effect = functools.partial(self._entry_taken, rules, i, keys)
                    ways.append(Alternative((table.name, "entry", i), own, reach, effect))
        m.decide((table.name, "entry", taken), holds, tuple(ways))
        if taken == len(entries):
            return None, []
        call = entries[taken].call
        return table.actions.index(call.action), constants(call)

    def _entry_taken(self, rules: Rules, index: int, keys: list[Scalar]) -> Any:
        """Return the formula for a hit of the entry, or for a miss if `index` is the number of entries."""
        return (rules.missed if index == len(rules) else rules.taken)(index, keys, self._machine.out_of_time)


def _fits(pattern: Sequence[int | None], numbers: Sequence[int]) -> bool:
    """Return whether an entry with the keys `pattern` is hit."""
    return all(wanted is None or wanted == number for wanted, number in zip(pattern, numbers, strict=True))
