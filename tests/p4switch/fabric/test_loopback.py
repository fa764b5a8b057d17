"""Ports of a switch that lead back to it have a queue, a rate and a delay like links to other nodes."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from p4switch.architectures.packet_path import PACKET_PATHS
from p4switch.engine import objects
from p4switch.fabric import Fabric
from tests.p4switch.architectures import tofino
from tests.p4switch.fabric.stub import GBPS, Host, balance

LOOP, OUT, RECIRCULATION = 16, 9, 6
ROUNDS = "hdr.h.kind"
DELAY_NS = 700
SIZE = 125  # 10 ns at 100 Gb/s


def blocks(loop: int, rounds: int = 3) -> dict[str, str]:
    """Return a program that sends each packet to the loop this number of times; its second byte is its ingress port."""
    return {
        "INGRESS": f"""apply {{
            if ({ROUNDS} == {rounds}) {{ tm.ucast_egress_port = {OUT}; }} else {{ tm.ucast_egress_port = {loop}; }}
            {ROUNDS} = {ROUNDS} + 1;
            hdr.h.value = (bit<8>) intrinsic.ingress_port;
        }}"""
    }


def network(switch: Any, frames: list[tuple[int, bytes]], loop: int = LOOP) -> tuple[Fabric, Host, int]:
    made, sink = Fabric(), Host()
    for host in (Host(frames), sink):
        made.add_host(host)
    node = made.add_switch(switch)
    made.connect(0, 0, node, 8, rate_bps=100 * GBPS, delay_ns=500)
    made.connect(1, 0, node, OUT, rate_bps=100 * GBPS, delay_ns=500)
    made.connect(node, loop, node, loop, rate_bps=100 * GBPS, delay_ns=DELAY_NS)
    return made, sink, node


def test_a_frame_takes_the_loops_time_each_round(tmp_path: Path) -> None:
    made, sink, _ = network(tofino.switch(tmp_path, "t2na", **blocks(LOOP)), [(0, bytes(SIZE))])
    assert made.run() == "idle"
    balance(made)
    assert [(time, data[0], data[1]) for time, data in sink.got] == [(2 * 510 + 3 * (DELAY_NS + 10), 4, LOOP)]


def test_frames_queue_for_the_loop(tmp_path: Path) -> None:
    """All arrive at once by a faster link, and leave the loop at its rate."""
    switch = tofino.switch(tmp_path, "t2na", **blocks(LOOP, 1))
    made, sink, _ = network(switch, [(0, bytes(SIZE)) for _ in range(20)])
    made.set_link_rate(0, 400 * GBPS)
    assert made.run() == "idle"
    balance(made)
    times = [time for time, _ in sink.got]
    assert [after - before for before, after in pairwise(times)] == [10] * 19


def test_what_is_on_the_loop_counts_once(tmp_path: Path) -> None:
    made, _, _ = network(tofino.switch(tmp_path, "t2na", **blocks(LOOP, 255)), [(0, bytes(SIZE)) for _ in range(5)])
    made.run(3_000)
    terms = balance(made)
    assert terms["queued"] + terms["on_wire"] == 5
    made.set_link_up(2, False)
    assert balance(made)["drop_link_down"] == 5


def test_a_loop_goes_on_as_long_as_time_does(tmp_path: Path) -> None:
    """In a packet test, rounds take no time and are limited instead."""
    program = blocks(LOOP) | {"INGRESS": f"apply {{ tm.ucast_egress_port = {LOOP}; {ROUNDS} = {ROUNDS} + 1; }}"}
    made, _, _ = network(tofino.switch(tmp_path, "t2na", **program), [(0, bytes(SIZE))])
    made.run(5_000 * (DELAY_NS + 10))
    assert balance(made)["on_wire"] + balance(made)["queued"] == 1


def test_a_recirculated_packet_triggers_the_generator(tmp_path: Path) -> None:
    """Generated packets have 22 bytes before those of the buffer; their first byte names the application."""
    ingress = f"""apply {{
        tm.ucast_egress_port = intrinsic.ingress_port == 8 ? (bit<9>) {RECIRCULATION} : {OUT};
        hdr.h.value = (bit<8>) intrinsic.ingress_port;
    }}"""
    switch = tofino.switch(tmp_path, "t2na", INGRESS=ingress)
    kind = PACKET_PATHS.find("t2na.Switch").states["pktgen"].kind
    app = {"enabled": 1, "trigger": 1, "batches": 1, "packets": 2, "length": 40, "port": RECIRCULATION}
    switch.object_write("$pktgen", 3, objects.packed(kind, app))
    made, sink, _ = network(switch, [(0, bytes(SIZE))], RECIRCULATION)
    assert made.run() == "idle"
    balance(made)
    assert [(len(data), data[0], data[1]) for _, data in sink.got] == [
        (SIZE, 0, RECIRCULATION), *[(62, 3, RECIRCULATION)] * 2
    ]  # fmt: skip


def test_a_host_has_no_loop() -> None:
    made = Fabric()
    made.add_host(Host())
    with pytest.raises(ValueError, match="node 0 port 0: expected two different ends"):
        made.connect(0, 0, 0, 0, rate_bps=GBPS, delay_ns=1)
