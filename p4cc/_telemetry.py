"""Reports of a path's links in a packet's INT records; docs/wire-formats.md specifies the bits."""

from __future__ import annotations

import math
from typing import NamedTuple

import p4cc._hosts  # noqa: F401  # isort: split
from host_agents.cc.base import Feedback, Path
from host_agents.headers import LINK_RATES_BPS
from host_agents.wire import INT_RECORD_BYTES

_TX_UNIT_BYTES = 128
_TX_UNITS = 1 << 20
_TIMES_NS = 1 << 24


class LinkReport(NamedTuple):
    """Report of one link of the path, made when the acknowledged packet left its queue.

    `rate_bps` is the link's rate, or 0 if it is unknown. `timestamp_ns` counts modulo 2^24.
    `tx_bytes` is the total that the port had transmitted before, in steps of 128 and modulo 2^27.
    `queue_bytes` is the queue behind the packet.
    """

    rate_bps: float
    timestamp_ns: int
    tx_bytes: int
    queue_bytes: int


class LinkSample(NamedTuple):
    """Difference of two reports of one link.

    `throughput_bps` is the mean over the `elapsed_ns` between them, or NaN if no time has passed.
    `queue_bytes` is that of the later report.
    """

    rate_bps: float
    elapsed_ns: int
    throughput_bps: float
    queue_bytes: int


def link_reports(feedback: Feedback, path: Path) -> list[LinkReport]:
    """Return the reports of the path's links in an ACK.

    Parameters
    ----------
    feedback
        Argument of `on_ack`. The protocol has to be registered with `telemetry=True`, and its
        program has to append INT records.
    path
        The reaction point's path; its `cell_bytes` is the unit of the reported queue lengths.

    Returns
    -------
    list of LinkReport
        One for each switch, beginning with the sender's; empty if the ACK has no telemetry.
    """
    first = feedback.int_offset
    ends = range(first + INT_RECORD_BYTES, first + INT_RECORD_BYTES * (feedback.int_hops + 1), INT_RECORD_BYTES)
    words = [int.from_bytes(feedback.frame[end - INT_RECORD_BYTES : end], "big") for end in ends]
    return [
        LinkReport(
            LINK_RATES_BPS[word >> 60],
            word >> 36 & _TIMES_NS - 1,
            (word >> 16 & _TX_UNITS - 1) * _TX_UNIT_BYTES,
            (word & 0xFFFF) * path.cell_bytes,
        )
        for word in words
    ]


class LinkHistory:
    """Comparison of links' reports with their previous ones, separately for each path (HPCC, algorithm 1)."""

    def __init__(self, path: Path) -> None:
        self._path = path
        # Reports, and the time until which they can be compared.
        self._before: dict[tuple[int, int], tuple[int, list[LinkReport]]] = {}

    def samples(self, feedback: Feedback) -> list[LinkSample]:
        """Return the samples of the links on the ACK's path since the last ACK of that path.

        The list is empty if there is nothing to compare with: the path is new, the ACK has no
        telemetry, its packet was overtaken by the last one, or so much time has passed that a
        counter may have wrapped.
        """
        now = link_reports(feedback, self._path)
        if not now:
            return []
        key = feedback.path_id, len(now)
        until_ns, before = self._before.get(key, (-1, now))
        elapsed_ns = [(a.timestamp_ns - b.timestamp_ns) % _TIMES_NS for a, b in zip(now, before, strict=True)]
        comparable = feedback.now_ns < until_ns
        if comparable and max(elapsed_ns) >= _TIMES_NS // 2:
            return []  # an ACK that was overtaken by a later one
        fastest_bps = max(link.rate_bps or self._path.line_rate_bps for link in now)
        wraps_ns = min(_TIMES_NS, _TX_UNITS * _TX_UNIT_BYTES * 8e9 / fastest_bps)
        self._before[key] = feedback.now_ns + int(wraps_ns / 2), now
        if not comparable:
            return []
        wrap_bytes = _TX_UNITS * _TX_UNIT_BYTES
        return [
            LinkSample(
                a.rate_bps, took_ns, (a.tx_bytes - b.tx_bytes) % wrap_bytes * 8e9 / took_ns if took_ns else math.nan,
                a.queue_bytes,
            )
            for a, b, took_ns in zip(now, before, elapsed_ns, strict=True)
        ]  # fmt: skip
