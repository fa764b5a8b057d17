"""Assignability of expressions, and whether they are known at compile time."""

from __future__ import annotations

from p4switch.compiler import ast, types
from p4switch.compiler.facts import CallKind, Constant, default_constant
from p4switch.compiler.semantics.context import Checking
from p4switch.compiler.types import Type
from p4switch.compiler.walk import parts, walk

_WRITTEN: dict[type[ast.Node], tuple[str, ...]] = {
    ast.Member: ("name",),
    ast.Unary: ("op",),
    ast.Binary: ("op",),
}
"""Attributes of an expression that are not child nodes."""


class Values:
    def __init__(self, ctx: Checking) -> None:
        self.ctx = ctx
        self.facts = ctx.facts
        self.types = ctx.facts.types
        self.constants = ctx.facts.constants
        self.decls = ctx.facts.decls
        self.bindings = ctx.facts.bindings
        self.fields = ctx.facts.fields

    def not_assignable(self, e: ast.Expr) -> str | None:
        """Return why `e` cannot be assigned to, or passed for an out or inout parameter; None if it can."""
        if e in self.constants:
            return "it is a constant"
        if e in self.facts.uncast:
            return "it is not a variable, a field or a part of one"
        if isinstance(e, ast.Name):
            decl = self.decls[e]
            if isinstance(decl, ast.VarDecl):
                return None
            if isinstance(decl, ast.Parameter):
                if decl.direction in (ast.Direction.OUT, ast.Direction.INOUT):
                    return None
                way = "an in parameter" if decl.direction == ast.Direction.IN else "a parameter without direction"
                return f"{e.name!r} is {way}"
            if isinstance(decl, ast.ConstDecl):
                return f"{e.name!r} is a constant"
            return f"{e.name!r} is not a variable"
        if isinstance(e, ast.Member):
            if e not in self.fields and e.name == "lastIndex":
                return f"{e.name!r} of a header stack cannot be changed"
            return self.not_assignable(e.base)
        if isinstance(e, (ast.Index, ast.Slice, ast.WidthSlice)):
            return self.not_assignable(e.base)
        return "it is not a variable, a field or a part of one"

    def is_constant(self, e: ast.Expr, in_call: bool = False) -> bool:
        """Return whether the value of the checked expression `e` is known when the program is compiled.

        With `in_call`, parameters without direction count as known, because inlining the call makes them known.
        """
        if e in self.constants or isinstance(e, ast.InvalidHeader) or isinstance(self.types[e], types.Unknown):
            return True
        if isinstance(e, ast.Call):
            return self.bindings[e].kind is CallKind.CONSTRUCTOR
        if isinstance(e, ast.DefaultInit):
            return not isinstance(self.types[e], types.AnonRecord)
        if isinstance(e, ast.Name):
            decl = self.decls[e]
            if in_call and isinstance(decl, ast.Parameter) and decl.direction == ast.Direction.NONE:
                return True
            known = isinstance(decl, (ast.ConstDecl, ast.Instantiation, ast.MatchKindMember))
            return known or self._is_constructor_parameter(decl)
        if isinstance(e, ast.This):
            return True
        if isinstance(e, ast.ListExpr):
            return all(self.is_constant(i, in_call) for i in e.items)
        if isinstance(e, ast.StructExpr):
            return all(self.is_constant(f.value, in_call) for f in e.fields)
        if isinstance(e, (ast.Cast, ast.Unary)):
            return self.is_constant(e.operand, in_call)
        if isinstance(e, ast.Binary):
            return self.is_constant(e.left, in_call) and self.is_constant(e.right, in_call)
        if isinstance(e, ast.Conditional):
            chosen = self.meant(e)
            needed = [e.condition, e.then, e.otherwise] if chosen is e else [chosen]
            return all(self.is_constant(x, in_call) for x in needed)
        if isinstance(e, ast.Member):
            return e.name not in ("next", "last", "lastIndex") and self.is_constant(e.base, in_call)
        if isinstance(e, (ast.Index, ast.Slice, ast.WidthSlice)):
            return self.is_constant(e.base, in_call)
        return False

    def meant(self, e: ast.Expr) -> ast.Expr:
        """Return the part of `e` that determines its value, without needless casts and known conditions."""
        while True:
            if isinstance(e, ast.Cast) and self.types[e] == self.types[e.operand]:
                e = e.operand
            elif isinstance(e, ast.Conditional) and (condition := self.facts.boolean(e.condition)) is not None:
                e = e.then if condition else e.otherwise
            else:
                return e

    def part(self, e: ast.Expr, part: str | int, t: Type) -> Constant | None:
        """Return a part of the constant `e`, which is a name or an initialiser; None if the part is not constant.

        `part` is the name of a field or the index of an element, and `t` is the type of the part.
        """
        e = self.meant(e)
        decl = self.decls.get(e)
        if isinstance(decl, ast.ConstDecl):
            return self.part(decl.init, part, t)
        if not isinstance(e, (ast.ListExpr, ast.StructExpr, ast.DefaultInit)) or isinstance(
            self.types[e], types.AnonRecord
        ):
            return None
        given = self._given(e)
        return self.constants.get(given[part]) if part in given else default_constant(t, self.ctx.program)

    def _given(self, e: ast.Expr) -> dict[str | int, ast.Expr]:
        """Return the explicit values of an initialiser, by names of fields or indexes of elements."""
        if isinstance(e, ast.StructExpr):
            return {f.name: f.value for f in e.fields}
        if not isinstance(e, ast.ListExpr):
            return {}
        t = self.types[e]
        names = [f.name for f in t.fields] if isinstance(t, types.Record) else range(len(e.items))
        return dict(zip(names, e.items, strict=False))

    def calls(self, e: ast.Expr, *kinds: CallKind) -> bool:
        """Return whether the evaluation of the checked expression `e` includes a call of one of these kinds."""
        return any(isinstance(x, ast.Call) and self.bindings[x].kind in kinds for x in walk(e, self.ctx.facts))

    def same(self, a: ast.Expr, b: ast.Expr) -> bool:
        """Return whether two checked expressions have the same tree."""
        a, b = self.meant(a), self.meant(b)
        if a in self.constants or b in self.constants:
            return self.constants.get(a) == self.constants.get(b)
        first, second = self._given(a), self._given(b)
        if first or second:
            same = self.types[a] == self.types[b] and first.keys() == second.keys()
            return same and all(self.same(value, second[name]) for name, value in first.items())
        if type(a) is not type(b) or any(getattr(a, name) != getattr(b, name) for name in _WRITTEN.get(type(a), ())):
            return False
        if isinstance(a, ast.Name) and self.decls.get(a) is not self.decls.get(b):
            return False
        if isinstance(a, ast.Call) and self.bindings[a].method != self.bindings[b].method:
            return False
        if isinstance(a, (ast.Cast, ast.StructExpr, ast.ListExpr, ast.WidthSlice)) and self.types[a] != self.types[b]:
            return False
        left, right = parts(a, self.ctx.facts), parts(b, self.ctx.facts)
        if isinstance(a, ast.Slice) and isinstance(b, ast.Slice):
            left, right = [*left, a.high, a.low], [*right, b.high, b.low]
        pairs = zip(left, right, strict=False)
        alike = (isinstance(x, ast.Expr) and isinstance(y, ast.Expr) and self.same(x, y) for x, y in pairs)
        return len(left) == len(right) and all(alike)

    def _is_constructor_parameter(self, decl: ast.Declaration) -> bool:
        return self.ctx.owner is not None and any(p is decl for p in self.ctx.owner.ctor_params)
