"""Conversion of a graph of nodes to C with if and switch: statements, and where they lead.

A branch is written where it is taken, up to the node where all its ways meet again (the immediate post-dominator). A
node that is reached in several ways without such a place is written once, and jumped to from elsewhere; loops jump
back. So every way from a node to the next is either what follows in the text or a jump, whatever the graph is.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import networkx as nx

from p4switch.engine.cnodes import Block, Case, Goto, If, Label, Return, Statement, Switch, commented, ends

_END = ""  # the name of no node
_DEEPEST = 30  # blocks in blocks: compilers have limits, and readers too


@dataclass
class Node:
    """Statements of a node, and where it leads: None is the end.

    With `value` it goes on by the value of a C expression, as `cases` say, else as `next` says; a case has its own
    statements. With `condition` it goes on to `next` where that does not hold, and to `yes` where it does.
    """

    body: list[Statement] = field(default_factory=list)
    next: str | None = None
    condition: str = ""
    note: str = ""  # on the condition, for readers
    yes: str | None = None
    value: str = ""
    cases: list[tuple[str, list[Statement], str | None]] = field(default_factory=list)
    inner: bool = False  # it has names of the node before it, which is the only one that leads to it

    @property
    def successors(self) -> list[str | None]:
        """Nodes to which it may lead."""
        return [self.next, *([self.yes] if self.condition else []), *(target for _, _, target in self.cases)]


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
        made = self._from(start if start is not None else _END, _END, 0)
        while self.waiting:
            name = self.waiting.pop()
            if name not in self.written:
                made += [Return(), *self._from(name, _END, 0)]
        return made

    def _from(self, name: str, stop: str, depth: int) -> list[Statement]:
        """Return everything from a node up to `stop`, which follows in the text."""
        made: list[Statement] = []
        while name != stop:
            if name == _END:
                return [*made, Return()]
            if name in self.written:
                return [*made, Goto(self.label(name))]
            if depth > _DEEPEST and not self.nodes[name].inner:
                self.waiting.append(name)
                return [*made, Goto(self.label(name))]
            self.written.add(name)
            node = self.nodes[name]
            made.append(Label(self.label(name)))
            made.append(Block(list(node.body)))
            meet = self.meets.get(name, _END)
            if not node.condition and not node.cases:
                name = node.next or _END
                continue
            inside = made[-1].body if isinstance(made[-1], Block) else made
            if node.condition:
                then = self._from(node.yes or _END, meet, depth + 1)
                otherwise = self._from(node.next or _END, meet, depth + 1)
                inside.append(If(node.condition, then, otherwise, commented(node.note)))
            else:
                cases = [
                    Case(value, [*body, *([] if ends(body) else self._from(target or _END, meet, depth + 1))])
                    for value, body, target in node.cases
                ]
                default = self._from(node.next or _END, meet, depth + 1)
                inside.append(Switch(node.value, [*cases, *([Case(None, default)] if default else [])]))
            name = meet
        return made


def statements(nodes: Mapping[str, Node], start: str | None, label: Callable[[str], str]) -> list[Statement]:
    """Return the body of a function that goes through the nodes from `start` on; `label` gives a node's label in C."""
    return _Writer(nodes, label).body(start)
