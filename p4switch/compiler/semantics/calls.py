"""Checks of calls: the callee, its type arguments, and an argument for each parameter."""

from __future__ import annotations

from typing import TypeVar

from p4switch.compiler import ast, types
from p4switch.compiler.ast import Direction
from p4switch.compiler.diagnostics import did_you_mean
from p4switch.compiler.facts import CallKind
from p4switch.compiler.semantics.annotations import Annotations
from p4switch.compiler.semantics.arguments import Arguments, accepts
from p4switch.compiler.semantics.context import Checking
from p4switch.compiler.semantics.inference import Inference, specialised_params
from p4switch.compiler.semantics.instances import Instances
from p4switch.compiler.semantics.places import Place
from p4switch.compiler.semantics.sizes import lacks_width, size_limits
from p4switch.compiler.semantics.values import Values
from p4switch.compiler.semantics.written_types import WrittenTypes
from p4switch.compiler.superseded import instead
from p4switch.compiler.types import Type

Generic = ast.Method | ast.FunctionDecl | ast.ExternFunctionDecl | ast.ActionDecl
Callee = TypeVar("Callee", bound=Generic)
_SIZES = ("minSizeInBits", "minSizeInBytes", "maxSizeInBits", "maxSizeInBytes")
_PARSER_METHODS = frozenset(("extract", "lookahead", "advance"))

_OPEN_BITS = 32
"""Width that a number without a width has if its type is `_`."""


class Calls:
    def __init__(
        self,
        ctx: Checking,
        annotations: Annotations,
        arguments: Arguments,
        instances: Instances,
        values: Values,
        written_types: WrittenTypes,
    ) -> None:
        self.ctx = ctx
        self.annotations = annotations
        self.arguments = arguments
        self.instances = instances
        self.values = values
        self.written_types = written_types
        self.facts = ctx.facts
        self.types = ctx.facts.types
        self.bindings = ctx.facts.bindings
        self.decls = ctx.facts.decls

    def call(self, e: ast.Call, expected: Type | None) -> Type:
        func = e.func
        if isinstance(func, ast.Name):
            return self._call_name(e, func, expected)
        if isinstance(func, ast.Member):
            return self._call_member(e, func, expected)
        if isinstance(func, ast.TypeName):
            return self.instances.construct(e, func.type_expr, expected)
        if not isinstance(self.ctx.expressions.expr(func), types.Unknown):
            self.ctx.error(e, f"{self.ctx.describe(func)} cannot be called")
        return self.arguments.check_values(e.args)

    def _call_name(self, e: ast.Call, func: ast.Name, expected: Type | None) -> Type:
        binding = self.bindings[e]
        declarations = self.ctx.names.decls[func]
        if not declarations:
            self.ctx.unknown_name(func, func.name, hint=instead(func.name, self.ctx.program.architecture))
            return self.arguments.check_values(e.args)
        if isinstance(declarations[0], ast.TypeDeclaration):
            written = ast.NamedTypeExpr(func.pos, func.name, e.type_arg_exprs, func.absolute)
            self.ctx.names.decls[written] = declarations
            return self.instances.construct(e, written, expected)
        callees = [d for d in declarations if isinstance(d, (ast.FunctionDecl, ast.ExternFunctionDecl, ast.ActionDecl))]
        if not callees:
            self.ctx.error(func, f"{func.name!r} is not a function or action")
            return self.arguments.check_values(e.args)
        decl = self._overload(e, f"{func.name!r}", callees)
        if decl is None:
            return types.UNKNOWN
        self.decls[func] = decl
        self.types[func] = types.Callable(decl)
        binding.method = decl.name
        if isinstance(decl, ast.ActionDecl):
            binding.kind = CallKind.ACTION
            if self.ctx.place not in (Place.CONTROL, Place.ACTION, Place.TABLE):
                self.ctx.error(e, f"an action cannot be called in {self.ctx.place.value}")
        else:
            binding.kind = CallKind.FUNCTION if isinstance(decl, ast.FunctionDecl) else CallKind.EXTERN_FUNCTION
            if decl.name == "verify" and binding.kind == CallKind.EXTERN_FUNCTION and self.ctx.place != Place.PARSER:
                self.ctx.error(e, f"'verify' can only be called in a parser, not in {self.ctx.place.value}")
        result = self._complete(e, decl, {}, expected)
        if decl.name == "static_assert" and binding.kind == CallKind.EXTERN_FUNCTION:
            return self._static_assert(e)
        return result

    def _overload(self, e: ast.Call, what: str, callees: list[Callee]) -> Callee | None:
        """Return the declaration whose parameters fit the arguments, or None after an error was reported."""
        if len(callees) == 1:
            return callees[0]
        fitting = [d for d in callees if accepts(d.params, e.args)]
        if len(fitting) == 1:
            return fitting[0]
        if fitting:
            self.ctx.error(e, f"this call of {what} is ambiguous: {len(fitting)} declarations fit")
        else:
            counts = sorted({len(d.params) for d in callees})
            shown = " or ".join(map(str, counts))
            self.ctx.error(e, f"no declaration of {what} fits these arguments (they take {shown} arguments)")
        self.arguments.check_values(e.args)
        return None

    def _static_assert(self, e: ast.Call) -> Type:
        binding = self.bindings[e]
        condition = binding.bound[0] if binding.bound else None
        message = binding.bound[1] if len(binding.bound) > 1 else None
        holds = None if condition is None else self.facts.boolean(condition)
        if holds is None:
            return self.types[e]
        if not holds:
            text = None if message is None else self.facts.constants.get(message)
            self.ctx.error(e, f"static_assert failed: {text}" if isinstance(text, str) else "static_assert failed")
        return self.facts.constant(e, True, types.BOOL)

    def _call_member(self, e: ast.Call, func: ast.Member, expected: Type | None) -> Type:
        binding = self.bindings[e]
        t = self.ctx.expressions.any_expr(func.base)
        binding.receiver = func.base
        binding.method = func.name
        if isinstance(t, types.Unknown):
            return self.arguments.check_values(e.args)
        if isinstance(t, types.Meta):
            return self._call_static(e, func, t.type, expected)
        if isinstance(t, types.Extern):
            return self._call_method(e, func, t, expected)
        if func.name == "apply" and isinstance(t, (types.Table, types.Parser, types.Control, types.Package)):
            return self._apply(e, t)
        return self._builtin(e, func, t)

    def _call_static(self, e: ast.Call, func: ast.Member, t: Type, expected: Type | None) -> Type:
        """Check `T.method(...)` on the name of a type."""
        if func.name in _SIZES:
            return self._size(e, t)
        if func.name == "apply" and isinstance(t, (types.Parser, types.Control)):
            if not isinstance(t.decl, (ast.ParserDecl, ast.ControlDecl)):
                self.ctx.error(e, f"{t} has no body, so it cannot be applied")
                return types.UNKNOWN
            if t.decl.ctor_params:
                self.ctx.error(e, f"{t.decl.name!r} has constructor parameters: make an instance first")
                return types.UNKNOWN
            return self._apply(e, t)
        if not isinstance(t, types.Unknown):
            self.ctx.error(func, f"{t} has no method {func.name!r}")
        return self.arguments.check_values(e.args)

    def _size(self, e: ast.Call, t: Type) -> Type:
        """Fold `minSizeInBits()` and the like (specification, section 9)."""
        binding = self.bindings[e]
        least, most = size_limits(t)
        if e.args or e.type_arg_exprs:
            self.ctx.error(e, f"{binding.method!r} takes no arguments")
        size = least if binding.method.startswith("min") else most
        if size is None:
            self.ctx.error(e, f"{t} has no size")
            return types.UNKNOWN
        return self.facts.constant(e, (size + 7) // 8 if binding.method.endswith("Bytes") else size, types.INT)

    def _call_method(self, e: ast.Call, func: ast.Member, t: types.Extern, expected: Type | None) -> Type:
        binding = self.bindings[e]
        methods = [m for m in t.decl.methods if m.name == func.name]
        if not methods:
            hint = did_you_mean(func.name, [m.name for m in t.decl.methods])
            self.ctx.error(func, f"{t} has no method {func.name!r}{hint}")
            return self.arguments.check_values(e.args)
        method = self._overload(e, f"{t.decl.name}.{func.name}", methods)
        if method is None:
            return types.UNKNOWN
        binding.kind = CallKind.ABSTRACT_METHOD if method.abstract else CallKind.EXTERN_METHOD
        if self.ctx.place in (Place.TOP, Place.CONTROL_LOCAL, Place.PARSER_LOCAL, Place.TABLE):
            self.ctx.error(e, f"a method cannot be called in {self.ctx.place.value}")
        elif (
            t.decl.name == "packet_in"
            and func.name in _PARSER_METHODS
            and self.ctx.place not in (Place.PARSER, Place.FUNCTION)
        ):
            self.ctx.error(e, f"{func.name!r} can only be called in a parser, not in {self.ctx.place.value}")
        result = self._complete(e, method, dict(zip(t.decl.type_params, t.args, strict=True)), expected)
        if t.decl.name == "packet_in" and binding.param_types:
            self._check_packet_in(e)
        elif t.decl.name == "packet_in" and func.name == "lookahead":
            least, most = size_limits(self.types[e])
            if least != most and not isinstance(self.types[e], types.Unknown):
                self.ctx.error(e, f"'lookahead' needs a type of fixed width, not {self.types[e]}")
        return result

    def _check_packet_in(self, e: ast.Call) -> None:
        """Check that `extract` takes a header without varbit, or one with one varbit and its length."""
        binding = self.bindings[e]
        t = binding.param_types[0]
        if binding.method != "extract" or isinstance(t, (types.TypeVar, types.Unknown)):
            return
        if not isinstance(t, types.Header):
            self.ctx.error(e.args[0].value, f"'extract' needs a header, not {t}")
            return
        varbits = sum(isinstance(f.type, types.Varbit) for f in t.fields)
        if len(binding.bound) == 1 and varbits:
            self.ctx.error(e.args[0].value, f"{t} has a varbit field: 'extract' needs its length as second argument")
        elif len(binding.bound) == 2 and varbits != 1:
            self.ctx.error(
                e.args[0].value, f"'extract' with a length needs a header with one varbit field, not {varbits}"
            )

    def _complete(self, e: ast.Call, decl: Generic, outer: dict[ast.TypeParam, Type], expected: Type | None) -> Type:
        """Check a call of `decl`. `outer` are the type arguments of the object."""
        binding = self.bindings[e]
        what = f"{decl.name!r}"
        binding.decl = decl
        deprecated = decl.annotation("deprecated")
        if deprecated is not None:
            self.ctx.warn(e, f"{what} is deprecated: {self.annotations.text(deprecated)}", "deprecated")
        matched = self.arguments.match_arguments(e, what, decl.params, e.args)
        if matched is None:
            return self.arguments.check_values(e.args)
        type_params = [] if isinstance(decl, ast.ActionDecl) else decl.type_params
        # If a type argument of the object is `_`, it may differ from call to call.
        left_open = [t.decl for t in outer.values() if isinstance(t, types.TypeVar) and t.decl.name == "_"]
        inference = Inference([*type_params, *left_open], self.types)
        if not self._explicit_type_args(e, what, type_params, inference):
            return self.arguments.check_values(e.args)
        wanted = [types.substitute(self.types[p], outer) for p in decl.params]
        returned = types.VOID if isinstance(decl, ast.ActionDecl) else types.substitute(self.types[decl], outer)
        values = self.arguments.infer(what, decl.params, wanted, matched, inference)
        for param in left_open:
            if isinstance(inference.bound.get(param), types.InfInt):
                inference.bound[param] = types.Bits(_OPEN_BITS)
        if expected is not None and inference.missing():
            inference.unify(returned, expected)
        self.arguments.ignore_omitted(wanted, values, inference)
        if self.arguments.uninferred(e, what, inference, values):
            return types.UNKNOWN
        binding.type_args = {**outer, **inference.bound}
        binding.params = decl.params
        binding.param_types = [inference.apply(t) for t in wanted]
        self._check_instance_arguments(what, decl.params, binding.param_types, values)
        # A direct call of an action also has the arguments that the control plane supplies otherwise.
        binding.bound = self.arguments.pass_all(
            what, decl.params, binding.param_types, values, not isinstance(decl, ast.ActionDecl)
        )
        return self.facts.type(e, inference.apply(returned))

    def _check_instance_arguments(
        self, what: str, params: list[ast.Parameter], wanted: list[Type], values: list[ast.Expr | None]
    ) -> None:
        """Check that type arguments are types that a parameter can have, and that all widths are known."""
        for param, t, value in zip(params, wanted, values, strict=True):
            if value is None or t == self.types[param]:
                continue
            if isinstance(self.types[value], (types.Control, types.Parser, types.Package, types.Table)):
                self.ctx.error(value, f"{self.types[value]} cannot be passed for parameter {param.name!r} of {what}")
            elif isinstance(t, types.String) and param.direction != Direction.NONE:
                self.ctx.error(value, f"a string cannot be passed for parameter {param.name!r} of {what}")
            elif lacks_width(t):
                self.ctx.error(value, f"the argument for parameter {param.name!r} of {what} needs a width (as in 8w1)")

    def _explicit_type_args(self, e: ast.Call, what: str, params: list[ast.TypeParam], inference: Inference) -> bool:
        if not e.type_arg_exprs:
            return True
        given = [self.written_types.resolve(t) for t in e.type_arg_exprs]
        for written, t in zip(e.type_arg_exprs, given, strict=True):
            if isinstance(t, types.Void):
                self.ctx.error(written, f"void cannot be a type argument of {what}")
                return False
        if len(given) != len(params):
            self.ctx.error(e, f"{what} takes {len(params)} type arguments, not {len(given)}")
            return False
        for param, t in zip(params, given, strict=True):
            if not (isinstance(t, types.TypeVar) and t.decl.name == "_"):
                inference.bound[param] = t
        return True

    def _apply(self, e: ast.Call, t: Type) -> Type:
        binding = self.bindings[e]
        if isinstance(t, types.Table):
            binding.kind = CallKind.TABLE_APPLY
            binding.decl = t.decl
            if e.args or e.type_arg_exprs:
                self.ctx.error(e, "applying a table takes no arguments")
            if self.ctx.place != Place.CONTROL:
                self.ctx.error(
                    e, f"a table can only be applied in the apply block of a control, not in {self.ctx.place.value}"
                )
            return self.facts.type(e, types.ApplyResult(t.decl))
        if not isinstance(t, (types.Parser, types.Control)):
            self.ctx.error(e, f"{t} cannot be applied")
            return types.UNKNOWN
        parser = isinstance(t, types.Parser)
        binding.kind = CallKind.PARSER_APPLY if parser else CallKind.CONTROL_APPLY
        binding.decl = t.decl
        right = Place.PARSER if parser else Place.CONTROL
        if self.ctx.place != right:
            kind = "parser" if parser else "control"
            self.ctx.error(e, f"a {kind} can only be applied in {right.value}, not in {self.ctx.place.value}")
        if e.type_arg_exprs:
            self.ctx.error(e, f"applying {t} takes no type arguments")
        what = f"{t.decl.name!r}"
        matched = self.arguments.match_arguments(e, what, t.decl.params, e.args)
        if matched is None:
            return self.arguments.check_values(e.args)
        wanted = specialised_params(t, self.types)
        inference = Inference(t.decl.type_params, self.types)
        values = self.arguments.infer(what, t.decl.params, wanted, matched, inference)
        binding.params = t.decl.params
        binding.param_types = [inference.apply(w) for w in wanted]
        binding.bound = self.arguments.pass_all(what, t.decl.params, binding.param_types, values, True)
        return self.facts.type(e, types.VOID)

    def _builtin(self, e: ast.Call, func: ast.Member, t: Type) -> Type:
        name = func.name
        if name in _SIZES and not isinstance(t, (types.Table, types.Parser, types.Control, types.Callable)):
            return self._size(e, t)
        generic = isinstance(t, types.TypeVar)
        if name == "isValid" and (isinstance(t, (types.Header, types.Union)) or generic):
            result: Type = types.BOOL
        elif name in ("setValid", "setInvalid") and (isinstance(t, types.Header) or generic):
            result = types.VOID
            self._changes(e, func.base)
        elif name in ("push_front", "pop_front") and isinstance(t, types.Stack):
            return self._push_or_pop(e, func)
        else:
            shown = f"{t.decl.name!r}" if isinstance(t, types.Callable) else str(t)
            hint = did_you_mean(name, _built_in_methods(t))
            self.ctx.error(func, f"{shown} has no method {name!r}{hint}")
            return self.arguments.check_values(e.args)
        if e.args or e.type_arg_exprs:
            self.ctx.error(e, f"{name!r} takes no arguments")
        self.bindings[e].kind = CallKind.BUILTIN
        return self.facts.type(e, result)

    def _changes(self, e: ast.Call, base: ast.Expr) -> None:
        why = self.values.not_assignable(base)
        if why is not None:
            self.ctx.error(e, f"{self.bindings[e].method!r} changes its header, which it cannot here: {why}")

    def _push_or_pop(self, e: ast.Call, func: ast.Member) -> Type:
        binding = self.bindings[e]
        self._changes(e, func.base)
        binding.kind = CallKind.BUILTIN
        if len(e.args) != 1:
            self.ctx.error(e, f"{func.name!r} takes 1 argument, not {len(e.args)}")
            return self.facts.type(e, types.VOID)
        value = e.args[0].value
        count = self.written_types.constant_int(value, f"the argument of {func.name!r}")
        if count is not None and count <= 0:
            self.ctx.error(value, f"the argument of {func.name!r} must be positive, not {count}")
        binding.bound = [value]
        return self.facts.type(e, types.VOID)


def _built_in_methods(t: Type) -> tuple[str, ...]:
    if isinstance(t, types.Header):
        return ("isValid", "setValid", "setInvalid")
    if isinstance(t, types.Union):
        return ("isValid",)
    if isinstance(t, types.Stack):
        return ("push_front", "pop_front")
    return ("apply",) if isinstance(t, (types.Table, types.Parser, types.Control)) else ()
