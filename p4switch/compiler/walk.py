"""Traversal of the checked syntax tree: the expressions and statements that are evaluated."""

from __future__ import annotations

from collections.abc import Iterator

from p4switch.compiler import ast
from p4switch.compiler.facts import Facts

# Attributes with the evaluated child nodes of each kind of node, without references to declarations.
_PARTS: dict[type, tuple[str, ...]] = {
    ast.Member: ("base",),
    ast.Index: ("base", "index"),
    ast.Slice: ("base",),
    ast.WidthSlice: ("base", "low"),
    ast.Unary: ("operand",),
    ast.Binary: ("left", "right"),
    ast.Conditional: ("condition", "then", "otherwise"),
    ast.Cast: ("operand",),
    ast.ListExpr: ("items",),
    ast.NamedExpr: ("value",),
    ast.StructExpr: ("fields",),
    ast.Mask: ("value", "mask"),
    ast.Range: ("low", "high"),
    ast.Block: ("statements",),
    ast.Assign: ("target", "value"),
    ast.CallStatement: ("call",),
    ast.If: ("condition", "then", "otherwise"),
    ast.Return: ("value",),
    ast.Switch: ("value", "cases"),
    ast.SwitchCase: ("body",),
    ast.For: ("init", "condition", "update", "body"),
    ast.ForIn: ("values", "body"),
    ast.VarDecl: ("init",),
    ast.ParserState: ("statements", "transition"),
    ast.Select: ("keys",),
    ast.ActionDecl: ("body",),
    ast.FunctionDecl: ("body",),
    ast.TableDecl: ("keys",),
    ast.TableKey: ("expr",),
    ast.ControlDecl: ("locals", "body"),
    ast.ParserDecl: ("locals", "states"),
}


_INNER = {*_PARTS, ast.Call}  # kinds of nodes that have child nodes


def parts(node: ast.Node, facts: Facts) -> list[ast.Node]:
    """Return the child nodes of `node` that are evaluated; for a call these are the bound arguments."""
    result: list[ast.Node] = []
    for name in _PARTS.get(type(node), ()):
        value = getattr(node, name)
        if isinstance(value, list):
            result += value
        elif value is not None:
            result.append(value)
    if isinstance(node, ast.Call):
        binding = facts.bindings[node]
        result += [value for value in (binding.receiver, *binding.bound) if value is not None]
    return result


def place_text(node: ast.Expr, facts: Facts) -> tuple[object, ...] | None:
    """Return a key that is equal for all expressions of the same place; None for other expressions."""
    if isinstance(node, ast.Name) and isinstance(facts.decls[node], ast.Parameter | ast.VarDecl):
        return (id(facts.decls[node]),)
    if isinstance(node, ast.Member):
        base = place_text(node.base, facts)
        return None if base is None else (*base, node.name)
    return None


def walk(node: ast.Node, facts: Facts) -> Iterator[ast.Node]:
    """Yield `node` and everything below it, in source order."""
    stack = [node]
    while stack:
        node = stack.pop()
        yield node
        if type(node) in _INNER:
            stack += reversed(parts(node, facts))
