"""Checks of declarations, from the first one of the program to its `main`."""

from __future__ import annotations

from collections.abc import Callable

from p4switch.bits.domain import fits
from p4switch.compiler import ast, types
from p4switch.compiler.ast import Direction
from p4switch.compiler.semantics.annotations import Annotations
from p4switch.compiler.semantics.arguments import Arguments
from p4switch.compiler.semantics.context import Checking
from p4switch.compiler.semantics.conversions import Conversions
from p4switch.compiler.semantics.instances import Instances
from p4switch.compiler.semantics.parsers import Parsers
from p4switch.compiler.semantics.places import Place
from p4switch.compiler.semantics.sizes import PartCounts
from p4switch.compiler.semantics.statements import Statements, always_returns
from p4switch.compiler.semantics.tables import Tables
from p4switch.compiler.semantics.values import Values
from p4switch.compiler.semantics.written_types import WrittenTypes, is_object
from p4switch.compiler.types import Type

_KNOWN_WITHIN = (ast.ExternDecl, ast.TableDecl)
"""Declarations whose name is already known within them."""


class Declarations:
    def __init__(
        self,
        ctx: Checking,
        annotations: Annotations,
        arguments: Arguments,
        conversions: Conversions,
        instances: Instances,
        parsers: Parsers,
        part_counts: PartCounts,
        statements: Statements,
        tables: Tables,
        values: Values,
        written_types: WrittenTypes,
    ) -> None:
        self.ctx = ctx
        self.annotations = annotations
        self.arguments = arguments
        self.conversions = conversions
        self.instances = instances
        self.parsers = parsers
        self.part_counts = part_counts
        self.statements = statements
        self.tables = tables
        self.values = values
        self.written_types = written_types
        self.types = ctx.facts.types
        self._declarations: dict[type[ast.Node], Callable[..., object]] = {
            ast.ErrorDecl: self._errors,
            ast.MatchKindDecl: self._match_kinds,
            ast.StructDecl: self._record,
            ast.HeaderDecl: self._record,
            ast.UnionDecl: self._record,
            ast.EnumDecl: self._enum,
            ast.TypedefDecl: self._typedef,
            ast.NewTypeDecl: self._newtype,
            ast.ExternDecl: self._extern,
            ast.ExternFunctionDecl: self._extern_function,
            ast.FunctionDecl: lambda decl: self.function(decl, Place.FUNCTION),
            ast.ActionDecl: self._action_decl,
            ast.ConstDecl: self.statements.constant,
            ast.VarDecl: self.statements.variable,
            ast.Instantiation: self.instances.instance,
            ast.PackageDecl: self._package,
            ast.ParserTypeDecl: self._parser_type,
            ast.ControlTypeDecl: self._control_type,
            ast.ParserDecl: self._container,
            ast.ControlDecl: self._container,
            ast.ValueSetDecl: self.parsers.value_set,
            ast.TableDecl: self.tables.table,
        }

    def run(self) -> None:
        """Check the whole program. Errors are reported to the reporter."""
        for decl in list(self.ctx.program.declarations):
            self.declaration(decl)
        named = (d for d in self.ctx.program.declarations if isinstance(d, ast.Declaration) and d.name == "main")
        main = next(named, None)
        if isinstance(main, ast.Instantiation):
            self.ctx.program.main = main
            if not isinstance(self.types[main], (types.Package, types.Unknown)):
                self.ctx.error(main, f"'main' must be a package, not {self.types[main]}")
        elif main is not None and not isinstance(main, ast.FunctionDecl):
            self.ctx.error(main, "'main' must be the instance of a package")

    def declaration(self, decl: ast.Node) -> None:
        """Check a declaration, and its name at the point from which on the name is known."""
        if isinstance(decl, ast.Declaration):
            self.annotations.check(decl.annotations)
        if isinstance(decl, _KNOWN_WITHIN):
            self.ctx.declared(decl)
            self._declarations[type(decl)](decl)
        else:
            self._declarations[type(decl)](decl)
            self.ctx.declared(decl)

    def _type_params(self, params: list[ast.TypeParam]) -> tuple[Type, ...]:
        for p in params:
            if p in self.ctx.names.wrong:
                self.ctx.error(p, f"duplicate type parameter {p.name!r}")
            self.ctx.declared(p)
        return tuple(types.TypeVar(p) for p in params)

    def _errors(self, decl: ast.ErrorDecl) -> None:
        for m in decl.members:
            self.ctx.declared(m)
            if m.name not in self.ctx.program.errors:
                self.ctx.facts.values[m] = len(self.ctx.program.errors)
                self.ctx.program.errors[m.name] = m

    def _match_kinds(self, decl: ast.MatchKindDecl) -> None:
        for m in decl.members:
            self.ctx.declared(m)

    def _record(self, decl: ast.RecordDecl) -> None:
        kind = {ast.StructDecl: types.Struct, ast.HeaderDecl: types.Header, ast.UnionDecl: types.Union}[type(decl)]
        args = self._type_params(decl.type_params)
        self.ctx.unique(decl.fields, "field")
        declared: list[types.Field] = []
        for f in decl.fields:
            self.annotations.check(f.annotations)
            declared.append(types.Field(f.name, self.written_types.resolve(f.type_expr), f))
        if not self.written_types.small_enough(decl, sum(self.part_counts.of(f.type) for f in declared)):
            declared.clear()
        for field in declared:
            self.written_types.check_field(field.decl.type_expr, decl, field.type, field.name)
        self.types[decl] = kind(decl, args, declared)

    def _enum(self, decl: ast.EnumDecl) -> None:
        self.ctx.unique(decl.members, "member")
        self.ctx.facts.values.update((m, index) for index, m in enumerate(decl.members))
        if decl.underlying_expr is None:
            self.types[decl] = types.Enum(decl)
            return
        underlying = self.written_types.resolve(decl.underlying_expr)
        if not isinstance(underlying, types.Bits):
            if not isinstance(underlying, types.Unknown):
                self.ctx.error(
                    decl.underlying_expr, f"an enum can be represented by bit<> or int<>, not by {underlying}"
                )
            return
        self.types[decl] = types.Enum(decl, underlying)
        for m in decl.members:
            assert m.init is not None
            self.ctx.expressions.expr(m.init)
            value = self.ctx.facts.integer(m.init)
            if value is not None and not fits(value, underlying):
                self.ctx.error(m.init, f"{value} does not fit in {underlying}, which represents {decl.name!r}")
            t = self.conversions.convert(m.init, underlying, f"member {m.name!r}")
            value = self.ctx.facts.integer(m.init)
            if value is not None:
                self.ctx.facts.values[m] = value
            elif not isinstance(t, types.Unknown):
                self.ctx.error(m.init, f"the value of {m.name!r} must be known at compile time")

    def _typedef(self, decl: ast.TypedefDecl) -> None:
        self.types[decl] = self.written_types.resolve(decl.type_expr)
        if isinstance(self.types[decl], (types.Void, types.MatchKind)):
            self.ctx.error(decl.type_expr, f"{self.types[decl]} cannot get another name")

    def _newtype(self, decl: ast.NewTypeDecl) -> None:
        base = self.written_types.resolve(decl.type_expr)
        allowed = (types.Bits, types.Bool, types.NewType, types.Enum, types.Varbit, types.Error)
        if isinstance(base, allowed):
            self.types[decl] = types.NewType(decl, base)
        elif not isinstance(base, types.Unknown):
            self.ctx.error(decl.type_expr, f"'type' can be based on bit<>, int<>, bool and the like, not on {base}")

    def _parameters(self, params: list[ast.Parameter], owner: str, constructor: bool = False) -> None:
        self.ctx.unique(params, "parameter")
        for p in params:
            self.annotations.check(p.annotations)
            self.types[p] = self.written_types.resolve(p.type_expr)
            self._parameter(p, owner, constructor)
            if p.default is not None:
                self._default(p)

    def _parameter(self, p: ast.Parameter, owner: str, constructor: bool) -> None:
        t = self.types[p]
        if isinstance(t, (types.Void, types.MatchKind, types.Set)):
            self.ctx.error(p.type_expr, f"parameter {p.name!r} cannot have type {t}")
        if isinstance(t, (types.Parser, types.Control, types.Package)) and not constructor:
            self.ctx.error(p, f"parameter {p.name!r} cannot have type {t}: only constructor parameters can")
        if p.direction == Direction.NONE:
            return
        if constructor:
            self.ctx.error(p, f"parameter {p.name!r} of {owner} cannot have a direction")
        elif is_object(t):
            self.ctx.error(p, f"parameter {p.name!r} of type {t} cannot have a direction")
        elif isinstance(t, types.String) or (isinstance(t, types.InfInt) and p.direction != Direction.IN):
            self.ctx.error(p, f"parameter {p.name!r} of type {t} cannot be {p.direction.value}")
        elif isinstance(t, types.InfInt):
            self.ctx.error(p, f"parameter {p.name!r} of type int must have no direction: its value is always constant")

    def _default(self, p: ast.Parameter) -> None:
        assert p.default is not None
        self.ctx.expressions.expr(p.default, self.types[p])
        if not is_object(self.types[p]):
            self.conversions.convert(p.default, self.types[p], f"parameter {p.name!r}")
        elif problem := self.arguments.mismatch(self.types[p], self.types[p.default]):
            self.ctx.error(p.default, f"{self.types[p.default]} does not fit {self.types[p]}{problem}")
        if p.direction in (Direction.OUT, Direction.INOUT):
            self.ctx.error(p.default, f"parameter {p.name!r} is {p.direction.value}, so it cannot have a default value")
        elif not self.values.is_constant(p.default):
            self.ctx.error(p.default, f"the default value of parameter {p.name!r} must be known at compile time")

    def _return_type(self, written: ast.TypeExpr, name: str) -> Type:
        t = self.written_types.resolve(written)
        if isinstance(t, (types.Parser, types.Control, types.Package, types.MatchKind, types.Set, types.InfInt)):
            self.ctx.error(written, f"{name!r} cannot return {t}")
        return t

    def _extern_function(self, decl: ast.ExternFunctionDecl) -> None:
        self._type_params(decl.type_params)
        self.types[decl] = self._return_type(decl.returns, decl.name)
        self._parameters(decl.params, repr(decl.name))

    def function(self, decl: ast.FunctionDecl, place: Place) -> None:
        with self.ctx.at(place):
            self._type_params(decl.type_params)
            self.types[decl] = self._return_type(decl.returns, decl.name)
            self._parameters(decl.params, repr(decl.name))
            for p in decl.params:
                if p.optional:
                    self.ctx.error(p, f"parameter {p.name!r} cannot be optional: {decl.name!r} has a body")
                if is_object(self.types[p]) and place == Place.FUNCTION and not isinstance(self.types[p], types.Extern):
                    self.ctx.error(p, f"parameter {p.name!r} of a function cannot have type {self.types[p]}")
            self._body(decl.body, self.types[decl])
            returns = not isinstance(self.types[decl], (types.Void, types.Unknown))
            if returns and not always_returns(decl.body):
                self.ctx.error(decl, f"function {decl.name!r} does not return a value on all paths")

    def _body(self, body: ast.Block, returned: Type | None) -> None:
        outer, self.ctx.return_type = self.ctx.return_type, returned
        loops, self.ctx.loops = self.ctx.loops, 0
        self.statements.block(body)
        self.ctx.return_type, self.ctx.loops = outer, loops

    def _action_decl(self, decl: ast.ActionDecl) -> None:
        with self.ctx.at(Place.ACTION):
            self._parameters(decl.params, f"action {decl.name!r}")
            undirected: ast.Parameter | None = None
            for p in decl.params:
                if is_object(self.types[p]) or isinstance(self.types[p], (types.String, types.InfInt)):
                    self.ctx.error(p, f"parameter {p.name!r} of an action cannot have type {self.types[p]}")
                if p.direction == Direction.NONE:
                    undirected = p
                elif undirected is not None:
                    self.ctx.error(
                        p, f"parameter {p.name!r} has a direction, so it must come before {undirected.name!r}"
                    )
            self._body(decl.body, types.VOID)

    def _extern(self, decl: ast.ExternDecl) -> None:
        self.types[decl] = types.Extern(decl, self._type_params(decl.type_params))
        seen: list[tuple[str, list[str]]] = []
        for m in [*decl.constructors, *decl.methods]:
            self._method(decl, m)
            signature = (m.name, [p.name for p in m.params])
            if signature in seen:
                self.ctx.error(m, f"{m.name!r} is declared twice with the same parameters")
            seen.append(signature)

    def _method(self, decl: ast.ExternDecl, m: ast.Method) -> None:
        self.annotations.check(m.annotations)
        self._type_params(m.type_params)
        if m.returns is not None:
            if m.name == decl.name:
                self.ctx.error(m, f"constructor {m.name!r} cannot have a return type")
            self.types[m] = self._return_type(m.returns, m.name)
        self._parameters(m.params, f"constructor {m.name!r}", m.returns is None)
        for p in m.params:
            if isinstance(self.types[p], (types.Parser, types.Control, types.Package)) and m.returns is None:
                self.ctx.error(p, f"parameter {p.name!r} of an extern cannot have type {self.types[p]}")
            elif self.types[p] == self.types[decl]:
                self.ctx.error(p, f"extern {decl.name!r} cannot have a parameter of its own type")

    def _package(self, decl: ast.PackageDecl) -> None:
        self.types[decl] = types.Package(decl, self._type_params(decl.type_params))
        self._parameters(decl.params, f"package {decl.name!r}", True)

    def _parser_type(self, decl: ast.ParserTypeDecl) -> None:
        self.types[decl] = types.Parser(decl, self._type_params(decl.type_params))
        self._parameters(decl.params, f"parser {decl.name!r}")

    def _control_type(self, decl: ast.ControlTypeDecl) -> None:
        self.types[decl] = types.Control(decl, self._type_params(decl.type_params))
        self._parameters(decl.params, f"control {decl.name!r}")

    def _container(self, decl: ast.ParserDecl | ast.ControlDecl) -> None:
        kind = "parser" if isinstance(decl, ast.ParserDecl) else "control"
        parser = kind == "parser"
        self.ctx.owner = decl
        with self.ctx.at(Place.PARSER_LOCAL if parser else Place.CONTROL_LOCAL):
            args = self._type_params(decl.type_params)
            self._parameters(decl.params, f"{kind} {decl.name!r}")
            self._parameters(decl.ctor_params, f"the constructor of {decl.name!r}", True)
            self._container_params(decl, parser)
            known = types.Parser(decl, args) if isinstance(decl, ast.ParserDecl) else types.Control(decl, args)
            self.types[decl] = known
            for local in decl.locals:
                self.declaration(local)
            if isinstance(decl, ast.ParserDecl):
                self.parsers.parser(decl)
            else:
                with self.ctx.at(Place.CONTROL):
                    self._body(decl.body, types.VOID)
        self.ctx.owner = None

    def _container_params(self, decl: ast.ParserDecl | ast.ControlDecl, parser: bool) -> None:
        taken = {p.name for p in decl.type_params}
        for p in [*decl.params, *decl.ctor_params]:
            if p.name in taken:
                self.ctx.error(p, f"duplicate parameter {p.name!r}")
            taken.add(p.name)
        for p in decl.ctor_params:
            if p.optional:
                self.ctx.error(p, f"parameter {p.name!r} cannot be optional: {decl.name!r} has a body")
            if isinstance(getattr(self.types[p], "decl", None), (ast.ParserDecl, ast.ControlDecl)):
                self.ctx.error(p, f"parameter {p.name!r} cannot have type {self.types[p]}, which has a body")
            elif isinstance(self.types[p], types.Parser) and not parser:
                self.ctx.error(p, f"parameter {p.name!r}: a control cannot contain a parser")
            elif isinstance(self.types[p], types.Control) and parser:
                self.ctx.error(p, f"parameter {p.name!r}: a parser cannot contain a control")
