"""Shared state of the checker: messages, scopes, the place in the program, and its parts."""

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

Scope = dict[str, list[ast.Declaration]]
"""Declarations by name; several only where functions are overloaded."""


_OVERLOADABLE = (ast.FunctionDecl, ast.ExternFunctionDecl)
_MAY_SHADOW = (ast.Parameter, ast.TypeParam, ast.EnumMember)


class Checking:
    """The checking of one program: messages, scopes, where in the program it is, and the parts."""

    def __init__(self, program: ast.Program, reporter: Reporter) -> None:
        self.program = program
        self.reporter = reporter
        self.facts = program.facts
        self.scopes: list[Scope] = [{}]
        self.place = Place.TOP
        self.owner: ast.ParserDecl | ast.ControlDecl | None = None
        self.return_type: types.Type | None = None
        self.loops = 0
        self.locals: list[ast.Declaration] = []
        """Where implicit instances of the current parser or control go."""
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
        if isinstance(e, ast.IntLiteral) and isinstance(self.facts.types[e], types.InfInt):
            return f"int {e.value}" if e.value.bit_length() < 200 else "int"
        if isinstance(e, ast.ListExpr):
            return "a list of values"
        if isinstance(e, ast.StructExpr) and isinstance(self.facts.types[e], types.AnonRecord):
            return "a list of named values"
        if isinstance(e, ast.InvalidHeader) and isinstance(self.facts.types[e], types.AnonRecord):
            return "an invalid header"
        if isinstance(e, ast.DefaultInit):
            return "'...'"
        return str(self.facts.types[e])

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
        """Make `decl` known in the current scope.

        Functions may share a name if their parameters differ in number or names.
        """
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
        """Check that a declaration in a block does not hide a parameter."""
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
        here, there = (self.program.source.locate(one.pos) for one in (decl, other))
        place = f"line {there.line}" if there.file == here.file else f"{there.file}:{there.line}"
        self.error(decl, f"{decl.name!r} is already declared ({place})")

    def lookup(self, name: str, absolute: bool = False) -> list[ast.Declaration]:
        """Return the declarations of `name`, innermost scope first; empty if there are none."""
        if absolute:
            return self.scopes[0].get(name, [])
        for scope in reversed(self.scopes):
            found = scope.get(name)
            if found is not None:
                return found
        return []

    def unknown_name(self, node: ast.Node, name: str, what: str = "", hint: str = "") -> None:
        """Report that nothing is called `name`, with `hint` or else a guess at what was meant."""
        hint = hint or did_you_mean(name, (known for scope in self.scopes for known in scope))
        self.error(node, f"{what or 'name'} {name!r} is not declared{hint}")

    def unique(self, decls: list[ast.EnumMember] | list[ast.FieldDecl] | list[ast.Parameter], what: str) -> None:
        seen: set[str] = set()
        for decl in decls:
            if decl.name in seen:
                self.error(decl, f"duplicate {what} {decl.name!r}")
            seen.add(decl.name)
