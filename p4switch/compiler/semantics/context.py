"""Shared state of the checker: messages, the current position in the program, and its parts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from p4switch.compiler import ast, types
from p4switch.compiler.diagnostics import Reporter, did_you_mean
from p4switch.compiler.semantics.annotations import Annotations
from p4switch.compiler.semantics.arguments import Arguments
from p4switch.compiler.semantics.calls import Calls
from p4switch.compiler.semantics.conversions import Conversions
from p4switch.compiler.semantics.declarations import Declarations
from p4switch.compiler.semantics.entries import Entries
from p4switch.compiler.semantics.expressions import Expressions
from p4switch.compiler.semantics.instances import Instances
from p4switch.compiler.semantics.keysets import Keysets
from p4switch.compiler.semantics.operators import Operators
from p4switch.compiler.semantics.parsers import Parsers
from p4switch.compiler.semantics.places import Place
from p4switch.compiler.semantics.statements import Statements
from p4switch.compiler.semantics.tables import Tables
from p4switch.compiler.semantics.values import Values
from p4switch.compiler.semantics.written_types import WrittenTypes


class Checking:
    """Checking of one program: messages, the current position in the program, and the parts."""

    def __init__(self, program: ast.Program, reporter: Reporter) -> None:
        self.program = program
        self.reporter = reporter
        self.facts = program.facts
        self.names = self.facts.names
        self.place = Place.TOP
        self.owner: ast.ParserDecl | ast.ControlDecl | None = None
        self.return_type: types.Type | None = None
        self.loops = 0
        self.written_types = WrittenTypes(self)
        self.conversions = Conversions(self)
        self.values = Values(self)
        self.operators = Operators(self)
        self.arguments = Arguments(self)
        self.calls = Calls(self)
        self.instances = Instances(self)
        self.expressions = Expressions(self)
        self.keysets = Keysets(self)
        self.statements = Statements(self)
        self.entries = Entries(self)
        self.tables = Tables(self)
        self.parsers = Parsers(self)
        self.annotations = Annotations(self)
        self.declarations = Declarations(self)

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
        """Report that nothing is called `name`, followed by `hint` or a guess at the intended name."""
        hint = hint or did_you_mean(name, self.names.known(node))
        self.error(node, f"{what} {name!r} is not declared{hint}")

    def unique(self, decls: list[ast.EnumMember] | list[ast.FieldDecl] | list[ast.Parameter], what: str) -> None:
        seen: set[str] = set()
        for decl in decls:
            if decl.name in seen:
                self.error(decl, f"duplicate {what} {decl.name!r}")
            seen.add(decl.name)
