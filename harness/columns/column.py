"""The declaration of a column of a table, and of the total that a summary has of it: data that can be pickled."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar


@dataclass(frozen=True)
class Sender:
    """A number at the sender of a flow, when all of the flow is acknowledged, or at the end of the run."""

    attribute: str  # of the queue pair, as `stats.timeouts`


@dataclass(frozen=True)
class Receiver:
    """A count of the queue pair at the receivers of a flow, at the end of the run."""

    count: str  # an attribute of `host_agents.messages.QpStats`
    over: str | None = None  # another count, by which it is divided
    when_delivered: bool = False  # of a flow that is delivered: when it was

    @property
    def counts(self) -> tuple[str, ...]:
        """The counts that receivers have to tell."""
        return (self.count,) if self.over is None else (self.count, self.over)


@dataclass(frozen=True)
class Session:
    """Value that the run's session knows of a flow."""

    attribute: str  # of `harness.measure.flow_record.FlowRecord`, as `flow.number`


@dataclass(frozen=True)
class Sampled:
    """A number of a queue pair that is sending, at the end of each interval."""

    attribute: str  # of `host_agents.qp.QueuePair`, as `stats.timeouts`
    method: bool = False  # it is a method, which is called
    grows: bool = False  # what is recorded is by how much it has grown in the interval


@dataclass(frozen=True)
class PortCounter:
    """A number of each port, switches' and hosts', of `Fabric.link_counters`."""

    name: str
    grows: bool = True  # what is recorded is by how much it has grown in the interval


@dataclass(frozen=True)
class NicCounter:
    """A count of a NIC at the end of the run."""

    attribute: str  # of `host_agents.messages.NicStats`; what there is of each class is added up


@dataclass(frozen=True)
class ManagerCounter:
    """A number of a switch's traffic manager, as `Fabric.port_stats` and `queue_stats` have it."""

    in_mininet: bool = True  # switch processes tell it, too


@dataclass(frozen=True)
class HostRecord:
    """A part of what hosts record of an operation of a collective."""


@dataclass(frozen=True)
class Place:
    """A part of where a value was read, or a property of that place."""


@dataclass(frozen=True)
class Computed:
    """Value computed from other columns, the topology or the network's counters when the table is made."""


Source = (
    Sender | Receiver | Session | Sampled | PortCounter | NicCounter | ManagerCounter | HostRecord | Place | Computed
)
_Source = TypeVar("_Source", bound=Source)
COMPUTED = Computed()
PLACE = Place()


class Joining(Enum):
    """Aggregation of the values of parts, which are several queue pairs or several receivers."""

    FIRST = "first"
    SUM = "sum"
    MAX = "max"
    MEAN_OVER_BYTES = "mean over the parts' bytes"
    COMPUTED = "computed"  # anew


@dataclass(frozen=True)
class Row:
    """A row of reports' tables: its words, and what they mean."""

    words: str
    meaning: str


@dataclass(frozen=True)
class Total:
    """A figure of `summary.json`: the sum of a count over all queue pairs. `p4cc.results` has it, too."""

    name: str
    meaning: str
    swept: bool = True  # whether the tables of sweeps have it
    row: Row | None = None


@dataclass(frozen=True)
class Column:
    """A column of a table: `unit` is "" for names and numbers without one; `type` is numpy's, None: text."""

    name: str
    unit: str
    meaning: str
    source: Source = COMPUTED
    type: str | None = "int64"
    parts: Joining = Joining.COMPUTED
    asked: bool = False  # only tables of scenarios that ask for it have it
    total: Total | None = None
    replayed: str = ""  # the words for it on the page of a replay, of flows; "": it is not there


@dataclass(frozen=True)
class Table:
    """The columns of a table, in order."""

    name: str
    columns: tuple[Column, ...]
    always: bool = False  # every run has it

    @property
    def names(self) -> tuple[str, ...]:
        """The columns' names."""
        return tuple(column.name for column in self.columns)

    @property
    def places(self) -> tuple[Column, ...]:
        """The columns that say where a value was read."""
        return tuple(column for column, _ in filled_by(Place, self.columns))


def filled_by(kind: type[_Source], columns: Iterable[Column]) -> list[tuple[Column, _Source]]:
    """Return the columns with this kind of source, each with its source."""
    return [(column, column.source) for column in columns if isinstance(column.source, kind)]
