"""Reads and writes of P4Runtime entities, and the limits of the numbers in them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from p4switch.bfrt.messages import Message
from p4switch.p4runtime.errors import P4RuntimeError
from p4switch.p4runtime.messages import p4runtime_pb2

if TYPE_CHECKING:
    from p4switch.p4runtime.device import State
    from p4switch.p4runtime.profiles import Undo

P4Update = p4runtime_pb2.Update
MOST = (1 << 63) - 1
"""Largest rate and count of P4Runtime."""
MOST_MEMBERS = (1 << 31) - 1
"""Largest group size of P4Runtime."""
_FOR_ZERO = (1 << 32) - 1


def to_p4(ident: int) -> int:
    """Return P4Runtime's id of a member or group.

    P4Runtime does not allow the id 0, so its highest id stands for 0.
    """
    return ident or _FOR_ZERO


def from_p4(ident: int) -> int:
    return 0 if ident == _FOR_ZERO else ident


def _one(kind: str, message: Message) -> Message:
    return p4runtime_pb2.Entity(**{kind: message})


def read_p4(state: State, kind: str, message: Message) -> list[Message]:
    """Return the entities that a P4Runtime query selects."""
    entities: list[Message] = []
    state.collect(state.read(_one(kind, message)), entities)
    return [getattr(each, kind) for each in entities]


def write_p4(state: State, how: int, kind: str, *messages: Message) -> Undo:
    """Write all entities in order or none, and return how to undo it."""
    return in_turn(state.write(P4Update(type=how, entity=_one(kind, message))) for message in messages)


def in_turn(steps: Iterable[Undo]) -> Undo:
    """Execute all steps or none, and return how to undo them."""
    undos: list[Undo] = []
    try:
        for undo in steps:
            undos.append(undo)
    except P4RuntimeError:
        _undo_all(undos)
        raise
    return lambda: _undo_all(undos)


def _undo_all(undos: Sequence[Undo]) -> None:
    for undo in reversed(undos):
        undo()
