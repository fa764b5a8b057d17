"""Warnings about differences of BMv2, and so of the built-in switch, from P4-16.

They concern features that BMv2 JSON cannot express; docs/limitations.md lists them. Features that it can express are
compiled as specified. Each architecture reports the differences of its target itself (`Package.warn`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from p4switch.compiler import ast, types
from p4switch.compiler.facts import Facts
from p4switch.compiler.walk import place_text, walk

if TYPE_CHECKING:
    from p4switch.architectures.package import Tell

NAME = "target-differs"
_Place = tuple[object, ...]


def warn(blocks: Iterable[ast.ControlDecl | ast.ParserDecl], facts: Facts, tell: Tell) -> None:
    """Warn about uses, in parsers and controls, of features in which the target differs from P4-16."""
    differences = _Differences(facts, tell)
    for block in blocks:
        if isinstance(block, ast.ParserDecl):
            differences.last(block)


class _Differences:
    """Warnings about one program: uses of `last` of stacks that may be empty."""

    def __init__(self, facts: Facts, tell: Tell) -> None:
        self._facts = facts
        self._tell = tell

    def last(self, parser: ast.ParserDecl) -> None:
        """Warn about reads of `last` of a stack if some path leads there without an extraction to the stack."""
        # An `inout` parameter counts as filled, because the caller is responsible for its content.
        given: set[_Place] = {(id(p),) for p in parser.params if p.direction is ast.Direction.INOUT}
        before: dict[ast.ParserState, set[_Place] | None] = dict.fromkeys(parser.states)  # None: not reached yet
        before[parser.start] = given
        waiting = [parser.start]
        while waiting:
            state = waiting.pop()
            known = before[state]
            assert known is not None
            filled = set(known)
            for _ in self._unfilled(state, filled):
                pass
            for target in self._targets(state):
                if target not in before:
                    continue  # accept, reject
                there = before[target]
                both = set(filled) if there is None else there & filled
                if there is None or both != there:
                    before[target] = both
                    waiting.append(target)
        for state, filled_before in before.items():
            for node in () if filled_before is None else self._unfilled(state, set(filled_before)):
                message = "'last' of a stack that may be empty here"
                self._tell(node, f"{message}: this target raises no StackOutOfBounds for its fields", NAME)

    def _targets(self, state: ast.ParserState) -> list[ast.ParserState]:
        if isinstance(state.transition, ast.Transition):
            return [self._facts.states[state.transition]]
        return [self._facts.states[case] for case in state.transition.cases] if state.transition is not None else []

    def _unfilled(self, state: ast.ParserState, filled: set[_Place]) -> Iterator[ast.Member]:
        """Yield the reads of `last` of stacks not in `filled`; stacks that the state fills are added to it."""
        for top in [*state.statements, state.transition]:
            for node in walk(top, self._facts) if top is not None else ():
                stack = node.base if isinstance(node, ast.Member) else node
                if isinstance(stack, ast.Member) and self._is_stack(stack, "last"):
                    assert isinstance(node, ast.Member)
                    place = place_text(stack.base, self._facts)
                    if place is not None and not any(place[: len(f)] == f for f in filled):
                        yield node
            for node in walk(top, self._facts) if top is not None else ():
                if isinstance(node, ast.Call):
                    filled |= set(self._fills(node))

    def _is_stack(self, node: ast.Member, name: str) -> bool:
        return node.name == name and isinstance(self._facts.types[node.base], types.Stack)

    def _fills(self, call: ast.Call) -> Iterator[_Place]:
        """Yield the arguments of a call that may extract to a stack or push elements to its front."""
        binding = self._facts.bindings[call]
        for node in [binding.receiver, *binding.bound]:
            if node is None:
                continue
            is_next = isinstance(node, ast.Member) and self._is_stack(node, "next")
            place = place_text(node.base if isinstance(node, ast.Member) and is_next else node, self._facts)
            if place is not None:
                yield place
