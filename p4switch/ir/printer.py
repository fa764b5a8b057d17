"""Text form of a program, which is similar to P4, and stable, so that programs can be compared.

    ingress
      b0:
        hdr.ipv4.ttl = (hdr.ipv4.ttl - 8w1)
        if (hdr.ipv4.isValid()) b1 else b2

A block without a name is called `b` and its number in the order of traversal. A block without a successor is followed
by `end`, or by `accept` in a parser.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from p4switch.compiler.types import Bits, Bool
from p4switch.ir import expressions as ex
from p4switch.ir import operations as ops
from p4switch.ir import program as pr
from p4switch.ir.graph import actions, reverse_postorder, tables
from p4switch.ir.operands import Argument, Named
from p4switch.ir.visitor import ExpressionVisitor, OperationVisitor

_PREFIX = {"neg": "-"}


class _Expressions(ExpressionVisitor[str]):
    def const(self, expr: ex.Const) -> str:
        if expr.member:
            return expr.member
        if isinstance(expr.type, Bool):
            return "true" if expr.value else "false"
        if isinstance(expr.type, Bits):
            return f"{expr.type.width}{'s' if expr.type.signed else 'w'}{expr.value}"
        return str(expr.value)

    def field(self, expr: ex.FieldRef) -> str:
        return f"{expr.header}.{expr.name}"

    def last_field(self, expr: ex.LastField) -> str:
        return ".".join(filter(None, (f"{expr.stack}.last", expr.member, expr.name)))

    def elem_field(self, expr: ex.ElemField) -> str:
        return ".".join(filter(None, (f"{expr.stack}[{text(expr.index)}]", expr.member, expr.name)))

    def param(self, expr: ex.Param) -> str:
        return f"data{expr.index}"

    def op(self, expr: ex.Op) -> str:
        args = [text(a) for a in expr.args]
        if expr.op == "cast":
            return f"({expr.type})({args[0]})"
        if expr.op == "slice":
            return f"{args[0]}[{args[1]}:{args[2]}]"
        if expr.op == "?:":
            return f"({args[0]} ? {args[1]} : {args[2]})"
        if len(args) == 1:
            return f"{_PREFIX.get(expr.op, expr.op)}{args[0]}"
        return f"({args[0]} {expr.op} {args[1]})"

    def valid(self, expr: ex.Valid) -> str:
        return f"{text(expr.header)}.isValid()"

    def lookahead(self, expr: ex.Lookahead) -> str:
        return f"lookahead({expr.offset}, {expr.width})"

    def last_index(self, expr: ex.LastIndex) -> str:
        return f"{expr.stack}.lastIndex"


_EXPRESSIONS = _Expressions()


def text(node: ex.Expr | ex.Reference) -> str:
    """Return the text of an expression, or of a reference."""
    if isinstance(node, ex.HeaderRef):
        if not node.stack:
            return node.name
        element = f".{node.where}" if node.index is None else f"[{text(node.index)}]"
        return f"{node.stack}{element}{'.' if node.member else ''}{node.member}"
    if isinstance(node, (ex.UnionRef, ex.StackRef)):
        return node.name
    return node.accept(_EXPRESSIONS)


def _argument(arg: Argument) -> str:
    if isinstance(arg, Named):
        return repr(arg.value) if arg.kind == "string" else arg.value
    return f"[{', '.join(map(text, arg))}]" if isinstance(arg, list) else text(arg)


class _Operations(OperationVisitor[str]):
    def assign(self, op: ops.Assign | ops.CopyHeader | ops.CopyUnion | ops.CopyStack) -> str:
        return f"{text(op.dst)} = {text(op.src)}"

    copy_header = copy_union = copy_stack = assign

    def set_valid(self, op: ops.SetValid) -> str:
        return f"{text(op.header)}.setValid()"

    def set_invalid(self, op: ops.SetInvalid) -> str:
        return f"{text(op.header)}.setInvalid()"

    def move_stack(self, op: ops.MoveStack) -> str:
        return f"{text(op.stack)}.{'push' if op.by >= 0 else 'pop'}_front({abs(op.by)})"

    def exit(self, op: ops.Exit) -> str:
        return "exit"

    def extract(self, op: ops.Extract) -> str:
        return f"extract({text(op.header)}{'' if op.length is None else f', {text(op.length)}'})"

    def advance(self, op: ops.Advance) -> str:
        return f"advance({text(op.bits)})"

    def verify(self, op: ops.Verify) -> str:
        return f"verify({text(op.condition)}, {text(op.error)})"

    def extern(self, op: ops.ExternOperation) -> str:
        return f"{op.primitive}({', '.join(map(_argument, op.arguments))})"

    def composite(self, op: ops.CompositeOperation) -> str:
        return f"{op.name}({', '.join(map(_argument, op.arguments))})"


_OPERATIONS = _Operations()


def operation(op: ops.Operation) -> str:
    """Return the text of an operation. An extern's operation has the name and arguments of its BMv2 primitive."""
    return op.accept(_OPERATIONS)


def _case(case: list[tuple[int, int | None]] | str) -> str:
    if isinstance(case, str):
        return f"in {case}"
    return ", ".join(f"{value:#x}" if mask is None else f"{value:#x} &&& {mask:#x}" for value, mask in case)


class _Graph:
    """Printer of the code from `start` on; `end` is the name of the last block's successor."""

    def __init__(self, start: pr.Block, end: str) -> None:
        self._end = end
        self._order = reverse_postorder(start)
        self._names: dict[pr.Block, str] = {}
        taken: set[str] = set()
        for i, block in enumerate(self._order):
            name = block.name or f"b{i}"
            while name in taken:
                name += "'"
            taken.add(name)
            self._names[block] = name

    def lines(self) -> Iterator[str]:
        for block in self._order:
            yield f"{self._names[block]}:"
            yield from (f"  {operation(op)}" for op in block.ops)
            yield from (f"  {line}" for line in self._terminator(block.end))

    def _name(self, block: pr.Block | None) -> str:
        return self._end if block is None else self._names[block]

    def _terminator(self, end: pr.Terminator | None) -> Iterator[str]:
        if end is None:
            yield self._end
        elif isinstance(end, pr.Goto):
            yield f"goto {self._name(end.target)}"
        elif isinstance(end, pr.Branch):
            yield f"if {text(end.condition)}: {self._name(end.if_true)} else {self._name(end.if_false)}"
        elif isinstance(end, pr.Apply):
            yield f"apply {end.table.name}"
            for label, target in end.on.items():
                shown = ("hit" if label else "miss") if isinstance(label, bool) else end.table.actions[label].name
                yield f"  {shown}: {self._name(target)}"
            yield f"  default: {self._name(end.default)}"
        else:
            yield f"select {', '.join(map(text, end.keys))}"
            yield from (f"  {_case(case)}: {self._name(then)}" for case, then in end.cases)


def _call(call: pr.ActionCall) -> str:
    return f"{call.action.name}({', '.join(map(str, call.args))})"


def _key_value(value: pr.KeyValue) -> str:
    return "_" if value is None else "/".join(f"{v:#x}" for v in (value if isinstance(value, tuple) else (value,)))


def _table(table: pr.Table) -> Iterator[str]:
    yield f"table {table.name}"
    for key in table.keys:
        masked = "" if key.mask is None else f" & {key.mask:#x}"
        yield f"  key {text(key.target)}{masked}: {key.match_kind} {key.name!r}"
    for action in table.actions:
        yield f"  action {action.name}"
    if table.default is not None:
        yield f"  default {'const ' if table.default_const else ''}{_call(table.default)}"
    for entry in table.entries or ():
        keys = ", ".join(map(_key_value, entry.keys))
        yield f"  entry {'const ' if entry.const else ''}{entry.priority}: {keys} -> {_call(entry.call)}"
    yield f"  size {table.size}"
    if table.profile is not None:
        inputs = ", ".join(map(text, table.profile.inputs))
        yield f"  profile {table.profile.name} size {table.profile.size} {table.profile.algorithm}({inputs})"
    for name, what in (("counter", table.counter), ("meter", table.meter)):
        if what:
            yield f"  {name} {what}"
    if table.entry is not None:
        yield f"  entry {text(table.entry)} of {', '.join(table.direct)}"
    if table.support_timeout:
        yield "  times out"


def _action(action: pr.Action) -> Iterator[str]:
    params = ", ".join(f"{t} {name}" for name, t in action.params)
    yield f"action {action.name}({params})"
    yield from (f"  {line}" for line in _Graph(action.body, "end").lines())


def _section(title: str, lines: Sequence[str]) -> Iterator[str]:
    if lines:
        yield title
        yield from (f"  {line}" for line in lines)
        yield ""


def _storage(program: pr.Program) -> Iterator[str]:
    for t in dict.fromkeys(instance.type for instance in program.headers):
        yield from _section(f"type {t}", [f"{f.type} {f.name}" for f in t.fields])
    headers = [f"{h.type} {h.name}" for h in program.headers]
    headers += [f"{ref.element}[{ref.size}] {ref.name} = {', '.join(names)}" for ref, names in program.stacks]
    headers += [f"{ref.type} {ref.name} = {', '.join(names)}" for ref, names in program.unions]
    yield from _section("headers", headers)
    variables = [f"{t} scalars.{name}" for name, t in program.scalars.items()]
    yield from _section("variables", variables + [f"varbit<{w}> {name}.field" for name, w in program.varbits.items()])


def _objects(program: pr.Program) -> Iterator[str]:
    lines = [f"counter {c.name} size {c.size}{f' of {c.table}' if c.table else ''}" for c in program.counters]
    for meter in program.meters:
        of = f" of {meter.table}, result {text(meter.result)}" if meter.result is not None else ""
        lines.append(f"meter {meter.name} size {meter.size} {meter.unit}{of}")
    lines += [f"register {r.name} size {r.size} width {r.width}" for r in program.registers]
    lines += [f"value set {v.name} size {v.size} width {v.width}" for v in program.value_sets]
    for c in program.calculations:
        lines.append(f"calculation {c.name} {c.algorithm}({', '.join(map(text, c.inputs))})")
    for kind, lists in (("field list", program.field_lists), ("learn list", program.learn_lists)):
        for i, each in enumerate(lists, start=1):
            lines.append(f"{kind} {i} {each.name}({', '.join(map(text, each.elements))})")
    yield from _section("objects", lines)


def _checksum(checksum: pr.Checksum) -> str:
    calculation = checksum.calculation
    inputs = ", ".join([*map(text, calculation.inputs), *(["payload"] if calculation.with_payload else [])])
    return f"{text(checksum.target)} = {calculation.algorithm}({inputs}) if {text(checksum.condition)}"


def _deparser_body(start: pr.Block) -> list[str]:
    return [operation(op) for op in start.ops] if start.end is None else list(_Graph(start, "emit").lines())


def print_program(program: pr.Program) -> str:
    """Return the text of the whole program."""
    lines = [*_storage(program), *_objects(program)]
    for parser in program.parsers:
        lines += _section(parser.name, list(_Graph(parser.start, "accept").lines()))
    for title, verify in (("verify checksums", True), ("update checksums", False)):
        lines += _section(title, [_checksum(c) for c in program.checksums if c.verify == verify])
    for pipeline in program.pipelines:
        lines += _section(pipeline.name, list(_Graph(pipeline.start, "end").lines()))
    for deparser in program.deparsers:
        lines += _section(deparser.name, [*_deparser_body(deparser.body), *(f"emit {text(h)}" for h in deparser.order)])
    for block in (*map(_table, tables(program)), *map(_action, actions(program))):
        lines += [*block, ""]
    return "\n".join(lines)
