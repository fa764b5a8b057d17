"""Semantic analysis of a program: types, conversions, and the checks of all rules."""

from __future__ import annotations

from p4switch.compiler import ast
from p4switch.compiler.diagnostics import Reporter
from p4switch.compiler.semantics.action_references import ActionReferences
from p4switch.compiler.semantics.annotations import Annotations
from p4switch.compiler.semantics.arguments import Arguments
from p4switch.compiler.semantics.calls import Calls
from p4switch.compiler.semantics.context import Checking
from p4switch.compiler.semantics.conversions import Conversions
from p4switch.compiler.semantics.declarations import Declarations
from p4switch.compiler.semantics.entries import Entries
from p4switch.compiler.semantics.expressions import Expressions
from p4switch.compiler.semantics.instances import Instances
from p4switch.compiler.semantics.keysets import Keysets
from p4switch.compiler.semantics.operators import Operators
from p4switch.compiler.semantics.parsers import Parsers
from p4switch.compiler.semantics.sizes import PartCounts
from p4switch.compiler.semantics.statements import Statements
from p4switch.compiler.semantics.tables import Tables
from p4switch.compiler.semantics.values import Values
from p4switch.compiler.semantics.written_types import WrittenTypes


def check(program: ast.Program, reporter: Reporter) -> None:
    """Check `program`, whose names are resolved. Errors and warnings are reported to `reporter`."""
    ctx = Checking(program, reporter)
    part_counts = PartCounts()
    values = Values(ctx)
    conversions = Conversions(ctx, part_counts, values)
    written_types = WrittenTypes(ctx, conversions, part_counts)
    annotations = Annotations(ctx)
    arguments = Arguments(ctx, conversions, values)
    operators = Operators(ctx, conversions, values)
    instances = Instances(ctx, annotations, arguments, written_types)
    calls = Calls(ctx, annotations, arguments, instances, values, written_types)
    ctx.expressions = Expressions(ctx, calls, conversions, operators, values, written_types)
    keysets = Keysets(ctx, conversions)
    statements = Statements(ctx, annotations, conversions, values, written_types)
    references = ActionReferences(ctx, annotations, arguments, values)
    entries = Entries(ctx, references, annotations, keysets, values, written_types)
    tables = Tables(ctx, references, annotations, entries, values, written_types)
    parsers = Parsers(ctx, annotations, keysets, statements, values, written_types)
    declarations = ctx.declarations = Declarations(
        ctx, annotations, arguments, conversions, instances, parsers, part_counts, statements, tables, values,
        written_types,
    )  # fmt: skip
    declarations.run()
