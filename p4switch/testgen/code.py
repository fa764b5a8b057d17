"""Statements of a program, and those that can be reached from each of its blocks."""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable, Iterator
from pathlib import Path

from p4switch import ir
from p4switch.compiler.midend.whole import Lowered
from p4switch.compiler.source import Location
from p4switch.ir.graph import reverse_postorder, successors
from p4switch.testgen import rules


class Code:
    """Code of a program.

    A statement is a place in the source with operations or conditions. Sets of statements are bit masks.
    """

    def __init__(self, lowered: Lowered) -> None:
        self.lowered = lowered
        self.program = lowered.program
        self._numbers: dict[int, int] = {}
        self._own: dict[ir.Block, int] = {}
        self._reach: dict[ir.Block, int] = {}
        blocks = {parser.name: parser.start for parser in self.program.parsers}
        blocks |= {pipeline.name: pipeline.start for pipeline in self.program.pipelines}
        blocks |= {deparser.name: deparser.body for deparser in self.program.deparsers}
        passed = [site.name for site in lowered.package.sites if not site.aside]
        self.blocks = {name: blocks[name] for name in passed if name in blocks}
        """Code of parsers, controls and deparsers by their names, in the order in which packets reach them."""
        self.first = next(iter(self.blocks))
        updated, verified = ([c for c in self.program.checksums if c.verify == verify] for verify in (False, True))
        after = self._bits(c.span for c in updated)
        for name, start in reversed(self.blocks.items()):
            after = self._analyse(start, after | (self._bits(c.span for c in verified) if name == self.first else 0))
        self.all = after
        self._asserts: dict[int, int] = {}
        self._find_asserts()
        self.effects = frozenset[ir.Effect]().union(*(op.effects for op in self._operations()))
        self._settled = self._never_changed()
        again = {ir.Effect.RESUBMIT, ir.Effect.RECIRCULATE, ir.Effect.CLONE_EGRESS}
        self._sides = len(self.program.parsers)
        # True if a packet or copy may enter a block again. With two parsers, metadata decide that.
        self.again = self._sides > 1 or not again.isdisjoint(self.effects)
        self._open: dict[frozenset[str], int] = {}
        self._entries: dict[ir.Table, tuple[list[ir.Entry], rules.Rules]] = {}
        self._cases: dict[ir.Select, rules.Rules] = {}

    def entries(self, table: ir.Table) -> tuple[list[ir.Entry], rules.Rules]:
        """Return the constant entries of `table` with their keys, in lookup order."""
        if table not in self._entries:
            entries = rules.in_order(table)
            self._entries[table] = entries, rules.of_entries(table, entries)
        return self._entries[table]

    def cases(self, select: ir.Select) -> rules.Rules:
        """Return the cases of `select` that are not value sets."""
        if select not in self._cases:
            self._cases[select] = rules.of_cases(select)
        return self._cases[select]

    @property
    def statements(self) -> list[Location]:
        return [self.location(1 << n) for n in range(len(self._numbers))]

    def location(self, bit: int) -> Location:
        number = bit.bit_length() - 1
        span = next(s for s, n in self._numbers.items() if n == number)
        return self.lowered.source.source.locate(span)

    def locations(self, bits: int) -> list[Location]:
        return [self.location(1 << n) for n in range(bits.bit_length()) if bits >> n & 1]

    def place(self, span: int) -> str:
        """Return `FILE:LINE` of `span`."""
        location = self.lowered.source.source.locate(span)
        return f"{Path(location.file).name}:{location.line}"

    def bit(self, span: int | None) -> int:
        """Return the set with the statement at `span`."""
        if span is None:
            return 0
        return 1 << self._numbers.setdefault(span, len(self._numbers))

    def _bits(self, spans: Iterable[int | None]) -> int:
        return functools.reduce(operator.or_, map(self.bit, spans), 0)

    def assertion(self, span: int | None) -> int:
        """Return the bit that stands for a violation of the assertion at `span` in sets of statements, or 0."""
        return 0 if span is None else self._asserts.get(span, 0)

    @property
    def assertions(self) -> int:
        return sum(self._asserts.values())

    def usable(self, table: ir.Table, refused: str) -> list[int]:
        """Return the actions of `table` without the annotation `refused`."""
        lowered_table = next(t for t in self.lowered.tables if t.ir is table)
        return [i for i, ref in enumerate(lowered_table.refs) if all(a.name != refused for a in ref.annotations)]

    def _find_asserts(self) -> None:
        for block in self._own:
            for op in block.ops:
                if ir.Effect.ASSERT in op.effects and op.span is not None and op.span not in self._asserts:
                    self._asserts[op.span] = 1 << len(self._numbers) + len(self._asserts)

    def own(self, block: ir.Block | None) -> int:
        """Return the statements in `block`."""
        return 0 if block is None else self._own.get(block, 0)

    def reach(self, block: ir.Block | None) -> int:
        """Return the statements in `block` and in code that can follow it, including later pipelines."""
        return 0 if block is None else self._reach.get(block, 0)

    def behind(self, name: str) -> int:
        """Return the statements that can follow the block of that name."""
        return self.reach(self.following(name))

    def following(self, name: str) -> ir.Block | None:
        """Return the code of the block that follows the block of that name."""
        names = [*self.blocks, None]
        following = names[names.index(name) + 1]
        return None if following is None else self.blocks[following]

    def open(self, valid: Iterable[str]) -> int:
        """Return the statements that a parsed packet may reach with the headers `valid`, except those of the parser."""
        if self._sides > 1:
            return self.all | self.assertions
        known = self._settled.intersection(valid)
        if known not in self._open:
            mask = self.assertions | self._bits(op.span for op in self.program.deparsers[0].body.ops)
            mask |= self._bits(c.span for c in self.program.checksums if self._holds(c.condition, known) is not False)
            for pipeline in self.program.pipelines:
                for block in self._blocks(pipeline.start, known):
                    mask |= self.own(block)
                    if isinstance(block.end, ir.Apply):
                        for action in block.end.table.actions:
                            mask |= self.reach(action.body)
            self._open[known] = mask
        return self._open[known]

    def _blocks(self, start: ir.Block, valid: frozenset[str]) -> Iterator[ir.Block]:
        """Yield the blocks from `start` on, except those that a condition on the headers excludes."""
        waiting, seen = [start], {start}
        while waiting:
            block = waiting.pop()
            yield block
            following = successors(block)
            if isinstance(block.end, ir.Branch) and (holds := self._holds(block.end.condition, valid)) is not None:
                following = [block.end.if_true if holds else block.end.if_false]
            waiting += [b for b in following if b not in seen]
            seen.update(following)

    def _holds(self, condition: ir.Expr, valid: frozenset[str]) -> bool | None:
        """Return whether `condition` holds; None if the settled headers that are `valid` do not decide it."""
        if isinstance(condition, ir.Valid) and condition.header.name in self._settled:
            return condition.header.name in valid
        if isinstance(condition, ir.Op) and condition.op == "!":
            holds = self._holds(condition.args[0], valid)
            return None if holds is None else not holds
        if isinstance(condition, ir.Op) and condition.op in ("&&", "||"):
            decides = condition.op == "||"
            sides = [self._holds(side, valid) for side in condition.args]
            return decides if decides in sides else None if None in sides else not decides
        return None

    def _operations(self) -> list[ir.Operation]:
        """Return the operations of the pipelines and their actions."""
        pipelines = [block for pipeline in self.program.pipelines for block in reverse_postorder(pipeline.start)]
        actions = [a for block in pipelines if isinstance(block.end, ir.Apply) for a in block.end.table.actions]
        blocks = [*pipelines, *(block for action in actions for block in reverse_postorder(action.body))]
        return [op for block in blocks for op in block.ops]

    def _never_changed(self) -> frozenset[str]:
        """Return the headers whose validity never changes after the parser."""
        if not self.effects.isdisjoint({ir.Effect.RESUBMIT, ir.Effect.RECIRCULATE}):
            return frozenset()
        groups = {u.name: members for u, members in self.program.unions}
        changed: set[str] = set()
        for written in (written for op in self._operations() for written in op.writes):
            if isinstance(written, ir.Valid):
                changed.add(written.header.name)
            elif isinstance(written, ir.HeaderRef):
                changed.add(written.name)
            elif isinstance(written, ir.UnionRef):
                changed.update(groups[written.name])
        for members in groups.values():
            if not changed.isdisjoint(members):
                changed.update(members)
        elements = {e for _, names in self.program.stacks for e in names}
        elements |= {m for e in elements for m in groups.get(e, ())}
        return frozenset(i.name for i in self.program.headers) - changed - elements

    def _analyse(self, start: ir.Block, after: int) -> int:
        order = reverse_postorder(start)
        for block in order:
            own = 0
            for op in block.ops:
                own |= self.bit(op.span)
            if isinstance(block.end, ir.Branch):
                own |= self.bit(block.end.span)
            self._own[block] = own
        bodies: dict[ir.Block, int] = {}
        for block in order:
            if isinstance(block.end, ir.Apply):
                for action in block.end.table.actions:
                    if action.body not in self._reach:
                        self._analyse(action.body, 0)
                    bodies[block] = bodies.get(block, 0) | self.reach(action.body)
        changed = True
        reach = {block: self._own[block] | bodies.get(block, 0) | after for block in order}
        while changed:
            changed = False
            for block in reversed(order):
                bits = reach[block]
                for following in successors(block):
                    bits |= reach[following]
                if bits != reach[block]:
                    reach[block], changed = bits, True
        self._reach.update(reach)
        return reach[start]
