"""Required declarations of a class of operations, and of a tool that reads them."""


import pytest

from p4switch import ir
from p4switch.ir import operations


def _classes(base: type) -> list[type]:
    return [cls for direct in base.__subclasses__() for cls in (direct, *_classes(direct))]


def test_a_tool_without_a_method_for_an_operation_is_no_class() -> None:
    with pytest.raises(TypeError, match=r"class Tool has no .*move_stack"):

        class Tool(ir.OperationVisitor[None]):
            def assign(self, op: ir.Assign) -> None: ...


def test_each_operation_of_p4_has_a_method_in_the_visitor() -> None:
    """A composite operation, which a pass spells out, is of one method with all others."""
    composite = operations.CompositeOperation
    others = {ir.ExternOperation, composite, *_classes(composite)}
    own = {cls for cls in _classes(ir.Operation) if cls.__module__ == operations.__name__} - others

    class Names(ir.OperationVisitor[str]):
        assign = set_valid = set_invalid = copy_header = copy_union = copy_stack = move_stack = exit = None
        extract = advance = verify = extern = composite = None

        def __getattribute__(self, name: str) -> object:
            return lambda op: name

    methods = [cls.accept(None, Names()) for cls in own]
    assert len(set(methods)) == len(own) == 11
    assert {cls.accept(None, Names()) for cls in _classes(composite)} == {"composite"}
    assert {*methods, "composite"} <= set(dir(ir.OperationVisitor))


METHODS = {
    "reads": (), "writes": (), "arguments": [], "run": lambda self, machine: None,
    "read": lambda arguments: None, "emit": lambda self, to: None,
}  # fmt: skip


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


def test_an_assignment_reads_its_source_and_writes_its_target() -> None:
    place, value = ir.FieldRef("h", "f", ir.Bits(8)), ir.Const(1, ir.Bits(8))
    op = ir.Assign(place, value)
    assert (op.reads, op.writes, op.effects) == ((value,), (place,), ir.NOTHING)
