"""Errors and warnings about P4 programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from p4switch.compiler.source import Location
from p4switch.errors import UserError

MAX_ERRORS = 20
"""Compilation gives up after this many errors."""


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One message. `line_text` is the source line it is about."""

    severity: str
    location: Location
    message: str
    line_text: str = ""

    def __str__(self) -> str:
        file, line, column = self.location
        head = f"{file}:{line}:{column}: {self.severity}: {self.message}"
        if not self.line_text.strip():
            return head
        # Tabs stay tabs under tabs, so that the caret stands right whatever their width.
        indent = "".join("\t" if c == "\t" else " " for c in self.line_text[: column - 1])
        return f"{head}\n  {self.line_text}\n  {indent}^"


class CompileError(UserError):
    """A program was refused. `diagnostics` are its errors, in the order they were found."""

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__("\n".join(map(str, self.diagnostics)))
