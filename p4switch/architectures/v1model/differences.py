"""Warnings about differences of simple_switch, and so of the built-in switch, from v1model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from p4switch.compiler import ast, types
from p4switch.compiler.differences import NAME
from p4switch.compiler.facts import Binding, Facts
from p4switch.compiler.walk import parts, walk

if TYPE_CHECKING:
    from p4switch.architectures.package import Tell

_KEPT = "ingress_port"  # standard metadata that is kept when a clone of ingress is parsed
_CLONES = ("clone", "clone3", "clone_preserving_field_list")


def warn(blocks: Sequence[ast.ControlDecl | ast.ParserDecl], facts: Facts, tell: Tell) -> None:
    """Warn where parsers read metadata that is lost when a clone of ingress is parsed."""
    clones = _Clones(facts, tell)
    if any(clones.clones_ingress(node) for block in blocks for node in walk(block, facts)):
        for block in blocks:
            if isinstance(block, ast.ParserDecl):
                clones.second_parse(block)


class _Clones:
    """Checks of one program for the second parse of clones."""

    def __init__(self, facts: Facts, tell: Tell) -> None:
        self._facts = facts
        self._tell = tell

    def clones_ingress(self, node: ast.Node) -> bool:
        binding = self._facts.bindings[node] if isinstance(node, ast.Call) else Binding()
        kind = binding.bound[0] if binding.method in _CLONES and binding.bound else None
        return isinstance(kind, ast.EnumRef) and kind.decl.name == "I2E"

    def second_parse(self, parser: ast.ParserDecl) -> None:
        """Warn about metadata that the parser reads and that is zero when a clone of ingress is parsed."""
        for state in parser.states:
            for top in [*state.statements, state.transition]:
                for node in self._read(top) if top is not None else ():
                    if isinstance(node, ast.Member) and self._is_lost(node):
                        message = f"'{node.name}' is 0 where a clone of ingress is parsed"
                        self._tell(node, f"{message}: this target keeps '{_KEPT}' only", NAME)

    def _read(self, node: ast.Node) -> Iterator[ast.Node]:
        """Yield the nodes that are evaluated, without the place that is assigned to."""
        yield node
        for part in parts(node, self._facts):
            if not (isinstance(node, ast.Assign) and part is node.target):
                yield from self._read(part)

    def _is_lost(self, node: ast.Member) -> bool:
        field, base = self._facts.fields.get(node), self._facts.types[node.base]
        if field is None or not isinstance(base, types.Struct):
            return False
        if base.name == "standard_metadata_t":
            return node.name != _KEPT
        return any(a.name == "field_list" for a in field.decl.annotations)
