"""State of the packet path as extern entries of P4Runtime: state of ports, and of mirror sessions.

P4Info does not contain them, because they belong to no object of the program. The field `entry` has four bytes with the
index of a cell in network order, and then the cell as in the switch's memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from google.protobuf.any_pb2 import Any as AnyMessage

from p4switch.architectures.packet_path import PacketPath, State, path_of
from p4switch.engine import objects
from p4switch.p4runtime.errors import invalid, not_found
from p4switch.p4runtime.messages import Message, p4runtime_pb2

if TYPE_CHECKING:
    from p4switch import ir
    from p4switch.engine import Switch

TYPE_ID = 0x81
"""First of the ids that P4Runtime reserves for architectures."""
_TYPE_URL = "p4cc/cell"
_INDEX_BYTES = 4


def cell_entry(path: PacketPath, name: str, index: int, members: Mapping[str, int]) -> Message:
    """Return the entry of a cell with these members. Other members are 0.

    Raises P4RuntimeError (NOT_FOUND) if the packet path has no state with this name.
    """
    number, state = _find(path, name)
    return _entry(number, index, objects.packed(state.kind, members))


class PathStates:
    """States of one switch, by their positions in its packet path. Positions count from 1."""

    def __init__(self, program: ir.Program, switch: Switch) -> None:
        self._path = path_of(program)
        self._states: dict[int, State] = _numbered(self._path)
        self._switch = switch

    def __bool__(self) -> bool:
        """Return whether the packet path has any states."""
        return bool(self._states)

    def find(self, name: str) -> tuple[int, State]:
        """Return the number and the state for a name.

        Raises P4RuntimeError (NOT_FOUND) if the packet path has no state with this name.
        """
        return _find(self._path, name)

    def port_failed(self, port: int) -> None:
        """Store that a port's link has gone down, if the packet path has a state of ports for this."""
        state = next((each for each in self._states.values() if "failed" in dict(each.kind.cell)), None)
        if state is not None and port < state.size:
            cell = self.members(state.name, port)
            cell.update(failed=1, went_down=cell["went_down"] or 1)
            self._switch.object_write(state.name, port, objects.packed(state.kind, cell))

    def entry(self, name: str, index: int, members: Mapping[str, int]) -> Message:
        """Return the result of `cell_entry` for this switch's packet path."""
        return cell_entry(self._path, name, index, members)

    def members(self, name: str, index: int) -> dict[str, int]:
        """Return the members of a cell."""
        _, state = self.find(name)
        if index >= state.size:
            invalid(f"{name}: index {index}: expected less than {state.size}")
        return objects.values(state.kind, self._switch.object_read(name, index))

    def write(self, kind: int, entry: Message) -> Callable[[], None]:
        """Write a cell and return how to undo it.

        Raises P4RuntimeError for an update other than MODIFY, and for an index or a value that does not fit.
        """
        state = self._of(entry)
        if kind != p4runtime_pb2.Update.MODIFY:
            invalid(f"{state.name}: its cells always exist; expected MODIFY")
        index, value = int.from_bytes(entry.entry.value[:_INDEX_BYTES], "big"), entry.entry.value[_INDEX_BYTES:]
        size = len(objects.packed(state.kind, {}))
        if len(entry.entry.value) != _INDEX_BYTES + size:
            invalid(f"{state.name}: expected an index of {_INDEX_BYTES} bytes and a cell of {size}")
        if index >= state.size:
            invalid(f"{state.name}: index {index}: expected less than {state.size}")
        old = self._switch.object_read(state.name, index)
        self._switch.object_write(state.name, index, value)
        return lambda: self._switch.object_write(state.name, index, old)

    def read(self, query: Message) -> Iterator[Message]:
        """Yield the cells that are not 0 of the state that a query names, or of all states."""
        numbers = [query.extern_id] if query.extern_id else list(self._states)
        for number in numbers:
            kind = query.extern_type_id or TYPE_ID
            state = self._of(p4runtime_pb2.ExternEntry(extern_type_id=kind, extern_id=number))
            for index in range(state.size):
                value = self._switch.object_read(state.name, index)
                if any(value):
                    yield _entry(number, index, value)

    def _of(self, entry: Message) -> State:
        state = self._states.get(entry.extern_id)
        if entry.extern_type_id != TYPE_ID or state is None:
            not_found(f"extern entry {entry.extern_type_id:#x}, {entry.extern_id}: there is none")
        return state


def _numbered(path: PacketPath) -> dict[int, State]:
    return dict(enumerate(path.states.values(), start=1))


def _find(path: PacketPath, name: str) -> tuple[int, State]:
    numbered = next(((number, state) for number, state in _numbered(path).items() if state.name == name), None)
    return numbered or not_found(f"the packet path has no state {name!r}")


def _entry(number: int, index: int, value: bytes) -> Message:
    cell = AnyMessage(type_url=_TYPE_URL, value=index.to_bytes(_INDEX_BYTES, "big") + value)
    return p4runtime_pb2.ExternEntry(extern_type_id=TYPE_ID, extern_id=number, entry=cell)
