"""Keysets of tables and of select (language specification, section 8.14)."""

from __future__ import annotations

from p4switch.compiler import ast, types
from p4switch.compiler.semantics.context import Checking
from p4switch.compiler.semantics.conversions import Conversions
from p4switch.compiler.types import Type


class Keysets:
    def __init__(self, ctx: Checking, conversions: Conversions) -> None:
        self.ctx = ctx
        self.conversions = conversions
        self.facts = ctx.facts
        self.types = ctx.facts.types

    def keyset(self, e: ast.Expr, t: Type) -> None:
        """Check a keyset expression against a key of type `t`."""
        if isinstance(e, (ast.DontCare, ast.DefaultExpr)):
            self.types[e] = t
        elif isinstance(e, ast.Mask):
            self._keyset_part(e.value, t, "&&&")
            self._keyset_part(e.mask, t, "&&&")
            self.types[e] = types.Set(t)
        elif isinstance(e, ast.Range):
            self._keyset_part(e.low, t, "..")
            self._keyset_part(e.high, t, "..")
            self.types[e] = types.Set(t)
        else:
            given = self.ctx.expressions.expr(e, t)
            if not isinstance(given, types.Set):
                self.conversions.convert(e, t, "the key")
            elif same_bits(given.element) != same_bits(t):
                self.ctx.error(e, f"expected a set of {t}, not {given}")

    def spread(self, at: ast.SelectCase | ast.TableEntry, count: int) -> list[ast.Expr]:
        """Return `count` key sets for a case or an entry; a single `_` or `default` stands for all of them."""
        if len(at.keysets) == 1 and count != 1:
            only = at.keysets[0]
            if isinstance(only, (ast.DontCare, ast.DefaultExpr)):
                return [type(only)(only.pos) for _ in range(count)]
            if isinstance(only, ast.ListExpr):
                return only.items
        return at.keysets

    def empty(self, e: ast.Range) -> str:
        """Return the message for an empty keyset, or an empty string if it is not empty."""
        low, high = self.facts.integer(e.low), self.facts.integer(e.high)
        if low is None or high is None or low <= high:
            return ""
        return f"the range {low} .. {high} is empty: its low end is above its high end"

    def _keyset_part(self, e: ast.Expr, t: Type, op: str) -> None:
        given = self.ctx.expressions.expr(e, t)
        base = types.strip_newtype(t)
        if isinstance(base, types.Enum) and base.underlying is not None:
            base = base.underlying
        if not isinstance(base, (types.Bits, types.Unknown)):
            self.ctx.error(e, f"{op!r} needs a key of type bit<> or int<>, not {t}")
        elif isinstance(given, types.InfInt) and e in self.facts.constants and isinstance(base, types.Bits):
            self.conversions.literal_as(e, base)
        elif self.conversions.as_bits(e) != t:
            self.conversions.convert(e, base, "the key")


def flattened(t: Type) -> list[Type]:
    """Return the types of the single values in `t`, with structs and tuples flattened."""
    if isinstance(t, types.Struct):
        return [x for f in t.fields for x in flattened(f.type)]
    if isinstance(t, types.Tuple):
        return [x for e in t.elements for x in flattened(e)]
    return [t]


def same_bits(t: Type) -> list[Type]:
    """Return the flattened types with which keys are matched: a serializable enum has its underlying type."""
    return [x.underlying or x if isinstance(x, types.Enum) else x for x in flattened(t)]
