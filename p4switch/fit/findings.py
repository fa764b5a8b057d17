"""Findings about a program on a target: the program's needs, features that the target lacks, and alternatives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import networkx as nx

from p4switch import ir
from p4switch.compiler.frontend import parse_and_check
from p4switch.compiler.midend.whole import Lowered, error_at
from p4switch.compiler.passes import lowered
from p4switch.compiler.source import Location
from p4switch.fit import resources
from p4switch.fit.dependencies import LATER, dependency_graph
from p4switch.fit.flow import COMPARISONS, SUMS, Pipeline, Vertex, pipelines, reachable
from p4switch.fit.placement import Demand, ImpossibleError, Placement, heights, place
from p4switch.fit.resources import ParserNeeds, PhvNeeds
from p4switch.fit.target import Target
from p4switch.interpreter import deep_recursion

_COPIES = frozenset({"=", "convert"})
_WORD_BITS = 32


@dataclass(frozen=True, slots=True)
class Finding:
    """Feature that the target lacks (`lacks`), and an alternative for the program (`instead`).

    `location` is None for a finding about the whole program.
    """

    rule: str
    lacks: str
    instead: str
    location: Location | None = None

    def __str__(self) -> str:
        head = "" if self.location is None else f"{self.location.file}:{self.location.line}:{self.location.column}: "
        return f"{head}{self.rule}: {self.lacks}; {self.instead}"


@dataclass(frozen=True, slots=True)
class Access:
    """Accesses of packets to a register.

    `accesses` is the maximum number on one packet's path; a read and the following write count as one access.
    `operations` and `conditions` are the maximum numbers between read and write. `coupled` are the registers whose
    values this register needs and which need its values.
    """

    name: str
    size: int
    width_bits: int
    pipelines: tuple[str, ...]
    accesses: int
    operations: int
    conditions: int
    coupled: tuple[str, ...]
    through: str  # name of a table or hash between read and write
    location: Location | None


@dataclass(frozen=True, slots=True)
class Fit:
    """Result for one target. `placement` is None if a node needs more than a whole stage."""

    program: str
    target: Target
    graph: nx.DiGraph[Vertex]
    placement: Placement | None
    registers: Sequence[Access]
    parser: ParserNeeds
    phv: PhvNeeds
    memory: Mapping[str, int]
    copies: Mapping[str, int]
    findings: Sequence[Finding]

    @property
    def fits(self) -> bool:
        return not self.findings


class Program:
    """Lowered program, which can be measured against any number of targets."""

    def __init__(self, lowered: Lowered) -> None:
        self.path = lowered.source.path
        self.ir = lowered.program
        self._locate = lowered.source.source.locate
        self.pipelines = pipelines(lowered.program)
        self.graphs = [dependency_graph(p) for p in self.pipelines]
        self.graph: nx.DiGraph[Vertex] = nx.DiGraph()
        for graph in self.graphs:
            self.graph.add_nodes_from(graph)
            self.graph.add_edges_from(graph.edges(data=True))
        parsers = resources.parser_needs(self.ir)
        self.parser = resources.together(parsers)
        self._package = type(lowered.package)
        self.phv = resources.phv_needs(self.ir, self.pipelines, parsers, self._package)
        self.copies = resources.copies(self.pipelines, self._package)
        self._wanted = _wanted_stages(lowered)
        self._slices: dict[str, set[Vertex]] = {}
        flow: nx.DiGraph[Vertex] = nx.DiGraph()
        flow.add_nodes_from(self.graph)
        flow.add_edges_from((a, b) for a, b, data in self.graph.edges(data=True) if data["kind"] != "reverse")
        order = list(nx.topological_sort(flow))
        self._number = {v: i for i, v in enumerate(order)}
        self._dependent = reachable(flow, order)  # for each vertex, a bit mask of those that depend on it
        used = [r for r in self.ir.registers if self._touching(r.name)]
        for register in used:
            self._slices[register.name] = self._between(self._touching(register.name))
        self._ranges = dict(self._compared_in_conditions())
        self._coupled = self._couplings()
        self.registers = [self._access(r) for r in used]

    def at(self, span: int | None) -> Location | None:
        return None if span is None else self._locate(span)

    def _touching(self, register: str) -> list[Vertex]:
        return [v for v in self.graph if v.register == register and v.access in ("read", "write")]

    def _access(self, register: ir.Register) -> Access:
        vertices = self._touching(register.name)
        spans = [v.span for v in vertices if v.span is not None]
        users = [p for p in self.pipelines if any(v in p.graph for v in vertices)]
        aside = {site.name for site in self._package.sites if site.aside}  # blocks that share the stages of the others
        used = [p for p in users if p.name not in aside] or users
        between = self._slices[register.name]
        lookups = sorted((self._number[v], v.name) for v in between if v.kind in ("table", "hash"))
        through = lookups[0][1] if lookups else ""  # the first lookup

        def most(test: dict[Vertex, int]) -> int:
            return sum(p.most(lambda v: test.get(v, 0)) for p in used)

        reads = {v: 1 for v in vertices if v.access == "read"}
        writes = {v: 1 for v in vertices if v.access == "write"}
        if len({v.index for v in vertices}) == 1:
            accesses = max(most(reads), most(writes))
        else:
            read_at = {v.index for v in reads}
            accesses = most(reads | {v: 1 for v in writes if v.index not in read_at})
            accesses = max(accesses, most(writes))
        return Access(
            register.name,
            register.size,
            register.width,
            tuple(p.name for p in used),
            accesses,
            most({v: 1 for v in between if v.kind in ("operation", "random") and v.op not in _COPIES}),
            most({v: 1 for v in between if v.kind == "condition"}),
            tuple(sorted(self._coupled[register.name] - {register.name})),
            through,
            self.at(min(spans)) if spans else self.at(register.span),
        )

    def _between(self, vertices: Sequence[Vertex]) -> set[Vertex]:
        """Return the vertices that depend on one of `vertices` and on which another of them depends."""
        numbers = {self._number[v] for v in vertices}
        after = 0
        for n in numbers:
            after |= self._dependent[n]
        mask = sum(1 << n for n in numbers)
        return {v for v, n in self._number.items() if after >> n & 1 and self._dependent[n] & mask and n not in numbers}

    def _in_access(self, v: Vertex) -> bool:
        """Return whether a vertex is between the read and the write of a register."""
        return any(v in between for between in self._slices.values())

    def _groups(self, names: Iterable[str]) -> dict[str, list[Vertex]]:
        """Return for each register the vertices that have to be in its stage."""
        return {name: [*self._touching(name), *self._slices[name]] for name in names}

    def _couplings(self) -> dict[str, set[str]]:
        """Return for each register the registers with which it must share a stage, as each needs the other's value."""
        groups = self._groups(self._slices)
        sets, graph = self._joined(groups)
        result: dict[str, set[str]] = {}
        for component in nx.strongly_connected_components(graph):
            names = {name for name, group in groups.items() if sets[group[0]] in component}
            result.update(dict.fromkeys(names, names))
        return result

    def _joined(self, groups: Mapping[str, Sequence[Vertex]]) -> tuple[Any, nx.DiGraph[Vertex]]:
        """Return disjoint sets of vertices, in which a group is in one set, and the dependency graph of the sets."""
        sets = nx.utils.UnionFind(self.graph)
        for group in groups.values():
            sets.union(*group)
        return sets, _quotient(self.graph, sets)

    def _compared_in_conditions(self) -> Iterator[tuple[Vertex, Vertex]]:
        """Yield ordering comparisons with a constant that only one condition uses, and that condition."""
        for graph in self.graphs:
            readers: dict[str, list[Vertex]] = {}
            for v in graph:
                for f in v.reads | v.looks_up:
                    readers.setdefault(f, []).append(v)
            for v in graph:
                if v.op in COMPARISONS and v.constant is not None:
                    know = [reader for f in v.writes for reader in readers.get(f, ())]
                    if len(know) == 1 and know[0].kind == "condition":
                        yield v, know[0]

    # Against a target

    def _ranges_in(self, target: Target) -> dict[Vertex, Vertex]:
        """Return the comparisons that the conditions of `target` can perform, with their conditions."""
        return {v: c for v, c in self._ranges.items() if _range_bits(v) <= target.arithmetic.range_bits}

    def fit(self, target: Target) -> Fit:
        """Measure the program against `target`."""
        findings = [*self._parser_findings(target), *self._phv_findings(target)]
        for pipeline in self.pipelines:
            findings += self._vertex_findings(pipeline, target)
        findings += [f for access in self.registers for f in self._register_findings(access, target)]
        findings += self._copy_findings(target)
        findings += self._checksum_findings(target)
        memory: Counter[str] = Counter()
        demands = {v: self._demand(v, target) for v in self.graph}
        self._memory_of_objects(demands, target)
        for demand in demands.values():
            memory.update(demand.blocks)
        graph, placement = self.graph, None
        if target.sram is not None:
            graph, demands = self._merged(demands, findings, target)
            capacity = self._capacity(target) if target.stages is not None else {}
            wanted = {} if target.stages is None else self._wanted_in(graph)
            first, _ = heights(graph, demands, capacity, {})
            findings += [self._too_early(v, stage, first[v]) for v, stage in wanted.items() if stage < first[v]]
            try:
                placement = place(graph, demands, capacity, wanted)
            except ImpossibleError as error:
                findings.append(self._too_large(error, target))
        findings += self._stage_findings(placement, memory, target)
        findings.sort(key=lambda f: (f.location is None, f.location or ()))
        unique = {(f.rule, f.lacks, f.location and f.location[:2]): f for f in reversed(findings)}
        return Fit(
            self.path,
            target,
            graph,
            placement,
            self.registers,
            self.parser,
            self.phv,
            memory,
            self.copies,
            [*reversed(unique.values())],
        )

    def _parser_findings(self, target: Target) -> Iterator[Finding]:
        needs, has = self.parser, target.parser
        limits = [
            ("parser-bytes", needs.bytes, has.bytes, "bytes of headers", "skip what is not used with advance()"),
            ("parser-states", needs.states, has.states, "states one after the other", "join states that always follow"),
            ("parser-entries", needs.entries, has.entries, "transitions", "decide in a table what is not a header"),
            ("parser-key", needs.key_bits, has.key_bits, "bits of a select key", "select in two states"),
        ]
        for rule, need, limit, what, instead in limits:
            if limit is not None and need > limit:
                yield Finding(rule, f"the parser needs {need} {what}, there are {limit}", instead)
        if not has.arithmetic:
            for span in needs.sums:
                instead = "compute it in the first stage"
                yield self._finding("parser-arithmetic", span, "no arithmetic in the parser", instead)

    def _phv_findings(self, target: Target) -> Iterator[Finding]:
        if target.phv_bits is None:
            return
        phv = self.phv
        aside = min(phv.untouched_bits, target.phv_untouched_bits)
        need = phv.header_bits - aside + phv.metadata_bits
        if need > target.phv_bits:
            lacks = f"{need} bits of headers and metadata live at a time, the PHV has {target.phv_bits}"
            yield Finding("phv", lacks, "leave headers that are only carried along in the payload")

    def _vertex_findings(self, pipeline: Pipeline, target: Target) -> Iterator[Finding]:
        arithmetic, functions, ranges = target.arithmetic, target.functions, self._ranges_in(target)
        bits: Counter[Vertex] = Counter()  # bits that comparisons add to each condition, without their result
        for v, condition in ranges.items():
            bits[condition] += _range_bits(v) - 1
        if not functions.loops:
            for span in pipeline.loops:
                yield self._finding("loop", span, "a pipeline does not go back", "unroll the loop, or recirculate")
        for v in pipeline.graph:
            power = v.constant is not None and v.constant > 0 and not v.constant & (v.constant - 1)
            if v.op == "*" and not power and not arithmetic.multiply:
                instead = "multiply by powers of two with shifts, or look products up in a table"
                yield self._finding("multiply", v.span, "no multiplication", instead)
            elif v.op in ("<<", ">>") and v.constant is None and not arithmetic.variable_shift:
                instead = "a table with one action for each amount"
                yield self._finding("variable-shift", v.span, "no shift by a variable", instead)
            if v.op in COMPARISONS and v not in ranges:
                yield from self._compare_findings(v, target)
            elif v.op in SUMS and v.op != "*":
                yield from self._wide("wide-arithmetic", v, arithmetic.width_bits, f"'{v.op}'")
            elif v.kind == "condition":
                if v.in_action and not functions.action_conditions and not self._in_access(v):
                    instead = "test it before the table, and make it part of the key or two tables of it"
                    yield self._finding("action-condition", v.span, "no condition in an action", instead)
                yield from self._wide("wide-condition", v, arithmetic.condition_bits, "a condition", bits[v])
            ranged = v.constant is None or v.constant & (v.constant - 1)
            if v.kind == "hash" and ranged and not functions.hash_ranges:
                instead = "hash to a power of two, and map the result in a table"
                yield self._finding("hash-range", v.span, "hashes have powers of two as their range", instead)
            if v.kind == "random" and not functions.random_ranges and (v.constant is None or ranged):
                instead = "draw a power of two, and map the result in a table"
                yield self._finding("random-range", v.span, "random numbers have powers of two as their range", instead)

    def _compare_findings(self, v: Vertex, target: Target) -> Iterator[Finding]:
        arithmetic, limit = target.arithmetic, target.arithmetic.compare_bits
        if target.register_.compare_bits is not None and self._in_access(v):
            limit = target.register_.compare_bits
        if limit == 0:
            this = "of two fields" if v.constant is None else f"of {v.width} bits"
            lacks = f"a comparison of order {this}, there are those of {arithmetic.range_bits} bits with a constant"
            yield self._finding("wide-compare", v.span, lacks, "subtract with saturation, and compare with zero")
        else:
            yield from self._wide("wide-compare", v, limit, "a comparison")

    def _wide(self, rule: str, v: Vertex, limit: int | None, what: str, more: int = 0) -> Iterator[Finding]:
        if limit is not None and v.width + more > limit:
            lacks = f"{what} of {v.width + more} bits, there are {limit}"
            yield self._finding(rule, v.span, lacks, "split it into halves, a stage each, or keep fewer bits")

    def _finding(self, rule: str, span: int | None, lacks: str, instead: str) -> Finding:
        return Finding(rule, lacks, instead, self.at(span))

    def _register_findings(self, access: Access, target: Target) -> Iterator[Finding]:
        has, name = target.register_, f"register '{access.name}'"
        if access.accesses > 1 and not has.repeated:
            lacks = f"{name} is accessed {access.accesses} times by a packet, its stage is passed once"
            instead = "join the accesses, keep a copy in a second register, or recirculate"
            yield Finding("register-accesses", lacks, instead, access.location)
        if len(access.pipelines) > 1 and not has.both_pipelines:
            lacks = f"{name} is used in {' and '.join(access.pipelines)}, it is in a stage of one of them"
            instead = "carry the value in a header or metadata, or recirculate"
            yield Finding("register-pipelines", lacks, instead, access.location)
        if has.width_bits is not None and access.width_bits > has.width_bits:
            lacks = f"{name} has cells of {access.width_bits} bits, there are {has.width_bits}"
            yield Finding("register-width", lacks, "spread them over two registers", access.location)
        if access.through and has.operations is not None:
            lacks = f"what is written to {name} depends on '{access.through}', which is looked up after the read"
            instead = "look it up before the read, or write in a second pass"
            yield Finding("register-table", lacks, instead, access.location)
        if has.operations is not None and access.operations > has.operations:
            lacks = f"{access.operations} operations between read and write of {name}, one access has {has.operations}"
            instead = "compute before the read what does not depend on it, or write in a second pass"
            yield Finding("register-update", lacks, instead, access.location)
        if has.conditions is not None and access.conditions > has.conditions:
            lacks = f"{access.conditions} conditions between read and write of {name}, one access has {has.conditions}"
            instead = "decide before the read, or write in a second pass"
            yield Finding("register-conditions", lacks, instead, access.location)
        if has.coupled is not None and len(access.coupled) + 1 > has.coupled:
            lacks = f"what is written to {name} depends on {_some(access.coupled)}, and the other way round"
            instead = "order the registers so that each needs earlier ones only, or write in a second pass"
            yield Finding("register-coupled", lacks, instead, access.location)

    def _copy_findings(self, target: Target) -> Iterator[Finding]:
        for name, count in self.copies.items():
            if count and not getattr(target.functions, name):
                span = next((v.span for v in self.graph if resources.copy_kind(v, self._package) == name), None)
                yield self._finding(name, span, f"no {name}", "leave it to a switch beside the device")

    def _checksum_findings(self, target: Target) -> Iterator[Finding]:
        for checksum in self.ir.checksums:
            if checksum.calculation.with_payload and not target.functions.payload_checksum:
                lacks = "no checksum over the payload, which does not pass the pipeline"
                instead = "update the old checksum by what has changed"
                yield self._finding("payload-checksum", checksum.span, lacks, instead)

    # Placement

    def _demand(self, v: Vertex, target: Target) -> Demand:
        fixed: dict[str, int] = {}
        blocks: dict[str, int] = {}
        if v.kind == "table":
            assert v.table is not None
            fixed["tables"] = 1
            bits = resources.key_bits(v.table)
            fixed["ternary_key_bits" if resources.is_ternary(v.table) else "exact_key_bits"] = bits
            if v.table.profile is not None and v.table.profile.algorithm:
                fixed["hashes"] = 1
            blocks = resources.table_blocks(v.table, self.ir, target)
        elif v.kind == "condition":
            fixed["conditions"] = 1
        elif v.kind == "hash":
            fixed["hashes"] = 1
        elif v.kind == "register" and v.access in ("read", "write"):
            fixed["registers"] = 1
        else:
            fixed["action_words"] = max(1, -(-v.width // _WORD_BITS))
        return Demand(fixed, {k: n for k, n in blocks.items() if n})

    def _memory_of_objects(self, demands: dict[Vertex, Demand], target: Target) -> None:
        """Count the memory of a register or counter where it is first accessed."""
        seen: set[str] = set()
        for v in self.graph:
            if v.register and v.register not in seen:
                seen.add(v.register)
                count = resources.object_blocks(v.register, self.ir, target)
                demands[v] = Demand(demands[v].fixed, {"sram": count} if count else {})

    def _merged(
        self, demands: dict[Vertex, Demand], findings: Sequence[Finding], target: Target
    ) -> tuple[nx.DiGraph[Vertex], dict[Vertex, Demand]]:
        """Return the graph with each register access merged to one node, if the target's registers support it.

        A comparison that a condition can perform is merged with the condition. Unsupported accesses
        remain separate, as if the chip could return to a register; this gives a lower bound of the
        number of stages.
        """
        refused = {f.location for f in findings if f.rule.startswith("register-")}
        fine = [a.name for a in self.registers if a.location not in refused and len(a.pipelines) == 1]
        groups = self._groups(fine)
        for v, condition in self._ranges_in(target).items():
            groups[f"condition {self._number[v]}"] = [v, condition]
        while True:
            sets, graph = self._joined(groups)
            cycles = set().union(*(c for c in nx.strongly_connected_components(graph) if len(c) > 1))
            if not cycles:
                break
            groups = {name: group for name, group in groups.items() if sets[group[0]] not in cycles}
        joined: dict[Vertex, Counter[str]] = {v: Counter() for v in graph}
        members: dict[Vertex, list[Vertex]] = {v: [] for v in graph}
        for v in self.graph:
            joined[sets[v]].update(demands[v].blocks)
            members[sets[v]].append(v)

        def fixed(v: Vertex) -> Mapping[str, int]:
            if len(members[v]) == 1:
                return demands[v].fixed
            return {"registers" if any(m.kind == "register" for m in members[v]) else "conditions": 1}

        return graph, {v: Demand(fixed(v), dict(joined[v])) for v in graph}

    def _wanted_in(self, graph: nx.DiGraph[Vertex]) -> dict[Vertex, int]:
        """Return the stage that the program requests by `@stage`, by vertex of the graph."""
        return {v: self._wanted[v.table] for v in graph if v.table is not None and v.table in self._wanted}

    def _too_early(self, v: Vertex, wanted: int, possible: int) -> Finding:
        lacks = f"'{v.name}' is wanted in stage {wanted}, but depends on what is known in stage {possible}"
        return self._finding("stage-pragma", v.span, lacks, f"ask for stage {possible} or a later one")

    def _capacity(self, target: Target) -> dict[str, int]:
        capacity = {k: n for k, n in target.stage.model_dump().items() if n is not None}
        if target.sram is not None:
            capacity["sram"] = target.sram.blocks
        if target.tcam is not None and not target.tcam.of_sram:
            capacity["tcam"] = target.tcam.blocks
        return capacity

    def _too_large(self, error: ImpossibleError, target: Target) -> Finding:
        what = error.resource.replace("_", " ")
        has = self._capacity(target)[error.resource]
        lacks = f"'{error.node.name}' needs more {what} than a stage has ({has})"
        return self._finding("stage-width", error.node.span, lacks, "split it into two tables with shorter keys")

    def _stage_findings(
        self, placement: Placement | None, memory: Mapping[str, int], target: Target
    ) -> Iterator[Finding]:
        if target.stages is None:
            if target.sram is not None and memory["sram"] > target.sram.blocks:
                lacks = f"{memory['sram']} blocks of memory, there are {target.sram.blocks}"
                yield Finding("memory", lacks, "make tables and registers smaller, or keep them outside of the chip")
            return
        if target.sram is not None and memory["sram"] > target.sram.blocks * target.stages:
            lacks = f"{memory['sram']} SRAM blocks, there are {target.sram.blocks * target.stages}"
            yield Finding("sram", lacks, "make tables and registers smaller")
        if target.tcam is not None and memory["tcam"] > target.tcam.blocks * target.stages:
            lacks = f"{memory['tcam']} TCAM blocks, there are {target.tcam.blocks * target.stages}"
            yield Finding("tcam", lacks, "make ternary tables smaller, or their keys exact")
        if placement is not None and placement.stages > target.stages:
            chain = self._chain()
            lacks = f"{placement.stages} stages, there are {target.stages}"
            yield Finding("stages", lacks, f"shorten the longest chain{chain}, or recirculate")

    def _chain(self) -> str:
        path = nx.dag_longest_path(self.graph)
        named = [v for v in path if v.span is not None]
        if not named:
            return ""
        first, last = self.at(named[0].span), self.at(named[-1].span)
        assert first is not None
        assert last is not None
        return f", from {Path(first.file).name}:{first.line} to {Path(last.file).name}:{last.line}"


def _wanted_stages(lowered: Lowered) -> dict[ir.Table, int]:
    """Return the first stage that each table requests by `@stage(stage)` or `@stage(stage, entries)`.

    Raises CompileError for an annotation without a stage.
    """
    wanted: dict[ir.Table, int] = {}
    for table in lowered.tables:
        for annotation in table.decl.annotations:
            if annotation.name != "stage":
                continue
            number = annotation.tokens[0] if annotation.tokens else ""
            if not number.isdecimal():
                raise error_at(lowered.source, annotation, "@stage: expected the number of a stage")
            wanted[table.ir] = min(int(number), wanted.get(table.ir, int(number)))
    return wanted


def _range_bits(v: Vertex) -> int:
    """Return the number of bits that a comparison with a constant needs. x < 24 is (x >> 3) < 3, without low bits."""
    assert v.constant is not None
    bound = v.constant + (v.op in ("<=", ">"))
    return v.width - ((bound & -bound).bit_length() - 1) if bound else 0


def _quotient(graph: nx.DiGraph[Vertex], sets: Any) -> nx.DiGraph[Vertex]:
    """Return `graph` with each of the disjoint `sets` merged to one node.

    Of parallel edges the strictest kind is kept.
    """
    result: nx.DiGraph[Vertex] = nx.DiGraph()
    result.add_nodes_from(sets[v] for v in graph)
    for first, second, data in graph.edges(data=True):
        a, b, kind = sets[first], sets[second], data["kind"]
        known = result.get_edge_data(a, b)
        if a is not b and (known is None or known["kind"] not in LATER):
            result.add_edge(a, b, kind=kind)
    return result


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(f"'{n}'" for n in names[:3])
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3} more"


def measure(
    path: str | Path,
    include_dirs: Sequence[str | Path] = (),
    defines: Mapping[str, str] | None = None,
    arch: str | None = None,
) -> Program:
    """Return the program in file `path`, ready for `Program.fit`; `arch` is as in `parse_and_check`.

    Raises CompileError and UserError as the compiler does.
    """
    program = parse_and_check(path, include_dirs, defines, arch)
    with deep_recursion():
        compiled = lowered(program)
        compiled.require("fit")
        return Program(compiled)
