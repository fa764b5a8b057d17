"""Warnings about what BMv2, and so the built-in switch, does differently from P4-16 or v1model.

They are for what the JSON has no way to say; docs/limitations.md has the table. What it can say is compiled as the
specification has it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from p4switch.compiler import ast, types
from p4switch.compiler.midend.walk import parts, place_text, walk

NAME = "target-differs"
_KEPT = "ingress_port"  # of the standard metadata, when a clone of ingress is parsed
_CLONES = ("clone", "clone3", "clone_preserving_field_list")

_Tell = Callable[[ast.Node, str, str], None]
_Place = tuple[object, ...]


def warn(blocks: Iterable[ast.ControlDecl | ast.ParserDecl], tell: _Tell) -> None:
    """Tell where the parsers and controls of a program come to what the target does differently."""
    blocks = list(blocks)
    parsers = [block for block in blocks if isinstance(block, ast.ParserDecl)]
    for parser in parsers:
        _last(parser, tell)
    if any(_clones_ingress(node) for block in blocks for node in walk(block)):
        for parser in parsers:
            _second_parse(parser, tell)


# `last` of stacks


def _last(parser: ast.ParserDecl, tell: _Tell) -> None:
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


# The second parse of a clone


def _clones_ingress(node: ast.Node) -> bool:
    kind = node.bound[0] if isinstance(node, ast.Call) and node.method in _CLONES and node.bound else None
    return isinstance(kind, ast.EnumRef) and kind.decl.name == "I2E"


def _second_parse(parser: ast.ParserDecl, tell: _Tell) -> None:
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
