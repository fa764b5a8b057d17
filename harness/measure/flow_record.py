"""Record of one flow in any world, filled in by its senders and receivers."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from harness.columns.column import Column, Joining, Receiver, Sender, filled_by

if TYPE_CHECKING:
    from harness.workloads import Flow

Values = Mapping[str, float]  # value by column
Counts = Mapping[str, int]  # counts of a receiver's queue pair, by name


class FlowColumns:
    """Columns of a run's flows by their source, and their initial values."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self.of_senders = [column for column, _ in filled_by(Sender, columns)]
        receivers = filled_by(Receiver, columns)
        self.when_delivered = [(column, source) for column, source in receivers if source.when_delivered]
        self.at_the_end = [(column, source) for column, source in receivers if not source.when_delivered]
        self.unknown = unknown(columns)


@dataclass(slots=True)
class Sent:
    """State of a message at its sender.

    `completed_ns` is -1 for an incomplete message; then `size_bytes` is the progress. `columns` has
    the values of the flow's columns.
    """

    size_bytes: int
    first_sent_ns: int
    completed_ns: int
    columns: Values

    @classmethod
    def joined(cls, parts: Collection[Sent], columns: FlowColumns) -> Sent:
        """Return the state of a flow with several senders, each of which sends all of it.

        It lasts from the first sender's start to the last one's end.
        """
        if len(parts) == 1:
            return next(iter(parts))
        begun = [part.first_sent_ns for part in parts if part.first_sent_ns >= 0]
        return cls(
            size_bytes=max(part.size_bytes for part in parts),
            first_sent_ns=min(begun, default=-1),
            completed_ns=-1 if any(part.completed_ns < 0 for part in parts) else max(p.completed_ns for p in parts),
            columns={
                column.name: _joined(column, [part.columns[column.name] for part in parts])
                for column in columns.of_senders
            },
        )


def _joined(column: Column, values: Sequence[float]) -> float:
    if column.parts is Joining.SUM:
        return sum(values)
    return max(values) if column.parts is Joining.MAX else values[0]


def received(source: Receiver, column: Column, parts: Sequence[Counts]) -> float:
    """Return the value of a column that receivers fill, from the counts of each receiver."""
    if not parts:
        return _unknown(column)
    join = max if column.parts is Joining.MAX else sum
    count = join([part[source.count] for part in parts])
    if source.over is None:
        return count
    over = sum([part[source.over] for part in parts])
    return count / over if over else math.nan


def _unknown(column: Column) -> float:
    """Return the value of a column for which no value was reported."""
    if column.type == "float64":
        return math.nan
    return -1 if column.parts is Joining.MAX else 0


def unknown(columns: Sequence[Column]) -> dict[str, float]:
    """Return the columns that senders and receivers fill, with their values before any report."""
    return {column.name: _unknown(column) for column, _ in (*filled_by(Sender, columns), *filled_by(Receiver, columns))}


@dataclass(slots=True)
class FlowRecord:
    """Record of one flow.

    Times are in ns; -1 means never. The columns have the values of the flow's queue pairs when the
    flow was done, or at the end of the run.
    """

    flow: Flow
    qp: int
    first_sent_ns: int = -1
    delivered_ns: int = -1  # time at which every receiver has the last byte
    completed_ns: int = -1  # time at which every sender has the last acknowledgement
    columns: dict[str, float] = field(default_factory=dict)  # columns that senders and receivers fill, by name
    # Bytes on a receiver's link, including framing and retransmissions; the mean over receivers.
    delivered_wire_bytes: int = 0
    place: int = -1  # number of the flow among those of its connection, in the order of their starts

    def note_sent(self, sent: Sent) -> None:
        """Record the sender's state when the flow is done or the run is over."""
        self.flow.size_bytes = sent.size_bytes  # less than the requested size if it was stopped
        self.first_sent_ns = sent.first_sent_ns
        self.completed_ns = sent.completed_ns
        self.columns.update(sent.columns)

    def note_delivered(self, time_ns: int, counts: Sequence[Counts], columns: FlowColumns) -> None:
        """Record that every receiver has all of the flow.

        `counts` are the receivers' counters at `time_ns`. They are empty if another worker has the
        receiver (`harness.worlds.reports`).
        """
        self.delivered_ns = time_ns
        if counts[0]:
            for column, source in columns.when_delivered:
                self.columns[column.name] = received(source, column, counts)

    def note_end(self, counts: Sequence[Counts], delivered_wire_bytes: int, columns: FlowColumns) -> None:
        """Record the receivers' counts of the queue pair at the end of the run."""
        self.delivered_wire_bytes = delivered_wire_bytes
        for column, source in columns.at_the_end:
            self.columns[column.name] = received(source, column, counts)
        if self.delivered_ns < 0:
            for column, source in columns.when_delivered:
                self.columns[column.name] = received(source, column, counts)
