"""The harness's controller programs the built-in switch process and BMv2's, and packets leave by the right ports."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

import pytest

from control_plane import bmv2_process, controller, programs
from control_plane.controller import Program
from control_plane.programs import SwitchView
from p4switch.compiler import compile_program
from p4switch.p4runtime.client import GrpcClient
from p4switch.p4runtime.messages import p4runtime_pb2
from tests.control_plane.test_controller import PROGRAMS, _rocev2
from tests.p4switch.daemon.conftest import Namespace, quiet
from topologies import Route


@pytest.fixture(params=["builtin", "bmv2"])
def client(request: pytest.FixtureRequest, namespace: Namespace, start: Any, tmp_path: Path) -> Iterator[GrpcClient]:
    """Yield the primary controller of a switch process without a program."""
    if request.param == "builtin":
        yield start("--no-p4").client()
        return
    if shutil.which(bmv2_process.EXECUTABLE) is None:
        pytest.skip(f"{bmv2_process.EXECUTABLE} is not in PATH")
    address = f"unix:{tmp_path}/p4rt"
    interfaces = {i: f"s{i}" for i in (1, 2, 3)}
    command = bmv2_process.command(
        1, interfaces, grpc_address=address, thrift_port=9090, notifications=tmp_path / "notifications"
    )
    process = subprocess.Popen(
        ["ip", "netns", "exec", namespace.name, *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    client = GrpcClient(address, 1, timeout_s=30)
    try:
        client.open()
        yield client
    finally:
        client.close()
        process.kill()
        process.wait()


def roce(destination: str, entropy: int) -> bytes:
    frame = _rocev2("10.0.0.9", destination)
    return frame[:34] + entropy.to_bytes(2, "big") + frame[36:]


def test_routes_and_ecmp(client: GrpcClient, namespace: Namespace) -> None:
    compiled = compile_program(PROGRAMS / "ecn.p4")
    view = SwitchView(
        device_id=1,
        port_rates_bps=dict.fromkeys((1, 2, 3), 10**9),
        routes=[Route(IPv4Network("10.0.0.2/32"), (2,)), Route(IPv4Network("10.1.0.0/16"), (2, 3))],
    )
    entries = programs.parameters("ecn", {}).entries(view)
    program = Program.of(compiled)
    controller.program_switch(client, program, entries)
    time.sleep(0.2)  # BMv2 installs the new pipeline when its next packet arrives
    h1, h2, h3 = (namespace.raw_socket(f"h{i}") for i in (1, 2, 3))
    h1.send(roce("10.0.0.2", 50000))
    received = h2.recv(10000)
    assert received[22] == 63  # the TTL
    assert received[26:] == roce("10.0.0.2", 50000)[26:]
    h1.send(roce("10.2.0.1", 50000))  # no route
    assert quiet(h2)
    for entropy in range(50000, 50040):
        h1.send(roce("10.1.0.1", entropy))
        time.sleep(0.002)
    paths = []
    for sock in (h2, h3):
        while not quiet(sock, 0.5):
            paths.append(sock)
    assert len(paths) == 40
    assert 5 < paths.count(h2) < 35
    found = list(client.read([p4runtime_pb2.Entity(table_entry={})]))
    wanted = [update.entity for entry in entries for update in program.updates(entry)]
    wanted = [entity for entity in wanted if not entity.table_entry.is_default_action]
    assert sorted(map(str, found)) == sorted(map(str, wanted))
