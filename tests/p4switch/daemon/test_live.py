"""A switch in real time, `Live`, alone: tests pass frames to it, and all of its ports are CPU ports."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from p4switch import daemon
from p4switch.architectures.tna.state import ScheduleState, ShaperState
from p4switch.compiler import compile_program
from p4switch.engine import build
from p4switch.engine.objects import packed
from p4switch.p4runtime.ports import QueueCounts, port_counts
from tests.p4switch.architectures import tofino
from tests.p4switch.daemon.conftest import wait_until
from tests.p4switch.fabric.stub import frame

PROGRAM = Path(__file__).parent.parent / "fabric" / "everything.p4"
UNICAST, RECIRCULATE = 1, 4  # treatment of packets, given by the number of the destination host


@pytest.mark.parametrize("what", [UNICAST, RECIRCULATE])
def test_pauses_name_the_class_that_packets_came_with(what: int) -> None:
    """The program puts packets of class 3 into queues of priority 4; the sender has to stop class 3.

    The class of recirculated packets does not depend on other senders meanwhile.
    """
    module = daemon.load()
    live = module.Live()
    live.set_traffic(dscp_classes=[3 if dscp >> 3 == 4 else dscp >> 3 for dscp in range(64)])
    for port in range(3):
        live.add_port(port, None)
        live.set_port(port, 1_000_000, 0)
        live.set_pfc(port, priorities=[3, 4, 5], xoff_bytes=3_000, xon_gap_bytes=1_000)
    live.set_switch(module.Switch(str(build(compile_program(PROGRAM).program))))
    for _ in range(20):
        live.inject(0, frame(0, what, priority=4).ljust(1_000, b"\0"))
    live.inject(2, frame(2, UNICAST, priority=5).ljust(1_000, b"\0"))
    pauses: list[bytes] = []

    def resumed() -> bool:
        pauses.extend(data for data in live.take(0.1) if data[12:14] == b"\x88\x08")
        return bool(pauses) and not any(pauses[-1][18:34])

    live.start()
    wait_until(resumed)
    assert {data[17] for data in pauses} == {1 << 3}
    live.stop()
    live.set_switch(None)


def test_a_running_switch_serves_a_queue_once_it_is_enabled(tmp_path: Path) -> None:
    """The first byte of a packet is its queue; the control plane has disabled queue 9 of port 16."""
    ingress = "apply { tm.ucast_egress_port = 16; tm.qid = hdr.h.kind[6:0]; }"
    program = tofino.compiled(tmp_path, "t2na", INGRESS=ingress).program
    module = daemon.load()
    live = module.Live()
    for port in (8, 16):
        live.add_port(port, None)
    switch = module.Switch(str(build(program)))
    live.set_switch(switch)
    live.start()

    def left(count: int) -> list[int]:
        got: list[int] = []

        def enough() -> bool:
            got.extend(data[0] for data in live.take(0.1))
            return len(got) >= count

        wait_until(enough)
        return got

    def disable(queues: int) -> None:
        with live:
            switch.object_write("$schedule", 16, packed(ScheduleState, {"disabled": queues}))

    disable(1 << 9)
    for queue in (9, 10):
        live.inject(8, bytes([queue]).ljust(100, b"\1"))
    assert left(1) == [10]
    counts = port_counts(live.port_counts())
    assert (counts[16].frames_sent, counts[16].octets_sent) == (1, 104)
    assert counts[16].queues[9] == QueueCounts(0, 2, 2)
    disable(0)
    assert left(1) == [9]
    live.stop()
    live.set_switch(None)


def test_a_running_switch_sends_at_the_rate_of_a_token_bucket(tmp_path: Path) -> None:
    """Packets of queue 9 leave 20 times a second, and another queue's at once."""
    ingress = "apply { tm.ucast_egress_port = 16; tm.qid = hdr.h.kind[6:0]; }"
    module = daemon.load()
    live = module.Live()
    for port in (8, 16):
        live.add_port(port, None)
    switch = module.Switch(str(build(tofino.compiled(tmp_path, "t2na", INGRESS=ingress).program)))
    live.set_switch(switch)
    bucket = {**dict.fromkeys(dict(ShaperState.cell), 0), "limited": 1, "packets": 1, "max_rate": 20}
    switch.object_write("$queue_shaper", 16 * ScheduleState.QUEUES + 9, packed(ShaperState, bucket))
    for queue in (9, 9, 9, 9, 10):
        live.inject(8, bytes([queue]).ljust(100, b"\1"))
    got: list[int] = []
    began = time.monotonic()
    live.start()

    def all_left() -> bool:
        got.extend(data[0] for data in live.take(0.1))
        return len(got) == 5

    wait_until(all_left)
    assert time.monotonic() - began > 2 / 20
    assert got == [9, 10, 9, 9, 9]
    live.stop()
    live.set_switch(None)


def test_a_chip_program_stops_a_queue_and_releases_it(tmp_path: Path) -> None:
    """The first byte of a packet is its queue; 255 marks a packet that stops or releases queue 9 of port 16."""
    program = tofino.compiled(
        tmp_path,
        "t2na",
        INGRESS_PARSER=f"{tofino.START} packet.extract(hdr.h); packet.extract(hdr.wide); transition accept; }}",
        INGRESS="""apply {
            tm.ucast_egress_port = 16;
            tm.qid = hdr.h.kind[6:0];
            if (hdr.h.kind == 255) { deparsed.adv_flow_ctl = hdr.wide.a; deparsed.drop_ctl = 1; }
        }""",
    ).program
    module = daemon.load()
    live = module.Live()
    for port in (8, 16):
        live.add_port(port, None)
    live.set_switch(module.Switch(str(build(program))))
    live.start()

    def send(queue: int, credit: int = 0) -> None:
        message = 1 << 31 | 2 << 25 | 9 << 15 | credit
        live.inject(8, (bytes([queue, 0]) + message.to_bytes(4, "big")).ljust(100, b"\1"))

    def left(count: int) -> list[int]:
        got: list[int] = []

        def enough() -> bool:
            got.extend(data[0] for data in live.take(0.1))
            return len(got) >= count

        wait_until(enough)
        return got

    send(255, credit=1)
    send(9)
    send(12)
    assert left(1) == [12]
    send(255)
    assert left(1) == [9]
    live.stop()
    live.set_switch(None)


def test_a_chip_programs_ghost_thread_knows_the_queue(tmp_path: Path) -> None:
    path = tofino.write_with_ghost(tmp_path, tofino.GHOST, **tofino.WITH_DEPTHS)
    module = daemon.load()
    live = module.Live()
    for port in (8, 16):
        live.add_port(port, None)
    live.set_port(16, 1_000_000, 0)
    live.set_switch(module.Switch(str(build(compile_program(path, arch="t2na").program))))
    for _ in range(4):
        live.inject(8, bytes([5, 16]).ljust(160, b"\0"))
    live.start()
    got: list[bytes] = []

    def all_there() -> bool:
        got.extend(live.take(0.1))
        return len(got) >= 4

    wait_until(all_there)
    assert [int.from_bytes(data[2:6], "big") for data in got] == [0, 0, 2, 4]
    assert all(data[2:6] == data[6:10] for data in got)
    live.stop()
    live.set_switch(None)


def test_what_is_held_stays_on_its_link_and_in_the_counters() -> None:
    module = daemon.load()
    live = module.Live()
    for port in range(2):
        live.add_port(port, None)
        live.set_port(port, 1_000_000, 1_000_000)
    live.set_switch(module.Switch(str(build(compile_program(PROGRAM).program))))
    live.start()
    live.inject(0, frame(0, UNICAST, priority=4).ljust(1_000, b"\0"))
    left: list[bytes] = []

    def one_left() -> bool:
        left.extend(live.take(0.1))
        return len(left) == 1

    wait_until(one_left)
    live.hold()
    for _ in range(3):
        live.inject(0, frame(0, UNICAST, priority=4).ljust(1_000, b"\0"))
    wait_until(lambda: live.stats()["ports"][1]["on_wire_packets"] == 3)
    assert live.take(0.1) == []
    live.stop()
    assert sum(port["depth_packets"] for port in live.stats()["ports"]) == 0
    live.set_switch(None)
