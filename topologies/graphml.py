"""GraphML files, as graph tools and the Internet Topology Zoo write them, read through networkx.

The ids of nodes are their names. The attribute `kind` of a node is `host` or `switch`. Attributes
of edges are those of `edges` (`rate_bps`, `delay_ns`, `loss`, `framing_bytes`), or others that
`attributes` names: `attributes = { rate_bps = "LinkSpeedRaw" }`.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import ParseError

import networkx as nx

from p4switch.errors import UserError
from p4switch.foreign_files import opened
from topologies.edges import Listed, ListedLink, ListedTopology, NodeEntry, attributes
from topologies.model import MAX_LINKS, Topology
from topologies.registry import register

_MOST_BYTES = 64 << 20  # a tree of XML takes many times the size of its text
_ATTRIBUTES = ("rate_bps", "delay_ns", "loss", "framing_bytes")


@register("graphml")
class GraphMl(ListedTopology):
    """Network from a GraphML file; `link_rate_bps` and `link_delay_ns` are defaults for the links."""

    attributes: dict[str, str] = {}  # the file's names of edge attributes by p4cc's names, such as rate_bps

    def build(self) -> Topology:
        """Return the network of these parameters."""
        where = f"topology.file: {self.file}"
        for key in self.attributes:
            if key not in _ATTRIBUTES:
                raise UserError(f"topology.attributes: no attribute {key!r:.60}; expected {', '.join(_ATTRIBUTES)}")
        graph = self._graph(where)
        if graph.number_of_edges() > MAX_LINKS:
            raise UserError(f"{where}: over {MAX_LINKS:,} links; expected a smaller network")
        nodes: dict[str, NodeEntry] = {}
        for name, values in graph.nodes(data=True):
            kind = values.get("kind")
            if kind not in (None, "host", "switch"):
                raise UserError(f"{where}: node {name!r:.60}: kind {kind!r:.40}; expected host or switch")
            nodes[str(name)] = NodeEntry(name=str(name), kind=kind)
        links = [
            ListedLink(str(a), str(b), self._of_edge(f"{where}: edge {a!r:.40} - {b!r:.40}", values), where)
            for a, b, values in graph.edges(data=True)
        ]
        return self.assembled("graphml", Listed(links, nodes))

    def _of_edge(self, where: str, values: Mapping[str, Any]) -> Any:
        theirs = {ours: self.attributes.get(ours, ours) for ours in _ATTRIBUTES}
        given = {ours: values[name] for ours, name in theirs.items() if name in values}
        if isinstance(loss := given.get("loss"), int):
            given["loss"] = float(loss)
        return attributes(where, given)

    def _graph(self, where: str) -> nx.Graph[Any]:
        try:
            with opened(Path(self.file)) as file:
                if Path(self.file).stat().st_size > _MOST_BYTES:
                    raise UserError(f"{self.file}: expected a file of at most {_MOST_BYTES} bytes")
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    graph: nx.Graph[Any] = nx.read_graphml(file)
                    return graph
        except UserError as error:
            raise UserError(f"topology.file: {error}") from None
        except (ParseError, nx.NetworkXError, ValueError, KeyError, TypeError, AttributeError) as error:
            reasons = str(error).splitlines() or [type(error).__name__]
            raise UserError(f"{where}: not a GraphML file: {reasons[0]:.120}") from None
