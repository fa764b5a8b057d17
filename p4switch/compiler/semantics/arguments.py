"""Checks of the arguments of calls and constructors."""

from __future__ import annotations

from p4switch.compiler import ast, types
from p4switch.compiler.ast import Direction
from p4switch.compiler.facts import CallKind
from p4switch.compiler.semantics.context import Checking
from p4switch.compiler.semantics.conversions import Conversions
from p4switch.compiler.semantics.inference import Inference, paired_params
from p4switch.compiler.semantics.values import Values
from p4switch.compiler.semantics.written_types import is_object
from p4switch.compiler.types import Type


def _missing_allowed(param: ast.Parameter) -> bool:
    return param.default is not None or param.optional


def accepts(params: list[ast.Parameter], args: list[ast.Argument]) -> bool:
    """Return whether `args` match `params` in number and names."""
    if len(args) > len(params):
        return False
    names = {a.name for a in args if a.name is not None}
    if names:
        known = {p.name for p in params}
        return names <= known and all(p.name in names or _missing_allowed(p) for p in params)
    return all(_missing_allowed(p) for p in params[len(args) :])


class Arguments:
    def __init__(self, ctx: Checking, conversions: Conversions, values: Values) -> None:
        self.ctx = ctx
        self.conversions = conversions
        self.values = values
        self.types = ctx.facts.types
        self.bindings = ctx.facts.bindings

    def match_arguments(
        self, at: ast.Node, what: str, params: list[ast.Parameter], args: list[ast.Argument]
    ) -> list[ast.Argument | None] | None:
        """Return the argument for each parameter (None if omitted). After an error is reported, return None."""
        named = [a for a in args if a.name is not None]
        if named and len(named) < len(args):
            self.ctx.error(at, f"either all or none of the arguments of {what} must be named")
            return None
        if not named:
            if not accepts(params, args):
                few = sum(not _missing_allowed(p) for p in params)
                count = str(len(params)) if few == len(params) else f"{few} to {len(params)}"
                names = ": " + ", ".join(p.name for p in params) if params else ""
                self.ctx.error(
                    at, f"{what} takes {count} argument{'s' if count != '1' else ''}, not {len(args)}{names}"
                )
                return None
            return [*args, *[None] * (len(params) - len(args))]
        by_name: dict[str, ast.Argument] = {}
        known = {p.name for p in params}
        for a in named:
            assert a.name is not None
            if a.name not in known:
                self.ctx.error(a, f"{what} has no parameter {a.name!r}")
                return None
            if a.name in by_name:
                self.ctx.error(a, f"argument {a.name!r} is given twice")
                return None
            by_name[a.name] = a
        missing = [p.name for p in params if p.name not in by_name and not _missing_allowed(p)]
        if missing:
            self.ctx.error(at, f"{what} needs an argument for {missing[0]!r}")
            return None
        return [by_name.get(p.name) for p in params]

    def check_values(self, args: list[ast.Argument]) -> Type:
        """Check each argument of a call that cannot be resolved, and return an unknown type."""
        for a in args:
            if not isinstance(a.value, ast.DontCare):
                self.ctx.expressions.expr(a.value)
        return types.UNKNOWN

    def pass_argument(self, what: str, param: ast.Parameter, t: Type, e: ast.Expr, constant: bool) -> None:
        """Convert the checked argument `e` for `param` of type `t`.

        With `constant`, the argument of a parameter without direction must be known at compile time.
        """
        shown = f"parameter {param.name!r} of {what}"
        if isinstance(e, ast.DontCare):
            if param.direction != Direction.OUT:
                self.ctx.error(e, f"'_' can only be passed for an out parameter, and {param.name!r} is none")
            self.types[e] = t
        elif param.direction in (Direction.OUT, Direction.INOUT):
            if isinstance(self.types[e], types.Unknown):
                return
            why = self.values.not_assignable(e)
            if why is not None:
                self.ctx.error(e, f"{shown} is {param.direction.value}, so its argument must be assignable: {why}")
            elif self.types[e] != t and not isinstance(t, types.Unknown):
                self.ctx.error(e, f"expected {t} for {shown}, not {self.types[e]}")
        elif is_object(t):
            self._pass_object(shown, t, e)
        else:
            self.conversions.convert(e, t, shown)
            if constant and param.direction == Direction.NONE and not self.values.is_constant(e, in_call=True):
                self.ctx.error(e, f"the argument for {shown} must be known at compile time")

    def _pass_object(self, shown: str, wanted: Type, e: ast.Expr) -> None:
        given = self.types[e]
        if isinstance(given, types.Unknown):
            return
        problem = self.mismatch(wanted, given)
        if problem:
            self.ctx.error(e, f"{self.ctx.describe(e)} does not fit {wanted}, which {shown} needs{problem}")
        elif (
            isinstance(e, ast.Call)
            and self.bindings[e].kind is not CallKind.CONSTRUCTOR
            and not all(b is None or self.values.is_constant(b) for b in self.bindings[e].bound)
        ):
            self.ctx.error(e, f"{shown} must be known at compile time")

    def mismatch(self, wanted: Type, given: Type) -> str:
        """Return why an instance of type `given` cannot be used as a `wanted`; empty if it can."""
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
        pairs = paired_params(wanted, given, self.types)
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

    def infer(
        self,
        what: str,
        params: list[ast.Parameter],
        wanted: list[Type],
        matched: list[ast.Argument | None],
        inference: Inference,
    ) -> list[ast.Expr | None]:
        """Check the arguments, and infer type arguments from them."""
        values: list[ast.Expr | None] = []
        for param, t, arg in zip(params, wanted, matched, strict=True):
            if arg is None:
                if param.default is not None and is_object(self.types[param.default]):
                    inference.unify(t, self.types[param.default])
                values.append(None)
                continue
            if not isinstance(arg.value, ast.DontCare):
                given = self.ctx.expressions.expr(arg.value, inference.apply(t))
                known = inference.apply(t)
                if not inference.unify(t, given):
                    shown = f"parameter {param.name!r} of {what}"
                    self.ctx.error(arg.value, f"expected {known} for {shown}, not {self.ctx.describe(arg.value)}")
                    self.types[arg.value] = types.UNKNOWN
            values.append(arg.value)
        return values

    def ignore_omitted(self, wanted: list[Type], values: list[ast.Expr | None], inference: Inference) -> None:
        """Infer void for type parameters that only omitted optional parameters mention."""
        missing = inference.missing()
        if missing:
            used = [t for t, v in zip(wanted, values, strict=True) if v is not None]
            probe = dict.fromkeys(missing, types.VOID)
            for param in missing:
                one: dict[ast.TypeParam, Type] = {param: probe[param]}
                omitted = any(v is None and types.substitute(t, one) != t for t, v in zip(wanted, values, strict=True))
                if omitted and all(types.substitute(t, one) == t for t in used):
                    inference.bound[param] = types.VOID

    def uninferred(self, e: ast.Node, what: str, inference: Inference, values: list[ast.Expr | None]) -> bool:
        """Return whether type arguments are missing, and report it unless an error in the arguments explains it."""
        missing = [p for p in inference.unknown() if p.name != "_"]
        if not missing:
            return False
        if not any(
            v is not None and isinstance(self.types[v], types.Unknown) and not isinstance(v, ast.DontCare)
            for v in values
        ):
            names = ", ".join(sorted(p.name for p in missing))
            self.ctx.error(e, f"type argument {names} of {what} cannot be inferred here: write it")
        return True

    def pass_all(
        self,
        what: str,
        params: list[ast.Parameter],
        wanted: list[Type],
        values: list[ast.Expr | None],
        constant: bool,
    ) -> list[ast.Expr | None]:
        """Convert the arguments to the types of their parameters, and return them with default values filled in."""
        result: list[ast.Expr | None] = []
        for param, t, value in zip(params, wanted, values, strict=True):
            if value is None:
                value = param.default
                if value is not None and not is_object(t):
                    self.conversions.convert(value, t)
            else:
                self.pass_argument(what, param, t, value, constant)
            result.append(value)
        return result
