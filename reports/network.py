"""Drawing of a network: switches in layers by tier, hosts below them, links by rate.

If there are many hosts, the hosts of a switch are drawn as one mark with their number.
"""

from __future__ import annotations

import io
from collections import Counter, defaultdict

import matplotlib as mpl
import networkx as nx
from matplotlib.figure import Figure

from reports.plots import STYLE, colour, plain
from topologies import Topology

_MOST_HOSTS = 200  # largest number of hosts that are drawn individually
_MOST_NAMES = 120  # largest number of nodes with names
_HOSTS = -1  # layer of hosts


def drawn(topology: Topology, extension: str) -> bytes:
    """Return a drawing of a network, as a file of this kind (svg, pdf, png)."""
    graph, sizes = _graph(topology)
    rates = sorted({values["rate_bps"] for _, _, values in graph.edges(data=True)})
    layers: defaultdict[int, list[str]] = defaultdict(list)
    for name, values in graph.nodes(data=True):
        layers[values["layer"]].append(name)
    widest = max(map(len, layers.values()))
    position = {
        name: ((place + 0.5) / len(names), float(layer))
        for layer, names in layers.items()
        for place, name in enumerate(names)
    }
    with mpl.rc_context(fname=STYLE), mpl.rc_context({"svg.hashsalt": "p4cc"}):
        figure = Figure(figsize=(min(max(6.0, widest * 0.35), 40.0), 5.0), layout="constrained")
        axes = figure.subplots()
        axes.set_axis_off()
        for number, rate in enumerate(rates):
            lines = [(a, b) for a, b, values in graph.edges(data=True) if values["rate_bps"] == rate]
            nx.draw_networkx_edges(graph, position, lines, ax=axes, edge_color=colour(number), width=0.7)
            axes.plot([], [], color=colour(number), label=f"{rate / 1e9:g} Gb/s")
        kinds = {True: "s", False: "o"}
        for switches, shape in kinds.items():
            nodes = [n for layer, names in layers.items() if (layer != _HOSTS) == switches for n in names]
            nx.draw_networkx_nodes(
                graph, position, nodes, ax=axes, node_size=60, node_shape=shape, node_color="#444444"
            )
        names = {name: sizes.get(name, plain(name)) for name in graph}
        if len(graph) > _MOST_NAMES:
            names = {name: text for name, text in names.items() if name in sizes}
        below = {name: (x, y - 0.08) for name, (x, y) in position.items()}
        nx.draw_networkx_labels(graph, below, names, ax=axes, font_size=5, verticalalignment="top")
        figure.legend(loc="outside upper right")
        axes.set_title(plain(f"{topology.name}, {len(topology.hosts):,} hosts, {len(topology.switches):,} switches"))
        buffer = io.BytesIO()
        figure.savefig(buffer, format=extension, metadata={"svg": {"Date": None}}.get(extension))
    return buffer.getvalue()


def _graph(topology: Topology) -> tuple[nx.Graph[str], dict[str, str]]:
    """Return the graph to draw, and the labels of marks that stand for several hosts."""
    together = len(topology.hosts) > _MOST_HOSTS
    graph: nx.Graph[str] = nx.Graph()
    for switch in topology.switches:
        graph.add_node(switch.name, layer=switch.tier)
    on: defaultdict[str, list[str]] = defaultdict(list)
    for host in topology.hosts:
        on[topology.uplink(host).node].append(host.name)
    sizes: dict[str, str] = {}
    for switch_name in [switch.name for switch in topology.switches if switch.name in on]:
        hosts = on[switch_name]
        rates = Counter(topology.uplink(topology.host_by_name[name]).rate_bps for name in hosts)
        marks = [f"{len(hosts)} hosts"] if together else hosts
        for mark in marks:
            node = f"{switch_name} hosts" if together else mark
            if together:
                sizes[node] = mark
            graph.add_node(node, layer=_HOSTS)
            rate = rates.most_common(1)[0][0] if together else topology.ports[mark][1].rate_bps
            graph.add_edge(switch_name, node, rate_bps=rate)
    known = topology.switch_by_name
    for link in topology.links:
        if link.a in known and link.b in known:
            graph.add_edge(link.a, link.b, rate_bps=link.rate_bps)
    return graph, sizes
