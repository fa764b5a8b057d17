"""Source information in the JSON, and errors at these places."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from p4switch.compiler import ast
from p4switch.compiler.bmv2.expressions import Json
from p4switch.compiler.diagnostics import CompileError, Diagnostic, UnsupportedError

_MAX_FRAGMENT = 200  # characters of the source, for each operation


class Source:
    def __init__(self, program: ast.Program) -> None:
        self._source = program.source

    def __call__(self, span: int | None) -> Json:
        """Return the `source_info` of `span`."""
        if span is None:
            return {}
        file, line, column = self._source.locate(span)
        fragment = self._source.fragment(span, _MAX_FRAGMENT)
        return {"source_info": {"filename": file, "line": line, "column": column, "source_fragment": fragment}}

    @contextmanager
    def at(self, span: int | None) -> Iterator[None]:
        """Write what stands at `span`: what cannot be said raises CompileError there, not UnsupportedError."""
        try:
            yield
        except UnsupportedError as error:
            if span is None:
                raise  # to what this is a part of
            place, line = self._source.locate(span), self._source.line_at(span)
            raise CompileError([Diagnostic("error", place, str(error), line)]) from None
