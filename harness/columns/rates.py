"""Columns of `rates`.

A line in `RATES` turns a number of the queue pairs into a column.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter, methodcaller

from harness.columns.column import Column, Sampled, Table, filled_by

RATES = Table(
    "rates",
    (
        Column("time_ns", "ns", "end of the interval"),
        Column("qp", "", "number of the queue pair"),
        Column(
            "throughput_bps",
            "bit/s",
            "on the receiver's link in the interval, framing and retransmissions included",
            type="float64",
        ),
        Column(
            "rate_limit_bps",
            "bit/s",
            "of the reaction point at that time, framing included; inf: none",
            Sampled("rate_bps"),
            "float64",
        ),
        Column(
            "window_bytes", "bytes", "of the reaction point at that time; inf: none", Sampled("window_bytes"), "float64"
        ),
        Column(
            "rtt_ns",
            "ns",
            "the latest RTT of the interval; -1: none was measured",
            Sampled("take_rtt_ns", method=True),
        ),
    ),
    always=True,
)


def sampled() -> list[tuple[Column, Sampled]]:
    """Return the columns that are sampled at queue pairs, each with its source."""
    return filled_by(Sampled, RATES.columns)


def getters() -> list[Callable[[object], float]]:
    """Return the functions that read each sampled column of a queue pair."""
    return [(methodcaller if source.method else attrgetter)(source.attribute) for _, source in sampled()]
