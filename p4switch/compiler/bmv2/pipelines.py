"""Conversion of ingress and egress to BMv2's form: nodes that apply a table or test a condition.

Statements outside of actions become actions of additional tables, which the control plane does not see.
"""

from __future__ import annotations

from p4switch import ir
from p4switch.bmv2 import stands_outside
from p4switch.compiler import types
from p4switch.compiler.bmv2.expressions import Expressions
from p4switch.compiler.bmv2.operations import Operations
from p4switch.compiler.bmv2.source import Source
from p4switch.ir.graph import reverse_postorder

_ORDERED = ("ternary", "range")


class Pipelines:
    """Builder of a program's pipelines and of the objects in them, which get unique numbers and names."""

    def __init__(self, x: Expressions, operations: Operations, source: Source) -> None:
        self._x = x
        self._operations = operations
        self._source = source
        self.actions: dict[ir.Action, ir.Action] = {}  # in the order of their first use
        self.profiles: dict[ir.Profile, ir.Profile] = {}
        self._named = 0

    def pipeline(self, pipeline: ir.Pipeline) -> ir.Pipeline:
        return _Pipeline(self, pipeline).made()

    def name(self, what: str) -> str:
        """Return a name for a node that has no name in the source."""
        self._named += 1
        return f"{what}_{self._named}"

    def condition(self, end: ir.Branch) -> ir.Expr:
        with self._source.at(end.span):
            return self._x.value(end.condition)

    def action(self, action: ir.Action) -> ir.Action:
        if action not in self.actions:
            ir_action = ir.Action(action.name, [], ir.Block(), action.span, len(self.actions))
            self.actions[action] = ir_action
            ir_action.params = [(name, ir.Bits(types.width_of(t) or 0)) for name, t in action.params]
            ir_action.body = self._operations.body(action.body)
        return self.actions[action]

    def outside(self, name: str, block: ir.Block) -> ir.Table:
        """Return a table whose action has the statements of `block`, which are outside of actions."""
        span = next((op.span for op in block.ops if op.span is not None), None)
        action = self.action(ir.Action(name.removeprefix("tbl_"), [], ir.Block(block.ops), span))
        call = ir.ActionCall(action, [])
        return ir.Table(name, [], [action], call, True, True, span=span, hidden=True)

    def table(self, table: ir.Table) -> ir.Table:
        with self._source.at(table.span):
            return self._table(table)

    def _table(self, table: ir.Table) -> ir.Table:
        keys = [self._key(key) for key in table.keys]
        ir_table = ir.Table(
            table.name, keys, size=table.room, counter=table.counter, meter=table.meter,
            direct=table.direct, entry=None if table.entry is None else self._x.place(table.entry),
            support_timeout=table.support_timeout, span=table.span,
            ordered=any(key.match_kind in _ORDERED for key in keys),
        )
        ir_table.profile = None if table.profile is None else self._profile(table.profile)
        ir_table.actions = [self.action(action) for action in table.actions]
        if table.profile is None and table.default is not None:
            ir_table.default = self._call(table.default)
            ir_table.default_const = ir_table.default_action_const = table.default_const
            ir_table.hidden = stands_outside(table.name, keys, table.default_const)
        if table.entries is not None:
            ir_table.entries = [self._entry(ir_table, entry) for entry in table.entries]
        return ir_table

    def _key(self, key: ir.Key) -> ir.Key:
        kind = "ternary" if key.match_kind == "optional" else key.match_kind
        return ir.Key(self._x.place(key.target), kind, key.name, key.mask)

    def _profile(self, profile: ir.Profile) -> ir.Profile:
        if profile not in self.profiles:
            inputs = [self._x.input(each) for each in profile.inputs]
            self.profiles[profile] = ir.Profile(profile.name, profile.size, profile.algorithm, inputs, profile.span)
        return self.profiles[profile]

    def _call(self, call: ir.ActionCall) -> ir.ActionCall:
        action = self.action(call.action)
        widths = [types.width_of(t) or 1 for _, t in action.params]
        return ir.ActionCall(action, [value & (1 << w) - 1 for value, w in zip(call.args, widths, strict=True)])

    def _entry(self, table: ir.Table, entry: ir.Entry) -> ir.Entry:
        keys = [_match(key, keyset) for key, keyset in zip(table.keys, entry.keys, strict=True)]
        return ir.Entry(keys, self._call(entry.call), entry.priority, entry.const, entry.span)


class _Pipeline:
    """Builder of one pipeline. A block becomes at most two nodes: one for its statements and one for its end."""

    def __init__(self, whole: Pipelines, pipeline: ir.Pipeline) -> None:
        self._whole = whole
        self._pipeline = pipeline
        self._order = reverse_postorder(pipeline.start)
        self._end = ir.Block()
        self._heads: dict[ir.Block, ir.Block] = {}
        self._tails: dict[ir.Block, ir.Block] = {}  # end nodes of blocks that end in a condition or a table
        self._tables: dict[ir.Table, ir.Block] = {}  # node of each table, which may be applied in several places

    def made(self) -> ir.Pipeline:
        for block in self._order:
            self._head(block)
        tables: list[ir.Block] = []
        conditions: list[ir.Block] = []
        for block in self._order:
            if block.ops:
                self._statements(block, self._heads[block])
                tables.append(self._heads[block])
            end = block.end
            if isinstance(end, ir.Branch):
                test = self._whole.condition(end)
                tail = self._tails[block]
                tail.end = ir.Branch(test, self._head(end.if_true), self._head(end.if_false), end.span)
                conditions.append(tail)
            elif isinstance(end, ir.Apply) and self._tails[block].end is None:
                self._tails[block].end = self._apply(end)
                tables.append(self._tails[block])
        start = self._heads[self._pipeline.start]
        return ir.Pipeline(self._pipeline.name, start, self._pipeline.span, [*tables, *conditions])

    def _head(self, block: ir.Block) -> ir.Block:
        """Return the node for the end of `block`, without its statements."""
        if block not in self._heads:
            tail = self._end
            if isinstance(block.end, ir.Branch):
                tail = self._tails[block] = ir.Block(name=self._whole.name("node"))
            elif isinstance(block.end, ir.Apply):
                table = block.end.table
                tail = self._tails[block] = self._tables.setdefault(table, ir.Block(name=table.name))
            if block.ops:
                self._heads[block] = ir.Block(name=self._whole.name(f"tbl_{self._pipeline.name}"))
            elif isinstance(block.end, ir.Goto):
                self._heads[block] = self._head(block.end.target)
            else:
                self._heads[block] = tail
        return self._heads[block]

    def _statements(self, block: ir.Block, head: ir.Block) -> None:
        following = self._tails.get(block, self._end)
        if isinstance(block.end, ir.Goto):
            following = self._head(block.end.target)
        head.end = ir.Apply(self._whole.outside(head.name, block), {0: following}, following)

    def _apply(self, end: ir.Apply) -> ir.Apply:
        ir_table = self._whole.table(end.table)
        if end.by_hit:
            hit, miss = end.on.get(True, end.default), end.on.get(False, end.default)
            return ir.Apply(ir_table, {True: self._head(hit), False: self._head(miss)}, self._end)
        names = [action.name for action in ir_table.actions]
        after = {name: self._head(end.on.get(i, end.default)) for i, name in enumerate(names)}
        return ir.Apply(ir_table, {names.index(n): node for n, node in after.items()}, self._head(end.default))


def _match(key: ir.Key, keyset: ir.KeyValue) -> int | tuple[int, int]:
    """Return one key of an entry."""
    full = (1 << (types.width_of(key.target.type) or 1)) - 1
    is_range = key.match_kind == "range"
    if keyset is None:
        low, high = 0, full if is_range else 0
    elif isinstance(keyset, tuple):
        low, high = keyset[0] & full, keyset[1] & full
    else:
        low, high = keyset & full, keyset & full if is_range else full
    if key.match_kind == "exact":
        return low
    return (low, high) if is_range else (low & high, high)
