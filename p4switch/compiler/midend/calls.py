"""Lowering of calls. All calls are inlined, and arguments are copied in and copied out.

An argument is passed by reference if the program cannot tell the difference: if it is an l-value
that does not overlap with anything else that the callee can access (language specification,
section 6.8).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from p4switch import ir
from p4switch.compiler import ast, types
from p4switch.compiler.facts import CallKind
from p4switch.compiler.midend.assign import Footprint
from p4switch.compiler.midend.elaborate import Block, ExternObject
from p4switch.compiler.midend.storage import scalar_type
from p4switch.compiler.midend.values import (
    EXPRS,
    PLACES,
    Frame,
    HeaderValue,
    Ignored,
    ListValue,
    StackValue,
    StructValue,
    Text,
    UnionValue,
    Value,
)
from p4switch.compiler.walk import parts

if TYPE_CHECKING:
    from p4switch.compiler.midend.lowering import Lowering

_OUT = (ast.Direction.OUT, ast.Direction.INOUT)


def _is_place(value: Value) -> bool:
    if isinstance(value, StructValue):
        return all(_is_place(v) for v in value.fields.values())
    if isinstance(value, ListValue):
        return all(_is_place(v) for v in value.items)
    if isinstance(value, ir.HeaderRef):
        return not value.where
    return isinstance(value, (*PLACES, UnionValue, StackValue)) and not isinstance(value, ir.LastField)


def _is_simple(value: Value) -> bool:
    """Return whether repeated reads of `value` cost no more than reads of a copy."""
    if isinstance(value, StructValue):
        return all(_is_simple(v) for v in value.fields.values())
    return isinstance(value, (ir.Const, ir.Param)) or _is_place(value)


class Calls:
    def __init__(self, low: Lowering) -> None:
        self.low = low
        self.facts = low.facts
        self._reach: dict[tuple[ast.ActionDecl, Frame], Footprint] = {}
        self._inside_action = False  # True in the body of an inlined action

    # Dispatch

    def call(self, call: ast.Call) -> Value | None:
        binding = self.facts.bindings[call]
        kind = binding.kind
        if kind is CallKind.BUILTIN:
            return self._builtin(call)
        if kind is CallKind.FUNCTION:
            return self._function(call)
        if kind is CallKind.CONSTRUCTOR:
            return self.low.instances.construct(call)
        if kind is CallKind.ACTION:
            self._action(call)
        elif kind is CallKind.TABLE_APPLY:
            self.low.tables.run_table(call)
        elif kind in (CallKind.CONTROL_APPLY, CallKind.PARSER_APPLY):
            assert binding.receiver is not None
            block = self.low.expressions.expr(binding.receiver)
            assert isinstance(block, Block)
            if isinstance(block.decl, ast.ParserDecl):
                self.low.parsers.inline_parser(block, call)
            else:
                self._control(block, call)
        else:
            return self.low.externs.extern_call(call)
        return None

    # Arguments

    def bind(
        self,
        params: Sequence[ast.Parameter],
        param_types: Sequence[types.Type],
        bound: Sequence[ast.Expr | None],
        frame: Frame,
        reach: Footprint | None = None,
        fixed: bool = False,
    ) -> list[tuple[Value, Value]]:
        """Evaluate the arguments `bound` and bind `params` in `frame`; return the copies to make later, (to, from).

        `reach` is the storage that the callee can access besides its parameters. With `fixed`, each
        parameter has the same storage in all calls.
        """
        directions = [p.direction for p in params]
        expected = [self.low.resolve(t) for t in param_types]
        early: dict[int, Value] = {}
        values = self.arguments(params, bound, expected, early)
        leaves = [self.low.copies.footprint(v) for v in values]
        outs = [i for i, d in enumerate(directions) if d in _OUT]
        copies: list[tuple[Value, Value]] = []
        in_order = [i for i, _, _ in self.low.expressions.in_order(bound)]
        for i in [*in_order, *(i for i, b in enumerate(bound) if b is None)]:
            param, value, t = params[i], values[i], expected[i]
            against = range(len(leaves)) if directions[i] in _OUT else outs
            alone = not any(leaves[i].overlaps(leaves[j]) for j in against if j != i)
            alone = alone and not (reach is not None and leaves[i].overlaps(reach))
            if fixed and isinstance(value, ExternObject):
                if frame.values.setdefault(param, value) is not value:
                    raise self.low.error(
                        bound[i] or param,
                        "a control with tables that is applied more than once needs the same extern object each time",
                    )
                continue
            if fixed and param not in frame.values and not isinstance(value, (Text, Ignored)):
                frame.values[param] = self.low.temp(t, param.name)
            previous = frame.values.get(param) if fixed else None
            if i in early:
                copies.append((value, previous or early[i]))
                if previous is not None:
                    self.low.copies.assign(previous, early[i])
                frame.values[param] = previous or early[i]
                continue
            frame.values[param] = self._bind_one(param, value, t, alone and not fixed, previous, copies)
        return copies

    def arguments(
        self,
        params: Sequence[ast.Parameter],
        bound: Sequence[ast.Expr | None],
        expected: Sequence[types.Type] = (),
        early: dict[int, Value] | None = None,
    ) -> list[Value]:
        """Evaluate the arguments in the order of the call. They are values, or places for `out` and `inout`.

        If a later argument may change the value of an `inout` argument, a copy of it, with its type in
        `expected`, is added to `early`.
        """
        values: list[Value] = [Ignored() for _ in params]
        for i, arg, changes_later in self.low.expressions.in_order(bound):
            if params[i].direction in _OUT:
                place = values[i] = self.low.copies.freeze(self.low.expressions.place(arg))
                if early is not None and changes_later and params[i].direction is ast.Direction.INOUT:
                    early[i] = self.low.temp(expected[i], params[i].name)
                    self.low.copies.assign(early[i], self.low.copies.read(place))
            else:
                value = self.low.expressions.expr(arg)
                values[i] = self.low.copies.snapshot(value) if changes_later else value
        return values

    def _bind_one(
        self,
        param: ast.Parameter,
        value: Value,
        t: types.Type,
        alone: bool,
        previous: Value | None,
        copies: list[tuple[Value, Value]],
    ) -> Value:
        if isinstance(value, Text) or isinstance(t, (types.Extern, types.String)):
            return value
        if isinstance(value, Ignored) and param.direction not in _OUT:
            return value
        if param.direction in _OUT:
            if alone and _is_place(value):
                if param.direction is ast.Direction.OUT:
                    self.low.copies.reset(value)
                return value
            copy = previous or self.low.temp(t, param.name)
            if param.direction is ast.Direction.INOUT:
                self.low.copies.assign(copy, self.low.copies.read(value))
            else:
                self.low.copies.reset(copy)
            if not isinstance(value, Ignored):
                copies.append((value, copy))
            return copy
        if isinstance(value, EXPRS) and isinstance(scalar_type(t), types.InfInt):
            return value
        if alone and _is_simple(value):
            return value
        if isinstance(value, ir.Const) and previous is None:
            return value
        copy = previous or self.low.temp(t, param.name)
        self.low.copies.assign(copy, value)
        return copy

    def copy_out(self, copies: list[tuple[Value, Value]]) -> None:
        for place, value in copies:
            self.low.copies.assign(place, value)

    # Functions and actions

    def _function(self, call: ast.Call) -> Value | None:
        binding = self.facts.bindings[call]
        decl = binding.decl
        assert isinstance(decl, ast.FunctionDecl)
        frame = Frame(self.low.globals, types={p: self.low.resolve(t) for p, t in binding.type_args.items()})
        copies = self.bind(binding.params, binding.param_types, binding.bound, frame)
        result: Value | None = None
        body = decl.body.statements
        with self.low.activation(frame):
            returned = body[0].value if len(body) == 1 and isinstance(body[0], ast.Return) else None
            if returned is not None:
                # The value remains an expression without a temporary, unless copying out could change it.
                result = self.low.expressions.expr(returned)
                if copies:
                    result = self.low.copies.snapshot(result)
            else:
                t = self.low.type_of(decl)
                result = None if isinstance(t, types.Void) else self.low.temp(t, decl.name)
                if result is not None:
                    self.low.copies.reset(result)
                self.body(decl.body, result, copies)
        self.copy_out(copies)
        return result

    def body(self, body: ast.Block, result: Value | None, copies: list[tuple[Value, Value]]) -> None:
        """Lower a body. `return` continues after the body, and `exit` first makes `copies`."""
        join = ir.Block()
        self.low.jumps.returns.append((join, result))
        self.low.jumps.cleanups.append(copies)
        self.low.statements.run(body)
        self.low.jumps.cleanups.pop()
        self.low.jumps.returns.pop()
        self.low.goto(join)
        self.low.start(join)

    def _action(self, call: ast.Call) -> None:
        binding = self.facts.bindings[call]
        decl = binding.decl
        assert isinstance(decl, ast.ActionDecl)
        if not self.low.jumps.in_action and not self._inside_action:
            self.low.tables.called_directly(decl)
        home = self.home(decl)
        frame = Frame(home)
        reach = self.reach(decl, home) if home is not self.low.globals else None
        copies = self.bind(binding.params, binding.param_types, binding.bound, frame, reach)
        outer, self._inside_action = self._inside_action, True
        with self.low.activation(frame):
            self.body(decl.body, None, copies)
        self._inside_action = outer
        self.copy_out(copies)

    def home(self, decl: ast.ActionDecl) -> Frame:
        """Return the frame that resolves the names in an action's body that are declared outside of it."""
        if self.low.block is not None and decl in self.low.block.decl.locals:
            return self.low.block.frame
        return self.low.globals

    def reach(self, decl: ast.ActionDecl, home: Frame) -> Footprint:
        """Return the storage, other than its parameters, that an action's body accesses, also through calls."""
        known = self._reach.get((decl, home))
        if known is not None:
            return known
        result = self._reach[decl, home] = self.touched(decl.body, home, set(decl.params))
        return result

    def touched(self, body: ast.Node, frame: Frame, own: Collection[ast.Declaration] = ()) -> Footprint:
        """Return the storage that `body` and its actions read or change, except `own`. `frame` resolves names."""
        result = Footprint()
        waiting: list[ast.Node] = [body]
        while waiting:
            node = waiting.pop()
            self.low.spend(1)
            if isinstance(node, (ast.Name, ast.Member)):
                value = self._static(node, frame, own)
                if value is not None:
                    result.update(self.low.copies.footprint(value))
                    continue
            called = self.facts.bindings[node].decl if isinstance(node, ast.Call) else None
            if isinstance(called, ast.TableDecl):
                waiting.append(called)
                called_actions = [self.facts.actions[ref] for ref in called.actions]
                waiting += [b for ref in called.actions for b in self.facts.bindings[ref].bound if b is not None]
            else:
                called_actions = [called] if isinstance(called, ast.ActionDecl) else []
            for action in called_actions:
                if self.home(action) is not self.low.globals:
                    result.update(self.reach(action, self.home(action)))
            waiting.extend(parts(node, self.facts))
        return result

    def _static(self, node: ast.Expr, home: Frame, own: Collection[ast.Declaration]) -> Value | None:
        """Return the place in `home` of an expression like `a.b.c`; None for other expressions."""
        if isinstance(node, ast.Name):
            decl = self.facts.decls[node]
            return None if decl in own else home.lookup(decl)
        if isinstance(node, ast.Member) and node in self.facts.fields:
            base = self._static(node.base, home, own)
            if isinstance(base, (StructValue, ir.HeaderRef, UnionValue)):
                return self.low.expressions.select(base, node.name, node)
            return base
        return None

    # Controls

    def _control(self, block: Block, call: ast.Call) -> None:
        binding = self.facts.bindings[call]
        copies = self.bind(block.decl.params, binding.param_types, binding.bound, block.frame, fixed=block.shared)
        saved = self.low.block, self.low.prefix
        self.low.block, self.low.prefix = block, block.path + "."
        with self.low.activation(block.frame):
            self.make_locals(block)
            assert isinstance(block.decl, ast.ControlDecl)
            self.body(block.decl.body, None, copies)
        self.low.block, self.low.prefix = saved
        self.copy_out(copies)

    def make_locals(self, block: Block) -> None:
        """Allocate the variables of a parser or control, and initialise them and the extern objects."""
        for extern in block.externs:
            kind = self.low.architecture.extern_type(extern.decl.name)
            if kind is not None:
                kind.begin(extern, self.low)
        for local in block.decl.locals:
            if isinstance(local, ast.VarDecl):
                value = None if local.init is None else self.low.copies.snapshot(self.low.expressions.expr(local.init))
                place = block.frame.values.get(local)
                if place is None:
                    t = self.low.type_of(local)
                    self.low.storable(t, local)
                    place = block.frame.values[local] = self.low.storage.allocate(t, self.low.prefix + local.name)
                if value is None:
                    self.low.copies.reset(place)
                else:
                    self.low.copies.assign(place, value, local.pos)

    def cleanup(self) -> None:
        """Make the copies of all active calls before an `exit`, those of the innermost call first."""
        for copies in reversed(self.low.jumps.cleanups):
            self.copy_out(copies)

    # Built-in methods

    def _builtin(self, call: ast.Call) -> Value | None:
        binding = self.facts.bindings[call]
        assert binding.receiver is not None
        receiver = self.low.expressions.expr(binding.receiver)
        if isinstance(receiver, ir.HeaderRef):
            receiver = self.low.copies.in_place(receiver, call.pos)
        if binding.method == "isValid":
            if not isinstance(receiver, (ir.HeaderRef, UnionValue, HeaderValue)):
                raise self.low.error(call, "isValid() is for headers and header unions")
            return self.low.copies.valid(receiver)
        if binding.method in ("setValid", "setInvalid"):
            if isinstance(receiver, ir.HeaderRef):
                if binding.method == "setValid":
                    self.low.emit(ir.SetValid(receiver, call.pos))
                else:
                    self.low.copies.invalidate(receiver, call.pos)
                return None
        elif binding.method in ("push_front", "pop_front") and isinstance(receiver, StackValue):
            arg = binding.bound[0]
            assert arg is not None
            count = self.low.expressions.constant(arg).value
            self.low.emit(ir.MoveStack(receiver.ref, count if binding.method == "push_front" else -count, call.pos))
            return None
        raise self.low.error(call, f"{binding.method}() is not supported here on this target")
