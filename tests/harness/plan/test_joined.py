"""A network in which some hosts cannot reach each other is refused before the run, unless events cause it later."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import topologies
from harness.plan.resolve import plan
from harness.plan.run import Run
from harness.plan.scenario import check
from harness.worlds.virtual import VirtualWorld
from p4switch.errors import UserError
from topologies import Topology
from topologies.model import Builder


def islands(joined: bool) -> Topology:
    """Two switches with two hosts each."""
    builder = Builder("islands")
    switches = [builder.switch(name, 0) for name in ("s0", "s1")]
    for i in range(4):
        builder.host(f"10.{i // 2}.0.{2 + i % 2}", switches[i // 2], 100 * 10**9, 1000)
    if joined:
        builder.link(switches[0], switches[1], 100 * 10**9, 1000)
    return builder.build({})


def planned(monkeypatch: pytest.MonkeyPatch, topology: Topology, **more: Any) -> list[Run]:
    monkeypatch.setattr(topologies, "build", lambda name, values: topology)
    workload = {"name": "incast", "senders": 1, "size_bytes": 1000}
    network = {"name": "single-switch", "hosts": 4}  # what is built instead has as many
    tables = {"cc": "none", "topology": network, "workload": workload, "limit_ns": 20_000, **more}
    return plan("x", check(tables), Path())


def test_hosts_that_cannot_reach_each_other_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match=r"^topology 'islands': no path from h0-0-2 to h1-0-2; expected a network that"):
        planned(monkeypatch, islands(joined=False))


def test_a_link_may_go_down_later(monkeypatch: pytest.MonkeyPatch) -> None:
    events = [{"time_ns": 15_000, "link": ["s0", "s1"], "up": False}]
    (run,) = planned(monkeypatch, islands(joined=True), events=events)
    assert VirtualWorld(run).run().ended == "done"
