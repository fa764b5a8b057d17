"""Source positions, and errors that refer to them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from p4switch.compiler import ast
from p4switch.compiler.diagnostics import CompileError, Diagnostic, UnsupportedError
from p4switch.ir.places import Place

_MAX_FRAGMENT = 200  # maximum number of characters of the source that each operation keeps


class Source:
    def __init__(self, program: ast.Program) -> None:
        self._source = program.source
        self._places: dict[int, Place] = {}

    def place(self, span: int | None) -> Place | None:
        """Return the source position of `span`, and the text at this position."""
        if span is None:
            return None
        if span not in self._places:
            self._places[span] = Place(*self._source.locate(span), self._source.fragment(span, _MAX_FRAGMENT))
        return self._places[span]

    def error(self, error: UnsupportedError, span: int | None) -> Exception:
        """Return `error` as an error at `span`.

        If `span` is None, the error is returned unchanged, and an enclosing node adds its own span.
        """
        if span is None:
            return error
        place, line = self._source.locate(span), self._source.line_at(span)
        return CompileError([Diagnostic("error", place, str(error), line)])

    @contextmanager
    def at(self, span: int | None) -> Iterator[None]:
        """Convert UnsupportedError in the block to a CompileError at `span`."""
        try:
            yield
        except UnsupportedError as error:
            raise self.error(error, span) from None
