"""Declarations that a class of operations must have, and a tool must read."""

from __future__ import annotations

from dataclasses import dataclass, field
from dataclasses import fields as fields_of
from typing import TYPE_CHECKING, Any

import pytest

from p4switch import ir
from p4switch.bmv2.arguments import Arguments
from p4switch.compiler import ast, types
from p4switch.ir import operations

if TYPE_CHECKING:
    from p4switch.engine.statements import Statements
    from p4switch.testgen.machine import Machine

HEADER = types.Header(ast.HeaderDecl(0, "h_t", [], []), (), [])


def _classes(base: type) -> list[type]:
    direct: list[type] = base.__subclasses__()
    return [cls for each in direct for cls in (each, *_classes(each))]


def test_a_tool_without_a_method_for_an_operation_is_no_class() -> None:
    with pytest.raises(TypeError, match=r"class Tool has no .*move_stack"):

        class Tool(ir.OperationVisitor[None]):
            def assign(self, op: ir.Assign) -> None: ...


def test_a_tool_without_a_method_for_a_terminator_is_no_class() -> None:
    with pytest.raises(TypeError, match=r"class Tool has no .*select"):

        class Tool(ir.TerminatorVisitor[None]):
            def goto(self, end: ir.Goto) -> None: ...


def test_each_operation_of_p4_has_a_method_in_the_visitor() -> None:
    """A composite operation, which a pass expands, shares one method with all others."""
    composite = operations.CompositeOperation
    others = {ir.ExternOperation, composite, *_classes(composite)}
    of_p4 = {cls for cls in _classes(ir.Operation) if cls.__module__ == operations.__name__} - others
    own = [cls for cls in of_p4 if issubclass(cls, ir.Operation)]
    composites = [cls for cls in _classes(composite) if issubclass(cls, composite)]
    required = [name for name, method in vars(ir.OperationVisitor).items() if hasattr(method, "__isabstractmethod__")]
    attributes = {**dict.fromkeys(required), "__getattribute__": lambda self, name: lambda op: name}
    names: Any = type("Names", (ir.OperationVisitor,), attributes)()
    methods = [cls.__new__(cls).accept(names) for cls in own]
    assert len(set(methods)) == len(own) == 11
    assert {cls.__new__(cls).accept(names) for cls in composites} == {"composite"}
    assert {*methods, "composite"} <= set(dir(ir.OperationVisitor))


METHODS = {"run": lambda self, machine: None, "emit": lambda self, to: None}


@pytest.mark.parametrize("lacks", METHODS)
def test_an_operation_of_an_extern_without_a_declaration_is_no_class(lacks: str) -> None:
    declared = {**METHODS, "primitive": "nothing", "effects": ir.NOTHING}
    type("Whole", (ir.ExternOperation,), declared)
    with pytest.raises(TypeError, match=f"class Part has no {lacks}$"):
        type("Part", (ir.ExternOperation,), {k: v for k, v in declared.items() if k != lacks})


@pytest.mark.parametrize("lacks", ["primitive", "effects"])
def test_an_operation_of_an_extern_without_a_constant_is_no_class(lacks: str) -> None:
    constants = {k: v for k, v in (("primitive", "nothing"), ("effects", ir.NOTHING)) if k != lacks}
    with pytest.raises(TypeError, match=f"class Part has no {lacks}"):
        type("Part", (ir.ExternOperation,), METHODS | constants)


def test_an_attribute_without_a_role_is_an_error() -> None:
    with pytest.raises(TypeError, match=r"class Part has no role for index, size$"):

        @dataclass(slots=True)
        class Part(ir.ExternOperation):
            target: ir.Place = field(metadata=ir.WRITTEN)
            index: ir.Expr
            size: int
            span: int | None = None
            primitive = "part"
            effects = ir.NOTHING
            def run(self, machine: Machine) -> None: ...

            def emit(self, to: Statements) -> None: ...


@dataclass(slots=True, eq=False)
class Every(ir.ExternOperation):
    """An operation with one attribute for each role that operations of externs have."""

    name: str = field(metadata=ir.named("counter_array"))
    index: ir.Expr = field(metadata=ir.READ)
    values: list[ir.Expr] = field(metadata=ir.READ_ALL)
    written: ir.Place = field(metadata=ir.WRITTEN)
    changed: ir.Place = field(metadata=ir.CHANGED)
    calculation: ir.Calculation = field(metadata=ir.CALCULATION)
    number: int = field(metadata=ir.number(ir.INT))
    pair: tuple[int, int] = field(metadata=ir.numbers(ir.INT, 2))
    span: int | None = None
    primitive = "every"
    effects = ir.NOTHING

    def run(self, machine: Machine) -> None: ...

    def emit(self, to: Statements) -> None: ...


def test_roles_say_what_an_operation_reads_writes_and_takes() -> None:
    a, b, c, d, e, f = (ir.FieldRef("h", name, ir.Bits(8)) for name in "abcdef")
    calculation = ir.Calculation("sum", "csum16", [f])
    op = Every("counts", a, [b, c], d, e, calculation, 7, (8, 9), span=5)
    assert op.reads == (a, b, c, e, f)
    assert op.writes == (d, e)
    name, *fields, named, seven, eight, nine = op.arguments
    assert isinstance(name, ir.Named)
    assert isinstance(named, ir.Named)
    assert (name.kind, name.value, named.kind, named.value) == ("counter_array", "counts", "calculation", "sum")
    assert fields == [a, [b, c], d, e]
    assert [number.value for number in (seven, eight, nine) if isinstance(number, ir.Const)] == [7, 8, 9]
    again = Every.read(Arguments("every", op.arguments, {"sum": calculation}, 5))
    assert isinstance(again, Every)
    assert [getattr(again, field.name) for field in fields_of(again)] == [
        getattr(op, field.name) for field in fields_of(op)
    ]


def test_the_roles_of_p4s_own_operations() -> None:
    header, other = (ir.HeaderRef(HEADER, name) for name in ("h", "g"))
    count = ir.Const(8, ir.INT)
    assert ir.Extract(header, None).reads == ()
    assert ir.Extract(header, count).reads == (count,)
    assert ir.SetValid(header).reads == ()
    assert [written.header for written in ir.SetValid(header).writes if isinstance(written, ir.Valid)] == [header]
    gone = ir.Invalidate(header, [other])
    assert [written.header for written in gone.writes if isinstance(written, ir.Valid)] == [header, other]
    assert gone.arguments == [header, other]
    place = ir.FieldRef("h", "f", ir.Bits(8))
    filled = ir.FillHeader(header, [(place, count)])
    assert (filled.reads, filled.writes, filled.arguments) == ((count,), (header,), [header, [count]])


def test_an_assignment_reads_its_source_and_writes_its_target() -> None:
    place, value = ir.FieldRef("h", "f", ir.Bits(8)), ir.Const(1, ir.Bits(8))
    op = ir.Assign(place, value)
    assert (op.reads, op.writes, op.effects) == ((value,), (place,), ir.NOTHING)
