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

    `line_text` is the source line that it refers to.
    """

    severity: str
    location: Location
    message: str
    line_text: str = ""
    name: str = ""
    """Name of a warning, which can be silenced by it (`warnings.NAMES`)."""

    def __str__(self) -> str:
        file, line, column = self.location
        head = f"{file}:{line}:{column}: {self.severity}: {self.message}"
        if self.name:
            head += f" [{self.name}]"
        if not self.line_text.strip():
            return head
        # Tabs are kept, so that the caret is in the right place whatever the width of a tab.
        indent = "".join("\t" if c == "\t" else " " for c in self.line_text[: column - 1])
        return f"{head}\n  {self.line_text}\n  {indent}^"


class UnsupportedError(Exception):
    """Feature that the target lacks.

    A caller that knows the source adds the position, unless `span` gives it.
    """

    def __init__(self, message: str, span: int | None = None) -> None:
        super().__init__(message)
        self.span = span


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return the text that is added to "no such name": the most similar known name, if there is one."""
    near = nearest(name, set(known) - {name})
    return f" (did you mean {near!r}?)" if near is not None else ""


class CompileError(UserError):
    """Refusal of a program. `diagnostics` are the errors in it."""

    starts_with_place = True

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__("\n".join(map(str, self.diagnostics)))

    def __reduce__(self) -> tuple[type[CompileError], tuple[tuple[Diagnostic, ...]]]:
        # Arguments of the constructor, because errors are sent between the processes of a sweep.
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
        """Record an error (only once if repeated at the same position). Raises CompileError after MAX_ERRORS."""
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
        """Raise CompileError if there are errors; they come in the order of the source."""
        if self._errors:
            raise CompileError([e for _, e in sorted(self._errors, key=lambda e: e[0])])
