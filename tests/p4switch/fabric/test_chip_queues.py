"""Queues of a chip's port by number, and advanced flow control, which stops single queues."""

from __future__ import annotations

from collections import Counter
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from p4switch.architectures.tna.state import ScheduleState, ShaperState
from p4switch.compiler import compile_program
from p4switch.engine import Switch, build, build_traced, objects
from p4switch.fabric import Fabric
from p4switch.p4runtime.ports import QueueCounts, port_counts
from p4switch.trace import Decoder, Trace
from p4switch.trace import events as ev
from tests.p4switch.architectures import tofino
from tests.p4switch.fabric.stub import GBPS, Host, balance

BLOCKS = {
    "INGRESS_PARSER": (
        f"{tofino.START} packet.extract(hdr.h); packet.extract(hdr.wide);"
        " transition accept; }"
    ),
    "INGRESS": """apply {
        tm.ucast_egress_port = 16;
        tm.qid = hdr.h.kind[6:0];
        if (hdr.h.value >= 64) { tm.packet_color = (bit<2>) hdr.h.value; }
        if (hdr.h.value == 1) { deparsed.adv_flow_ctl = hdr.wide.a; deparsed.drop_ctl = 1; }
    }""",
    "EGRESS_PARSER": (
        "state start { packet.extract(intrinsic); packet.extract(hdr.h); packet.extract(hdr.wide);"
        " transition accept; }"
    ),
    "EGRESS": """apply {
        if (hdr.h.value == 2) { deparsed.adv_flow_ctl = hdr.wide.a; }
        hdr.h.kind = intrinsic.enq_qdepth[7:0];
        hdr.h.value = intrinsic.deq_qdepth[7:0];
        hdr.wide.a = 28w0 ++ intrinsic.enq_congest_stat ++ intrinsic.deq_congest_stat;
    }""",
}


def packet(queue: int, mark: int = 0, command: int = 0, message: int = 0, size: int = 160) -> bytes:
    head = bytes([queue, command]) + message.to_bytes(4, "big") + mark.to_bytes(4, "big")
    return head.ljust(size, b"\x11")


def flow(mac_queue: int, credit: int, pipe: int = 0, mac: int = 2, valid: int = 1) -> int:
    return valid << 31 | pipe << 29 | mac << 25 | mac_queue << 15 | credit


def command(time_ns: int, message: int) -> tuple[int, bytes]:
    return time_ns, packet(0, command=1, message=message)


@cache
def switch(folder: Path) -> Switch:
    """Return the switch of the network that a test makes in this folder."""
    return Switch(str(build(compile_program(tofino.write(folder, **BLOCKS), arch="t2na").program)))


def schedule(folder: Path, *, disabled: int = 0, **queues: tuple[int, int]) -> None:
    """Set the schedule of the receiver's port: priority and weight of queues by their names, `q3` for queue 3."""
    of = {int(name[1:]): values for name, values in queues.items()}
    priorities = sum(priority + 1 << 8 * queue for queue, (priority, _) in of.items())
    weights = sum(weight << 16 * queue for queue, (_, weight) in of.items())
    cell = {"priorities": priorities, "weights": weights, "disabled": disabled}
    switch(folder).object_write("$schedule", 16, objects.packed(ScheduleState, cell))


def shape(folder: Path, queue: int | None = None, **bucket: int) -> None:
    """Set the token buckets of a queue of the receiver's port, or of the port."""
    cell = {**dict.fromkeys(dict(ShaperState.cell), 0), **bucket}
    name, index = ("$port_shaper", 16) if queue is None else ("$queue_shaper", 16 * ScheduleState.QUEUES + queue)
    switch(folder).object_write(name, index, objects.packed(ShaperState, cell))


def gaps(host: Host) -> set[int]:
    times = [time for time, _ in host.got]
    return {after - before for before, after in pairwise(times)}


def network(
    folder: Path, frames: list[tuple[int, bytes]], others: tuple[int, ...] = (), rate_bps: int = GBPS, **config: Any
) -> tuple[Fabric, Host]:
    """Return a network with a sender at port 8 and its receiver at port 16, and hosts at the others."""
    made = Fabric()
    sink = Host()
    for host in (Host(frames), sink, *(Host() for _ in others)):
        made.add_host(host)
    node = made.add_switch(switch(folder), cell_bytes=80, **config)
    for i, port in enumerate((8, 16, *others)):
        made.connect(i, 0, node, port, rate_bps=100 * GBPS if i == 0 else rate_bps, delay_ns=0)
    return made, sink


def marks(host: Host) -> list[int]:
    return [int.from_bytes(data[6:10], "big") for _, data in host.got]


def test_the_higher_queue_goes_first_and_packets_of_one_stay_in_order(tmp_path: Path) -> None:
    queues = (0, 3, 7, 8, 63, 64, 127)
    made, sink = network(tmp_path, [(0, packet(q, 10 * q + i)) for i in range(2) for q in queues])
    assert made.run() == "idle"
    balance(made)
    first, *others = marks(sink)
    assert first == 0, "it found the port idle"
    assert others == [*[10 * q + i for q in reversed(queues) for i in range(2)][:-2], 1]


def test_a_packet_sees_the_depth_of_its_own_queue(tmp_path: Path) -> None:
    made, sink = network(tmp_path, [(0, packet(q, q)) for q in (0, 40, 40, 7, 40, 7)])
    assert made.run() == "idle"
    seen = [(mark, data[0], data[1]) for mark, (_, data) in zip(marks(sink), sink.got, strict=True)]
    assert seen == [(0, 0, 0), (40, 0, 4), (40, 2, 2), (40, 4, 0), (7, 0, 2), (7, 2, 0)]


@pytest.mark.parametrize("queue", [0, 5, 7, 9, 70])
def test_a_queue_stops_and_goes_on(tmp_path: Path, queue: int) -> None:
    other = 3 if queue else 1
    sent = [(100, packet(queue, 1)), (200, packet(other, 2)), (5_000, packet(queue, 3))]
    made, sink = network(tmp_path, [command(0, flow(queue, 1)), *sent, command(50_000, flow(queue, 0))])
    assert made.run() == "idle"
    balance(made)
    assert marks(sink) == [2, 1, 3]
    assert sink.got[0][0] < 5_000 < 50_000 < sink.got[1][0]


def test_a_stopped_queue_waits_in_the_order_of_its_priority(tmp_path: Path) -> None:
    """There are higher and lower queues than the stopped one, in the same priority and in others."""
    sent = [(100, packet(q, q)) for q in (2, 30, 20, 25, 7)]
    made, sink = network(tmp_path, [command(0, flow(25, 1)), *sent, command(2_000, flow(25, 0))])
    assert made.run() == "idle"
    assert marks(sink) == [2, 30, 25, 20, 7]


def test_queues_of_one_priority_share_the_link_by_their_weights(tmp_path: Path) -> None:
    """The first packet finds the port idle. A weight counts bytes: packets of queue 9 have twice the length."""
    sent = [(0, packet(q, q, size=320 if q == 9 else 160)) for _ in range(60) for q in (2, 4, 9)]
    made, sink = network(tmp_path, sent)
    schedule(tmp_path, q2=(3, 100), q4=(3, 300), q9=(3, 600))
    assert made.run(until_ns=160 * 8 * 100) == "until"
    served = Counter(marks(sink)[1:])
    assert served[4] == pytest.approx(3 * served[2], abs=4)
    assert served[9] == pytest.approx(3 * served[2], abs=4)
    assert made.run() == "idle"
    balance(made)
    assert Counter(marks(sink)) == {2: 60, 4: 60, 9: 60}


def test_a_priority_of_the_control_plane_goes_before_the_number(tmp_path: Path) -> None:
    """A queue without a weight is served before those of its priority that have one; queue 70 keeps priority 7."""
    schedule(tmp_path, q1=(6, 0), q2=(6, 10), q7=(4, 0))  # before the switch has a port, as in a scenario
    made, sink = network(tmp_path, [(0, packet(q, q)) for q in (0, 7, 3, 70, 2, 1, 5)])
    assert made.run() == "idle"
    assert marks(sink) == [0, 70, 1, 2, 5, 7, 3]


def test_ports_of_several_pipes_that_one_pipeline_runs_have_the_schedule_of_their_number(tmp_path: Path) -> None:
    """Port 144 is port 16 of the second pipe."""
    (tmp_path / "far").mkdir()
    blocks = {**BLOCKS, "INGRESS": BLOCKS["INGRESS"].replace("ucast_egress_port = 16", "ucast_egress_port = 144")}
    far = Switch(str(build(compile_program(tofino.write(tmp_path / "far", **blocks), arch="t2na").program)))
    made, sink = Fabric(), Host()
    made.add_host(Host([(0, packet(q, q)) for q in (0, 3, 2)]))
    made.add_host(sink)
    node = made.add_switch(far, cell_bytes=80)
    for host, (port, rate_bps) in enumerate(((8, 100 * GBPS), (144, GBPS))):
        made.connect(host, 0, node, port, rate_bps=rate_bps, delay_ns=0)
    cell = {"priorities": 8 << 8 * 2, "weights": 0, "disabled": 0}
    far.object_write("$schedule", 16, objects.packed(ScheduleState, cell))
    assert made.run() == "idle"
    assert marks(sink) == [0, 2, 3]


@pytest.mark.parametrize("queue", [2, 7, 9])
@pytest.mark.parametrize("others", [(1,), (1, 30)])
def test_a_queue_that_is_disabled_waits_until_it_is_enabled(
    tmp_path: Path, queue: int, others: tuple[int, ...]
) -> None:
    """Advanced flow control, which releases it, does not enable it."""
    sent = [(100, packet(queue, queue)), *((200, packet(q, q)) for q in others), command(9_000, flow(queue, 0))]
    made, sink = network(tmp_path, sent)
    schedule(tmp_path, disabled=1 << queue)
    assert made.run() == "idle"
    assert (sorted(marks(sink)), balance(made)["queued"]) == ([*others], 1)
    schedule(tmp_path)
    assert made.run() == "idle"
    assert marks(sink)[-1] == queue


@pytest.mark.parametrize("queue", [2, 7, 9, None])
def test_packets_leave_at_the_rate_of_a_token_bucket(tmp_path: Path, queue: int | None) -> None:
    """A packet of 160 bytes takes 1280 ns at 1 Gb/s; 300 Mb/s are a packet each 4266.67 ns."""
    made, sink = network(tmp_path, [(0, packet(2 if queue is None else queue, i)) for i in range(30)])
    shape(tmp_path, queue, limited=1, max_rate=300_000)
    assert made.run() == "idle"
    balance(made)
    assert marks(sink) == [*range(30)]
    assert gaps(sink) == {4266, 4267}
    assert sink.got[-1][0] - sink.got[0][0] == pytest.approx(29 * 160 * 8 / 0.3, abs=1)


def test_a_token_bucket_may_count_packets(tmp_path: Path) -> None:
    made, sink = network(tmp_path, [(0, packet(3, i, size=160 * (1 + i % 2))) for i in range(10)])
    shape(tmp_path, 3, limited=1, packets=1, max_rate=100_000)
    starts = []
    assert made.run() == "idle"
    starts = [time - 8 * len(data) for time, data in sink.got]
    assert {after - before for before, after in pairwise(starts)} == {10_000}


def test_a_full_bucket_lets_a_burst_through(tmp_path: Path) -> None:
    """Four packets of the bucket and the one that empties it leave at the link's rate, and as many after a pause."""
    frames = [(at, packet(3, at)) for at in (0, 100_000) for _ in range(8)]
    made, sink = network(tmp_path, frames)
    shape(tmp_path, 3, limited=1, max_rate=100_000, max_burst=4 * 160)
    assert made.run() == "idle"
    times = [time for time, _ in sink.got]
    for first in (0, 8):
        burst = [after - before for before, after in pairwise(times[first : first + 8])]
        assert burst[:4] == [1280] * 4
        assert burst[5:] == [12_800] * 2


def test_other_queues_use_what_a_limited_one_leaves(tmp_path: Path) -> None:
    sent = [(0, packet(q, q)) for _ in range(40) for q in (5, 1)]
    made, sink = network(tmp_path, sent)
    shape(tmp_path, 5, limited=1, max_rate=250_000)
    assert made.run(until_ns=1280 * 41) == "until"
    assert Counter(marks(sink)) == {5: 10, 1: 30}


def test_a_queue_below_its_guaranteed_rate_goes_before_higher_ones(tmp_path: Path) -> None:
    sent = [(0, packet(q, q)) for _ in range(60) for q in (5, 1, 0)]
    made, sink = network(tmp_path, sent)
    shape(tmp_path, 1, guaranteed=1, min_rate=200_000)
    shape(tmp_path, 0, guaranteed=1, min_rate=100_000, min_priority=6)
    assert made.run(until_ns=1280 * 51) == "until"
    assert Counter(marks(sink)) == {5: 35, 1: 10, 0: 5}


def test_a_limit_that_is_lifted_lets_packets_go_at_once(tmp_path: Path) -> None:
    made, sink = network(tmp_path, [(0, packet(3, i)) for i in range(3)])
    shape(tmp_path, 3, limited=1, packets=1, max_rate=1)
    assert made.run(until_ns=50_000) == "until"
    assert marks(sink) == [0]
    shape(tmp_path, 3)
    assert made.run(until_ns=60_000) == "until"
    assert marks(sink) == [0, 1, 2]


def test_each_queue_has_counts_of_its_own(tmp_path: Path) -> None:
    """The first packet finds the port idle, and a queue holds one packet of two cells."""
    sent = [(0, packet(q)) for q in (0, 3, 3, 7, 7, 20, 20)]
    made, _ = network(tmp_path, sent, queue_bytes=400)
    node = 2
    assert made.run(until_ns=1_000) == "until"
    ports = port_counts(made.port_counts(node))
    assert (ports[8].frames_received, ports[8].octets_received) == (7, 7 * 164)
    assert (ports[16].frames_sent, ports[16].waiting.dropped_packets) == (1, 2)
    assert [ports[16].queues[queue] for queue in (3, 7)] == [QueueCounts(0, 4, 4), QueueCounts(0, 4, 4)]
    assert made.run() == "idle"
    ports = port_counts(made.port_counts(node))
    assert (ports[16].frames_sent, ports[16].octets_sent) == (5, 5 * 164)
    assert ports[16].waiting == QueueCounts(2, 0, 8)


def test_what_no_queue_is_released_for_stays(tmp_path: Path) -> None:
    made, sink = network(tmp_path, [command(0, flow(9, 1)), (100, packet(9, 1)), (100, packet(10, 2))])
    assert made.run() == "idle"
    terms = balance(made)
    assert (marks(sink), terms["queued"]) == ([2], 1)
    made.set_link_up(1, False)
    assert balance(made)["drop_link_down"] == 1


@pytest.mark.parametrize(
    ("message", "others", "stops"),
    [
        (flow(9, 1, valid=0), (), False),
        (flow(9, 1, mac=3), (), False),
        (flow(9, 1, pipe=1), (), False),
        (flow(16 + 9, 1), (), False),
        (flow(16 + 9, 1), (17,), False),
        (flow(9, 1), (17,), True),
    ],
)
def test_a_message_names_a_queue_of_a_mac(
    tmp_path: Path, message: int, others: tuple[int, ...], stops: bool
) -> None:
    made, sink = network(tmp_path, [command(0, message), (100, packet(9, 1))], others)
    assert made.run() == "idle"
    assert marks(sink) == ([] if stops else [1])


@pytest.mark.parametrize(("others", "stops"), [((), True), ((17,), False), ((18,), True)])
def test_queues_of_ports_that_there_are_not_are_the_ones_before(
    tmp_path: Path, others: tuple[int, ...], stops: bool
) -> None:
    made, sink = network(tmp_path, [command(0, flow(16 + 9, 1)), (100, packet(16 + 9, 1))], others)
    assert made.run() == "idle"
    assert marks(sink) == ([] if stops else [1])


def test_egress_releases_a_queue_behind_the_last_packet_of_another(tmp_path: Path) -> None:
    """As in ConWeave, packets out of order wait in a separate queue until the tail of the others has left."""
    early = [(100, packet(20, mark, size=1000)) for mark in (4, 5)]
    late = [(3_000 * i, packet(0, i, size=1000)) for i in (1, 2)]
    tail = (9_000, packet(0, 3, command=2, message=flow(20, 0)))
    made, sink = network(tmp_path, [command(0, flow(20, 1)), *early, *late, tail, (9_100, packet(0, 6))], rate_bps=GBPS)
    assert made.run() == "idle"
    balance(made)
    assert marks(sink) == [1, 2, 3, 4, 5, 6]


def test_a_link_that_goes_down_loses_what_is_stopped(tmp_path: Path) -> None:
    made, sink = network(tmp_path, [command(0, flow(9, 1)), *((100, packet(q, q)) for q in (9, 12, 9, 100))])
    made.run(400)
    made.set_link_up(1, False)
    assert made.run() == "idle"
    terms = balance(made)
    assert len(sink.got) + terms["drop_link_down"] == 4


def test_limits_are_of_the_highest_priority(tmp_path: Path) -> None:
    made, sink = network(tmp_path, [(0, packet(q, i)) for i, q in enumerate((0, 8, 9, 10, 11, 7))], queue_packets=3)
    assert made.run() == "idle"
    assert balance(made)["drop_buffer"] == 2
    assert marks(sink) == [0, 3, 2, 1]


GREEN, YELLOW, RED = 64, 65, 67


@pytest.mark.parametrize("queue", [3, 7, 40])
def test_a_queue_lets_a_packet_in_by_its_colour(tmp_path: Path, queue: int) -> None:
    """The first packet finds the port idle. Each has 160 bytes; a red one fits beside one, a yellow one beside two."""
    colours = (GREEN, RED, GREEN, RED, YELLOW, YELLOW, RED, GREEN, GREEN, YELLOW)
    frames = [(i, packet(queue, i, command=colour)) for i, colour in enumerate(colours)]
    made, sink = network(tmp_path, frames, yellow_bytes=480, red_bytes=320, queue_bytes=800)
    assert made.run() == "idle"
    assert marks(sink) == [0, 1, 2, 4, 7, 8]
    assert balance(made)["drop_buffer"] == 4
    states = [data[5] for _, data in sink.got]
    assert states == [0b0000, 0b0010, 0b0001, 0b0000, 0b0100, 0b1000]


def test_colours_mean_nothing_without_thresholds(tmp_path: Path) -> None:
    made, sink = network(tmp_path, [(i, packet(3, i, command=RED)) for i in range(10)], queue_bytes=800)
    assert made.run() == "idle"
    assert (len(sink.got), {data[5] for _, data in sink.got}) == (6, {0})


def test_yellow_packets_have_as_much_room_as_red_ones(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="yellow_bytes: expected red_bytes or more"):
        network(tmp_path, [], yellow_bytes=100, red_bytes=200)


@pytest.mark.parametrize("queue", [7, 9])
def test_where_packets_take_turns_the_highest_priority_has_one_queue(tmp_path: Path, queue: int) -> None:
    frames = [(0, packet(9, 1)), (0, packet(12, 2)), command(1, flow(queue, 1)), (5_000, packet(20, 3))]
    made, sink = network(tmp_path, [*frames, command(9_000, flow(queue, 0))], scheduler="round_robin")
    assert made.run() == "idle"
    balance(made)
    assert marks(sink) == [1, 2, 3]
    assert sink.got[1][0] > 9_000


def test_a_trace_tells_of_it(tmp_path: Path) -> None:
    traced = build_traced(compile_program(tofino.write(tmp_path, **BLOCKS), arch="t2na").program)
    made = Switch(str(traced.library))
    made.set_tracing(True)
    for credit in (1, 0):
        made.process(8, packet(0, command=1, message=flow(16 + 9, credit)))
    trace = Trace(Decoder(traced)(made.traced()[0]))
    assert [(e.port, e.queue, e.stopped) for e in trace.of(ev.QueueStopped)] == [(17, 9, True), (17, 9, False)]
    assert "queue 9 of port 17 stops" in trace.text()
    assert "Releasing queue 9 of port 17" in trace.log()
