"""Comments of a class's fields: those above and behind each declaration."""

from __future__ import annotations

import ast
import inspect
import io
import textwrap
import tokenize
from collections.abc import Mapping
from functools import cache
from typing import Any


@cache
def comments(cls: type[Any]) -> Mapping[str, str]:
    """Return the comment of each of the class's own fields that has one.

    A comment belongs to the field that it stands behind, or to the one directly below it.
    """
    try:
        text = textwrap.dedent(inspect.getsource(cls))
    except (OSError, TypeError):  # the source is compiled or generated
        return {}
    words: dict[int, str] = {}
    alone: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            line = token.start[0]
            words[line] = token.string.lstrip("#").strip()
            if not token.line[: token.start[1]].strip():
                alone.add(line)
    (parsed,) = ast.parse(text).body
    assert isinstance(parsed, ast.ClassDef)
    comments_by_field = {}
    for statement in parsed.body:
        if not (isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)):
            continue
        first, last = statement.lineno, statement.end_lineno or statement.lineno
        while first - 1 in alone:
            first -= 1
        lines = [words[line] for line in range(first, last + 1) if line in words]
        comment = " ".join(line for line in lines if line[:4] != "fmt:")
        if comment:
            comments_by_field[statement.target.id] = comment
    return comments_by_field


def summary(cls: type[Any]) -> str:
    """Return the first line of the docstring of a class's file, or of the class itself.

    The file counts if it has only this class. "" if neither has a docstring.
    """
    module = inspect.getmodule(cls)
    for text in (module.__doc__ if module else None, cls.__doc__):
        if first := (text or "").strip().partition("\n")[0].removesuffix("."):
            return first
    return ""
