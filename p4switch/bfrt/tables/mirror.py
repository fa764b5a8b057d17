"""Mirror sessions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from p4switch.bfrt.messages import Message, bfruntime_pb2
from p4switch.bfrt.tables.base import TABLE_KINDS
from p4switch.bfrt.tables.fixed import MAX_PORT, PathTable
from p4switch.p4runtime.errors import invalid, unimplemented

if TYPE_CHECKING:
    from p4switch.p4runtime.device import State
    from p4switch.p4runtime.profiles import Undo

_Update = bfruntime_pb2.Update


@TABLE_KINDS.register("MirrorCfg")
class MirrorTable(PathTable):
    """Mirror sessions, with the destination of their copies. A session exists once it has a direction."""

    state = "$mirror"
    _NORMAL = 2
    _SAME: ClassVar[Mapping[str, str]] = {
        "session_enable": "enabled",
        "ucast_egress_port": "port",
        "ucast_egress_port_valid": "unicast",
        "egress_port_queue": "qid",
        "ingress_cos": "cos",
        "packet_color": "color",
        "level1_mcast_hash": "hash1",
        "level2_mcast_hash": "hash2",
        "mcast_l1_xid": "level1_xid",
        "mcast_l2_xid": "level2_xid",
        "mcast_rid": "rid",
        "copy_to_cpu": "copy_to_cpu",
        "max_pkt_len": "max_bytes",
    }
    """Member of the session's cell that stores a field. Other fields have no such member."""
    _MOST: ClassVar[Mapping[str, int]] = {"port": MAX_PORT, "qid": 127, "cos": 7, "hash1": 8191, "hash2": 8191}

    def _indices(self, state: State) -> list[int]:
        return [index for index in range(self._size(state)) if self._cell(index, state)["direction"]]

    def write_entry(self, kind: int, entry: Message, state: State) -> Undo:
        """Set the fields of a session; fields that are not given keep their value, or are 0 in a new session."""
        index = self._index(entry)
        cell = self._cell(index, state)
        self._check_exists(kind, bool(cell["direction"]))
        if kind == _Update.DELETE:
            return self._remove(index, state)
        if entry.data.action_id != self._NORMAL:
            invalid(f"{self.name}: action {entry.data.action_id}; expected {self._NORMAL}, '$normal'")
        given = self._names(entry.data)
        if "direction" in given:
            cell["direction"] = self._value(given, "direction", 0) + 1
        if not cell["direction"]:
            invalid(f"{self.name}: $direction is missing")
        for name, member in self._SAME.items():
            cell[member] = self._value(given, name, cell[member])
            most = self._MOST.get(member)
            if most is not None and cell[member] > most:
                invalid(f"{self.name}: ${name}: {cell[member]}; expected at most {most}")
        for group in ("group_a", "group_b"):
            number = self._value(given, f"mcast_grp_{group[-1]}", cell[group])
            valid = self._value(given, f"mcast_grp_{group[-1]}_valid", int(bool(cell[group])))
            cell[group] = number if valid else 0
        if self._value(given, "icos_for_copy_to_cpu", 0):
            unimplemented(f"{self.name}: $icos_for_copy_to_cpu is not supported")
        return self._store(index, cell, state)

    def _found(self, index: int, state: State) -> Message:
        cell = self._cell(index, state)
        fields = {name: cell[member] for name, member in self._SAME.items()}
        for letter in "ab":
            fields[f"mcast_grp_{letter}"] = cell[f"group_{letter}"]
            fields[f"mcast_grp_{letter}_valid"] = int(bool(cell[f"group_{letter}"]))
        entry = self._entry_of(index, direction=cell["direction"] - 1, icos_for_copy_to_cpu=0, **fields)
        entry.data.action_id = self._NORMAL
        return entry
