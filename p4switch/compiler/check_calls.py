"""Calls and instantiations: finding the callee, its type arguments, and an argument for each parameter."""

from __future__ import annotations

from typing import TypeVar

from p4switch.compiler import ast, types
from p4switch.compiler.ast import CallKind, Direction
from p4switch.compiler.check_base import Place
from p4switch.compiler.check_convert import describe
from p4switch.compiler.check_expressions import ExpressionChecker
from p4switch.compiler.check_types import is_object
from p4switch.compiler.diagnostics import did_you_mean
from p4switch.compiler.inference import Inference, paired_params, specialised_params
from p4switch.compiler.sizes import lacks_width, size_limits
from p4switch.compiler.superseded import FUNCTIONS
from p4switch.compiler.types import Type

Generic = ast.Method | ast.FunctionDecl | ast.ExternFunctionDecl | ast.ActionDecl
Callee = TypeVar("Callee", bound=Generic)

_SIZES = ("minSizeInBits", "minSizeInBytes", "maxSizeInBits", "maxSizeInBytes")
_PARSER_METHODS = frozenset(("extract", "lookahead", "advance"))


def _missing_allowed(param: ast.Parameter) -> bool:
    return param.default is not None or param.optional


def accepts(params: list[ast.Parameter], args: list[ast.Argument]) -> bool:
    """Whether `args` fit `params` by number and names."""
    if len(args) > len(params):
        return False
    names = {a.name for a in args if a.name is not None}
    if names:
        known = {p.name for p in params}
        return names <= known and all(p.name in names or _missing_allowed(p) for p in params)
    return all(_missing_allowed(p) for p in params[len(args) :])


class CallChecker(ExpressionChecker):
    # Arguments

    def match_arguments(
        self, at: ast.Node, what: str, params: list[ast.Parameter], args: list[ast.Argument]
    ) -> list[ast.Argument | None] | None:
        """The argument for each parameter (None where it may be left out), or None with an error reported."""
        named = [a for a in args if a.name is not None]
        if named and len(named) < len(args):
            self.error(at, f"either all or none of the arguments of {what} must be named")
            return None
        if not named:
            if not accepts(params, args):
                few = sum(not _missing_allowed(p) for p in params)
                count = str(len(params)) if few == len(params) else f"{few} to {len(params)}"
                names = ": " + ", ".join(p.name for p in params) if params else ""
                self.error(at, f"{what} takes {count} argument{'s' if count != '1' else ''}, not {len(args)}{names}")
                return None
            return [*args, *[None] * (len(params) - len(args))]
        by_name: dict[str, ast.Argument] = {}
        known = {p.name for p in params}
        for a in named:
            assert a.name is not None
            if a.name not in known:
                self.error(a, f"{what} has no parameter {a.name!r}")
                return None
            if a.name in by_name:
                self.error(a, f"argument {a.name!r} is given twice")
                return None
            by_name[a.name] = a
        missing = [p.name for p in params if p.name not in by_name and not _missing_allowed(p)]
        if missing:
            self.error(at, f"{what} needs an argument for {missing[0]!r}")
            return None
        return [by_name.get(p.name) for p in params]

    def check_values(self, args: list[ast.Argument]) -> None:
        """Check arguments of a call that cannot be resolved, for what is wrong with them themselves."""
        for a in args:
            if not isinstance(a.value, ast.DontCare):
                a.value = self.expr(a.value)

    def pass_argument(self, what: str, param: ast.Parameter, t: Type, e: ast.Expr, constant: bool) -> ast.Expr:
        """Argument `e`, checked, as what `param` of type `t` gets. With `constant`, the argument of a parameter
        without direction must be known at compile time."""
        shown = f"parameter {param.name!r} of {what}"
        if isinstance(e, ast.DontCare):
            if param.direction != Direction.OUT:
                self.error(e, f"'_' can only be passed for an out parameter, and {param.name!r} is none")
            e.type = t
            return e
        if param.direction in (Direction.OUT, Direction.INOUT):
            if isinstance(e.type, types.Unknown):
                return e
            why = self.not_assignable(e)
            if why is not None:
                self.error(e, f"{shown} is {param.direction.value}, so its argument must be assignable: {why}")
            elif e.type != t and not isinstance(t, types.Unknown):
                self.error(e, f"expected {t} for {shown}, not {e.type}")
            return e
        if is_object(t):
            return self._pass_object(shown, t, e)
        result = self.convert(e, t, shown)
        if constant and param.direction == Direction.NONE and not self.is_constant(result, in_call=True):
            self.error(e, f"the argument for {shown} must be known at compile time")
        return result

    def _pass_object(self, shown: str, wanted: Type, e: ast.Expr) -> ast.Expr:
        given = e.type
        if isinstance(given, types.Unknown):
            return e
        problem = self.mismatch(wanted, given)
        if not problem and isinstance(e, ast.Call) and not all(b is None or self.is_constant(b) for b in e.bound):
            self.error(e, f"{shown} must be known at compile time")
        elif problem:
            self.error(e, f"{describe(e)} does not fit {wanted}, which {shown} needs{problem}")
        return e

    def mismatch(self, wanted: Type, given: Type) -> str:
        """Why an instance of type `given` cannot be used as a `wanted`; empty if it can."""
        if isinstance(wanted, types.TypeVar) or given == wanted:
            return ""
        if isinstance(wanted, types.Extern) and isinstance(given, types.Extern):
            if given.decl is wanted.decl and all(
                self._same(w, g) for w, g in zip(wanted.args, given.args, strict=True)
            ):
                return ""
            return f": it is {given}"
        if not isinstance(given, type(wanted)) or not isinstance(wanted, (types.Parser, types.Control, types.Package)):
            return f": it is {given}"
        assert isinstance(given, (types.Parser, types.Control, types.Package))
        if isinstance(wanted, types.Package):
            same = given.decl is wanted.decl and all(
                self._same(w, g) for w, g in zip(wanted.args, given.args, strict=True)
            )
            return "" if same else f": it is {given}"
        if isinstance(given.decl, (ast.ParserDecl, ast.ControlDecl)) and isinstance(
            wanted.decl, (ast.ParserDecl, ast.ControlDecl)
        ):
            return f": it is {given}"
        pairs = paired_params(wanted, given)
        if pairs is None:
            return f": it has {len(given.decl.params)} parameters instead of {len(wanted.decl.params)}"
        for wp, wt, gp, gt in pairs:
            if wp.direction != gp.direction:
                wanted_way = wp.direction.value or "without direction"
                return f": parameter {gp.name!r} must be {wanted_way}, not {gp.direction.value or 'without direction'}"
            if not self._same(wt, gt):
                return f": parameter {gp.name!r} must have type {wt}, not {gt}"
        return ""

    def _same(self, wanted: Type, given: Type) -> bool:
        if isinstance(wanted, types.TypeVar) or isinstance(given, types.Unknown) or isinstance(wanted, types.Unknown):
            return True
        if isinstance(wanted, (types.Extern, types.Parser, types.Control)):
            return not self.mismatch(wanted, given)
        return wanted == given

    # Calls

    def call(self, e: ast.Call, expected: Type | None) -> ast.Expr:
        func = e.func
        if isinstance(func, ast.Name):
            return self._call_name(e, func, expected)
        if isinstance(func, ast.Member):
            return self._call_member(e, func, expected)
        if isinstance(func, ast.TypeName):
            return self.construct(e, func.type_expr, expected)
        func = self.expr(func)
        if not isinstance(func.type, types.Unknown):
            self.error(e, f"{describe(func)} cannot be called")
        self.check_values(e.args)
        return e

    def _call_name(self, e: ast.Call, func: ast.Name, expected: Type | None) -> ast.Expr:
        found = self.lookup(func.name, func.absolute)
        if not found:
            self.unknown_name(func, func.name, new=FUNCTIONS.get(func.name))
            self.check_values(e.args)
            return e
        if isinstance(found[0], ast.TypeDeclaration):
            written = ast.NamedTypeExpr(func.pos, func.name, e.type_arg_exprs, func.absolute)
            return self.construct(e, written, expected)
        callees = [d for d in found if isinstance(d, (ast.FunctionDecl, ast.ExternFunctionDecl, ast.ActionDecl))]
        if not callees:
            self.error(func, f"{func.name!r} is not a function or action")
            self.check_values(e.args)
            return e
        decl = self._overload(e, f"{func.name!r}", callees)
        if decl is None:
            return e
        func.decl = decl
        func.type = types.Callable(decl)
        e.method = decl.name
        if isinstance(decl, ast.ActionDecl):
            e.kind = CallKind.ACTION
            if self.place not in (Place.CONTROL, Place.ACTION, Place.TABLE):
                self.error(e, f"an action cannot be called in {self.place.value}")
        else:
            e.kind = CallKind.FUNCTION if isinstance(decl, ast.FunctionDecl) else CallKind.EXTERN_FUNCTION
            if decl.name == "verify" and e.kind == CallKind.EXTERN_FUNCTION and self.place != Place.PARSER:
                self.error(e, f"'verify' can only be called in a parser, not in {self.place.value}")
        result = self._complete(e, decl, {}, expected)
        if decl.name == "static_assert" and e.kind == CallKind.EXTERN_FUNCTION:
            return self._static_assert(e)
        return result

    def _overload(self, e: ast.Call, what: str, callees: list[Callee]) -> Callee | None:
        """The one of several declarations whose parameters fit the arguments, errors reported."""
        if len(callees) == 1:
            return callees[0]
        fitting = [d for d in callees if accepts(d.params, e.args)]
        if len(fitting) == 1:
            return fitting[0]
        if fitting:
            self.error(e, f"this call of {what} is ambiguous: {len(fitting)} declarations fit")
        else:
            counts = sorted({len(d.params) for d in callees})
            shown = " or ".join(map(str, counts))
            self.error(e, f"no declaration of {what} fits these arguments (they take {shown} arguments)")
        self.check_values(e.args)
        return None

    def _static_assert(self, e: ast.Call) -> ast.Expr:
        condition = e.bound[0] if e.bound else None
        message = e.bound[1] if len(e.bound) > 1 else None
        if isinstance(condition, ast.BoolLiteral):
            if not condition.value:
                text = f": {message.value}" if isinstance(message, ast.StringLiteral) else ""
                self.error(e, f"static_assert failed{text}")
            return ast.BoolLiteral(e.pos, True, type=types.BOOL)
        return e

    def _call_member(self, e: ast.Call, func: ast.Member, expected: Type | None) -> ast.Expr:
        base = func.base = self.any_expr(func.base)
        t = base.type
        e.receiver = base
        e.method = func.name
        if isinstance(t, types.Unknown):
            self.check_values(e.args)
            return e
        if isinstance(t, types.Meta):
            return self._call_static(e, func, t.type, expected)
        if isinstance(t, types.Extern):
            return self._call_method(e, func, t, expected)
        if func.name == "apply" and isinstance(t, (types.Table, types.Parser, types.Control, types.Package)):
            return self._apply(e, t)
        return self._builtin(e, func, t)

    def _call_static(self, e: ast.Call, func: ast.Member, t: Type, expected: Type | None) -> ast.Expr:
        """`T.method(...)` on the name of a type."""
        if func.name in _SIZES:
            return self._size(e, t)
        if func.name == "apply" and isinstance(t, (types.Parser, types.Control)):
            if not isinstance(t.decl, (ast.ParserDecl, ast.ControlDecl)):
                self.error(e, f"{t} has no body, so it cannot be applied")
                return e
            if t.decl.ctor_params:
                self.error(e, f"{t.decl.name!r} has constructor parameters: make an instance first")
                return e
            e.receiver = self._implicit_instance(func, t)
            return self._apply(e, e.receiver.type)
        if not isinstance(t, types.Unknown):
            self.error(func, f"{t} has no method {func.name!r}")
        self.check_values(e.args)
        return e

    def _implicit_instance(self, func: ast.Member, t: types.Parser | types.Control) -> ast.Expr:
        """An instance for `C.apply()`, declared beside the other locals."""
        name = f"{t.decl.name}_inst"
        taken = {d.name for d in self.locals}
        while name in taken:
            name += "_"
        written = ast.NamedTypeExpr(func.pos, t.decl.name, [], type=t)
        label = ast.Annotation(func.pos, "name", args=[ast.StringLiteral(func.pos, t.decl.name, type=types.STRING)])
        instance = ast.Instantiation(func.pos, name, written, [], implicit=True, type=t, annotations=[label])
        instance.params, instance.bound = [], []
        self.locals.append(instance)
        result = ast.Name(func.base.pos, name, type=t)
        result.decl = instance
        return result

    def _size(self, e: ast.Call, t: Type) -> ast.Expr:
        """`minSizeInBits()` and its like (specification, section 9)."""
        least, most = size_limits(t)
        if e.args or e.type_arg_exprs:
            self.error(e, f"{e.method!r} takes no arguments")
        size = least if e.method.startswith("min") else most
        if size is None:
            self.error(e, f"{t} has no size")
            return e
        return ast.IntLiteral(e.pos, (size + 7) // 8 if e.method.endswith("Bytes") else size, type=types.INT)

    def _call_method(self, e: ast.Call, func: ast.Member, t: types.Extern, expected: Type | None) -> ast.Expr:
        methods = [m for m in t.decl.methods if m.name == func.name]
        if not methods:
            hint = did_you_mean(func.name, [m.name for m in t.decl.methods])
            self.error(func, f"{t} has no method {func.name!r}{hint}")
            self.check_values(e.args)
            return e
        method = self._overload(e, f"{t.decl.name}.{func.name}", methods)
        if method is None:
            return e
        e.kind = CallKind.ABSTRACT_METHOD if method.abstract else CallKind.EXTERN_METHOD
        if self.place in (Place.TOP, Place.CONTROL_LOCAL, Place.PARSER_LOCAL, Place.TABLE):
            self.error(e, f"a method cannot be called in {self.place.value}")
        elif (
            t.decl.name == "packet_in"
            and func.name in _PARSER_METHODS
            and self.place not in (Place.PARSER, Place.FUNCTION)
        ):
            self.error(e, f"{func.name!r} can only be called in a parser, not in {self.place.value}")
        result = self._complete(e, method, dict(zip(t.decl.type_params, t.args, strict=True)), expected)
        if t.decl.name == "packet_in" and e.param_types:
            self._check_packet_in(e)
        elif t.decl.name == "packet_in" and func.name == "lookahead":
            least, most = size_limits(e.type)
            if least != most and not isinstance(e.type, types.Unknown):
                self.error(e, f"'lookahead' needs a type of fixed width, not {e.type}")
        return result

    def _check_packet_in(self, e: ast.Call) -> None:
        """`extract` takes a header without varbit, or one with one varbit and its length."""
        t = e.param_types[0]
        if e.method != "extract" or isinstance(t, (types.TypeVar, types.Unknown)):
            return
        if not isinstance(t, types.Header):
            self.error(e.args[0].value, f"'extract' needs a header, not {t}")
            return
        varbits = sum(isinstance(f.type, types.Varbit) for f in t.fields)
        if len(e.bound) == 1 and varbits:
            self.error(e.args[0].value, f"{t} has a varbit field: 'extract' needs its length as second argument")
        elif len(e.bound) == 2 and varbits != 1:
            self.error(e.args[0].value, f"'extract' with a length needs a header with one varbit field, not {varbits}")

    def _complete(
        self, e: ast.Call, decl: Generic, outer: dict[ast.TypeParam, Type], expected: Type | None
    ) -> ast.Expr:
        """Check a call of `decl`; `outer` has the type arguments of the object."""
        what = f"{decl.name!r}"
        e.decl = decl
        deprecated = decl.annotation("deprecated")
        if deprecated is not None:
            self.warn(e, f"{what} is deprecated: {deprecated.string}", "deprecated")
        matched = self.match_arguments(e, what, decl.params, e.args)
        if matched is None:
            self.check_values(e.args)
            return e
        type_params = [] if isinstance(decl, ast.ActionDecl) else decl.type_params
        inference = Inference(type_params)
        if not self._explicit_type_args(e, what, type_params, inference):
            self.check_values(e.args)
            return e
        wanted = [types.substitute(p.type, outer) for p in decl.params]
        returned = types.VOID if isinstance(decl, ast.ActionDecl) else types.substitute(decl.return_type, outer)
        values = self._infer(what, decl.params, wanted, matched, inference)
        if expected is not None and inference.missing():
            inference.unify(returned, expected)
        self._ignore_omitted(wanted, values, inference)
        if self._uninferred(e, what, inference, values):
            return e
        e.type_args = {**outer, **inference.bound}
        e.params = decl.params
        e.param_types = [inference.apply(t) for t in wanted]
        self._check_instance_arguments(what, decl.params, e.param_types, values)
        # An action takes what the control plane would give it at run time, too, where it is called directly.
        e.bound = self._pass_all(what, decl.params, e.param_types, values, not isinstance(decl, ast.ActionDecl))
        e.type = inference.apply(returned)
        return e

    def _check_instance_arguments(
        self, what: str, params: list[ast.Parameter], wanted: list[Type], values: list[ast.Expr | None]
    ) -> None:
        """What a type parameter stands for must be a type that a parameter can have, with all widths known."""
        for param, t, value in zip(params, wanted, values, strict=True):
            if value is None or t == param.type:
                continue
            if isinstance(value.type, (types.Control, types.Parser, types.Package, types.Table)):
                self.error(value, f"{value.type} cannot be passed for parameter {param.name!r} of {what}")
            elif isinstance(t, types.String) and param.direction != Direction.NONE:
                self.error(value, f"a string cannot be passed for parameter {param.name!r} of {what}")
            elif lacks_width(t):
                self.error(value, f"the argument for parameter {param.name!r} of {what} needs a width (as in 8w1)")

    def _explicit_type_args(self, e: ast.Call, what: str, params: list[ast.TypeParam], inference: Inference) -> bool:
        if not e.type_arg_exprs:
            return True
        given = [self.resolve(t) for t in e.type_arg_exprs]
        for written, t in zip(e.type_arg_exprs, given, strict=True):
            if isinstance(t, types.Void):
                self.error(written, f"void cannot be a type argument of {what}")
                return False
        if len(given) != len(params):
            self.error(e, f"{what} takes {len(params)} type arguments, not {len(given)}")
            return False
        for param, t in zip(params, given, strict=True):
            if not (isinstance(t, types.TypeVar) and t.decl.name == "_"):
                inference.bound[param] = t
        return True

    def _infer(
        self,
        what: str,
        params: list[ast.Parameter],
        wanted: list[Type],
        matched: list[ast.Argument | None],
        inference: Inference,
    ) -> list[ast.Expr | None]:
        """Check the arguments, and learn type arguments from them."""
        values: list[ast.Expr | None] = []
        for param, t, arg in zip(params, wanted, matched, strict=True):
            if arg is None:
                if param.default is not None and is_object(param.default.type):
                    inference.unify(t, param.default.type)
                values.append(None)
                continue
            if not isinstance(arg.value, ast.DontCare):
                arg.value = self.expr(arg.value, inference.apply(t))
                known = inference.apply(t)
                if not inference.unify(t, arg.value.type):
                    shown = f"parameter {param.name!r} of {what}"
                    self.error(arg.value, f"expected {known} for {shown}, not {describe(arg.value)}")
                    arg.value.type = types.UNKNOWN
            values.append(arg.value)
        return values

    def _ignore_omitted(self, wanted: list[Type], values: list[ast.Expr | None], inference: Inference) -> None:
        """Type parameters that only omitted optional parameters mention may be anything: void."""
        missing = inference.missing()
        if missing:
            used = [t for t, v in zip(wanted, values, strict=True) if v is not None]
            probe = dict.fromkeys(missing, types.VOID)
            for param in missing:
                one: dict[ast.TypeParam, Type] = {param: probe[param]}
                omitted = any(v is None and types.substitute(t, one) != t for t, v in zip(wanted, values, strict=True))
                if omitted and all(types.substitute(t, one) == t for t in used):
                    inference.bound[param] = types.VOID

    def _uninferred(self, e: ast.Node, what: str, inference: Inference, values: list[ast.Expr | None]) -> bool:
        """Whether type arguments are missing; reported unless an error in the arguments explains it."""
        missing = [p for p in inference.unknown() if p.name != "_"]
        if not missing:
            return False
        if not any(
            v is not None and isinstance(v.type, types.Unknown) and not isinstance(v, ast.DontCare) for v in values
        ):
            names = ", ".join(sorted(p.name for p in missing))
            self.error(e, f"type argument {names} of {what} cannot be inferred here: write it")
        return True

    def _pass_all(
        self,
        what: str,
        params: list[ast.Parameter],
        wanted: list[Type],
        values: list[ast.Expr | None],
        constant: bool,
    ) -> list[ast.Expr | None]:
        result: list[ast.Expr | None] = []
        for param, t, value in zip(params, wanted, values, strict=True):
            if value is None:
                default = param.default
                if default is not None and not is_object(t):
                    default = self.convert(default, t)
                result.append(default)
            else:
                result.append(self.pass_argument(what, param, t, value, constant))
        return result

    # Tables, controls, parsers

    def _apply(self, e: ast.Call, t: Type) -> ast.Expr:
        if isinstance(t, types.Table):
            e.kind = CallKind.TABLE_APPLY
            e.decl = t.decl
            e.type = types.ApplyResult(t.decl)
            if e.args or e.type_arg_exprs:
                self.error(e, "applying a table takes no arguments")
            if self.place != Place.CONTROL:
                self.error(e, f"a table can only be applied in the apply block of a control, not in {self.place.value}")
            return e
        if not isinstance(t, (types.Parser, types.Control)):
            self.error(e, f"{t} cannot be applied")
            return e
        parser = isinstance(t, types.Parser)
        e.kind = CallKind.PARSER_APPLY if parser else CallKind.CONTROL_APPLY
        e.decl = t.decl
        right = Place.PARSER if parser else Place.CONTROL
        if self.place != right:
            kind = "parser" if parser else "control"
            self.error(e, f"a {kind} can only be applied in {right.value}, not in {self.place.value}")
        if e.type_arg_exprs:
            self.error(e, f"applying {t} takes no type arguments")
        what = f"{t.decl.name!r}"
        matched = self.match_arguments(e, what, t.decl.params, e.args)
        if matched is None:
            self.check_values(e.args)
            return e
        wanted = specialised_params(t)
        inference = Inference(t.decl.type_params)
        values = self._infer(what, t.decl.params, wanted, matched, inference)
        e.params = t.decl.params
        e.param_types = [inference.apply(w) for w in wanted]
        e.bound = self._pass_all(what, t.decl.params, e.param_types, values, True)
        e.type = types.VOID
        return e

    # Built-in methods of headers and stacks

    def _builtin(self, e: ast.Call, func: ast.Member, t: Type) -> ast.Expr:
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
            self.error(func, f"{shown} has no method {name!r}{hint}")
            self.check_values(e.args)
            return e
        if e.args or e.type_arg_exprs:
            self.error(e, f"{name!r} takes no arguments")
        e.kind = CallKind.BUILTIN
        e.type = result
        return e

    def _changes(self, e: ast.Call, base: ast.Expr) -> None:
        why = self.not_assignable(base)
        if why is not None:
            self.error(e, f"{e.method!r} changes its header, which it cannot here: {why}")

    def _push_or_pop(self, e: ast.Call, func: ast.Member) -> ast.Expr:
        self._changes(e, func.base)
        e.kind = CallKind.BUILTIN
        e.type = types.VOID
        if len(e.args) != 1:
            self.error(e, f"{func.name!r} takes 1 argument, not {len(e.args)}")
            return e
        value, count = self.constant_int(e.args[0].value, f"the argument of {func.name!r}")
        if count is not None and count <= 0:
            self.error(value, f"the argument of {func.name!r} must be positive, not {count}")
        e.args[0].value = value
        e.bound = [value]
        return e

    # Instances

    def construct(self, e: ast.Call, written: ast.TypeExpr, expected: Type | None) -> ast.Expr:
        """`T(args)` as an expression."""
        t = self.resolve(written, infer=True)
        result = ast.ConstructorCall(e.pos, written, [], [])
        if isinstance(t, types.Unknown):
            self.check_values(e.args)
            return result
        if not is_object(t):
            self.error(e, f"{t} has no constructor")
            self.check_values(e.args)
            return result
        if self.place not in (Place.TOP, Place.CONTROL_LOCAL, Place.PARSER_LOCAL, Place.TABLE):
            self.error(e, f"an instance of {t} cannot be made in {self.place.value}")
        if isinstance(t, types.Extern) and any(m.abstract for m in t.decl.methods):
            self.error(e, f"{t} has abstract methods: declare an instance that implements them")
        found = self.instantiate(e, written, t, e.args, expected)
        if found is not None:
            result.type, result.ctor, result.params, result.bound = found
        return result

    def instantiate(
        self, at: ast.Node, written: ast.TypeExpr, t: Type, args: list[ast.Argument], expected: Type | None
    ) -> tuple[Type, ast.Method | None, list[ast.Parameter], list[ast.Expr | None]] | None:
        """Check `t(args)`: the full type, the constructor, its parameters and what they get."""
        assert isinstance(t, (types.Extern, types.Parser, types.Control, types.Package))
        decl = t.decl
        ctor: ast.Method | None = None
        if isinstance(decl, ast.ExternDecl):
            ctor = self._constructor(at, decl, args)
            if ctor is None:
                self.check_values(args)
                return None
            params = ctor.params
        elif isinstance(decl, (ast.ParserDecl, ast.ControlDecl)):
            params = decl.ctor_params
        elif isinstance(decl, ast.PackageDecl):
            params = decl.params
        else:
            self.error(at, f"{t} has no body, so it has no instances")
            self.check_values(args)
            return None
        what = f"the constructor of {decl.name!r}"
        matched = self.match_arguments(at, what, params, args)
        if matched is None:
            self.check_values(args)
            return None
        explicit = t != decl.type
        open_params = [] if explicit else list(decl.type_params)
        given = dict(zip(decl.type_params, t.args, strict=True)) if explicit else {}
        # `_` among explicit type arguments is inferred, too.
        open_params += [a.decl for a in given.values() if isinstance(a, types.TypeVar) and a.decl.name == "_"]
        wanted = [types.substitute(p.type, given) for p in params]
        inference = Inference(open_params)
        values = self._infer(what, params, wanted, matched, inference)
        if inference.missing() and isinstance(expected, type(t)):
            inference.unify(t, expected)
        self._ignore_omitted(wanted, values, inference)
        if isinstance(t, (types.Extern, types.Package)) and self._uninferred(at, what, inference, values):
            return None
        full = [inference.apply(w) for w in wanted]
        bound = self._pass_all(what, params, full, values, True)
        return inference.apply(t), ctor, params, bound

    def _constructor(self, at: ast.Node, decl: ast.ExternDecl, args: list[ast.Argument]) -> ast.Method | None:
        fitting = [c for c in decl.constructors if accepts(c.params, args)]
        if fitting:
            return fitting[0]
        if not decl.constructors:
            self.error(at, f"extern {decl.name!r} has no constructor")
        elif len(decl.constructors) == 1:
            self.match_arguments(at, f"the constructor of {decl.name!r}", decl.constructors[0].params, args)
        else:
            self.error(at, f"no constructor of {decl.name!r} takes these {len(args)} arguments")
        return None


def _built_in_methods(t: Type) -> tuple[str, ...]:
    if isinstance(t, types.Header):
        return ("isValid", "setValid", "setInvalid")
    if isinstance(t, types.Union):
        return ("isValid",)
    if isinstance(t, types.Stack):
        return ("push_front", "pop_front")
    return ("apply",) if isinstance(t, (types.Table, types.Parser, types.Control)) else ()
