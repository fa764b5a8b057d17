"""Networks as data: hosts, switches, links, addresses and the routes that follow from them.

    topology = topologies.build("fat-tree", {"k": 4})

A topology is one file here: a pydantic model of its parameters with a `build` method, registered by name.
"""

from topologies.model import Host, Link, Switch, Topology
from topologies.registry import TopologyParameters, build, names, parameters
from topologies.routing import Route, routes

__all__ = [
    "Host",
    "Link",
    "Route",
    "Switch",
    "Topology",
    "TopologyParameters",
    "build",
    "names",
    "parameters",
    "routes",
]
