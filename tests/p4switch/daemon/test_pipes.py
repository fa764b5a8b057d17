"""Switch process with several pipes, each of which is a P4Runtime device."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from control_plane.controller import Program, program_switch
from control_plane.programs.entries import Action, Exact, TableEntry
from p4switch.architectures.packet_path import PACKET_PATHS
from p4switch.compiler import Compiled, compile_program
from p4switch.daemon.config import PortSettings, TrafficSettings
from p4switch.daemon.process import SwitchProcess
from p4switch.engine import objects
from p4switch.p4runtime.client import GrpcClient
from p4switch.p4runtime.errors import P4RuntimeError
from p4switch.p4runtime.messages import p4runtime_pb2
from p4switch.p4runtime.ports import PortCounts
from p4switch.sources import SOURCE_DIRECTORY
from p4switch.trace import Event
from p4switch.trace.events import Received
from tests.p4switch.architectures import tofino
from tests.p4switch.daemon.conftest import wait_until

STEP = Path(__file__).parents[3] / "examples" / "tofino" / "step.p4"


@pytest.fixture(scope="module")
def step() -> Compiled:
    return compile_program(STEP)


@pytest.fixture
def process() -> Iterator[SwitchProcess]:
    process = SwitchProcess({}, device_id=5, address="127.0.0.1:0")
    process.set_pipes(2)
    process.start()
    yield process
    process.stop()


def client(process: SwitchProcess, device_id: int) -> GrpcClient:
    return GrpcClient(f"127.0.0.1:{process.server.port}", device_id, timeout_s=10)


def queues(client: GrpcClient, program: Compiled) -> list[Any]:
    (table,) = [each for each in program.p4info.tables if each.preamble.alias == "queues"]
    query = p4runtime_pb2.Entity()
    query.table_entry.table_id = table.preamble.id
    return [int.from_bytes(entity.table_entry.match[0].exact.value, "big") for entity in client.read([query])]


def test_each_pipe_is_a_device_with_entries_of_its_own(process: SwitchProcess, step: Compiled) -> None:
    program = Program.of(step)
    with client(process, 5) as first, client(process, 6) as second:
        for number, each in enumerate((first, second)):
            entry = TableEntry("queues", {"dscp": Exact(8 + number)}, Action("set_queue", {"queue": 1}))
            program_switch(each, program, [entry])
        assert (queues(first, step), queues(second, step)) == ([8], [9])


def test_a_device_without_a_pipe_is_not_here(process: SwitchProcess) -> None:
    with pytest.raises(P4RuntimeError, match="device 7 is not here; these are devices 5 to 6"), client(process, 7):
        pass


def test_pipes_run_programs_of_one_chip(process: SwitchProcess, step: Compiled) -> None:
    t2na, v1model = (
        compile_program(SOURCE_DIRECTORY / "ecn.p4", (SOURCE_DIRECTORY,), {}, name) for name in ("t2na", "v1model")
    )
    with client(process, 5) as first, client(process, 6) as second:
        first.set_pipeline(step.p4info, step.json_bytes)
        with pytest.raises(P4RuntimeError, match="expected a program for the architecture of the other pipes"):
            second.set_pipeline(t2na.p4info, t2na.json_bytes)
        with pytest.raises(P4RuntimeError, match="expected a program for a chip, as the switch has 2 pipes"):
            second.set_pipeline(v1model.p4info, v1model.json_bytes)


def test_a_program_that_is_not_installed_decides_nothing_for_other_pipes(
    process: SwitchProcess, step: Compiled
) -> None:
    """Committing a saved program fails if another pipe has meanwhile got one for another chip."""
    t2na = compile_program(SOURCE_DIRECTORY / "ecn.p4", (SOURCE_DIRECTORY,), {}, "t2na")
    request = p4runtime_pb2.SetForwardingPipelineConfigRequest
    device = process.devices[0]

    def set_config(action: Any, program: Compiled | None) -> None:
        message = request(device_id=device.device_id, action=action)
        if program is not None:
            message.config.p4_device_config = program.json_bytes
            message.config.p4info.CopyFrom(program.p4info)
        device.set_forwarding_pipeline_config(message)

    for action in (request.VERIFY, request.VERIFY_AND_SAVE):
        set_config(action, t2na)
    with client(process, 6) as second:
        second.set_pipeline(step.p4info, step.json_bytes)
    with pytest.raises(P4RuntimeError, match="expected a program for the architecture of the other pipes"):
        set_config(request.COMMIT, None)
    set_config(request.VERIFY_AND_COMMIT, step)


def test_a_saved_program_is_traced_after_another_pipe_had_its_own(step: Compiled) -> None:
    events: list[Event] = []
    process = SwitchProcess({}, address="127.0.0.1:0", trace=events.append, cpu_port=1)
    process.set_pipes(2)
    request = p4runtime_pb2.SetForwardingPipelineConfigRequest
    process.start()
    try:
        for pipe in (0, 1):
            saved = request(device_id=pipe, action=request.VERIFY_AND_SAVE)
            saved.config.p4_device_config = step.json_bytes
            saved.config.p4info.CopyFrom(step.p4info)
            process.devices[pipe].set_forwarding_pipeline_config(saved)
        for pipe in (1, 0):
            process.devices[pipe].set_forwarding_pipeline_config(request(device_id=pipe, action=request.COMMIT))
        process.live.inject(1, bytes(64))
        wait_until(lambda: bool(events), 20)
    finally:
        process.stop()
    assert {event.packet for event in events} == {0}


def test_packets_to_a_port_that_does_not_exist_run_egress(tmp_path: Path) -> None:
    egress = "Register<bit<8>, bit<1>>(1) seen; apply { seen.write(0, 7); }"
    program = tofino.write(tmp_path, INGRESS="apply { tm.ucast_egress_port = 9; }", EGRESS=egress)
    process = SwitchProcess({}, address="127.0.0.1:0")
    process.load_sources([program], arch="tna")
    kind = PACKET_PATHS.find("tna.Switch").states["pktgen"].kind
    app = {"enabled": 1, "trigger": 3, "timer_ns": 1000, "batches": 1, "packets": 1, "length": 100, "port": 68}
    process.start()
    try:
        device = process.devices[0]
        device.look(lambda state: state.switch.object_write("$pktgen", 0, objects.packed(kind, app)))
        wait_until(lambda: device.look(lambda state: state.switch.register_read("Out.seen", 0)) == b"\x07", 20)
    finally:
        process.stop()


def test_a_frame_comes_back_by_a_port_that_loops(tmp_path: Path) -> None:
    """It returns after the delay of the link, and then leaves by the CPU port."""
    ingress = "apply { tm.ucast_egress_port = intrinsic.ingress_port == 68 ? 9w1 : 9w68; }"
    events: list[Event] = []
    delay_ns = 30_000_000
    traffic = TrafficSettings(ports={68: PortSettings(rate_bps=10**9, delay_ns=delay_ns, loops=True)})
    process = SwitchProcess({}, address="127.0.0.1:0", traffic=traffic, cpu_port=1, trace=events.append)
    process.load_sources([tofino.write(tmp_path, INGRESS=ingress)], arch="tna")
    process.start()
    try:
        process.live.inject(1, bytes(64))

        def packets() -> dict[int, tuple[int, int]]:
            return {row["port"]: (row["rx_packets"], row["tx_packets"]) for row in process.live.stats()["ports"]}

        wait_until(lambda: packets()[68] == (1, 1) and packets()[1][1] == 1, 20)
        wait_until(lambda: sum(isinstance(event, Received) for event in events) == 2, 20)
        counts = process.devices[0].look(lambda state: state.ports.counts())
        assert replace(counts[68], queues=()) == PortCounts(1, 68, 0, 1, 68, 0)
    finally:
        process.stop()
    first, second = (event for event in events if isinstance(event, Received))
    assert (first.port, second.port) == (1, 68)
    assert (second.time - first.time) * traffic.tick_ns >= delay_ns


def test_changes_of_links_are_told_to_the_devices_at_their_times(tmp_path: Path, step: Compiled) -> None:
    """Port 9 goes down at once and comes up later; changes at the same time keep their order."""
    changes = tmp_path / "changes.json"
    traffic = TrafficSettings(ports={9: PortSettings(loops=True)})
    process = SwitchProcess({}, address="127.0.0.1:0", traffic=traffic, changes_file=changes)
    process.load_sources([STEP])
    states: list[bool] = []

    def follow() -> None:
        def is_up() -> bool:
            return process.devices[0].look(lambda state: state.ports.is_up(9))

        wait_until(lambda: process.server.port != 0, 20)  # signals are handled from then on
        up_ns = process.live.now_ns() + 1_500_000_000
        rows = [{"time_ns": time_ns, "port": 9, "up": up} for time_ns, up in ((0, True), (0, False), (up_ns, True))]
        changes.write_text(json.dumps({"changes": rows}))
        os.kill(os.getpid(), signal.SIGHUP)
        try:
            wait_until(lambda: not is_up(), 20)
            states.append(process.live.now_ns() < up_ns)
            wait_until(is_up, 20)
            states.append(process.live.now_ns() >= up_ns)
        finally:
            os.kill(os.getpid(), signal.SIGTERM)

    follower = threading.Thread(target=follow)
    try:
        follower.start()
        process.run()
    finally:
        follower.join()
    assert states == [True, True]


def test_packets_of_timers_have_numbers_of_their_own(tmp_path: Path) -> None:
    """A trace distinguishes them from each other, and from an earlier frame."""
    program = tofino.write(tmp_path, INGRESS="apply { tm.ucast_egress_port = 9; }")
    events: list[Event] = []
    process = SwitchProcess({}, address="127.0.0.1:0", trace=events.append)
    process.load_sources([program], arch="tna")
    kind = PACKET_PATHS.find("tna.Switch").states["pktgen"].kind
    app = {"enabled": 1, "trigger": 3, "timer_ns": 1000, "batches": 1, "packets": 2, "length": 100, "port": 68}
    process.start()
    try:
        process.devices[0].look(lambda state: state.switch.object_write("$pktgen", 0, objects.packed(kind, app)))
        wait_until(lambda: len({event.packet for event in events}) > 1, 20)
    finally:
        process.stop()
    assert {event.packet for event in events} == {0, 1}
