"""Metrics of a recording: completion times relative to an empty network, fairness, checks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from harness.columns.column import Computed, Joining, Session
from harness.columns.flows import SHORTEST_LINKS, column_of, in_order
from harness.columns.rates import RATES, sampled
from harness.measure.flow_record import FlowRecord
from harness.measure.recording import Rate, Recording
from harness.plan.run import Run
from harness.workloads import Flow
from host_agents.lengths import INT_RECORD_BYTES
from topologies.model import Neighbour
from topologies.routing import path, transit_ns

PacketBytes: TypeAlias = Callable[[int], int]
"""The length of a data packet as it leaves its host, by its payload."""


def empty_network_fct_ns(
    links: Sequence[Neighbour],
    size_bytes: int,
    mtu_bytes: int,
    packet_bytes: PacketBytes,
    framing_bytes: int,
    growth_bytes: int,
) -> float:
    """Return the time, in ns, at which a message's last byte arrives if the links are otherwise empty.

    Packets are sent back to back, and switches store and forward them. A link charges a packet's
    own bytes plus `framing_bytes`, and each switch adds `growth_bytes` to the packet. If n equal
    packets cross links with serialization times s, the last packet leaves link l after sum(s[:l]) +
    (n - 1) max(s[:l]). The message's own last packet is shorter, and follows them.
    """
    count = max(1, -(-size_bytes // mtu_bytes))
    rest = size_bytes - (count - 1) * mtu_bytes
    # Arrival of the last packet but one, arrival of the last, and the slowest link so far.
    before_last = last = slowest = 0.0
    for hop, link in enumerate(links):
        ns_per_byte = 8e9 / link.rate_bps
        more = framing_bytes + hop * growth_bytes + link.extra_bytes
        full = (more + packet_bytes(mtu_bytes)) * ns_per_byte
        if count > 1:
            before_last += full + (count - 2) * max(full - slowest, 0)
        slowest = max(slowest, full)
        last = max(last, before_last) + (more + packet_bytes(rest)) * ns_per_byte + link.delay_ns
        before_last += link.delay_ns
    return last


def jain_index(rates: NDArray[np.float64]) -> float:
    """Return Jain's fairness index: 1 for equal rates, 1/n if one of n has everything, NaN without rates."""
    square = float(np.sum(rates)) ** 2
    squares = float(np.sum(rates**2)) * len(rates)
    return square / squares if squares else math.nan


def fair_from(
    jain: pd.DataFrame, last_start_ns: int, interval_ns: int, index: float = 0.9, samples: int = 3
) -> tuple[int, int] | None:
    """Return when the rates became fair: the first of `samples` consecutive intervals above `index`.

    Only intervals after the start of all flows count. The result is the end of that interval, in
    ns, and the number of queue pairs that were active in it. It is None if there is no such
    interval. With an index near 0.9 no flow is far from its share.
    """
    later = jain[jain["time_ns"] - interval_ns >= last_start_ns]
    above = (later["jain"] > index).rolling(samples).min().shift(1 - samples) == 1
    if not above.any():
        return None
    first = later[above].iloc[0]
    return int(first["time_ns"]), int(first["qps"])


class EmptyNetwork:
    """Properties of flows in an otherwise empty network: their duration, and the links they cross."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._paths: dict[tuple[int, int], list[Neighbour]] = {}

    def fct_ns(self, flow: Flow, size_bytes: int) -> float:
        """Return the time at which the last of the flow's receivers has `size_bytes`."""
        run = self._run
        info = run.protocol_of(flow).info
        framing_bytes = run.scenario.framing_bytes
        growth_bytes = INT_RECORD_BYTES if info.telemetry else 0
        slowest_ns = 0.0
        for destination in flow.destinations:
            links = self._path(flow.source, destination)
            latency_ns = run.scenario.switch.latency_ns * (len(links) - 1)
            fct_ns = empty_network_fct_ns(
                links, size_bytes, run.scenario.nic.mtu_bytes, info.data_bytes, framing_bytes, growth_bytes
            )
            slowest_ns = max(slowest_ns, latency_ns + fct_ns)
        return slowest_ns

    def base_rtt_ns(self, flow: Flow) -> int:
        """Return the round-trip time of a full packet and its ACK; with several receivers, the largest."""
        run = self._run
        latency_ns, charged = run.scenario.switch.latency_ns, run.scenario.link_bytes
        info = run.protocol_of(flow).info
        data_bytes = charged(info.data_bytes(run.scenario.nic.mtu_bytes))
        ack_bytes = charged(info.lengths.ack_bytes)
        rtts_ns = (
            # The path back has the same links.
            transit_ns(links, data_bytes, latency_ns) + transit_ns(links, ack_bytes, latency_ns)
            for links in (self._path(flow.source, destination) for destination in flow.destinations)
        )
        return max(rtts_ns)

    def links(self, flow: Flow) -> float:
        """Return the number of links on a shortest path, including hosts' links; the mean over receivers."""
        return float(np.mean([len(self._path(flow.source, destination)) for destination in flow.destinations]))

    def _path(self, source: int, destination: int) -> list[Neighbour]:
        ends = (source, destination)
        if ends not in self._paths:
            hosts = self._run.topology.hosts
            self._paths[ends] = path(self._run.topology, hosts[source], hosts[destination])
        return self._paths[ends]


def messages_table(run: Run, recording: Recording) -> pd.DataFrame:
    """Return a row for each flow or, under an attack, for each piece of a flow.

    A flow or piece is sent on one queue pair. Column `flow` is the flow's number. `destination` is
    a host, or the address of a multicast group. Times are in ns; -1 means that it has not happened.
    `fct_ns` is the time from the start to the last byte at the last receiver. Under an attack
    `piece` is the piece's number within its flow, and `role` distinguishes attackers and victims.
    """
    hosts = run.topology.hosts
    empty = EmptyNetwork(run)
    records = recording.flows
    computed: dict[str, Callable[[FlowRecord], object]] = {
        "source": lambda record: hosts[record.flow.source].name,
        "destination": lambda record: _destination(run, record.flow),
        "ideal_fct_ns": lambda record: empty.fct_ns(record.flow, record.flow.size_bytes),
        "base_rtt_ns": lambda record: empty.base_rtt_ns(record.flow),
        SHORTEST_LINKS: lambda record: empty.links(record.flow),
    }
    columns: dict[str, Any] = {}
    for column in run.flow_columns:
        name = column.name
        if isinstance(column.source, Computed) and name not in computed:
            continue  # flows_table and _with_slowdown compute it
        if isinstance(column.source, Session):
            values = list(map(attrgetter(column.source.attribute), records))
        else:
            values = [computed[name](r) if name in computed else r.columns[name] for r in records]
        columns[name] = values if column.type is None else np.array(values, column.type)
    table = pd.DataFrame(columns)
    if run.attack is not None:
        table["piece"] = table.groupby("flow").cumcount()
        table["role"] = [r.flow.role for r in records]
    return _with_slowdown(table, run)


def _destination(run: Run, flow: Flow) -> str:
    if flow.further_destinations:
        return run.addresses(flow.sources, flow.destinations)[1]
    return run.topology.hosts[flow.destination].name


def flows_table(run: Run, recording: Recording, messages: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each flow, with the columns of `messages` aggregated over its pieces.

    A flow lasts from the first start of its pieces to their last delivery. `qp` is that of the
    first piece, and `pieces` is their number. Counts are sums over the pieces, and latencies are
    maxima. Links and values of reaction points are means over bytes.
    """
    if run.attack is None:
        return messages
    empty = EmptyNetwork(run)
    wholes = {r.flow.number: r.flow.whole or r.flow for r in recording.flows}
    pieces = messages.groupby("flow")
    table = pieces.first().drop(columns="piece").reset_index()
    flows = [wholes[number] for number in table["flow"]]
    table["pieces"] = np.array([flow.pieces for flow in flows], np.int64)
    sent_bytes = pieces["size_bytes"].sum().to_numpy()
    stopped = np.array([flow.stop_ns is not None for flow in flows])
    table["size_bytes"] = np.where(stopped, sent_bytes, [flow.size_bytes for flow in flows])
    begun = messages["first_sent_ns"].where(messages["first_sent_ns"] >= 0)
    table["first_sent_ns"] = begun.groupby(messages["flow"]).min().fillna(-1).astype(np.int64).to_numpy()
    for name in ("delivered_ns", "completed_ns"):
        done = pieces[name].min().to_numpy() >= 0
        table[name] = np.where(done, pieces[name].max().to_numpy(), -1)
    sizes = table["size_bytes"].tolist()
    table["ideal_fct_ns"] = [empty.fct_ns(flow, size) for flow, size in zip(flows, sizes, strict=True)]
    for column in run.flow_columns:
        name = column.name
        if column.parts is Joining.SUM:
            table[name] = pieces[name].sum().to_numpy()
        elif column.parts is Joining.MAX:
            table[name] = pieces[name].max().to_numpy()
        elif column.parts is Joining.MEAN_OVER_BYTES:
            known = messages["size_bytes"].where(messages[name].notna())
            weighted = (messages[name] * known).groupby(messages["flow"]).sum()
            table[name] = (weighted / known.groupby(messages["flow"]).sum().replace(0, math.nan)).to_numpy()
    return _with_slowdown(table, run)


def _with_slowdown(table: pd.DataFrame, run: Run) -> pd.DataFrame:
    """Return the table with FCT and slowdown, with its columns in order."""
    table["fct_ns"] = (table["delivered_ns"] - table["start_ns"]).astype(float).where(table["delivered_ns"] >= 0)
    table["slowdown"] = table["fct_ns"] / table["ideal_fct_ns"]
    further = map(column_of, run.columns)
    return table[[*(name for name in in_order() if name in table.columns), *further]]


def rates_table(rates: Sequence[Rate], interval_ns: int) -> pd.DataFrame:
    """Return one row for each queue pair and interval, with the columns of `RATES`."""
    delivered = np.array([rate.delivered_bytes for rate in rates], np.int64)
    columns = {
        "time_ns": np.array([rate.time_ns for rate in rates], np.int64),
        "qp": np.array([rate.qp for rate in rates], np.int64),
        "throughput_bps": delivered * (8e9 / max(interval_ns, 1)),
    }
    for i, (column, source) in enumerate(sampled()):
        values = pd.Series([rate.values[i] for rate in rates], dtype=column.type)
        if source.grows:
            grown = values.groupby(columns["qp"]).diff()
            values = grown.fillna(values).astype(values.dtype)
        columns[column.name] = values.to_numpy()
    return pd.DataFrame({name: columns[name] for name in RATES.names})


def jain_table(flows: pd.DataFrame, rates: pd.DataFrame, interval_ns: int) -> pd.DataFrame:
    """Return Jain's index over the queue pairs that were active throughout each interval.

    There is a row if at least two were active and any bytes arrived.
    """
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
