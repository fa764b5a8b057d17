"""Warnings about what simple_switch, and so the built-in switch, does differently from v1model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from p4switch.compiler import ast, types
from p4switch.compiler.differences import NAME
from p4switch.compiler.midend.walk import parts, walk

if TYPE_CHECKING:
    from p4switch.architectures.package import Tell

_KEPT = "ingress_port"  # of the standard metadata, when a clone of ingress is parsed
_CLONES = ("clone", "clone3", "clone_preserving_field_list")


def warn(blocks: Sequence[ast.ControlDecl | ast.ParserDecl], tell: Tell) -> None:
    """Tell where parsers read what is lost when a clone of ingress is parsed."""
    if any(_clones_ingress(node) for block in blocks for node in walk(block)):
        for block in blocks:
            if isinstance(block, ast.ParserDecl):
                _second_parse(block, tell)


def _clones_ingress(node: ast.Node) -> bool:
    kind = node.bound[0] if isinstance(node, ast.Call) and node.method in _CLONES and node.bound else None
    return isinstance(kind, ast.EnumRef) and kind.decl.name == "I2E"


def _second_parse(parser: ast.ParserDecl, tell: Tell) -> None:
    """Tell of metadata that the parser reads and that is zero when a clone of ingress is parsed."""
    for state in parser.states:
        for top in [*state.statements, state.transition]:
            for node in _read(top) if top is not None else ():
                if isinstance(node, ast.Member) and _is_lost(node):
                    message = f"'{node.name}' is 0 where a clone of ingress is parsed: this target keeps '{_KEPT}' only"
                    tell(node, message, NAME)


def _read(node: ast.Node) -> Iterator[ast.Node]:
    """Yield the nodes of what is evaluated, without the place that is assigned to."""
    yield node
    for part in parts(node):
        if not (isinstance(node, ast.Assign) and part is node.target):
            yield from _read(part)


def _is_lost(node: ast.Member) -> bool:
    if node.field is None or not isinstance(node.base.type, types.Struct):
        return False
    if node.base.type.name == "standard_metadata_t":
        return node.name != _KEPT
    return any(a.name == "field_list" for a in node.field.decl.annotations)
