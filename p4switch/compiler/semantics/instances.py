"""Instances: constructor calls, declarations of instances, implementations of abstract methods."""

from __future__ import annotations

from collections.abc import Sequence

from p4switch.compiler import ast, types
from p4switch.compiler.facts import Binding, CallKind
from p4switch.compiler.semantics.annotations import Annotations
from p4switch.compiler.semantics.arguments import Arguments, accepts
from p4switch.compiler.semantics.context import Checking
from p4switch.compiler.semantics.inference import Inference
from p4switch.compiler.semantics.places import Place
from p4switch.compiler.semantics.written_types import WrittenTypes, is_object
from p4switch.compiler.types import Type


class Instances:
    def __init__(
        self,
        ctx: Checking,
        annotations: Annotations,
        arguments: Arguments,
        written_types: WrittenTypes,
    ) -> None:
        self.ctx = ctx
        self.annotations = annotations
        self.arguments = arguments
        self.written_types = written_types
        self.types = ctx.facts.types
        self.facts = ctx.facts
        self.bindings = ctx.facts.bindings

    def construct(self, e: ast.Call, written: ast.TypeExpr, expected: Type | None) -> Type:
        """Check `T(args)` as an expression."""
        t = self.written_types.resolve(written, infer=True)
        self.bindings[e] = Binding(CallKind.CONSTRUCTOR)
        if isinstance(t, types.Unknown):
            return self.arguments.check_values(e.args)
        if not is_object(t):
            self.ctx.error(e, f"{t} has no constructor")
            return self.arguments.check_values(e.args)
        if self.ctx.place not in (Place.TOP, Place.CONTROL_LOCAL, Place.PARSER_LOCAL, Place.TABLE):
            self.ctx.error(e, f"an instance of {t} cannot be made in {self.ctx.place.value}")
        if isinstance(t, types.Extern) and any(m.abstract for m in t.decl.methods):
            self.ctx.error(e, f"{t} has abstract methods: declare an instance that implements them")
        typed = self.instantiate(e, t, e.args, expected)
        if typed is None:
            return types.UNKNOWN
        made, self.bindings[e] = typed
        return self.facts.type(e, made)

    def instantiate(
        self, at: ast.Node, t: Type, args: list[ast.Argument], expected: Type | None
    ) -> tuple[Type, Binding] | None:
        """Check `t(args)`; return the complete type, the constructor and its arguments."""
        assert isinstance(t, (types.Extern, types.Parser, types.Control, types.Package))
        decl = t.decl
        ctor: ast.Method | None = None
        if isinstance(decl, ast.ExternDecl):
            ctor = self._constructor(at, decl, args)
            if ctor is None:
                self.arguments.check_values(args)
                return None
            params = ctor.params
        elif isinstance(decl, (ast.ParserDecl, ast.ControlDecl)):
            params = decl.ctor_params
        elif isinstance(decl, ast.PackageDecl):
            params = decl.params
        else:
            self.ctx.error(at, f"{t} has no body, so it has no instances")
            self.arguments.check_values(args)
            return None
        what = f"the constructor of {decl.name!r}"
        matched = self.arguments.match_arguments(at, what, params, args)
        if matched is None:
            self.arguments.check_values(args)
            return None
        explicit = t != self.types[decl]
        open_params = [] if explicit else list(decl.type_params)
        given = dict(zip(decl.type_params, t.args, strict=True)) if explicit else {}
        # An explicit type argument `_` is inferred, too.
        open_params += [a.decl for a in given.values() if isinstance(a, types.TypeVar) and a.decl.name == "_"]
        wanted = [types.substitute(self.types[p], given) for p in params]
        inference = Inference(open_params, self.types)
        values = self.arguments.infer(what, params, wanted, matched, inference)
        if inference.missing() and isinstance(expected, type(t)):
            inference.unify(t, expected)
        self.arguments.ignore_omitted(wanted, values, inference)
        if isinstance(t, (types.Extern, types.Package)) and self.arguments.uninferred(at, what, inference, values):
            return None
        full = [inference.apply(w) for w in wanted]
        bound = self.arguments.pass_all(what, params, full, values, True)
        return inference.apply(t), Binding(
            CallKind.CONSTRUCTOR, decl=ctor, params=params, param_types=full, bound=bound
        )

    def _constructor(self, at: ast.Node, decl: ast.ExternDecl, args: list[ast.Argument]) -> ast.Method | None:
        fitting = [c for c in decl.constructors if accepts(c.params, args)]
        if fitting:
            return fitting[0]
        if not decl.constructors:
            self.ctx.error(at, f"extern {decl.name!r} has no constructor")
        elif len(decl.constructors) == 1:
            self.arguments.match_arguments(
                at, f"the constructor of {decl.name!r}", decl.constructors[0].params, args
            )
        else:
            self.ctx.error(at, f"no constructor of {decl.name!r} takes these {len(args)} arguments")
        return None

    def instance(self, decl: ast.Instantiation) -> None:
        t = self.written_types.resolve(decl.type_expr, infer=True)
        if isinstance(t, types.Unknown):
            self.arguments.check_values(decl.args)
        elif not is_object(t):
            self.ctx.error(decl.type_expr, f"{t} has no constructor")
        else:
            self._instance_place(decl, t)
            typed = self.instantiate(decl.type_expr, t, decl.args, None)
            if typed is not None:
                self.types[decl], self.bindings[decl] = typed
                self._abstract_methods(decl)

    def _instance_place(self, decl: ast.Instantiation, t: Type) -> None:
        here = self.ctx.place
        wrong = (
            (isinstance(t, types.Package) and here != Place.TOP)
            or (isinstance(t, types.Parser) and here != Place.PARSER_LOCAL)
            or (isinstance(t, types.Control) and here != Place.CONTROL_LOCAL)
        )
        if wrong:
            self.ctx.error(decl, f"an instance of {t} cannot be made in {here.value}")

    def _abstract_methods(self, decl: ast.Instantiation) -> None:
        t = self.types[decl]
        if not isinstance(t, types.Extern):
            if decl.methods or decl.instances:
                self.ctx.error(decl, f"{t} has no abstract methods")
            return
        abstract = [m for m in t.decl.methods if m.abstract]
        if (decl.methods or decl.instances) and not abstract:
            self.ctx.error(decl, f"{t} has no abstract methods")
            return
        given: set[ast.Method] = set()
        for instance in decl.instances:
            self.ctx.declarations.declaration(instance)
        for f in decl.methods:
            self.annotations.check(f.annotations)
            self.ctx.declarations.function(f, Place.METHOD)
            m = _implemented(f, abstract)
            if m is None:
                self.ctx.error(f, f"{t} has no abstract method {f.name!r}")
                continue
            if m in given:
                self.ctx.error(f, f"method {f.name!r} is implemented twice")
            given.add(m)
            self._same_signature(f, m, t)
        missing = [m for m in abstract if m not in given and m.annotation("optional") is None]
        if missing:
            self.ctx.error(decl, f"abstract method {missing[0].name!r} of {t} is not implemented")

    def _same_signature(self, f: ast.FunctionDecl, m: ast.Method, t: types.Extern) -> None:
        bound = dict(zip(t.decl.type_params, t.args, strict=True))
        wanted = [(p.direction, types.substitute(self.types[p], bound)) for p in m.params[: len(f.params)]]
        given = [(p.direction, self.types[p]) for p in f.params]
        unknown = any(isinstance(x, (types.Unknown, types.TypeVar)) for _, x in wanted + given)
        if not unknown and (wanted != given or types.substitute(self.types[m], bound) != self.types[f]):
            self.ctx.error(f, f"method {f.name!r} does not have the parameters and return type that {t} declares")


def _implemented(f: ast.FunctionDecl, abstract: Sequence[ast.Method]) -> ast.Method | None:
    """Return the abstract method that `f` implements.

    `f` may omit the last parameters if they are optional.
    """
    named = [m for m in abstract if m.name == f.name]
    exact = [m for m in named if len(m.params) == len(f.params)]
    fitting = [m for m in named if all(p.optional for p in m.params[len(f.params) :]) and len(m.params) > len(f.params)]
    return next(iter([*exact, *fitting]), None)
