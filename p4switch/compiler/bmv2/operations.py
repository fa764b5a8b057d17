"""Conversion of operations, actions and deparsers to BMv2's form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from p4switch import ir
from p4switch.bmv2.arguments import Arguments
from p4switch.bmv2.expressions import as_bool
from p4switch.bmv2.flat import Jump, blocks, flat
from p4switch.compiler.bmv2.expressions import Expressions
from p4switch.compiler.bmv2.source import Source
from p4switch.compiler.diagnostics import UnsupportedError


class Operations(ir.OperationVisitor[ir.Operation]):
    """Converter of operations to BMv2's form."""

    def __init__(self, x: Expressions, calculations: Mapping[str, ir.Calculation], source: Source) -> None:
        self._x = x
        self._calculations = calculations
        self._source = source

    def made(self, ops: Sequence[ir.Operation]) -> list[ir.Operation]:
        """Return the converted operations. Raises CompileError at the first operation that cannot be converted."""
        return [self._made(op) for op in ops]

    def _made(self, op: ir.Operation) -> ir.Operation:
        try:
            return op.accept(self)
        except UnsupportedError as error:
            raise self._source.error(error, op.span) from None

    def body(self, start: ir.Block) -> ir.Block:
        """Convert the blocks of an action or a deparser, and return the first block."""
        items = flat(start)
        for i, item in enumerate(items):
            if not isinstance(item, Jump):
                items[i] = self._made(item)
            elif item.condition is not None:
                with self._source.at(item.span):
                    item.condition = as_bool(self._x.argument(item.condition))
        return blocks(items)

    def assign(self, op: ir.Assign) -> ir.Operation:
        return ir.Assign(self._x.target(op.dst), self._x.argument(op.src), op.span)

    def set_valid(self, op: ir.SetValid) -> ir.Operation:
        return ir.SetValid(self._x.header(op.header), op.span)

    def set_invalid(self, op: ir.SetInvalid) -> ir.Operation:
        return ir.SetInvalid(self._x.header(op.header), op.span)

    def copy_header(self, op: ir.CopyHeader) -> ir.Operation:
        return ir.CopyHeader(self._x.header(op.dst), self._x.header(op.src), op.span)

    def copy_union(self, op: ir.CopyUnion) -> ir.Operation:
        return ir.CopyUnion(self._x.union(op.dst), self._x.union(op.src), op.span)

    def copy_stack(self, op: ir.CopyStack) -> ir.Operation:
        return ir.CopyStack(self._x.stack(op.dst), self._x.stack(op.src), op.span)

    def move_stack(self, op: ir.MoveStack) -> ir.Operation:
        return ir.MoveStack(self._x.stack(op.stack), op.by, op.span)

    def exit(self, op: ir.Exit) -> ir.Operation:
        return op

    def extract(self, op: ir.Extract) -> ir.Operation:
        length = None if op.length is None else self._x.value(op.length)
        return ir.Extract(self._x.extracted(op.header), length, op.span)

    def advance(self, op: ir.Advance) -> ir.Operation:
        return ir.Advance(self._x.argument(op.bits), op.span)

    def verify(self, op: ir.Verify) -> ir.Operation:
        return ir.Verify(self._x.value(op.condition), self._x.value(op.error), op.span)

    def extern(self, op: ir.ExternOperation) -> ir.Operation:
        given = [self._argument(argument) for argument in op.arguments]
        return op.read(Arguments(op.primitive, given, self._calculations, op.span))

    def _argument(self, arg: ir.Argument) -> ir.Argument:
        if isinstance(arg, ir.HeaderRef):
            return self._x.header(arg)
        if isinstance(arg, ir.UnionRef):
            return self._x.union(arg)
        if isinstance(arg, ir.StackRef):
            return self._x.stack(arg)
        if isinstance(arg, ir.Named):
            return arg
        if isinstance(arg, list):
            return [self._x.argument(a) for a in arg]
        return self._x.argument(arg)
