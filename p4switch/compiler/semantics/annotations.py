"""Checks of the annotations that have a meaning here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from p4switch.compiler import ast, types
from p4switch.compiler.diagnostics import CompileError, Reporter
from p4switch.compiler.semantics.places import MAX_INT32, MAX_INT64

if TYPE_CHECKING:
    from p4switch.compiler.semantics.context import Checking

NUMBERS = {"id": (1 << 32) - 1, "max_group_size": MAX_INT32, "max_member_weight": MAX_INT32}
"""Annotations whose value is a number, with its maximum."""


class Annotations:
    def __init__(self, ctx: Checking) -> None:
        self.ctx = ctx
        self.types = ctx.facts.types

    def check(self, annotations: Sequence[ast.Annotation]) -> None:
        for a in annotations:
            if a.structured:
                self._structured(a)
            elif a.args:
                self._unstructured(a)
            if a.name in ("name", "deprecated", "noWarn") and not a.structured and a.string is None:
                self.ctx.error(a, f"annotation @{a.name} needs one string")
            elif a.name == "match" and not a.structured:
                if not a.args or len(a.args) != 1 or not isinstance(self.types[a.args[0]], types.MatchKind):
                    self.ctx.error(a, "annotation @match needs the name of a match kind")
            elif a.name == "p4runtime_translation" and not a.structured:
                self._translation(a)
            elif a.name == "platform_property":
                self._platform_property(a)
            elif a.name in NUMBERS and a.args:
                number = a.args[0].value if isinstance(a.args[0], ast.IntLiteral) else -1
                if not 0 <= number <= NUMBERS[a.name]:
                    self.ctx.error(a, f"annotation @{a.name} needs a number from 0 to {NUMBERS[a.name]}")
        structured = [a.name for a in annotations if a.structured]
        for a in annotations:
            if a.name in structured and not (a.structured and structured.count(a.name) == 1 and a is annotations[0]):
                others = [b for b in annotations if b.name == a.name]
                if len(others) > 1 and a is others[-1]:
                    self.ctx.error(a, f"annotation @{a.name} is given twice, and one is structured")

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
        if a.args is not None:
            a.args = [self._annotation_value(x) for x in a.args]
        if a.pairs is not None:
            a.pairs = {k: self._annotation_value(x) for k, x in a.pairs.items()}

    def _annotation_value(self, e: ast.Expr) -> ast.Expr:
        e = self.ctx.expressions.expr(e)
        literal = (ast.IntLiteral, ast.BoolLiteral, ast.StringLiteral)
        if not isinstance(e, literal) and not isinstance(self.types[e], types.Unknown):
            self.ctx.error(e, "the value in an annotation must be an integer, string or bool known at compile time")
        if isinstance(e, ast.IntLiteral) and not -MAX_INT64 - 1 <= e.value <= MAX_INT64:
            self.ctx.error(e, "the value in an annotation must fit into 64 bits")
        return e

    def _unstructured(self, a: ast.Annotation) -> None:
        """Fold the arguments if the annotation has a meaning (otherwise its text is free)."""
        assert a.args is not None
        if all(isinstance(x, (ast.StringLiteral, ast.IntLiteral, ast.BoolLiteral)) for x in a.args):
            a.args = [self.ctx.expressions.expr(x) for x in a.args]
            return
        shown, self.ctx.reporter = self.ctx.reporter, Reporter(self.ctx.program.source)
        try:
            folded = [self.ctx.expressions.expr(x) for x in a.args]
        except CompileError:
            folded = []
        if not self.ctx.reporter.failed and folded:
            a.args = folded
        self.ctx.reporter = shown
