"""Conversion of a graph of nodes to C with if and switch.

The code of a branch is placed at the branch, up to the node where all its paths meet again (the immediate
post-dominator). A node that is reached on several paths without such a node is placed once, and other paths jump to
it. Loops jump back. In any graph, a node is therefore reached either from the code before it or by a jump.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import networkx as nx

from p4switch.engine.cexpr import C
from p4switch.engine.cnodes import Block, Case, Goto, If, Label, Return, Statement, Switch, commented, ends

_END = ""  # name of the end; no node has it
_DEEPEST = 30  # maximum nesting of blocks, for compilers and for readers


@dataclass
class Node:
    """Node with its statements and its successor; None is the end.

    If there is a `value`, a C expression, the successor is that of its value in `cases`, or else
    `next`. A case also has statements. If there is a `condition`, the successor is `yes` if it holds,
    else `next`.
    """

    body: list[Statement] = field(default_factory=list)
    next: str | None = None
    condition: C | None = None
    note: str = ""  # comment on the condition
    yes: str | None = None
    value: C | None = None
    cases: list[tuple[C, list[Statement], str | None]] = field(default_factory=list)
    inner: bool = False  # True if it uses names that its only predecessor declares

    @property
    def successors(self) -> list[str | None]:
        """Possible successors."""
        return [self.next, *([] if self.condition is None else [self.yes]), *(target for _, _, target in self.cases)]


class _Writer:
    def __init__(self, nodes: Mapping[str, Node], label: Callable[[str], str]) -> None:
        self.nodes = nodes
        self.label = label
        self.written: set[str] = set()
        self.waiting: list[str] = []
        graph: nx.DiGraph[str] = nx.DiGraph()
        graph.add_node(_END)
        for name, node in nodes.items():
            graph.add_edges_from((target if target is not None else _END, name) for target in node.successors)
        self.meets: dict[str, str] = nx.immediate_dominators(graph, _END)

    def body(self, start: str | None) -> list[Statement]:
        statements = self._from(start if start is not None else _END, _END, 0)
        while self.waiting:
            name = self.waiting.pop()
            if name not in self.written:
                statements += [Return(), *self._from(name, _END, 0)]
        return statements

    def _from(self, name: str, stop: str, depth: int) -> list[Statement]:
        """Return the code from node `name` up to node `stop`, whose code follows."""
        statements: list[Statement] = []
        while name != stop:
            if name == _END:
                return [*statements, Return()]
            if name in self.written:
                return [*statements, Goto(self.label(name))]
            if depth > _DEEPEST and not self.nodes[name].inner:
                self.waiting.append(name)
                return [*statements, Goto(self.label(name))]
            self.written.add(name)
            node = self.nodes[name]
            statements.append(Label(self.label(name)))
            statements.append(Block(list(node.body)))
            meet = self.meets.get(name, _END)
            if node.condition is None and node.value is None:
                name = node.next or _END
                continue
            inside = statements[-1].body if isinstance(statements[-1], Block) else statements
            if node.condition is not None:
                then = self._from(node.yes or _END, meet, depth + 1)
                otherwise = self._from(node.next or _END, meet, depth + 1)
                inside.append(If(node.condition, then, otherwise, commented(node.note)))
            elif node.value is not None:
                cases = [
                    Case(value, [*body, *([] if ends(body) else self._from(target or _END, meet, depth + 1))])
                    for value, body, target in node.cases
                ]
                default = self._from(node.next or _END, meet, depth + 1)
                inside.append(Switch(node.value, [*cases, *([Case(None, default)] if default else [])]))
            name = meet
        return statements


def statements(nodes: Mapping[str, Node], start: str | None, label: Callable[[str], str]) -> list[Statement]:
    """Return the body of a function that runs the nodes from `start` on. `label` returns a node's label in C."""
    return _Writer(nodes, label).body(start)
