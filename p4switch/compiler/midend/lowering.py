"""Lowering of the checked tree to code over scalars: the state that its parts share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from p4switch import ir
from p4switch.architectures.architecture import Architecture
from p4switch.architectures.package import Package, Site
from p4switch.compiler import ast, types
from p4switch.compiler.diagnostics import CompileError, Diagnostic
from p4switch.compiler.midend.assign import Assignments
from p4switch.compiler.midend.calls import Calls
from p4switch.compiler.midend.elaborate import Block, Elaboration
from p4switch.compiler.midend.expressions import Expressions
from p4switch.compiler.midend.externs import Externs
from p4switch.compiler.midend.jumps import Jumps
from p4switch.compiler.midend.limits import MAX_STACK
from p4switch.compiler.midend.parsers import Parsers
from p4switch.compiler.midend.statements import Statements
from p4switch.compiler.midend.storage import Storage
from p4switch.compiler.midend.tables import Tables
from p4switch.compiler.midend.values import Frame, Value

MAX_OPERATIONS = 1_000_000
"""Limit of a program's cost of lowering.

The cost is the number of lowered nodes, of created operations, variables, cases and entries, and
of scalars that are visited to pass and assign values. The nodes of a body count once for each
call of it.
"""
_TOP = Site("")


class Lowering:
    """Lowering of one program: the code under construction, the environment, errors, and the parts of the lowering."""

    def __init__(self, program: ast.Program, architecture: Architecture, package: type[Package]) -> None:
        self.source = program
        self.architecture = architecture
        self.facts = program.facts
        self.out = ir.Program()
        self.storage = Storage(self.out)
        self.globals = Frame(None)
        self.frame = self.globals
        self.code = ir.Block()
        self.block: Block | None = None  # the parser or control instance whose body is being lowered
        self.site = _TOP  # site of the package's block that contains `block`
        self.jumps = Jumps()
        self.prefix = ""  # prefix of the names of locals
        self._spent = 0
        self._lowered_now = program.declarations[-1].pos if program.declarations else 0
        self._storable: set[types.Type] = set()
        self.unreached: set[ir.Block] = set()  # blocks that are known to be unreachable
        self.copies = Assignments(self)
        self.expressions = Expressions(self)
        self.instances = Elaboration(self)
        self.calls = Calls(self)
        self.statements = Statements(self)
        self.tables = Tables(self)
        self.externs = Externs(self)
        self.parsers = Parsers(self)
        self.package = package(self)

    # Errors

    def error(self, node: ast.Node | int | None, message: str) -> CompileError:
        """Return the error for an unsupported feature at `node`, at a position, or (None) at the present position."""
        pos = self._lowered_now if node is None else node if isinstance(node, int) else node.pos
        source = self.source.source
        return CompileError([Diagnostic("error", source.locate(pos), message, source.line_at(pos))])

    def work(self, node: ast.Node) -> None:
        """Count a lowered node.

        Raises CompileError like `spend`.
        """
        self._lowered_now = node.pos
        self.spend(1)

    def spend(self, operations: int) -> None:
        """Add to the cost of lowering.

        Raises CompileError, at the present position, if the limit is exceeded.
        """
        self._spent += operations
        if self._spent > MAX_OPERATIONS:
            raise self.error(
                None,
                f"the program becomes too large: with all calls put in place it takes over {MAX_OPERATIONS} operations",
            )

    def storable(self, t: types.Type, node: ast.Node) -> None:
        """Raise CompileError at `node`, a declaration, if the target cannot store variables of type `t`."""
        t = types.strip_newtype(t)
        if t == types.Bits(0):
            raise self.error(node, "a variable or field of no bits is not supported on this target")
        if isinstance(t, types.Stack):
            if isinstance(t.element, (types.Header, types.Union)) and t.size > MAX_STACK:
                raise self.error(node, f"a header stack of {t.size} is more than this target has, at most {MAX_STACK}")
            self.storable(t.element, node)
        elif isinstance(t, (types.Struct, types.Header, types.Union)) and t not in self._storable:
            self._storable.add(t)
            for f in t.fields:
                self.storable(f.type, f.decl)

    def size_of(self, node: ast.Node, size: int, most: int) -> int:
        """Return `size`.

        Raises CompileError unless it is from 1 to `most`.
        """
        if not 0 < size <= most:
            raise self.error(node, f"the size has to be 1 to {most}, not {size}")
        return size

    def error_value(self, name: str) -> ir.Const:
        """Return the value of `error.name`, which core.p4 declares."""
        return ir.Const(self.facts.values[self.source.errors[name]], ir.ENUM_TYPE, name)

    # Types

    def type_of(self, node: ast.Node) -> types.Type:
        return self.resolve(self.facts.types[node])

    def resolve(self, t: types.Type) -> types.Type:
        """Return `t` with type arguments in place of the type parameters of the functions being inlined."""
        frame: Frame | None = self.frame
        while frame is not None:
            if frame.types:
                t = types.substitute(t, frame.types)
            frame = frame.parent
        return t

    # Code

    def emit(self, op: ir.Operation) -> None:
        self.spend(1)
        self.code.ops.append(op)

    def goto(self, target: ir.Block, span: int | None = None) -> None:
        """End the current block with a jump."""
        if self.code.end is None:
            self.code.end = ir.Goto(target, span)
            self.reach_from_here(target)

    def reach_from_here(self, *targets: ir.Block) -> None:
        if self.code not in self.unreached:
            self.unreached.difference_update(targets)

    def branch_on(self, condition: ir.Expr, yes: ir.Block, no: ir.Block, span: int | None = None) -> None:
        """End the current block with a branch."""
        if isinstance(condition, ir.Const):
            taken, other = (yes, no) if condition.value else (no, yes)
            self.unreached.add(other)
            self.goto(taken)
        elif self.code.end is None:
            self.code.end = ir.Branch(condition, yes, no, span)
            self.reach_from_here(yes, no)

    def start(self, block: ir.Block) -> None:
        self.code = block

    def dead(self) -> None:
        """Mark the code that follows as unreachable."""
        self.code = ir.Block()
        self.unreached.add(self.code)

    def temp(self, t: types.Type, name: str = "tmp") -> Value:
        before = len(self.out.scalars) + len(self.out.headers)
        value = self.storage.allocate(t, self.prefix + name)
        self.spend(len(self.out.scalars) + len(self.out.headers) - before)
        return value

    @contextmanager
    def activation(self, frame: Frame) -> Iterator[None]:
        saved, self.frame = self.frame, frame
        try:
            yield
        finally:
            self.frame = saved
