"""The checker: declarations. See `ast` for what it leaves in the tree."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from p4switch.bits.domain import fits
from p4switch.compiler import ast, types
from p4switch.compiler.ast import Direction
from p4switch.compiler.check_base import MAX_INT32, MAX_INT64, Place
from p4switch.compiler.check_parsers import ParserChecker
from p4switch.compiler.check_statements import always_returns
from p4switch.compiler.check_types import is_object
from p4switch.compiler.diagnostics import CompileError, Reporter
from p4switch.compiler.types import Type

NUMBERS = {"id": (1 << 32) - 1, "max_group_size": MAX_INT32, "max_member_weight": MAX_INT32}
"""Annotations that are a number, and what it may be at most."""


class Checker(ParserChecker):
    def __init__(self, program: ast.Program, reporter: Reporter) -> None:
        super().__init__(program, reporter)
        self._parts: dict[Type, int] = {}
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
            ast.ConstDecl: self.constant,
            ast.VarDecl: self.variable,
            ast.Instantiation: self._instantiation,
            ast.PackageDecl: self._package,
            ast.ParserTypeDecl: self._parser_type,
            ast.ControlTypeDecl: self._control_type,
            ast.ParserDecl: self._parser,
            ast.ControlDecl: self._control,
            ast.ValueSetDecl: self.value_set,
            ast.TableDecl: self.table,
        }

    def check(self) -> None:
        """Check the whole program; errors go to the reporter."""
        for decl in list(self.program.declarations):
            self.declaration(decl)
        main = self.lookup("main")
        if main and not isinstance(main[0], (ast.Instantiation, ast.FunctionDecl)):
            self.error(main[0], "'main' must be the instance of a package")
        elif main and isinstance(main[0], ast.Instantiation):
            self.program.main = main[0]
            if not isinstance(main[0].type, (types.Package, types.Unknown)):
                self.error(main[0], f"'main' must be a package, not {main[0].type}")

    def declaration(self, decl: ast.Node) -> None:
        self._declarations[type(decl)](decl)

    # Annotations

    def annotations(self, annotations: Sequence[ast.Annotation]) -> None:
        for a in annotations:
            if a.structured:
                self._structured(a)
            elif a.args:
                self._unstructured(a)
            if a.name in ("name", "deprecated", "noWarn") and not a.structured and a.string is None:
                self.error(a, f"annotation @{a.name} needs one string")
            elif a.name == "match" and not a.structured:
                if not a.args or len(a.args) != 1 or not isinstance(a.args[0].type, types.MatchKind):
                    self.error(a, "annotation @match needs the name of a match kind")
            elif a.name == "p4runtime_translation" and not a.structured:
                self._translation(a)
            elif a.name == "platform_property":
                self._platform_property(a)
            elif a.name in NUMBERS and a.args:
                number = a.args[0].value if isinstance(a.args[0], ast.IntLiteral) else -1
                if not 0 <= number <= NUMBERS[a.name]:
                    self.error(a, f"annotation @{a.name} needs a number from 0 to {NUMBERS[a.name]}")
        structured = [a.name for a in annotations if a.structured]
        for a in annotations:
            if a.name in structured and not (a.structured and structured.count(a.name) == 1 and a is annotations[0]):
                others = [b for b in annotations if b.name == a.name]
                if len(others) > 1 and a is others[-1]:
                    self.error(a, f"annotation @{a.name} is given twice, and one is structured")

    def _translation(self, a: ast.Annotation) -> None:
        """`(uri, string)`, `(uri, bit<W>)` or `(uri, W)`."""
        kind = a.tokens[2:]
        if len(kind) == 4 and kind[:2] == ["bit", "<"]:
            kind = kind[2:3]
        sized = len(kind) == 1 and kind[0].isdigit() and len(kind[0]) < 10
        if a.tokens[1:2] != [","] or not (sized or kind == ["string"]):
            self.error(a, "annotation @p4runtime_translation needs a string and then 'string' or 'bit<W>'")

    def _platform_property(self, a: ast.Annotation) -> None:
        for key, text in a.key_values():
            try:
                fits = 0 <= int(text, 0) <= MAX_INT32
            except ValueError:
                fits = False
            if not fits:
                self.error(a, f"{key} is {text!r}: a whole number below 2147483648 is expected")

    def _structured(self, a: ast.Annotation) -> None:
        if a.args is not None:
            a.args = [self._annotation_value(x) for x in a.args]
        if a.pairs is not None:
            a.pairs = {k: self._annotation_value(x) for k, x in a.pairs.items()}

    def _annotation_value(self, e: ast.Expr) -> ast.Expr:
        e = self.expr(e)
        literal = (ast.IntLiteral, ast.BoolLiteral, ast.StringLiteral)
        if not isinstance(e, literal) and not isinstance(e.type, types.Unknown):
            self.error(e, "the value in an annotation must be an integer, string or bool known at compile time")
        if isinstance(e, ast.IntLiteral) and not -MAX_INT64 - 1 <= e.value <= MAX_INT64:
            self.error(e, "the value in an annotation must fit into 64 bits")
        return e

    def _unstructured(self, a: ast.Annotation) -> None:
        """Fold the arguments, if they mean anything (an annotation's text is free)."""
        assert a.args is not None
        if all(isinstance(x, (ast.StringLiteral, ast.IntLiteral, ast.BoolLiteral)) for x in a.args):
            a.args = [self.expr(x) for x in a.args]
            return
        shown, self.reporter = self.reporter, Reporter(self.program.source)
        try:
            folded = [self.expr(x) for x in a.args]
        except CompileError:
            folded = []
        if not self.reporter.failed and folded:
            a.args = folded
        self.reporter = shown

    # Types

    def _type_params(self, params: list[ast.TypeParam]) -> tuple[Type, ...]:
        for p in params:
            if self.lookup(p.name) and p.name in self.scopes[-1]:
                self.error(p, f"duplicate type parameter {p.name!r}")
            self.declare(p)
        return tuple(types.TypeVar(p) for p in params)

    def _errors(self, decl: ast.ErrorDecl) -> None:
        for m in decl.members:
            if m.name in self.program.errors:
                self.duplicate(m, self.program.errors[m.name])
                continue
            m.value = len(self.program.errors)
            self.program.errors[m.name] = m

    def _match_kinds(self, decl: ast.MatchKindDecl) -> None:
        for m in decl.members:
            if m.name in self.program.match_kinds:
                self.duplicate(m, self.program.match_kinds[m.name])
            else:
                self.program.match_kinds[m.name] = m

    def _record(self, decl: ast.RecordDecl) -> None:
        self.annotations(decl.annotations)
        kind = {ast.StructDecl: types.Struct, ast.HeaderDecl: types.Header, ast.UnionDecl: types.Union}[type(decl)]
        with self.scope():
            args = self._type_params(decl.type_params)
            self.unique(decl.fields, "field")
            for f in decl.fields:
                self.annotations(f.annotations)
                f.type = self.resolve(f.type_expr)
            total = sum(self.parts(f.type) for f in decl.fields)
            if not self.small_enough(decl, total):
                decl.fields.clear()
            for f in decl.fields:
                self.check_field(f.type_expr, decl, f.type, f.name)
        decl.type = kind(decl, args)
        self.declare(decl)

    def _enum(self, decl: ast.EnumDecl) -> None:
        self.annotations(decl.annotations)
        self.unique(decl.members, "member")
        if decl.underlying_expr is None:
            decl.type = types.Enum(decl)
            self.declare(decl)
            return
        underlying = self.resolve(decl.underlying_expr)
        if not isinstance(underlying, types.Bits):
            if not isinstance(underlying, types.Unknown):
                self.error(decl.underlying_expr, f"an enum can be represented by bit<> or int<>, not by {underlying}")
            self.declare(decl)
            return
        decl.type = types.Enum(decl, underlying)
        with self.scope():
            for m in decl.members:
                assert m.init is not None
                m.init = self.expr(m.init)
                if isinstance(m.init, ast.IntLiteral) and not fits(m.init.value, underlying):
                    self.error(m.init, f"{m.init.value} does not fit in {underlying}, which represents {decl.name!r}")
                m.init = self.convert(m.init, underlying, f"member {m.name!r}")
                if isinstance(m.init, ast.IntLiteral):
                    m.value = m.init.value
                elif not isinstance(m.init.type, types.Unknown):
                    self.error(m.init, f"the value of {m.name!r} must be known at compile time")
                if m.name not in self.scopes[-1]:
                    self.declare(m)
        self.declare(decl)

    def _typedef(self, decl: ast.TypedefDecl) -> None:
        self.annotations(decl.annotations)
        decl.type = self.resolve(decl.type_expr)
        if isinstance(decl.type, (types.Void, types.MatchKind)):
            self.error(decl.type_expr, f"{decl.type} cannot get another name")
        self.declare(decl)

    def _newtype(self, decl: ast.NewTypeDecl) -> None:
        self.annotations(decl.annotations)
        base = self.resolve(decl.type_expr)
        allowed = (types.Bits, types.Bool, types.NewType, types.Enum, types.Varbit, types.Error)
        if isinstance(base, allowed):
            decl.type = types.NewType(decl, base)
        elif not isinstance(base, types.Unknown):
            self.error(decl.type_expr, f"'type' can be based on bit<>, int<>, bool and the like, not on {base}")
        self.declare(decl)

    # Parameters

    def _parameters(self, params: list[ast.Parameter], owner: str, constructor: bool = False) -> None:
        """Resolve the parameters and declare them in the current scope."""
        self.unique(params, "parameter")
        for p in params:
            self.annotations(p.annotations)
            p.type = self.resolve(p.type_expr)
            self._parameter(p, owner, constructor)
            if p.default is not None:
                self._default(p)
            if p.name not in self.scopes[-1]:
                self.declare(p)

    def _parameter(self, p: ast.Parameter, owner: str, constructor: bool) -> None:
        t = p.type
        if isinstance(t, (types.Void, types.MatchKind, types.Set)):
            self.error(p.type_expr, f"parameter {p.name!r} cannot have type {t}")
        if isinstance(t, (types.Parser, types.Control, types.Package)) and not constructor:
            self.error(p, f"parameter {p.name!r} cannot have type {t}: only constructor parameters can")
        if p.direction == Direction.NONE:
            return
        if constructor:
            self.error(p, f"parameter {p.name!r} of {owner} cannot have a direction")
        elif is_object(t):
            self.error(p, f"parameter {p.name!r} of type {t} cannot have a direction")
        elif isinstance(t, types.String) or (isinstance(t, types.InfInt) and p.direction != Direction.IN):
            self.error(p, f"parameter {p.name!r} of type {t} cannot be {p.direction.value}")
        elif isinstance(t, types.InfInt):
            self.error(p, f"parameter {p.name!r} of type int must have no direction: its value is always constant")

    def _default(self, p: ast.Parameter) -> None:
        assert p.default is not None
        p.default = self.expr(p.default, p.type)
        if not is_object(p.type):
            p.default = self.convert(p.default, p.type, f"parameter {p.name!r}")
        elif problem := self.mismatch(p.type, p.default.type):
            self.error(p.default, f"{p.default.type} does not fit {p.type}{problem}")
        if p.direction in (Direction.OUT, Direction.INOUT):
            self.error(p.default, f"parameter {p.name!r} is {p.direction.value}, so it cannot have a default value")
        elif not self.is_constant(p.default):
            self.error(p.default, f"the default value of parameter {p.name!r} must be known at compile time")

    # Functions, actions, externs

    def _return_type(self, written: ast.TypeExpr, name: str) -> Type:
        t = self.resolve(written)
        if isinstance(t, (types.Parser, types.Control, types.Package, types.MatchKind, types.Set, types.InfInt)):
            self.error(written, f"{name!r} cannot return {t}")
        return t

    def _extern_function(self, decl: ast.ExternFunctionDecl) -> None:
        self.annotations(decl.annotations)
        with self.scope():
            self._type_params(decl.type_params)
            decl.return_type = self._return_type(decl.returns, decl.name)
            self._parameters(decl.params, repr(decl.name))
        self.declare(decl)

    def _function(self, decl: ast.FunctionDecl) -> None:
        self._function_body(decl, Place.FUNCTION)
        self.declare(decl)

    def _function_body(self, decl: ast.FunctionDecl, place: Place) -> None:
        self.annotations(decl.annotations)
        with self.scope(), self.at(place):
            self._type_params(decl.type_params)
            decl.return_type = self._return_type(decl.returns, decl.name)
            self._parameters(decl.params, repr(decl.name))
            for p in decl.params:
                if p.optional:
                    self.error(p, f"parameter {p.name!r} cannot be optional: {decl.name!r} has a body")
                if is_object(p.type) and place == Place.FUNCTION and not isinstance(p.type, types.Extern):
                    self.error(p, f"parameter {p.name!r} of a function cannot have type {p.type}")
            self._body(decl.body, decl.return_type)
            returns = not isinstance(decl.return_type, (types.Void, types.Unknown))
            if returns and not always_returns(decl.body):
                self.error(decl, f"function {decl.name!r} does not return a value on all paths")

    def _body(self, body: ast.Block, returned: Type | None) -> None:
        outer, self.return_type = self.return_type, returned
        loops, self.loops = self.loops, 0
        self.block(body)
        self.return_type, self.loops = outer, loops

    def _action_decl(self, decl: ast.ActionDecl) -> None:
        self.annotations(decl.annotations)
        with self.scope(), self.at(Place.ACTION):
            self._parameters(decl.params, f"action {decl.name!r}")
            undirected: ast.Parameter | None = None
            for p in decl.params:
                if is_object(p.type) or isinstance(p.type, (types.String, types.InfInt)):
                    self.error(p, f"parameter {p.name!r} of an action cannot have type {p.type}")
                if p.direction == Direction.NONE:
                    undirected = p
                elif undirected is not None:
                    self.error(p, f"parameter {p.name!r} has a direction, so it must come before {undirected.name!r}")
            self._body(decl.body, types.VOID)
        self.declare(decl)

    def _extern(self, decl: ast.ExternDecl) -> None:
        self.annotations(decl.annotations)
        with self.scope():
            decl.type = types.Extern(decl, self._type_params(decl.type_params))
        self.declare(decl)
        with self.scope():
            for type_param in decl.type_params:
                self.declare(type_param)
            seen: list[tuple[str, list[str]]] = []
            for m in [*decl.constructors, *decl.methods]:
                self._method(decl, m)
                signature = (m.name, [p.name for p in m.params])
                if signature in seen:
                    self.error(m, f"{m.name!r} is declared twice with the same parameters")
                seen.append(signature)

    def _method(self, decl: ast.ExternDecl, m: ast.Method) -> None:
        self.annotations(m.annotations)
        with self.scope():
            self._type_params(m.type_params)
            if m.returns is not None:
                if m.name == decl.name:
                    self.error(m, f"constructor {m.name!r} cannot have a return type")
                m.return_type = self._return_type(m.returns, m.name)
            self._parameters(m.params, f"constructor {m.name!r}", m.returns is None)
            for p in m.params:
                if isinstance(p.type, (types.Parser, types.Control, types.Package)) and m.returns is None:
                    self.error(p, f"parameter {p.name!r} of an extern cannot have type {p.type}")
                elif isinstance(p.type, types.Extern) and p.type.decl is decl:
                    self.error(p, f"extern {decl.name!r} cannot have a parameter of its own type")

    # Packages, parsers, controls

    def _package(self, decl: ast.PackageDecl) -> None:
        self.annotations(decl.annotations)
        with self.scope():
            decl.type = types.Package(decl, self._type_params(decl.type_params))
            self._parameters(decl.params, f"package {decl.name!r}", True)
        self.declare(decl)

    def _parser_type(self, decl: ast.ParserTypeDecl) -> None:
        self.annotations(decl.annotations)
        with self.scope():
            decl.type = types.Parser(decl, self._type_params(decl.type_params))
            self._parameters(decl.params, f"parser {decl.name!r}")
        self.declare(decl)

    def _control_type(self, decl: ast.ControlTypeDecl) -> None:
        self.annotations(decl.annotations)
        with self.scope():
            decl.type = types.Control(decl, self._type_params(decl.type_params))
            self._parameters(decl.params, f"control {decl.name!r}")
        self.declare(decl)

    def _parser(self, decl: ast.ParserDecl) -> None:
        self._container(decl, types.Parser(decl, tuple(types.TypeVar(p) for p in decl.type_params)))

    def _control(self, decl: ast.ControlDecl) -> None:
        self._container(decl, types.Control(decl, tuple(types.TypeVar(p) for p in decl.type_params)))

    def _container(self, decl: ast.ParserDecl | ast.ControlDecl, t: types.Parser | types.Control) -> None:
        self.annotations(decl.annotations)
        kind = "parser" if isinstance(decl, ast.ParserDecl) else "control"
        parser = kind == "parser"
        self.owner = decl
        with self.scope(), self.at(Place.PARSER_LOCAL if parser else Place.CONTROL_LOCAL):
            self._type_params(decl.type_params)
            self._parameters(decl.params, f"{kind} {decl.name!r}")
            self._parameters(decl.ctor_params, f"the constructor of {decl.name!r}", True)
            self._container_params(decl, parser)
            decl.type = t
            self.locals = decl.locals
            with self.scope():
                for local in list(decl.locals):
                    self.declaration(local)
                if isinstance(decl, ast.ParserDecl):
                    self.states(decl)
                else:
                    with self.at(Place.CONTROL):
                        self._body(decl.body, types.VOID)
        self.owner = None
        self.declare(decl)

    def _container_params(self, decl: ast.ParserDecl | ast.ControlDecl, parser: bool) -> None:
        taken = {p.name for p in decl.type_params}
        for p in [*decl.params, *decl.ctor_params]:
            if p.name in taken:
                self.error(p, f"duplicate parameter {p.name!r}")
            taken.add(p.name)
        for p in decl.ctor_params:
            if p.optional:
                self.error(p, f"parameter {p.name!r} cannot be optional: {decl.name!r} has a body")
            if isinstance(getattr(p.type, "decl", None), (ast.ParserDecl, ast.ControlDecl)):
                self.error(p, f"parameter {p.name!r} cannot have type {p.type}, which has a body")
            elif isinstance(p.type, types.Parser) and not parser:
                self.error(p, f"parameter {p.name!r}: a control cannot contain a parser")
            elif isinstance(p.type, types.Control) and parser:
                self.error(p, f"parameter {p.name!r}: a parser cannot contain a control")

    # Instances

    def _instantiation(self, decl: ast.Instantiation) -> None:
        self.annotations(decl.annotations)
        t = self.resolve(decl.type_expr, infer=True)
        if isinstance(t, types.Unknown):
            self.check_values(decl.args)
        elif not is_object(t):
            self.error(decl.type_expr, f"{t} has no constructor")
        else:
            self._instance_place(decl, t)
            found = self.instantiate(decl.type_expr, decl.type_expr, t, decl.args, None)
            if found is not None:
                decl.type, decl.ctor, decl.params, decl.bound = found
                self._abstract_methods(decl)
        self.declare(decl)

    def _instance_place(self, decl: ast.Instantiation, t: Type) -> None:
        here = self.place
        wrong = (
            (isinstance(t, types.Package) and here != Place.TOP)
            or (isinstance(t, types.Parser) and here != Place.PARSER_LOCAL)
            or (isinstance(t, types.Control) and here != Place.CONTROL_LOCAL)
        )
        if wrong:
            self.error(decl, f"an instance of {t} cannot be made in {here.value}")

    def _abstract_methods(self, decl: ast.Instantiation) -> None:
        t = decl.type
        if not isinstance(t, types.Extern):
            if decl.methods or decl.instances:
                self.error(decl, f"{t} has no abstract methods")
            return
        abstract = {(m.name, len(m.params)): m for m in t.decl.methods if m.abstract}
        if (decl.methods or decl.instances) and not abstract:
            self.error(decl, f"{t} has no abstract methods")
            return
        given: set[tuple[str, int]] = set()
        with self.scope():
            this = ast.Instantiation(decl.pos, "this", decl.type_expr, [], type=t)
            self.declare(this)
            for instance in decl.instances:
                self._instantiation(instance)
            for f in decl.methods:
                self._function_body(f, Place.METHOD)
                key = (f.name, len(f.params))
                m = abstract.get(key)
                if m is None:
                    self.error(f, f"{t} has no abstract method {f.name!r}")
                    continue
                if key in given:
                    self.error(f, f"method {f.name!r} is implemented twice")
                given.add(key)
                self._same_signature(f, m, t)
        missing = [key for key in abstract if key not in given]
        if missing:
            self.error(decl, f"abstract method {missing[0][0]!r} of {t} is not implemented")

    def _same_signature(self, f: ast.FunctionDecl, m: ast.Method, t: types.Extern) -> None:
        bound = dict(zip(t.decl.type_params, t.args, strict=True))
        wanted = [(p.direction, types.substitute(p.type, bound)) for p in m.params]
        given = [(p.direction, p.type) for p in f.params]
        unknown = any(isinstance(x, (types.Unknown, types.TypeVar)) for _, x in wanted + given)
        if not unknown and (wanted != given or types.substitute(m.return_type, bound) != f.return_type):
            self.error(f, f"method {f.name!r} does not have the parameters and return type that {t} declares")


def check(program: ast.Program, reporter: Reporter) -> None:
    """Check `program`; errors and warnings go to `reporter`."""
    Checker(program, reporter).check()
