"""The packet generator: its applications, its buffer, and its ports."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, ClassVar

from p4switch.architectures.architecture import ARCHITECTURES
from p4switch.architectures.tna import MOST_GENERATED
from p4switch.architectures.tna.state import PktgenBufferState, Trigger
from p4switch.bfrt.fields import Json
from p4switch.bfrt.keys import number, width_of
from p4switch.bfrt.messages import Message, bfruntime_pb2
from p4switch.bfrt.tables.base import TABLE_KINDS, Table
from p4switch.bfrt.tables.data import decode, encode
from p4switch.bfrt.tables.entities import in_turn
from p4switch.bfrt.tables.fixed import PathTable
from p4switch.p4runtime.errors import invalid, unimplemented
from p4switch.p4runtime.messages import p4runtime_pb2

if TYPE_CHECKING:
    from p4switch.p4runtime.device import State
    from p4switch.p4runtime.profiles import Undo

_Update = bfruntime_pb2.Update
_WRITES = frozenset({_Update.INSERT, _Update.MODIFY, _Update.INSERT_OR_MODIFY, _Update.DELETE})


@TABLE_KINDS.register("PktgenAppCfg")
class ApplicationTable(PathTable):
    """Applications of the packet generator. All of them always exist, and the action of an entry is the trigger."""

    state = "$pktgen"
    takes = _WRITES
    _TRIGGERS: ClassVar[Mapping[str, Trigger]] = {
        "trigger_recirc_pattern": Trigger.RECIRCULATION, "trigger_dprsr": Trigger.DEPARSER,
        "trigger_timer_one_shot": Trigger.ONE_SHOT, "trigger_timer_periodic": Trigger.PERIODIC,
        "trigger_port_down": Trigger.PORT_DOWN,
    }  # fmt: skip
    _SAME: ClassVar[Mapping[str, str]] = {
        "timer_nanosec": "timer_ns", "pattern_value": "value", "pattern_mask": "mask", "port_mask_sel": "value",
        "app_enable": "enabled", "pkt_len": "length", "pkt_buffer_offset": "offset", "pipe_local_source_port": "port",
        "assigned_chnl_id": "port", "batch_counter": "batches_made", "pkt_counter": "packets_made",
        "trigger_counter": "triggers",
    }  # fmt: skip
    """Member of the cell that stores a field."""
    _COUNTS: ClassVar[Mapping[str, str]] = {"batch_count_cfg": "batches", "packets_per_batch_cfg": "packets"}
    """Member of the cell for each field whose value is one less than the member."""

    def __init__(self, info: Json, ids: Mapping[tuple[str, str], int]) -> None:
        super().__init__(info, ids)
        self._actions = {action["id"]: action for action in info["action_specs"]}

    def data_ids(self) -> set[int]:
        """Return the ids of all data fields."""
        return {*self._data, *(f["id"] for action in self._actions.values() for f in action["data"])}

    def _indices(self, state: State) -> list[int]:
        return list(range(int(self._info["size"])))

    def write_entry(self, kind: int, entry: Message, state: State) -> Undo:
        """Set the given fields of an application. DELETE disables it and sets all fields to 0."""
        index = self._index(entry)
        if index >= int(self._info["size"]):
            invalid(f"{self.name}: application {index}; expected less than {self._info['size']}")
        if kind == _Update.DELETE:
            return self._remove(index, state)
        action = self._actions.get(entry.data.action_id)
        if action is None and entry.data.action_id:
            invalid(f"{self.name}: no action has the id {entry.data.action_id}")
        cell = self._cell(index, state)
        if not any(cell.values()):
            cell.update(batches=1, packets=1, port=self._default_port())
        if action is not None:
            trigger = self._TRIGGERS.get(action["name"])
            if trigger is None:
                unimplemented(f"{self.name}: {action['name']} is not supported")
            cell.update(trigger=trigger, value=0, mask=0, timer_ns=0, due=0)
        fields = {**self._data, **{f["id"]: f for f in (action["data"] if action else ())}}
        for ident, field in self._given(entry.data, fields).items():
            name, value = fields[ident]["name"], decode(field, fields[ident], self.name)
            if name in self._SAME:
                cell[self._SAME[name]] = value
            elif name in self._COUNTS:
                cell[self._COUNTS[name]] = value + 1
            elif value:
                unimplemented(f"{self.name}: {name} other than 0 is not supported")
        if (packets := cell["batches"] * cell["packets"]) > MOST_GENERATED:
            invalid(f"{self.name}: {packets} packets a trigger, all at once; expected at most {MOST_GENERATED}")
        if cell["trigger"] == Trigger.PORT_DOWN and cell["batches"] > 1:
            invalid(f"{self.name}: {cell['batches']} batches; expected 1, as packets have the port instead of it")
        if cell["enabled"] and cell["trigger"] == Trigger.PERIODIC:
            self._check_rate(packets, cell["timer_ns"], state)
        return self._store(index, cell, state)

    def _check_rate(self, packets: int, timer_ns: int, state: State) -> None:
        """Refuse a timer that generates more than one packet per clock cycle of the pipe."""
        clock_hz = ARCHITECTURES.find(state.pipeline.p4info.pkg_info.arch).clock_hz
        if packets * 10**9 > timer_ns * clock_hz:
            least_ns = -(-packets * 10**9 // clock_hz)
            invalid(
                f"{self.name}: a timer of {timer_ns} ns for {packets} packets; expected at least {least_ns} ns, as the "
                f"pipe takes a packet in each cycle of its {clock_hz / 1e9:.2f} GHz"
            )

    def _default_port(self) -> int:
        """Return the local port at which packets arrive by default.

        On TNA, where clients do not choose the port, this is the first port of the last group.
        """
        named = {field["name"] for field in self._data.values()}
        return 0 if "assigned_chnl_id" in named else 68

    def _found(self, index: int, state: State) -> Message:
        cell, entry = self._cell(index, state), self._entry(index)
        action = next((a for a in self._actions.values() if self._TRIGGERS.get(a["name"]) == cell["trigger"]), None)
        entry.data.action_id = 0 if action is None else action["id"]
        for info in [*(action["data"] if action else ()), *self._data.values()]:
            value = cell[self._SAME[info["name"]]] if info["name"] in self._SAME else 0
            if info["name"] in self._COUNTS:
                value = max(cell[self._COUNTS[info["name"]]] - 1, 0)
            encode(entry.data, info, value)
        return entry

    def _summed(self) -> Collection[int]:
        return {ident for ident, field in self._data.items() if field["name"].endswith("_counter")}


@TABLE_KINDS.register("PktgenPktBufferCfg")
class BufferTable(Table):
    """Bytes of the buffer. A key is a range of bytes, given by its offset and size."""

    takes = _WRITES
    _STATE, _CELL_BYTES = "$pktgen_buffer", PktgenBufferState.BYTES

    def _range(self, entry: Message, state: State) -> range:
        """Return the range of bytes that a key selects. Raises P4RuntimeError (INVALID_ARGUMENT)."""
        infos = {info["id"]: info for info in self._info["key"]}
        if {field.field_id for field in entry.key.fields} != infos.keys():
            invalid(f"{self.name}: expected {' and '.join(info['name'] for info in infos.values())} as the key")
        offset, size = (
            number(next(f.exact.value for f in entry.key.fields if f.field_id == i), width_of(info), self.name)
            for i, info in infos.items()
        )
        end = state.path.find(self._STATE)[1].size * self._CELL_BYTES
        if not size or offset + size > end:
            invalid(f"{self.name}: {size} bytes from {offset} on; expected some of {end}")
        return range(offset, offset + size)

    def _bytes(self, of: range, state: State) -> tuple[range, bytes]:
        """Return the cells that contain these bytes, and all bytes of the cells."""
        cells = range(of.start // self._CELL_BYTES, (of.stop - 1) // self._CELL_BYTES + 1)
        members = (state.path.members(self._STATE, cell)["bytes"] for cell in cells)
        return cells, b"".join(each.to_bytes(self._CELL_BYTES, "big") for each in members)

    def write_entry(self, kind: int, entry: Message, state: State) -> Undo:
        """Write a range of the buffer; DELETE sets it to 0."""
        of = self._range(entry, state)
        (ident,) = self._data
        given = {field.field_id: field.stream for field in entry.data.fields}
        content = bytes(len(of)) if kind == _Update.DELETE else given.get(ident, b"")
        if len(content) != len(of):
            invalid(f"{self.name}: {len(content)} bytes; expected {len(of)}, the size in the key")
        cells, old = self._bytes(of, state)
        at = of.start - cells.start * self._CELL_BYTES
        whole = old[:at] + content + old[at + len(of) :]
        return self._store(cells, whole, state)

    def _store(self, cells: range, whole: bytes, state: State) -> Undo:
        def write(place: int, cell: int) -> Undo:
            part = whole[place * self._CELL_BYTES : (place + 1) * self._CELL_BYTES]
            entry = state.path.entry(self._STATE, cell, {"bytes": int.from_bytes(part, "big")})
            entity = p4runtime_pb2.Entity(extern_entry=entry)
            return state.write(p4runtime_pb2.Update(type=p4runtime_pb2.Update.MODIFY, entity=entity))

        return in_turn(write(place, cell) for place, cell in enumerate(cells))

    def clear(self, state: State) -> Undo:
        """Set all bytes to 0."""
        cells = range(state.path.find(self._STATE)[1].size)
        return self._store(cells, bytes(len(cells) * self._CELL_BYTES), state)

    def find(self, entry: Message, state: State) -> list[Message]:
        """Return the requested range. Raises P4RuntimeError for a query without a key."""
        if entry.WhichOneof("value") != "key":
            invalid(f"{self.name}: expected a key, a range of the buffer")
        of = self._range(entry, state)
        cells, whole = self._bytes(of, state)
        at = of.start - cells.start * self._CELL_BYTES
        found = bfruntime_pb2.TableEntry(table_id=self.id, key=entry.key)
        (ident,) = self._data
        found.data.fields.add(field_id=ident).int_arr_val.val.extend(whole[at : at + len(of)])
        return [found]


@TABLE_KINDS.register("PktgenPortCfg")
class GeneratorPortTable(PathTable):
    """Ports of the generator.

    A port that went down can trigger applications again after `clear_port_down_enable` is written. The
    other fields are stored and returned, but have no effect.
    """

    state = "$port"
    takes = _WRITES

    def __init__(self, info: Json, ids: Mapping[tuple[str, str], int]) -> None:
        super().__init__(info, ids)
        self._written: dict[int, dict[int, int]] = {}

    def forget(self) -> None:
        """Forget what clients have written."""
        super().forget()
        self._written = {}

    def _indices(self, state: State) -> list[int]:
        return sorted(self._written)

    def write_entry(self, kind: int, entry: Message, state: State) -> Undo:
        """Set the given fields of a port."""
        index = self._index(entry)
        if index >= self._size(state):
            invalid(f"{self.name}: port {index}; expected less than {self._size(state)}")
        if kind == _Update.DELETE:
            return self._remove(index, state)
        given = {ident: self._number(f, self._data[ident]) for ident, f in self._given(entry.data, self._data).items()}
        kept = self._keep(index, {**self._written.get(index, dict.fromkeys(self._data, 0)), **given})
        if not any(given[ident] for ident in given if self._data[ident]["name"] == "clear_port_down_enable"):
            return kept
        return in_turn((kept, self._store(index, {**self._cell(index, state), "went_down": 0}, state)))

    def _keep(self, index: int, fields: dict[int, int] | None) -> Undo:
        old = self._written.pop(index, None)
        if fields is not None:
            self._written[index] = fields
        return lambda: None if fields is old else self._keep(index, old)

    def _remove(self, index: int, state: State) -> Undo:
        return self._keep(index, None)

    def _found(self, index: int, state: State) -> Message:
        entry = self._entry(index)
        for ident, value in self._written[index].items():
            self._put(entry.data, ident, value)
        return entry


@TABLE_KINDS.register("PktgenPortMaskCfg")
class PortMaskTable(PathTable):
    """Masks of the ports of a pipe that may trigger applications of T2NA by going down."""

    state = "$pktgen_port_mask"
    takes = _WRITES

    def _indices(self, state: State) -> list[int]:
        return list(range(self._size(state)))

    def write_entry(self, kind: int, entry: Message, state: State) -> Undo:
        """Set a mask; DELETE sets it to 0."""
        index = self._index(entry)
        if index >= self._size(state):
            invalid(f"{self.name}: mask {index}; expected less than {self._size(state)}")
        if kind == _Update.DELETE:
            return self._remove(index, state)
        fields = self._given(entry.data, self._data).items()
        given = {self._data[ident]["name"]: self._number(field, self._data[ident]) for ident, field in fields}
        return self._store(index, {**self._cell(index, state), **given}, state)

    def _found(self, index: int, state: State) -> Message:
        entry = self._entry(index)
        for ident, info in self._data.items():
            self._put(entry.data, ident, self._cell(index, state)[info["name"]])
        return entry
