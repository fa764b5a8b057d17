"""Inference of the type arguments of a generic from the types of its arguments."""

from __future__ import annotations

from p4switch.compiler import ast, types
from p4switch.compiler.facts import Types
from p4switch.compiler.types import Type


class Inference:
    """Type arguments inferred so far for the type parameters `params`.

    `known` has the types of the parameters of parsers, controls and packages.
    """

    def __init__(self, params: list[ast.TypeParam], known: Types) -> None:
        self._known = known
        self._open = set(params)
        self.bound: dict[ast.TypeParam, Type] = {}

    def apply(self, t: Type) -> Type:
        return types.substitute(t, self.bound)

    def missing(self) -> list[ast.TypeParam]:
        return [p for p in self._open if p not in self.bound]

    def unknown(self) -> list[ast.TypeParam]:
        """Return the type parameters that are not yet fully inferred."""
        probe: dict[ast.TypeParam, Type] = dict.fromkeys(self._open, types.VOID)
        return [p for p in self._open if p not in self.bound or types.substitute(self.bound[p], probe) != self.bound[p]]

    def unify(self, wanted: Type, given: Type) -> bool:
        """Bind type parameters in `wanted` so that it equals `given`, up to later implicit conversions.

        Returns False if one parameter would need two types.
        """
        if isinstance(wanted, types.TypeVar) and wanted.decl in self._open:
            return self._bind(wanted.decl, given)
        if isinstance(given, types.Unknown):
            return True
        if isinstance(wanted, types.Tuple):
            if isinstance(given, types.Tuple) and len(wanted.elements) == len(given.elements):
                pairs = zip(wanted.elements, given.elements, strict=True)
                return all(self.unify(w, g) for w, g in pairs)
            return True
        if isinstance(wanted, types.Stack):
            return not isinstance(given, types.Stack) or self.unify(wanted.element, given.element)
        if isinstance(wanted, types.List):
            if isinstance(given, types.Tuple):
                return all(self.unify(wanted.element, g) for g in given.elements)
            return not isinstance(given, types.List) or self.unify(wanted.element, given.element)
        if isinstance(wanted, types.Record):
            return self._unify_record(wanted, given)
        if isinstance(wanted, types.Extern):
            if isinstance(given, types.Extern) and given.decl is wanted.decl:
                return all(self.unify(w, g) for w, g in zip(wanted.args, given.args, strict=True))
            return True
        if isinstance(wanted, (types.Parser, types.Control, types.Package)):
            return self._unify_object(wanted, given)
        return True

    def _bind(self, param: ast.TypeParam, given: Type) -> bool:
        known = self.bound.get(param)
        if isinstance(given, types.Unknown):
            return True
        if known is None or param.name == "_":
            self.bound[param] = given
            return True
        merged = _merge(known, given)
        if merged is None:
            return False
        self.bound[param] = merged
        return True

    def _unify_record(self, wanted: types.Record, given: Type) -> bool:
        if isinstance(given, types.Record) and given.decl is wanted.decl:
            return all(self.unify(w, g) for w, g in zip(wanted.args, given.args, strict=True))
        if not wanted.args:
            return True
        if isinstance(given, types.Tuple) and len(given.elements) == len(wanted.fields):
            return all(self.unify(f.type, g) for f, g in zip(wanted.fields, given.elements, strict=True))
        if isinstance(given, types.AnonRecord):
            by_name = dict(zip(given.names, given.types, strict=True))
            return all(self.unify(f.type, by_name[f.name]) for f in wanted.fields if f.name in by_name)
        return True

    def _unify_object(self, wanted: types.Parser | types.Control | types.Package, given: Type) -> bool:
        """Unify a parser or control with a parser or control type, parameter by parameter."""
        if not isinstance(given, type(wanted)):
            return True
        if given.decl is wanted.decl:
            return all(self.unify(w, g) for w, g in zip(wanted.args, given.args, strict=True))
        pairs = paired_params(wanted, given, self._known)
        return pairs is None or all(self.unify(w, g) for _, w, _, g in pairs)


def specialised_params(t: types.Parser | types.Control | types.Package, known: Types) -> list[Type]:
    """Return the types of the apply (or package) parameters of `t`, with type arguments substituted."""
    bound = dict(zip(t.decl.type_params, t.args, strict=True)) if t.args else {}
    return [types.substitute(known[p], bound) for p in t.decl.params]


def paired_params(
    wanted: types.Parser | types.Control | types.Package,
    given: types.Parser | types.Control | types.Package,
    known: Types,
) -> list[tuple[ast.Parameter, Type, ast.Parameter, Type]] | None:
    """Return the parameters of two object types in pairs, with their types; None if they do not match.

    The given type may lack optional parameters of the wanted type. These are the parameters whose
    names it does not have, or else the last ones.
    """
    left = list(zip(wanted.decl.params, specialised_params(wanted, known), strict=True))
    right = list(zip(given.decl.params, specialised_params(given, known), strict=True))
    if len(left) > len(right):
        names = {p.name for p, _ in right}
        left = [(p, t) for p, t in left if p.name in names or not (p.optional or p.default is not None)]
    if len(left) != len(right):
        kept, dropped = wanted.decl.params[: len(right)], wanted.decl.params[len(right) :]
        if len(kept) != len(right) or not all(p.optional for p in dropped):
            return None
        left = list(zip(kept, specialised_params(wanted, known)[: len(right)], strict=True))
    return [(wp, wt, gp, gt) for (wp, wt), (gp, gt) in zip(left, right, strict=True)]


def _merge(a: Type, b: Type) -> Type | None:
    """Return a type to which both `a` and `b` can be converted, or None."""
    if a == b:
        return a
    if isinstance(a, types.InfInt) and isinstance(b, types.Bits):
        return b
    if isinstance(b, types.InfInt) and isinstance(a, types.Bits):
        return a
    if isinstance(a, types.Tuple) and isinstance(b, types.Tuple) and len(a.elements) == len(b.elements):
        merged = [_merge(x, y) for x, y in zip(a.elements, b.elements, strict=True)]
        known = [m for m in merged if m is not None]
        return types.Tuple(tuple(known)) if len(known) == len(merged) else None
    if isinstance(a, (types.Tuple, types.AnonRecord)) and isinstance(b, types.Record):
        return b
    if isinstance(b, (types.Tuple, types.AnonRecord)) and isinstance(a, types.Record):
        return a
    return None
