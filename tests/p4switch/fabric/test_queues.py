"""Queues: order, limits, shared buffer and counts."""

import struct
from collections.abc import Callable

import pytest

from tests.p4switch.fabric.stub import GBPS, Host, Star, balance, columns, frame, load, mark_of


def marks(host: Host) -> list[int]:
    return [mark_of(data) for _, data in host.got]


def test_higher_priorities_go_first() -> None:
    """Port 3 runs at a tenth of the rate, so that all frames wait behind the first."""
    senders = [Host([(0, frame(i, 3, 1000, priority=p, mark=10 * p + n)) for n in range(3)])
               for i, p in enumerate((2, 7, 0))]
    sink = Host()
    Star([*senders, sink], rates={3: 10 * GBPS}, delay_ns=0).run()
    assert marks(sink) == [20, 70, 71, 72, 21, 22, 0, 1, 2]


def test_fifo_keeps_the_order_of_arrival() -> None:
    a = Host([(0, frame(0, 2, 1000, mark=i)) for i in range(6)])
    b = Host([(161, frame(1, 2, 1000, mark=10 + i)) for i in range(3)])
    sink = Host()
    Star([a, b, sink], rates={2: 10 * GBPS}, delay_ns=0).run()
    assert marks(sink) == [0, 1, 2, 10, 3, 11, 4, 12, 5]


def test_round_robin_takes_turns_between_ingress_ports() -> None:
    a = Host([(0, frame(0, 3, 1000, mark=i)) for i in range(6)])
    b = Host([(400, frame(1, 3, 1000, mark=10 + i)) for i in range(3)])
    c = Host([(400, frame(2, 3, 1000, mark=20 + i)) for i in range(2)])
    sink = Host()
    Star([a, b, c, sink], rates={3: 10 * GBPS}, delay_ns=0, scheduler="round_robin").run()
    assert marks(sink) == [0, 1, 10, 20, 2, 11, 21, 3, 12, 4, 5]


def test_round_robin_shares_a_link_equally_whatever_is_offered() -> None:
    """One sender fills its link and the other half of it; each gets half of the output while both send."""
    a = Host([(0, frame(0, 2, 1000, mark=0)) for _ in range(400)])
    b = Host([(160 * i, frame(1, 2, 1000, mark=1)) for i in range(200)])
    sink = Host()
    Star([a, b, sink], scheduler="round_robin").run()
    both = marks(sink)[:300]
    assert 149 <= sum(both) <= 151


def test_queue_limit_in_packets_drops_the_tail() -> None:
    a = Host([(0, frame(0, 1, 1000, mark=i)) for i in range(10)])
    sink = Host()
    star = Star([a, sink], rates={1: 1 * GBPS}, delay_ns=0, queue_packets=3)
    star.run()
    assert marks(sink) == [0, 1, 2, 3]
    assert balance(star.fabric)["drop_buffer"] == 6
    queues = columns(star.fabric.queue_stats())
    assert (queues["dropped_packets"], queues["dropped_bytes"], queues["max_packets"]) == ([6], [6000], [3])


def test_queue_limit_in_bytes_lets_a_smaller_packet_in() -> None:
    a = Host([(0, frame(0, 1, n, mark=i)) for i, n in enumerate((1000, 1000, 1000, 600, 500))])
    sink = Host()
    star = Star([a, sink], rates={1: 1 * GBPS}, delay_ns=0, queue_bytes=2500)
    star.run()
    assert marks(sink) == [0, 1, 2, 4]
    assert columns(star.fabric.queue_stats())["max_bytes"] == [2500]


def test_port_limit_is_over_all_queues() -> None:
    a = Host([(0, frame(0, 1, 1000, priority=i % 4, mark=i)) for i in range(8)])
    sink = Host()
    star = Star([a, sink], rates={1: 1 * GBPS}, delay_ns=0, port_packets=3)
    star.run()
    assert marks(sink) == [0, 3, 2, 1]
    assert columns(star.fabric.port_stats())["max_packets"][-1] == 3


def test_limits_of_one_queue_and_one_port_can_be_set() -> None:
    a = Host([(0, frame(0, 1, 1000, priority=p, mark=10 * p + i)) for i in range(4) for p in (0, 1)])
    sink = Host()
    star = Star([a, sink], rates={1: 1 * GBPS}, delay_ns=0)
    star.fabric.set_queue(star.switch, 1, 0, limit_packets=1)
    star.run()
    assert marks(sink) == [0, 10, 11, 12, 13, 1]
    star.fabric.set_port(star.switch, 1, limit_bytes=0)
    assert star.fabric.conservation()["drop_buffer"] == 2


def test_a_full_shared_buffer_drops() -> None:
    a = Host([(0, frame(0, 1, 1000)) for _ in range(10)])
    star = Star([a, Host()], rates={1: 1 * GBPS}, delay_ns=0, buffer_bytes=4500)
    star.run()
    assert balance(star.fabric)["drop_buffer"] == 5
    assert columns(star.fabric.buffer_stats())["max_bytes"] == [4000]


@pytest.mark.parametrize(("alpha", "active"), [(1.0, 1), (1.0, 2), (0.5, 1), (2.0, 3)])
def test_dynamic_threshold(alpha: float, active: int) -> None:
    """Each of n overloaded queues settles at alpha B / (1 + n alpha) (Choudhury and Hahne)."""
    buffer = 120_000
    senders = [Host([(0, frame(i, active + i, 500)) for _ in range(600)]) for i in range(active)]
    sinks = [Host() for _ in range(active)]
    star = Star([*senders, *sinks], rates={active + i: 1_000_000 for i in range(active)}, delay_ns=0,
                buffer_bytes=buffer, alpha=alpha)
    star.run(100_000)
    expected = alpha * buffer / (1 + active * alpha)
    for depth in columns(star.fabric.queue_stats())["depth_bytes"]:
        assert expected - 1000 <= depth <= expected + 1000


def test_the_pipeline_is_told_depths_and_times() -> None:
    """Depths are in cells of 80 bytes, at a packet's arrival and departure; the first two packets never wait."""
    a = Host([(0, frame(0, 1, 1000) + bytes(2)) for _ in range(4)])
    sink = Host()
    Star([a, sink], rates={1: 10 * GBPS}, delay_ns=0, stamp=True).run()
    stamps = [struct.unpack("!IIII", data[40:56]) for _, data in sink.got]
    assert stamps == [(0, 0, 80, 80), (0, 25, 160, 880), (13, 13, 240, 1680), (25, 0, 320, 2480)]


def test_depths_in_packets() -> None:
    a = Host([(0, frame(0, 1, 1000) + bytes(2)) for _ in range(4)])
    sink = Host()
    Star([a, sink], rates={1: 10 * GBPS}, delay_ns=0, stamp=True, cell_bytes=0).run()
    assert [struct.unpack("!II", data[40:48]) for _, data in sink.got] == [(0, 0), (0, 2), (1, 1), (2, 0)]


def test_depth_saturates_at_19_bits() -> None:
    count = 70_000
    a = Host([(0, frame(0, 1, 8 * 80) + bytes(2)) for _ in range(count)])
    sink = Host()
    star = Star([a, sink], rates={1: 1_000_000}, delay_ns=0, stamp=True, rate_bps=100_000 * GBPS)
    star.run(10_000_000)
    star.fabric.set_link_rate(star.links[1], 100_000 * GBPS)
    star.fabric.run()
    depths = [struct.unpack("!I", data[40:44])[0] for _, data in sink.got]
    assert max(depths) == 2**19 - 1


def test_mean_depth_is_weighted_by_time() -> None:
    """Three frames arrive at a port that is busy for 800 ns with each; from 160 and 240 ns on two of them wait."""
    a = Host([(0, frame(0, 1, 1000)) for _ in range(3)])
    star = Star([a, Host()], rates={1: 10 * GBPS}, delay_ns=0)
    star.run()
    assert columns(star.fabric.queue_stats())["byte_ns"] == [1000 * (880 - 160) + 1000 * (1680 - 240)]


def test_multicast_copies_are_counted() -> None:
    sinks = [Host() for _ in range(3)]
    a = Host([(0, frame(0, 9, 1000)) for _ in range(5)])
    star = Star([a, *sinks], routes={9: [1, 2, 3]})
    star.run()
    terms = balance(star.fabric)
    assert (terms["entered"], terms["copied"], terms["delivered"]) == (5, 10, 15)
    assert [len(sink.got) for sink in sinks] == [5, 5, 5]


def test_copies_to_the_same_port_leave_one_after_the_other() -> None:
    sink = Host()
    Star([Host([(0, frame(0, 9, 1000))]), sink], routes={9: [1, 1, 1]}, delay_ns=0).run()
    assert [time for time, _ in sink.got] == [160, 240, 320]


def test_ports_that_do_not_exist() -> None:
    star = Star([Host([(0, frame(0, 5, 1000)), (0, frame(0, 6, 1000))]), Host()], routes={5: [77]})
    star.run()
    terms = balance(star.fabric)
    assert (terms["drop_no_port"], terms["drop_program_ingress"]) == (1, 1)
    ports = columns(star.fabric.port_stats())
    assert (ports["port"][-1], ports["drop_no_port"][-1], ports["drop_bytes"][-1]) == (-1, 1, 1000)
    assert ports["drop_program_ingress"][2] == 1


def test_wrong_arguments_change_nothing() -> None:
    engine = load()
    network = engine.Fabric()
    host = network.add_host(Host())
    switch = engine.Switch({})
    node = network.add_switch(switch)
    link = network.connect(host, 0, node, 3, rate_bps=GBPS, delay_ns=0)
    other = network.add_host(Host())
    calls: tuple[Callable[[], object], ...] = (
        lambda: network.add_switch(switch),
        lambda: network.add_switch(engine.Switch({}), alpha=1.0),
        lambda: network.add_switch(engine.Switch({}), scheduler="lifo"),
        lambda: network.add_switch(engine.Switch({}), queue_bytes=-1),
        lambda: network.connect(host, 0, node, 4, rate_bps=GBPS, delay_ns=0),
        lambda: network.connect(other, 1, node, 4, rate_bps=GBPS, delay_ns=0),
        lambda: network.connect(other, 0, node, 3, rate_bps=GBPS, delay_ns=0),
        lambda: network.connect(other, 0, node, 4, rate_bps=0, delay_ns=0),
        lambda: network.connect(other, 0, node, 4, rate_bps=GBPS, delay_ns=-1),
        lambda: network.connect(other, 0, 17, 4, rate_bps=GBPS, delay_ns=0),
        lambda: network.set_pfc(node, priorities=[3]),
        lambda: network.set_pfc(node, priorities=[8], xoff_bytes=1),
        lambda: network.set_pfc(node, priorities=[3], alpha=1.0),
        lambda: network.set_pfc(host, priorities=[3], xoff_bytes=1),
        lambda: network.set_queue(node, 3, 8),
        lambda: network.set_queue(node, 4, 0),
        lambda: network.set_link_rate(link, 0),
        lambda: network.set_link_rate(link + 1, 1),
        lambda: network.set_link_up(-1, True),
        lambda: network.probe("depth", node, 3),
        lambda: network.kick(node),
        lambda: network.at(-1, print),
        lambda: engine.Fabric(framing_bytes=-1025),
    )
    for call in calls:
        with pytest.raises(ValueError, match=r"expected|there are|already|no port"):
            call()
    with pytest.raises(TypeError):
        network.add_switch(Host())
    with pytest.raises(AttributeError):
        network.add_host(object())
    assert (network.nodes, network.links) == (3, 1)
    assert network.run() == "idle"


def lanes(classes: str, equal: tuple[int, ...] = (3, 4)) -> list[int]:
    """Return two lanes to one slow port: lane 4 has an early burst, lane 3 one a little later; 6 comes in between."""
    first = Host([(0, frame(0, 3, 1000, priority=4, mark=40 + i)) for i in range(4)])
    second = Host([(100, frame(1, 3, 1000, priority=3, mark=30 + i)) for i in range(4)])
    control = Host([(900, frame(2, 3, 1000, priority=6, mark=60))])
    sink = Host()
    hosts = [first, second, control, sink]
    Star(hosts, rates={3: 10 * GBPS}, delay_ns=0, classes=classes, equal_priorities=equal).run()
    return marks(sink)


def test_strict_classes_serve_the_higher_priority_first() -> None:
    assert lanes("strict") == [40, 41, 60, 42, 43, 30, 31, 32, 33]


def test_equal_classes_that_are_served_by_age() -> None:
    """Lane 4 has frames from 80, 160, ... ns, lane 3 from 180, 260, ... ns, and they leave in this order."""
    assert lanes("oldest") == [40, 41, 60, 30, 42, 31, 43, 32, 33]


def test_equal_classes_that_are_served_by_turns() -> None:
    assert lanes("least_recent") == [40, 30, 60, 41, 31, 42, 32, 43, 33]


def test_only_the_equal_priorities_are_equal() -> None:
    assert lanes("oldest", (1, 3)) == lanes("strict") == lanes("least_recent", ())


def test_classes_that_do_not_exist() -> None:
    with pytest.raises(ValueError, match="classes = 'fair'; expected strict, oldest or least_recent"):
        Star([Host()], classes="fair")
    with pytest.raises(ValueError, match="equal_priorities: priority 8; expected 0 to 7"):
        Star([Host()], equal_priorities=(8,))
    with pytest.raises(ValueError, match="dscp_classes: expected a priority from 0 to 7 for each of 64 DSCPs"):
        Star([Host()], dscp_classes=[3] * 63)


def test_ports_that_are_free_at_the_same_instant_send_in_the_order_of_their_numbers() -> None:
    """Twenty hosts send to twenty others on slower links, all of which become free at the same time."""
    count = 20
    senders = [Host([(0, frame(i, 2 * count - 1 - i, 1000)) for _ in range(4)]) for i in range(count)]
    receivers = range(count, 2 * count)
    star = Star([*senders, *(Host() for _ in receivers)], rates=dict.fromkeys(receivers, 10 * GBPS), delay_ns=0)
    star.fabric.trace(0)
    star.run()
    sent = [(record[0], record[3]) for record in star.fabric.trace_records() if record[2] == "transmit"]
    assert sent[:count] == [(80, port) for port in reversed(receivers)], "they find their ports idle"
    assert sent[count:] == [(80 + 800 * n, port) for n in (1, 2, 3) for port in receivers]
