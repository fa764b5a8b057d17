"""References to actions in tables: the list of actions, the default action and the actions of entries."""

from __future__ import annotations

from p4switch.compiler import ast
from p4switch.compiler.ast import Direction
from p4switch.compiler.facts import CallKind
from p4switch.compiler.semantics.annotations import Annotations
from p4switch.compiler.semantics.arguments import Arguments
from p4switch.compiler.semantics.context import Checking
from p4switch.compiler.semantics.places import Place
from p4switch.compiler.semantics.values import Values


class ActionReferences:
    def __init__(self, ctx: Checking, annotations: Annotations, arguments: Arguments, values: Values) -> None:
        self.ctx = ctx
        self.annotations = annotations
        self.arguments = arguments
        self.values = values
        self.types = ctx.facts.types
        self.bindings = ctx.facts.bindings
        self.actions = ctx.facts.actions

    def listed_action(self, ref: ast.ActionRef, seen: dict[str, ast.ActionRef]) -> None:
        """Check an action in a table's list of actions. `seen` are the actions before it, by name."""
        self.annotations.check(ref.annotations)
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
        matched = self.arguments.match_arguments(ref, f"action {name!r} in this list", directed, args)
        if matched is not None:
            self._bind(ref, decl, directed, matched)

    def chosen_action(self, t: ast.TableDecl, ref: ast.ActionRef, where: str) -> bool:
        """Check a complete action reference (with all arguments) against the table's list of actions."""
        self.annotations.check(ref.annotations)
        decl = self._action(ref)
        if decl is None:
            return False
        listed = next((a for a in t.actions if self.actions.get(a) is decl), None)
        if listed is None:
            self.ctx.error(ref, f"{where} is {decl.name!r}, which is not among the actions of table {t.name!r}")
            return False
        matched = self.arguments.match_arguments(ref, f"action {decl.name!r}", decl.params, ref.args or [])
        if matched is None:
            return False
        self._bind(ref, decl, decl.params, matched)
        for param, here, there in zip(decl.params, self.bindings[ref].bound, self.bindings[listed].bound, strict=True):
            if param.direction == Direction.NONE or here is None or there is None:
                continue
            if not self.values.same(here, there):
                self.ctx.error(
                    ref, f"argument {param.name!r} of {decl.name!r} must be the same as in the list of actions"
                )
        return True

    def listed_with(self, t: ast.TableDecl, ref: ast.ActionRef, annotation: str) -> bool:
        """Return whether the table's list of actions contains the action of `ref` with the annotation."""
        listed = next(a for a in t.actions if self.actions.get(a) is self.actions[ref])
        return any(a.name == annotation for a in listed.annotations)

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
                self.arguments.pass_argument(what, param, self.types[param], arg.value, True)
                by_param[param] = arg.value
                if self.values.calls(arg.value, CallKind.TABLE_APPLY):
                    self.ctx.error(arg.value, "a table cannot be applied in the argument of an action")
        self.bindings[ref].bound = [by_param.get(p) for p in decl.params]
