"""Conversion of parsers to BMv2's form: named states that select on fields by values and masks."""

from __future__ import annotations

from p4switch import ir
from p4switch.compiler import types
from p4switch.compiler.bmv2.expressions import Expressions
from p4switch.compiler.bmv2.operations import Operations
from p4switch.compiler.bmv2.source import Source
from p4switch.ir.graph import reverse_postorder

_Case = tuple[list[tuple[int, int | None]] | str, ir.Block | None]


def parser(parsed: ir.Parser, x: Expressions, operations: Operations, source: Source) -> ir.Parser:
    """Convert a parser. Empty blocks become the end of the parser, except its first block."""
    order = reverse_postorder(parsed.start)
    names = _names(order)
    accept = ir.Block()
    states = {
        block: ir.Block(name=names[block], span=block.span)
        for block in order if block is parsed.start or not block.is_end
    }

    def target(block: ir.Block | None) -> ir.Block | None:
        return None if block is None or block.is_end else states[block]

    for block, state in states.items():
        end = block.end
        with source.at(next(iter(end.spans), block.span) if isinstance(end, ir.Select) else block.span):
            state.ops = operations.made(block.ops)
            if isinstance(end, ir.Select):
                keys: list[ir.Expr] = [x.place(key) for key in end.keys]
                cases = [(case, target(then)) for case, then in _cases(end)]
                state.end = ir.Select(keys, cases, end.spans[: len(cases)])
            elif isinstance(end, ir.Goto):
                state.end = ir.Goto(target(end.target) or accept, end.span)
            else:
                assert end is None
                state.end = ir.Goto(accept)
    return ir.Parser(parsed.name, states[parsed.start], list(states.values()))


def _names(order: list[ir.Block]) -> dict[ir.Block, str]:
    """Return unique names for the states of a parser."""
    names: dict[ir.Block, str] = {}
    taken: set[str] = set()
    for block in order:
        base = block.name or "state"
        name, n = base, 0
        while name in taken:
            n += 1
            name = f"{base}_{n}"
        taken.add(name)
        names[block] = name
    start = order[0]
    return names if not start.is_end else {**names, start: "start"}


def _cases(end: ir.Select) -> list[_Case]:
    """Return the cases up to the first case that matches every key.

    Either no key has a mask, or all keys have masks.
    """
    widths = [types.width_of(key.type) or 0 for key in end.keys]
    cases: list[_Case] = []
    for case, target in end.cases:
        if isinstance(case, str):
            cases.append((case, target))
            continue
        ones = [(1 << width) - 1 for width in widths]
        masks = [full if mask is None else mask & full for (_, mask), full in zip(case, ones, strict=True)]
        if not any(masks):
            cases.append(([], target))
            break
        exact = all(mask is None for _, mask in case)
        values = [value & full for (value, _), full in zip(case, ones, strict=True)]
        cases.append(([(v, None if exact else m) for v, m in zip(values, masks, strict=True)], target))
    return cases
