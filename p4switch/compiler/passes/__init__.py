"""Passes from the checked program to the IR that tools read, in one list.

`lower` lowers the program to IR. The passes in `PASSES` transform the IR, and those in `BMV2` prepare it for BMv2.
Then `bmv2` converts it to BMv2's form.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from p4switch import ir
from p4switch.compiler import ast
from p4switch.compiler.bmv2 import fitted
from p4switch.compiler.diagnostics import CompileError, Diagnostic, UnsupportedError
from p4switch.compiler.midend.whole import Lowered, lower
from p4switch.compiler.passes import (
    header_values,
    one_site_per_table,
    parser_conditions,
    rewinds,
    simplify,
    slices,
    unions,
    written,
)
from p4switch.compiler.passes.base import Pass
from p4switch.interpreter import deep_recursion
from p4switch.ir import checker
from p4switch.ir.printer import print_program

LOWER = "lower"
_LOWER_HELP = "calls, structs, stacks and externs become operations over scalars"
TARGET = "bmv2"
_TARGET_HELP = "storage becomes header instances, numbers lose their width, nodes of pipelines get names"

PASSES = (
    Pass(
        "slices",
        "assignments to slices become assignments of whole numbers",
        slices.run,
        frozenset({ir.AssignSlice}),
    ),
    Pass(
        "header-values",
        "headers that get a value for each field are assigned field by field",
        header_values.run,
        frozenset({ir.FillHeader}),
    ),
    Pass(
        "unions",
        "what makes a member of a header union valid or invalid makes the others invalid",
        unions.run,
        frozenset({ir.Invalidate, ir.AssignHeader}),
    ),
    Pass(
        "rewinds",
        "variables of parsers that are stacks begin anew where they have moved on",
        rewinds.run,
        frozenset({ir.RewindStack}),
    ),
    Pass("written", "assignments to fields that are not valid before they are written say so", written.run),
    Pass("simplify", "jumps are threaded; blocks that always follow each other are one", simplify.run),
)
BMV2 = (
    Pass("parser-conditions", "conditions in parsers become selects", parser_conditions.run),
    Pass("one-site-per-table", "tables applied in several places continue alike", one_site_per_table.run),
)

Watch = Callable[[str, ir.Program], None]
"""Callback that receives the name of a pass and the program after this pass."""


def listed() -> list[tuple[str, str]]:
    """Return the names of all passes in order, each with a line that describes it."""
    return [(LOWER, _LOWER_HELP), *((each.name, each.help) for each in (*PASSES, *BMV2)), (TARGET, _TARGET_HELP)]


def lowered(program: ast.Program, watch: Watch | None = None) -> Lowered:
    """Return `program` after `lower` and `PASSES`. Raises CompileError for features that the target lacks."""
    result = lower(program)
    if watch is not None:
        watch(LOWER, result.program)
    run(PASSES, result, watch)
    return result


def for_bmv2(program: Lowered, watch: Watch | None = None) -> ir.Program:
    """Return the program in the form for BMv2 and the engine. Raises CompileError for features that they lack."""
    run(BMV2, program, watch)
    result = fitted(program)
    if watch is not None:
        watch(TARGET, result)
    return result


def inspect(program: ast.Program, name: str, check: bool) -> str:
    """Run all passes, and return the text of `program` after pass `name`.

    With `check`, CheckError is raised if the checker finds a violation.

    Raises CompileError for features that the target lacks.
    """
    texts: dict[str, str] = {}
    gone: set[type[ir.Operation]] = set()
    forms = {each.name: each.gone for each in (*PASSES, *BMV2)}

    def watch(done: str, after: ir.Program) -> None:
        gone.update(forms.get(done, ()))
        if check:
            checker.check(after, gone, widths=done != TARGET)
        if done == name:
            texts[done] = print_program(after)

    with deep_recursion():
        for_bmv2(lowered(program, watch), watch)
    return texts[name]


def run(passes: Sequence[Pass], program: Lowered, watch: Watch | None = None) -> None:
    """Transform `program`. Raises CompileError for features that the target lacks."""
    for each in passes:
        try:
            each.run(program.program)
        except UnsupportedError as error:
            source, span = program.source.source, error.span
            assert span is not None, "a pass says where"
            place, line = source.locate(span), source.line_at(span)
            raise CompileError([Diagnostic("error", place, str(error), line)]) from None
        if watch is not None:
            watch(each.name, program.program)
