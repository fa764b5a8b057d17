"""Chips of several pipes in a network: programs for each pipe, programs of several pipelines, readings of each pipe."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.measure.recording import Recording
from harness.plan.how import Tracing
from harness.plan.resolve import plan
from harness.plan.run import Run
from harness.plan.scenario import check
from harness.worlds.virtual import VirtualWorld
from p4switch.architectures.packet_path import PACKET_PATHS
from p4switch.engine.objects import packed, values
from p4switch.errors import UserError
from tests.control_plane.bfrt_client import CLIENT

EXAMPLE = Path(__file__).parents[2] / "examples" / "tofino"
APPLY = """    apply {
        if (!hdr.ipv4.isValid()"""
COUNTER = """    Counter<bit<32>, bit<1>>(1, CounterType_t.PACKETS) passed;

    apply {
        passed.count(0);
        if (!hdr.ipv4.isValid()"""
MAIN = "Switch(pipe) main;"
TWO = """Pipeline(IngressParser(), Ingress(), IngressDeparser(), EgressParser(), Egress(), EgressDeparser())
    other;

Switch(pipe, other) main;"""
PROBE = {"kind": "counter", "reads": "passed", "name": "passed"}
# Host 10.0.0.N is at the N - 1st port; 1 and 2 are in the first pipe.
ROUTES = """
client.insert("queues", {"dscp": b"\\x18"}, "set_queue", queue=b"\\x03")
client.insert("queues", {"dscp": b"\\x30"}, "set_queue", queue=b"\\x06")
for host, port in enumerate((1, 2, 128, 129), 2):
    port = port.to_bytes(2, "big")
    client.insert("routes", {"dst_addr": (bytes([10, 0, 0, host]), 32)}, "send", port=port)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with step.p4 that counts packets: one pipeline with and without entries, and two pipelines."""
    made = tmp_path_factory.mktemp("pipes")
    text, entries = ((EXAMPLE / f"step.{end}").read_text() for end in ("p4", "py"))
    counting = text.replace(APPLY, COUNTER)
    for name, source in (("counting", counting), ("two_pipelines", counting.replace(MAIN, TWO))):
        (made / f"{name}.p4").write_text(source)
        (made / f"{name}.py").write_text(entries.replace('"step"', f'"{name}"'))
    (made / "scripted.p4").write_text(counting)
    (made / "entries.py").write_text(CLIENT + ROUTES)
    return made


def planned(folder: Path, **tables: Any) -> Run:
    given = {
        "cc": "dcqcn",
        "program": "counting.p4",
        "topology": {"name": "single-switch", "hosts": 4},
        "workload": {"name": "permutation", "size_bytes": 20_000},
        "record": {"probes": [PROBE]},
        **tables,
    }
    return plan("x", check(given), folder)[0]


def passed(recording: Recording) -> dict[str, int]:
    table = recording.tables["passed"]
    return dict(zip(table["switch"], table["packets"], strict=True))


def test_pipes_change_no_flow_and_count_for_themselves(folder: Path) -> None:
    one, two = (VirtualWorld(planned(folder, switch={"pipes": pipes})).run() for pipes in (1, 2))
    assert list(map(repr, one.flows)) == list(map(repr, two.flows))
    assert one.ended == "done"
    assert passed(two).keys() == {"s0.pipe0", "s0.pipe1"}
    assert sum(passed(two).values()) == passed(one)["s0"]


def test_programs_by_pipe_and_pipelines_in_turn(folder: Path) -> None:
    """A program's pipelines take turns in its pipes; the second of three pipes runs the program of its entry."""
    alone = VirtualWorld(planned(folder)).run()
    entry = {"names": ["s0"], "program": "counting.p4", "in_pipes": [1]}
    two = VirtualWorld(planned(folder, program="two_pipelines.p4", switch={"pipes": 2})).run()
    assert list(map(repr, two.flows)) == list(map(repr, alone.flows))
    mixed = VirtualWorld(planned(folder, program="two_pipelines.p4", switch={"pipes": 3}, switches=[entry])).run()
    assert list(map(repr, mixed.flows)) == list(map(repr, alone.flows))
    with pytest.raises(UserError, match=r"has 2 pipelines, and runs in pipes 0 of 's0'; expected a pipe for each"):
        planned(folder, program="two_pipelines.p4", switch={"pipes": 2}, switches=[entry])


def test_entries_of_a_script_are_for_all_pipes(folder: Path) -> None:
    programs = {"scripted": {"bfrt_script": "entries.py"}}
    run = planned(folder, program="scripted.p4", switch={"pipes": 2}, programs=programs)
    recording = VirtualWorld(run).run()
    assert recording.ended == "done"


def test_a_trace_reads_each_pipe_by_its_own_program(folder: Path, tmp_path: Path) -> None:
    world = VirtualWorld(planned(folder, switch={"pipes": 2}), trace=Tracing(0, 1))
    world.run()
    world.write_more(tmp_path)
    assert "passed.count(0)" in (tmp_path / "trace.txt").read_text()


def test_switches_are_told_of_links_that_go_down_and_up(folder: Path) -> None:
    """The packet generator of the port's pipe generates a packet."""
    event = {"host": "h0-0-2"}
    events = [{**event, "time_ns": 1000, "up": False}, {**event, "time_ns": 5000, "up": True}]
    world = VirtualWorld(planned(folder, switch={"pipes": 2}, events=events))
    states = PACKET_PATHS.find("tna.Switch").states
    on_port_down = {"enabled": 1, "trigger": 5, "batches": 1, "packets": 1, "length": 64, "port": 6}
    for pipe in world.network.pipes.values():
        pipe.object_write("$pktgen", 3, packed(states["pktgen"].kind, on_port_down))

    def members(pipe: str, name: str, index: int) -> dict[str, int]:
        kind = states[name.removeprefix("$")].kind
        return values(kind, world.network.pipes[pipe].object_read(name, index))

    assert world.run().ended == "done"
    assert [members(f"s0.pipe{n}", "$pktgen", 3)["packets_made"] for n in range(2)] == [1, 0]
    assert [members(f"s0.pipe{n}", "$port", 1)["went_down"] for n in range(2)] == [2, 2]
