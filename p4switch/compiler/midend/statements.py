"""Lowering of statements."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from p4switch import ir
from p4switch.compiler import ast, types
from p4switch.compiler.midend import fold
from p4switch.compiler.midend.storage import scalar_type
from p4switch.compiler.midend.values import EXPRS, ListValue, StackValue, StructValue, Value

if TYPE_CHECKING:
    from p4switch.compiler.midend.lowering import Lowering


class Statements:
    def __init__(self, low: Lowering) -> None:
        self.low = low
        self.facts = low.facts
        self._kinds: dict[type[ast.Node], Callable[..., None]] = {
            ast.Block: self._do_block,
            ast.Empty: self._do_empty,
            ast.ConstDecl: self._do_const_decl,
            ast.VarDecl: self._do_var_decl,
            ast.Assign: self._do_assign,
            ast.CallStatement: self._do_call_statement,
            ast.If: self._do_if,
            ast.Return: self._do_return,
            ast.Exit: self._do_exit,
            ast.Break: self._do_break,
            ast.Continue: self._do_continue,
            ast.Switch: self._do_switch,
            ast.For: self._do_for,
            ast.ForIn: self._do_for_in,
        }

    def run(self, body: ast.Block) -> None:
        for statement in body.statements:
            if self.low.code in self.low.unreached:
                break
            self.statement(statement)

    def statement(self, node: ast.Statement) -> None:
        self.low.work(node)
        self._kinds[type(node)](node)

    def _do_block(self, node: ast.Block) -> None:
        self.run(node)

    def _do_empty(self, node: ast.Empty) -> None:
        pass

    def _do_const_decl(self, node: ast.ConstDecl) -> None:
        self.low.frame.values[node] = self.low.expressions.expr(node.init)

    def _do_var_decl(self, node: ast.VarDecl) -> None:
        value = None if node.init is None else self.low.expressions.expr(node.init)
        t = self.low.type_of(node)
        self.low.storable(t, node)
        place = self.low.temp(t, node.name)
        self.low.frame.values[node] = place
        if value is None:
            self.low.copies.reset(place)
        else:
            self.low.copies.assign(place, value, node.pos)

    def _do_assign(self, node: ast.Assign) -> None:
        if not self.low.expressions.effects(node.target) and not self.low.expressions.effects(node.value):
            self.low.copies.assign(
                self.low.expressions.place(node.target), self.low.expressions.expr(node.value), node.target.pos
            )
            return
        place = self.low.copies.freeze(self.low.expressions.place(node.target))
        again = self._target_again(node)
        if again is not None:
            self.low.expressions.known[again] = self.low.copies.read(place)
        self.low.copies.assign(place, self.low.expressions.expr(node.value), node.target.pos)

    @staticmethod
    def _target_again(node: ast.Assign) -> ast.Expr | None:
        """Return the node for the target's old value in the right side of `target op= value`; None for others."""
        value = node.value
        while isinstance(value, ast.Cast):
            value = value.operand
        if not isinstance(value, ast.Binary):
            return None
        left = value.left
        while isinstance(left, ast.Cast):
            left = left.operand
        return left if left.pos == node.target.pos else None

    def _do_call_statement(self, node: ast.CallStatement) -> None:
        self.low.calls.call(node.call)

    def _do_if(self, node: ast.If) -> None:
        yes, no, join = ir.Block(), ir.Block(), ir.Block()
        self.low.expressions.branch(node.condition, yes, no)
        reached = False
        for block, statement in ((yes, node.then), (no, node.otherwise)):
            if block not in self.low.unreached:
                self.low.start(block)
                if statement is not None:
                    self.statement(statement)
                reached = reached or self.low.code not in self.low.unreached
                self.low.goto(join)
        self.low.start(join)
        if not reached:
            self.low.unreached.add(join)

    def _do_return(self, node: ast.Return) -> None:
        target, result = self.low.jumps.returns[-1]
        if node.value is not None and result is not None:
            self.low.copies.assign(result, self.low.expressions.expr(node.value), node.pos)
        self.low.goto(target)
        self.low.dead()

    def _do_exit(self, node: ast.Exit) -> None:
        assert self.low.jumps.exit is not None
        self.low.calls.cleanup()
        if self.low.jumps.in_action:
            if self.low.jumps.soft_exit is not None:
                self.low.emit(ir.Assign(self.low.jumps.soft_exit, fold.TRUE, node.pos))
            else:
                self.low.emit(ir.Exit(node.pos))
        self.low.goto(self.low.jumps.exit)
        self.low.start(ir.Block())  # unreachable code is dropped, but the control plane still sees its actions

    def _do_break(self, node: ast.Break) -> None:
        self.low.goto(self.low.jumps.loops[-1][0])
        self.low.dead()

    def _do_continue(self, node: ast.Continue) -> None:
        self.low.goto(self.low.jumps.loops[-1][1])
        self.low.dead()

    # switch

    def _do_switch(self, node: ast.Switch) -> None:
        after = ir.Block()
        if node in self.facts.switched:
            self.low.tables.switch_table(node, after)
        else:
            self._switch_value(node, after)
        self.low.start(after)

    def switch_bodies(self, node: ast.Switch, after: ir.Block) -> list[ir.Block]:
        """Return the block for the body of each case. Cases that fall through share a block."""
        targets: list[ir.Block] = []
        shared: ir.Block | None = None
        for case in node.cases:
            shared = shared or ir.Block()
            targets.append(shared)
            if case.body is not None:
                saved = self.low.code
                self.low.start(shared)
                self.run(case.body)
                self.low.goto(after)
                self.low.start(saved)
                shared = None
        if shared is not None:
            shared.end = ir.Goto(after)
        return targets

    def _switch_value(self, node: ast.Switch, after: ir.Block) -> None:
        value = self.low.copies.saved(self.low.expressions.scalar(node.value))
        targets = self.switch_bodies(node, after)
        default = after
        for case, target in zip(node.cases, targets, strict=True):
            if isinstance(case.label, ast.DefaultExpr):
                default = target
                continue
            label = self.low.expressions.constant(case.label)
            matches = fold.make("==", types.BOOL, value, fold.cast(label, value.type))
            following = ir.Block()
            self.low.branch_on(matches, target, following, case.pos)
            self.low.start(following)
        self.low.goto(default)

    # Loops

    def _do_for(self, node: ast.For) -> None:
        for statement in node.init:
            self.statement(statement)
        head, body, update, after = ir.Block(), ir.Block(), ir.Block(), ir.Block()
        self.low.goto(head)
        self.low.start(head)
        self.low.expressions.branch(node.condition, body, after)
        self._loop_body(node.body, body, after, update)
        self.low.start(update)
        for statement in node.update:
            self.statement(statement)
        self.low.goto(head)
        self.low.start(after)

    def _loop_body(self, node: ast.Statement, body: ir.Block, after: ir.Block, following: ir.Block) -> None:
        self.low.start(body)
        self.low.jumps.loops.append((after, following))
        self.statement(node)
        self.low.jumps.loops.pop()
        self.low.goto(following)

    def _do_for_in(self, node: ast.ForIn) -> None:
        t = self.low.type_of(node.variable)
        variable = self.low.frame.values[node.variable] = self.low.temp(t, node.variable.name)
        after = ir.Block()
        if isinstance(node.values, ast.Range):
            self._for_range(node, node.values, variable, after)
        else:
            values = self.low.expressions.expr(node.values)
            if self.low.copies.footprint(values).overlaps(self.low.calls.touched(node.body, self.low.frame)):
                values = self.low.copies.snapshot(values)  # evaluated once, even if the body changes it
            items: list[Value]
            if isinstance(values, StackValue):
                items = list(values.elements)
            elif isinstance(values, ListValue):
                items = values.items
            elif isinstance(values, StructValue):
                items = list(values.fields.values())
            else:
                raise self.low.error(node.values, "a loop over this is not supported on this target")
            for item in items:
                body, following = ir.Block(), ir.Block()
                self.low.copies.assign(variable, item, node.pos)
                self.low.goto(body)
                self._loop_body(node.body, body, after, following)
                self.low.start(following)
            self.low.goto(after)
        self.low.start(after)

    def _for_range(self, node: ast.ForIn, values: ast.Range, variable: Value, after: ir.Block) -> None:
        low, high = self.low.expressions.operands([values.low, values.high])
        t = scalar_type(self.low.type_of(node.variable))
        assert isinstance(low, EXPRS)
        assert isinstance(high, EXPRS)
        assert t is not None
        # The program's loop variable cannot serve as counter, because the body may assign to it.
        counter = self.low.temp(t, "counter")
        assert isinstance(counter, ir.FieldRef)
        last = self.low.copies.saved(fold.cast(high, t))
        self.low.copies.assign(counter, fold.cast(low, t), node.pos)
        start, body, following, step = ir.Block(), ir.Block(), ir.Block(), ir.Block()
        self.low.branch_on(fold.make("<=", types.BOOL, counter, last), start, after, node.pos)
        self.low.start(start)
        self.low.copies.assign(variable, counter, node.pos)
        self.low.goto(body)
        self._loop_body(node.body, body, after, following)
        self.low.start(following)
        self.low.branch_on(fold.make("==", types.BOOL, counter, last), after, step, node.pos)
        self.low.start(step)
        self.low.copies.assign(counter, fold.make("+", t, counter, fold.const(1, t)), node.pos)
        self.low.goto(start)
