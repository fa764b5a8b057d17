"""Search for operations whose results are never read. A pipeline without tracing may omit them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from p4switch import ir
from p4switch.ir.graph import code, tables
from p4switch.ir.visitor import ExpressionVisitor

_Name = tuple[str, str]  # instance and name of a metadata field


class _Mentioned(ExpressionVisitor[None]):
    """Visitor that collects the fields of instances in expressions. Fields of stacks belong to packet headers."""

    def __init__(self) -> None:
        self.fields: set[_Name] = set()

    def field(self, expr: ir.FieldRef) -> None:
        self.fields.add((expr.header, expr.name))

    def op(self, expr: ir.Op) -> None:
        for arg in expr.args:
            arg.accept(self)

    def elem_field(self, expr: ir.ElemField) -> None:
        expr.index.accept(self)

    def valid(self, expr: ir.Valid) -> None:
        if expr.header.index is not None:
            expr.header.index.accept(self)

    def _nothing(self, expr: ir.Expr) -> None:
        """Ignore an expression without fields of instances."""

    const = last_field = param = lookahead = last_index = _nothing


def unread(program: ir.Program, kept: Collection[_Name]) -> set[ir.Operation]:
    """Return the operations that have no effects and only write metadata fields that are never read.

    `kept` are fields that are read from outside of the program. `program` is for a target.
    """
    metadata = {instance.name for instance in program.headers if instance.metadata}
    operations = [op for block in code(program) for op in block.ops]
    waiting: dict[_Name, list[ir.Operation]] = {}  # operations not yet known to be read, by the field that they write
    written: dict[ir.Operation, list[_Name]] = {}
    needed: list[ir.Operation] = []
    for op in operations:
        places = [(w.header, w.name) for w in op.writes if isinstance(w, ir.FieldRef) and w.header in metadata]
        if places and len(places) == len(op.writes) and not op.effects and not _fails(op):
            written[op] = places
        else:
            needed.append(op)
    for op, places in written.items():
        for place in places:
            waiting.setdefault(place, []).append(op)
    fields = {*kept, *_fields(_outside(program), metadata)}
    while fields or needed:
        for op in needed:
            written.pop(op, None)
            fields |= _fields((*op.reads, *_indices(op.writes)), metadata)
        needed = [op for name in fields for op in waiting.pop(name, ())]
        fields = set()
    return set(written)


def _fails(op: ir.Operation) -> bool:
    """Return whether an operation without effect may still end a parser, because the packet is too short."""
    return isinstance(op, ir.Assign) and isinstance(op.src, ir.Lookahead)


def _indices(written: Iterable[ir.Written]) -> Iterator[ir.Expr]:
    """Yield the indices of written stack elements, because these are read."""
    for each in written:
        place = each.header if isinstance(each, ir.Valid) else each
        if isinstance(place, (ir.ElemField, ir.HeaderRef)) and place.index is not None:
            yield place.index


def _fields(read: Iterable[ir.Read], metadata: Collection[str]) -> set[_Name]:
    """Return the fields of metadata that `read` contains."""
    mentioned = _Mentioned()
    for each in read:
        if isinstance(each, ir.HeaderRef):
            mentioned.fields |= {(each.name, f.name) for f in each.type.fields}
            if each.index is not None:
                each.index.accept(mentioned)
        elif not isinstance(each, (ir.UnionRef, ir.StackRef)):
            each.accept(mentioned)
    return {name for name in mentioned.fields if name[0] in metadata}


def _outside(program: ir.Program) -> Iterator[ir.Read]:
    """Yield the expressions that are read outside of operations."""
    for block in code(program):
        if isinstance(block.end, ir.Branch):
            yield block.end.condition
        elif isinstance(block.end, ir.Select):
            yield from block.end.keys
    for table in tables(program):
        yield from (key.target for key in table.keys)
    for calculation in program.calculations:
        yield from calculation.inputs
    for profile in program.profiles:
        yield from profile.inputs
    for checksum in program.checksums:
        yield from (checksum.target, checksum.condition)
    for each in (*program.field_lists, *program.learn_lists):
        yield from each.elements
    yield from (meter.result for meter in program.meters if meter.result is not None)
