"""Few events pass flows to their hosts, ahead of time if hosts are independent, and results do not depend on this."""

from __future__ import annotations

import pickle
from dataclasses import astuple
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from harness.measure.flow_record import Sent
from harness.measure.recording import Recording
from harness.plan.resolve import plan
from harness.plan.scenario import check
from harness.workloads import Flow, Traffic, allreduce, alltoall
from harness.workloads.schedule import ScheduleTraffic
from harness.worlds import starts
from harness.worlds.host_session import Completed, Post
from harness.worlds.session import Session
from harness.worlds.turns import Turns
from harness.worlds.virtual import VirtualWorld
from host_agents.timers import NEVER
from p4switch.fabric import Fabric


def run(topology: dict[str, Any], cc: str, rate_interval_ns: int) -> Recording:
    tables = {
        "cc": cc,
        "topology": {"link_rate_bps": 40e9, "link_delay_ns": 700, **topology},
        "workload": {"name": "poisson", "load": 0.6, "duration_ns": 500_000, "distribution": "hadoop"},
        "record": {"queue_interval_ns": 7_000, "rate_interval_ns": rate_interval_ns},
        "limit_ns": 20_000_000,
    }
    return VirtualWorld(plan("x", check(tables), Path())[0]).run()


@pytest.mark.parametrize(
    ("topology", "cc"),
    [
        ({"name": "leaf-spine", "leaves": 2, "spines": 2, "hosts_per_leaf": 4}, "dcqcn"),
        ({"name": "single-switch", "hosts": 6}, "hpcc"),
    ],
)
def test_flows_are_the_same_however_far_ahead_hosts_get_them(
    monkeypatch: pytest.MonkeyPatch, topology: dict[str, Any], cc: str
) -> None:
    ahead = run(topology, cc, 50_001)
    assert starts._HAND_OVER_NS > 0
    monkeypatch.setattr(starts, "_HAND_OVER_NS", 0)
    at_once = run(topology, cc, 50_001)
    assert len(ahead.flows) > 50
    starts_ns = [record.flow.start_ns for record in ahead.flows]
    assert min(np.diff(sorted(starts_ns))) < 20_000, "some were handed over"
    assert [astuple(record) for record in ahead.flows] == [astuple(record) for record in at_once.flows]
    for name in ("port_stats", "queue_stats", "pfc_stats"):
        for column, values in getattr(ahead, name).items():
            assert np.array_equal(values, getattr(at_once, name)[column]), (name, column)
    assert ahead.series["queues"].table().equals(at_once.series["queues"].table())
    assert ahead.tables["rates"].equals(at_once.tables["rates"])
    assert ahead.conservation == at_once.conservation


TRAINING = {"name": "training", "data": 2, "tensor": 4, "pipeline": 2, "micro_batches": 2}
FOLLOWING = {
    "training": TRAINING,
    "windows": {"name": "alltoall", "size_bytes": 20_000, "window": 3},
    "ring": {"name": "allreduce", "size_bytes": 100_000, "order": "random"},
}


def followed(workload: dict[str, Any], cc: str = "hpcc", k: int = 4, **tables: Any) -> Recording:
    """Return a run on a fat-tree, with flows that start after others have finished."""
    scenario = {
        "cc": cc,
        "topology": {"name": "fat-tree", "k": k, "link_rate_bps": 400e9, "link_delay_ns": 500},
        "nic": {"mtu_bytes": 4096},
        "workload": workload,
        "record": {"queue_interval_ns": 7_000, "rate_interval_ns": 25_000},
        **tables,
    }
    return VirtualWorld(plan("x", check(scenario), Path())[0]).run()


def not_local(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make hosts run in order of time, as they do where a report may start flows at any host."""
    for traffic in (ScheduleTraffic, alltoall._WindowedAllToAll, allreduce._Ring):
        monkeypatch.setattr(traffic, "local", False)


@pytest.mark.parametrize("local", [True, False])
def test_starts_are_looked_at_in_proportion_to_flows(monkeypatch: pytest.MonkeyPatch, local: bool) -> None:
    """The flows of a training step become known in another order than that of their starts."""
    looked_ns: list[int] = []
    start_due = Session.start_due

    def counted(session: Session, until_ns: int) -> None:
        looked_ns.append(until_ns)
        start_due(session, until_ns)

    monkeypatch.setattr(Session, "start_due", counted)
    if not local:
        not_local(monkeypatch)
    recording = followed(TRAINING)
    assert recording.ended == "done"
    starts_ns = sorted({record.flow.start_ns for record in recording.flows})
    assert len(starts_ns) > 100
    assert set(starts_ns) <= set(looked_ns)
    assert len(looked_ns) <= len(recording.flows) * 3 if local else looked_ns == starts_ns


@pytest.mark.parametrize("workload", FOLLOWING)
@pytest.mark.parametrize("cc", ["hpcc", "dcqcn", "swift"])
def test_hosts_that_take_turns_do_what_hosts_do_in_order_of_time(
    monkeypatch: pytest.MonkeyPatch, workload: str, cc: str
) -> None:
    took_turns = followed(FOLLOWING[workload], cc)
    not_local(monkeypatch)
    in_order = followed(FOLLOWING[workload], cc)
    assert took_turns.ended == "done"
    assert took_turns.end_ns == in_order.end_ns
    assert [astuple(record) for record in took_turns.flows] == [astuple(record) for record in in_order.flows]
    for name in ("port_stats", "queue_stats"):
        for column, values in getattr(took_turns, name).items():
            assert np.array_equal(values, getattr(in_order, name)[column]), (name, column)
    assert took_turns.series["queues"].table().equals(in_order.series["queues"].table())
    for name in ("rates", "links"):
        assert took_turns.tables[name].equals(in_order.tables[name])
    assert took_turns.workload == in_order.workload


def test_traffic_that_is_not_local_as_it_says_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def elsewhere(traffic: Traffic, flow: Flow, now_ns: int) -> tuple[Flow, ...]:
        return (Flow(flow.destination, flow.source, 1000, now_ns),)

    monkeypatch.setattr(alltoall._WindowedAllToAll, "on_completed", elsewhere)
    with pytest.raises(RuntimeError, match="the traffic declares that this host starts flows only here"):
        followed(FOLLOWING["windows"])


@pytest.mark.parametrize("workload", FOLLOWING)
def test_workers_meet_seldom_while_hosts_take_turns(monkeypatch: pytest.MonkeyPatch, workload: str) -> None:
    """Hosts take turns without other workers, except where a flow needs a connection of its own."""
    passes = {True: 0, False: 0}
    settle = Turns.settle

    def counted(turns: Turns, end_ns: int, again: bool) -> int | None:
        passes[again] += 1
        return settle(turns, end_ns, again)

    monkeypatch.setattr(Turns, "settle", counted)
    tables = {
        "cc": "hpcc",
        "topology": {"name": "fat-tree", "k": 4, "link_rate_bps": 400e9, "link_delay_ns": 500},
        "nic": {"mtu_bytes": 4096},
        "workload": FOLLOWING[workload],
    }
    recording = VirtualWorld(plan("x", check(tables), Path())[0], workers=2).run()
    assert recording.ended == "done"
    assert passes[False] > 50
    new_connections = len({record.qp for record in recording.flows})
    assert passes[True] <= new_connections / 2, "several new connections are opened after each further meeting"


def test_a_worker_is_told_only_of_flows_to_its_hosts_and_of_new_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    """All other flows from hosts of other workers cost a worker nothing before the end of the run."""
    told: list[Flow] = []
    learn = Session.learn

    def counted(session: Session, flow: Flow, known_ns: int, host: int) -> None:
        told.append(flow)
        learn(session, flow, known_ns, host)

    monkeypatch.setattr(Session, "learn", counted)
    tables = {
        "cc": "hpcc",
        "topology": {"name": "fat-tree", "k": 4, "link_rate_bps": 400e9, "link_delay_ns": 500},
        "nic": {"mtu_bytes": 4096},
        "workload": {**TRAINING, "tensor_bytes": 9_000, "gradient_bytes": 20_000},
    }
    run = plan("x", check(tables), Path())[0]
    owners = dict.fromkeys(run.topology.ports, 1) | {host.name: host.index % 4 // 2 for host in run.topology.hosts}
    world = VirtualWorld(run, workers=2, owners=owners)
    records = world.run().flows
    theirs = [record for record in records if record.flow.source % 4 >= 2]
    to_own = sum(record.flow.destination % 4 < 2 for record in theirs)
    assert 0 < len(told) <= to_own + len({record.qp for record in theirs})


class _Fabric:
    """Fabric of several workers, all of which know every event before 10 ns."""

    def __init__(self) -> None:
        self.now_ns = 0
        self.known_ns = 10
        self.gone_on: list[tuple[int, int]] = []
        self.held: list[int] = []

    def hold(self, host: int, time_ns: int | None) -> None:
        self.held.append(host)

    def careful_from(self, time_ns: int) -> None: ...

    def finished(self, finished: bool) -> None: ...

    def turn(self, host: int, time_ns: int) -> None:
        self.now_ns = time_ns

    def go_on(self, host: int, time_ns: int | None) -> None:
        self.gone_on.append((self.now_ns, host))


class _Worker:
    """The turns of an all-to-all among three hosts at the worker of some of them; it starts at 10 ns unless given."""

    def __init__(self, *hosts: int, starts_ns: tuple[int, int, int] = (10, 10, 10)) -> None:
        self.fabric = _Fabric()
        self.told: list[bytes] = []
        traffic = alltoall._WindowedAllToAll(3, 1000, 1)
        for flow, start_ns in zip(traffic.flows, starts_ns, strict=True):
            flow.start_ns = start_ns
        self.session = Session(
            traffic, lambda *ends: ("a", "b"), self._carry, [], owns=hosts.__contains__, divided=True
        )
        self.turns = Turns(cast(Fabric, self.fabric), self.session, lambda flow: flow.start_ns + 1, self.told.append)
        self.session.begin()
        self.turns.begin()

    def _carry(self, host: int, request: object) -> None:
        if isinstance(request, Post):
            self.turns.hand_over(host)

    def completes(self, host: int, now_ns: int) -> None:
        """Make a host report that its first flow is complete."""
        self.fabric.now_ns = now_ns
        self.turns.report(host, Completed(host, Sent(1000, 10, now_ns, {})))


def test_a_frame_at_the_instant_of_a_start_does_not_keep_it_waiting() -> None:
    """Reports of the host come after the start, for which the frame is held back."""
    worker = _Worker(0, 1, 2)
    assert worker.turns.settle(20, False) is None
    assert worker.fabric.gone_on == [(10, 0), (10, 1), (10, 2)]


def test_a_worker_gives_turns_to_its_own_hosts_alone() -> None:
    worker = _Worker(0, 2)
    assert worker.turns.settle(20, False) is None
    assert worker.fabric.gone_on == [(10, 0), (10, 2)]
    assert set(worker.fabric.held) == {0, 2}
    assert [record.qp for record in worker.session.records] == [2, 3, 4]


def test_new_connections_are_numbered_alike_whichever_worker_is_ahead() -> None:
    """Hosts 0 and 1 finish at 30 and 25 ns; each worker learns first of the next flow of its own host."""
    workers = _Worker(0, 2), _Worker(1)
    for worker in workers:
        worker.turns.settle(20, False)
        worker.fabric.known_ns = 20
        worker.fabric.gone_on = []
    first, second = workers
    first.completes(0, 30)
    second.completes(1, 25)
    assert (first.turns.settle(40, False), second.turns.settle(40, False)) == (NEVER, NEVER), "both wait"
    assert first.fabric.gone_on == second.fabric.gone_on == []
    first.turns.hear(second.told)
    second.turns.hear(first.told)
    for worker in workers:
        worker.fabric.known_ns = 40
        assert worker.turns.settle(40, True) is None
    assert (first.fabric.gone_on, second.fabric.gone_on) == ([(30, 0)], [(25, 1)])
    first.session.take_over([second.session.started()])
    ends = [(r.flow.source, r.flow.destination, r.qp) for r in first.session.records]
    assert ends == [(0, 1, 2), (1, 2, 3), (2, 0, 4), (1, 0, 5), (0, 2, 6)]


def test_flows_that_start_later_have_their_place_in_the_order_while_an_earlier_one_waits() -> None:
    worker = _Worker(0, 2, starts_ns=(10, 30, 20))
    worker.fabric.known_ns = 5
    assert worker.turns.settle(40, False) == NEVER
    worker.fabric.known_ns = 40
    assert worker.turns.settle(40, True) is None
    assert worker.fabric.gone_on == [(10, 0), (20, 2)]
    assert [record.qp for record in worker.session.records] == [2, 4, 3]


def test_a_flow_that_comes_too_late_for_the_order_is_found_out() -> None:
    worker = _Worker(0, 2)
    worker.turns.settle(20, False)
    late = pickle.dumps(([(9, 1, Flow(1, 0, 1000, 9))], []))
    with pytest.raises(RuntimeError, match=r"host 1: .* at 9 ns, .* up to 10 ns: its may_report has missed a frame"):
        worker.turns.hear([late])
