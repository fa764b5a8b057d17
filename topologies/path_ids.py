"""Ids of links whose XOR over a path distinguishes the shortest paths between two ends.

Telemetry has 12 bits for a path's id (`INT_SHIM`). A switch that sends a packet XORs the id of the
link into it. In layered networks (fat-trees, Clos networks, leaf-spine, also with parallel links)
no two shortest paths between two switches have the same path id. A switch of such a network has a
choice on the way up, or among parallel links on the way down. A shortest path passes each layer at
most once in each direction, and each layer and direction has bits of its own, in which its links
have the number of the choice. So two paths differ in the bits of the place where they part, because
no later link changes these bits.

In other networks ids are drawn at random, and drawn again if two paths have the same path id. If
that fails, if there are too many paths to check, or if routes are by groups, `shared` names two
switches between which paths may have the same id.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from topologies.model import Topology
from topologies.shortest_paths import ShortestPaths, shortest_paths

PATH_ID_BITS = 12
_DRAWS = 64
_MOST_STEPS = 2_000_000  # limit of the checked paths, counted switch by switch

LinkIds = Mapping[str, Mapping[int, int]]  # by switch and egress port


class PathIds(NamedTuple):
    """Ids of a topology's links, and two switches between which paths may have the same id."""

    links: LinkIds
    shared: tuple[str, str] | None


@lru_cache(maxsize=8)
def path_ids(topology: Topology) -> PathIds:
    """Return ids of the links between switches by switch and egress port; links to hosts have none."""
    paths = shortest_paths(topology)
    choices = _choices(topology, paths)
    layered = _layered(topology, paths, choices)
    if layered is not None and not topology.route_groups:
        return PathIds(layered, None)
    for draw in range(_DRAWS):
        links = {
            switch.name: {
                port: drawn_id(switch.device_id, port, draw) for port in choices[switch.name]
            }
            for switch in topology.switches
        }
        shared = _shared(topology, paths, links)
        if shared is None:
            break
    if topology.route_groups and shared is None and len(paths.destinations) > 1:
        shared = paths.destinations[0], paths.destinations[1]  # only shortest paths are checked
    return PathIds(links, shared)


def drawn_id(device_id: int, port: int, draw: int = 0) -> int:
    """Return 12 bits that look random for a port of a switch (a finalizer of MurmurHash3).

    Parameters
    ----------
    device_id
        Number of the switch.
    port
        Port.
    draw
        Number of the attempt, after earlier ids collided.

    Returns
    -------
    int
        The id.
    """
    mixed = (draw << 40 | port << 24 | device_id) * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF
    mixed = (mixed ^ mixed >> 33) * 0xFF51AFD7ED558CCD & 0xFFFFFFFFFFFFFFFF
    return (mixed ^ mixed >> 33) & (1 << PATH_ID_BITS) - 1


def _choices(topology: Topology, paths: ShortestPaths) -> dict[str, dict[int, int]]:
    """Return a number for each switch's ports to other switches; alternative ports have different numbers."""
    numbers_of: dict[str, dict[int, int]] = {}
    for switch in topology.switches:
        numbers: dict[int, int] = {}
        together: dict[int, set[int]] = {}
        for ports in paths.first_ports(switch.name)[1]:
            for port in ports:
                together.setdefault(port, set()).update(ports)
        for port in sorted(together):
            taken = {numbers[other] for other in together[port] if other in numbers}
            numbers[port] = next(number for number in range(len(taken) + 1) if number not in taken)
        numbers_of[switch.name] = numbers
    return numbers_of


def _layered(
    topology: Topology, paths: ShortestPaths, choices: Mapping[str, Mapping[int, int]]
) -> LinkIds | None:
    """Return the ids of a layered network; None for another network, or if 12 bits are too few."""
    distance = paths.distance.astype(np.int64)
    if (distance < 0).any():
        return None
    height = distance.min(axis=1)
    # By switch and port: the height of the link, and whether it leads up.
    layers: dict[tuple[str, int], tuple[int, bool]] = {}
    bits: dict[tuple[int, bool], int] = {}
    for name, numbers in choices.items():
        row = paths.row[name]
        for port, number in numbers.items():
            other = paths.row[topology.ports[name][port].node]
            up = bool(height[other] > height[row])
            leads_to = distance[other] == distance[row] - 1
            # A path that goes up again after a link down might use a layer twice.
            if abs(int(height[other] - height[row])) != 1 or (
                not up and (leads_to & (distance[row] != height[row])).any()
            ):
                return None
            layer = layers[name, port] = int(height[row]), up
            bits[layer] = max(bits.get(layer, 0), number.bit_length())
    if sum(bits.values()) > PATH_ID_BITS:
        return None
    begins: dict[tuple[int, bool], int] = {}
    begin = 0
    for layer in sorted(bits):
        begins[layer] = begin
        begin += bits[layer]
    return {
        name: {port: number << begins[layers[name, port]] for port, number in numbers.items()}
        for name, numbers in choices.items()
    }


def _shared(topology: Topology, paths: ShortestPaths, links: LinkIds) -> tuple[str, str] | None:
    """Return the ends of paths with the same id, or of paths beyond the limit; None if all ids differ."""
    names = [switch.name for switch in topology.switches]
    steps = 0
    for destination, column in paths.column.items():
        distance = paths.distance[:, column]
        # The ids of the paths from each switch.
        ids_of: dict[int, list[int]] = {paths.row[destination]: [0]}
        for row in np.argsort(distance, kind="stable").tolist():
            if distance[row] <= 0:
                continue
            ids: list[int] = []
            for port, link in links[names[row]].items():
                other = paths.row[topology.ports[names[row]][port].node]
                if distance[other] == distance[row] - 1:
                    ids += [link ^ rest for rest in ids_of[other]]
            steps += len(ids)
            if steps > _MOST_STEPS or (names[row] in paths.column and len(set(ids)) < len(ids)):
                return names[row], destination
            ids_of[row] = ids
    return None
