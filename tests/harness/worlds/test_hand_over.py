"""Flows are handed to their hosts by few events, ahead where hosts are independent, and nothing follows from it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from harness.measure.recording import Recording
from harness.plan.resolve import plan
from harness.plan.scenario import check
from harness.workloads import Flow, Traffic, allreduce, alltoall
from harness.workloads.schedule import ScheduleTraffic
from harness.worlds import starts
from harness.worlds.host_session import Post
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
    """Return a run on a fat-tree of flows that start when others are done."""
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
    """Have hosts go in order of time among each other, as they do where flows start at any host."""
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
    with pytest.raises(RuntimeError, match="the traffic says that it is local"):
        followed(FOLLOWING["windows"])


class _Counting:
    """A fabric whose meetings are counted."""

    def __init__(self, fabric: Fabric) -> None:
        self._fabric = fabric
        self.meetings = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._fabric, name)

    def meet(self) -> int:
        self.meetings += 1
        return self._fabric.meet()


@pytest.mark.parametrize("workload", FOLLOWING)
def test_workers_meet_seldom_while_hosts_take_turns(monkeypatch: pytest.MonkeyPatch, workload: str) -> None:
    """A host that has gone on holds up others only when a frame may end a message there."""
    counting: list[_Counting] = []
    settled: list[int] = []
    begun, settle = Turns.__init__, Turns.settle

    def begin(turns: Turns, fabric: Fabric, *more: Any) -> None:
        counting.append(_Counting(fabric))
        begun(turns, cast(Fabric, counting[0]), *more)

    def counted(turns: Turns, end_ns: int) -> None:
        settled.append(end_ns)
        settle(turns, end_ns)

    monkeypatch.setattr(Turns, "__init__", begin)
    monkeypatch.setattr(Turns, "settle", counted)
    tables = {
        "cc": "hpcc",
        "topology": {"name": "fat-tree", "k": 4, "link_rate_bps": 400e9, "link_delay_ns": 500},
        "nic": {"mtu_bytes": 4096},
        "workload": FOLLOWING[workload],
    }
    recording = VirtualWorld(plan("x", check(tables), Path())[0], workers=2).run()
    assert recording.ended == "done"
    assert len(settled) > 50
    assert counting[0].meetings < 1.5 * len(settled), "more than one and a half in a window in which hosts are held"


class _Waiting:
    """A fabric of several workers, of which one host may report something at 10 ns at the earliest."""

    def __init__(self) -> None:
        self.now_ns = 0
        self.known_ns = 10
        self.meetings = 0
        self.gone_on: list[tuple[int, int]] = []
        self.held: list[int] = []

    def hold(self, host: int, time_ns: int | None) -> None:
        self.held.append(host)

    def careful_from(self, time_ns: int) -> None: ...

    def turn(self, host: int, time_ns: int) -> None:
        self.now_ns = time_ns

    def go_on(self, host: int, time_ns: int | None) -> None:
        self.gone_on.append((self.now_ns, host))

    def meet(self) -> int:
        self.meetings += 1
        assert self.meetings < 3, "workers meet for ever"
        self.known_ns = 10 if not self.gone_on else NEVER
        return self.known_ns


def settled_start(owns: Callable[[int], bool]) -> _Waiting:
    """Settle the start of an all-to-all among three hosts at 10 ns, at the worker of some of them."""
    fabric = _Waiting()
    traffic = alltoall._WindowedAllToAll(3, 1000, 1)
    for flow in traffic.flows:
        flow.start_ns = 10

    def carry(host: int, request: object) -> None:
        if isinstance(request, Post):
            turns.hand_over(host)

    session = Session(traffic, lambda *ends: ("a", "b"), carry, [], owns=owns)
    turns = Turns(cast(Fabric, fabric), session, lambda flow: 1)
    session.begin()
    turns.begin()
    turns.settle(20)
    return fabric


def test_a_frame_at_the_instant_of_a_start_does_not_keep_it_waiting() -> None:
    """Reports of the host come after the start, for which the frame is held."""
    fabric = settled_start(lambda host: True)
    assert fabric.gone_on == [(10, 0), (10, 1), (10, 2)]
    assert fabric.meetings == 1


def test_a_worker_gives_turns_to_its_own_hosts_alone() -> None:
    fabric = settled_start([True, False, True].__getitem__)
    assert fabric.gone_on == [(10, 0), (10, 2)]
    assert set(fabric.held) == {0, 2}
