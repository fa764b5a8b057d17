"""The traffic manager of chips in a run: its configuration by a BfRuntime script, and its counts."""

from __future__ import annotations

from pathlib import Path

from harness.plan.resolve import plan
from harness.plan.run import Run
from harness.plan.scenario import check
from harness.worlds.virtual import VirtualWorld
from p4switch.architectures.tna import TNA
from p4switch.bfrt.messages import bfruntime_pb2
from p4switch.bfrt.pipes import Parts, Pipe, Program
from p4switch.compiler import compile_program
from tests.control_plane.bfrt_client import CLIENT

EXAMPLE = Path(__file__).parents[2] / "examples" / "tofino"
# Host 10.0.0.N is at port N - 1. Data has DSCP 24 and queue 3.
ROUTES = """
client.insert("queues", {"dscp": b"\\x18"}, "set_queue", queue=b"\\x03")
client.insert("queues", {"dscp": b"\\x30"}, "set_queue", queue=b"\\x06")
for host in range(2, 5):
    client.insert("routes", {"dst_addr": (bytes([10, 0, 0, host]), 32)}, "send", port=bytes([0, host - 1]))
"""
# Data for host 10.0.0.2 at port 1, whose queues are the second eight of its group.
DISABLED = """
request = pb.WriteRequest()
request.target.pipe_id = 0xFFFF
entry = request.updates.add(type=pb.Update.MODIFY).entity.table_entry
entry.table_id = 0xFF050025
for field, value in enumerate((0, 8 + 3), 1):
    entry.key.fields.add(field_id=field).exact.value = bytes([value])
entry.data.fields.add(field_id=6, bool_val=False)
client.call("Write", pb.WriteRequest, pb.WriteResponse)(request)
"""


def planned(folder: Path, script: str) -> Run:
    folder.mkdir(exist_ok=True)
    (folder / "queues.p4").write_text((EXAMPLE / "step.p4").read_text())
    (folder / "entries.py").write_text(CLIENT + script)
    given = {
        "cc": "dcqcn",
        "program": "queues.p4",
        "programs": {"queues": {"bfrt_script": "entries.py"}},
        "topology": {"name": "single-switch", "hosts": 3},
        "workload": {"name": "permutation", "size_bytes": 20_000},
        "limit_ns": 1_000_000,
    }
    return plan("x", check(given), folder)[0]


def read(world: VirtualWorld, table: str) -> dict[int, dict[str, int]]:
    """Return the entries of a fixed table of the only switch by their keys."""
    (info,) = (each for each in TNA.fixed_tables if each["name"] == table)
    (client,) = world.network.clients.values()
    program = compile_program(EXAMPLE / "step.p4")
    parts = Parts([Program("step", [Pipe(0, client.device, program)])], TNA.fixed_tables)
    query = bfruntime_pb2.Entity()
    query.table_entry.table_id = info["id"]
    names = {each["singleton"]["id"]: each["singleton"]["name"] for each in info["data"]}
    return {
        int.from_bytes(entity.table_entry.key.fields[0].exact.value, "big"): {
            names[field.field_id]: int.from_bytes(field.stream, "big") for field in entity.table_entry.data.fields
        }
        for entity in parts.read(parts.of(""), query, bfruntime_pb2.TargetDevice(pipe_id=0xFFFF))
    }


def test_a_script_disables_a_queue(tmp_path: Path) -> None:
    """Of three flows, that to the host at port 1 does not arrive."""
    done = VirtualWorld(planned(tmp_path / "all", ROUTES)).run()
    assert done.ended == "done"
    stopped = VirtualWorld(planned(tmp_path / "without", ROUTES + DISABLED)).run()
    missing = [flow.flow.destination for flow in stopped.flows if flow.delivered_ns < 0]
    assert (len(stopped.flows), missing) == (3, [0])


def test_counts_of_ports_are_those_of_the_network(tmp_path: Path) -> None:
    world = VirtualWorld(planned(tmp_path, ROUTES))
    assert [any(counts.values()) for counts in read(world, "$PORT_STAT").values()] == [False] * 3
    recording = world.run()
    found = read(world, "$PORT_STAT")
    stats = recording.port_stats
    for row, (node, port) in enumerate(zip(stats["node"], stats["port"], strict=True)):
        if recording.node_names[node] != "s0":
            continue
        counts = found[port]
        packets = {way: stats[f"{column}_packets"][row] for way, column in (("Received", "rx"), ("Transmitted", "tx"))}
        assert {way: counts[f"$Frames{way}OK"] for way in packets} == packets
        assert counts["$OctetsReceived"] == stats["rx_bytes"][row] + 4 * packets["Received"]
        assert counts["$OctetsTransmittedTotal"] == stats["tx_bytes"][row] + 4 * packets["Transmitted"]
    assert min(counts["$FramesReceivedOK"] for counts in found.values()) > 0
