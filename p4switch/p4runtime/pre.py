"""The packet replication engine: multicast groups and clone sessions."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from p4switch.p4runtime.errors import already_exists, invalid, not_found, precondition, unimplemented
from p4switch.p4runtime.messages import Message, p4runtime_pb2
from p4switch.p4runtime.ports import Ports
from p4switch.p4runtime.profiles import Undo
from p4switch.p4runtime.trees import MAX_GROUP, Trees

if TYPE_CHECKING:
    from p4switch.engine._engine import Switch

# Instances have 16 bits in metadata, and BMv2's clone sessions have 15 bits.
MAX_INSTANCE = 0xFFFF
MAX_SESSION = 0x7FFF


class ReplicationStore:
    """Multicast groups and clone sessions of one device."""

    def __init__(self, switch: Switch, ports: Ports) -> None:
        self._switch = switch
        self._ports = ports
        self._groups: dict[int, Message] = {}
        self._sessions: dict[int, Message] = {}
        self.trees = Trees(switch.multicast_set)
        """Groups that BfRuntime builds from nodes. P4Runtime does not see them, and they have other ids."""

    def write(self, kind: int, message: Message) -> Undo:
        """Write a group or session and return how to undo it."""
        which = message.WhichOneof("type")
        if which == "multicast_group_entry":
            group = message.multicast_group_entry
            ident, most, name = group.multicast_group_id, MAX_GROUP, "multicast group"
            entries, entry = self._groups, group
        elif which == "clone_session_entry":
            session = message.clone_session_entry
            ident, most, name = session.session_id, MAX_SESSION, "clone session"
            entries, entry = self._sessions, session
        else:
            invalid("packet replication: expected a multicast group or a clone session")
        where = f"{name} {ident}"
        if not 0 < ident <= most:
            invalid(f"{where}: expected an id from 1 to {most}")
        if entries is self._groups and ident in self.trees.trees:
            precondition(f"{where} is a tree of nodes, which P4Runtime cannot change")
        old = entries.get(ident)
        if kind == p4runtime_pb2.Update.INSERT and old is not None:
            already_exists(f"{where} exists")
        if kind != p4runtime_pb2.Update.INSERT and old is None:
            not_found(f"{where} does not exist")
        new = None
        if kind != p4runtime_pb2.Update.DELETE:
            self._check(entry, where)
            new = type(entry)()
            new.CopyFrom(entry)
        self._set(entries, ident, new)
        return lambda: self._set(entries, ident, old)

    def has_group(self, ident: int) -> bool:
        """Return whether P4Runtime has a multicast group of that id."""
        return ident in self._groups

    def _check(self, entry: Message, where: str) -> None:
        seen = set()
        for replica in entry.replicas:
            ports = [self._port(replica, where), *(self._ports.parse(b.port, where) for b in replica.backup_replicas)]
            if len(set(ports)) != len(ports):
                invalid(f"{where}: a replica and its backups share a port")
            instances = [replica.instance, *(b.instance for b in replica.backup_replicas)]
            for pair in zip(ports, instances, strict=True):
                if pair[1] > MAX_INSTANCE:
                    invalid(f"{where}: instance {pair[1]}; expected at most {MAX_INSTANCE}")
                if pair in seen:
                    invalid(f"{where}: port {pair[0]} with instance {pair[1]} is given twice")
                seen.add(pair)
        if hasattr(entry, "session_id"):
            if entry.class_of_service:
                unimplemented(f"{where}: clone sessions have no class of service")
            if entry.packet_length_bytes < 0:
                invalid(f"{where}: packet length {entry.packet_length_bytes}; expected 0 or more")

    def _port(self, replica: Message, where: str) -> int:
        kind = replica.WhichOneof("port_kind")
        if kind is None:
            invalid(f"{where}: a replica has no port")
        return self._ports.parse(getattr(replica, kind), where)

    def _replicas(self, entry: Message) -> Sequence[tuple[int, int]]:
        """Return port and instance of each replica.

        If the replica's port is down, the first backup whose port is up replaces it. If none is up, the
        replica's own port is returned.
        """
        result = []
        for replica in entry.replicas:
            choices = [(self._port(replica, ""), replica.instance)]
            choices += [(self._ports.parse(b.port, ""), b.instance) for b in replica.backup_replicas]
            result.append(next((c for c in choices if self._ports.is_up(c[0])), choices[0]))
        return result

    def _set(self, entries: dict[int, Message], ident: int, entry: Message | None) -> None:
        if entries is self._groups:
            self._switch.multicast_set(ident, None if entry is None else self._replicas(entry))
        elif entry is None:
            self._switch.clone_session_set(ident, None)
        else:
            self._switch.clone_session_set(ident, self._replicas(entry), entry.packet_length_bytes)
        if entry is None:
            entries.pop(ident, None)
        else:
            entries[ident] = entry

    def ports_changed(self) -> None:
        """Write all groups and sessions with backups to the engine again, after ports went up or down."""
        for entries in (self._groups, self._sessions):
            for ident, entry in list(entries.items()):
                if any(replica.backup_replicas for replica in entry.replicas):
                    self._set(entries, ident, entry)

    def read(self, query: Message) -> Iterator[Message]:
        """Yield the groups or sessions that a query selects."""
        which = query.WhichOneof("type")
        if which == "multicast_group_entry":
            ident, entries = query.multicast_group_entry.multicast_group_id, self._groups
        elif which == "clone_session_entry":
            ident, entries = query.clone_session_entry.session_id, self._sessions
        else:
            invalid("packet replication: expected a multicast group or a clone session")
        for entry in [entries[i] for i in (ident,) if i in entries] if ident else entries.values():
            message = p4runtime_pb2.PacketReplicationEngineEntry()
            getattr(message, which).CopyFrom(entry)
            yield message
