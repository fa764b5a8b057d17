"""Statements."""

from __future__ import annotations

from p4switch import ir
from p4switch.compiler import ast, types
from p4switch.compiler.midend import fold
from p4switch.compiler.midend.calls import Calls
from p4switch.compiler.midend.storage import scalar_type
from p4switch.compiler.midend.values import EXPRS, ListValue, StackValue, StructValue, Value
from p4switch.compiler.midend.walk import method_name


class Statements(Calls):
    # Provided by the classes below this one

    def switch_table(self, node: ast.Switch, after: ir.Block) -> None:
        raise NotImplementedError

    def statements(self, body: ast.Block) -> None:
        for statement in body.statements:
            if self.code in self.unreached:
                break
            self.statement(statement)

    def statement(self, node: ast.Statement) -> None:
        self.work(node)
        getattr(self, method_name("_do_", node))(node)

    def _do_block(self, node: ast.Block) -> None:
        self.statements(node)

    def _do_empty(self, node: ast.Empty) -> None:
        pass

    def _do_const_decl(self, node: ast.ConstDecl) -> None:
        self.frame.values[node] = self.expr(node.init)

    def _do_var_decl(self, node: ast.VarDecl) -> None:
        value = None if node.init is None else self.expr(node.init)
        t = self.resolve(node.type)
        self.storable(t, node)
        place = self.temp(t, node.name)
        self.frame.values[node] = place
        if value is None:
            self.reset(place)
        else:
            self.assign(place, value, node.pos)

    def _do_assign(self, node: ast.Assign) -> None:
        if not self.effects(node.target) and not self.effects(node.value):
            self.assign(self.place(node.target), self.expr(node.value), node.target.pos)
            return
        place = self.freeze(self.place(node.target))
        again = self._target_again(node)
        if again is not None:
            self.known[again] = self.read(place)
        self.assign(place, self.expr(node.value), node.target.pos)

    @staticmethod
    def _target_again(node: ast.Assign) -> ast.Expr | None:
        """The copy of the target that stands for its old value in what was written `target op= value`."""
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
        self.call(node.call)

    def _do_if(self, node: ast.If) -> None:
        yes, no, join = ir.Block(), ir.Block(), ir.Block()
        self.branch(node.condition, yes, no)
        reached = False
        for block, statement in ((yes, node.then), (no, node.otherwise)):
            if block not in self.unreached:
                self.start(block)
                if statement is not None:
                    self.statement(statement)
                reached = reached or self.code not in self.unreached
                self.goto(join)
        self.start(join)
        if not reached:
            self.unreached.add(join)

    def _do_return(self, node: ast.Return) -> None:
        target, result = self.return_targets[-1]
        if node.value is not None and result is not None:
            self.assign(result, self.expr(node.value), node.pos)
        self.goto(target)
        self.dead()

    def _do_exit(self, node: ast.Exit) -> None:
        assert self.exit_target is not None
        self.cleanup()
        if self.in_action:
            if self.soft_exit is not None:
                self.emit(ir.Assign(self.soft_exit, fold.TRUE, node.pos))
            else:
                self.emit(ir.Exit(node.pos))
        self.goto(self.exit_target)
        self.start(ir.Block())  # what follows is dropped, but its actions stay visible to the control plane

    def _do_break(self, node: ast.Break) -> None:
        self.goto(self.loops[-1][0])
        self.dead()

    def _do_continue(self, node: ast.Continue) -> None:
        self.goto(self.loops[-1][1])
        self.dead()

    # switch

    def _do_switch(self, node: ast.Switch) -> None:
        after = ir.Block()
        if node.table is not None:
            self.switch_table(node, after)
        else:
            self._switch_value(node, after)
        self.start(after)

    def switch_bodies(self, node: ast.Switch, after: ir.Block) -> list[ir.Block]:
        """Blocks for the bodies of the cases, one for each case (cases that fall through share one)."""
        targets: list[ir.Block] = []
        shared: ir.Block | None = None
        for case in node.cases:
            shared = shared or ir.Block()
            targets.append(shared)
            if case.body is not None:
                saved = self.code
                self.start(shared)
                self.statements(case.body)
                self.goto(after)
                self.start(saved)
                shared = None
        if shared is not None:
            shared.end = ir.Goto(after)
        return targets

    def _switch_value(self, node: ast.Switch, after: ir.Block) -> None:
        value = self.saved(self.scalar(node.value))
        targets = self.switch_bodies(node, after)
        default = after
        for case, target in zip(node.cases, targets, strict=True):
            if isinstance(case.label, ast.DefaultExpr):
                default = target
                continue
            label = self.constant(case.label)
            matches = fold.make("==", types.BOOL, value, fold.cast(label, value.type))
            following = ir.Block()
            self.branch_on(matches, target, following, case.pos)
            self.start(following)
        self.goto(default)

    # Loops

    def _do_for(self, node: ast.For) -> None:
        for statement in node.init:
            self.statement(statement)
        head, body, update, after = ir.Block(), ir.Block(), ir.Block(), ir.Block()
        self.goto(head)
        self.start(head)
        self.branch(node.condition, body, after)
        self._loop_body(node.body, body, after, update)
        self.start(update)
        for statement in node.update:
            self.statement(statement)
        self.goto(head)
        self.start(after)

    def _loop_body(self, node: ast.Statement, body: ir.Block, after: ir.Block, following: ir.Block) -> None:
        self.start(body)
        self.loops.append((after, following))
        self.statement(node)
        self.loops.pop()
        self.goto(following)

    def _do_for_in(self, node: ast.ForIn) -> None:
        t = self.resolve(node.variable.type)
        variable = self.frame.values[node.variable] = self.temp(t, node.variable.name)
        after = ir.Block()
        if isinstance(node.values, ast.Range):
            self._for_range(node, node.values, variable, after)
        else:
            values = self.expr(node.values)
            if self.overlap(set(self.leaves(values)), self.touched(node.body, self.frame)):
                values = self.snapshot(values)  # it is evaluated once, whatever the body assigns
            items: list[Value]
            if isinstance(values, StackValue):
                items = list(values.elements)
            elif isinstance(values, ListValue):
                items = values.items
            elif isinstance(values, StructValue):
                items = list(values.fields.values())
            else:
                raise self.error(node.values, "a loop over this is not supported on this target")
            for item in items:
                body, following = ir.Block(), ir.Block()
                self.assign(variable, item, node.pos)
                self.goto(body)
                self._loop_body(node.body, body, after, following)
                self.start(following)
            self.goto(after)
        self.start(after)

    def _for_range(self, node: ast.ForIn, values: ast.Range, variable: Value, after: ir.Block) -> None:
        low, high = self.operands([values.low, values.high])
        t = scalar_type(self.resolve(node.variable.type))
        assert isinstance(low, EXPRS)
        assert isinstance(high, EXPRS)
        assert t is not None
        # A counter of the program's own cannot be relied on: the body may assign to it.
        counter = self.temp(t, "counter")
        assert isinstance(counter, ir.FieldRef)
        last = self.saved(fold.cast(high, t))
        self.assign(counter, fold.cast(low, t), node.pos)
        start, body, following, step = ir.Block(), ir.Block(), ir.Block(), ir.Block()
        self.branch_on(fold.make("<=", types.BOOL, counter, last), start, after, node.pos)
        self.start(start)
        self.assign(variable, counter, node.pos)
        self.goto(body)
        self._loop_body(node.body, body, after, following)
        self.start(following)
        self.branch_on(fold.make("==", types.BOOL, counter, last), after, step, node.pos)
        self.start(step)
        self.assign(counter, fold.make("+", t, counter, fold.const(1, t)), node.pos)
        self.goto(start)
