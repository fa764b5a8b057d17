"""Progress of a run, measured by the bytes acknowledged, long before a flow ends."""

from __future__ import annotations

import os
from multiprocessing import Pipe
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from harness.columns.flows import usual
from harness.measure.flow_record import Sent
from harness.workloads import Flow, Traffic
from harness.worlds import virtual
from harness.worlds.host_session import Completed, Delivered
from harness.worlds.mininet.coordinator import Coordinator
from harness.worlds.mininet.messages import Advanced
from harness.worlds.progress import DoneShare
from harness.worlds.virtual import VirtualWorld
from tests.harness.worlds.test_parallel import planned

Told = list[tuple[float, int, int, int]]


def told(monkeypatch: pytest.MonkeyPatch, workers: int = 1, **tables: Any) -> Told:
    """Return the progress of a run that reports it as often as possible."""
    monkeypatch.setattr(virtual, "_LOOK_EVENTS", 200)
    monkeypatch.setattr(virtual, "_TELL_EVERY_S", 0)
    monkeypatch.setattr(virtual, "_TELL_EVERY_TIMES", 0)
    calls: Told = []
    assert VirtualWorld(planned(**tables), workers=workers).run(lambda *call: calls.append(call)).ended == "done"
    return calls


@pytest.mark.parametrize("workers", [1, 2])
def test_the_share_grows_before_the_first_flow_is_done(monkeypatch: pytest.MonkeyPatch, workers: int) -> None:
    workload = {"name": "incast", "senders": 4, "starts_together": 4, "size_bytes": 200_000}
    calls = told(monkeypatch, workers, workload=workload)
    shares = [share for share, *_ in calls]
    assert shares == sorted(shares)
    assert len({share for share, done, *_ in calls if not done}) > 3
    assert max(share for share, done, *_ in calls if not done) > 0.5
    assert 0.9 < shares[-1] <= 1
    assert {known for _, _, known, _ in calls} == {4}


def test_of_several_workers_one_tells(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(virtual, "_LOOK_EVENTS", 200)
    monkeypatch.setattr(virtual, "_TELL_EVERY_S", 0)
    told_by = tmp_path / "told_by"

    def tell(*_: object) -> None:
        with told_by.open("a") as file:
            file.write(f"{os.getpid()}\n")

    workload = {"name": "incast", "senders": 4, "starts_together": 4, "size_bytes": 20_000}
    assert VirtualWorld(planned(workload=workload), workers=3).run(tell).ended == "done"
    assert set(told_by.read_text().split()) == {str(os.getpid())}


def test_the_share_of_collectives_is_that_of_their_operations(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = ("all_reduce", "all_gather")
    workload = {"name": "collectives", "applications": [{"kind": kind, "operations": 32, "hosts": 3} for kind in kinds]}
    lossless = {"pfc": {"enabled": True, "priorities": [3, 4]}}
    calls = told(monkeypatch, workload=workload, cc="3cpo", switch=lossless, limit_ns=20_000_000)
    shares = [share for share, *_ in calls]
    assert shares == sorted(shares)
    assert len({share for share, done, *_ in calls if not done}) > 3
    assert 0.9 < shares[-1] <= 1


def test_what_ends_by_the_clock_is_done_by_the_clock() -> None:
    streams = Traffic([Flow(0, 1, 10**9, 0, stop_ns=400), Flow(0, 1, 10**9, 0, stop_ns=800)])
    assert DoneShare(streams, 10_000).at(200, 10**6, 0, 2) == 0.25
    beside = Traffic([Flow(0, 1, 10**9, 0, stop_ns=400), Flow(0, 1, 1000, 0)])
    assert DoneShare(beside, 10_000).at(200, 500, 1, 2) == 0.5  # of flows: nobody knows how much they will send
    assert DoneShare(beside, 10_000).at(9000, 500, 1, 2) == 0.9


def test_a_workload_that_cannot_tell_is_done_as_its_flows_are() -> None:
    class Endless(Traffic):
        def on_delivered(self, flow: Flow, now_ns: int) -> list[Flow]:
            return []

    assert DoneShare(Endless([Flow(0, 1, 1000, 0)]), 10_000).at(10, 900, 1, 4) == 0.25


def test_hosts_of_real_frames_tell_how_far_they_are(tmp_path: Path) -> None:
    """One of the two has sent 300 of 1000 bytes when the coordinator is first asked."""
    launcher = SimpleNamespace(check=lambda: None, connection=Pipe()[0])
    flow = Flow(0, 1, 1000, 0)
    addresses = "10.0.0.2", "10.0.0.3"
    coordinator = Coordinator(["a", "b"], Traffic([flow]), lambda *_: addresses, cast(Any, launcher), tmp_path, usual())
    ends = [Pipe(), Pipe()]
    coordinator._agents = [near for near, _ in ends]
    coordinator._index_of = {near: index for index, (near, _) in enumerate(ends)}
    (_, a), (_, b) = ends
    a.send(Advanced(300))
    calls: Told = []

    def tell(*call: Any) -> None:
        calls.append(call)
        if len(calls) == 1:
            b.send(Delivered(2, 0, 50, {"marked_received": 0}))
            a.send(Completed(0, Sent(1000, 0, 60, {})))

    try:
        coordinator.run(0, 10**12, 10**18, 60, tell)
    finally:
        coordinator.close()
    assert calls[0][:3] == (0.3, 0, 1)
