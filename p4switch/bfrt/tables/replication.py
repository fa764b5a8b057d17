"""Multicast groups and their nodes, pruned ports, and the port for copies to the CPU.

Pruned ports and the port for copies to the CPU are states of the packet path. Groups are trees in
`ReplicationStore.trees`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from p4switch.bfrt.attributes import Attribute, Client
from p4switch.bfrt.messages import Message, bfruntime_pb2
from p4switch.bfrt.tables.base import TABLE_KINDS, Table
from p4switch.bfrt.tables.entities import in_turn
from p4switch.bfrt.tables.fixed import EVERY, MAX_PORT, FixedTable, PathTable
from p4switch.p4runtime.errors import already_exists, invalid, not_found
from p4switch.p4runtime.messages import p4runtime_pb2
from p4switch.p4runtime.trees import Lag, Node, Tree

if TYPE_CHECKING:
    from p4switch.p4runtime.device import State
    from p4switch.p4runtime.profiles import Undo

_Update = bfruntime_pb2.Update
_REMOVES = bfruntime_pb2.TableModIncFlag.Type.Value("MOD_INC_DELETE")
_MAX_RID = (1 << 16) - 1
_T = TypeVar("_T")


@TABLE_KINDS.register("PrePrune")
class PruneTable(PathTable):
    """Ports that packets with a level-2 exclusion id do not reach. Every id has an entry, which may be empty."""

    state = "$prune"

    def _indices(self, state: State) -> list[int]:
        return [index for index in range(self._size(state)) if self._cell(index, state)["ports"]]

    def write_entry(self, kind: int, entry: Message, state: State) -> Undo:
        """Set the ports of an id."""
        index = self._index(entry)
        if kind == _Update.DELETE:
            return self._remove(index, state)
        ports = self._list(self._names(entry.data), "DEV_PORT", ())
        return self._store(index, {"ports": sum(1 << port for port in set(_ports(self.name, ports)))}, state)

    def find(self, entry: Message, state: State) -> list[Message]:
        """Return the requested id, or all ids."""
        if entry.WhichOneof("value") == "key":
            return [self._found(self._index(entry), state)]
        if entry.is_default_entry:
            return super().find(entry, state)
        return [self._found(index, state) for index in range(int(self._info["size"]))]

    def _found(self, index: int, state: State) -> Message:
        ports = self._cell(index, state)["ports"]
        return self._entry_of(index, DEV_PORT=[port for port in range(ports.bit_length()) if ports >> port & 1])


@TABLE_KINDS.register("PrePort")
class CpuPortTable(PathTable):
    """Settings of ports for groups: backup ports, ports without copies, and the port for copies to the CPU."""

    state = "$device"
    _PORTS = "$port"

    def _cpu_ports(self, state: State) -> list[int]:
        device = self._cell(0, state)
        return [device["cpu_port"]] if device["cpu_enabled"] else []

    def _port(self, index: int, state: State) -> dict[str, int]:
        return state.path.members(self._PORTS, index)

    def _indices(self, state: State) -> list[int]:
        size = min(state.path.find(self._PORTS)[1].size, int(self._info["size"]))
        set_up = [index for index in range(size) if any(map(self._port(index, state).get, ("backup", "stopped")))]
        return sorted({*self._cpu_ports(state), *set_up})

    def write_entry(self, kind: int, entry: Message, state: State) -> Undo:
        """Set the given fields of a port. A port without a backup port is its own backup."""
        (port,) = _ports(self.name, [self._index(entry)])
        if kind == _Update.DELETE:
            return self._remove(port, state)
        given = self._names(entry.data)
        cell = self._port(port, state)
        (backup,) = _ports(self.name, [self._value(given, "MULTICAST_BACKUP_PORT", (cell["backup"] or port + 1) - 1)])
        cell["backup"] = 0 if backup == port else backup + 1
        cell["stopped"] = int(not self._value(given, "MULTICAST_FORWARD_STATE", not cell["stopped"]))
        if self._value(given, "MULTICAST_CLEAR_FAST_FAILOVER", 0):
            cell["failed"] = 0
        is_cpu = self._value(given, "COPY_TO_CPU_PORT_ENABLE", int(port in self._cpu_ports(state)))
        return in_turn((self._set_port(port, cell, state), self._set_cpu(port, is_cpu, state)))

    def _set_port(self, port: int, cell: Mapping[str, int], state: State) -> Undo:
        entity = p4runtime_pb2.Entity(extern_entry=state.path.entry(self._PORTS, port, cell))
        return state.write(p4runtime_pb2.Update(type=p4runtime_pb2.Update.MODIFY, entity=entity))

    def _set_cpu(self, port: int, enabled: int, state: State) -> Undo:
        """Make a port the CPU port, or a normal port again. Other members of the cell keep their values."""
        if not enabled and port not in self._cpu_ports(state):
            return lambda: None
        return self._store(0, {**self._cell(0, state), "cpu_port": port * enabled, "cpu_enabled": enabled}, state)

    def _remove(self, index: int, state: State) -> Undo:
        cell = {**self._port(index, state), "backup": 0, "stopped": 0}
        return in_turn((self._set_port(index, cell, state), self._set_cpu(index, 0, state)))

    def find(self, entry: Message, state: State) -> list[Message]:
        """Return the requested port, or the CPU port."""
        if entry.WhichOneof("value") == "key":
            return [self._found(self._index(entry), state)]
        return super().find(entry, state)

    def _found(self, index: int, state: State) -> Message:
        cell = self._port(index, state)
        return self._entry_of(
            index, MULTICAST_BACKUP_PORT=(cell["backup"] or index + 1) - 1,
            MULTICAST_FORWARD_STATE=int(not cell["stopped"]), MULTICAST_CLEAR_FAST_FAILOVER=0,
            COPY_TO_CPU_PORT_ENABLE=int(index in self._cpu_ports(state)),
        )  # fmt: skip


def _ports(table: str, ports: Iterable[int]) -> list[int]:
    numbers = list(ports)
    for port in numbers:
        if port > MAX_PORT:
            invalid(f"{table}: port {port}; expected at most {MAX_PORT}")
    return numbers


class TreeTable(FixedTable):
    """Base of the tables of groups, nodes, ECMPs and LAGs, each of which is a dictionary of the trees."""

    part: ClassVar[str]
    """Name of the dictionary."""

    def _there(self, state: State) -> dict[int, Any]:
        parts: dict[int, Any] = getattr(state.replication.trees, self.part)
        return parts

    def _indices(self, state: State) -> list[int]:
        return sorted(self._there(state))

    def write_entry(self, kind: int, entry: Message, state: State) -> Undo:
        """Write an entry. Fields that are not given keep their value; in a new entry they are empty."""
        index, there = self._index(entry), self._there(state)
        self._check_exists(kind, index in there)
        if kind == _Update.DELETE:
            return self._remove(index, state)
        part = self._made(there.get(index), self._names(entry.data))
        if kind == _Update.MODIFY_INC:
            removes = entry.table_flags.mod_del or entry.table_mod_inc_flag.type == _REMOVES
            part = self._changed(there[index], part, removes)
        return self._set(state)(index, part)

    def _remove(self, index: int, state: State) -> Undo:
        return self._set(state)(index, None)

    @abstractmethod
    def _set(self, state: State) -> Callable[[int, Any], Undo]:
        """Return a function that stores an entry by its index, or removes the entry if it is given None."""

    @abstractmethod
    def _made(self, old: Any, given: Mapping[str, Message]) -> Any:
        """Return an entry with the given fields; its other fields are those of the old entry."""

    def _changed(self, old: Any, given: Any, removes: bool) -> Any:
        """Return the old entry with the links of the given entry added or removed."""
        raise NotImplementedError

    def _links(self, old: tuple[_T, ...], given: tuple[_T, ...], removes: bool, same: Callable[[_T], int]) -> Any:
        if not removes:
            return (*old, *given)
        gone = {same(link) for link in given}
        missing = gone - {same(link) for link in old}
        if missing:
            not_found(f"{self.name}: {min(missing)} is not in the entry")
        return tuple(link for link in old if same(link) not in gone)


class ReplicationConfig(Attribute):
    """Settings of all groups: the replication id whose packets are pruned at every node, and backup ports.

    Settings of the replication engine's time sharing are stored and returned, but have no effect,
    because replication takes no time.
    """

    kind = "pre_device_config"
    _STATE = "$device"
    _FLAGS: ClassVar[Mapping[str, str]] = {"pre_port_protection": "protects", "pre_fast_failover": "fails_over"}

    def __init__(self, table: Table) -> None:
        super().__init__(table)
        self._kept = bfruntime_pb2.PreDeviceConfig()

    def write(self, given: Message, client: Client, state: State) -> Undo:
        """Store the given settings."""
        rid = given.pre_global_rid.global_rid
        if rid > _MAX_RID:
            invalid(f"{self._table.name}: pre_global_rid: {rid}; expected at most {_MAX_RID}")
        members = state.path.members(self._STATE, 0)
        if given.HasField("pre_global_rid"):
            members["global_rid"] = rid
        for name, member in self._FLAGS.items():
            if given.HasField(name):
                members[member] = int(getattr(given, name).enable)
        entity = p4runtime_pb2.Entity(extern_entry=state.path.entry(self._STATE, 0, members))
        undo = state.write(p4runtime_pb2.Update(type=p4runtime_pb2.Update.MODIFY, entity=entity))
        old, self._kept = self._kept, bfruntime_pb2.PreDeviceConfig()
        self._kept.CopyFrom(old)
        self._kept.MergeFrom(given)

        def undo_all() -> None:
            self._kept = old
            undo()

        return undo_all

    def read(self, into: Message) -> None:
        """Put the stored settings into a message."""
        into.CopyFrom(self._kept)


@TABLE_KINDS.register("PreMgid")
class GroupTable(TreeTable):
    """Multicast groups. A group consists of nodes and ECMPs, each of which may have an exclusion id."""

    part = "trees"
    takes = EVERY | {_Update.MODIFY_INC}
    offers: ClassVar[Mapping[str, type[Attribute]]] = {"pre_device_config": ReplicationConfig}

    def write_entry(self, kind: int, entry: Message, state: State) -> Undo:
        """Write a group; MODIFY_INC adds or removes nodes and ECMPs."""
        if state.replication.has_group(index := self._index(entry)):
            already_exists(f"{self.name}: group {index} is P4Runtime's")
        return super().write_entry(kind, entry, state)

    def _set(self, state: State) -> Callable[[int, Any], Undo]:
        return state.replication.trees.set_tree

    def _made(self, old: Tree | None, given: Mapping[str, Message]) -> Tree:
        before = old or Tree()
        return Tree(
            self._given_links(given, "MULTICAST_NODE", before.nodes),
            self._given_links(given, "MULTICAST_ECMP", before.ecmps),
        )

    def _given_links(
        self, given: Mapping[str, Message], what: str, old: tuple[tuple[int, int | None], ...]
    ) -> tuple[tuple[int, int | None], ...]:
        names = f"{what}_ID", f"{what}_L1_XID_VALID", f"{what}_L1_XID"
        if not any(name in given for name in names):
            return old
        ids, valid, xids = (self._list(given, name, ()) for name in names)
        if not len(ids) == len(valid) == len(xids):
            counts = f"{len(ids)}, {len(valid)} and {len(xids)}"
            invalid(f"{self.name}: {counts} in the lists of {what.lower()}s; expected as many in each")
        return tuple((i, xid if has else None) for i, has, xid in zip(ids, valid, xids, strict=True))

    def _changed(self, old: Tree, given: Tree, removes: bool) -> Tree:
        nodes = () if given.nodes is old.nodes else given.nodes
        ecmps = () if given.ecmps is old.ecmps else given.ecmps
        return Tree(
            self._links(old.nodes, nodes, removes, lambda link: link[0]),
            self._links(old.ecmps, ecmps, removes, lambda link: link[0]),
        )

    def _found(self, index: int, state: State) -> Message:
        tree, fields = self._there(state)[index], {}
        for what, links in (("MULTICAST_NODE", tree.nodes), ("MULTICAST_ECMP", tree.ecmps)):
            fields[f"{what}_ID"] = [ident for ident, _ in links]
            fields[f"{what}_L1_XID_VALID"] = [int(xid is not None) for _, xid in links]
            fields[f"{what}_L1_XID"] = [xid or 0 for _, xid in links]
        return self._entry_of(index, **fields)


@TABLE_KINDS.register("PreNode")
class NodeTable(TreeTable):
    """Nodes: a replication id, ports and LAGs."""

    part = "nodes"

    def _set(self, state: State) -> Callable[[int, Any], Undo]:
        return state.replication.trees.set_node

    def _made(self, old: Node | None, given: Mapping[str, Message]) -> Node:
        before = old or Node(0, ())
        ports = _ports(self.name, self._list(given, "DEV_PORT", before.ports))
        lags = self._list(given, "MULTICAST_LAG_ID", before.lags)
        return Node(self._value(given, "MULTICAST_RID", before.rid), tuple(dict.fromkeys(ports)), lags)

    def _found(self, index: int, state: State) -> Message:
        node = self._there(state)[index]
        return self._entry_of(index, MULTICAST_RID=node.rid, MULTICAST_LAG_ID=node.lags, DEV_PORT=node.ports)


@TABLE_KINDS.register("PreEcmp")
class EcmpTable(TreeTable):
    """ECMPs: sets of nodes from which the level-1 hash chooses one."""

    part = "ecmps"
    takes = EVERY | {_Update.MODIFY_INC}

    def _set(self, state: State) -> Callable[[int, Any], Undo]:
        return state.replication.trees.set_ecmp

    def _made(self, old: tuple[int, ...] | None, given: Mapping[str, Message]) -> tuple[int, ...]:
        return self._list(given, "MULTICAST_NODE_ID", old or ())

    def _changed(self, old: tuple[int, ...], given: tuple[int, ...], removes: bool) -> tuple[int, ...]:
        nodes: tuple[int, ...] = self._links(old, given, removes, int)
        return nodes

    def _found(self, index: int, state: State) -> Message:
        return self._entry_of(index, MULTICAST_NODE_ID=self._there(state)[index])


@TABLE_KINDS.register("PreLag")
class LagTable(TreeTable):
    """LAGs: sets of ports from which the level-2 hash chooses one. Ports may belong to another device."""

    part = "lags"
    _MOST_REMOTE = 255

    def _check_exists(self, kind: int, there: bool) -> None:
        """Refuse to delete a missing entry. Adding and changing are the same."""
        if kind == _Update.DELETE:
            super()._check_exists(kind, there)

    def _set(self, state: State) -> Callable[[int, Any], Undo]:
        return state.replication.trees.set_lag

    def _made(self, old: Lag | None, given: Mapping[str, Message]) -> Lag:
        before = old or Lag(())
        left = self._value(given, "MULTICAST_LAG_REMOTE_MSB_COUNT", before.left)
        right = self._value(given, "MULTICAST_LAG_REMOTE_LSB_COUNT", before.right)
        if max(left, right) > self._MOST_REMOTE:
            invalid(f"{self.name}: {max(left, right)} ports of another device; expected at most {self._MOST_REMOTE}")
        ports = _ports(self.name, self._list(given, "DEV_PORT", before.ports))
        return Lag(tuple(dict.fromkeys(ports)), left, right)

    def _found(self, index: int, state: State) -> Message:
        lag = self._there(state)[index]
        return self._entry_of(
            index, DEV_PORT=lag.ports, MULTICAST_LAG_REMOTE_MSB_COUNT=lag.left, MULTICAST_LAG_REMOTE_LSB_COUNT=lag.right
        )
