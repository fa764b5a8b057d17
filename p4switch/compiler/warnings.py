"""Warnings about a checked program: code that is valid but probably unintended. Each warning has a name.

There is a warning only if a fact holds on every path: a variable is read before it is set, no code
makes a header valid, or a declaration is never used. `@noWarn("unused")` at a declaration silences
the warning of that name there; `p4cc compile --Wdisable NAME` and `--Werror NAME` apply to the
whole program.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import networkx as nx

from p4switch.architectures.architecture import Architecture, include_files
from p4switch.architectures.package import Tell
from p4switch.compiler import ast, differences, types
from p4switch.compiler.diagnostics import Reporter
from p4switch.compiler.facts import Facts
from p4switch.compiler.includes import CORE
from p4switch.compiler.walk import parts, place_text, walk

NAMES = {
    "constant-condition": "a condition that is always true or always false",
    "deprecated": "something that its declaration says not to use any more",
    "detached": "a direct counter or meter that no table has",
    "empty-range": "a case of `select` that never matches, since the low end of its range is above the high end",
    "invalid-header": "a field of a header that nothing makes valid",
    "other": "anything that has no name of its own",
    "parser-loop": "states of a parser that lead to each other and take nothing of the packet",
    "register-executions": "a register of TNA or T2NA that one packet may use more than once",
    "selector": "a key for an action selector in a table that has none",
    differences.NAME: "what BMv2, and so the built-in switch, does differently from P4-16 or the architecture",
    "uninitialized": "a variable that is read before anything sets it",
    "unused": "a table, action, counter, meter or register that nothing uses",
}
_WRITTEN = (ast.Direction.OUT, ast.Direction.INOUT)


def warn(program: ast.Program, reporter: Reporter) -> None:
    """Add the warnings about a program without errors, in the order of the source."""
    messages: list[tuple[int, str, str]] = []

    def tell(node: ast.Node, message: str, name: str) -> None:
        if not _is_silenced(node, name):
            messages.append((node.pos, message, name))

    own = (d for d in program.declarations if _is_own(d, program))
    blocks = [d for d in own if isinstance(d, ast.ControlDecl | ast.ParserDecl)]
    architecture = program.architecture
    warnings = _Warnings(program.facts, architecture, tell)
    warnings.unused(program, blocks)
    warnings.headers(blocks)
    differences.warn(blocks, program.facts, tell)
    package = None if architecture is None else architecture.package_of(program)
    if package is not None:
        package.warn(blocks, program.facts, tell)
    for block in blocks:
        warnings.block(block)
    for pos, message, name in sorted(set(messages)):
        reporter.warn(pos, message, name)


def _is_own(node: ast.Declaration | ast.ErrorDecl | ast.MatchKindDecl, program: ast.Program) -> bool:
    """Return whether a declaration is not from the include file of an architecture."""
    return Path(program.source.locate(node.pos).file).name not in (CORE.name, *include_files())


def _is_silenced(node: ast.Node, name: str) -> bool:
    annotations = node.annotations if isinstance(node, ast.Declaration) else []
    return any(a.name == "noWarn" and a.string == name for a in annotations)


# Variables that are read before they are set


class _Unset:
    """Walk through a body in the order of execution. A variable is unset until some path has set it."""

    def __init__(self, facts: Facts, tell: Tell) -> None:
        self._facts = facts
        self._tell = tell
        self._unset: set[int] = set()

    def declare(self, variables: Iterable[ast.VarDecl]) -> None:
        kinds = (types.Bits, types.Bool)
        self._unset |= {id(v) for v in variables if v.init is None and isinstance(self._facts.types[v], kinds)}

    def body(self, block: ast.Block) -> None:
        for statement in block.statements:
            self._statement(statement)

    def _statement(self, node: ast.Node) -> None:
        if isinstance(node, ast.Block):
            self.body(node)
        elif isinstance(node, ast.VarDecl):
            if node.init is not None:
                self._read(node.init)
            self.declare([node])
        elif isinstance(node, ast.Assign):
            self._read(node.value)
            self._write(node.target)
        elif isinstance(node, ast.If):
            self._read(node.condition)
            before = set(self._unset)
            self._statement(node.then)
            then, self._unset = self._unset, before
            if node.otherwise is not None:
                self._statement(node.otherwise)
            self._unset &= then
        elif isinstance(node, ast.Switch | ast.For | ast.ForIn):
            self._any_order(node)
        else:
            for part in parts(node, self._facts):
                self._read(part)

    def _any_order(self, node: ast.Node) -> None:
        """Treat variables that are set anywhere in a node as set from its start."""
        for inner in walk(node, self._facts):
            if isinstance(inner, ast.Assign):
                self._write(inner.target)
            elif isinstance(inner, ast.Call):
                self._arguments(inner)
        self._read(node)

    def _arguments(self, call: ast.Call) -> None:
        binding = self._facts.bindings[call]
        for param, value in zip(binding.params, binding.bound, strict=False):
            if value is not None and param.direction in _WRITTEN:
                self._write(value)

    def _read(self, node: ast.Node) -> None:
        if isinstance(node, ast.Name) and id(self._facts.decls[node]) in self._unset:
            self._tell(node, f"'{node.name}' is read before anything sets it", "uninitialized")
            self._unset.discard(id(self._facts.decls[node]))  # each variable is reported once
        if isinstance(node, ast.Call):
            binding = self._facts.bindings[node]
            for param, value in zip(binding.params, binding.bound, strict=False):
                if value is not None and param.direction is not ast.Direction.OUT:
                    self._read(value)
            if binding.receiver is not None:
                self._read(binding.receiver)
            self._arguments(node)
            return
        for part in parts(node, self._facts):
            self._read(part)

    def _write(self, node: ast.Expr) -> None:
        while isinstance(node, ast.Member | ast.Index | ast.Slice | ast.WidthSlice):
            node = node.base
        if isinstance(node, ast.Name):
            self._unset.discard(id(self._facts.decls[node]))


class _Warnings:
    """Warnings about one program."""

    def __init__(self, facts: Facts, architecture: Architecture | None, tell: Tell) -> None:
        self._architecture = architecture
        self._facts = facts
        self._tell = tell
        self._walked: dict[ast.Node, list[ast.Node]] = {}

    def _walk(self, node: ast.Node) -> list[ast.Node]:
        """Return `node` and everything below it. The result is kept, because several warnings need it."""
        if node not in self._walked:
            self._walked[node] = list(walk(node, self._facts))
        return self._walked[node]

    def _referred(self, nodes: Iterable[ast.Node]) -> Iterator[ast.Declaration]:
        """Yield the declarations that expressions and statements name."""
        for top in nodes:
            for node in self._walk(top):
                if isinstance(node, ast.Name):
                    yield self._facts.decls[node]
                elif isinstance(node, ast.Call):
                    called = self._facts.bindings[node].decl
                    if called is not None:
                        yield called
                    if isinstance(node.func, ast.Member) and isinstance(node.func.base, ast.Name):
                        yield self._facts.decls[node.func.base]
                elif isinstance(node, ast.TableDecl):
                    yield from (self._facts.actions[ref] for ref in self._action_refs(node))
                    yield from self._referred(p.value for p in node.properties.values())
                elif isinstance(node, ast.Instantiation):
                    yield from self._referred(argument.value for argument in node.args)
                    yield from self._referred(node.methods)
                elif isinstance(node, ast.Switch) and node in self._facts.switched:
                    yield self._facts.switched[node]

    def block(self, block: ast.ControlDecl | ast.ParserDecl) -> None:
        for node in self._walk(block):
            if isinstance(node, ast.If):
                self._condition(node)
            elif isinstance(node, ast.TableDecl):
                self._selector(node)
        if isinstance(block, ast.ParserDecl):
            self._loops(block)
        else:
            unset = _Unset(self._facts, self._tell)
            others = [local for local in block.locals if not isinstance(local, ast.VarDecl)]
            elsewhere = set(map(id, self._referred(others)))
            unset.declare(d for d in block.locals if isinstance(d, ast.VarDecl) and id(d) not in elsewhere)
            unset.body(block.body)
            for local in block.locals:
                if isinstance(local, ast.ActionDecl):
                    _Unset(self._facts, self._tell).body(local.body)

    def _action_refs(self, table: ast.TableDecl) -> Iterator[ast.ActionRef]:
        yield from table.actions
        if table.default_action is not None:
            yield table.default_action
        yield from (entry.action for entry in table.entries or ())

    def unused(self, program: ast.Program, blocks: Iterable[ast.Node]) -> None:
        bodies = [d for d in program.declarations if isinstance(d, ast.FunctionDecl | ast.ActionDecl)]
        used = set(map(id, self._referred([*blocks, *bodies])))
        declared: list[ast.Node] = [d for d in program.declarations if isinstance(d, ast.Instantiation)]
        declared += [d for block in blocks if isinstance(block, ast.ControlDecl | ast.ParserDecl) for d in block.locals]
        for decl in declared:
            if id(decl) in used:
                continue
            if isinstance(decl, ast.TableDecl):
                self._tell(decl, f"table '{decl.name}' is never applied", "unused")
            elif isinstance(decl, ast.ActionDecl):
                self._tell(decl, f"action '{decl.name}' is never used", "unused")
            elif isinstance(decl, ast.Instantiation):
                t = self._facts.types[decl]
                if isinstance(t, types.Extern):
                    self._unused_object(decl, t.decl.name)

    def _unused_object(self, decl: ast.Instantiation, name: str) -> None:
        kind = None if self._architecture is None else self._architecture.extern_type(name)
        if kind is None or not kind.stateful:
            return
        if kind.direct:
            self._tell(decl, f"{name} '{decl.name}' belongs to no table", "detached")
        else:
            self._tell(decl, f"{name} '{decl.name}' is never used", "unused")

    def _condition(self, node: ast.If) -> None:
        value = self._constant(node.condition)
        if value is not None:
            self._tell(node.condition, f"the condition is always {str(value).lower()}", "constant-condition")

    def _constant(self, node: ast.Expr) -> bool | None:
        """Return the value that a condition has for all values of its operands; None for other conditions.

        Constants alone do not count, because they may configure the program.
        """
        if isinstance(node, ast.Unary) and node.op == "!":
            inner = self._constant(node.operand)
            return None if inner is None else not inner
        if not isinstance(node, ast.Binary):
            return None
        if node.op in ("&&", "||"):
            sides = [self._constant(node.left), self._constant(node.right)]
            decisive = node.op == "||"
            if decisive in sides:
                return decisive
            return (not decisive) if sides == [not decisive, not decisive] else None
        left, right = place_text(node.left, self._facts), place_text(node.right, self._facts)
        if left is not None and left == right and node.op in ("==", "!=", "<", "<=", ">", ">="):
            return node.op in ("==", "<=", ">=")
        t = self._facts.types[node.left]
        unsigned = isinstance(t, types.Bits) and not t.signed
        zero = isinstance(node.right, ast.IntLiteral) and node.right.value == 0
        if unsigned and zero and node.op in ("<", ">="):
            return node.op == ">="
        return None

    def _selector(self, table: ast.TableDecl) -> None:
        has = self._architecture is not None and self._architecture.properties.profile in table.properties
        for key in table.keys:
            if key.match_kind == "selector" and not has:
                self._tell(key, f"table '{table.name}' has no action selector: this key is not used", "selector")

    def _loops(self, parser: ast.ParserDecl) -> None:
        graph: nx.DiGraph[str] = nx.DiGraph()
        idle = {s.name for s in parser.states if not self._takes(s)}
        for state in parser.states:
            targets = []
            if isinstance(state.transition, ast.Transition):
                targets = [state.transition.state]
            elif isinstance(state.transition, ast.Select):
                targets = [case.state for case in state.transition.cases]
            graph.add_edges_from((state.name, target) for target in targets if {state.name, target} <= idle)
        for component in nx.strongly_connected_components(graph):
            name = min(component)
            if len(component) > 1 or graph.has_edge(name, name):
                state = next(s for s in parser.states if s.name in component)
                message = f"state '{state.name}' can come back to itself without taking anything"
                self._tell(state, message, "parser-loop")

    def _takes(self, state: ast.ParserState) -> bool:
        """Return whether a state has a call, which may advance in the packet, or an assignment."""
        nodes = (node for statement in state.statements for node in walk(statement, self._facts))
        return any(isinstance(node, ast.Call | ast.Assign) for node in nodes)

    def headers(self, blocks: Iterable[ast.Node]) -> None:
        nodes = [node for block in blocks for node in self._everything(block)]
        written: set[int] = set()
        for node in nodes:
            if isinstance(node, ast.Assign):
                written |= set(self._places(node.target))
            elif isinstance(node, ast.Call):
                call = self._facts.bindings[node]
                if call.receiver is not None and call.method in ("setValid", "push_front"):
                    written |= set(self._places(call.receiver))
                written |= self._written(call.params, call.bound)
            elif isinstance(node, ast.VarDecl) and node.init is not None:
                written |= set(self._inside(self._facts.types[node]))
            elif isinstance(node, ast.TableDecl):
                for ref in self._action_refs(node):
                    written |= self._written(self._facts.actions[ref].params, self._facts.bindings[ref].bound)
        for node in nodes:
            if isinstance(node, ast.Member) and isinstance(node.base, ast.Member) and node in self._facts.fields:
                header = node.base
                place = self._place(header)
                if isinstance(self._facts.types[header], types.Header) and place is not None and place not in written:
                    self._tell(node, f"nothing in this program makes header '{header.name}' valid", "invalid-header")

    def _written(self, params: Iterable[ast.Parameter], bound: Iterable[ast.Expr | None]) -> set[int]:
        """Return the headers that a callee may have made valid."""
        pairs = zip(params, bound, strict=False)
        given = [value for p, value in pairs if value is not None and p.direction in _WRITTEN]
        return {place for value in given for place in self._places(value)}

    def _everything(self, block: ast.Node) -> Iterator[ast.Node]:
        for node in self._walk(block):
            yield node
            func = node.func if isinstance(node, ast.Call) else None
            if isinstance(func, ast.Member) and self._facts.bindings[node].receiver is None:
                yield from walk(func.base, self._facts)

    def _place(self, node: ast.Member) -> int | None:
        """Return the declaration of the field that contains a header; None after an index or a union."""
        field = self._facts.fields.get(node)
        in_union = isinstance(self._facts.types[node.base], types.Union)
        return None if field is None or in_union or isinstance(node.base, ast.Index) else id(field.decl)

    def _places(self, node: ast.Expr) -> Iterator[int]:
        """Yield the declarations of all headers that an expression denotes, contains, or is an element of."""
        while isinstance(node, ast.Index | ast.Slice | ast.WidthSlice):
            node = node.base
        if isinstance(node, ast.Member) and node in self._facts.fields:
            yield id(self._facts.fields[node].decl)
            if isinstance(node.base, ast.Member | ast.Index) and isinstance(self._facts.types[node.base], types.Union):
                yield from self._places(node.base)
        yield from self._inside(self._facts.types[node])

    def _inside(self, t: types.Type) -> Iterator[int]:
        if isinstance(t, types.Struct):
            for f in t.fields:
                yield id(f.decl)
                yield from self._inside(f.type)
