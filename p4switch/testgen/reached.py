"""Statements that a proof shows to be unreachable, with reasons."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import z3

from p4switch import ir
from p4switch.compiler.source import Location
from p4switch.ir.graph import reverse_postorder
from p4switch.testgen.code import Code
from p4switch.testgen.conditions import disjunction

_RESOURCES = 1_500_000  # limit of one query to z3, in z3's units


@dataclass(frozen=True, slots=True)
class Edge:
    """Edge from a block to another; `span` and `text` describe the decision."""

    source: ir.Block
    guard: Any
    span: Any
    text: str


@dataclass(frozen=True, slots=True)
class Unreachable:
    """Unreachable statement at `place`. `reason` describes the nearest decision that never leads to it."""

    bit: int
    place: Location
    reason: str


class Reached:
    """Conditions under which the blocks and statements of `code` are reached.

    `Prover` describes `deadline`. `proviso` is added to each reason.
    """

    def __init__(self, code: Code, deadline: float, proviso: str = "") -> None:
        self._code = code
        self._deadline = deadline
        self._proviso = proviso
        self._where: dict[int, list[Any]] = {}  # conditions under which each statement is reached
        self._guards: dict[ir.Block, list[Any]] = {}
        self._edges: dict[ir.Block, list[Edge]] = {}
        self._blocks: dict[int, list[ir.Block]] = {}  # blocks with each statement
        self._conditions: dict[int, str] = {}  # text for each statement that no decision leads to
        for block in with_actions(block for start in code.blocks.values() for block in reverse_postorder(start)):
            for span in spans(block):
                self._blocks.setdefault(code.bit(span), []).append(block)

    # Record of reached code

    def note(self, block: ir.Block, guard: Any) -> None:
        """Record that packets for which `guard` holds reach `block`."""
        self._guards.setdefault(block, []).append(guard)

    def cover(self, span: Any, guard: Any) -> None:
        """Record that packets for which `guard` holds reach the statement at `span`."""
        self._where.setdefault(self._code.bit(span), []).append(guard)

    def lead(self, target: ir.Block, edge: Edge) -> None:
        """Record that `edge` leads to `target`."""
        self._edges.setdefault(target, []).append(edge)

    def explain(self, span: Any, text: str) -> None:
        """Record the reason to report for a statement that no decision leads to."""
        self._conditions[self._code.bit(span)] = text

    def touch(self, blocks: Iterable[ir.Block], guard: Any) -> None:
        """Record that packets for which `guard` holds reach all statements of `blocks`."""
        for block in blocks:
            self.note(block, guard)
            for span in spans(block):
                self.cover(span, guard)

    # Unreachable statements

    def unreachable(self, wanted: int) -> list[Unreachable]:
        """Return the statements of `wanted` that are proven to be unreachable before the deadline."""
        proven = []
        for number in range(wanted.bit_length()):
            bit = 1 << number
            if wanted & bit and self._followed(bit) and self._never(self._where[bit]):
                proven.append(Unreachable(bit, self._code.location(bit), self._reason(bit) + self._proviso))
        return proven

    def _followed(self, bit: int) -> bool:
        """Return whether the conditions of all blocks with the statement are known."""
        return bit in self._where and all(block in self._guards for block in self._blocks.get(bit, []))

    def _never(self, guards: list[Any]) -> bool:
        whole = disjunction(*guards)
        if z3.is_false(whole):
            return True
        left = self._deadline - time.monotonic()
        if z3.is_true(whole) or left <= 0:
            return False
        solver = z3.Solver()
        solver.set("rlimit", _RESOURCES)
        solver.set("timeout", max(1, int(1000 * left)))
        solver.add(whole)
        return bool(solver.check() == z3.unsat)

    def _reason(self, bit: int) -> str:
        """Return the nearest reached decisions that never lead to the statement."""
        waiting = list(self._blocks.get(bit, []))
        seen = set(waiting)
        reasons: list[str] = []
        while waiting:
            for edge in self._edges.get(waiting.pop(0), []):
                if not self._never(self._guards.get(edge.source, [])):
                    place = None if edge.span is None else self._code.lowered.source.source.locate(edge.span)
                    reasons.append(edge.text if place is None else f"{edge.text} at line {place.line}")
                elif edge.source not in seen:
                    seen.add(edge.source)
                    waiting.append(edge.source)
        return "; ".join(dict.fromkeys(reasons)) or self._conditions.get(bit, "nothing leads there")


def with_actions(blocks: Iterable[ir.Block]) -> list[ir.Block]:
    """Return `blocks` and the blocks of all actions of the tables that they apply, without duplicates."""
    reached: dict[ir.Block, None] = {}
    for block in blocks:
        reached[block] = None
        if isinstance(block.end, ir.Apply):
            for action in block.end.table.actions:
                reached.update(dict.fromkeys(reverse_postorder(action.body)))
    return list(reached)


def spans(block: ir.Block) -> list[Any]:
    """Return the spans of the statements in `block`."""
    spans = [op.span for op in block.ops]
    return [*spans, block.end.span] if isinstance(block.end, ir.Branch) else spans
