"""Events of a packet in a pipeline, one class for each kind.

`packet` is the number of the received frame, from 0. `copy` is the number of the copy of that packet; 0 is the packet
itself. `time` is the switch's clock in ticks. `place` is the position in the P4 source; for a clone, digest,
resubmission, recirculation, multicast or drop it is the statement that requested it. Names are those of the source.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from p4switch.ir.places import Place


class Value(NamedTuple):
    """Named value of `width` bits."""

    name: str
    value: int
    width: int

    def __str__(self) -> str:
        return f"{self.name}={hexadecimal(self.value, self.width)}"


class Change(NamedTuple):
    """Field that a statement changed. A value of None means that the header is not valid."""

    name: str
    before: int | None
    now: int | None
    width: int


class KeyValue(NamedTuple):
    """Field of a table's key. `match` is the entry's match on it, as in P4Runtime; "" on a miss."""

    name: str
    value: int
    width: int
    kind: str
    match: str


def hexadecimal(value: int, width: int) -> str:
    """Return a number in hexadecimal with as many digits as its width needs.

    A number with one decimal digit is returned as that digit.
    """
    return f"0x{value:0{max((width + 3) // 4, 1)}x}" if width > 1 else str(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    packet: int
    copy: int
    time: int
    place: Place | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Received(Event):
    port: int
    length: int  # bytes on the wire
    frame: bytes = field(repr=False)  # the bytes that are stored; the others are zeros


@dataclass(frozen=True, slots=True, kw_only=True)
class StateEntered(Event):
    state: str
    parser: str  # name in BMv2 JSON: "parser", "ingress_parser", "egress_parser"


@dataclass(frozen=True, slots=True, kw_only=True)
class Extracted(Event):
    header: str
    fields: tuple[Value, ...]
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition(Event):
    state: str
    to: str  # name of the next state, or "accept" at the end of parsing
    key: tuple[int, ...]  # words of 64 bits; a field's most significant word is first


@dataclass(frozen=True, slots=True, kw_only=True)
class ParserFailed(Event):
    error: str
    parser: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChecksumVerified(Event):
    field: str
    right: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ChecksumUpdated(Event):
    text: str
    field: str
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineEntered(Event):
    pipeline: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineLeft(Event):
    pipeline: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TableApplied(Event):
    """Lookup in a table.

    `entry` is the handle of the entry that matched, or None for a miss. `priority` is set for tables with priorities.
    """

    table: str
    key: tuple[KeyValue, ...]
    entry: int | None
    priority: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionRun(Event):
    table: str
    action: str
    arguments: tuple[Value, ...]
    member: int | None  # member in the table's action profile


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementRun(Event):
    text: str
    operation: str  # BMv2's name
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionTested(Event):
    text: str
    outcome: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterAccessed(Event):
    register: str
    index: int
    value: int
    width: int
    written: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted(Event):
    counter: str
    index: int  # the entry's handle for a direct counter
    packets: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Metered(Event):
    meter: str
    index: int  # the entry's handle for a direct meter
    color: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternTold(Event):
    """Access to a cell of an extern object, with the text of the extern."""

    extern: str
    index: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Logged(Event):
    """Message of the program to a log, or an assertion that failed."""

    text: str
    failed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DigestSent(Event):
    digest: str
    fields: tuple[Value, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Enqueued(Event):
    port: int
    length: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Dequeued(Event):
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Cloned(Event):
    session: int
    made: int  # number of the copy


@dataclass(frozen=True, slots=True, kw_only=True)
class Multicast(Event):
    group: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Resubmitted(Event):
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Recirculated(Event):
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Generated(Event):
    application: int  # application of the packet generator
    made: int  # number of the copy


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueStopped(Event):
    port: int
    queue: int
    stopped: bool  # False if the packet may continue


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped(Event):
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Emitted(Event):
    header: str
    bytes: int
    fields: tuple[tuple[str, int], ...]  # names and widths of the fields in the order on the wire


@dataclass(frozen=True, slots=True, kw_only=True)
class Transmitted(Event):
    port: int
    length: int  # bytes on the wire
    frame: bytes = field(repr=False)  # the bytes that are stored; the others are zeros
