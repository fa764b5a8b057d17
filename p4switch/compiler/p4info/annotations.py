"""Annotations and documentation of P4Info objects."""

from __future__ import annotations

from typing import Any

from p4switch.compiler import ast

_ELSEWHERE = {"name", "id", "brief", "description"}  # annotations for which P4Info has other fields


def _structured(message: Any, annotation: ast.Annotation) -> None:
    entry = message.structured_annotations.add(name=annotation.name)
    if annotation.pairs:
        for key, value in annotation.pairs.items():
            _literal(entry.kv_pair_list.kv_pairs.add(key=key).value, value)
    else:
        for item in annotation.args or ():
            _literal(entry.expression_list.expressions.add(), item)


def _literal(target: Any, node: ast.Expr) -> None:
    if isinstance(node, ast.BoolLiteral):
        target.bool_value = node.value
    elif isinstance(node, ast.IntLiteral):
        target.int64_value = node.value
    elif isinstance(node, ast.StringLiteral):
        target.string_value = node.value


def text(annotation: ast.Annotation) -> str:
    """Return the P4 text of an unstructured annotation."""
    if not annotation.tokens:
        return f"@{annotation.name}"
    return f"@{annotation.name}({' '.join(annotation.tokens)})"


def add_annotations(message: Any, annotations: list[ast.Annotation], *skip: str) -> None:
    """Fill in `annotations` and `structured_annotations`, except annotations named in `skip`."""
    for annotation in annotations:
        if annotation.structured:
            _structured(message, annotation)
        elif annotation.name not in _ELSEWHERE and annotation.name not in skip:
            message.annotations.append(text(annotation))


def add_documentation(message: Any, annotations: list[ast.Annotation]) -> None:
    """Fill in `doc` from `@brief` and `@description`."""
    for annotation in annotations:
        if annotation.name in ("brief", "description") and annotation.string is not None:
            setattr(message.doc, annotation.name, annotation.string)
