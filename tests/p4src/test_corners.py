"""Corner cases of programs that runs do not reach: tables without entries, and the limits of number ranges."""

from __future__ import annotations

from dataclasses import replace

import pytest
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.l2 import ARP, Ether

from control_plane import programs
from control_plane.pipelines import LOSS
from control_plane.programs import SwitchView
from control_plane.programs.entries import PortGroup
from host_agents.cc.sperc import CONTROL
from host_agents.cc.sperc_link import B, E
from host_agents.collective.packets import ACKNOWLEDGEMENT, WRITE
from tests.p4src.collectives import Message
from tests.p4src.conftest import VIEW
from tests.p4src.contention import INIT
from tests.p4src.packets import ECT0, NOT_ECT, Flow, mac
from tests.p4src.queues import QUEUE_VIEW
from tests.p4src.rigs import BuiltinRig, Sent
from tests.p4src.test_accurate import frame_of, read
from tests.p4src.test_collective import ALL_LANES, ALONE, GROUP, W, by_class, view_of
from tests.p4src.test_dart import AGG, FIRST, MIDDLE, TO_TOR1, counted, data, ports_of
from tests.p4src.test_expresspass import credit
from tests.p4src.test_rcp import CAPACITY_KBPS, RTT_NS, Model, rate_packet, told
from tests.p4src.test_sperc import AFTER_BTH, FOUR_PACKETS, WINDOWS, FlowState, through, view
from topologies.collectives import CollectiveGroup

FLOW = Flow()
FAR = Flow("10.0.0.2", "10.1.0.9")
OUT = 2
NO_LIMIT = 0xFFFFFFFF
DROP_NO_ROUTE = 4


def rig_without(program: str, table: str, switch_view: SwitchView = VIEW, **parameters: object) -> BuiltinRig:
    """Return a switch to whose table `table` the controller has written nothing."""
    entries = list(programs.parameters(program, parameters).entries(switch_view))
    kept = [entry for entry in entries if getattr(entry, "table", None) != table]
    assert len(kept) < len(entries)
    return BuiltinRig(program, kept)


def after_a_hop(frame: bytes) -> bytes:
    """Return a frame without the fields that every switch changes: TTL and header checksum."""
    return frame[:22] + frame[23:24] + frame[26:]


@pytest.mark.parametrize(
    ("program", "table", "frame"),
    [
        ("accurate", "contention_point", frame_of(1, 5_000_000, 9_000_000)),
        ("expresspass", "credit_limit", credit(1)),
        ("int", "port_telemetry", FLOW.telemetry()),
        ("rcp", "rate_control", rate_packet(CAPACITY_KBPS * 100)),
        ("sperc", "fair_share", FlowState().frame(OUT)),
    ],
)
def test_a_port_that_is_none_of_the_protocols_forwards(program: str, table: str, frame: bytes) -> None:
    rig = rig_without(program, table)
    for _ in range(20):
        (received,) = rig.run([Sent(1, frame)])[OUT]
        assert after_a_hop(received) == after_a_hop(frame)


@pytest.mark.parametrize("program", ["accurate", "int", "rcp", "sperc"])
def test_what_is_not_rocev2_ends_the_parser_that_the_program_goes_on_from(program: str) -> None:
    rig = BuiltinRig(program, programs.parameters(program, {}).entries(VIEW))
    ether = Ether(dst=mac("10.0.0.3"), src=mac("10.0.0.2"))
    ip = IP(src="10.0.0.2", dst="10.0.0.3")
    frames = [bytes(ether / ip / TCP()), bytes(ether / ip / UDP(dport=53) / b"name")]
    received = rig.run([Sent(1, bytes(ether / ARP())), *(Sent(1, frame) for frame in frames)])
    assert list(map(after_a_hop, received[OUT])) == list(map(after_a_hop, frames))
    assert sum(map(len, received.values())) == 2  # an ARP request has no route


@pytest.mark.parametrize("load_balancer", ["ecmp", "symmetric", "round_robin", "drill", "ugal", "valiant"])
def test_a_group_without_members_is_no_route(load_balancer: str) -> None:
    entries = programs.parameters("ecn", {}).entries(VIEW)
    rig = BuiltinRig("ecn", [entry for entry in entries if not isinstance(entry, PortGroup)], load_balancer)
    assert not any(rig.run([Sent(1, FAR.data())]).values())
    assert rig.counter("ingress_drops", DROP_NO_ROUTE) == 1
    assert len(rig.run([Sent(1, FLOW.data())])[OUT]) == 1


def test_a_flow_without_udp_keeps_its_path() -> None:
    rig = BuiltinRig("ecn", programs.parameters("ecn", {}).entries(VIEW))
    ports = set()
    for host in range(2, 34):
        ip = IP(src="10.0.0.2", dst=f"10.1.0.{host}")
        sent = [bytes(Ether(src=mac("10.0.0.2"), dst=mac(FAR.destination)) / ip / TCP(sport=p)) for p in (1, 2)]
        (first, second) = (rig.run([Sent(1, frame)]) for frame in sent)
        assert list(first) == list(second)  # programs do not read TCP ports
        ports |= {*first}
    assert ports == {5, 6, 7, 8}


# Dart


def test_a_port_without_candidates_forwards() -> None:
    for table in ("candidate_group", "iofd"):
        rig = rig_without("dart", table, AGG, threshold_bytes=0)
        assert ports_of(rig, [data(FIRST), data(MIDDLE)]) == [1, 1]
    assert counted(rig, 1) == {"table_full": 1}  # a table without usable entries


def test_a_candidate_that_is_not_known_takes_no_packet() -> None:
    rig = rig_without("dart", "candidate", AGG, threshold_bytes=0)
    assert not any(rig.run([Sent(4, data(FIRST))]).values())


def test_classes_beside_the_lanes_and_packets_without_ecn_pass() -> None:
    """Priorities 0 and 7 are not lanes. A packet without a route has no port."""
    rig = BuiltinRig("dart", programs.parameters("dart", {"threshold_bytes": 0}).entries(AGG))
    for ecn in (NOT_ECT, ECT0):
        assert ports_of(rig, [data(FIRST, dscp=dscp, ecn=ecn) for dscp in (0, 56)]) == [1, 1]
        assert ports_of(rig, [data(MIDDLE, dscp=8 * priority, ecn=ecn) for priority in range(8)]) == [1] * 8
    assert counted(rig, 1) == {}
    nowhere = data(FIRST, flow=replace(TO_TOR1, destination="192.168.0.1"))
    assert not any(rig.run([Sent(4, nowhere)]).values())


# Ends of numbers


def test_more_flows_stop_than_were_known() -> None:
    """In ACCurate, one flow is bottlenecked elsewhere at twice the capacity, and an uncounted flow stops."""
    rig = BuiltinRig("accurate", programs.parameters("accurate", {}).entries(view({OUT: 10})))
    capacity = 9_500_000  # capacity without the headroom
    rig.run([Sent(1, frame_of(0, 1000, capacity, INIT), 1)])
    for name, value in (("m", 1), ("b", 2 * capacity), ("b_max", 2 * capacity), ("n", 0)):
        size = len(rig.switch.register_read(f"{name}_of", OUT))
        rig.switch.register_write(f"{name}_of", OUT, value.to_bytes(size, "big"))
    end = int.from_bytes(rig.switch.register_read("period_end_of", OUT), "big")
    (frame,) = rig.run([Sent(1, frame_of(1, capacity, 2 * capacity), end)])[OUT]
    assert read(frame) == (1, capacity, capacity)  # the divisor is 1, not 0


def test_credits_that_nobody_sent_are_not_saved_up() -> None:
    rig = BuiltinRig("expresspass", programs.parameters("expresspass", {}).entries(VIEW))
    passed = [
        len(rig.run([Sent(1, credit(i), now) for i in range(12)])[OUT]) for now in (1_000, 1_000_000, 2_000_000)
    ]
    assert passed == [8, 8, 8]


def test_a_rate_is_halved_at_most_and_grows_to_the_capacity() -> None:
    """30 packets arrive at once, and no packet afterwards."""
    rig = BuiltinRig("rcp", programs.parameters("rcp", {"alpha": 0.9, "beta": 0.4}).entries(QUEUE_VIEW))
    model = Model(0.9, 0.4)
    frame = FLOW.data(wire_bytes=1058)
    for _ in range(30):
        rig.run([Sent(1, frame, 0)])
        model.packet(0, len(frame))
    rates, expected = [], []
    for now_ns in (RTT_NS // 4 + 1, 2 * RTT_NS, 9 * RTT_NS, 40 * RTT_NS):
        rates.append(told(rig.run([Sent(1, rate_packet(), now_ns)])[OUT][0]))
        expected.append(model.packet(now_ns, len(rate_packet())))
    assert expected[0] == CAPACITY_KBPS / 2
    assert expected[-1] == CAPACITY_KBPS
    assert rates == pytest.approx(expected, rel=0.002)


def test_a_weight_without_an_entry_counts_for_nothing() -> None:
    for table in ("old_weight", "new_weight"):
        rig = rig_without("sperc", table, view({OUT: 10}))
        frame = through(rig, OUT, FlowState().frame(OUT), 100)
        (record,) = CONTROL.decode_records(frame, AFTER_BTH)[-1:]
        assert (record["b"] == NO_LIMIT) == (table == "new_weight")


@pytest.mark.parametrize("link", range(1, 8))
def test_the_smallest_share_elsewhere_is_a_flows_limit(link: int) -> None:
    """In s-PERC, one of eight links allows 1 Gb/s, and the others allow more."""
    flow = FlowState()
    for place, record in enumerate(flow.records):
        record.update(b=(1 if place == link else 5) * 1_000_000, x=5_000_000, state=B, ignore=0)
    rig = BuiltinRig("sperc", programs.parameters("sperc", {"headroom": 0.0}).entries(view({OUT: 10})))
    record = CONTROL.decode_records(through(rig, OUT, flow.frame(OUT), 100), AFTER_BTH)[-1]
    assert (record["b"], record["x"], record["state"]) == (10_000_000, 1_000_000, E)


def test_a_window_is_of_a_packet_at_least() -> None:
    """Nine flows share a link that holds four packets, each flow in its own epoch."""
    rig = BuiltinRig("sperc", programs.parameters("sperc", WINDOWS).entries(FOUR_PACKETS))
    given = []
    for epoch in range(1, 10):
        frame = FlowState().frame(OUT, epoch=epoch, let_through=0xFFFFFF)
        given.append(CONTROL.get("let_through", through(rig, OUT, frame, 13 * epoch), AFTER_BTH))
    assert given == [4, 2, 1, 1, 1, 1, 1, 1, 1]  # 4/5 of a packet counts as one packet


def test_a_window_is_of_65535_packets_at_most() -> None:
    long = replace(FOUR_PACKETS, port_rates_bps={OUT: 4_000_000_000_000}, base_rtt_ns=30_000_000)
    rig = BuiltinRig("sperc", programs.parameters("sperc", {}).entries(long))
    frame = through(rig, OUT, FlowState().frame(OUT, let_through=0xFFFFFF), 100)
    assert CONTROL.get("let_through", frame, AFTER_BTH) == 0xFFFF


def test_a_copy_that_is_pruned_is_not_lost_again() -> None:
    """With `switch.loss`, the acknowledgement of all is for one host, and the program drops the other copies."""
    group = CollectiveGroup(1, (0, 1, 2, 3), window=W)
    entries = programs.parameters("collective", {}).entries(view_of(ALONE, ALONE.switches[0].name, group))
    rig = BuiltinRig("collective", entries, **{LOSS: "0"})
    hosts = [int(host.address) for host in ALONE.hosts]
    write = Message(hosts[2], GROUP, WRITE, rank=2, lanes=ALL_LANES)
    acks = [(child, Message(hosts[child - 1], hosts[2], ACKNOWLEDGEMENT, rank=2)) for child in (4, 1, 2, 3)]
    frames = [(3, write), *acks[:2], (3, replace(write, retry=1))]
    received = rig.run([Sent(port, message.frame()) for port, message in frames])
    assert by_class({port: [Message.of(f) for f in fs] for port, fs in received.items()})[2][-1].retry == 1
    assert rig.counter("collective_pruned", 0) == 2
    assert (rig.counter("lost_in", 0), rig.counter("lost_out", 0)) == (0, 0)
