"""Declarations, from the first of the program to its `main`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from p4switch.bits.domain import fits
from p4switch.compiler import ast, types
from p4switch.compiler.ast import Direction
from p4switch.compiler.semantics.places import Place
from p4switch.compiler.semantics.statements import always_returns
from p4switch.compiler.semantics.written_types import is_object
from p4switch.compiler.types import Type

if TYPE_CHECKING:
    from p4switch.compiler.semantics.context import Checking


class Declarations:
    def __init__(self, ctx: Checking) -> None:
        self.ctx = ctx
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
            ast.FunctionDecl: self._function,
            ast.ActionDecl: self._action_decl,
            ast.ConstDecl: self.ctx.statements.constant,
            ast.VarDecl: self.ctx.statements.variable,
            ast.Instantiation: self.ctx.instances.declare,
            ast.PackageDecl: self._package,
            ast.ParserTypeDecl: self._parser_type,
            ast.ControlTypeDecl: self._control_type,
            ast.ParserDecl: self._parser,
            ast.ControlDecl: self._control,
            ast.ValueSetDecl: self.ctx.parsers.value_set,
            ast.TableDecl: self.ctx.tables.table,
        }

    def run(self) -> None:
        """Check the whole program; errors go to the reporter."""
        for decl in list(self.ctx.program.declarations):
            self.declaration(decl)
        main = self.ctx.lookup("main")
        if main and not isinstance(main[0], (ast.Instantiation, ast.FunctionDecl)):
            self.ctx.error(main[0], "'main' must be the instance of a package")
        elif main and isinstance(main[0], ast.Instantiation):
            self.ctx.program.main = main[0]
            if not isinstance(main[0].type, (types.Package, types.Unknown)):
                self.ctx.error(main[0], f"'main' must be a package, not {main[0].type}")

    def declaration(self, decl: ast.Node) -> None:
        self._declarations[type(decl)](decl)

    def _type_params(self, params: list[ast.TypeParam]) -> tuple[Type, ...]:
        for p in params:
            if self.ctx.lookup(p.name) and p.name in self.ctx.scopes[-1]:
                self.ctx.error(p, f"duplicate type parameter {p.name!r}")
            self.ctx.declare(p)
        return tuple(types.TypeVar(p) for p in params)

    def _errors(self, decl: ast.ErrorDecl) -> None:
        for m in decl.members:
            if m.name in self.ctx.program.errors:
                self.ctx.duplicate(m, self.ctx.program.errors[m.name])
                continue
            m.value = len(self.ctx.program.errors)
            self.ctx.program.errors[m.name] = m

    def _match_kinds(self, decl: ast.MatchKindDecl) -> None:
        for m in decl.members:
            if m.name in self.ctx.program.match_kinds:
                self.ctx.duplicate(m, self.ctx.program.match_kinds[m.name])
            else:
                self.ctx.program.match_kinds[m.name] = m

    def _record(self, decl: ast.RecordDecl) -> None:
        self.ctx.annotations.check(decl.annotations)
        kind = {ast.StructDecl: types.Struct, ast.HeaderDecl: types.Header, ast.UnionDecl: types.Union}[type(decl)]
        with self.ctx.scope():
            args = self._type_params(decl.type_params)
            self.ctx.unique(decl.fields, "field")
            for f in decl.fields:
                self.ctx.annotations.check(f.annotations)
                f.type = self.ctx.written_types.resolve(f.type_expr)
            total = sum(self.ctx.written_types.parts(f.type) for f in decl.fields)
            if not self.ctx.written_types.small_enough(decl, total):
                decl.fields.clear()
            for f in decl.fields:
                self.ctx.written_types.check_field(f.type_expr, decl, f.type, f.name)
        decl.type = kind(decl, args)
        self.ctx.declare(decl)

    def _enum(self, decl: ast.EnumDecl) -> None:
        self.ctx.annotations.check(decl.annotations)
        self.ctx.unique(decl.members, "member")
        if decl.underlying_expr is None:
            decl.type = types.Enum(decl)
            self.ctx.declare(decl)
            return
        underlying = self.ctx.written_types.resolve(decl.underlying_expr)
        if not isinstance(underlying, types.Bits):
            if not isinstance(underlying, types.Unknown):
                self.ctx.error(
                    decl.underlying_expr, f"an enum can be represented by bit<> or int<>, not by {underlying}"
                )
            self.ctx.declare(decl)
            return
        decl.type = types.Enum(decl, underlying)
        with self.ctx.scope():
            for m in decl.members:
                assert m.init is not None
                m.init = self.ctx.expressions.expr(m.init)
                if isinstance(m.init, ast.IntLiteral) and not fits(m.init.value, underlying):
                    self.ctx.error(
                        m.init, f"{m.init.value} does not fit in {underlying}, which represents {decl.name!r}"
                    )
                m.init = self.ctx.conversions.convert(m.init, underlying, f"member {m.name!r}")
                if isinstance(m.init, ast.IntLiteral):
                    m.value = m.init.value
                elif not isinstance(m.init.type, types.Unknown):
                    self.ctx.error(m.init, f"the value of {m.name!r} must be known at compile time")
                if m.name not in self.ctx.scopes[-1]:
                    self.ctx.declare(m)
        self.ctx.declare(decl)

    def _typedef(self, decl: ast.TypedefDecl) -> None:
        self.ctx.annotations.check(decl.annotations)
        decl.type = self.ctx.written_types.resolve(decl.type_expr)
        if isinstance(decl.type, (types.Void, types.MatchKind)):
            self.ctx.error(decl.type_expr, f"{decl.type} cannot get another name")
        self.ctx.declare(decl)

    def _newtype(self, decl: ast.NewTypeDecl) -> None:
        self.ctx.annotations.check(decl.annotations)
        base = self.ctx.written_types.resolve(decl.type_expr)
        allowed = (types.Bits, types.Bool, types.NewType, types.Enum, types.Varbit, types.Error)
        if isinstance(base, allowed):
            decl.type = types.NewType(decl, base)
        elif not isinstance(base, types.Unknown):
            self.ctx.error(decl.type_expr, f"'type' can be based on bit<>, int<>, bool and the like, not on {base}")
        self.ctx.declare(decl)

    def _parameters(self, params: list[ast.Parameter], owner: str, constructor: bool = False) -> None:
        """Resolve the parameters and declare them in the current scope."""
        self.ctx.unique(params, "parameter")
        for p in params:
            self.ctx.annotations.check(p.annotations)
            p.type = self.ctx.written_types.resolve(p.type_expr)
            self._parameter(p, owner, constructor)
            if p.default is not None:
                self._default(p)
            if p.name not in self.ctx.scopes[-1]:
                self.ctx.declare(p)

    def _parameter(self, p: ast.Parameter, owner: str, constructor: bool) -> None:
        t = p.type
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
        p.default = self.ctx.expressions.expr(p.default, p.type)
        if not is_object(p.type):
            p.default = self.ctx.conversions.convert(p.default, p.type, f"parameter {p.name!r}")
        elif problem := self.ctx.arguments.mismatch(p.type, p.default.type):
            self.ctx.error(p.default, f"{p.default.type} does not fit {p.type}{problem}")
        if p.direction in (Direction.OUT, Direction.INOUT):
            self.ctx.error(p.default, f"parameter {p.name!r} is {p.direction.value}, so it cannot have a default value")
        elif not self.ctx.values.is_constant(p.default):
            self.ctx.error(p.default, f"the default value of parameter {p.name!r} must be known at compile time")

    def _return_type(self, written: ast.TypeExpr, name: str) -> Type:
        t = self.ctx.written_types.resolve(written)
        if isinstance(t, (types.Parser, types.Control, types.Package, types.MatchKind, types.Set, types.InfInt)):
            self.ctx.error(written, f"{name!r} cannot return {t}")
        return t

    def _extern_function(self, decl: ast.ExternFunctionDecl) -> None:
        self.ctx.annotations.check(decl.annotations)
        with self.ctx.scope():
            self._type_params(decl.type_params)
            decl.return_type = self._return_type(decl.returns, decl.name)
            self._parameters(decl.params, repr(decl.name))
        self.ctx.declare(decl)

    def _function(self, decl: ast.FunctionDecl) -> None:
        self.function_body(decl, Place.FUNCTION)
        self.ctx.declare(decl)

    def function_body(self, decl: ast.FunctionDecl, place: Place) -> None:
        self.ctx.annotations.check(decl.annotations)
        with self.ctx.scope(), self.ctx.at(place):
            self._type_params(decl.type_params)
            decl.return_type = self._return_type(decl.returns, decl.name)
            self._parameters(decl.params, repr(decl.name))
            for p in decl.params:
                if p.optional:
                    self.ctx.error(p, f"parameter {p.name!r} cannot be optional: {decl.name!r} has a body")
                if is_object(p.type) and place == Place.FUNCTION and not isinstance(p.type, types.Extern):
                    self.ctx.error(p, f"parameter {p.name!r} of a function cannot have type {p.type}")
            self._body(decl.body, decl.return_type)
            returns = not isinstance(decl.return_type, (types.Void, types.Unknown))
            if returns and not always_returns(decl.body):
                self.ctx.error(decl, f"function {decl.name!r} does not return a value on all paths")

    def _body(self, body: ast.Block, returned: Type | None) -> None:
        outer, self.ctx.return_type = self.ctx.return_type, returned
        loops, self.ctx.loops = self.ctx.loops, 0
        self.ctx.statements.block(body)
        self.ctx.return_type, self.ctx.loops = outer, loops

    def _action_decl(self, decl: ast.ActionDecl) -> None:
        self.ctx.annotations.check(decl.annotations)
        with self.ctx.scope(), self.ctx.at(Place.ACTION):
            self._parameters(decl.params, f"action {decl.name!r}")
            undirected: ast.Parameter | None = None
            for p in decl.params:
                if is_object(p.type) or isinstance(p.type, (types.String, types.InfInt)):
                    self.ctx.error(p, f"parameter {p.name!r} of an action cannot have type {p.type}")
                if p.direction == Direction.NONE:
                    undirected = p
                elif undirected is not None:
                    self.ctx.error(
                        p, f"parameter {p.name!r} has a direction, so it must come before {undirected.name!r}"
                    )
            self._body(decl.body, types.VOID)
        self.ctx.declare(decl)

    def _extern(self, decl: ast.ExternDecl) -> None:
        self.ctx.annotations.check(decl.annotations)
        with self.ctx.scope():
            decl.type = types.Extern(decl, self._type_params(decl.type_params))
        self.ctx.declare(decl)
        with self.ctx.scope():
            for type_param in decl.type_params:
                self.ctx.declare(type_param)
            seen: list[tuple[str, list[str]]] = []
            for m in [*decl.constructors, *decl.methods]:
                self._method(decl, m)
                signature = (m.name, [p.name for p in m.params])
                if signature in seen:
                    self.ctx.error(m, f"{m.name!r} is declared twice with the same parameters")
                seen.append(signature)

    def _method(self, decl: ast.ExternDecl, m: ast.Method) -> None:
        self.ctx.annotations.check(m.annotations)
        with self.ctx.scope():
            self._type_params(m.type_params)
            if m.returns is not None:
                if m.name == decl.name:
                    self.ctx.error(m, f"constructor {m.name!r} cannot have a return type")
                m.return_type = self._return_type(m.returns, m.name)
            self._parameters(m.params, f"constructor {m.name!r}", m.returns is None)
            for p in m.params:
                if isinstance(p.type, (types.Parser, types.Control, types.Package)) and m.returns is None:
                    self.ctx.error(p, f"parameter {p.name!r} of an extern cannot have type {p.type}")
                elif isinstance(p.type, types.Extern) and p.type.decl is decl:
                    self.ctx.error(p, f"extern {decl.name!r} cannot have a parameter of its own type")

    def _package(self, decl: ast.PackageDecl) -> None:
        self.ctx.annotations.check(decl.annotations)
        with self.ctx.scope():
            decl.type = types.Package(decl, self._type_params(decl.type_params))
            self._parameters(decl.params, f"package {decl.name!r}", True)
        self.ctx.declare(decl)

    def _parser_type(self, decl: ast.ParserTypeDecl) -> None:
        self.ctx.annotations.check(decl.annotations)
        with self.ctx.scope():
            decl.type = types.Parser(decl, self._type_params(decl.type_params))
            self._parameters(decl.params, f"parser {decl.name!r}")
        self.ctx.declare(decl)

    def _control_type(self, decl: ast.ControlTypeDecl) -> None:
        self.ctx.annotations.check(decl.annotations)
        with self.ctx.scope():
            decl.type = types.Control(decl, self._type_params(decl.type_params))
            self._parameters(decl.params, f"control {decl.name!r}")
        self.ctx.declare(decl)

    def _parser(self, decl: ast.ParserDecl) -> None:
        self._container(decl, types.Parser(decl, tuple(types.TypeVar(p) for p in decl.type_params)))

    def _control(self, decl: ast.ControlDecl) -> None:
        self._container(decl, types.Control(decl, tuple(types.TypeVar(p) for p in decl.type_params)))

    def _container(self, decl: ast.ParserDecl | ast.ControlDecl, t: types.Parser | types.Control) -> None:
        self.ctx.annotations.check(decl.annotations)
        kind = "parser" if isinstance(decl, ast.ParserDecl) else "control"
        parser = kind == "parser"
        self.ctx.owner = decl
        with self.ctx.scope(), self.ctx.at(Place.PARSER_LOCAL if parser else Place.CONTROL_LOCAL):
            self._type_params(decl.type_params)
            self._parameters(decl.params, f"{kind} {decl.name!r}")
            self._parameters(decl.ctor_params, f"the constructor of {decl.name!r}", True)
            self._container_params(decl, parser)
            decl.type = t
            self.ctx.locals = decl.locals
            with self.ctx.scope():
                for local in list(decl.locals):
                    self.declaration(local)
                if isinstance(decl, ast.ParserDecl):
                    self.ctx.parsers.states(decl)
                else:
                    with self.ctx.at(Place.CONTROL):
                        self._body(decl.body, types.VOID)
        self.ctx.owner = None
        self.ctx.declare(decl)

    def _container_params(self, decl: ast.ParserDecl | ast.ControlDecl, parser: bool) -> None:
        taken = {p.name for p in decl.type_params}
        for p in [*decl.params, *decl.ctor_params]:
            if p.name in taken:
                self.ctx.error(p, f"duplicate parameter {p.name!r}")
            taken.add(p.name)
        for p in decl.ctor_params:
            if p.optional:
                self.ctx.error(p, f"parameter {p.name!r} cannot be optional: {decl.name!r} has a body")
            if isinstance(getattr(p.type, "decl", None), (ast.ParserDecl, ast.ControlDecl)):
                self.ctx.error(p, f"parameter {p.name!r} cannot have type {p.type}, which has a body")
            elif isinstance(p.type, types.Parser) and not parser:
                self.ctx.error(p, f"parameter {p.name!r}: a control cannot contain a parser")
            elif isinstance(p.type, types.Control) and parser:
                self.ctx.error(p, f"parameter {p.name!r}: a parser cannot contain a control")
