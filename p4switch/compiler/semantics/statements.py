"""Statements (language specification, section 12)."""

from __future__ import annotations

from collections.abc import Callable

from p4switch.compiler import ast, types
from p4switch.compiler.diagnostics import did_you_mean
from p4switch.compiler.facts import CallKind, Constant
from p4switch.compiler.semantics.annotations import Annotations
from p4switch.compiler.semantics.context import Checking
from p4switch.compiler.semantics.conversions import Conversions
from p4switch.compiler.semantics.places import Place
from p4switch.compiler.semantics.values import Values
from p4switch.compiler.semantics.written_types import WrittenTypes, is_object


class Statements:
    def __init__(
        self,
        ctx: Checking,
        annotations: Annotations,
        conversions: Conversions,
        values: Values,
        written_types: WrittenTypes,
    ) -> None:
        self.ctx = ctx
        self.annotations = annotations
        self.conversions = conversions
        self.values = values
        self.written_types = written_types
        self.facts = ctx.facts
        self.types = ctx.facts.types
        self.decls = ctx.facts.decls
        self.switched = ctx.facts.switched
        self.actions = ctx.facts.actions
        self._statements: dict[type[ast.Node], Callable[..., None]] = {
            ast.Block: self.block,
            ast.Assign: self._assign,
            ast.CallStatement: self._call_statement,
            ast.If: self._if,
            ast.Return: self._return,
            ast.Exit: self._exit,
            ast.Empty: lambda s: None,
            ast.Break: self._loop_exit,
            ast.Continue: self._loop_exit,
            ast.Switch: self._switch,
            ast.For: self._for,
            ast.ForIn: self._for_in,
            ast.VarDecl: self._declaration,
            ast.ConstDecl: self._declaration,
        }

    def statement(self, s: ast.Statement) -> None:
        self._statements[type(s)](s)

    def block(self, b: ast.Block) -> None:
        self.annotations.check(b.annotations)
        self.statements(b.statements)

    def statements(self, statements: list[ast.Statement]) -> None:
        for s in statements:
            self.statement(s)

    def _declaration(self, s: ast.VarDecl | ast.ConstDecl) -> None:
        self.ctx.declarations.declaration(s)

    def variable(self, v: ast.VarDecl) -> None:
        self.types[v] = self.written_types.resolve(v.type_expr)
        self.written_types.check_variable_type(v.type_expr, self.types[v], f"variable {v.name!r}")
        if v.init is not None:
            self._initialised(v.init, self.types[v], f"variable {v.name!r}")

    def constant(self, c: ast.ConstDecl) -> None:
        self.types[c] = self.written_types.resolve(c.type_expr)
        if isinstance(self.types[c], (types.Void, types.MatchKind, types.Set)) or is_object(self.types[c]):
            self.ctx.error(c.type_expr, f"constant {c.name!r} cannot have type {self.types[c]}")
            self.types[c] = types.UNKNOWN
        self._initialised(c.init, self.types[c], f"constant {c.name!r}")
        if not self.values.is_constant(c.init):
            self.ctx.error(c.init, f"the value of constant {c.name!r} is not known at compile time")

    def _initialised(self, e: ast.Expr, t: types.Type, what: str = "") -> None:
        """Check `e` and convert it to type `t`. Messages name `what`, which requires the type."""
        self.ctx.expressions.expr(e, t)
        self.conversions.convert(e, t, what)

    def _assign(self, s: ast.Assign) -> None:
        t = self.ctx.expressions.expr(s.target)
        self.ctx.expressions.expr(s.value, t)
        if self.assignable(s.target):
            self.conversions.convert(s.value, t)

    def assignable(self, target: ast.Expr) -> bool:
        """Return whether `target` can be assigned to, and report an error if not."""
        if isinstance(self.types[target], types.Unknown):
            return False
        why = self.values.not_assignable(target)
        if why is not None:
            self.ctx.error(target, f"this cannot be assigned to: {why}")
        return why is None

    def _call_statement(self, s: ast.CallStatement) -> None:
        self.ctx.expressions.any_expr(s.call)
        if self.facts.bindings[s.call].kind is CallKind.CONSTRUCTOR:
            self.ctx.error(s, "an instance needs a name, and a place beside the other declarations")

    def _if(self, s: ast.If) -> None:
        rest: ast.Statement | None = s
        while isinstance(rest, ast.If):
            self.ctx.expressions.boolean(rest.condition, "the condition of 'if'")
            self.statement(rest.then)
            rest = rest.otherwise
        if rest is not None:
            self.statement(rest)

    def _return(self, s: ast.Return) -> None:
        if self.ctx.place == Place.PARSER:
            self.ctx.error(s, "'return' cannot be used in a parser")
        wanted = self.ctx.return_type
        if s.value is None:
            if wanted is not None and not isinstance(wanted, (types.Void, types.Unknown)):
                self.ctx.error(s, f"'return' needs a value of type {wanted}")
        elif wanted is None or isinstance(wanted, types.Void):
            self.ctx.expressions.expr(s.value)
            self.ctx.error(s, f"'return' in {self.ctx.place.value} that returns nothing cannot have a value")
        else:
            self._initialised(s.value, wanted, "the returned value")

    def _exit(self, s: ast.Exit) -> None:
        if self.ctx.place in (Place.PARSER, Place.FUNCTION):
            self.ctx.error(s, f"'exit' cannot be used in {self.ctx.place.value}")

    def _loop_exit(self, s: ast.Break | ast.Continue) -> None:
        if not self.ctx.loops:
            self.ctx.error(s, f"'{type(s).__name__.lower()}' can only be used in a 'for'")

    def _for(self, s: ast.For) -> None:
        self.annotations.check(s.annotations)
        self.statements(s.init)
        self.ctx.expressions.boolean(s.condition, "the condition of 'for'")
        self.statements(s.update)
        self._loop_body(s)

    def _loop_body(self, s: ast.For | ast.ForIn) -> None:
        self.ctx.loops += 1
        self.statement(s.body)
        self.ctx.loops -= 1

    def _for_in(self, s: ast.ForIn) -> None:
        self.annotations.check(s.annotations)
        v = s.variable
        self.annotations.check(v.annotations)
        self.types[v] = self.written_types.resolve(v.type_expr)
        self._collection(s.values, self.types[v])
        self.ctx.declared(v)
        self._loop_body(s)

    def _collection(self, e: ast.Expr, t: types.Type) -> None:
        if isinstance(e, ast.Range):
            for end in (e.low, e.high):
                self.ctx.expressions.expr(end)
                self.conversions.as_bits(end)
                self.conversions.convert(end, t)
            if not isinstance(t, (types.Bits, types.InfInt, types.Unknown)):
                self.ctx.error(e, f"a range has values of type bit<> or int<>, not {t}")
            self.types[e] = types.Set(t)
            return
        given = self.ctx.expressions.expr(e)
        if isinstance(e, ast.ListExpr):
            for item in e.items:
                self.conversions.convert(item, t)
            self.types[e] = types.List(t)
        elif isinstance(given, (types.Stack, types.List)):
            if given.element != t and not isinstance(t, types.Unknown):
                self.ctx.error(e, f"expected elements of type {t}, not {given.element}")
        elif not isinstance(given, types.Unknown):
            self.ctx.error(e, f"{self.ctx.describe(e)} cannot be iterated over")

    def _switch(self, s: ast.Switch) -> None:
        if self.ctx.place == Place.PARSER:
            self.ctx.error(s, "'switch' cannot be used in a parser")
        t = self.ctx.expressions.expr(s.value)
        if isinstance(t, types.ActionRun):
            self.switched[s] = t.decl
        elif isinstance(t, types.InfInt):
            self.ctx.error(s.value, "the value of this switch needs a width (as in 8w1)")
        elif not isinstance(t, (types.Bits, types.Bool, types.Enum, types.Error, types.NewType, types.Unknown)):
            self.ctx.error(s.value, f"'switch' needs a number, an enum, a bool, an error or action_run, not {t}")
        seen: set[Constant] = set()
        defaults = [c for c in s.cases if isinstance(c.label, ast.DefaultExpr)]
        if len(defaults) > 1:
            self.ctx.error(s, "this switch has several 'default' labels")
        elif defaults and defaults[0] is not s.cases[-1]:
            self.ctx.error(s, "'default' must be the last label of a switch")
        for index, case in enumerate(s.cases):
            self._switch_label(s, case, t, seen)
            if case.body is not None:
                self.block(case.body)
            elif index == len(s.cases) - 1:
                self.ctx.warn(case, "the last label of a switch falls through to nothing")

    def _switch_label(self, s: ast.Switch, case: ast.SwitchCase, t: types.Type, seen: set[Constant]) -> None:
        label = case.label
        if isinstance(label, ast.DefaultExpr):
            self.types[label] = t
            return
        if s in self.switched:
            self._action_label(self.switched[s], case, seen)
            return
        self.ctx.expressions.expr(label)
        self.conversions.convert(label, t, "a label")
        if not self.values.is_constant(label):
            self.ctx.error(label, "a label must be known at compile time")
        value = self.facts.constants.get(label)
        if value in seen and not isinstance(self.types[label], types.Unknown):
            self.ctx.error(label, "duplicate label")
        if value is not None:
            seen.add(value)

    def _action_label(self, table: ast.TableDecl, case: ast.SwitchCase, seen: set[Constant]) -> None:
        label = case.label
        if not isinstance(label, ast.Name):
            self.ctx.error(label, f"a label must be the name of an action of table {table.name!r}")
            return
        labelled = next((a for a in table.actions if a.name.lstrip(".") == label.name and a in self.actions), None)
        if labelled is None:
            default = label.name == "NoAction" and table.default_action is None
            others = [d for d in self.ctx.names.decls[label] if isinstance(d, ast.ActionDecl)] if default else []
            if not others:
                hint = did_you_mean(label.name, [a.name.lstrip(".") for a in table.actions])
                self.ctx.error(label, f"{label.name!r} is not an action of table {table.name!r}{hint}")
                return
            self.actions[case] = others[0]
        else:
            self.actions[case] = self.actions[labelled]
        self.decls[label] = self.actions[case]
        if label.name in seen:
            self.ctx.error(label, f"duplicate label {label.name!r}")
        seen.add(label.name)


def always_returns(s: ast.Statement | None) -> bool:
    """Return whether control never reaches the end of `s`."""
    if isinstance(s, (ast.Return, ast.Exit)):
        return True
    if isinstance(s, ast.Block):
        return any(always_returns(x) for x in s.statements)
    if isinstance(s, ast.If):
        return always_returns(s.then) and always_returns(s.otherwise)
    if isinstance(s, ast.Switch):
        has_default = any(isinstance(c.label, ast.DefaultExpr) for c in s.cases)
        return has_default and all(c.body is None or always_returns(c.body) for c in s.cases)
    return False
