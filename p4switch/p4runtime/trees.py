"""Multicast groups as trees of nodes with ports and LAGs. A hash selects one node of each ECMP in a group.

A node has a replication id and belongs to at most one group or ECMP. Groups that are lists of ports are in
`ReplicationStore`.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from p4switch.p4runtime.errors import invalid, not_found, precondition
from p4switch.p4runtime.profiles import Undo

MAX_GROUP = 0xFFFF
Replica: TypeAlias = tuple[int, int, int, int, int, int, int]
"""Replica in the form of `Switch.multicast_set`."""
Link: TypeAlias = tuple[int, int | None]
"""Node or ECMP of a group, with its level-1 exclusion id in the group, or None."""


@dataclass(frozen=True, slots=True)
class Node:
    """Node of a group. It sends to each of its ports, and to one port of each of its LAGs."""

    rid: int
    ports: tuple[int, ...]
    lags: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Tree:
    """Multicast group: the ids of its nodes and ECMPs."""

    nodes: tuple[Link, ...] = ()
    ecmps: tuple[Link, ...] = ()


@dataclass(frozen=True, slots=True)
class Lag:
    """Set of ports from which one is chosen.

    `left` and `right` are the numbers of further ports of the LAG on other devices.
    """

    ports: tuple[int, ...]
    left: int = 0
    right: int = 0


class Trees:
    """Trees of a switch. `set_group` sets the replicas of a group in the engine, or removes the group."""

    def __init__(self, set_group: Callable[[int, list[Replica] | None], object]) -> None:
        self._set_group = set_group
        self.trees: dict[int, Tree] = {}
        self.nodes: dict[int, Node] = {}
        self.ecmps: dict[int, tuple[int, ...]] = {}
        self.lags: dict[int, Lag] = {}

    def set_tree(self, ident: int, tree: Tree | None) -> Undo:
        """Set a group, or remove it if `tree` is None. Return how to undo it.

        Raises P4RuntimeError for an invalid number, and for nodes that do not exist or belong to another group.
        """
        if not 0 < ident <= MAX_GROUP:
            invalid(f"group {ident}: expected a number from 1 to {MAX_GROUP}, as group 0 sends nothing")
        if tree is not None:
            self._check(tree.nodes, self.nodes, "node")
            self._check(tree.ecmps, self.ecmps, "ECMP")
            taken = dict(self._uses(but_tree=ident))
            self._check_free([node for node, _ in tree.nodes], taken)
        return self._put(self.trees, ident, tree)

    def set_node(self, ident: int, node: Node | None) -> Undo:
        """Set a node, or remove it from its group or ECMP if `node` is None. Return how to undo it."""
        if node is not None:
            self._check([(lag, None) for lag in node.lags], self.lags, "LAG")
            return self._put(self.nodes, ident, node)
        undos = []
        for group, tree in list(self.trees.items()):
            if any(each == ident for each, _ in tree.nodes):
                left = tuple(link for link in tree.nodes if link[0] != ident)
                undos.append(self._put(self.trees, group, Tree(left, tree.ecmps)))
        for ecmp, nodes in list(self.ecmps.items()):
            if ident in nodes:
                undos.append(self._put(self.ecmps, ecmp, tuple(each for each in nodes if each != ident)))
        undos.append(self._put(self.nodes, ident, None))

        def undo() -> None:
            for each in reversed(undos):
                each()

        return undo

    def set_ecmp(self, ident: int, nodes: tuple[int, ...] | None) -> Undo:
        """Set the nodes of an ECMP, or remove it if `nodes` is None. Return how to undo it."""
        if nodes is None:
            users = [tree for tree, each in self.trees.items() if any(ecmp == ident for ecmp, _ in each.ecmps)]
            if users:
                precondition(f"ECMP {ident} is in group {users[0]}")
        else:
            self._check([(node, None) for node in nodes], self.nodes, "node")
            self._check_free(nodes, dict(self._uses(but_ecmp=ident)))
        return self._put(self.ecmps, ident, nodes)

    def set_lag(self, ident: int, lag: Lag | None) -> Undo:
        """Set a LAG, or remove it if `lag` is None. Return how to undo it."""
        if lag is None:
            users = [node for node, each in self.nodes.items() if ident in each.lags]
            if users:
                precondition(f"LAG {ident} is in node {users[0]}")
        return self._put(self.lags, ident, lag)

    def carry_over(self, old: Trees) -> None:
        """Copy the trees of another switch."""
        for lag, ports in old.lags.items():
            self.set_lag(lag, ports)
        for node, each in old.nodes.items():
            self.set_node(node, each)
        for ecmp, nodes in old.ecmps.items():
            self.set_ecmp(ecmp, nodes)
        for ident, tree in old.trees.items():
            self.set_tree(ident, tree)

    @staticmethod
    def _check(links: Iterable[Link], there: Container[int], what: str) -> None:
        seen = set()
        for ident, _ in links:
            if ident not in there:
                not_found(f"{what} {ident} does not exist")
            if ident in seen:
                invalid(f"{what} {ident} is given twice")
            seen.add(ident)

    def _uses(self, but_tree: int | None = None, but_ecmp: int | None = None) -> Iterator[tuple[int, str]]:
        """Yield the nodes that belong to a group or ECMP, each with a description of its group or ECMP."""
        for ident, tree in self.trees.items():
            if ident != but_tree:
                yield from ((node, f"group {ident}") for node, _ in tree.nodes)
        for ident, nodes in self.ecmps.items():
            if ident != but_ecmp:
                yield from ((node, f"ECMP {ident}") for node in nodes)

    @staticmethod
    def _check_free(nodes: Iterable[int], taken: Mapping[int, str]) -> None:
        for node in nodes:
            if node in taken:
                precondition(f"node {node} is in {taken[node]}")

    def _put(self, into: dict[int, Any], ident: int, value: Any) -> Undo:
        old = into.get(ident)

        def put(new: Any) -> None:
            if new is None:
                into.pop(ident, None)
            else:
                into[ident] = new
            if into is self.trees:
                self._set_group(ident, None if new is None else list(self._replicas(new)))
            else:  # only the replicas of this node change
                for number, tree in self.trees.items():
                    self._set_group(number, list(self._replicas(tree)))

        put(value)
        return lambda: put(old)

    def _replicas(self, tree: Tree) -> Iterator[Replica]:
        for node, xid in tree.nodes:
            yield from self._of_node(node, xid, 0, 0)
        for ecmp, xid in tree.ecmps:
            nodes = self.ecmps[ecmp]
            for at, node in enumerate(nodes):
                yield from self._of_node(node, xid, len(nodes), at)

    def _of_node(self, ident: int, xid: int | None, of: int, at: int) -> Iterator[Replica]:
        node, exclusion = self.nodes[ident], 0 if xid is None else xid + 1
        for port in node.ports:
            yield port, node.rid, exclusion, of, at, 0, 0
        for number in node.lags:
            lag = self.lags[number]
            members = lag.left + len(lag.ports) + lag.right
            for place, port in enumerate(lag.ports, start=lag.left):
                yield port, node.rid, exclusion, of, at, members, place
