"""Ledger of all frames, and every switch's counters, in the form of a `Recording`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from control_plane.program_ledger import PIPELINES, Kind, by_name, lost
from harness.columns.queues import DEPTH, QUEUES
from harness.columns.traffic_manager import in_mininet
from harness.measure.recording import Integers, Series, places
from harness.plan.probes import QueueProbe
from harness.plan.probes.readings import Readings
from harness.plan.run import Run
from harness.worlds.mininet.messages import Finished

_PFC_COLUMNS = (
    "priority",
    "pauses_sent",
    "resumes_sent",
    "refreshes_sent",
    "pauses_received",
    "paused_ns",
    "longest_ns",
    "ingress_max_bytes",
    "headroom_max_bytes",
)
_DROPS = (
    "drop_program_ingress", "drop_program_egress", "drop_buffer", "drop_no_port", "drop_link_down", "drop_link_loss",
    "drop_hops", "drop_endless",
)  # fmt: skip
Port = tuple[str, int, str]  # switch, number, node at the other end
Counters = Mapping[str, Mapping[str, Any]]  # `Live.stats` by switch


def lost_by_kernel(counters: Counters, reports: Sequence[Finished]) -> dict[str, int]:
    """Return the frames, by reason, that the host's kernel lost and a real network would not have lost."""
    ports = [port for switch in counters.values() for port in switch["ports"]]
    return {
        "a switch's receive ring was full": sum(port["rx_ring_full"] for port in ports),
        "a switch's interface took no more": sum(port["tx_failed"] for port in ports),
        "joined by segmentation offload": sum(port["rx_truncated"] for port in ports),
        "a host's socket was full": sum(report.socket_full for report in reports),
        "a host's interface took no more": sum(report.send_failed for report in reports),
    }


def conservation(counters: Counters, reports: Sequence[Finished], counted: Mapping[Kind, int]) -> dict[str, int]:
    """Return the ledger like `Fabric.conservation`, with the program's counts and further reasons.

    The further reasons are drop_in_switch, by a switch that does not report its drops, and
    drop_socket, for frames lost between the programs and the kernel.
    """
    ports = [port for switch in counters.values() for port in switch["ports"]]
    entered = sum(report.frames_sent for report in reports)
    cloned = sum(switch["cloned"] for switch in counters.values())
    multicast = sum(switch["multicast"] for switch in counters.values())
    delivered = sum(report.frames_received for report in reports)
    drops = {
        name: sum(port[name] for port in ports) + sum(switch[name] for switch in counters.values()) for name in _DROPS
    }
    drops["drop_link_down"] += sum(report.frames_lost for report in reports)
    drops["drop_link_loss"] += sum(report.frames_lost_at_random for report in reports)
    copied = cloned + multicast
    drops["drop_in_switch"] = 0
    if any("drop_in_switch" in switch for switch in counters.values()):  # it has no more details
        for pipeline in PIPELINES:
            drops[f"drop_program_{pipeline}"] = lost(counted, pipeline)
        rest = sum(switch["drop_in_switch"] for switch in counters.values())
        rest -= sum(lost(counted, pipeline) for pipeline in PIPELINES)
        drops["drop_in_switch"], copied = max(0, rest), max(0, -rest)
    drops["drop_socket"] = sum(lost_by_kernel(counters, reports).values())
    queued = sum(port["depth_packets"] for port in ports)
    pfc_on_wire = sum(port["on_wire_pfc"] for port in ports)
    on_wire = sum(port["on_wire_packets"] for port in ports) - pfc_on_wire
    on_wire += sum(report.frames_unsent for report in reports)
    pfc_sent = sum(port["pfc_sent"] for port in ports)
    pfc_received = sum(port["pfc_received"] for port in ports) + sum(report.pauses_received for report in reports)
    ledger = {
        "entered": entered,
        "copied": copied,
        "cloned": cloned,
        "multicast": multicast,
        "delivered": delivered,
        **drops,
        "queued": queued,
        "on_wire": on_wire,
        "balance": entered + copied - delivered - sum(drops.values()) - queued - on_wire,
        "pfc_sent": pfc_sent,
        "pfc_received": pfc_received,
        "pfc_on_wire": pfc_on_wire,
        "pfc_balance": pfc_sent - pfc_received - pfc_on_wire,
    }
    return by_name(ledger, counted)


def failed_asserts(counters: Counters) -> dict[str, tuple[int, str]]:
    """Return the number of failed asserts of each switch's program, and the first one.

    Only switches that report them are included.
    """
    return {
        name: (switch["failed_asserts"], switch["failed_assert"])
        for name, switch in counters.items()
        if switch.get("failed_asserts")
    }


def port_stats(counters: Counters, nodes: Sequence[str], dilation: int) -> dict[str, Integers]:
    """Return a row for each switch port, in model time."""
    rows = [(nodes.index(name), port) for name, switch in counters.items() for port in switch["ports"]]
    columns = {"node": [node for node, _ in rows], "port": [port["port"] for _, port in rows]}
    for name in (*in_mininet(), *_DROPS):
        columns[name] = [_in_model_time(name, port[name], dilation) for _, port in rows]
    return _arrays(columns)


def pfc_stats(counters: Counters, nodes: Sequence[str], dilation: int) -> dict[str, Integers]:
    """Return a row for each (port, priority) that ever paused or was paused, in model time."""
    columns: dict[str, list[int]] = {name: [] for name in ("node", "port", *_PFC_COLUMNS)}
    for name, switch in counters.items():
        for port in switch["ports"]:
            for row in port["pfc"]:
                columns["node"].append(nodes.index(name))
                columns["port"].append(port["port"])
                for column in _PFC_COLUMNS:
                    columns[column].append(_in_model_time(column, row[column], dilation))
    return _arrays(columns)


def _in_model_time(name: str, value: int, dilation: int) -> int:
    return value // dilation if name.endswith("_ns") else value


def _arrays(columns: Mapping[str, Sequence[int]]) -> dict[str, Integers]:
    return {name: np.array(values, np.int64) for name, values in columns.items()}


def sampled_ports(run: Run, counters: Counters) -> list[Port]:
    """Return the ports of switches that report samples, if their queues are sampled."""
    record, topology = run.scenario.record, run.topology
    if not record.queue_interval_ns:
        return []
    return [
        (switch.name, port, there.node)
        for switch in topology.switches
        if _logs(counters[switch.name])
        for port, there in topology.ports[switch.name].items()
        if record.queues == "all" or there.node in topology.host_by_name
    ]


def queue_samples(
    ports: Sequence[Port], counters: Counters, *, interval_ns: int, end_ns: int, epoch_ns: int, dilation: int
) -> Series:
    """Return samples from the ports' logs.

    Each switch's log counts its times from the switch's `origin_ns`, a wall-clock time. `epoch_ns`
    is the wall-clock time of model time 0.
    """
    times = np.arange(0, end_ns + 1, interval_ns, dtype=np.int64) if ports else np.empty(0, np.int64)
    depths = np.zeros((len(times), len(ports)), np.int64)
    logs = {
        (name, port["port"]): (switch["origin_ns"], port["depths"])
        for name, switch in counters.items()
        if _logs(switch)
        for port in switch["ports"]
    }
    for column, (name, number, _) in enumerate(ports):
        origin_ns, (changed, bytes_) = logs[name, number]
        if not changed:
            continue
        at = (np.array(changed, np.int64) + (origin_ns - epoch_ns)) // dilation
        last = np.searchsorted(at, times, side="left") - 1  # the state before any event of that instant
        depths[:, column] = np.where(last >= 0, np.array(bytes_, np.int64)[last], 0)
    return Series(DEPTH.name, places(QUEUES, ports), times, depths)


def read_queues(
    probe: QueueProbe,
    run: Run,
    counters: Counters,
    readings: Readings,
    *,
    end_ns: int,
    epoch_ns: int,
    dilation: int,
) -> None:
    """Return a probe's quantities from the switches' logs, or from their counters at the end."""
    ports = [port for port in probe.ports(run) if _logs(counters[port[0]])]
    if probe.interval_ns:
        samples = queue_samples(
            ports, counters, interval_ns=probe.interval_ns, end_ns=end_ns, epoch_ns=epoch_ns, dilation=dilation
        )
        for time_ns, depths in zip(samples.times_ns.tolist(), samples.values.tolist(), strict=True):
            for (switch, port, leads_to), depth in zip(ports, depths, strict=True):
                readings.add(probe, time_ns, switch, [(port, leads_to, depth)])
        return
    stats = port_stats(counters, list(counters), dilation)
    values = zip(stats["node"].tolist(), stats["port"].tolist(), stats[probe.reads].tolist(), strict=True)
    known = {(list(counters)[node], port): value for node, port, value in values}
    for switch, port, leads_to in ports:
        readings.add(probe, end_ns, switch, [(port, leads_to, known[switch, port])])


def _logs(switch: Mapping[str, Any]) -> bool:
    """Return whether a switch keeps a log of its queues."""
    return "origin_ns" in switch
