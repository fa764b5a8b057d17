"""What all parts of the checker share: messages, scopes, and where in the program it is."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from contextlib import contextmanager

from p4switch.compiler import ast, types
from p4switch.compiler.diagnostics import Reporter, did_you_mean
from p4switch.compiler.superseded import instead

Scope = dict[str, list[ast.Declaration]]
"""Declarations by name; several only where functions are overloaded."""


class Place(enum.Enum):
    """What the code being checked belongs to; decides what may be called there."""

    TOP = "the top level"
    PARSER = "a parser state"
    PARSER_LOCAL = "the declarations of a parser"
    CONTROL = "the apply block of a control"
    CONTROL_LOCAL = "the declarations of a control"
    ACTION = "an action"
    FUNCTION = "a function"
    METHOD = "a method"
    TABLE = "a table"


MAX_INT32 = (1 << 31) - 1
MAX_INT64 = (1 << 63) - 1
"""What a number that goes into P4Info may be at most."""

_OVERLOADABLE = (ast.FunctionDecl, ast.ExternFunctionDecl)
_MAY_SHADOW = (ast.Parameter, ast.TypeParam, ast.EnumMember)


class Base:
    def __init__(self, program: ast.Program, reporter: Reporter) -> None:
        self.program = program
        self.reporter = reporter
        self.scopes: list[Scope] = [{}]
        self.place = Place.TOP
        self.owner: ast.ParserDecl | ast.ControlDecl | None = None
        self.return_type: types.Type | None = None
        self.loops = 0
        self.locals: list[ast.Declaration] = []
        """Where implicit instances of the current parser or control go."""

    # Messages

    def error(self, node: ast.Node, message: str) -> None:
        self.reporter.error(node.pos, message)

    def warn(self, node: ast.Node, message: str, name: str = "other") -> None:
        self.reporter.warn(node.pos, message, name)

    # Names

    @contextmanager
    def scope(self) -> Iterator[None]:
        self.scopes.append({})
        try:
            yield
        finally:
            self.scopes.pop()

    @contextmanager
    def at(self, place: Place) -> Iterator[None]:
        outer, self.place = self.place, place
        try:
            yield
        finally:
            self.place = outer

    def declare(self, decl: ast.Declaration) -> None:
        """Make `decl` known in the current scope. Functions may share a name if their parameters differ in number or
        names."""
        here = self.scopes[-1]
        others = here.get(decl.name)
        if others is None:
            here[decl.name] = [decl]
            if not isinstance(decl, _MAY_SHADOW):
                self._check_shadowing(decl)
            return
        if isinstance(decl, _OVERLOADABLE) and all(isinstance(o, _OVERLOADABLE) for o in others):
            signature = [p.name for p in decl.params]
            if not any(isinstance(o, _OVERLOADABLE) and [p.name for p in o.params] == signature for o in others):
                others.append(decl)
                return
        self.duplicate(decl, others[0])

    def _check_shadowing(self, decl: ast.Declaration) -> None:
        """A declaration in a block must not hide a parameter."""
        if self.place in (Place.TOP, Place.CONTROL_LOCAL, Place.PARSER_LOCAL):
            return
        for scope in reversed(self.scopes[1:-1]):
            hidden = scope.get(decl.name)
            if hidden is not None:
                if isinstance(hidden[0], ast.Parameter):
                    line = self.program.source.locate(hidden[0].pos).line
                    self.error(decl, f"{decl.name!r} hides a parameter of that name (line {line})")
                return

    def duplicate(self, decl: ast.Declaration, other: ast.Declaration) -> None:
        line = self.program.source.locate(other.pos).line
        self.error(decl, f"{decl.name!r} is already declared (line {line})")

    def lookup(self, name: str, absolute: bool = False) -> list[ast.Declaration]:
        """What `name` stands for: innermost scope first; empty if nothing."""
        if absolute:
            return self.scopes[0].get(name, [])
        for scope in reversed(self.scopes):
            found = scope.get(name)
            if found is not None:
                return found
        return []

    def unknown_name(self, node: ast.Node, name: str, what: str = "", new: str | None = None) -> None:
        """Report that nothing is called `name`, with what is there instead (`new`) or a guess at what was meant."""
        hint = instead(new) or did_you_mean(name, (known for scope in self.scopes for known in scope))
        self.error(node, f"{what or 'name'} {name!r} is not declared{hint}")

    def unique(self, decls: list[ast.EnumMember] | list[ast.FieldDecl] | list[ast.Parameter], what: str) -> None:
        seen: set[str] = set()
        for decl in decls:
            if decl.name in seen:
                self.error(decl, f"duplicate {what} {decl.name!r}")
            seen.add(decl.name)
