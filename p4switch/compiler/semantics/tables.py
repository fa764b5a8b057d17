"""Tables: keys, actions, properties (language specification, section 14.2)."""

from __future__ import annotations

from p4switch.compiler import ast, types
from p4switch.compiler.semantics.action_references import ActionReferences
from p4switch.compiler.semantics.annotations import Annotations
from p4switch.compiler.semantics.context import Checking
from p4switch.compiler.semantics.entries import Entries
from p4switch.compiler.semantics.places import MAX_INT64, Place
from p4switch.compiler.semantics.values import Values
from p4switch.compiler.semantics.written_types import WrittenTypes


class Tables:
    def __init__(
        self,
        ctx: Checking,
        references: ActionReferences,
        annotations: Annotations,
        entries: Entries,
        values: Values,
        written_types: WrittenTypes,
    ) -> None:
        self.ctx = ctx
        self.references = references
        self.annotations = annotations
        self.entries = entries
        self.values = values
        self.written_types = written_types
        self.facts = ctx.facts
        self.types = ctx.facts.types

    def table(self, t: ast.TableDecl) -> None:
        with self.ctx.at(Place.TABLE):
            for key in t.keys:
                self._key(key)
            seen: dict[str, ast.ActionRef] = {}
            for ref in t.actions:
                self.references.listed_action(ref, seen)
            if t.default_action is not None:
                self._default_action(t, t.default_action)
            else:
                self._check_no_action(t)
            for prop in t.properties.values():
                self._property(t, prop)
            if t.entries is not None:
                self.annotations.check(t.entries_annotations)
                if not t.keys and t.entries:
                    self.ctx.error(t, f"table {t.name!r} has entries, but no key")
                elif t.entries:
                    self.entries.entries(t, t.entries)

    def _key(self, key: ast.TableKey) -> None:
        self.annotations.check(key.annotations)
        with self.ctx.at(Place.CONTROL):
            t = self.ctx.expressions.expr(key.expr)
        base = types.strip_newtype(t)
        allowed = (types.Bits, types.Bool, types.Enum, types.Error, types.Varbit, types.TypeVar, types.Unknown)
        if isinstance(base, types.InfInt):
            self.ctx.error(key.expr, "a key needs a width (as in 8w1)")
        elif not isinstance(base, allowed):
            self.ctx.error(key.expr, f"a key cannot have type {t}")
        kind = key.match_kind
        if not self.ctx.names.decls[key]:
            self.ctx.unknown_name(key, kind, "match kind")
        elif kind in ("lpm", "range") and isinstance(base, (types.Bool, types.Error)):
            self.ctx.error(key.expr, f"a key of type {t} cannot be matched with {kind}")

    def _check_no_action(self, t: ast.TableDecl) -> None:
        """Check that NoAction, the implicit default action, is that of core.p4."""
        for ref in t.actions:
            if ref.name.lstrip(".") == "NoAction" and "tableonly" in {a.name for a in ref.annotations}:
                self.ctx.error(ref, "action 'NoAction' is @tableonly, so the table needs another default action")
        for decl in self.ctx.names.decls[t]:
            if not isinstance(decl, ast.ActionDecl) or decl.params:
                self.ctx.error(decl, "'NoAction' must be an action without parameters, as core.p4 declares it")

    def _default_action(self, t: ast.TableDecl, ref: ast.ActionRef) -> None:
        chosen = self.references.chosen_action(t, ref, "the default action")
        if chosen and self.references.listed_with(t, ref, "tableonly"):
            self.ctx.error(ref, f"action {ref.name!r} is @tableonly, so it cannot be the default action")

    def _property(self, t: ast.TableDecl, prop: ast.TableProperty) -> None:
        self.annotations.check(prop.annotations)
        name = prop.name
        if name == "size":
            self._size_property(prop)
        elif name in ("largest_priority_wins", "priority_delta"):
            self._priority_property(t, prop)
        elif name in ("implementation", "counters", "meters"):
            if not isinstance(self.ctx.expressions.expr(prop.value), (types.Extern, types.Unknown)):
                self.ctx.error(
                    prop.value,
                    f"property {name!r} must be an extern instance, not {self.ctx.describe(prop.value)}",
                )
        else:
            self.ctx.expressions.expr(prop.value)

    def _size_property(self, prop: ast.TableProperty) -> None:
        """Check a size, which is a number or a constructor parameter."""
        t, size = self.ctx.expressions.expr(prop.value), self.facts.integer(prop.value)
        if size is not None:
            if size < 0:
                self.ctx.error(prop.value, f"the size of a table must not be negative, but is {size}")
            elif size > MAX_INT64:
                self.ctx.error(prop.value, "the size of a table must fit into 64 bits")
        elif not (isinstance(t, (types.Bits, types.InfInt, types.Unknown)) and self.values.is_constant(prop.value)):
            self.ctx.error(prop.value, "the size of a table must be an integer known at compile time")

    def _priority_property(self, t: ast.TableDecl, prop: ast.TableProperty) -> None:
        if prop.name == "largest_priority_wins":
            given = self.ctx.expressions.expr(prop.value)
            if self.facts.boolean(prop.value) is None and not isinstance(given, types.Unknown):
                self.ctx.error(prop.value, "'largest_priority_wins' must be true or false")
            return
        delta = self.written_types.constant_int(prop.value, "'priority_delta'")
        if delta is not None and delta <= 0:
            self.ctx.error(prop.value, f"'priority_delta' must be positive, not {delta}")
