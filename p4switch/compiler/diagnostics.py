"""Errors and warnings about P4 programs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from p4switch.compiler.source import Location, SourceMap
from p4switch.errors import UserError, nearest

MAX_ERRORS = 20
"""Compilation gives up after this many errors."""


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """Diagnostic message.

    `line_text` is the source line to which the message refers.
    """

    severity: str
    location: Location
    message: str
    line_text: str = ""
    name: str = ""
    """Name of a warning (one of `warnings.NAMES`), by which users can silence it."""

    def __str__(self) -> str:
        file, line, column = self.location
        head = f"{file}:{line}:{column}: {self.severity}: {self.message}"
        if self.name:
            head += f" [{self.name}]"
        if not self.line_text.strip():
            return head
        # Tabs are kept, so that the caret is in the right column for any width of a tab.
        indent = "".join("\t" if c == "\t" else " " for c in self.line_text[: column - 1])
        return f"{head}\n  {self.line_text}\n  {indent}^"


class UnsupportedError(Exception):
    """Feature that the target lacks.

    If `span` is None, a caller that knows the source adds the position.
    """

    def __init__(self, message: str, span: int | None = None) -> None:
        super().__init__(message)
        self.span = span


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return the hint for an unknown name: the most similar known name, or an empty text."""
    near = nearest(name, set(known) - {name})
    return f" (did you mean {near!r}?)" if near is not None else ""


class CompileError(UserError):
    """Exception for a program with errors, which are its `diagnostics`."""

    starts_with_place = True

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__("\n".join(map(str, self.diagnostics)))

    def __reduce__(self) -> tuple[type[CompileError], tuple[tuple[Diagnostic, ...]]]:
        # Keep the constructor's arguments, because a sweep sends errors between processes.
        return CompileError, (self.diagnostics,)


class Reporter:
    """Collector of the errors and warnings about one program."""

    def __init__(self, source: SourceMap) -> None:
        self.source = source
        self._errors: list[tuple[int, Diagnostic]] = []
        self.warnings: list[Diagnostic] = []
        self._seen: set[tuple[int, str]] = set()

    def _diagnostic(self, severity: str, pos: int, message: str) -> Diagnostic:
        return Diagnostic(severity, self.source.locate(pos), message, self.source.line_at(pos))

    def error(self, pos: int, message: str) -> None:
        """Record an error; repetitions at the same position are dropped. Raises CompileError after MAX_ERRORS."""
        if (pos, message) in self._seen:
            return
        self._seen.add((pos, message))
        self._errors.append((pos, self._diagnostic("error", pos, message)))
        if len(self._errors) >= MAX_ERRORS:
            self.stop_on_errors()

    @property
    def failed(self) -> bool:
        """True if there are errors."""
        return bool(self._errors)

    def warn(self, pos: int, message: str, name: str = "other") -> None:
        """Record a warning; `name` is one of `warnings.NAMES`."""
        self.warnings.append(replace(self._diagnostic("warning", pos, message), name=name))

    def stop_on_errors(self) -> None:
        """Raise CompileError if there are errors, which are sorted by their position in the source."""
        if self._errors:
            raise CompileError([e for _, e in sorted(self._errors, key=lambda e: e[0])])
