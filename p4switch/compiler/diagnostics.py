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

    `line_text` is the source line it is about.
    """

    severity: str
    location: Location
    message: str
    line_text: str = ""
    name: str = ""
    """Name of a warning, by which it is silenced (`warnings.NAMES`)."""

    def __str__(self) -> str:
        file, line, column = self.location
        head = f"{file}:{line}:{column}: {self.severity}: {self.message}"
        if self.name:
            head += f" [{self.name}]"
        if not self.line_text.strip():
            return head
        # Tabs stay tabs under tabs, so that the caret stands right whatever their width.
        indent = "".join("\t" if c == "\t" else " " for c in self.line_text[: column - 1])
        return f"{head}\n  {self.line_text}\n  {indent}^"


class UnsupportedError(Exception):
    """Feature that the target lacks.

    A caller that knows the source adds the place, unless `span` is one.
    """

    def __init__(self, message: str, span: int | None = None) -> None:
        super().__init__(message)
        self.span = span


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return the addition to "no such name": the nearest known one, if one is near."""
    near = nearest(name, set(known) - {name})
    return f" (did you mean {near!r}?)" if near is not None else ""


class CompileError(UserError):
    """A program was refused. `diagnostics` are its errors."""

    starts_with_place = True

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__("\n".join(map(str, self.diagnostics)))

    def __reduce__(self) -> tuple[type[CompileError], tuple[tuple[Diagnostic, ...]]]:
        return CompileError, (self.diagnostics,)  # as it is made: programs are compiled in processes of sweeps, too


class Reporter:
    """Collects what is wrong with one program."""

    def __init__(self, source: SourceMap) -> None:
        self.source = source
        self._errors: list[tuple[int, Diagnostic]] = []
        self.warnings: list[Diagnostic] = []
        self._seen: set[tuple[int, str]] = set()

    def _diagnostic(self, severity: str, pos: int, message: str) -> Diagnostic:
        return Diagnostic(severity, self.source.locate(pos), message, self.source.line_at(pos))

    def error(self, pos: int, message: str) -> None:
        """Note an error (the same one at the same place only once). Raises CompileError after MAX_ERRORS."""
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
        """Note a warning; `name` is one of `warnings.NAMES`."""
        self.warnings.append(replace(self._diagnostic("warning", pos, message), name=name))

    def stop_on_errors(self) -> None:
        """Raise CompileError if there are errors; they come in the order of the source."""
        if self._errors:
            raise CompileError([e for _, e in sorted(self._errors, key=lambda e: e[0])])
