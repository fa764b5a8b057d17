"""State that the parts of the checker share, and the interfaces of the two parts that others call recursively."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from p4switch.compiler import ast, types
from p4switch.compiler.diagnostics import Reporter, did_you_mean
from p4switch.compiler.semantics.places import Place


class ExpressionChecker(Protocol):
    """Interface of the checker of expressions for types, annotations and arguments, which contain expressions."""

    def expr(self, e: ast.Expr, expected: types.Type | None = None) -> types.Type:
        """Check an expression that has a value, and return its type.

        `expected` helps to infer type arguments.
        """

    def any_expr(self, e: ast.Expr, expected: types.Type | None = None) -> types.Type:
        """Check an expression that may also be the name of a type or something to call."""

    def boolean(self, e: ast.Expr, what: str) -> types.Type:
        """Check an expression and convert it to bool. Messages name `what`, which requires a bool."""


class DeclarationChecker(Protocol):
    """Interface of the checker of declarations for statements and instances, which contain declarations."""

    def declaration(self, decl: ast.Node) -> None:
        """Check a declaration, and its name at the point from which on the name is known."""

    def function(self, decl: ast.FunctionDecl, place: Place) -> None:
        """Check a function or method. Its body is code at `place`."""


class Checking:
    """State of checking one program: messages, the current place, and the recursive parts of the checker.

    A part of the checker is constructed with the parts that it calls. But types and arguments contain
    expressions, and bodies contain declarations. The checkers of these are constructed first, and call
    the checkers of expressions and declarations through this object.
    """

    expressions: ExpressionChecker
    declarations: DeclarationChecker

    def __init__(self, program: ast.Program, reporter: Reporter) -> None:
        self.program = program
        self.reporter = reporter
        self.facts = program.facts
        self.names = self.facts.names
        self.place = Place.TOP
        self.owner: ast.ParserDecl | ast.ControlDecl | None = None
        self.return_type: types.Type | None = None
        self.loops = 0

    def error(self, node: ast.Node, message: str) -> None:
        self.reporter.error(node.pos, message)

    def warn(self, node: ast.Node, message: str, name: str = "other") -> None:
        self.reporter.warn(node.pos, message, name)

    def describe(self, e: ast.Expr) -> str:
        """Describe `e` for a message."""
        t, value = self.facts.types[e], self.facts.integer(e)
        if value is not None and isinstance(t, types.InfInt):
            return f"int {value}" if value.bit_length() < 200 else "int"
        if isinstance(e, ast.ListExpr) and not isinstance(t, types.Record):
            return "a list of values"
        if isinstance(e, ast.StructExpr) and isinstance(t, types.AnonRecord):
            return "a list of named values"
        if isinstance(e, ast.InvalidHeader) and isinstance(t, types.AnonRecord):
            return "an invalid header"
        if isinstance(e, ast.DefaultInit):
            return "'...'"
        return str(t)

    @contextmanager
    def at(self, place: Place) -> Iterator[None]:
        outer, self.place = self.place, place
        try:
            yield
        finally:
            self.place = outer

    def declared(self, decl: ast.Node) -> None:
        """Report a declaration whose name is taken or that hides a parameter."""
        if decl in self.names.wrong:
            self.error(decl, self.names.wrong[decl])

    def unknown_name(self, node: ast.Node, name: str, what: str = "name", hint: str = "") -> None:
        """Report that `name` is unknown, with `hint` or a guess at the intended name."""
        hint = hint or did_you_mean(name, self.names.known(node))
        self.error(node, f"{what} {name!r} is not declared{hint}")

    def unique(self, decls: list[ast.EnumMember] | list[ast.FieldDecl] | list[ast.Parameter], what: str) -> None:
        seen: set[str] = set()
        for decl in decls:
            if decl.name in seen:
                self.error(decl, f"duplicate {what} {decl.name!r}")
            seen.add(decl.name)
