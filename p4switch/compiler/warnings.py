"""What is allowed and probably not meant: warnings about a checked program, each by a name.

Only what holds on every path is told, so that a warning is worth reading: a variable that nothing has set where it is
read, a header that nothing in the program makes valid, what is declared and never used. `@noWarn("unused")` at a
declaration silences a name there; `p4cc compile --Wdisable NAME` and `--Werror NAME` do so for a program.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import networkx as nx

from p4switch.architectures.architecture import include_files
from p4switch.architectures.package import Tell
from p4switch.compiler import ast, differences, types
from p4switch.compiler.diagnostics import Reporter
from p4switch.compiler.includes import CORE
from p4switch.compiler.midend.walk import parts, place_text, walk

NAMES = {
    "constant-condition": "a condition that is always true or always false",
    "deprecated": "something that its declaration says not to use any more",
    "detached": "a direct counter or meter that no table has",
    "empty-range": "a case of `select` that never matches, since the low end of its range is above the high end",
    "invalid-header": "a field of a header that nothing makes valid",
    "other": "anything that has no name of its own",
    "parser-loop": "states of a parser that lead to each other and take nothing of the packet",
    "selector": "a key for an action selector in a table that has none",
    differences.NAME: "what BMv2, and so the built-in switch, does differently from P4-16 or the architecture",
    "uninitialized": "a variable that is read before anything sets it",
    "unused": "a table, action, counter, meter or register that nothing uses",
}
_WRITTEN = (ast.Direction.OUT, ast.Direction.INOUT)


def warn(program: ast.Program, reporter: Reporter) -> None:
    """Adds the warnings about a program without errors, in the order of the source."""
    found: list[tuple[int, str, str]] = []

    def tell(node: ast.Node, message: str, name: str) -> None:
        if not _is_silenced(node, name):
            found.append((node.pos, message, name))

    own = (d for d in program.declarations if _is_own(d, program))
    blocks = [d for d in own if isinstance(d, ast.ControlDecl | ast.ParserDecl)]
    _unused(program, blocks, tell)
    _headers(blocks, tell)
    differences.warn(blocks, tell)
    architecture = program.architecture
    package = None if architecture is None else architecture.package_of(program)
    if package is not None:
        package.warn(blocks, tell)
    for block in blocks:
        for node in walk(block):
            if isinstance(node, ast.If):
                _condition(node, tell)
            elif isinstance(node, ast.TableDecl):
                _selector(node, "implementation" if architecture is None else architecture.properties.profile, tell)
        if isinstance(block, ast.ParserDecl):
            _loops(block, tell)
        else:
            _Unset(tell, block).body(block.body)
            for local in block.locals:
                if isinstance(local, ast.ActionDecl):
                    _Unset(tell, local).body(local.body)
    for pos, message, name in sorted(set(found)):
        reporter.warn(pos, message, name)


def _is_own(node: ast.Declaration | ast.ErrorDecl | ast.MatchKindDecl, program: ast.Program) -> bool:
    """Return whether it is not of the include file of an architecture."""
    return Path(program.source.locate(node.pos).file).name not in (CORE.name, *include_files())


def _is_silenced(node: ast.Node, name: str) -> bool:
    annotations = node.annotations if isinstance(node, ast.Declaration) else []
    return any(a.name == "noWarn" and a.string == name for a in annotations)


def _referred(nodes: Iterable[ast.Node]) -> Iterator[ast.Declaration]:
    """Declarations that expressions and statements name."""
    for top in nodes:
        for node in walk(top):
            if isinstance(node, ast.Name):
                yield node.decl
            elif isinstance(node, ast.Call):
                if node.decl is not None:
                    yield node.decl
                if isinstance(node.func, ast.Member) and isinstance(node.func.base, ast.Name):
                    yield node.func.base.decl
            elif isinstance(node, ast.TableDecl):
                yield from (ref.decl for ref in _action_refs(node))
                yield from _referred(p.value for p in node.properties.values())
            elif isinstance(node, ast.Switch) and node.table is not None:
                yield node.table


def _action_refs(table: ast.TableDecl) -> Iterator[ast.ActionRef]:
    yield from table.actions
    if table.default_action is not None:
        yield table.default_action
    yield from (entry.action for entry in table.entries or ())


def _unused(program: ast.Program, blocks: Iterable[ast.Node], tell: Tell) -> None:
    used = set(map(id, _referred(blocks)))
    used |= set(map(id, _referred(d for d in program.declarations if isinstance(d, ast.FunctionDecl | ast.ActionDecl))))
    declared: list[ast.Node] = [d for d in program.declarations if isinstance(d, ast.Instantiation)]
    declared += [d for block in blocks if isinstance(block, ast.ControlDecl | ast.ParserDecl) for d in block.locals]
    for decl in declared:
        if id(decl) in used:
            continue
        if isinstance(decl, ast.TableDecl):
            tell(decl, f"table '{decl.name}' is never applied", "unused")
        elif isinstance(decl, ast.ActionDecl):
            tell(decl, f"action '{decl.name}' is never used", "unused")
        elif isinstance(decl, ast.Instantiation) and isinstance(decl.type, types.Extern):
            _unused_object(decl, decl.type.decl.name, program, tell)


def _unused_object(decl: ast.Instantiation, name: str, program: ast.Program, tell: Tell) -> None:
    kind = None if program.architecture is None else program.architecture.extern_type(name)
    if kind is None or not kind.stateful:
        return
    if kind.direct:
        tell(decl, f"{name} '{decl.name}' belongs to no table", "detached")
    else:
        tell(decl, f"{name} '{decl.name}' is never used", "unused")


# Conditions, tables, parsers


def _condition(node: ast.If, tell: Tell) -> None:
    value = _constant(node.condition)
    if value is not None:
        tell(node.condition, f"the condition is always {str(value).lower()}", "constant-condition")


def _constant(node: ast.Expr) -> bool | None:
    """What a condition is on its own, without the macros and parameters that make a program fit."""
    if isinstance(node, ast.Unary) and node.op == "!":
        inner = _constant(node.operand)
        return None if inner is None else not inner
    if not isinstance(node, ast.Binary):
        return None
    if node.op in ("&&", "||"):
        sides = [_constant(node.left), _constant(node.right)]
        decisive = node.op == "||"
        if decisive in sides:
            return decisive
        return (not decisive) if sides == [not decisive, not decisive] else None
    left, right = place_text(node.left), place_text(node.right)
    if left is not None and left == right and node.op in ("==", "!=", "<", "<=", ">", ">="):
        return node.op in ("==", "<=", ">=")
    unsigned = isinstance(node.left.type, types.Bits) and not node.left.type.signed
    zero = isinstance(node.right, ast.IntLiteral) and node.right.value == 0
    if unsigned and zero and node.op in ("<", ">="):
        return node.op == ">="
    return None


def _selector(table: ast.TableDecl, name: str, tell: Tell) -> None:
    has = name in table.properties
    for key in table.keys:
        if key.match_kind == "selector" and not has:
            tell(key, f"table '{table.name}' has no action selector: this key is not used", "selector")


def _loops(parser: ast.ParserDecl, tell: Tell) -> None:
    graph: nx.DiGraph[str] = nx.DiGraph()
    idle = {s.name for s in parser.states if not _takes(s)}
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
            tell(state, f"state '{state.name}' can come back to itself without taking anything", "parser-loop")


def _takes(state: ast.ParserState) -> bool:
    """Whether it moves on in the packet, or counts on something else that may: a sub-parser, a variable."""
    return any(isinstance(node, ast.Call | ast.Assign) for statement in state.statements for node in walk(statement))


# Headers that nothing makes valid


def _headers(blocks: Iterable[ast.Node], tell: Tell) -> None:
    nodes = [node for block in blocks for node in _everything(block)]
    made: set[int] = set()
    for node in nodes:
        if isinstance(node, ast.Assign):
            made |= set(_places(node.target))
        elif isinstance(node, ast.Call):
            if node.receiver is not None and node.method in ("setValid", "push_front"):
                made |= set(_places(node.receiver))
            made |= _written(node.params, node.bound)
        elif isinstance(node, ast.VarDecl) and node.init is not None:
            made |= set(_inside(node.type))
        elif isinstance(node, ast.TableDecl):
            for ref in _action_refs(node):
                made |= _written(ref.decl.params, ref.bound)
    for node in nodes:
        if isinstance(node, ast.Member) and isinstance(node.base, ast.Member) and node.field is not None:
            header = node.base
            place = _place(header)
            if isinstance(header.type, types.Header) and place is not None and place not in made:
                tell(node, f"nothing in this program makes header '{header.name}' valid", "invalid-header")


def _written(params: Iterable[ast.Parameter], bound: Iterable[ast.Expr | None]) -> set[int]:
    """The headers that a callee may have made valid."""
    given = zip(params, bound, strict=False)
    return {place for p, value in given if value is not None and p.direction in _WRITTEN for place in _places(value)}


def _everything(block: ast.Node) -> Iterator[ast.Node]:
    for node in walk(block):
        yield node
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Member) and node.receiver is None:
            yield from walk(node.func.base)


def _place(node: ast.Member) -> int | None:
    """The declaration of the field that a header is; None where an index or a union stands before it."""
    if node.field is None or isinstance(node.base, ast.Index) or isinstance(node.base.type, types.Union):
        return None
    return id(node.field.decl)


def _places(node: ast.Expr) -> Iterator[int]:
    """Of all headers that an expression is, has, or is an element of."""
    while isinstance(node, ast.Index | ast.Slice):
        node = node.base
    if isinstance(node, ast.Member) and node.field is not None:
        yield id(node.field.decl)
        if isinstance(node.base, ast.Member | ast.Index) and isinstance(node.base.type, types.Union):
            yield from _places(node.base)
    yield from _inside(node.type)


def _inside(t: types.Type) -> Iterator[int]:
    if isinstance(t, types.Struct):
        for f in t.fields:
            yield id(f.decl)
            yield from _inside(f.type)


# Variables that are read before anything sets them


class _Unset:
    """Walks a body in the order it runs; a variable counts as not set while no path has set it."""

    def __init__(self, tell: Tell, owner: ast.ControlDecl | ast.ActionDecl) -> None:
        self._tell = tell
        self._unset: set[int] = set()
        if isinstance(owner, ast.ControlDecl):
            others = [local for local in owner.locals if not isinstance(local, ast.VarDecl)]
            elsewhere = set(map(id, _referred(others)))
            self._declare(d for d in owner.locals if isinstance(d, ast.VarDecl) and id(d) not in elsewhere)

    def _declare(self, variables: Iterable[ast.VarDecl]) -> None:
        self._unset |= {id(v) for v in variables if v.init is None and isinstance(v.type, types.Bits | types.Bool)}

    def body(self, block: ast.Block) -> None:
        for statement in block.statements:
            self._statement(statement)

    def _statement(self, node: ast.Node) -> None:
        if isinstance(node, ast.Block):
            self.body(node)
        elif isinstance(node, ast.VarDecl):
            if node.init is not None:
                self._read(node.init)
            self._declare([node])
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
            for part in parts(node):
                self._read(part)

    def _any_order(self, node: ast.Node) -> None:
        """What is set anywhere in it counts as set from its beginning on."""
        for inner in walk(node):
            if isinstance(inner, ast.Assign):
                self._write(inner.target)
            elif isinstance(inner, ast.Call):
                self._arguments(inner)
        self._read(node)

    def _arguments(self, call: ast.Call) -> None:
        for param, value in zip(call.params, call.bound, strict=False):
            if value is not None and param.direction in _WRITTEN:
                self._write(value)

    def _read(self, node: ast.Node) -> None:
        if isinstance(node, ast.Name) and id(node.decl) in self._unset:
            self._tell(node, f"'{node.name}' is read before anything sets it", "uninitialized")
            self._unset.discard(id(node.decl))  # once is enough
        if isinstance(node, ast.Call):
            for param, value in zip(node.params, node.bound, strict=False):
                if value is not None and param.direction is not ast.Direction.OUT:
                    self._read(value)
            if node.receiver is not None:
                self._read(node.receiver)
            self._arguments(node)
            return
        for part in parts(node):
            self._read(part)

    def _write(self, node: ast.Expr) -> None:
        while isinstance(node, ast.Member | ast.Index | ast.Slice):
            node = node.base
        if isinstance(node, ast.Name):
            self._unset.discard(id(node.decl))
