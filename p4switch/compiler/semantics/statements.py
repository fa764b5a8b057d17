"""Statements (language specification, section 12)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from p4switch.compiler import ast, types
from p4switch.compiler.diagnostics import did_you_mean
from p4switch.compiler.semantics.places import Place
from p4switch.compiler.semantics.written_types import is_object

if TYPE_CHECKING:
    from p4switch.compiler.semantics.context import Checking


class Statements:
    def __init__(self, ctx: Checking) -> None:
        self.ctx = ctx
        self.types = ctx.facts.types
        self.decls = ctx.facts.decls
        self.switched = ctx.facts.switched
        self.actions = ctx.facts.actions
        self._statements: dict[type[ast.Node], Callable[..., ast.Statement]] = {
            ast.Block: self.block,
            ast.Assign: self._assign,
            ast.CallStatement: self._call_statement,
            ast.If: self._if,
            ast.Return: self._return,
            ast.Exit: self._exit,
            ast.Empty: lambda s: s,
            ast.Break: self._loop_exit,
            ast.Continue: self._loop_exit,
            ast.Switch: self._switch,
            ast.For: self._for,
            ast.ForIn: self._for_in,
            ast.VarDecl: self._declaration,
            ast.ConstDecl: self._declaration,
        }

    def statement(self, s: ast.Statement) -> ast.Statement:
        return self._statements[type(s)](s)

    def block(self, b: ast.Block) -> ast.Block:
        self.ctx.annotations.check(b.annotations)
        b.statements = self.statements(b.statements)
        return b

    def statements(self, statements: list[ast.Statement]) -> list[ast.Statement]:
        return [self.statement(s) for s in statements]

    def _declaration(self, s: ast.VarDecl | ast.ConstDecl) -> ast.Statement:
        self.ctx.declarations.declaration(s)
        return s

    def variable(self, v: ast.VarDecl) -> None:
        self.types[v] = self.ctx.written_types.resolve(v.type_expr)
        self.ctx.written_types.check_variable_type(v.type_expr, self.types[v], f"variable {v.name!r}")
        if v.init is not None:
            v.init = self.ctx.conversions.convert(
                self.ctx.expressions.expr(v.init, self.types[v]), self.types[v], f"variable {v.name!r}"
            )

    def constant(self, c: ast.ConstDecl) -> None:
        self.types[c] = self.ctx.written_types.resolve(c.type_expr)
        if isinstance(self.types[c], (types.Void, types.MatchKind, types.Set)) or is_object(self.types[c]):
            self.ctx.error(c.type_expr, f"constant {c.name!r} cannot have type {self.types[c]}")
            self.types[c] = types.UNKNOWN
        c.init = self.ctx.conversions.convert(
            self.ctx.expressions.expr(c.init, self.types[c]), self.types[c], f"constant {c.name!r}"
        )
        if not self.ctx.values.is_constant(c.init):
            self.ctx.error(c.init, f"the value of constant {c.name!r} is not known at compile time")

    def _assign(self, s: ast.Assign) -> ast.Statement:
        if s.op:
            if isinstance(s.target, ast.Slice) and s.target.width is not None:
                self.ctx.error(s, f"'{s.op}=' cannot be applied to a slice given by its width")
                return s
            s.value = ast.Binary(s.target.pos, s.op, self.ctx.names.copy(s.target), s.value)
            s.op = ""
        target = s.target
        if isinstance(target, ast.Slice) and target.width is not None:
            return self._assign_moving_slice(s, target)
        s.target = self.ctx.expressions.expr(target)
        s.value = self.ctx.expressions.expr(s.value, self.types[s.target])
        if self.assignable(s.target):
            s.value = self.ctx.conversions.convert(s.value, self.types[s.target])
        return s

    def assignable(self, target: ast.Expr) -> bool:
        """Return whether `target` can be assigned to; report if not."""
        if isinstance(self.types[target], types.Unknown):
            return False
        why = self.ctx.values.not_assignable(target)
        if why is not None:
            self.ctx.error(target, f"this cannot be assigned to: {why}")
        return why is None

    def _assign_moving_slice(self, s: ast.Assign, target: ast.Slice) -> ast.Statement:
        """Check `base[low+:width] = value`; if `low` is not constant, `base` is computed with shifts and masks."""
        base, low = target.base, target.low
        checked = self.ctx.expressions.expr(self.ctx.names.copy(target))
        if isinstance(checked, ast.Slice) or isinstance(self.types[checked], types.Unknown):
            s.target = checked
            self.assignable(checked)
            t = self.types[checked]
            s.value = self.ctx.conversions.convert(self.ctx.expressions.expr(s.value, t), t)
            return s
        width = types.width_of(self.types[checked]) or 0
        pos = s.pos
        whole = self.types[self.ctx.expressions.expr(self.ctx.names.copy(base))]
        assert isinstance(whole, types.Bits)
        unsigned = ast.SizedTypeExpr(pos, "bit", ast.IntLiteral(pos, whole.width))
        mask = ast.Binary(pos, "<<", _cast(unsigned, ast.IntLiteral(pos, (1 << width) - 1)), low)
        kept = ast.Binary(pos, "&", _cast(unsigned, base), ast.Unary(pos, "~", mask))
        field = ast.SizedTypeExpr(pos, "bit", ast.IntLiteral(pos, width))
        placed = ast.Binary(pos, "<<", _cast(unsigned, _cast(field, s.value)), self.ctx.names.copy(low))
        full = ast.SizedTypeExpr(pos, "int" if whole.signed else "bit", ast.IntLiteral(pos, whole.width))
        s.target = self.ctx.expressions.expr(self.ctx.names.copy(base))
        self.assignable(s.target)
        s.value = self.ctx.expressions.expr(_cast(full, ast.Binary(pos, "|", kept, placed)))
        return s

    def _call_statement(self, s: ast.CallStatement) -> ast.Statement:
        result = self.ctx.expressions.any_expr(s.call)
        if isinstance(result, ast.Call):
            s.call = result
        elif isinstance(result, ast.ConstructorCall):
            self.ctx.error(s, "an instance needs a name, and a place beside the other declarations")
        elif isinstance(result, (ast.BoolLiteral, ast.IntLiteral)):
            return ast.Empty(s.pos)
        elif not isinstance(self.types[result], types.Unknown):
            self.ctx.error(s, "this call has no effect")
        return s

    def _if(self, s: ast.If) -> ast.Statement:
        first = s
        while True:
            s.condition = self.ctx.expressions.boolean(s.condition, "the condition of 'if'")
            s.then = self.statement(s.then)
            if not isinstance(s.otherwise, ast.If):
                break
            s = s.otherwise
        if s.otherwise is not None:
            s.otherwise = self.statement(s.otherwise)
        return first

    def _return(self, s: ast.Return) -> ast.Statement:
        if self.ctx.place == Place.PARSER:
            self.ctx.error(s, "'return' cannot be used in a parser")
        wanted = self.ctx.return_type
        if s.value is None:
            if wanted is not None and not isinstance(wanted, (types.Void, types.Unknown)):
                self.ctx.error(s, f"'return' needs a value of type {wanted}")
        elif wanted is None or isinstance(wanted, types.Void):
            s.value = self.ctx.expressions.expr(s.value)
            self.ctx.error(s, f"'return' in {self.ctx.place.value} that returns nothing cannot have a value")
        else:
            s.value = self.ctx.conversions.convert(
                self.ctx.expressions.expr(s.value, wanted), wanted, "the returned value"
            )
        return s

    def _exit(self, s: ast.Exit) -> ast.Statement:
        if self.ctx.place in (Place.PARSER, Place.FUNCTION):
            self.ctx.error(s, f"'exit' cannot be used in {self.ctx.place.value}")
        return s

    def _loop_exit(self, s: ast.Break | ast.Continue) -> ast.Statement:
        if not self.ctx.loops:
            self.ctx.error(s, f"'{type(s).__name__.lower()}' can only be used in a 'for'")
        return s

    def _for(self, s: ast.For) -> ast.Statement:
        self.ctx.annotations.check(s.annotations)
        s.init = self.statements(s.init)
        s.condition = self.ctx.expressions.boolean(s.condition, "the condition of 'for'")
        s.update = self.statements(s.update)
        self._loop_body(s)
        return s

    def _loop_body(self, s: ast.For | ast.ForIn) -> None:
        self.ctx.loops += 1
        s.body = self.statement(s.body)
        self.ctx.loops -= 1

    def _for_in(self, s: ast.ForIn) -> ast.Statement:
        self.ctx.annotations.check(s.annotations)
        v = s.variable
        self.ctx.annotations.check(v.annotations)
        self.types[v] = self.ctx.written_types.resolve(v.type_expr)
        s.values = self._collection(s.values, self.types[v])
        self.ctx.declared(v)
        self._loop_body(s)
        return s

    def _collection(self, e: ast.Expr, t: types.Type) -> ast.Expr:
        if isinstance(e, ast.Range):
            low, high = self.ctx.expressions.expr(e.low), self.ctx.expressions.expr(e.high)
            e.low, e.high = (
                self.ctx.conversions.convert(self.ctx.operators.as_bits(low), t),
                self.ctx.conversions.convert(self.ctx.operators.as_bits(high), t),
            )
            if not isinstance(t, (types.Bits, types.InfInt, types.Unknown)):
                self.ctx.error(e, f"a range has values of type bit<> or int<>, not {t}")
            self.types[e] = types.Set(t)
            return e
        e = self.ctx.expressions.expr(e)
        given = self.types[e]
        if isinstance(e, ast.ListExpr):
            e.items = [self.ctx.conversions.convert(item, t) for item in e.items]
            self.types[e] = types.List(t)
        elif isinstance(given, (types.Stack, types.List)):
            if given.element != t and not isinstance(t, types.Unknown):
                self.ctx.error(e, f"expected elements of type {t}, not {given.element}")
        elif not isinstance(given, types.Unknown):
            self.ctx.error(e, f"{self.ctx.describe(e)} cannot be iterated over")
        return e

    def _switch(self, s: ast.Switch) -> ast.Statement:
        if self.ctx.place == Place.PARSER:
            self.ctx.error(s, "'switch' cannot be used in a parser")
        s.value = self.ctx.expressions.expr(s.value)
        t = self.types[s.value]
        if isinstance(t, types.ActionRun):
            self.switched[s] = t.decl
        elif isinstance(t, types.InfInt):
            self.ctx.error(s.value, "the value of this switch needs a width (as in 8w1)")
        elif not isinstance(t, (types.Bits, types.Bool, types.Enum, types.Error, types.NewType, types.Unknown)):
            self.ctx.error(s.value, f"'switch' needs a number, an enum, a bool, an error or action_run, not {t}")
        seen: list[ast.Expr] = []
        defaults = [c for c in s.cases if isinstance(c.label, ast.DefaultExpr)]
        if len(defaults) > 1:
            self.ctx.error(s, "this switch has several 'default' labels")
        elif defaults and defaults[0] is not s.cases[-1]:
            self.ctx.error(s, "'default' must be the last label of a switch")
        for index, case in enumerate(s.cases):
            self._switch_label(s, case, t, seen)
            if case.body is not None:
                case.body = self.block(case.body)
            elif index == len(s.cases) - 1:
                self.ctx.warn(case, "the last label of a switch falls through to nothing")
        return s

    def _switch_label(self, s: ast.Switch, case: ast.SwitchCase, t: types.Type, seen: list[ast.Expr]) -> None:
        label = case.label
        if isinstance(label, ast.DefaultExpr):
            self.types[label] = t
            return
        if s in self.switched:
            self._action_label(self.switched[s], case, seen)
            return
        label = case.label = self.ctx.conversions.convert(self.ctx.expressions.expr(label), t, "a label")
        if not self.ctx.values.is_constant(label):
            self.ctx.error(label, "a label must be known at compile time")
        if not isinstance(self.types[label], types.Unknown) and any(_same_literal(label, other) for other in seen):
            self.ctx.error(label, "duplicate label")
        seen.append(label)

    def _action_label(self, table: ast.TableDecl, case: ast.SwitchCase, seen: list[ast.Expr]) -> None:
        label = case.label
        if not isinstance(label, ast.Name):
            self.ctx.error(label, f"a label must be the name of an action of table {table.name!r}")
            return
        found = next((a for a in table.actions if a.name.lstrip(".") == label.name and a in self.actions), None)
        if found is None:
            default = label.name == "NoAction" and table.default_action is None
            others = [d for d in self.ctx.names.decls[label] if isinstance(d, ast.ActionDecl)] if default else []
            if not others:
                hint = did_you_mean(label.name, [a.name.lstrip(".") for a in table.actions])
                self.ctx.error(label, f"{label.name!r} is not an action of table {table.name!r}{hint}")
                return
            self.actions[case] = others[0]
        else:
            self.actions[case] = self.actions[found]
        self.decls[label] = self.actions[case]
        if any(isinstance(o, ast.Name) and o.name == label.name for o in seen):
            self.ctx.error(label, f"duplicate label {label.name!r}")
        seen.append(label)


def _cast(t: ast.TypeExpr, e: ast.Expr) -> ast.Cast:
    return ast.Cast(e.pos, t, e)


def _same_literal(a: ast.Expr, b: ast.Expr) -> bool:
    if isinstance(a, (ast.IntLiteral, ast.BoolLiteral)) and isinstance(b, (ast.IntLiteral, ast.BoolLiteral)):
        return a.value == b.value
    return isinstance(a, ast.EnumRef) and isinstance(b, ast.EnumRef) and a.decl is b.decl


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
