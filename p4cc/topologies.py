"""Networks by name, and the base classes for the user's own topologies.

    from p4cc.topologies import Builder, Topology, TopologyParameters, register

A topology's file defines a subclass of `TopologyParameters` with a method `build`, and registers it by name.
"""

from __future__ import annotations

from topologies import build
from topologies.model import Builder, Host, Link, Neighbour, Topology
from topologies.model import Switch as TopologySwitch
from topologies.registry import Delay, Rate, TopologyParameters, names, register
from topologies.routing import Route, routes

__all__ = [
    "Builder",
    "Delay",
    "Host",
    "Link",
    "Neighbour",
    "Rate",
    "Route",
    "Topology",
    "TopologyParameters",
    "TopologySwitch",
    "names",
    "register",
    "routes",
    "topology",
]


def topology(name: str, **parameters: object) -> Topology:
    """Return a network by its name: `topology("fat-tree", k=8)`.

    Parameters
    ----------
    name
        Name as in `p4cc list topologies`, or a Python file.
    **parameters
        Parameters of the topology; rates in bit/s, delays in ns.

    Returns
    -------
    Topology
        Network with hosts, switches and links.

    Raises
    ------
    UserError
        For an unknown name or parameter.
    """
    return build(name, parameters)
