"""Random networks under random loads: every loss has a reason, and equal runs have equal results."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.p4switch.fabric.stub import GBPS, Host, balance, examples, frame, ip, load

_RELEASE, _STOP = 2 << 8, 3 << 8  # codes by which the test's pipeline releases or stops a queue


@dataclass(frozen=True)
class Plan:
    """Hosts on a random tree of switches, their frames, and changes during the run."""

    switches: tuple[int, ...]  # parent of each switch but the first
    homes: tuple[int, ...]  # switch of each host
    rates: tuple[int, ...]
    delays: tuple[int, ...]
    loads: tuple[tuple[int, int, int, int, int, int], ...]  # from, to, time, length, priority, queue
    config: dict[str, Any]
    pfc: dict[str, Any] | None
    changes: tuple[tuple[int, int, int], ...]  # time, link, kind
    multicast: bool


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    parents = [draw(st.integers(0, i)) for i in range(draw(st.integers(0, 4)))]
    homes = draw(st.lists(st.integers(0, len(parents)), min_size=2, max_size=6))
    links = len(parents) + len(homes)
    host = st.integers(0, len(homes) - 1)
    times = st.integers(0, 20_000)
    queues = st.sampled_from([0, 7, 9, 64, 127])
    if draw(st.booleans()):
        queues = st.one_of(queues, st.sampled_from([_RELEASE, _STOP, _STOP | 1, _STOP | 9, _RELEASE | 9, _STOP | 127]))
    config: dict[str, Any] = {
        "scheduler": draw(st.sampled_from(["fifo", "round_robin"])),
        "latency_ns": draw(st.sampled_from([0, 400])),
        "queue_bytes": draw(st.sampled_from([None, 0, 3000, 20_000])),
        "queue_packets": draw(st.sampled_from([None, 1, 10])),
        "port_bytes": draw(st.sampled_from([None, 10_000])),
        "buffer_bytes": draw(st.sampled_from([None, 8000, 60_000])),
    }
    if config["buffer_bytes"] and draw(st.booleans()):
        config["alpha"] = draw(st.sampled_from([0.25, 1.0, 8.0]))
    pfc = None
    if draw(st.booleans()):
        pfc = {"priorities": [1, 3], "xon_gap_bytes": 500, "quanta": draw(st.sampled_from([3, 100, 65535])),
               "reaction_ns": draw(st.sampled_from([0, 250]))}
        if config["buffer_bytes"] and draw(st.booleans()):
            pfc["alpha"] = 0.5
        else:
            pfc["xoff_bytes"] = draw(st.sampled_from([0, 1500, 10_000]))
    return Plan(
        tuple(parents), tuple(homes),
        tuple(draw(st.sampled_from([GBPS, 7 * GBPS + 1, 100 * GBPS])) for _ in range(links)),
        tuple(draw(st.sampled_from([0, 3, 600, 20_000])) for _ in range(links)),
        tuple(draw(st.lists(st.tuples(host, host, times, st.integers(60, 3000), st.integers(0, 7), queues),
                            max_size=150))),
        config, pfc,
        tuple(draw(st.lists(st.tuples(times, st.integers(0, links - 1), st.integers(0, 3)), max_size=6))),
        draw(st.booleans()),
    )


def build(plan: Plan, independent: bool = False) -> tuple[Any, list[Host]]:
    engine = load()
    network = engine.Fabric(independent_hosts=independent)
    n, group = len(plan.homes), 99
    hosts = [
        Host([
            (time, frame(a, group if plan.multicast and length % 5 == 0 else b, length, priority, mark=i, queue=queue))
            for i, (a, b, time, length, priority, queue) in enumerate(plan.loads) if a == h
        ])
        for h in range(n)
    ]
    for host in hosts:
        network.add_host(host)
    for a in range(n):
        for b in (*range(n), group):
            network.flow(ip(a), ip(b), 7)  # without this, tags follow the order in which flows are first seen
    # Switch s: hosts at their own numbers, its parent at port 100, child c at port 101 + c.
    parents = (-1, *plan.switches)

    def path(switch: int) -> list[int]:
        return [switch, *path(parents[switch])] if switch >= 0 else []

    def port(switch: int, host: int) -> int:
        home = path(plan.homes[host])
        if home[0] == switch:
            return host
        return 101 + home[home.index(switch) - 1] if switch in home else 100

    for s in range(len(parents)):
        routes = {h: [port(s, h)] for h in range(n)} | {group: [h for h in range(n) if plan.homes[h] == s] or [77]}
        node = network.add_switch(engine.Switch(routes), **plan.config)
        if plan.pfc:
            network.set_pfc(node, **plan.pfc)
    for i, (rate_bps, delay_ns) in enumerate(zip(plan.rates, plan.delays, strict=True)):
        if i < n:
            network.connect(i, 0, n + plan.homes[i], i, rate_bps=rate_bps, delay_ns=delay_ns)
        else:
            child = i - n + 1
            network.connect(n + child, 100, n + parents[child], 101 + child, rate_bps=rate_bps, delay_ns=delay_ns)
    for time, link, kind in plan.changes:
        network.at(time, lambda now, link=link, kind=kind: (
            network.set_link_up(link, bool(kind)) if kind < 2 else network.set_link_rate(link, kind * GBPS)))
    return network, hosts


@settings(deadline=None, max_examples=examples(60))
@given(plans(), st.integers(1, 5000))
def test_nothing_is_lost_without_a_reason(plan: Plan, step: int) -> None:
    network, hosts = build(plan)
    status = "until"
    for _ in range(20):
        status = network.run(network.now_ns + step)
        balance(network)
    assert_links_are_summed_up(network)
    if status != "deadlock":
        status = network.run(30_000_000, max_events=200_000)
    terms = balance(network)
    assert terms["entered"] == sum(host.next for host in hosts)
    assert terms["delivered"] == sum(len(host.got) for host in hosts)
    if status == "idle":
        assert terms["entered"] == len(plan.loads)
        assert terms["on_wire"] == terms["pfc_on_wire"] == 0
        assert terms["queued"] == 0 or any(queue >= _STOP for *_, queue in plan.loads)


def assert_links_are_summed_up(network: Any) -> None:
    """Check that the short tables agree with the long ones."""
    links, ports, pfc = (pd.DataFrame({name: np.frombuffer(column, np.int64) for name, column in table.items()})
                         for table in (network.link_counters(), network.port_stats(), network.pfc_stats()))
    ports = ports.query("port >= 0").reset_index(drop=True)
    same = ["node", "port", "tx_bytes", "busy_ns", "depth_bytes"]
    assert links[same].equals(ports[same])
    reasons = [name for name in map(str, ports) if name.startswith("drop_") and name != "drop_bytes"]
    assert links["dropped"].tolist() == ports[reasons].sum(axis=1).tolist()
    paused_ns = pfc.groupby(["node", "port"])["paused_ns"].sum()
    assert links.set_index(["node", "port"])["paused_ns"].sub(paused_ns, fill_value=0).eq(0).all()


def results(network: Any, hosts: list[Host]) -> list[Any]:
    return [network.trace_records(), network.port_stats(), network.queue_stats(), network.pfc_stats(),
            network.flow_stats(), network.buffer_stats(), network.conservation(), network.now_ns,
            [host.got for host in hosts]]


@settings(deadline=None, max_examples=examples(60))
@given(plans(), st.integers(1, 3000), st.booleans(), st.integers(1, 500))
def test_windows_leave_no_trace(plan: Plan, cut: int, independent: bool, events: int) -> None:
    """Equal runs are equal, even with samples, callbacks and slices that divide windows differently.

    They are also equal if hosts run one after the other instead of in order of time.
    """
    logs = []
    for i in range(3):
        network, hosts = build(plan, independent=independent and i == 2)
        network.watch_pfc(stop_on_deadlock=False)
        network.trace(0)
        end = 300_000
        if i == 2:
            network.sample(cut)
            network.at(3 * cut + 1, lambda now: None)
            while network.run(end, max_events=events) == "events":
                pass
        else:
            network.run(end)
        logs.append(results(network, hosts))
    assert logs[0] == logs[1], "run again"
    for one, other in zip(logs[0], logs[2], strict=True):
        assert one == other, "windows cut"
