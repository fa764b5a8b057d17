"""Figures and checks of one run for `summary.json`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from control_plane import program_ledger
from harness.columns.flows import FLOWS, MAX_LATENCY, MEAN_LINKS, MEAN_WEIGHT, SHORTEST_LINKS
from harness.measure.metrics import fair_from, jain_table
from harness.measure.recording import Integers, Recording
from harness.plan.run import Run
from topologies.model import Neighbour
from topologies.routing import path, transit_ns

PERCENTILES = {"p50": 50, "p99": 99, "p99_9": 99.9}
_REASONS = "drop_"
_CONGESTED = 0.1  # queueing delay of a congested port, in base RTTs
_WORST = 8  # number of queues that are listed
_MOST_LISTED = 3  # number of stuck flows and queues that are listed
ROLES = ("attacker", "victim")
WORKLOAD = "workload"  # name of the scenario's own flows beside those of groups


def distribution(values: pd.Series[float]) -> dict[str, float | None]:
    """Return mean, percentiles and maximum; None without values."""
    known = values.dropna().to_numpy(float)
    if not len(known):
        return dict.fromkeys(("mean", *PERCENTILES, "max"))
    return {
        "mean": float(known.mean()),
        **{name: float(np.percentile(known, p)) for name, p in PERCENTILES.items()},
        "max": float(known.max()),
    }


def summarize(run: Run, recording: Recording, flows: pd.DataFrame, messages: pd.DataFrame) -> dict[str, Any]:
    """Return all figures that do not depend on the machine.

    They are the same for the same scenario and seed. `messages` are the flows by queue pair, or the
    pieces of flows that are broken up.
    """
    done = flows[flows["delivered_ns"] >= 0]
    span_ns = int(done["delivered_ns"].max() - flows["start_ns"].min()) if len(done) else 0
    interval_ns = run.scenario.record.rate_interval_ns
    jain = jain_table(messages, recording.tables["rates"], interval_ns)
    fair = fair_from(jain, int(flows["start_ns"].max()), interval_ns) if len(flows) else None
    return {
        "scenario": run.name,
        "title": run.scenario.title,
        "protocol": run.protocol.name,
        "load_balancer": run.load_balancing.name,
        "variant": _variant(run, recording),
        "world": recording.world,
        "switch": recording.switch,
        "compiler": recording.compiler,
        "program": run.program_names,
        "seed": run.seed,
        "framing_bytes": run.scenario.framing_bytes,
        "base_rtt_ns": run.base_rtt_ns(),
        "ended": recording.ended,
        "end_ns": recording.end_ns,
        "flows": len(flows),
        "flows_delivered": len(done),
        "flows_acknowledged": int((flows["completed_ns"] >= 0).sum()),
        "bytes_delivered": int(done["size_bytes"].sum()),
        "goodput_bps": float(done["size_bytes"].sum() * 8e9 / span_ns) if span_ns else None,
        "last_delivery_ns": int(done["delivered_ns"].max()) if len(done) else None,
        "fct_ns": distribution(done["fct_ns"]),
        "slowdown": distribution(done["slowdown"]),
        "jain": {
            "mean": float(jain["jain"].mean()) if len(jain) else None,
            "min": float(jain["jain"].min()) if len(jain) else None,
            "over_0_9_from_ns": fair[0] if fair else None,
            "over_0_9_qps": fair[1] if fair else None,
        },
        "bottleneck": bottleneck(run, recording, messages),
        "queues": congestion(run, recording, flows),
        **{c.total.name: _per_qp(messages, c.name) for c in FLOWS.columns if c.total is not None},
        "drops": _drops(recording.conservation),
        "pfc": {
            "pauses_sent": _total(recording, "pauses_sent"),
            "paused_ns": _total(recording, "paused_ns"),
            "events": recording.pfc_events,
        },
        "nic": recording.nic_totals,
        "workload": recording.workload,
        "conservation": recording.conservation,
        "checks": checks(run, recording, flows),
        **({"residue": recording.residue} if recording.residue and _was_down(run) else {}),
        **(
            {}
            if run.attack is None
            else {"isolation": isolation(recording, run.scenario.record.rate_interval_ns, flows, messages)}
        ),
        **({"sizes": by_size(run, flows)} if run.scenario.record.sizes else {}),
        **({"groups": by_group(run, flows)} if run.scenario.groups else {}),
        **({} if recording.fidelity is None else {"fidelity": recording.fidelity}),
        **({} if recording.agreement is None else {"agreement": recording.agreement}),
    }


def _drops(ledger: Mapping[str, int]) -> dict[str, int]:
    """Return the dropped packets by reason."""
    return {term.removeprefix(_REASONS): count for term, count in ledger.items() if term.startswith(_REASONS)}


def _variant(run: Run, recording: Recording) -> str:
    """Return the name of the variant, extended by unusual options of the run's execution."""
    usual = {"world": "virtual", "switch": "builtin", "compiler": "builtin"}
    unusual = [str(getattr(recording, key)) for key in usual if getattr(recording, key) != usual[key]]
    return ", ".join([run.variant, *unusual])


def isolation(recording: Recording, interval_ns: int, flows: pd.DataFrame, messages: pd.DataFrame) -> dict[str, Any]:
    """Return the figures of attackers and victims separately; rates are sampled every `interval_ns`.

    Throughput is on receivers' links, in the second half of the run.
    """
    rates = recording.tables["rates"]
    half_ns = recording.end_ns // 2
    later = rates[rates["time_ns"] > half_ns]
    intervals = recording.end_ns // interval_ns - half_ns // interval_ns if interval_ns else 0
    figures: dict[str, Any] = {}
    for role in ROLES:
        own = flows[flows["role"] == role]
        of_role = later["qp"].isin(messages.loc[messages["role"] == role, "qp"])
        figures[f"{role}s"] = {
            "flows": len(own),
            "flows_delivered": int((own["delivered_ns"] >= 0).sum()),
            "pieces": int((messages["role"] == role).sum()),
            "throughput_bps": float(later.loc[of_role, "throughput_bps"].sum() / intervals) if intervals else None,
            "flow_rate_bps": distribution(_flow_rates_bps(own))["mean"],
            "fct_ns": distribution(own["fct_ns"]),
            "slowdown": distribution(own["slowdown"]),
        }
    attackers, victims = (figures[f"{role}s"]["throughput_bps"] or 0.0 for role in ROLES)
    return {**figures, "attackers_share": attackers / (attackers + victims) if attackers + victims else None}


def by_size(run: Run, flows: pd.DataFrame) -> dict[str, Any]:
    """Return figures of each class of flows in `record.sizes`, with the columns that they need."""
    figures: dict[str, Any] = {}
    for each in run.scenario.record.sizes:
        most_bytes = math.inf if each.most_bytes is None else each.most_bytes
        own = flows[flows["size_bytes"].between(each.least_bytes, most_bytes)]
        figures[each.name] = _of_some(own)
        if MAX_LATENCY in own:
            figures[each.name][MAX_LATENCY] = distribution(own[MAX_LATENCY].where(own[MAX_LATENCY] >= 0))
        for name in (MEAN_LINKS, SHORTEST_LINKS):
            if name in own:
                figures[each.name][name] = distribution(own[name])["mean"]
        if MEAN_WEIGHT in own:
            figures[each.name]["weighted_slowdown"] = distribution(own["slowdown"] * own[MEAN_WEIGHT])
    return figures


def by_group(run: Run, flows: pd.DataFrame) -> dict[str, Any]:
    """Return figures of the flows of each group, and of the scenario's own workload if it has flows."""
    return {
        name: {
            **_of_some(own),
            "fct_ns": distribution(own["fct_ns"]),
            "retransmitted": _per_qp(own, "retransmitted"),
        }
        for name, own in _groups(run, flows).items()
    }


def _groups(run: Run, flows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the flows of each group, and those of the scenario's own workload if there are any."""
    names = [group.name for group in run.scenario.groups]
    by_group = {name: flows[flows["group"] == name] for name in names}
    rest = flows[~flows["group"].isin(names)]
    if len(rest):
        by_group[WORKLOAD] = rest
    return by_group


def _of_some(flows: pd.DataFrame) -> dict[str, Any]:
    """Return figures of a part of a run's flows."""
    return {
        "flows": len(flows),
        "flows_delivered": int((flows["delivered_ns"] >= 0).sum()),
        "flow_rate_bps": distribution(_flow_rates_bps(flows)),
        "slowdown": distribution(flows["slowdown"]),
    }


def _flow_rates_bps(flows: pd.DataFrame) -> pd.Series[float]:
    """Return the payload divided by the completion time of each flow."""
    return flows["size_bytes"] * 8e9 / flows["fct_ns"]


def _per_qp(flows: pd.DataFrame, column: str) -> int:
    """Return the total, over queue pairs, of a column whose values accumulate within a queue pair."""
    return int(flows.groupby("qp")[column].max().sum())


def _total(recording: Recording, column: str) -> int:
    return int(recording.pfc_stats[column].sum())


def performance(recording: Recording) -> dict[str, Any]:
    """Return the run's cost on this machine."""
    # Counts are cumulative for a queue pair, so those of its last message are the totals.
    delivered = sum({r.qp: r.columns["packets_sent"] - r.columns["retransmitted"] for r in recording.flows}.values())
    return {
        "set_up_cpu_s": recording.set_up_s,
        "run_cpu_s": recording.cpu_s,
        "events": recording.events,
        "data_packets": delivered,
        "cpu_us_per_data_packet": recording.cpu_s * 1e6 / delivered if delivered else None,
        "peak_memory_bytes": recording.peak_memory_bytes,
    }


def bottleneck(run: Run, recording: Recording, flows: pd.DataFrame) -> dict[str, Any] | None:
    """Return the busiest link to a host: its name, utilisation and queue.

    Utilisation is the transmission time of the flows' packets, without ACKs of other flows, divided
    by the time in use. The time in use lasts from the first byte on the link to the last, without
    times at which there was no flow.
    """
    wire_bytes = {r.qp: r.delivered_wire_bytes for r in recording.flows}
    busiest: dict[str, Any] | None = None
    stats = recording.port_stats
    row_of = {
        (recording.node_names[node], int(port)): row
        for row, (node, port) in enumerate(zip(stats["node"], stats["port"], strict=True))
    }
    members = {str(group.address): [run.topology.hosts[host].name for host in group.members] for group in run.groups}
    if members:
        flows = flows.assign(destination=flows["destination"].map(lambda name: members.get(name, [name])))
        flows = flows.explode("destination")
    senders: dict[str, list[_ArrivingFlow]] = {}
    ends_ns = flows["delivered_ns"].where(flows["delivered_ns"] >= 0, recording.end_ns)
    columns = (flows["destination"], flows["source"], flows["qp"], flows["size_bytes"], flows["start_ns"], ends_ns)
    for destination, *rest in zip(*(column.tolist() for column in columns), strict=True):
        senders.setdefault(destination, []).append(_ArrivingFlow(*rest))
    for name, arriving in sorted(senders.items()):
        there = run.topology.uplink(run.topology.host_by_name[name])
        work_ns = _union_ns(_spans(run, arriving, name, there))
        arriving_bytes = sum(wire_bytes[qp] for qp in {flow.qp for flow in arriving})
        busy = arriving_bytes * 8e9 / there.rate_bps / work_ns if work_ns else 0.0
        if busiest is None or busy > busiest["busy"]:
            busiest = {"switch": there.node, "port": there.port, "leads_to": name, "busy": busy}
    if busiest is None:
        return None
    most = int(stats["max_bytes"][row_of[busiest["switch"], busiest["port"]]])
    own = flows[flows["destination"] == busiest["leads_to"]]
    samples = _samples(run, recording, busiest["switch"], busiest["port"], own)
    return {
        **busiest,
        "queue_max_bytes": most if most >= 0 else None,  # -1: unknown
        "queue_mean_bytes": float(samples.mean()) if len(samples) else None,
        "queue_p99_bytes": float(np.percentile(samples, 99)) if len(samples) else None,
    }


def congestion(run: Run, recording: Recording, flows: pd.DataFrame) -> dict[str, Any]:
    """Return all switch ports whose queue delayed packets, and the most congested ones by name.

    A port is congested if its longest queue takes over a tenth of the base RTT to send. The worst
    ports are those with the longest queues. `utilisation` is the share of the time from the first
    start of a flow to the last delivery in which the port was sending; means and percentiles are
    over that time, too.
    """
    stats, over_ns = recording.port_stats, _CONGESTED * run.base_rtt_ns()
    if not len(flows):
        return {"congested": 0, "over_ns": over_ns, "worst": []}
    start_ns = int(flows["start_ns"].min())
    end_ns = int(flows["delivered_ns"].max()) if (flows["delivered_ns"] >= 0).all() else recording.end_ns
    congested_ports = []
    for row, (node, port, max_bytes) in enumerate(
        zip(stats["node"].tolist(), stats["port"].tolist(), stats["max_bytes"].tolist(), strict=True)
    ):
        name = recording.node_names[node]
        there = run.topology.ports[name].get(port) if name in run.topology.switch_by_name else None
        if there is None:
            continue
        # -1: unknown
        most_bytes = max_bytes if max_bytes >= 0 else int(_samples(run, recording, name, port, flows).max(initial=0))
        congested_ports.append((-most_bytes * 8e9 / there.rate_bps, name, port, row, most_bytes))
    congested = sum(-negative_ns > over_ns for negative_ns, *_ in congested_ports)
    worst = []
    for _, name, port, row, most_bytes in sorted(congested_ports)[:_WORST]:
        there = run.topology.ports[name][port]
        samples = _samples(run, recording, name, port, flows)
        worst.append(
            {
                "switch": name,
                "port": port,
                "leads_to": there.node,
                "utilisation": min(1.0, int(stats["busy_ns"][row]) / max(end_ns - start_ns, 1)),
                "queue_max_bytes": most_bytes,
                "queue_mean_bytes": float(samples.mean()) if len(samples) else None,
                "queue_p99_bytes": float(np.percentile(samples, 99)) if len(samples) else None,
                "waited_ns": most_bytes * 8e9 / there.rate_bps,
                "dropped": sum(int(stats[reason][row]) for reason in stats if _is_reason(reason)),
                "paused_ns": _paused_ns(recording, int(stats["node"][row]), port),
            }
        )
    return {"congested": congested, "over_ns": over_ns, "worst": worst}


def _is_reason(column: str) -> bool:
    return column.startswith(_REASONS) and column != "drop_bytes"


def _paused_ns(recording: Recording, node: int, port: int) -> int:
    """Return the total time that the priorities of a port were paused."""
    pfc = recording.pfc_stats
    return int(pfc["paused_ns"][(pfc["node"] == node) & (pfc["port"] == port)].sum())


class _ArrivingFlow(NamedTuple):
    """Flow to a host.

    `end_ns` is its delivery, or the end of the run.
    """

    source: str
    qp: int
    size_bytes: int
    start_ns: int
    end_ns: int


def _spans(
    run: Run, arriving: Sequence[_ArrivingFlow], destination: str, last_link: Neighbour
) -> list[tuple[int, int]]:
    """Return the time span of each flow to one host on the host's link, from the first byte to the last."""
    host = run.topology.host_by_name
    mtu_bytes, latency_ns = run.scenario.nic.mtu_bytes, run.scenario.switch.latency_ns
    on_the_way: dict[tuple[str, int], int] = {}
    spans = []
    for flow in arriving:
        first = (flow.source, min(flow.size_bytes, mtu_bytes))
        if first not in on_the_way:
            before = path(run.topology, host[flow.source], host[destination])[:-1]
            on_the_way[first] = transit_ns(before, run.data_bytes - mtu_bytes + first[1], latency_ns) + latency_ns
        spans.append((flow.start_ns + on_the_way[first], flow.end_ns - last_link.delay_ns))
    return spans


def _union_ns(spans: Iterable[tuple[int, int]]) -> int:
    """Return the time during which at least one of the spans was in progress."""
    total = until = 0
    for start, end in sorted(spans):
        total += max(0, end - max(start, until))
        until = max(until, end)
    return total


def _samples(run: Run, recording: Recording, switch: str, port: int, flows: pd.DataFrame) -> Integers:
    """Return the depths of one port from the first start to the last delivery of `flows`.

    The result is empty if the port was not sampled. Samples that were left out because the network
    was empty count as 0.
    """
    queues = recording.series["queues"]
    depths: Integers = queues.at(switch=switch, port=port)
    if not len(depths):
        return depths
    end = flows["delivered_ns"].max() if (flows["delivered_ns"] >= 0).all() else recording.end_ns
    sampled: Integers = queues.times_ns
    meant = (sampled >= int(flows["start_ns"].min())) & (sampled <= int(end))
    left_out = np.diff(sampled[meant]) // run.scenario.record.queue_interval_ns - 1
    empty = np.zeros(int(left_out[left_out > 0].sum()), np.int64)
    return np.concatenate([depths[meant], empty]) if len(empty) else depths[meant]


def delivered(summary: Mapping[str, Any]) -> str:
    """Return the numbers of delivered flows and of answered operations of collectives as text.

    If fewer were acknowledged than delivered, the text has both numbers and the drops.
    """
    operations = summary["workload"].get("operations")
    parts = []
    if summary["flows"] or operations is None:
        arrived, acknowledged = summary["flows_delivered"], _acknowledged(summary)
        apart = f" delivered, {acknowledged} acknowledged" if acknowledged != arrived else ""
        parts.append(f"{arrived}/{summary['flows']} flows{apart}")
    if operations is not None:
        parts.append(f"{operations:,}/{operations + summary['workload']['unanswered']:,} operations")
    if _acknowledged(summary) < summary["flows"] and (lost := dropped(summary["drops"], summary["program"])):
        parts.append(f"dropped: {lost}")
    return ", ".join(parts)


def _acknowledged(summary: Mapping[str, Any]) -> int:
    """Return the number of acknowledged flows; older results have only that of delivered ones."""
    acknowledged = summary.get("flows_acknowledged")
    return int(summary["flows_delivered"] if acknowledged is None else acknowledged)


def dropped(drops: Mapping[str, int], program: str) -> str:
    """Return the number of dropped packets by reason, the most frequent first; empty without drops.

    Drops for which the program has no name are listed under the name of the program.
    """
    unnamed = {f"program_{where}": f"by {program} in its {where}" for where in program_ledger.PIPELINES}
    parts = sorted(((count, unnamed.get(reason, reason)) for reason, count in drops.items() if count > 0), reverse=True)
    return ", ".join(f"{count:,} {reason}" for count, reason in parts)


def unfinished(summary: Mapping[str, Any]) -> str | None:
    """Return a description of flows and collectives that did not finish; None if all did."""
    left = []
    if summary["flows_delivered"] < summary["flows"]:
        left.append(f"{summary['flows_delivered']} of {summary['flows']} flows done")
    elif _acknowledged(summary) < summary["flows"]:
        left.append(f"{_acknowledged(summary)} of {summary['flows']} flows acknowledged, all delivered")
    if hosts := summary["workload"].get("unfinished_hosts"):
        left.append(f"the collectives of {hosts} hosts not over")
    if not left:
        return None
    return f"{', '.join(left)} when the run ended at {summary['end_ns'] / 1e3:,.0f} µs ({summary['ended']})"


def not_kept_up(summary: Mapping[str, Any]) -> str | None:
    """Return the warning that a run in real time was late; None if it kept up or the world is virtual."""
    fidelity = summary.get("fidelity")
    if fidelity is None or fidelity["kept_up"]:
        return None
    return (
        f"the machine did not keep up, so that times cannot be trusted: {'; '.join(fidelity['reasons'])}; "
        f"use --dilation {fidelity['dilation_to_use']}"
    )


def disagreement(agreement: Mapping[str, Any]) -> str:
    """Return the difference between a run in real time and the virtual run of the same seed."""
    return f"{agreement['quantity']} {agreement['difference']:+.1%} against the virtual world's"


def left_behind(summary: Mapping[str, Any]) -> str | None:
    """Return a description of flow state in switches and NICs that remained after a link was down.

    None if there is none.
    """
    left = summary.get("residue")
    if left is None:
        return None
    return f"a link was down, and flows that have ended left {_first([f'{where}: {n}' for where, n in left.items()])}"


def checks(run: Run, recording: Recording, flows: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the checks that must hold in every run, whatever the protocol."""
    conservation = recording.conservation
    left = int((flows["completed_ns"] < 0).sum())
    at_work = recording.workload.get("unfinished_hosts", 0)
    wished = recording.ended == "limit" and run.scenario.limit_ns is not None
    failed = recording.nic_totals["retries_exceeded"]
    arrived, acknowledged = int((flows["delivered_ns"] >= 0).sum()), len(flows) - left
    details = f" ({arrived} delivered, {acknowledged} acknowledged)" if arrived > acknowledged else ""
    if left and run.scenario.groups:
        by_name = {name: int((own["completed_ns"] < 0).sum()) for name, own in _groups(run, flows).items()}
        details += f" ({', '.join(f'{name}: {count}' for name, count in by_name.items() if count)})"
    if left and (drops := dropped(_drops(conservation), run.program_names)):
        details += f" (dropped: {drops})"
    lost, miscounted = conservation["balance"], program_ledger.miscounted(conservation)
    malformed = recording.nic_totals["malformed"] + recording.nic_totals["misdelivered"]
    return [
        {
            "name": "packets are conserved",
            "holds": lost == 0 and conservation["pfc_balance"] == 0 and not miscounted,
            "detail": "; ".join(
                filter(None, [_balance(conservation), f"{lost} unaccounted for", _pfc(conservation), miscounted])
            ),
        },
        {
            "name": "flows finish",
            "holds": left == at_work == 0 or (wished and not failed),
            "detail": (
                f"{left} of {len(flows)} flows did not finish{details}"
                f"{f', nor did the collectives of {at_work} hosts' * (at_work > 0)}; "
                f"{f'{failed} queue pairs in error, their retries used up; ' * (failed > 0)}"
                f"the run ended: {recording.ended}{_stuck(run, recording)}"
            ),
        },
        {
            "name": "assertions of the P4 program hold",
            "holds": not recording.failed_asserts,
            "detail": _failed(recording.failed_asserts),
        },
        {
            "name": "collective results",
            "holds": not (wrong := recording.workload.get("mistakes", [])),
            "detail": "; ".join(wrong) or "correct",
        },
        {
            "name": "malformed or misdelivered frames",
            "holds": malformed == 0,
            "detail": str(malformed),
        },
        *_residue(run, recording),
    ]


def _stuck(run: Run, recording: Recording) -> str:
    """Return the first few stuck objects of each kind in a run that ended without progress."""
    if recording.ended == "deadlock":
        cycle = next(event["queues"] for event in recording.pfc_events if event["kind"] == "deadlock")
        queues = [f"{node} port {port} priority {priority}" for node, port, priority in cycle]
        return f"; these wait for each other: {_first(queues)}"
    if recording.still_since_ns is None:
        return ""
    hosts = run.topology.hosts
    flows = [
        f"flow {record.flow.number} from {hosts[record.flow.source].name} to {hosts[record.flow.destination].name} "
        f"({record.columns['packets_sent']} packets sent, {record.columns['retransmitted']} of them again)"
        for record in recording.flows
        if record.completed_ns < 0
    ]
    stats = recording.port_stats
    rows = zip(stats["depth_bytes"].tolist(), stats["node"].tolist(), stats["port"].tolist(), strict=True)
    waiting = sorted(((depth, node, port) for depth, node, port in rows if depth), reverse=True)
    queues = [f"{depth} bytes at {recording.node_names[node]} port {port}" for depth, node, port in waiting]
    examples = [_first(things) for things in (flows, queues) if things]
    return "; ".join([f": nothing has moved since {recording.still_since_ns / 1e3:,.0f} µs", *examples])


def _first(things: Sequence[str]) -> str:
    more = len(things) - _MOST_LISTED
    return ", ".join([*things[:_MOST_LISTED], *([f"and {more} more"] if more > 0 else [])])


def _residue(run: Run, recording: Recording) -> list[dict[str, Any]]:
    registers = run.zero_when_done
    return [residue_check(registers, recording.residue, _was_down(run))] if registers else []


def _was_down(run: Run) -> bool:
    return any(change.up is False for change in run.link_changes())


def residue_check(registers: Sequence[str], residue: Mapping[str, int] | None, was_down: bool) -> dict[str, Any]:
    """Return the check that the state of flows is gone.

    A link that `was_down` may have lost the message that removes it.
    """
    detail = "not looked at: flows were not over, or the switches do not tell" if residue is None else "0 everywhere"
    if residue:
        detail = ", ".join(f"{where}: {left}" for where, left in residue.items())
    return {
        "name": f"{', '.join(registers)}: nothing is left of flows that have ended",
        "holds": not residue or was_down,
        "detail": detail,
    }


def _balance(ledger: Mapping[str, int]) -> str:
    """Return the ledger as text; rare terms only appear if they are not 0."""
    came = [f"{ledger['entered']} entered"]
    came += [f"{ledger['copied']} copied"] if ledger["copied"] else []
    absorbed, made = (program_ledger.total(ledger, what) for what in (program_ledger.ABSORBED, program_ledger.MADE))
    gone = [f"{ledger['delivered']} delivered"]
    gone += [f"{absorbed} absorbed, {made} made of them"] if absorbed else []
    gone += [f"{program_ledger.total(ledger, program_ledger.DROPPED)} dropped with a reason"]
    gone += [f"{ledger['queued'] + ledger['on_wire']} in flight"]
    return ", ".join([*came, *gone])


def _pfc(ledger: Mapping[str, int]) -> str:
    """Return the error in the count of PFC frames, none of which may be dropped; "" if there is none."""
    balance = ledger["pfc_balance"]
    if balance < 0:
        return f"{-balance} more PFC frames arrived than were sent"
    return f"{balance} PFC frames did not arrive" if balance else ""


def _failed(asserts: Mapping[str, tuple[int, str]]) -> str:
    if not asserts:
        return "none failed"
    switch, (_, first) = next(iter(asserts.items()))
    return f"{sum(count for count, _ in asserts.values())} failed, the first in {switch}: {first}"
