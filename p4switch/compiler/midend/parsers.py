"""Lowering of parsers: states become blocks, and sub-parsers are inlined."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from p4switch import ir
from p4switch.compiler import ast, types
from p4switch.compiler.midend import fold
from p4switch.compiler.midend.elaborate import Block, control_name
from p4switch.compiler.midend.limits import MAX_SIZE
from p4switch.compiler.midend.values import EXPRS, Frame, ListValue, StructValue, Value

if TYPE_CHECKING:
    from p4switch.compiler.midend.lowering import Lowering

_Key = tuple[int, int | None]  # value, mask
MAX_CASES = 1 << 16
"""Maximum number of cases of one select, after each range is split into values with masks."""


class Parsers:
    def __init__(self, low: Lowering) -> None:
        self.low = low
        self.facts = low.facts
        self.value_sets: dict[tuple[Block, ast.ValueSetDecl], ir.ValueSet] = {}

    def inline_parser(self, block: Block, call: ast.Call) -> None:
        binding = self.facts.bindings[call]
        frame = Frame(block.frame)
        copies = self.low.calls.bind(block.decl.params, binding.param_types, binding.bound, frame)
        saved = self.low.block, self.low.prefix
        self.low.block, self.low.prefix = block, block.path + "."
        after = ir.Block()
        with self.low.activation(frame):
            self.run_parser(block, after)
        self.low.block, self.low.prefix = saved
        self.low.start(after)
        self.low.calls.copy_out(copies)

    def run_parser(self, block: Block, accept: ir.Block) -> None:
        """Lower the states of the current parser, beginning in the current block; `reject` ends all parsing."""
        decl = block.decl
        assert isinstance(decl, ast.ParserDecl)
        self.low.calls.make_locals(block)
        reject = ir.Block()
        states: dict[ast.ParserState, ir.Block] = {ast.ACCEPT: accept, ast.REJECT: reject}
        for state in decl.states:
            name = state.name if block.parent is None else f"{block.path}_{state.name}"
            states[state] = ir.Block(name=name, span=state.pos)
        self.low.goto(states[decl.start])
        for state in decl.states:
            self.low.start(states[state])
            for statement in state.statements:
                self.low.statements.statement(statement)
            self._transition(state.transition, states)

    def _transition(self, node: ast.Transition | ast.Select | None, states: dict[ast.ParserState, ir.Block]) -> None:
        if node is None:
            self.low.goto(states[ast.REJECT])
        elif isinstance(node, ast.Transition):
            self.low.goto(states[self.facts.states[node]], node.pos)
        else:
            self._select(node, states)

    def _select(self, node: ast.Select, states: dict[ast.ParserState, ir.Block]) -> None:
        values = self.low.expressions.operands(node.keys)
        keys: list[ir.Expr] = []
        for value, key in zip(values, node.keys, strict=True):
            keys += self.low.externs.fields_of(value, key)
        keys = [k if isinstance(k, (ir.FieldRef, ir.LastField)) else self._select_key(k) for k in keys]
        cases: list[tuple[list[_Key] | str, ir.Block | None]] = []
        spans: list[int | None] = []
        for case in node.cases:
            target = states[self.facts.states[case]]
            single = case.keysets[0]
            value_set = self.facts.decls[single] if isinstance(single, ast.Name) else None
            if len(case.keysets) == 1 and isinstance(value_set, ast.ValueSetDecl):
                cases.append((self._value_set(value_set).name, target))
                spans.append(case.pos)
                continue
            alternatives: list[list[_Key]] = []
            for keyset, value in zip(case.keysets, values, strict=True):
                position, width = len(alternatives), len(self.low.externs.fields_of(value, keyset))
                alternatives += self._masks(keyset, keys[position : position + width])
            count = len(cases) + math.prod(map(len, alternatives))
            if count > MAX_CASES:
                raise self.low.error(
                    case, f"the ranges of this select make {count} cases of masks, at most {MAX_CASES}"
                )
            self.low.spend(count - len(cases))
            choices = [list(choice) for choice in itertools.product(*alternatives)]
            cases += [(choice, target) for choice in choices]
            spans += [case.pos] * len(choices)
        if not _takes_everything(cases, [types.width_of(k.type) or 1 for k in keys]):
            # It is an error if no case matches, and parsing ends (language specification, section 13.6).
            no_match = ir.Block([ir.Verify(fold.FALSE, self.low.error_value("NoMatch"), node.pos)], name="noMatch")
            no_match.end = ir.Goto(states[ast.REJECT])
            cases.append(([(0, 0) for _ in keys], no_match))
            spans.append(node.pos)
        if self.low.code.end is None:
            self.low.code.end = ir.Select(keys, cases, spans)

    def _select_key(self, key: ir.Expr) -> ir.Expr:
        place = self.low.temp(key.type, "select")
        self.low.copies.assign(place, key)
        assert isinstance(place, EXPRS)
        return place

    def _masks(self, node: ast.Expr, keys: list[ir.Expr]) -> list[list[_Key]]:
        """Return the alternatives (value, mask) of the key set `node`, for each scalar key."""
        if isinstance(node, (ast.DontCare, ast.DefaultExpr)):
            return [[(0, 0)] for _ in keys]
        if isinstance(node, ast.Range):
            low, high = self.low.expressions.constant(node.low).value, self.low.expressions.constant(node.high).value
            width = types.width_of(keys[0].type) or 1
            return [_prefixes(low, high, width)]
        if isinstance(node, ast.Mask):
            return [[(self._plain(node.value), self._plain(node.mask))]]
        if isinstance(node, (ast.ListExpr, ast.StructExpr)):
            items = node.items if isinstance(node, ast.ListExpr) else [f.value for f in node.fields]
            return [masks for item, key in zip(items, keys, strict=True) for masks in self._masks(item, [key])]
        value = self.low.expressions.expr(node)
        if isinstance(value, (StructValue, ListValue)):
            return [[(self._unsigned(v, node), None)] for v in self.low.externs.fields_of(value, node)]
        return [[(self._unsigned(value, node), None)]]

    def _plain(self, node: ast.Expr) -> int:
        return self._unsigned(self.low.expressions.expr(node), node)

    def _unsigned(self, value: Value, node: ast.Node) -> int:
        if not isinstance(value, ir.Const):
            raise self.low.error(node, "a compile-time constant is expected in a select case on this target")
        width = types.width_of(value.type)
        return value.value & ((1 << width) - 1) if width else value.value

    def _value_set(self, decl: ast.ValueSetDecl) -> ir.ValueSet:
        assert self.low.block is not None
        key = (self.low.block, decl)
        if key not in self.value_sets:
            element = self.low.type_of(decl)
            width = types.width_of(element)
            if width is None:
                raise self.low.error(decl, f"a value set of {element} is not supported")
            size = self.low.size_of(decl.size, self.low.expressions.constant(decl.size).value, MAX_SIZE)
            name = control_name(decl.name, decl.annotations, self.low.block.path)
            self.value_sets[key] = ir.ValueSet(name, width, size)
            self.low.out.value_sets.append(self.value_sets[key])
        return self.value_sets[key]


def _takes_everything(cases: Sequence[tuple[list[_Key] | str, ir.Block | None]], widths: list[int]) -> bool:
    """Return whether the cases match all keys.

    This is known if one case matches every key, or if each value has a case without a mask.
    """
    exact: set[tuple[int, ...]] = set()
    for keys, _ in cases:
        if isinstance(keys, str):
            continue
        if all(mask == 0 for _, mask in keys):
            return True
        if all(mask is None for _, mask in keys):
            exact.add(tuple(value for value, _ in keys))
    return len(exact) == 1 << sum(widths)


def _prefixes(low: int, high: int, width: int) -> list[tuple[int, int | None]]:
    """Return a range as the smallest list of values with masks."""
    result: list[tuple[int, int | None]] = []
    full = (1 << width) - 1
    while low <= high:
        size = low & -low if low else 1 << width
        while size > high - low + 1:
            size >>= 1
        result.append((low, full & ~(size - 1)))
        low += size
    return result
