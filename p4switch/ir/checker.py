"""Checker of the invariants that a program satisfies between two passes. A violation is an error in a pass."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from p4switch.bits.domain import fits, width
from p4switch.bits.operators import ARITHMETIC, COMPARISONS, SATURATING, SHIFTS
from p4switch.compiler.midend.storage import SCALARS, flat_fields
from p4switch.compiler.types import BOOL, INT, Bits, Bool, Type, Varbit
from p4switch.ir import expressions as ex
from p4switch.ir import operations as ops
from p4switch.ir import program as pr
from p4switch.ir.graph import actions, reverse_postorder, tables
from p4switch.ir.operands import Named, Read
from p4switch.ir.printer import operation, text
from p4switch.ir.visitor import ExpressionVisitor, OperationVisitor

REFERENCES = (ex.HeaderRef, ex.UnionRef, ex.StackRef)


class CheckError(AssertionError):
    """Violation of an invariant of a program, and its place."""


def check(program: pr.Program, gone: Collection[type[ops.Operation]] = (), *, widths: bool = True) -> None:
    """Raise CheckError for a program with dangling references or with types that do not agree.

    `gone` are the operations that passes have replaced. Without `widths`, all number types agree, as in a program for a
    target.
    """
    _Checker(program, gone, widths).run()


class _Checker:
    def __init__(self, program: pr.Program, gone: Collection[type[ops.Operation]], widths: bool) -> None:
        self._program = program
        self.widths = widths
        self.gone = gone
        self.stacks = {ref.name: (ref, names) for ref, names in program.stacks}
        self.unions = {ref.name for ref, _ in program.unions}
        self.headers = {h.name for h in program.headers}
        self._fields: dict[tuple[str, str], Type] = {
            **{(h.name, name): t for h in program.headers for name, t in flat_fields(h.type)},
            **{(SCALARS, name): t for name, t in program.scalars.items()},
            **{(name, "field"): Varbit(bits) for name, bits in program.varbits.items()},
            **{(m.name, name): t for m in program.metadata for name, t in m.fields},
        }
        self.objects = {
            "register_array": {r.name for r in program.registers},
            "extern": {extern.name for extern in program.externs},
            "counter_array": {c.name for c in program.counters},
            "meter_array": {m.name for m in program.meters},
            "calculation": {c.name for c in program.calculations},
        }
        self.params: Sequence[tuple[str, Type]] = ()
        self.in_parser = False
        self.where = ""
        self._expressions = _Expressions(self)
        self._operations = _Operations(self)

    def fail(self, message: str) -> CheckError:
        return CheckError(f"{self.where}: {message}")

    def run(self) -> None:
        self.in_parser = True
        for parser in self._program.parsers:
            self.where = parser.name
            self._code(parser.start)
        self.in_parser = False
        for pipeline in self._program.pipelines:
            self.where = pipeline.name
            self._code(pipeline.start)
        for action in actions(self._program):
            self.where, self.params = f"action {action.name}", action.params
            self._code(action.body)
        self.params = ()
        for table in tables(self._program):
            self.where = f"table {table.name}"
            self._table(table)
        for deparser in self._program.deparsers:
            self.where = deparser.name
            self._code(deparser.body)
            for header in deparser.order:
                self.reference(header)
        self.where = "checksums"
        for checksum in self._program.checksums:
            self.boolean(checksum.condition)
            self.type_of(checksum.target)
            self.read(checksum.calculation.inputs)
        self.where = "field lists"
        for each in (*self._program.field_lists, *self._program.learn_lists):
            self.read(each.elements)

    def _code(self, start: pr.Block) -> None:
        known = set(reverse_postorder(start))
        for block in known:
            for op in block.ops:
                op.accept(self._operations)
            end = block.end
            if isinstance(end, pr.Branch):
                self.boolean(end.condition)
            elif isinstance(end, pr.Select):
                self._select(end)
            elif isinstance(end, pr.Apply):
                for label in end.on:
                    if not isinstance(label, bool) and not 0 <= label < len(end.table.actions):
                        raise self.fail(f"table {end.table.name} has no action {label}")
                if len({isinstance(label, bool) for label in end.on}) > 1:
                    raise self.fail(f"table {end.table.name} chooses the next node both by hit and by action")

    def _select(self, end: pr.Select) -> None:
        self.read(end.keys)
        if len(end.spans) not in (0, len(end.cases)):
            raise self.fail(f"a select has {len(end.cases)} cases and {len(end.spans)} places of them")
        for case, _ in end.cases:
            if isinstance(case, str):
                if all(case != v.name for v in self._program.value_sets):
                    raise self.fail(f"there is no value set {case}")
            elif len(case) != len(end.keys) and (case or self.widths):
                raise self.fail(f"a case has {len(case)} values for {len(end.keys)} keys")

    def _table(self, table: pr.Table) -> None:
        self.read(key.target for key in table.keys)
        if table.entry is not None:
            self.type_of(table.entry)
        for name in table.direct:
            if not any(name in self.objects[kind] for kind in ("register_array", "extern")):
                raise self.fail(f"there is no object {name} for its entries")
        calls = [entry.call for entry in table.entries or ()]
        for call in [*calls, *([] if table.default is None else [table.default])]:
            if len(call.args) != len(call.action.params):
                raise self.fail(f"{call.action.name} takes {len(call.action.params)} values, not {len(call.args)}")
            if call.action not in table.actions:
                raise self.fail(f"{call.action.name} is none of its actions")
        for entry in table.entries or ():
            if len(entry.keys) != len(table.keys):
                raise self.fail(f"an entry has {len(entry.keys)} values for {len(table.keys)} keys")

    # Expressions and references

    def agree(self, a: Type, b: Type) -> bool:
        """Return whether a value of one type can be used as a value of the other.

        Varbits may differ in their maximum width.
        """
        numbers = not self.widths and all(isinstance(t, Bits) or t == INT for t in (a, b))
        return a == b or numbers or (isinstance(a, Varbit) and isinstance(b, Varbit))

    def field(self, header: str, name: str) -> Type:
        declared = self._fields.get((header, name))
        if declared is None:
            raise self.fail(f"there is no field {header}.{name}")
        return declared

    def type_of(self, expr: ex.Expr) -> Type:
        """Check `expr` and return its type."""
        expr.accept(self._expressions)
        return expr.type

    def boolean(self, expr: ex.Expr) -> None:
        if self.type_of(expr) != BOOL:
            raise self.fail(f"{text(expr)} is of type {expr.type}: expected a bool")

    def read(self, nodes: Iterable[Read]) -> None:
        for node in nodes:
            if isinstance(node, REFERENCES):
                self.reference(node)
            else:
                self.type_of(node)

    def reference(self, ref: ex.Reference) -> None:
        if isinstance(ref, ex.UnionRef):
            there = ref.name in self.unions
        elif isinstance(ref, ex.StackRef):
            there = ref.name in self.stacks
        elif ref.stack:
            there = ref.stack in self.stacks
            if ref.where and not self.in_parser:
                raise self.fail(f"{text(ref)} is used outside of a parser")
            if ref.index is not None:
                self.type_of(ref.index)
        else:
            there = ref.name in self.headers
        if not there:
            raise self.fail(f"there is no {text(ref)}")

    def headers_of(self, stack: str, member: str) -> Iterator[str]:
        if stack not in self.stacks:
            raise self.fail(f"there is no stack {stack}")
        yield from (f"{name}.{member}" if member else name for name in self.stacks[stack][1])


class _Expressions(ExpressionVisitor[None]):
    def __init__(self, checker: _Checker) -> None:
        self._checker = checker

    def const(self, expr: ex.Const) -> None:
        if isinstance(expr.type, Bits) and self._checker.widths and not fits(expr.value, expr.type):
            raise self._checker.fail(f"{expr.value} is no value of type {expr.type}")
        if isinstance(expr.type, Bool) and expr.value not in (0, 1):
            raise self._checker.fail(f"{expr.value} is no bool")

    def field(self, expr: ex.FieldRef) -> None:
        self._is(expr, self._checker.field(expr.header, expr.name))

    def last_field(self, expr: ex.LastField) -> None:
        for header in self._checker.headers_of(expr.stack, expr.member):
            self._is(expr, self._checker.field(header, expr.name))

    def elem_field(self, expr: ex.ElemField) -> None:
        self._checker.type_of(expr.index)
        for header in self._checker.headers_of(expr.stack, expr.member):
            self._is(expr, self._checker.field(header, expr.name))

    def _is(self, expr: ex.Expr, t: Type) -> None:
        if expr.type != t:
            raise self._checker.fail(f"{text(expr)} is of type {t}, not {expr.type}")

    def param(self, expr: ex.Param) -> None:
        if not 0 <= expr.index < len(self._checker.params):
            raise self._checker.fail(f"there is no parameter {expr.index}")
        self._is(expr, self._checker.params[expr.index][1])

    def valid(self, expr: ex.Valid) -> None:
        self._checker.reference(expr.header)

    def lookahead(self, expr: ex.Lookahead) -> None:
        if not self._checker.in_parser:
            raise self._checker.fail(f"{text(expr)} is read outside of a parser")

    def last_index(self, expr: ex.LastIndex) -> None:
        list(self._checker.headers_of(expr.stack, ""))

    def op(self, expr: ex.Op) -> None:
        kinds = [self._checker.type_of(a) for a in expr.args]
        if not self._fits(expr, kinds):
            shown = ", ".join(map(str, kinds))
            raise self._checker.fail(f"{text(expr)} of type {expr.type} has operands of types {shown}")

    def _fits(self, expr: ex.Op, kinds: list[Type]) -> bool:
        op, t, agree = expr.op, expr.type, self._checker.agree
        if op in ("&&", "||", "!"):
            return t == BOOL and all(k == BOOL for k in kinds)
        if op in COMPARISONS:
            return t == BOOL and agree(*kinds)
        if op in ARITHMETIC | SATURATING:
            return all(agree(k, t) for k in kinds)
        if op in SHIFTS or op in ("neg", "~"):
            return agree(kinds[0], t)
        if op == "?:":
            return kinds[0] == BOOL and all(agree(k, t) for k in kinds[1:])
        if op == "++":
            return width(t) == sum(map(width, kinds))
        if op == "slice":
            high, low = expr.args[1:]
            if not isinstance(high, ex.Const) or not isinstance(low, ex.Const):
                return False
            return low.value <= high.value < width(kinds[0]) and width(t) == high.value - low.value + 1
        return op in ("cast", "saturate")


class _Operations(OperationVisitor[None]):
    def __init__(self, checker: _Checker) -> None:
        self._checker = checker

    def _declared(self, op: ops.Operation) -> None:
        self._checker.read(op.reads)
        self._checker.read(op.writes)

    def assign(self, op: ops.Assign) -> None:
        self._declared(op)
        if not self._checker.agree(op.dst.type, op.src.type):
            raise self._checker.fail(f"{operation(op)}: a value of type {op.src.type} for one of type {op.dst.type}")

    set_valid = set_invalid = copy_union = move_stack = _declared

    def copy_header(self, op: ops.CopyHeader) -> None:
        self._declared(op)
        if op.dst.type != op.src.type:
            raise self._checker.fail(f"{operation(op)}: a header of type {op.src.type} for one of {op.dst.type}")

    def copy_stack(self, op: ops.CopyStack) -> None:
        self._declared(op)
        if (op.dst.element, op.dst.size) != (op.src.element, op.src.size):
            raise self._checker.fail(f"{operation(op)}: the stacks are of different types")

    def exit(self, op: ops.Exit) -> None:
        if self._checker.in_parser:
            raise self._checker.fail("exit in a parser")

    def verify(self, op: ops.Verify) -> None:
        self._only_in_parsers(op)
        self._checker.boolean(op.condition)

    def _only_in_parsers(self, op: ops.Operation) -> None:
        if not self._checker.in_parser:
            raise self._checker.fail(f"{operation(op)} outside of a parser")
        self._declared(op)

    extract = advance = _only_in_parsers

    def composite(self, op: ops.CompositeOperation) -> None:
        self._declared(op)
        if type(op) in self._checker.gone:
            raise self._checker.fail(f"{operation(op)}: a pass before has spelled these out")

    def extern(self, op: ops.ExternOperation) -> None:
        self._declared(op)
        for arg in op.arguments:
            if isinstance(arg, Named) and arg.value not in self._checker.objects.get(arg.kind, (arg.value,)):
                raise self._checker.fail(f"{operation(op)}: there is no {arg.value}")
