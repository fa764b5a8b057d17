"""Rules, of which the first match applies: the constant entries of a table, or the cases of a select."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import z3

from p4switch import ir
from p4switch.bits.domain import width
from p4switch.compiler import types
from p4switch.testgen.values import Scalar, as_bits, formula

_AT_ONCE = 256  # number of rules between two checks of the time


class Pattern(NamedTuple):
    """Condition on a key: key & mask is a number from `low` to `high`."""

    low: int
    high: int
    mask: int

    def fits(self, number: int) -> bool:
        return self.low <= number & self.mask <= self.high

    def excludes(self, other: Pattern, full: int) -> bool:
        """Return whether it is known that no key matches both patterns.

        This is not known for a range together with a mask that excludes more than low bits.
        """
        if self.low == self.high and other.low == other.high:
            return bool((self.low ^ other.low) & self.mask & other.mask)
        return self.low > other.most(full) or other.low > self.most(full)

    def most(self, full: int) -> int:
        """Return the largest number that matches."""
        return self.high | full & ~self.mask


class Rules:
    """Rules with a pattern for every key.

    `kinds` are the types of the keys.
    """

    def __init__(self, kinds: Sequence[types.Type], rules: Sequence[tuple[Pattern, ...]]) -> None:
        self._kinds = kinds
        self._full = [(1 << width(t)) - 1 for t in kinds]
        self._rules = rules
        self._exact: dict[tuple[int, ...], int] = {}
        """First rule for each combination of exact keys."""
        self._loose: list[int] = []
        for index, rule in enumerate(rules):
            if all(p.low == p.high and p.mask == full for p, full in zip(rule, self._full, strict=True)):
                self._exact.setdefault(tuple(p.low for p in rule), index)
            else:
                self._loose.append(index)

    def __len__(self) -> int:
        return len(self._rules)

    def first(self, numbers: Sequence[int]) -> int:
        """Return the number of the first rule that matches the keys, or the number of rules if none matches."""
        exact = self._exact.get(tuple(numbers), len(self))
        for index in self._loose:
            if index > exact:
                break
            if all(p.fits(number) for p, number in zip(self._rules[index], numbers, strict=True)):
                return index
        return exact

    def always(self, index: int) -> bool:
        """Return whether the rule matches all keys."""
        rule = self._rules[index]
        return all(p.low == 0 and p.high == p.mask & full for p, full in zip(rule, self._full, strict=True))

    def possible(self, index: int, keys: Sequence[Scalar]) -> bool:
        """Return whether the rule can match, given the values of constant keys."""
        return all(
            key.formula is not None or p.fits(key.number) for p, key in zip(self._rules[index], keys, strict=True)
        )

    def fits(self, index: int, keys: Sequence[Scalar]) -> Any:
        """Return the formula for a match of the rule, without regard to earlier rules."""
        terms: list[Any] = []
        for p, key, t, full in zip(self._rules[index], keys, self._kinds, self._full, strict=True):
            if key.formula is None:
                if not p.fits(key.number):
                    return z3.BoolVal(False)
                continue
            if not p.mask:
                continue
            z = as_bits(formula(key, t))
            masked = z if p.mask == full else z & p.mask
            if p.low == p.high:
                terms.append(masked == p.low)
            else:
                terms += [z3.UGE(masked, p.low)] if p.low else []
                terms += [z3.ULE(masked, p.high)] if p.high < full else []
        return z3.And(*terms) if terms else z3.BoolVal(True)

    def taken(self, index: int, keys: Sequence[Scalar], over: Callable[[], bool]) -> Any:
        """Return the formula for the case that the rule is the first match.

        Raises TimeoutError if the time is `over`.
        """
        earlier = self._negated([i for i in range(index) if not self._exclude(i, index)], keys, over)
        return z3.And(*earlier, self.fits(index, keys)) if earlier else self.fits(index, keys)

    def missed(self, index: int, keys: Sequence[Scalar], over: Callable[[], bool]) -> Any:
        """Return the formula for the case that no rule before this one matches.

        Raises TimeoutError if the time is `over`.
        """
        earlier = self._negated(range(index), keys, over)
        return z3.And(*earlier) if earlier else z3.BoolVal(True)

    def _negated(self, indices: Sequence[int], keys: Sequence[Scalar], over: Callable[[], bool]) -> list[Any]:
        result: list[Any] = []
        for count, index in enumerate(indices):
            if count % _AT_ONCE == 0 and over():
                raise TimeoutError
            if self.possible(index, keys):
                result.append(z3.Not(self.fits(index, keys)))
        return result

    def _exclude(self, one: int, other: int) -> bool:
        """Return whether it is known that no keys match both rules."""
        pairs = zip(self._rules[one], self._rules[other], self._full, strict=True)
        return any(a.excludes(b, full) for a, b, full in pairs)


def of_entries(table: ir.Table, entries: Sequence[ir.Entry]) -> Rules:
    """Return the rules of `entries`, which are in lookup order."""
    kinds = [key.target.type for key in table.keys]
    return Rules(kinds, [tuple(map(_entry_pattern, table.keys, entry.keys)) for entry in entries])


def _entry_pattern(key: ir.Key, wanted: ir.KeyValue) -> Pattern:
    full = (1 << width(key.target.type)) - 1
    if wanted is None:
        return Pattern(0, 0, 0)
    if not isinstance(wanted, tuple):
        return Pattern(wanted & full, wanted & full, full)
    if key.match_kind == "range":
        return Pattern(wanted[0] & full, wanted[1] & full, full)
    return _masked(wanted[0], wanted[1], full)


def of_cases(select: ir.Select) -> Rules:
    """Return the rules of the cases of `select` that are not value sets."""
    full = [(1 << width(key.type)) - 1 for key in select.keys]
    rules = [
        tuple(_masked(value, f if mask is None else mask, f) for (value, mask), f in zip(case, full, strict=True))
        for case, _ in select.cases
        if not isinstance(case, str)
    ]
    return Rules([key.type for key in select.keys], rules)


def _masked(value: int, mask: int, full: int) -> Pattern:
    return Pattern(value & mask & full, value & mask & full, mask & full)


def in_order(table: ir.Table) -> list[ir.Entry]:
    """Return the constant entries of `table` in lookup order."""
    return sorted(table.entries or (), key=lambda entry: (-_prefix_bits(table, entry), entry.priority))


def _prefix_bits(table: ir.Table, entry: ir.Entry) -> int:
    """Return the length of the entry's prefix, or 0 in tables without lpm keys, where priorities decide."""
    kinds = [k.match_kind for k in table.keys]
    if "lpm" not in kinds or any(k in ("ternary", "range", "optional") for k in kinds):
        return 0
    wanted = entry.keys[kinds.index("lpm")]
    bits = width(table.keys[kinds.index("lpm")].target.type)
    if wanted is None:
        return 0
    return (wanted[1] & (1 << bits) - 1).bit_count() if isinstance(wanted, tuple) else bits
