"""Walking the checked syntax tree: expressions and statements in it, by what is evaluated."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator

from p4switch.compiler import ast

# The attributes of each kind of node that hold what is evaluated with it (not declarations referred to).
_PARTS: dict[type, tuple[str, ...]] = {
    ast.Member: ("base",),
    ast.Index: ("base", "index"),
    ast.Slice: ("base",),
    ast.Unary: ("operand",),
    ast.Binary: ("left", "right"),
    ast.Conditional: ("condition", "then", "otherwise"),
    ast.Cast: ("operand",),
    ast.Call: ("receiver", "bound"),
    ast.ConstructorCall: ("bound",),
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


@functools.cache
def _snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def method_name(prefix: str, node: ast.Node) -> str:
    """The name of the method that handles `node`: `prefix` and the name of its class in snake case."""
    return prefix + _snake(type(node).__name__)


def parts(node: ast.Node) -> Iterator[ast.Node]:
    """The nodes directly below `node`."""
    for name in _PARTS.get(type(node), ()):
        value = getattr(node, name)
        if isinstance(value, list):
            yield from (v for v in value if v is not None)
        elif value is not None:
            yield value


def place_text(node: ast.Expr) -> tuple[object, ...] | None:
    """Return what is equal for two ways of writing the same place; None for what is not a place."""
    if isinstance(node, ast.Name) and isinstance(node.decl, ast.Parameter | ast.VarDecl):
        return (id(node.decl),)
    if isinstance(node, ast.Member):
        base = place_text(node.base)
        return None if base is None else (*base, node.name)
    return None


def walk(node: ast.Node) -> Iterator[ast.Node]:
    """`node` and everything below it, in source order."""
    stack = [node]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(list(parts(node))))
