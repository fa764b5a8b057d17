"""New routes after links have failed or come back, which the controller writes into switches.

Routes are the shortest paths of the remaining network, and a program's entries follow from them as
at the start. Only differences are written. If hosts cannot be reached any more, no switch has a
route to them. Multicast trees and those of collectives do not change.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from functools import lru_cache

from control_plane.controller import Settings, SwitchSetup
from control_plane.programs import SwitchView
from p4switch.p4runtime.messages import Message, p4runtime_pb2
from topologies import Switch, Topology, routes
from topologies.routing import Route


class Rerouting:
    """Rerouting of one run, with its network and the programs of its switches."""

    def __init__(self, topology: Topology, setups: Mapping[str, SwitchSetup], settings: Settings) -> None:
        """Prepare the rerouting; `setups` are by pipe, which is the switch if it has only one."""
        self._topology = topology
        self._setups = setups
        self._settings = settings

    def updates(self, pipe: str, switch: Switch, before: Collection[int], now: Collection[int]) -> list[Message]:
        """Return the updates that adapt the entries of a switch's pipe to a network without some links.

        Parameters
        ----------
        before, now
            Numbers of the links that the switch's entries avoid, and that they have to avoid.

        Raises
        ------
        UserError
            For routes that the program has no entries for.
        """
        old, new = (routes(_without(self._topology, frozenset(down)), switch.name) for down in (before, now))
        if old is new or list(old) == list(new):
            return []
        setup = self._setups[pipe]
        view = setup.view(self._topology, switch, self._settings)
        return difference(_entries(setup, view, old), _entries(setup, view, new))


def _entries(setup: SwitchSetup, view: SwitchView, routes: Iterable[Route]) -> list[Message]:
    entries = setup.parameters.entries(replace(view, routes=tuple(routes)))
    return [update for entry in entries for update in setup.program.shared_updates(entry)]


def difference(before: Iterable[Message], now: Iterable[Message]) -> list[Message]:
    """Return the P4Runtime updates that turn one set of entries into another.

    Insertions come first, then modifications, then deletions. So a packet in flight always finds a
    route if there is one both before and afterwards.
    """
    old = {_key(update): update for update in before}
    new = {_key(update): update for update in now}
    inserted = [update for key, update in new.items() if key not in old]
    changed = [
        p4runtime_pb2.Update(type=p4runtime_pb2.Update.MODIFY, entity=update.entity)
        for key, update in new.items()
        if key in old and old[key].entity.SerializeToString() != update.entity.SerializeToString()
    ]
    deleted = [
        p4runtime_pb2.Update(type=p4runtime_pb2.Update.DELETE, entity=update.entity)
        for key, update in old.items()
        if key not in new
    ]
    return [*inserted, *changed, *deleted]


def _key(update: Message) -> bytes:
    """Return the key of an update, which identifies what it writes."""
    entity = p4runtime_pb2.Entity()
    entity.CopyFrom(update.entity)
    if entity.HasField("table_entry"):
        entity.table_entry.ClearField("action")
    else:
        entry = entity.packet_replication_engine_entry
        for kind in ("multicast_group_entry", "clone_session_entry"):
            if entry.HasField(kind):
                getattr(entry, kind).ClearField("replicas")
    key: bytes = entity.SerializeToString(deterministic=True)
    return key


@lru_cache(maxsize=8)
def _without(topology: Topology, down: frozenset[int]) -> Topology:
    """Return the network without these links.

    Hosts keep their links, so that their places stay known.
    """
    if not down:
        return topology
    hosts = topology.host_by_name
    links = tuple(
        link
        for number, link in enumerate(topology.links)
        if number not in down or link.a in hosts or link.b in hosts
    )
    return replace(topology, links=links)
