"""Tables: keys, actions, properties (language specification, section 14.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from p4switch.compiler import ast, types
from p4switch.compiler.ast import Direction
from p4switch.compiler.facts import CallKind
from p4switch.compiler.semantics.places import MAX_INT64, Place

if TYPE_CHECKING:
    from p4switch.compiler.semantics.context import Checking


class Tables:
    def __init__(self, ctx: Checking) -> None:
        self.ctx = ctx
        self.facts = ctx.facts
        self.types = ctx.facts.types
        self.bindings = ctx.facts.bindings
        self.actions = ctx.facts.actions

    def table(self, t: ast.TableDecl) -> None:
        with self.ctx.at(Place.TABLE):
            for key in t.keys:
                self._key(key)
            seen: dict[str, ast.ActionRef] = {}
            for ref in t.actions:
                self._listed_action(t, ref, seen)
            if t.default_action is not None:
                self._default_action(t, t.default_action)
            else:
                self._check_no_action(t)
            for prop in t.properties.values():
                self._property(t, prop)
            if t.entries is not None:
                self.ctx.annotations.check(t.entries_annotations)
                if not t.keys and t.entries:
                    self.ctx.error(t, f"table {t.name!r} has entries, but no key")
                elif t.entries:
                    self.ctx.entries.entries(t, t.entries)

    def _key(self, key: ast.TableKey) -> None:
        self.ctx.annotations.check(key.annotations)
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

    def _action(self, ref: ast.ActionRef) -> ast.ActionDecl | None:
        declarations = self.ctx.names.decls[ref]
        if not declarations:
            self.ctx.unknown_name(ref, ref.name, "action")
            return None
        actions = [d for d in declarations if isinstance(d, ast.ActionDecl)]
        if not actions:
            self.ctx.error(ref, f"{ref.name!r} is not an action")
            return None
        self.actions[ref] = actions[0]
        return self.actions[ref]

    def _listed_action(self, t: ast.TableDecl, ref: ast.ActionRef, seen: dict[str, ast.ActionRef]) -> None:
        self.ctx.annotations.check(ref.annotations)
        name = ref.name.lstrip(".")
        if name in seen:
            self.ctx.error(ref, f"action {name!r} is listed twice")
            return
        seen[name] = ref
        if {"defaultonly", "tableonly"} <= {a.name for a in ref.annotations}:
            self.ctx.error(ref, f"action {name!r} is @defaultonly and @tableonly, so nothing can have it")
        decl = self._action(ref)
        if decl is None:
            return
        directed = [p for p in decl.params if p.direction != Direction.NONE]
        args = ref.args or []
        self.bindings[ref].bound = [None] * len(decl.params)
        if any(a.name is not None for a in args):
            names = {a.name for a in args}
            undirected = next((p for p in decl.params if p.direction == Direction.NONE and p.name in names), None)
            if undirected is not None:
                self._given_by_control_plane(ref, undirected)
                return
        elif len(args) > len(directed) and len(args) <= len(decl.params):
            self._given_by_control_plane(ref, next(p for p in decl.params if p.direction == Direction.NONE))
            return
        matched = self.ctx.arguments.match_arguments(ref, f"action {name!r} in this list", directed, args)
        if matched is not None:
            self._bind(ref, decl, directed, matched)

    def _given_by_control_plane(self, ref: ast.ActionRef, param: ast.Parameter) -> None:
        self.ctx.error(ref, f"parameter {param.name!r} of action {ref.name!r} is given by the control plane, not here")

    def _bind(
        self,
        ref: ast.ActionRef,
        decl: ast.ActionDecl,
        params: list[ast.Parameter],
        matched: list[ast.Argument | None],
    ) -> None:
        """Check the arguments of an action reference, and store them at their positions in `ref.bound`."""
        by_param: dict[ast.Parameter, ast.Expr] = {}
        what = f"action {decl.name!r}"
        with self.ctx.at(Place.CONTROL):
            for param, arg in zip(params, matched, strict=True):
                if arg is None:
                    if param.default is not None:
                        by_param[param] = param.default
                    continue
                if not isinstance(arg.value, ast.DontCare):
                    self.ctx.expressions.expr(arg.value, self.types[param])
                self.ctx.arguments.pass_argument(what, param, self.types[param], arg.value, True)
                by_param[param] = arg.value
                if self.ctx.values.calls(arg.value, CallKind.TABLE_APPLY):
                    self.ctx.error(arg.value, "a table cannot be applied in the argument of an action")
        self.bindings[ref].bound = [by_param.get(p) for p in decl.params]

    def chosen_action(self, t: ast.TableDecl, ref: ast.ActionRef, where: str) -> bool:
        """Check a complete action reference (with all arguments) against the table's list of actions."""
        self.ctx.annotations.check(ref.annotations)
        decl = self._action(ref)
        if decl is None:
            return False
        listed = next((a for a in t.actions if self.actions.get(a) is decl), None)
        if listed is None:
            self.ctx.error(ref, f"{where} is {decl.name!r}, which is not among the actions of table {t.name!r}")
            return False
        matched = self.ctx.arguments.match_arguments(ref, f"action {decl.name!r}", decl.params, ref.args or [])
        if matched is None:
            return False
        self._bind(ref, decl, decl.params, matched)
        for param, here, there in zip(decl.params, self.bindings[ref].bound, self.bindings[listed].bound, strict=True):
            if param.direction == Direction.NONE or here is None or there is None:
                continue
            if not self.ctx.values.same(here, there):
                self.ctx.error(
                    ref, f"argument {param.name!r} of {decl.name!r} must be the same as in the list of actions"
                )
        return True

    def _check_no_action(self, t: ast.TableDecl) -> None:
        """Check that NoAction, the implicit default action, is that of core.p4."""
        for ref in t.actions:
            if ref.name.lstrip(".") == "NoAction" and "tableonly" in {a.name for a in ref.annotations}:
                self.ctx.error(ref, "action 'NoAction' is @tableonly, so the table needs another default action")
        for decl in self.ctx.names.decls[t]:
            if not isinstance(decl, ast.ActionDecl) or decl.params:
                self.ctx.error(decl, "'NoAction' must be an action without parameters, as core.p4 declares it")

    def _default_action(self, t: ast.TableDecl, ref: ast.ActionRef) -> None:
        if self.chosen_action(t, ref, "the default action") and self.listed_with(t, ref, "tableonly"):
            self.ctx.error(ref, f"action {ref.name!r} is @tableonly, so it cannot be the default action")

    def listed_with(self, t: ast.TableDecl, ref: ast.ActionRef, annotation: str) -> bool:
        """Return whether the table's list of actions has the action with the annotation."""
        listed = next(a for a in t.actions if self.actions.get(a) is self.actions[ref])
        return any(a.name == annotation for a in listed.annotations)

    def _property(self, t: ast.TableDecl, prop: ast.TableProperty) -> None:
        self.ctx.annotations.check(prop.annotations)
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
        elif not (isinstance(t, (types.Bits, types.InfInt, types.Unknown)) and self.ctx.values.is_constant(prop.value)):
            self.ctx.error(prop.value, "the size of a table must be an integer known at compile time")

    def _priority_property(self, t: ast.TableDecl, prop: ast.TableProperty) -> None:
        if prop.name == "largest_priority_wins":
            given = self.ctx.expressions.expr(prop.value)
            if self.facts.boolean(prop.value) is None and not isinstance(given, types.Unknown):
                self.ctx.error(prop.value, "'largest_priority_wins' must be true or false")
            return
        delta = self.ctx.written_types.constant_int(prop.value, "'priority_delta'")
        if delta is not None and delta <= 0:
            self.ctx.error(prop.value, f"'priority_delta' must be positive, not {delta}")
