"""Port metadata in front of packets, over BfRuntime and P4Runtime."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from control_plane import bfrt_script
from p4switch.architectures.architecture import ARCHITECTURES
from p4switch.bfrt.pipes import Pipe, Program
from p4switch.bfrt.server import BfRuntimeServer
from p4switch.compiler import Compiled
from p4switch.engine import build, load
from p4switch.p4runtime import Device
from p4switch.p4runtime.client import LocalClient
from p4switch.p4runtime.errors import P4RuntimeError
from p4switch.p4runtime.messages import p4runtime_pb2
from tests.control_plane.bfrt_client import CLIENT
from tests.p4switch.architectures.tofino import compiled
from tests.p4switch.bfrt.conftest import Client

PARSER = (
    "state start { packet.extract(intrinsic); port_t port = port_metadata_unpack<port_t>(packet);"
    " packet.extract(hdr.h); hdr.h.kind = port.first; hdr.h.value = port.second[7:0]; transition accept; }"
)
BACK = "apply { tm.ucast_egress_port = intrinsic.ingress_port; }"
TABLE = "IngressParse.$PORT_METADATA"
QUERY = p4runtime_pb2.Entity(extern_entry={})


class Rig:
    """Switch with the program, its device, and a client of its BfRuntime server."""

    def __init__(self, program: Compiled, arch: str) -> None:
        self.switch = load().Switch(str(build(program.program)))
        self.device = Device(lambda _: self.switch, 0)
        self.local = LocalClient(self.device)
        self.local.set_pipeline(program.p4info, program.json_bytes)
        fixed = ARCHITECTURES.find(arch).fixed_tables
        programs = [Program("program", [Pipe(0, self.device, program)])]
        self.server = BfRuntimeServer(programs, "127.0.0.1:0", fixed)
        self.server.start()
        self.client = Client(f"127.0.0.1:{self.server.port}", program.bf_rt)
        self.key = self.client.tables[TABLE]["key"][0]["name"]

    def entry(self, port: int, **data: Any) -> Any:
        return self.client.entry(TABLE, {self.key: port}, **data)

    def sees(self, port: int) -> tuple[int, int]:
        ((_, frame),) = self.switch.process(port, bytes(2))
        return frame[0], frame[1]


@pytest.fixture(params=["tna", "t2na"])
def rig(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Rig]:
    made = Rig(compiled(tmp_path, request.param, INGRESS_PARSER=PARSER, INGRESS=BACK), request.param)
    yield made
    made.client.close()
    made.server.stop(0)


def test_packets_have_what_is_written_for_their_port(rig: Rig) -> None:
    rig.client.write("INSERT", rig.entry(3, first=0x12, second=0xAB34))
    assert (rig.sees(3), rig.sees(4)) == ((0x12, 0x34), (0, 0))
    assert rig.client.read(rig.entry(3)) == [{rig.key: (3,), "first": 0x12, "second": 0xAB34}]
    assert rig.client.read(rig.entry(4)) == [{rig.key: (4,), "first": 0, "second": 0}]


def test_a_field_that_is_not_given_stays_and_a_deleted_port_has_none(rig: Rig) -> None:
    rig.client.write("INSERT", rig.entry(3, first=0x12, second=0xAB34), rig.entry(5, first=1, second=2))
    rig.client.write("MODIFY", rig.entry(3, second=0x0077))
    assert rig.sees(3) == (0x12, 0x77)
    rig.client.write("DELETE", rig.entry(3))
    assert (rig.sees(3), rig.sees(5)) == ((0, 0), (1, 2))
    assert [entry[rig.key] for entry in rig.client.read(rig.client.entry(TABLE))] == [(5,)]
    rig.client.write("DELETE", rig.client.entry(TABLE))
    assert rig.sees(5) == (0, 0)


def test_a_port_that_there_is_not_is_refused_and_nothing_is_written(rig: Rig) -> None:
    with pytest.raises(grpc.RpcError):
        rig.client.write("INSERT", rig.entry(3, first=1), rig.entry(0x3FF, first=1), atomicity="ROLLBACK_ON_ERROR")
    assert rig.sees(3) == (0, 0)


def test_p4runtime_reads_it_and_writes_it_to_another_switch(rig: Rig, tmp_path: Path) -> None:
    rig.client.write("INSERT", rig.entry(3, first=0x12, second=0xAB34))
    (entity,) = rig.local.read([QUERY])
    rig.client.write("DELETE", rig.client.entry(TABLE))
    assert list(rig.local.read([QUERY])) == []
    rig.local.write([p4runtime_pb2.Update(type=p4runtime_pb2.Update.MODIFY, entity=entity)])
    assert rig.sees(3) == (0x12, 0x34)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"extern_id": 99}, "there is none"),
        ({"extern_type_id": 0x82}, "there is none"),
        ({"entry": {"value": b"\0\0\0\1"}}, "expected an index of 4 bytes and a cell"),
    ],
)
def test_another_extern_entry_is_an_error(rig: Rig, change: dict[str, Any], error: str) -> None:
    rig.client.write("INSERT", rig.entry(3, first=1))
    (entity,) = rig.local.read([QUERY])
    entity.extern_entry.MergeFrom(p4runtime_pb2.ExternEntry(**change))
    with pytest.raises(P4RuntimeError, match=error):
        rig.local.write([p4runtime_pb2.Update(type=p4runtime_pb2.Update.MODIFY, entity=entity)])


def test_a_script_of_a_scenario_may_write_it(tmp_path: Path) -> None:
    program = compiled(tmp_path, INGRESS_PARSER=PARSER, INGRESS=BACK)
    body = (
        'table = client.tables["$PORT_METADATA"]\n'
        "def fill(entry):\n"
        '    entry.key.fields.add(field_id=table["key"][0]["id"]).exact.value = bytes([0, 3])\n'
        '    entry.data.fields.add(field_id=client.data_id(table, "first"), stream=bytes([7]))\n'
        "client.write(table, fill)\n"
    )
    (tmp_path / "entries.py").write_text(CLIENT + body)
    made = bfrt_script.updates({0: program}, "program", tmp_path / "entries.py", "s0")[0]
    switch = load().Switch(str(build(program.program)))
    client = LocalClient(Device(lambda _: switch))
    client.set_pipeline(program.p4info, program.json_bytes)
    client.write(made)
    ((_, frame),) = switch.process(3, bytes(2))
    assert frame == bytes([7, 0])
