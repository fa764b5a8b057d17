"""Resources of a program: memory of tables, live bits, the parser, and packets that are sent again."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import networkx as nx

from p4switch import ir
from p4switch.architectures.package import Package
from p4switch.compiler import types
from p4switch.compiler.midend.storage import SCALARS, flat_fields
from p4switch.fit.flow import MADE_VALID, SUMS, Pipeline, Vertex
from p4switch.fit.target import Memory, Target
from p4switch.ir.graph import reverse_postorder, successors

COUNTER_BITS = 64
METER_BITS = 128
_WIDEST_WORDS = 8  # maximum number of blocks side by side


def width(t: types.Type) -> int:
    """Return the width of a scalar in bits; for a varbit it is the maximum."""
    return t.max_width if isinstance(t, types.Varbit) else types.width_of(t) or 1


# Tables


def key_bits(table: ir.Table) -> int:
    return sum(width(k.target.type) for k in table.keys)


def is_ternary(table: ir.Table) -> bool:
    """Return whether a table's keys need a TCAM, which includes longest prefixes, as in the RMT paper."""
    return any(k.match_kind not in ("exact", "selector") for k in table.keys)


def array_blocks(memory: Memory, entries: int, bits: int) -> int:
    """Return the minimum number of blocks for `entries` of `bits`, packed into words of blocks side by side."""
    if not entries or not bits:
        return 0
    least = math.ceil(bits / memory.width_bits)
    if bits * 2 <= memory.width_bits or least > 1:
        options = range(least, max(least, _WIDEST_WORDS) + 1)
    else:
        options = range(1, 2)
    return min(w * math.ceil(entries / (memory.entries * max(1, w * memory.width_bits // bits))) for w in options)


def table_blocks(table: ir.Table, program: ir.Program, target: Target) -> dict[str, int]:
    """Return the blocks of "sram" and "tcam" for `table`, its actions' data and its direct counters and meters."""
    if target.sram is None:
        return {}
    size = table.room
    action_bits = math.ceil(math.log2(max(2, len(table.actions))))
    data_bits = max((sum(width(t) for _, t in a.params) for a in table.actions), default=0)
    entry_bits = key_bits(table)
    blocks: Counter[str] = Counter()
    if table.profile is not None:
        blocks["sram"] += array_blocks(target.sram, table.profile.size, action_bits + data_bits)
        action_bits, data_bits = math.ceil(math.log2(max(2, table.profile.size))), 0
    if not table.keys:
        return dict(blocks)
    if is_ternary(table) and target.tcam is not None:
        tcam = target.tcam
        count = math.ceil(entry_bits / tcam.width_bits) * math.ceil(size / tcam.entries)
        blocks["sram" if tcam.of_sram else "tcam"] += count
        blocks["sram"] += array_blocks(target.sram, size, action_bits + data_bits)
    else:
        blocks["sram"] += array_blocks(target.sram, size, entry_bits + action_bits + data_bits)
    if table.counter:
        blocks["sram"] += array_blocks(target.sram, size, COUNTER_BITS)
    if table.meter:
        blocks["sram"] += array_blocks(target.sram, size, METER_BITS)
    return dict(blocks)


def object_blocks(name: str, program: ir.Program, target: Target) -> int:
    """Return the blocks of SRAM for the register, counter or meter `name`."""
    if target.sram is None:
        return 0
    for register in program.registers:
        if register.name == name:
            return array_blocks(target.sram, register.size, register.width)
    for counter in program.counters:
        if counter.name == name:
            return array_blocks(target.sram, counter.size, COUNTER_BITS)
    for extern in program.externs:
        size = extern.attributes.get("size")
        if extern.name == name and isinstance(size, ir.Const):  # a filter counts as a meter
            return array_blocks(target.sram, size.value, METER_BITS)
    return next((array_blocks(target.sram, m.size, METER_BITS) for m in program.meters if m.name == name), 0)


# Parser


@dataclass(frozen=True, slots=True)
class ParserNeeds:
    """Needs of a parser.

    `states` and `bytes` are the numbers on the longest path, and `entries` is the number of transitions
    of all states. `key_bits` is the width of the widest transition. `sums` are the source positions of
    computations.
    """

    states: int
    bytes: int
    entries: int
    key_bits: int
    header_bits: int
    sums: tuple[int | None, ...]


def parser_needs(program: ir.Program) -> list[ParserNeeds]:
    """Return the needs of each parser. A loop over a stack counts once for each element."""
    return [_needs_of(parser.start, program) for parser in program.parsers]


def together(each: Sequence[ParserNeeds]) -> ParserNeeds:
    """Return the needs of all parsers: the sum of the entries, and the maximum of each other number."""
    return ParserNeeds(
        max(needs.states for needs in each),
        max(needs.bytes for needs in each),
        sum(needs.entries for needs in each),
        max(needs.key_bits for needs in each),
        max(needs.header_bits for needs in each),
        tuple(span for needs in each for span in needs.sums),
    )


def _needs_of(start: ir.Block, program: ir.Program) -> ParserNeeds:
    order = [b for b in reverse_postorder(start) if b.ops or b.end is not None]
    graph: nx.DiGraph[ir.Block] = nx.DiGraph()
    graph.add_nodes_from(order)
    graph.add_edges_from((b, s) for b in order for s in successors(b) if s in graph)
    sizes = {ref.name: ref.size for ref, _ in program.stacks}
    weights: dict[ir.Block, tuple[int, int]] = {}  # number of executions and number of bits of each block
    for component in nx.strongly_connected_components(graph):
        stacks = [op.header.stack for b in component for op in b.ops if isinstance(op, ir.Extract)]
        loops = len(component) > 1 or any(graph.has_edge(b, b) for b in component)
        times = max((sizes.get(s, 1) for s in stacks if s), default=1) if loops else 1
        for block in component:
            weights[block] = times, times * _extracted(block)
    condensed = nx.condensation(graph)
    deep = _longest_sum(condensed, lambda members: sum(weights[b][0] for b in members))
    long = _longest_sum(condensed, lambda members: sum(weights[b][1] for b in members))
    entries = keys = 0
    for block in order:
        end = block.end
        if isinstance(end, ir.Select):
            entries += len(end.cases)
            keys = max(keys, sum(width(k.type) for k in end.keys))
        else:
            entries += 2 if isinstance(end, ir.Branch) else 1
    # Operations that replace a checksum unit have no position in the source.
    assigns = [op for b in order for op in b.ops if isinstance(op, ir.Assign) and op.span is not None]
    sums = tuple(op.span for op in assigns if _computes(op.src))
    return ParserNeeds(deep, -(-long // 8), entries, keys, long, sums)


def _computes(expr: ir.Expr) -> bool:
    return isinstance(expr, ir.Op) and (expr.op in SUMS or any(map(_computes, expr.args)))


def _extracted(block: ir.Block) -> int:
    bits = 0
    for op in block.ops:
        if isinstance(op, ir.Extract):
            bits += sum(width(t) for _, t in flat_fields(op.header.type))
        elif isinstance(op, ir.Advance) and isinstance(op.bits, ir.Const):
            bits += op.bits.value
    return bits


def _longest_sum(condensed: nx.DiGraph[int], weight: Callable[[Iterable[ir.Block]], int]) -> int:
    best: dict[int, int] = {}
    for n in nx.topological_sort(condensed):
        before = max((best[p] for p in condensed.predecessors(n)), default=0)
        best[n] = before + weight(condensed.nodes[n]["members"])
    return max(best.values(), default=0)


# Packet header vector


@dataclass(frozen=True, slots=True)
class PhvNeeds:
    """Numbers of bits of headers and of metadata. Those of metadata are rounded up to bytes.

    `untouched` is the number of header bits that no pipeline reads or writes.
    """

    header_bits: int
    untouched_bits: int
    metadata_bits: int


def phv_needs(
    program: ir.Program, pipelines: list[Pipeline], parsers: Sequence[ParserNeeds], package: type[Package]
) -> PhvNeeds:
    """Return the bits that are live between parser and deparser.

    These are the maximum on a path of the parser, and headers that are added later. If ingress and
    egress have different headers, the result is that of the larger side.
    """
    headers = {i.name: i.type for i in program.headers}
    touched: set[str] = set()
    added: set[str] = set()
    for pipeline in pipelines:
        for vertex in pipeline.graph:
            touched |= vertex.reads | vertex.looks_up | vertex.writes
            if vertex.op == MADE_VALID:
                added |= {f.removesuffix(".$valid$") for f in vertex.writes if f.endswith(".$valid$")}
    sides = []
    for parser, deparser in zip(parsers, program.deparsers, strict=True):
        emitted = {h.name for h in deparser.order}
        more = sum(_header_bits(headers[name]) for name in added & emitted)
        idle = sum(
            width(t)
            for name, header in headers.items()
            if name in emitted
            for f, t in flat_fields(header)
            if f"{name}.{f}" not in touched
        )
        sides.append((parser.header_bits + more, idle))
    bits, idle = max(sides)
    following: set[str] = set()
    most = 0
    for pipeline in reversed(pipelines):
        starts_with, live = _most_live(pipeline, program, following | {*package.leads_to})
        following = starts_with if package.bridges else set()
        most = max(most, live)
    return PhvNeeds(bits, min(idle, bits), most)


def _header_bits(header: types.Header) -> int:
    return sum(width(t) for _, t in flat_fields(header))


def _most_live(pipeline: Pipeline, program: ir.Program, at_end: set[str]) -> tuple[set[str], int]:
    """Return the metadata fields live at the start of `pipeline`, and the maximum of live bits at any point."""
    intrinsic = {f"{one.name}.{name}": width(t) for one in program.metadata for name, t in one.fields}
    scalars = {name: width(t) for name, t in program.scalars.items()}
    temporaries = {f: v.width for v in pipeline.graph for f in v.writes if "%" in f}

    def bits(field: str) -> int:
        header, _, name = field.partition(".")
        if header != SCALARS:
            return intrinsic.get(field, 0)
        return -(-(scalars.get(name) or temporaries.get(field, 0)) // 8) * 8

    live: dict[Vertex, set[str]] = {}
    most = 0
    leaving = at_end | pipeline.listed()
    for vertex in reversed(pipeline.vertices()):
        after = set().union(*(live[s] for s in pipeline.graph.successors(vertex))) or leaving
        live[vertex] = {f for f in (after - vertex.writes) | vertex.reads | vertex.looks_up if bits(f)}
        most = max(most, sum(map(bits, live[vertex])))
    return live[pipeline.start], most


# Packets sent again


def copies(pipelines: list[Pipeline], package: type[Package]) -> dict[str, int]:
    """Return the maximum number of calls of each kind on a packet's path: recirculate, resubmit, clone, multicast."""
    result: dict[str, int] = {}
    for kind in (*_EFFECTS, _MULTICAST):
        test = partial(_is_copy, kind, package)
        result[kind] = sum(pipeline.most(test) for pipeline in pipelines)
    return result


def _is_copy(kind: str, package: type[Package], vertex: Vertex) -> int:
    return int(copy_kind(vertex, package) == kind)


def copy_kind(vertex: Vertex, package: type[Package]) -> str:
    """Return the kind in `copies` of a vertex, or an empty text."""
    for kind, effects in _EFFECTS.items():
        if not vertex.effects.isdisjoint(effects):
            return kind
    sends = not vertex.writes.isdisjoint(package.replicates)
    return _MULTICAST if sends and ir.Effect.DROP not in vertex.effects and vertex.constant != 0 else ""


_EFFECTS = {
    "recirculate": {ir.Effect.RECIRCULATE},
    "resubmit": {ir.Effect.RESUBMIT},
    "clone": {ir.Effect.CLONE_INGRESS, ir.Effect.CLONE_EGRESS},
}
_MULTICAST = "multicast"
