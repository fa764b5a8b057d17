"""What is computed from a recording: completion times against an empty network, fairness, utilisation, checks."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from harness.measure.recording import Rate, Recording
from harness.plan.experiment import HEADER_BYTES, Run
from topologies.model import Neighbour
from topologies.routing import path

INT_SHIM_BYTES = 2
INT_RECORD_BYTES = 8


def empty_network_fct_ns(
    links: Sequence[Neighbour], size_bytes: int, mtu_bytes: int, header_bytes: int, growth_bytes: int
) -> float:
    """When a message's last byte arrives over empty links: packets back to back, stored and forwarded at every hop.

    A packet has `header_bytes` beyond its payload on the first link (framing included), and each switch adds
    `growth_bytes`. For n alike packets over links with serialization times s the last leaves link l after
    sum(s[:l]) + (n - 1) max(s[:l]); the message's own last packet is shorter and follows those before it.
    """
    count = max(1, -(-size_bytes // mtu_bytes))
    rest = size_bytes - (count - 1) * mtu_bytes
    before_last = last = slowest = 0.0  # when the last but one, and the last, have arrived; the slowest link so far
    for hop, link in enumerate(links):
        ns_per_byte = 8e9 / link.rate_bps
        header = header_bytes + hop * growth_bytes
        full = (header + _padded(mtu_bytes)) * ns_per_byte
        if count > 1:
            before_last += full + (count - 2) * max(full - slowest, 0)
        slowest = max(slowest, full)
        last = max(last, before_last) + (header + _padded(rest)) * ns_per_byte + link.delay_ns
        before_last += link.delay_ns
    return last


def _padded(size_bytes: int) -> int:
    return size_bytes + (-size_bytes & 3)


def jain_index(rates: NDArray[np.float64]) -> float:
    """Jain's fairness index: 1 when all rates are equal, 1/n when one of n has everything; NaN for nothing."""
    square = float(np.sum(rates)) ** 2
    squares = float(np.sum(rates**2)) * len(rates)
    return square / squares if squares else math.nan


def fair_from_ns(jain: pd.DataFrame, last_start_ns: int, index: float = 0.9, samples: int = 3) -> int | None:
    """From when on so many samples in a row lie above `index`, once all flows have started; None: they never do.

    A sample counts from its end; near 0.9 no flow is far from its share.
    """
    later = jain[jain["time_ns"] >= last_start_ns]
    above = (later["jain"] > index).rolling(samples).min().shift(1 - samples) == 1
    return int(later.loc[above, "time_ns"].iloc[0]) if above.any() else None


def flows_table(run: Run, recording: Recording) -> pd.DataFrame:
    """One row a flow, in order of start. Times are ns; fct from the start to all receivers' last byte; 0s: not yet."""
    hosts = run.topology.hosts
    telemetry = run.protocol.info.telemetry
    header = HEADER_BYTES + run.scenario.framing_bytes + (INT_SHIM_BYTES if telemetry else 0)
    growth = INT_RECORD_BYTES if telemetry else 0
    paths: dict[tuple[int, int], list[Neighbour]] = {}
    ideal: list[float] = []
    for record in recording.flows:
        flow = record.flow
        slowest_ns = 0.0
        for destination in flow.destinations:
            ends = (flow.source, destination)
            if ends not in paths:
                paths[ends] = path(run.topology, hosts[flow.source], hosts[destination])
            latency_ns = run.scenario.switch.latency_ns * (len(paths[ends]) - 1)
            fct_ns = empty_network_fct_ns(paths[ends], flow.size_bytes, run.scenario.nic.mtu_bytes, header, growth)
            slowest_ns = max(slowest_ns, latency_ns + fct_ns)
        ideal.append(slowest_ns)
    records = recording.flows
    table = pd.DataFrame(
        {
            "flow": np.array([r.flow.index for r in records], np.int64),
            "source": [hosts[r.flow.source].name for r in records],
            "destination": [hosts[r.flow.destination].name for r in records],
            "group": [r.flow.group for r in records],
            "qp": np.array([r.qp for r in records], np.int64),
            "size_bytes": np.array([r.flow.size_bytes for r in records], np.int64),
            "start_ns": np.array([r.flow.start_ns for r in records], np.int64),
            "first_sent_ns": np.array([r.first_sent_ns for r in records], np.int64),
            "delivered_ns": np.array([r.delivered_ns for r in records], np.int64),
            "completed_ns": np.array([r.completed_ns for r in records], np.int64),
            "ideal_fct_ns": np.array(ideal, np.float64),
            "packets_sent": np.array([r.packets_sent for r in records], np.int64),
            "retransmitted": np.array([r.retransmitted for r in records], np.int64),
            "timeouts": np.array([r.timeouts for r in records], np.int64),
            "naks": np.array([r.naks for r in records], np.int64),
            "cnps": np.array([r.cnps for r in records], np.int64),
            "marked": np.array([r.marked for r in records], np.int64),
        }
    )
    done = table["delivered_ns"] >= 0
    fct = (table["delivered_ns"] - table["start_ns"]).astype(float).where(done)
    table.insert(10, "fct_ns", fct)
    table.insert(12, "slowdown", fct / table["ideal_fct_ns"])
    return table


def rates_table(rates: Sequence[Rate], interval_ns: int) -> pd.DataFrame:
    """One row a queue pair and interval: `throughput_bps` on the wire, what the reaction point allows, and the latest
    RTT (-1: none in this interval)."""
    columns = {name: [getattr(rate, name) for rate in rates] for name in Rate._fields}
    delivered = np.array(columns["delivered_bytes"], np.int64)
    return pd.DataFrame(
        {
            "time_ns": np.array(columns["time_ns"], np.int64),
            "qp": np.array(columns["qp"], np.int64),
            "throughput_bps": delivered * (8e9 / max(interval_ns, 1)),
            "rate_limit_bps": np.array(columns["rate_limit_bps"], np.float64),
            "window_bytes": np.array(columns["window_bytes"], np.float64),
            "rtt_ns": np.array(columns["rtt_ns"], np.int64),
        }
    )


def jain_table(flows: pd.DataFrame, rates: pd.DataFrame, interval_ns: int) -> pd.DataFrame:
    """Jain's index over the queue pairs that had something to send throughout each interval, where there are two, and
    anything arrived."""
    spans = flows.groupby("qp").agg(
        start=("start_ns", "min"), end=("delivered_ns", "max"), late=("delivered_ns", "min")
    )
    joined = rates.join(spans, on="qp")
    unfinished = joined["late"] < 0
    active = joined[
        (joined["start"] <= joined["time_ns"] - interval_ns) & (unfinished | (joined["end"] >= joined["time_ns"]))
    ]
    groups = active.groupby("time_ns")["throughput_bps"]
    table = pd.DataFrame({"jain": groups.agg(lambda r: jain_index(r.to_numpy(float))), "qps": groups.size()})
    return table[(table["qps"] >= 2) & table["jain"].notna()].reset_index()
