"""Columns of `flows`.

A line in `FLOWS` turns a count of the hosts into a column; `packets` is an example.
"""

from __future__ import annotations

from collections.abc import Iterable

from harness.columns.column import Column, Joining, Receiver, Row, Sender, Session, Table, Total, filled_by

COUNTS_PREFIX = "stats."  # prefix that asks for a count of the flow's queue pair
MAX_LATENCY, MEAN_LINKS, SHORTEST_LINKS, MEAN_WEIGHT = "max_latency_ns", "mean_links", "shortest_links", "mean_weight"


def packets(
    name: str, meaning: str, source: Sender | Receiver, total: Total | None = None, replayed: str = "", unit: str = ""
) -> Column:
    """Return the declaration of a count that is summed over queue pairs or receivers.

    Its unit is `unit` if given, else packets.
    """
    return Column(name, unit or "packets", meaning, source, parts=Joining.SUM, total=total, replayed=replayed)


FLOWS = Table(
    "flows",
    (
        Column(
            "flow", "", "its number, from 0, in the order in which the workload makes flows", Session("flow.number")
        ),
        Column("source", "", "the sender's name; of several the first", type=None, parts=Joining.FIRST),
        Column(
            "destination",
            "",
            "the receiver's name, or the address of a multicast group",
            type=None,
            parts=Joining.FIRST,
        ),
        Column(
            "group",
            "",
            "its group in the scenario or the workload",
            Session("flow.group"),
            type=None,
            parts=Joining.FIRST,
        ),
        Column("role", "", "under an attack: attacker, victim or neither", type=None, parts=Joining.FIRST),
        Column(
            "qp",
            "",
            "number of its queue pair; under an attack that of its first piece",
            Session("qp"),
            parts=Joining.FIRST,
        ),
        Column("pieces", "", "under an attack: how many pieces it is broken into"),
        Column(
            "size_bytes",
            "bytes",
            "payload; for a stopped flow, the bytes that were sent until then",
            Session("flow.size_bytes"),
        ),
        Column("start_ns", "ns", "when the application posted it", Session("flow.start_ns"), parts=Joining.FIRST),
        Column("first_sent_ns", "ns", "when its first byte left the NIC; -1: never", Session("first_sent_ns")),
        Column("delivered_ns", "ns", "when every receiver had its last byte; -1: never", Session("delivered_ns")),
        Column(
            "completed_ns", "ns", "when the sender had the last acknowledgement; -1: never", Session("completed_ns")
        ),
        Column("fct_ns", "ns", "from start_ns to delivered_ns; NaN: not delivered", type="float64"),
        Column(
            "ideal_fct_ns",
            "ns",
            "the same in an empty network, packets back to back, stored and forwarded",
            type="float64",
        ),
        Column(
            "base_rtt_ns",
            "ns",
            "a full packet to its receiver and the ACK back in an empty network; of several receivers the largest",
            parts=Joining.FIRST,
        ),
        Column("slowdown", "", "fct_ns over ideal_fct_ns; NaN: not delivered", type="float64"),
        packets(
            "packets_sent",
            "by its queue pair until then, those sent again included",
            Sender("stats.packets_sent"),
            Total(
                "packets_sent",
                "data packets of all queue pairs, those sent again included",
                row=Row("packets sent", "data packets that senders sent, retransmissions included"),
            ),
            replayed="packets sent",
        ),
        packets(
            "retransmitted",
            "packets that its queue pair sent again",
            Sender("stats.packets_retransmitted"),
            Total(
                "retransmitted",
                "of these, those sent again",
                row=Row("retransmitted", "data packets that senders sent again"),
            ),
            replayed="packets sent again",
        ),
        packets(
            "timeouts",
            "of its queue pair",
            Sender("stats.timeouts"),
            Total("timeouts", "of all queue pairs"),
            replayed="time-outs",
            unit="time-outs",
        ),
        packets("naks", "that its queue pair received", Sender("stats.naks_received")),
        packets(
            "cnps",
            "that its queue pair received",
            Sender("stats.cnps_received"),
            Total("cnps", "received by all senders", swept=False),
            replayed="CNPs",
        ),
        packets(
            "marked",
            "packets that arrived with an ECN mark",
            Receiver("marked_received", when_delivered=True),
            Total(
                "ecn_marked",
                "packets that arrived with a mark",
                swept=False,
                row=Row("packets ECN-marked", "data packets that arrived at their receivers with an ECN mark"),
            ),
            replayed="packets marked",
        ),
        Column(
            MEAN_WEIGHT,
            "",
            "if asked for, of s-PERC: 1/n, averaged over the time for which the flow is counted; of pieces, over their "
            "bytes",
            Sender("reaction_point.mean_weight"),
            "float64",
            Joining.MEAN_OVER_BYTES,
            asked=True,
        ),
        Column(
            MAX_LATENCY,
            "ns",
            "if asked for: the longest time of a data packet from NIC to NIC; -1: none arrived",
            Receiver("max_latency_ns"),
            parts=Joining.MAX,
            asked=True,
        ),
        Column(
            MEAN_LINKS,
            "links",
            "if asked for: links that its data packets crossed, on average, hosts' links included; NaN: none arrived",
            Receiver("links_crossed", over="packets_received"),
            "float64",
            Joining.MEAN_OVER_BYTES,
            asked=True,
        ),
        Column(
            SHORTEST_LINKS,
            "links",
            "if asked for: links of a shortest path, hosts' links included",
            type="float64",
            parts=Joining.FIRST,
            asked=True,
        ),
    ),
    always=True,
)

# Pieces of an attack, from `messages_table`.
PIECES = Table(
    "pieces",
    (
        Column("flow", "", "the number of the flow that it is a piece of"),
        Column("piece", "", "its number in the flow, from 0"),
        Column("*", "", "as in flows, of this piece"),
    ),
)


def in_order() -> list[str]:
    """Return the names of the usual columns of `flows` and `pieces`; not every run has all of them."""
    return list(dict.fromkeys((*PIECES.names[:2], *(column.name for column in usual()))))


def usual() -> list[Column]:
    """Return the columns that a table has by default."""
    return [column for column in FLOWS.columns if not column.asked]


def totals() -> list[Total]:
    """Return the totals of counts in `summary.json`."""
    return [column.total for column in FLOWS.columns if column.total is not None]


def swept() -> list[Total]:
    """Return the totals in the tables of sweeps."""
    return [total for total in totals() if total.swept]


def replayed() -> list[Column]:
    """Return the counts that the page of a replay shows of a flow."""
    return [column for column in FLOWS.columns if column.replayed]


def column_of(asked: str) -> str:
    """Return the name of the column for an attribute of a reaction point or a count."""
    return asked.rpartition(".")[2]


def is_of_hosts(asked: str) -> bool:
    """Return whether the column comes from queue pairs or reaction points."""
    declared = {column.name: column for column in FLOWS.columns if column.asked}
    return asked not in declared or isinstance(declared[asked].source, Sender)


def further(asked: str) -> Column:
    """Return the column for an entry of `record.columns`.

    An entry is an attribute of a reaction point, a count, or the name of a column.
    """
    for column in FLOWS.columns:
        if column.asked and column.name == asked:
            return column
    name = column_of(asked)
    if asked.startswith(COUNTS_PREFIX):
        return Column(name, "", "", Sender(asked), "float64", Joining.SUM, asked=True)
    return Column(name, "", "", Sender(f"reaction_point.{asked}"), "float64", Joining.MEAN_OVER_BYTES, asked=True)


def of_session() -> list[tuple[Column, Session]]:
    """Return the columns that come from the run's session, each with its source."""
    return [(column, source) for column, source in filled_by(Session, FLOWS.columns) if column.type]


def all_columns(asked: Iterable[str]) -> list[Column]:
    """Return the usual columns, followed by those that are asked for."""
    return [*usual(), *map(further, asked)]
