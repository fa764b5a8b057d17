"""Semantic analysis of a program: types, conversions, and the checks of all rules."""

from __future__ import annotations

from p4switch.compiler import ast
from p4switch.compiler.diagnostics import Reporter
from p4switch.compiler.semantics.context import Checking


def check(program: ast.Program, reporter: Reporter) -> None:
    """Check `program`, whose names are resolved; errors and warnings go to `reporter`."""
    Checking(program, reporter).declarations.run()
