"""Declaration of a table column, and of its total in the summary, as data that can be pickled."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar


@dataclass(frozen=True)
class Sender:
    """Value read at a flow's sender, when the flow is acknowledged or the run ends."""

    attribute: str  # attribute of the queue pair, such as `stats.timeouts`


@dataclass(frozen=True)
class Receiver:
    """Count of a queue pair, read at a flow's receivers at the end of the run."""

    count: str  # an attribute of `host_agents.messages.QpStats`
    over: str | None = None  # another count of the queue pair, which divides this one
    when_delivered: bool = False  # a delivered flow's count is read at its delivery instead

    @property
    def counts(self) -> tuple[str, ...]:
        """Names of the counts that receivers have to report."""
        return (self.count,) if self.over is None else (self.count, self.over)


@dataclass(frozen=True)
class Session:
    """Value that the run's session has for a flow."""

    attribute: str  # attribute of `harness.measure.flow_record.FlowRecord`, such as `flow.number`


@dataclass(frozen=True)
class Sampled:
    """Value of a queue pair that is sending, read at the end of each interval."""

    attribute: str  # attribute of `host_agents.qp.QueuePair`, such as `stats.timeouts`
    method: bool = False  # the attribute is a method, which is called
    grows: bool = False  # the table has the value's increase in the interval


@dataclass(frozen=True)
class PortCounter:
    """Count at each port of switches and hosts, from `Fabric.link_counters`."""

    name: str
    grows: bool = True  # the table has the count's increase in the interval


@dataclass(frozen=True)
class NicCounter:
    """Count of a NIC at the end of the run."""

    attribute: str  # attribute of `host_agents.messages.NicStats`; counts by class are added up


@dataclass(frozen=True)
class ManagerCounter:
    """Value of a switch's traffic manager, from `Fabric.port_stats` and `queue_stats`."""

    in_mininet: bool = True  # switch processes in Mininet report it, too


@dataclass(frozen=True)
class HostRecord:
    """Value that hosts record for an operation of a collective."""


@dataclass(frozen=True)
class Place:
    """Name or property of the place where a value was read."""


@dataclass(frozen=True)
class Computed:
    """Value computed from other columns, the topology or counters when the table is written."""


Source = (
    Sender | Receiver | Session | Sampled | PortCounter | NicCounter | ManagerCounter | HostRecord | Place | Computed
)
_Source = TypeVar("_Source", bound=Source)
COMPUTED = Computed()
PLACE = Place()


class Joining(Enum):
    """Aggregation of the values of several queue pairs or several receivers."""

    FIRST = "first"
    SUM = "sum"
    MAX = "max"
    MEAN_OVER_BYTES = "mean over the parts' bytes"
    COMPUTED = "computed"  # computed from the aggregated columns


@dataclass(frozen=True)
class Row:
    """Row of the tables in reports: its name and its meaning."""

    words: str
    meaning: str


@dataclass(frozen=True)
class Total:
    """Sum of a count over all queue pairs, in `summary.json` and `p4cc.results`."""

    name: str
    meaning: str
    swept: bool = True  # whether the tables of sweeps have it
    row: Row | None = None


@dataclass(frozen=True)
class Column:
    """Column of a table.

    `unit` is "" for names and for numbers without a unit. `type` is numpy's, or None for text.
    """

    name: str
    unit: str
    meaning: str
    source: Source = COMPUTED
    type: str | None = "int64"
    parts: Joining = Joining.COMPUTED
    asked: bool = False  # whether only those tables have it whose scenario asks for it
    total: Total | None = None
    replayed: str = ""  # label of a flow's value on the page of a replay; "": the page does not show it


@dataclass(frozen=True)
class Table:
    """Columns of a table in their order."""

    name: str
    columns: tuple[Column, ...]
    always: bool = False  # every run has the table

    @property
    def names(self) -> tuple[str, ...]:
        """The columns' names."""
        return tuple(column.name for column in self.columns)

    @property
    def places(self) -> tuple[Column, ...]:
        """The columns that name the place where a value was read."""
        return tuple(column for column, _ in filled_by(Place, self.columns))


def filled_by(kind: type[_Source], columns: Iterable[Column]) -> list[tuple[Column, _Source]]:
    """Return the columns with this kind of source, each with its source."""
    return [(column, column.source) for column in columns if isinstance(column.source, kind)]
