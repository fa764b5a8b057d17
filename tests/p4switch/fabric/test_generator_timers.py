"""Timers of the packet generator of TNA and T2NA, in nanoseconds of the model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from p4switch.architectures.packet_path import PACKET_PATHS
from p4switch.engine import objects
from p4switch.fabric import Fabric
from tests.p4switch.architectures import tofino
from tests.p4switch.fabric.stub import GBPS, Host, balance

ONE_SHOT, PERIODIC = 3, 4
OUT, DELAY_NS, LENGTH = 9, 500, 119
SENT_NS = 10  # for the 125 bytes with the header in front, at 100 Gb/s


def configure(switch: Any, arch: str, number: int, **members: int) -> None:
    kind = PACKET_PATHS.find(f"{arch}.Switch").states["pktgen"].kind
    app = {"enabled": 1, "trigger": ONE_SHOT, "timer_ns": 1000, "batches": 1, "packets": 1, "length": LENGTH, "port": 6}
    switch.object_write("$pktgen", number, objects.packed(kind, app | members))


def network(switch: Any) -> tuple[Fabric, Host]:
    made, sink = Fabric(), Host()
    made.add_host(sink)
    made.connect(0, 0, made.add_switch(switch), OUT, rate_bps=100 * GBPS, delay_ns=DELAY_NS)
    return made, sink


def switch(folder: Path, arch: str) -> Any:
    return tofino.switch(folder, arch, INGRESS=f"apply {{ tm.ucast_egress_port = {OUT}; }}")


@pytest.mark.parametrize("arch", ["tna", "t2na"])
def test_a_timer_runs_out_once(tmp_path: Path, arch: str) -> None:
    """The packets of both batches are generated at once, and leave one after the other."""
    made = switch(tmp_path, arch)
    configure(made, arch, 5, batches=2, packets=2)
    net, sink = network(made)
    assert net.run() == "idle"
    balance(net)
    assert [time for time, _ in sink.got] == [1000 + SENT_NS * (n + 1) + DELAY_NS for n in range(4)]
    heads = [bytes([5, 0, 0, batch, 0, packet]) for batch in range(2) for packet in range(2)]
    assert [data[:6] for _, data in sink.got] == heads


def test_a_timer_runs_out_again_and_again_until_it_is_disabled(tmp_path: Path) -> None:
    made = switch(tmp_path, "tna")
    net, sink = network(made)
    net.run(300)
    configure(made, "tna", 1, trigger=PERIODIC, timer_ns=700)
    net.run(300 + 3 * 700 + 600)
    assert [time - SENT_NS - DELAY_NS for time, _ in sink.got] == [1000, 1700, 2400]
    configure(made, "tna", 1, trigger=PERIODIC, timer_ns=700, enabled=0)
    assert net.run() == "idle"
    assert len(sink.got) == 3
    balance(net)


def test_timers_of_pipes_count_by_themselves(tmp_path: Path) -> None:
    first, second = switch(tmp_path, "tna"), switch(tmp_path, "tna")
    first.join((second,), 7)
    configure(second, "tna", 2, timer_ns=400)
    net, sink = network(first)
    assert net.run() == "idle"
    assert [(time - SENT_NS - DELAY_NS, data[0]) for time, data in sink.got] == [(400, 1 << 3 | 2)]
    balance(net)


def test_a_timer_costs_the_same_however_often_it_is_written(tmp_path: Path) -> None:
    def events(writes: int) -> int:
        made = switch(tmp_path, "tna")
        net, _ = network(made)
        for _ in range(writes):
            configure(made, "tna", 1, trigger=PERIODIC, timer_ns=700)
        net.run(20 * 700)
        return net.events

    assert events(50) <= events(1) + 50


def test_timers_of_several_pipes_cost_the_sum_of_them(tmp_path: Path) -> None:
    """Otherwise the number of events would double with each period."""
    pipes = [switch(tmp_path, "tna") for _ in range(2)]
    pipes[0].join((pipes[1],), 7)
    for pipe in pipes:
        configure(pipe, "tna", 2, trigger=PERIODIC, timer_ns=700)
    net, sink = network(pipes[0])
    net.run(16 * 700 + 600)
    assert len(sink.got) == 2 * 16
    assert net.events < 20 * len(sink.got)


def test_a_packet_test_has_no_time(tmp_path: Path) -> None:
    made = switch(tmp_path, "tna")
    configure(made, "tna", 1, trigger=PERIODIC, timer_ns=1)
    assert made.process(1, bytes([1, 2]), 10**9) == [(OUT, bytes([1, 2]))]
