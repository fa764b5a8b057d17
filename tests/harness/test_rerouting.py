"""Effects of a failure: packets are lost, the controller writes other routes, and afterwards the old ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import topologies
from control_plane import programs
from control_plane.controller import Program, Settings, SwitchSetup, switch_view
from control_plane.pipelines import pipeline
from control_plane.rerouting import Rerouting, difference
from harness.measure.recording import Recording
from harness.plan.resolve import plan
from harness.plan.run import Run
from harness.plan.scenario import check
from harness.worlds.virtual import VirtualWorld
from p4switch.p4runtime.messages import p4runtime_pb2

AFTER_NS = 30_000


def planned(*events: dict[str, Any], after_ns: int | None = AFTER_NS, **tables: Any) -> Run:
    given = {
        "cc": "dcqcn",
        "topology": {"name": "fat-tree", "k": 4},
        "workload": {"name": "permutation", "size_bytes": 1_000_000},
        "nic": {"rto_ns": 200_000},
        "limit_ns": 5_000_000,
        "events": list(events),
        **({} if after_ns is None else {"reroute_after_ns": after_ns}),
        **tables,
    }
    return plan("x", check(given), Path())[0]


def lost(recording: Recording) -> int:
    assert recording.conservation["balance"] == 0
    return recording.conservation["drop_link_down"]


DOWN = {"time_ns": 20_000, "link": ["agg0-0", "spine0"], "up": False}


def test_packets_die_until_there_are_other_routes_and_then_no_more() -> None:
    stays, rerouted = (VirtualWorld(planned(DOWN, after_ns=after_ns)).run() for after_ns in (None, AFTER_NS))
    until = VirtualWorld(planned(DOWN, limit_ns=20_000 + AFTER_NS)).run()
    assert 0 < lost(rerouted) < lost(stays)
    assert rerouted.ended == "done"
    assert lost(rerouted) == lost(until)  # nothing more after the new routes


@pytest.mark.parametrize("what", [{"switch": "spine1"}, {"link": ["tor0-0", "agg0-0"]}])
def test_workers_see_the_same(what: dict[str, Any]) -> None:
    run = planned({"time_ns": 20_000, **what, "up": False}, {"time_ns": 90_000, **what, "up": True})
    one, two = VirtualWorld(run).run(), VirtualWorld(run, workers=2).run()
    assert list(map(repr, one.flows)) == list(map(repr, two.flows))
    assert one.conservation == two.conservation
    assert lost(one) > 0


def test_a_host_that_is_cut_off_has_no_route() -> None:
    run = planned({"time_ns": 0, "switch": "tor0-0", "up": False}, after_ns=0)
    recording = VirtualWorld(run).run()
    assert recording.conservation["balance"] == 0
    assert sum(count for name, count in recording.conservation.items() if "no_route" in name) > 0
    assert not any("ttl" in name and count for name, count in recording.conservation.items())  # nothing goes round
    assert recording.conservation["drop_link_down"] > 0  # what its own hosts send


def test_entries_come_back_to_what_they_were() -> None:
    """Check for every program with routes that the end of a failure restores the entries."""
    topology = topologies.build("fat-tree", {"k": 4})
    downs = [frozenset({20}), frozenset(range(16, 24)), frozenset({5, 40})]
    for name in ("ecn", "trim", "dart"):
        parameters = programs.parameters(name, {})
        program = compiled(name)
        setups = dict.fromkeys(topology.switch_by_name, SwitchSetup(program, parameters))
        rerouting = Rerouting(topology, setups, Settings())
        for switch in topology.switches:
            view = switch_view(topology, switch, Settings())
            first = [update for entry in parameters.entries(view) for update in program.updates(entry)]
            state = {key(update): update.entity for update in first}
            for before, now in zip([frozenset(), *downs], [*downs, frozenset()], strict=True):
                for update in rerouting.updates(switch.name, switch, before, now):
                    assert (key(update) in state) == (update.type != p4runtime_pb2.Update.INSERT)
                    if update.type == p4runtime_pb2.Update.DELETE:
                        del state[key(update)]
                    else:
                        state[key(update)] = update.entity
            assert {k: e.SerializeToString() for k, e in state.items()} == {
                key(update): update.entity.SerializeToString() for update in first
            }


def compiled(name: str) -> Program:
    run = planned(cc={"ecn": "dcqcn", "trim": "smartt", "dart": "dart"}[name])
    (of_all,) = run.switch_programs
    assert of_all.name == name
    return pipeline(run.build(of_all)).program


def key(update: Any) -> bytes:
    entity = p4runtime_pb2.Entity()
    entity.CopyFrom(update.entity)
    entity.table_entry.ClearField("action")
    encoded: bytes = entity.SerializeToString(deterministic=True)
    return encoded


def test_what_is_the_same_is_not_written() -> None:
    topology = topologies.build("fat-tree", {"k": 4})
    parameters = programs.parameters("ecn", {})
    program = compiled("ecn")
    view = switch_view(topology, topology.switches[0], Settings())
    updates = [update for entry in parameters.entries(view) for update in program.updates(entry)]
    assert difference(updates, updates) == []

def test_a_link_that_a_matrix_has_fail_carries_nothing(tmp_path: Path) -> None:
    """All flows use this link or its twin; flows that were hashed onto it would lose packets."""
    lines = [f"{host}->{host + 8} id {host + 1} start 0 size 5000" for host in range(4)]
    failed = [f"failure switch_type AGG switch_id {switch} link_id 0" for switch in range(2)]
    (tmp_path / "x.cm").write_text("\n".join([*lines, *failed]) + "\n")
    tables = {
        "cc": "none",
        "topology": {"name": "fat-tree", "k": 4},
        "workload": {"name": "htsim", "file": "x.cm"},
    }
    (run,) = plan("failed", check(tables), tmp_path)
    recording = VirtualWorld(run).run()
    assert (recording.ended, lost(recording)) == ("done", 0)
