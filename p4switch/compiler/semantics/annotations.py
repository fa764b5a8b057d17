"""Checks of the annotations that the compiler interprets."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from p4switch.compiler import ast, types
from p4switch.compiler.diagnostics import CompileError, Reporter
from p4switch.compiler.semantics.context import Checking
from p4switch.compiler.semantics.places import MAX_INT32, MAX_INT64

NUMBERS = {"id": (1 << 32) - 1, "max_group_size": MAX_INT32, "max_member_weight": MAX_INT32}
"""Annotations whose value is a number, with its maximum."""


class Annotations:
    def __init__(self, ctx: Checking) -> None:
        self.ctx = ctx
        self.facts = ctx.facts
        self.types = ctx.facts.types

    def check(self, annotations: Sequence[ast.Annotation]) -> None:
        for a in annotations:
            if a.structured:
                self._structured(a)
            elif a.args:
                self._unstructured(a)
            if a.name in ("name", "deprecated", "noWarn") and not a.structured and self.text(a) is None:
                self.ctx.error(a, f"annotation @{a.name} needs one string")
            elif a.name == "match" and not a.structured:
                if not a.args or len(a.args) != 1 or not isinstance(self.types[a.args[0]], types.MatchKind):
                    self.ctx.error(a, "annotation @match needs the name of a match kind")
            elif a.name == "p4runtime_translation" and not a.structured:
                self._translation(a)
            elif a.name == "platform_property":
                self._platform_property(a)
            elif a.name in NUMBERS and a.args:
                number = self.facts.integer(a.args[0])
                if number is None or not 0 <= number <= NUMBERS[a.name]:
                    self.ctx.error(a, f"annotation @{a.name} needs a number from 0 to {NUMBERS[a.name]}")
        structured = [a.name for a in annotations if a.structured]
        for a in annotations:
            if a.name in structured and not (a.structured and structured.count(a.name) == 1 and a is annotations[0]):
                others = [b for b in annotations if b.name == a.name]
                if len(others) > 1 and a is others[-1]:
                    self.ctx.error(a, f"annotation @{a.name} is given twice, and one is structured")

    def text(self, a: ast.Annotation) -> str | None:
        """Return the only argument of an annotation if it is a string; None otherwise."""
        value = self.facts.constants.get(a.args[0]) if a.args and len(a.args) == 1 else None
        return value if isinstance(value, str) else None

    def _translation(self, a: ast.Annotation) -> None:
        """Check `(uri, string)`, `(uri, bit<W>)` or `(uri, W)`."""
        kind = a.tokens[2:]
        if len(kind) == 4 and kind[:2] == ["bit", "<"]:
            kind = kind[2:3]
        sized = len(kind) == 1 and kind[0].isdigit() and len(kind[0]) < 10
        if a.tokens[1:2] != [","] or not (sized or kind == ["string"]):
            self.ctx.error(a, "annotation @p4runtime_translation needs a string and then 'string' or 'bit<W>'")

    def _platform_property(self, a: ast.Annotation) -> None:
        for key, text in a.key_values():
            try:
                fits = 0 <= int(text, 0) <= MAX_INT32
            except ValueError:
                fits = False
            if not fits:
                self.ctx.error(a, f"{key} is {text!r}: a whole number below 2147483648 is expected")

    def _structured(self, a: ast.Annotation) -> None:
        for e in [*(a.args or ()), *(a.pairs or {}).values()]:
            t, value = self.ctx.expressions.expr(e), self.facts.constants.get(e)
            if not isinstance(value, (int, str)) and not isinstance(t, types.Unknown):
                self.ctx.error(e, "the value in an annotation must be an integer, string or bool known at compile time")
            if isinstance(value, int) and not -MAX_INT64 - 1 <= value <= MAX_INT64:
                self.ctx.error(e, "the value in an annotation must fit into 64 bits")

    def _unstructured(self, a: ast.Annotation) -> None:
        """Evaluate the arguments of an annotation that the compiler interprets. Other annotations may have any text."""
        assert a.args is not None
        if all(isinstance(x, (ast.StringLiteral, ast.IntLiteral, ast.BoolLiteral)) for x in a.args):
            for x in a.args:
                self.ctx.expressions.expr(x)
            return
        shown, self.ctx.reporter = self.ctx.reporter, Reporter(self.ctx.program.source)
        with contextlib.suppress(CompileError):
            for x in a.args:
                self.ctx.expressions.expr(x)
        if self.ctx.reporter.failed:
            for x in a.args:
                self.facts.constants.pop(x, None)
        self.ctx.reporter = shown
