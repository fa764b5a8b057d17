"""Triggers of TNA's and T2NA's packet generator other than packets: timers, and ports that go down."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from p4switch.architectures.packet_path import PACKET_PATHS
from p4switch.engine import objects
from p4switch.fabric import Fabric
from tests.p4switch.architectures import tofino
from tests.p4switch.fabric.stub import GBPS, Host, balance

ONE_SHOT, PERIODIC, PORT_DOWN = 3, 4, 5
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


def set_down(switches: list[Any], arch: str, port: int, went_down: int = 1) -> None:
    """Set whether a port has gone down, in all pipes, as the control plane does."""
    for each in switches:
        kind = PACKET_PATHS.find(f"{arch}.Switch").states["port"].kind
        each.object_write("$port", port, objects.packed(kind, {"went_down": went_down}))


def test_a_port_that_goes_down_has_its_pipe_generate_packets_once(tmp_path: Path) -> None:
    pipes = [switch(tmp_path, "tna") for _ in range(2)]
    pipes[0].join((pipes[1],), 7)
    net, sink = network(pipes[0])
    set_down(pipes, "tna", 0x84)  # no application has been enabled
    for pipe in pipes:
        configure(pipe, "tna", 2, trigger=PORT_DOWN, packets=2)
    net.run(1000)
    assert sink.got == []
    set_down(pipes, "tna", 0x85)
    net.run(2000)
    assert [data[:6] for _, data in sink.got] == [bytes([1 << 3 | 2, 0, 0, 0x85, 0, packet]) for packet in range(2)]
    kind = PACKET_PATHS.find("tna.Switch").states["port"].kind
    assert [objects.values(kind, each.object_read("$port", 0x85))["went_down"] for each in pipes] == [2, 2]
    balance(net)


def test_a_mask_selects_the_ports_that_trigger(tmp_path: Path) -> None:
    made = switch(tmp_path, "t2na")
    kind = PACKET_PATHS.find("t2na.Switch").states["port_mask"].kind
    for number, port in enumerate((5, 71)):
        made.object_write("$pktgen_port_mask", number, objects.packed(kind, {"mask": 1 << port}))
        configure(made, "t2na", number, trigger=PORT_DOWN, value=number)
    net, sink = network(made)
    for until_ns, port in enumerate((4, 71, 5), start=1):
        set_down([made], "t2na", port)
        net.run(until_ns * 1000)
    assert [data[:4] for _, data in sink.got] == [bytes([1, 0, 0, 71]), bytes([0, 0, 0, 5])]
    balance(net)
