"""Names of the interfaces of a topology's nodes, in Mininet's form."""

from __future__ import annotations

import hashlib
from typing import Any

from topologies import Link, Topology
from topologies.model import HOST_PORT

_NAME_BYTES = 15  # the kernel's limit
_DIGEST_CHARACTERS = 4


def mininet_port(topology: Topology, node: str, port: int) -> int:
    """Return the number that Mininet gives to a port: hosts' count from 0, switches' from 1."""
    return port - HOST_PORT if node in topology.host_by_name else port


def interface_name(topology: Topology, node: str, port: int) -> str:
    """Return the name of a port's interface: `h0-0-2-eth0`, `tor0-0-eth1`.

    If this is too long for the kernel, the node's name is cut, and a few characters of its digest follow.
    """
    tail = f"-eth{mininet_port(topology, node, port)}"
    if len(node) + len(tail) <= _NAME_BYTES:
        return node + tail
    digest = hashlib.blake2s(node.encode()).hexdigest()[:_DIGEST_CHARACTERS]
    return node[: _NAME_BYTES - len(tail) - len(digest)] + digest + tail


def link_names(topology: Topology, link: Link) -> dict[str, Any]:
    """Return the arguments of `Mininet.addLink` for a link's two ends."""
    return {
        "port1": mininet_port(topology, link.a, link.a_port),
        "port2": mininet_port(topology, link.b, link.b_port),
        "intfName1": interface_name(topology, link.a, link.a_port),
        "intfName2": interface_name(topology, link.b, link.b_port),
    }
