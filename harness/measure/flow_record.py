"""What became of one flow, in any world: its sender and its receiver tell, the record keeps it."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from harness.workloads import Flow
    from host_agents.messages import Message, QpStats

COUNTS = ("packets_sent", "retransmitted", "timeouts", "naks", "cnps", "marked")
# Of the table `flows`, in order; not every run has all of them.
COLUMNS = (
    *("flow", "piece", "source", "destination", "group", "role", "qp", "pieces", "size_bytes"),
    *("start_ns", "first_sent_ns", "delivered_ns", "completed_ns", "fct_ns", "ideal_fct_ns", "slowdown"),
    *COUNTS,
)
COUNTS_PREFIX = "stats."  # of a further column that is a count of the flow's queue pair


def column_of(attribute: str) -> str:
    """The further column that an attribute of a reaction point, or a count, is put into."""
    return attribute.rpartition(".")[2]


@dataclass(frozen=True, slots=True)
class Sent:
    """What a sender knows of a message: done, or how far it got (completed_ns -1). Counts are of its queue pair."""

    size_bytes: int
    first_sent_ns: int
    completed_ns: int
    packets_sent: int
    retransmitted: int
    timeouts: int
    naks: int
    cnps: int
    columns: tuple[float, ...] = ()  # what the scenario asked for; NaN: no value

    @classmethod
    def of(cls, message: Message, columns: tuple[float, ...] = ()) -> Sent:
        stats = message.qp.stats
        return cls(
            size_bytes=message.size_bytes,
            first_sent_ns=message.first_sent_ns,
            completed_ns=message.completed_ns,
            packets_sent=stats.packets_sent,
            retransmitted=stats.packets_retransmitted,
            timeouts=stats.timeouts,
            naks=stats.naks_received,
            cnps=stats.cnps_received,
            columns=columns,
        )

    @classmethod
    def joined(cls, parts: Collection[Sent]) -> Sent:
        """Of a flow of several senders, each of which sends it all: from the first to the last of them."""
        if len(parts) == 1:
            return next(iter(parts))
        begun = [part.first_sent_ns for part in parts if part.first_sent_ns >= 0]
        return cls(
            size_bytes=max(part.size_bytes for part in parts),
            first_sent_ns=min(begun, default=-1),
            completed_ns=-1 if any(part.completed_ns < 0 for part in parts) else max(p.completed_ns for p in parts),
            packets_sent=sum(part.packets_sent for part in parts),
            retransmitted=sum(part.retransmitted for part in parts),
            timeouts=sum(part.timeouts for part in parts),
            naks=sum(part.naks for part in parts),
            cnps=sum(part.cnps for part in parts),
            columns=next(iter(parts)).columns,
        )


class Received(NamedTuple):
    """What a receiver has counted of a queue pair's packets; added up over several receivers."""

    packets: int = 0
    marked: int = 0
    links: int = 0  # that all of them have crossed
    max_latency_ns: int = -1  # -1: not measured, or none arrived

    @classmethod
    def of(cls, stats: QpStats) -> Received:
        return cls(stats.packets_received, stats.marked_received, stats.links_crossed, stats.max_latency_ns)

    @classmethod
    def joined(cls, parts: Iterable[Received]) -> Received:
        packets, marked, links, latencies_ns = zip(*[cls(), *parts], strict=True)
        return cls(sum(packets), sum(marked), sum(links), max(latencies_ns))


NOTHING_RECEIVED = Received()


@dataclass(slots=True)
class FlowRecord:
    """One flow. Times are ns, -1: never. Counts are of its queue pairs when it was done, or at the end of the run."""

    flow: Flow
    qp: int
    first_sent_ns: int = -1
    delivered_ns: int = -1  # every receiver has the last byte
    completed_ns: int = -1  # every sender has the last acknowledgement
    packets_sent: int = 0
    retransmitted: int = 0
    timeouts: int = 0
    naks: int = 0
    cnps: int = 0
    marked: int = 0  # packets that arrived with a mark
    columns: tuple[float, ...] = ()
    received: Received = NOTHING_RECEIVED  # of its queue pair, at the end of the run
    delivered_wire_bytes: int = 0  # on a receiver's link, framing and retransmissions included; of several the mean

    def note_sent(self, sent: Sent) -> None:
        """The sender is done with it, or the run is over."""
        self.flow.size_bytes = sent.size_bytes  # less than was asked for if it was stopped
        self.first_sent_ns = sent.first_sent_ns
        self.completed_ns = sent.completed_ns
        self.packets_sent = sent.packets_sent
        self.retransmitted = sent.retransmitted
        self.timeouts = sent.timeouts
        self.naks = sent.naks
        self.cnps = sent.cnps
        self.columns = sent.columns

    def note_delivered(self, time_ns: int, marked: int) -> None:
        """The receiver has all of it."""
        self.delivered_ns = time_ns
        self.marked = marked

    def note_end(self, received: Received, delivered_wire_bytes: int) -> None:
        """The run is over: what the receivers have counted on the queue pair."""
        self.received = received
        self.delivered_wire_bytes = delivered_wire_bytes
        if self.delivered_ns < 0:
            self.marked = received.marked
