"""Names of P4-14 and of earlier architectures, and their present replacements."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from p4switch.architectures.architecture import Architecture

P4_14 = {
    "modify_field": "an assignment",
    "add_to_field": "an assignment",
    "subtract_from_field": "an assignment",
    "add_header": "HEADER.setValid()",
    "remove_header": "HEADER.setInvalid()",
    "copy_header": "an assignment",
    "push": "STACK.push_front(COUNT)",
    "pop": "STACK.pop_front(COUNT)",
}
"""Primitive actions of P4-14 that P4-16 expresses otherwise."""


def instead(name: str, architecture: Architecture | None) -> str:
    """Return the hint for an unknown name that names the replacement of `name`; empty if there is none."""
    known = P4_14 if architecture is None else {**P4_14, **architecture.superseded}
    return f": write {known[name]}" if name in known else ""
