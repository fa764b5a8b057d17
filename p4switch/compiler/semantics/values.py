"""Which expressions can be assigned to, and which are known at compile time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from p4switch.compiler import ast, types

if TYPE_CHECKING:
    from p4switch.compiler.semantics.context import Checking

LITERALS = (ast.IntLiteral, ast.BoolLiteral, ast.StringLiteral, ast.EnumRef)


class Values:
    def __init__(self, ctx: Checking) -> None:
        self.ctx = ctx

    def not_assignable(self, e: ast.Expr) -> str | None:
        """Why `e` cannot be assigned to, or passed for an out or inout parameter; None if it can."""
        if isinstance(e, ast.Name):
            decl = e.decl
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
            if e.field is None and e.name in ("lastIndex", "size"):
                return f"{e.name!r} of a header stack cannot be changed"
            return self.not_assignable(e.base)
        if isinstance(e, (ast.Index, ast.Slice)):
            return self.not_assignable(e.base)
        if isinstance(e, LITERALS):
            return "it is a constant"
        return "it is not a variable, a field or a part of one"

    def is_constant(self, e: ast.Expr, in_call: bool = False) -> bool:
        """Whether the value of `e`, checked, is known when the program is compiled.

        `in_call`: parameters without direction count as known, as they are where the call is put in place.
        """
        if isinstance(e, (*LITERALS, ast.ConstructorCall, ast.InvalidHeader)) or isinstance(e.type, types.Unknown):
            return True
        if isinstance(e, ast.Name):
            if in_call and isinstance(e.decl, ast.Parameter) and e.decl.direction == ast.Direction.NONE:
                return True
            known = isinstance(e.decl, (ast.ConstDecl, ast.Instantiation, ast.MatchKindMember))
            return known or self._is_constructor_parameter(e.decl)
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

    def _is_constructor_parameter(self, decl: ast.Declaration) -> bool:
        return self.ctx.owner is not None and any(p is decl for p in self.ctx.owner.ctor_params)
