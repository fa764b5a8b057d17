"""Conversion of a lowered program to BMv2's form, from which the engine and the writer of the JSON start."""

from __future__ import annotations

from p4switch import ir
from p4switch.compiler import types
from p4switch.compiler.bmv2.expressions import Expressions
from p4switch.compiler.bmv2.operations import Operations
from p4switch.compiler.bmv2.parsers import parser
from p4switch.compiler.bmv2.pipelines import Pipelines
from p4switch.compiler.bmv2.source import Source
from p4switch.compiler.bmv2.storage import Storage
from p4switch.compiler.midend.whole import Lowered


def fitted(lowered: Lowered) -> ir.Program:
    """Convert `lowered`, after all passes, to a program for BMv2 and the engine.

    Raises CompileError for features that BMv2 does not support.
    """
    source = Source(lowered.source)
    with source.at(lowered.source.main.pos if lowered.source.main is not None else 0):
        return _made(lowered, lowered.program, source)


def _made(lowered: Lowered, program: ir.Program, source: Source) -> ir.Program:
    storage = Storage(program)
    x = Expressions(storage)
    calculations = {each.name: _calculation(each, each.name, x) for each in program.calculations}
    operations = Operations(x, calculations, source)
    parsers = [parser(each, x, operations, source) for each in program.parsers]
    pipelines = Pipelines(x, operations, source)
    ir_pipelines = [pipelines.pipeline(each) for each in program.pipelines]
    checksums: list[ir.Checksum] = []
    for i, checksum in enumerate(program.checksums):
        with source.at(checksum.span):
            calculation = _calculation(checksum.calculation, f"calc_{len(calculations)}", x)
            calculations[calculation.name] = calculation
            target, test = storage.field(checksum.target.header, checksum.target.name), x.value(checksum.condition)
            checksums.append(
                ir.Checksum(target, calculation, test, checksum.verify, checksum.span, f"cksum_{i}")
            )
    return ir.Program(
        name=lowered.source.path,
        package=lowered.package.path or None,
        source_names=lowered.parameters,
        headers=list(storage.instances.values()),
        stacks=_headers_first([(storage.stacks[ref.name], names) for ref, names in program.stacks]),
        unions=[(storage.unions[ref.name], names) for ref, names in program.unions],
        errors=program.errors,
        enums=program.enums,
        parsers=parsers,
        value_sets=program.value_sets,
        pipelines=ir_pipelines,
        checksums=checksums,
        deparsers=[
            ir.Deparser(each.name, operations.body(each.body), [x.header(header) for header in each.order])
            for each in program.deparsers
        ],
        counters=[ir.Counter(c.name, 0 if c.table else c.size, c.table, c.span) for c in program.counters],
        meters=[
            ir.Meter(m.name, m.size, m.unit, m.table, None if m.result is None else x.place(m.result), m.span)
            for m in program.meters
        ],
        registers=program.registers,
        externs=[_instance(each, x) for each in program.externs],
        calculations=list(calculations.values()),
        # For simple_switch, number 0 means that there is no call.
        field_lists=[_field_list(each, i, x) for i, each in enumerate(program.field_lists, start=1)],
        learn_lists=[_field_list(each, i, x) for i, each in enumerate(program.learn_lists, start=1)],
        actions=list(pipelines.actions.values()),
        profiles=list(pipelines.profiles.values()),
        aliases={alias: (m.name, name) for m in program.metadata for alias, name in m.aliases.items()},
        place=source.place,
    )


def _headers_first(stacks: list[tuple[ir.StackRef, list[str]]]) -> list[tuple[ir.StackRef, list[str]]]:
    return sorted(stacks, key=lambda stack: isinstance(stack[0].element, types.Union))


def _field_list(fields: ir.FieldList, number: int, x: Expressions) -> ir.FieldList:
    return ir.FieldList(fields.name, [x.place(element) for element in fields.elements], number)


def _calculation(calculation: ir.Calculation, name: str, x: Expressions) -> ir.Calculation:
    inputs = [x.input(each) for each in calculation.inputs]
    return ir.Calculation(name, calculation.algorithm, inputs, calculation.with_payload, calculation.span)


def _instance(extern: ir.ExternInstance, x: Expressions) -> ir.ExternInstance:
    attributes: dict[str, ir.Const | str] = {}
    for name, value in extern.attributes.items():
        attribute = value if isinstance(value, str) else x.argument(value)
        assert isinstance(attribute, ir.Const | str)
        attributes[name] = attribute
    return ir.ExternInstance(extern.name, extern.type, attributes, extern.span)
