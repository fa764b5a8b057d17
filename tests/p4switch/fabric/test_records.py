"""Records: samples, traces, captures, flows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.p4switch.fabric.stub import GBPS, Host, Star, columns, frame, ip, load

if TYPE_CHECKING:
    from p4switch.fabric import Fabric


def slow_star(count: int = 10, **star: Any) -> Star:
    """Return a star with a frame every 80 ns to a port that needs 800 ns for each."""
    a = Host([(0, frame(0, 1, 1000, priority=3)) for _ in range(count)])
    return Star([a, Host()], rates={1: 10 * GBPS}, delay_ns=0, **star)


def samples(fabric: Fabric, columns: int) -> tuple[list[int], np.ndarray]:
    times, values = fabric.samples()
    return np.frombuffer(times, np.int64).tolist(), np.frombuffer(values, np.int64).reshape(-1, columns)


def test_samples_of_every_kind() -> None:
    star = slow_star()
    f, s = star.fabric, star.switch
    kinds = [("depth_bytes", None), ("depth_bytes", 3), ("depth_bytes", 2), ("depth_packets", None),
             ("depth_max_bytes", 3), ("tx_bytes", None), ("paused", 3), ("buffer_bytes", None)]
    assert [f.probe(kind, s, 1, priority) for kind, priority in kinds] == list(range(8))
    assert f.probe("tx_bytes", 0) == 8
    f.sample(400)
    star.run(2000)
    times, values = samples(f, 9)
    assert times == [0, 400, 800, 1200, 1600, 2000]
    # arrivals at 80, 160, ..., 800 (before anything of that instant); departures at 80, 880, 1680
    waiting = [0, 3, 8, 8, 8, 7]
    assert values[:, 0].tolist() == values[:, 1].tolist() == values[:, 7].tolist() == [1000 * n for n in waiting]
    assert values[:, 2].tolist() == values[:, 6].tolist() == [0] * 6
    assert values[:, 3].tolist() == waiting
    assert values[:, 4].tolist() == [0, 3000, 8000, 9000, 8000, 8000]
    assert values[:, 5].tolist() == [0, 1000, 1000, 2000, 2000, 3000]
    assert values[:, 8].tolist() == [0, 5000, 10000, 10000, 10000, 10000]
    assert samples(f, 9)[0] == [], "they were taken out"
    with pytest.raises(ValueError, match="before the first sample"):
        f.probe("tx_bytes", 0)


def test_sampling_does_not_keep_a_run_alive() -> None:
    star = slow_star(1)
    star.fabric.probe("tx_bytes", star.switch, 1)
    star.fabric.sample(10)
    assert star.run() == "idle"
    times, _ = samples(star.fabric, 1)
    assert times[-1] <= star.fabric.now_ns


def test_trace_of_one_flow() -> None:
    a = Host([(0, frame(0, 1, 1000, qp=5)), (0, frame(0, 1, 500, qp=6)), (0, frame(0, 1, 1000, qp=5))])
    star = Star([a, Host()], rates={1: 10 * GBPS}, delay_ns=10, queue_packets=1)
    tag = star.fabric.flow(ip(0), ip(1), 5)
    star.fabric.trace(tag)
    star.run()
    first, second = 1, 2  # of the host with index 0
    assert star.fabric.trace_records() == [
        (0, 0, "send", 0, -1, 0, 1000, first, 0),
        (90, 2, "receive", 0, -1, 0, 1000, first, 0),
        (90, 2, "enqueue", 1, 0, 0, 1000, first, 0),
        (90, 2, "transmit", 1, 0, 0, 1000, first, 0),
        (120, 0, "send", 0, -1, 0, 1000, second, 0),
        (210, 2, "receive", 0, -1, 0, 1000, second, 0),
        (210, 2, "drop:buffer", 1, -1, 0, 1000, second, 0),
        (900, 1, "receive", 0, -1, 0, 1000, first, 0),
    ]
    assert star.fabric.trace_records() == []


def test_a_trace_has_limits_and_what_it_does_not_tell_is_accounted_all_the_same() -> None:
    frames = [(200 * i, frame(0, 1, 1000, qp=5)) for i in range(6)]
    everything = {"from_ns": 0, "until_ns": 2**64 - 1, "packets": 2**32 - 1}
    for limits, sent in (
        ({}, [0, 200, 400, 600, 800, 1000]), ({"packets": 2}, [0, 200]),
        ({"from_ns": 200, "until_ns": 600}, [200, 400]),
        ({"from_ns": 201, "packets": 1}, [400]), (everything, [0, 200, 400, 600, 800, 1000]),
    ):  # fmt: skip
        star = Star([Host(frames), Host()], rates={1: 10 * GBPS}, delay_ns=10)
        tag = star.fabric.flow(ip(0), ip(1), 5)
        star.fabric.trace(tag, **limits)
        star.run()
        records = star.fabric.trace_records()
        assert [r[0] for r in records if r[2] == "send"] == sent
        packets = [r[7] for r in records]
        assert {packets.count(packet) for packet in packets} == {5}, "each from its start to its end"
        flows = columns(star.fabric.flow_stats())
        assert (flows["tag"], flows["sent_packets"], flows["delivered_packets"]) == ([tag], [6], [6])
        assert flows["last_delivered_ns"] == [records[-1][0]] or "until_ns" in limits or "packets" in limits


def test_trace_of_everything_tells_the_depths() -> None:
    star = slow_star(3)
    star.fabric.trace(0)
    star.run()
    records = star.fabric.trace_records()
    assert [r[5] for r in records if r[2] == "enqueue"] == [0, 0, 1000]
    assert [r[5] for r in records if r[2] == "transmit"] == [0, 1000, 0]


def test_capture_of_a_link() -> None:
    star = slow_star(2)
    star.fabric.capture(star.links[1], snap_bytes=20)
    star.run()
    whole = frame(0, 1, 1000, priority=3)
    assert star.fabric.captured() == [(80, 1, 1, whole[:20], 1000), (880, 1, 1, whole[:20], 1000)]
    assert star.fabric.captured() == []


def test_flows_are_told_apart_and_accounted() -> None:
    arp = b"\x02" * 12 + b"\x08\x06" + bytes(46)
    a = Host([(100 * i, frame(0, 1, 1000, qp=1 + 4 * (i % 3))) for i in range(9)] + [(5000, arp)])
    star = Star([a, Host()], rates={1: GBPS}, delay_ns=0, queue_packets=2)
    star.run()
    flows = columns(star.fabric.flow_stats())
    assert flows["tag"] == [0, 1, 2, 3], "what has no IPv4 header is flow 0"
    assert flows["qp"] == [0, 1, 5, 9]
    assert flows["src_ip"][1:] == [ip(0)] * 3
    assert flows["host"][1:] == [0] * 3
    assert flows["sent_packets"] == [1, 3, 3, 3]
    assert flows["sent_bytes"] == [60, 3000, 3000, 3000]
    assert flows["delivered_packets"] == [1, 1, 1, 1]
    assert flows["dropped_packets"] == [0, 2, 2, 2]
    assert flows["first_sent_ns"] == [5000, 0, 100, 200]
    assert flows["last_sent_ns"] == [5000, 600, 700, 800]
    assert flows["first_delivered_ns"][1:] == [8080, 16080, 24080]
    assert star.fabric.flow(ip(0), ip(1), 5) == 2
    assert star.fabric.flow(ip(7), ip(1), 5) == 4


def test_many_flows() -> None:
    count = 1000
    a = Host([(0, frame(0, 1, 100, qp=i)) for i in range(count) for _ in range(2)])
    star = Star([a, Host()])
    star.run()
    flows = columns(star.fabric.flow_stats())
    assert flows["qp"] == list(range(count))
    assert set(flows["delivered_packets"]) == {2}


def test_host_to_host_without_a_switch_is_recorded_too() -> None:
    a, b = Host([(0, frame(0, 1, 1000))]), Host()
    network = load().Fabric()
    link = network.connect(network.add_host(a), 0, network.add_host(b), 0, rate_bps=GBPS, delay_ns=7)
    network.capture(link)
    network.trace(0)
    network.run()
    assert network.captured() == [(0, link, 0, frame(0, 1, 1000), 1000)]
    assert [r[:3] for r in network.trace_records()] == [(0, 0, "send"), (8007, 1, "receive")]
