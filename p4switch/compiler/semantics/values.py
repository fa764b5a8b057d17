"""Assignability of expressions, and whether they are known at compile time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from p4switch.compiler import ast, types
from p4switch.compiler.facts import CallKind
from p4switch.compiler.walk import parts, walk

if TYPE_CHECKING:
    from p4switch.compiler.semantics.context import Checking

LITERALS = (ast.IntLiteral, ast.BoolLiteral, ast.StringLiteral, ast.EnumRef)

_WRITTEN: dict[type[ast.Node], tuple[str, ...]] = {
    ast.IntLiteral: ("value",),
    ast.BoolLiteral: ("value",),
    ast.StringLiteral: ("value",),
    ast.EnumRef: ("decl",),
    ast.Member: ("name",),
    ast.Unary: ("op",),
    ast.Binary: ("op",),
}
"""Attributes of an expression besides its parts."""


class Values:
    def __init__(self, ctx: Checking) -> None:
        self.ctx = ctx
        self.types = ctx.facts.types
        self.decls = ctx.facts.decls
        self.bindings = ctx.facts.bindings
        self.fields = ctx.facts.fields

    def not_assignable(self, e: ast.Expr) -> str | None:
        """Return why `e` cannot be assigned to or passed for an out or inout parameter; None if it can."""
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
            if self.fields.get(e) is None and e.name in ("lastIndex", "size"):
                return f"{e.name!r} of a header stack cannot be changed"
            return self.not_assignable(e.base)
        if isinstance(e, (ast.Index, ast.Slice)):
            return self.not_assignable(e.base)
        if isinstance(e, LITERALS):
            return "it is a constant"
        return "it is not a variable, a field or a part of one"

    def is_constant(self, e: ast.Expr, in_call: bool = False) -> bool:
        """Return whether the value of `e`, checked, is known when the program is compiled.

        With `in_call`, parameters without direction count as known, because they are once the call is inlined.
        """
        if isinstance(e, (*LITERALS, ast.ConstructorCall, ast.InvalidHeader)) or isinstance(
            self.types[e], types.Unknown
        ):
            return True
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
            return (
                self.is_constant(e.condition, in_call)
                and self.is_constant(e.then, in_call)
                and self.is_constant(e.otherwise, in_call)
            )
        if isinstance(e, ast.Member):
            return e.name not in ("next", "last", "lastIndex") and self.is_constant(e.base, in_call)
        if isinstance(e, (ast.Index, ast.Slice)):
            return self.is_constant(e.base, in_call)
        return False

    def calls(self, e: ast.Expr, *kinds: CallKind) -> bool:
        """Return whether the evaluation of `e`, checked, calls something of these kinds."""
        return any(isinstance(x, ast.Call) and self.bindings[x].kind in kinds for x in walk(e, self.ctx.facts))

    def same(self, a: ast.Node, b: ast.Node) -> bool:
        """Return whether two checked expressions are written alike."""
        if type(a) is not type(b) or any(getattr(a, name) != getattr(b, name) for name in _WRITTEN.get(type(a), ())):
            return False
        if isinstance(a, ast.Name) and self.decls.get(a) is not self.decls.get(b):
            return False
        if isinstance(a, ast.Call) and self.bindings[a].method != self.bindings[b].method:
            return False
        if isinstance(a, (ast.Cast, ast.StructExpr, ast.ListExpr)) and self.types[a] != self.types[b]:
            return False
        left, right = parts(a, self.ctx.facts), parts(b, self.ctx.facts)
        if isinstance(a, ast.Slice) and isinstance(b, ast.Slice):
            left, right = [*left, a.high, a.low], [*right, b.high, b.low]
        return len(left) == len(right) and all(map(self.same, left, right))

    def _is_constructor_parameter(self, decl: ast.Declaration) -> bool:
        return self.ctx.owner is not None and any(p is decl for p in self.ctx.owner.ctor_params)
