"""Sums of the counts of several workers that simulated a network together, in the form of a single fabric's counts.

Each worker counts the events at its own nodes and the losses on the way to them; its other counts
are 0. The rows of the same port, queue or flow are therefore added.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

_SAME = ("link", "direction", "rate_bps", "src_ip", "dst_ip", "qp")  # columns of which the maximum is taken
_LATEST = ("last_sent_ns", "last_delivered_ns", "host")
_EARLIEST = ("first_sent_ns", "first_delivered_ns")  # columns of which the minimum is taken, except -1 (never)
_KEYS = ("node", "port", "priority", "tag")

Columns = Mapping[str, bytes]


def columns(parts: Sequence[Columns]) -> dict[str, bytes]:
    """Return one of the fabric's tables (`port_stats` and so on), with rows in the order of a single fabric.

    Flows are identified by their tags; only tags assigned by `Fabric.flow` are the same for all workers.
    """
    if len(parts) == 1:
        return dict(parts[0])
    whole = {name: np.concatenate([np.frombuffer(part[name], np.int64) for part in parts]) for name in parts[0]}
    keys = [whole[name].view(np.uint64) for name in _KEYS if name in whole]  # so that -1 (no port) is last
    order = np.lexsort(keys[::-1])
    ordered = [key[order] for key in keys]
    if not len(order):
        return dict.fromkeys(whole, b"")
    new = np.any([key[1:] != key[:-1] for key in ordered], axis=0)
    starts = np.concatenate([[0], 1 + np.flatnonzero(new)])
    return {name: _added_up(name, values[order], starts).tobytes() for name, values in whole.items()}


def _added_up(name: str, values: NDArray[np.int64], starts: NDArray[np.int64]) -> NDArray[np.int64]:
    if name in _KEYS or name in _SAME:
        return values[starts]
    if name in _LATEST:
        return np.maximum.reduceat(values, starts)
    if name in _EARLIEST:
        return np.minimum.reduceat(values.view(np.uint64), starts).view(np.int64)
    return np.add.reduceat(values, starts)


def ledger(parts: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """Return the total of `Fabric.conservation`."""
    total: Counter[str] = Counter()
    for part in parts:
        total.update(part)
    return {name: total[name] for name in parts[0]}


def samples(parts: Sequence[tuple[bytes, bytes]], owners: NDArray[np.int64]) -> tuple[bytes, NDArray[np.int64]]:
    """Return the total of `Fabric.samples`: times, and values by time and probe.

    All workers sample at the same times. Each of them samples the probes of its own nodes. `owners` is
    the rank of each probe's worker, in the order of the probes.
    """
    times = parts[0][0]
    count = len(times) // np.dtype(np.int64).itemsize
    if len(parts) == 1:
        return times, np.frombuffer(parts[0][1], np.int64).reshape(count, len(owners))
    values = np.empty((count, len(owners)), np.int64)
    for rank, (_, own) in enumerate(parts):
        places = np.flatnonzero(owners == rank)
        values[:, places] = np.frombuffer(own, np.int64).reshape(count, len(places))
    return times, values
