"""Warnings about what BMv2, and so the built-in switch, does differently from P4-16.

They are for what the JSON has no way to say; docs/limitations.md has the table. What it can say is compiled as the
specification has it. What a target does differently from its architecture, the architecture tells (`Package.warn`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from p4switch.compiler import ast, types
from p4switch.compiler.midend.walk import place_text, walk

if TYPE_CHECKING:
    from p4switch.architectures.package import Tell

NAME = "target-differs"

_Place = tuple[object, ...]


def warn(blocks: Iterable[ast.ControlDecl | ast.ParserDecl], tell: Tell) -> None:
    """Tell where the parsers and controls of a program come to what the target does differently."""
    for block in blocks:
        if isinstance(block, ast.ParserDecl):
            _last(block, tell)


# `last` of stacks


def _last(parser: ast.ParserDecl, tell: Tell) -> None:
    """Tell of `last` of stacks to which nothing has been extracted on some path."""
    # What an `inout` parameter has in it is the caller's affair.
    given: set[_Place] = {(id(p),) for p in parser.params if p.direction is ast.Direction.INOUT}
    before: dict[ast.ParserState, set[_Place] | None] = dict.fromkeys(parser.states)  # None: not reached yet
    before[parser.start] = given
    waiting = [parser.start]
    while waiting:
        state = waiting.pop()
        known = before[state]
        assert known is not None
        filled = set(known)
        for _ in _unfilled(state, filled):
            pass
        for target in _targets(state):
            if target not in before:
                continue  # accept, reject
            there = before[target]
            both = set(filled) if there is None else there & filled
            if there is None or both != there:
                before[target] = both
                waiting.append(target)
    for state, filled_before in before.items():
        for node in () if filled_before is None else _unfilled(state, set(filled_before)):
            message = "'last' of a stack that may be empty here: this target raises no StackOutOfBounds for its fields"
            tell(node, message, NAME)


def _targets(state: ast.ParserState) -> list[ast.ParserState]:
    if isinstance(state.transition, ast.Transition):
        return [state.transition.target]
    return [case.target for case in state.transition.cases] if state.transition is not None else []


def _unfilled(state: ast.ParserState, filled: set[_Place]) -> Iterator[ast.Member]:
    """Yield the fields of `last` that are read of stacks not in `filled`, to which the state adds what it fills."""
    for top in [*state.statements, state.transition]:
        for node in walk(top) if top is not None else ():
            if isinstance(node, ast.Member) and isinstance(node.base, ast.Member) and _is_stack(node.base, "last"):
                place = place_text(node.base.base)
                if place is not None and not any(place[: len(f)] == f for f in filled):
                    yield node
        for node in walk(top) if top is not None else ():
            if isinstance(node, ast.Call):
                filled |= set(_fills(node))


def _is_stack(node: ast.Member, name: str) -> bool:
    return node.name == name and isinstance(node.base.type, types.Stack)


def _fills(call: ast.Call) -> Iterator[_Place]:
    """Yield the places in which a call may extract to stacks, or put something in front."""
    nodes = [] if call.receiver is None else [call.receiver]
    nodes += [b for b in call.bound if b is not None]
    for node in nodes:
        is_next = isinstance(node, ast.Member) and _is_stack(node, "next")
        place = place_text(node.base if isinstance(node, ast.Member) and is_next else node)
        if place is not None:
            yield place
