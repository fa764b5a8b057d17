"""Trimming: its conditions, the trimmed packets, its counters, and the exact count of queues."""

from __future__ import annotations

import functools
import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.layers.inet import IP, UDP

import topologies
from control_plane import programs
from control_plane.programs.base import PortView
from control_plane.programs.entries import Action, DefaultAction, Exact, TableEntry
from p4switch.errors import UserError
from tests.p4src.conftest import VIEW, MakeRig
from tests.p4src.packets import BTH, ECT0, Flow, dissect, ip_checksum_ok, numbered, psn_of
from tests.p4src.queues import OUT, QUEUE_VIEW, RATE_BPS, QueueRig
from tests.p4src.rigs import Sent

FLOW = Flow()
SIZE = 1000
TRIM_SIZE = 64
TRIMMED_OPCODE = 0xE2
TRIM_DSCP = 49
DATA_QUEUE, HEADER_QUEUE = OUT * 8 + 3, OUT * 8 + 6

BOTH = pytest.mark.parametrize("architecture", [None, "t2na"])
EXACT_VIEW = replace(QUEUE_VIEW, cell_bytes=1)
"""View in which queue depths are exact to the byte."""

OPCODE = 42  # position of the BTH's first byte
DATA_OPCODES = range(0x11)


def parameters(data: int = 10, headers: int = 10, **others: object) -> dict[str, object]:
    """Return parameters with these limits of packets and trimmed packets, without random spread and ECN marks."""
    return {
        "queue_bytes": data * SIZE,
        "header_queue_bytes": headers * TRIM_SIZE,
        "kmin_fraction": 1.0,
        "kmax_fraction": 1.0,
        "trim_from_fraction": 1.0,
        **others,
    }


def trimmed(frames: Sequence[bytes]) -> list[int]:
    return [psn_of(frame) for frame in frames if frame[OPCODE] == TRIMMED_OPCODE]


@functools.cache
def frame_of(wire_bytes: int, dscp: int) -> bytes:
    return FLOW.data(wire_bytes=wire_bytes, dscp=dscp)


def queue_rig(chosen: dict[str, object], architecture: str | None = None) -> QueueRig:
    return QueueRig("trim", chosen, EXACT_VIEW, architecture=architecture)


def burst(count: int, first: int = 0, time_ns: int = 0, wire_bytes: int = SIZE) -> list[tuple[int, bytes]]:
    return [(time_ns, FLOW.data(psn=first + i, wire_bytes=wire_bytes)) for i in range(count)]


def test_a_queue_is_one_bdp_of_its_port_and_marks_from_20_to_80_percent_of_it() -> None:
    view = replace(VIEW, port_rates_bps={1: 100_000_000_000, 2: 400_000_000_000}, base_rtt_ns=8_000, cell_bytes=1)
    limits: dict[int, Action] = {}
    marks: dict[int, Action] = {}
    for entry in programs.parameters("trim", {}).entries(view):
        if isinstance(entry, DefaultAction):
            marks[1] = entry.action
        elif isinstance(entry, TableEntry) and entry.match.get("priority") == Exact(3):
            assert isinstance(entry.match["port"], Exact)
            assert isinstance(entry.action, Action)
            (limits if entry.table == "queue_limit" else marks)[entry.match["port"].value] = entry.action
    for port, bdp in ((1, 100_000), (2, 400_000)):
        assert limits[port].params["limit_bytes"] == bdp
        assert (marks[port].params["kmin_cells"], marks[port].params["kmax_cells"]) == (0.2 * bdp, 0.8 * bdp)


def test_ports_to_hosts_may_be_told_not_to_mark() -> None:
    """Port 1 leads to a host, ports 2 and 3 to switches."""
    neighbours = {
        1: PortView("h1", RATE_BPS, 0),
        2: PortView("agg0", RATE_BPS, 0, tier=1),
        3: PortView("agg1", RATE_BPS, 0, tier=1),
    }
    view = replace(VIEW, port_rates_bps=dict.fromkeys(neighbours, RATE_BPS), neighbours=neighbours)
    for mark_host_ports, unmarked in ((True, set()), (False, {Exact(1)})):
        entries = programs.parameters("trim", {"mark_host_ports": mark_host_ports}).entries(view)
        (usual,) = [entry.action for entry in entries if isinstance(entry, DefaultAction)]
        assert usual.name == "red"
        found = [entry for entry in entries if isinstance(entry, TableEntry) and entry.table == "ecn_threshold"]
        assert {entry.match["port"] for entry in found if entry.action == Action("no_marking")} == unmarked
        assert len(found) == 8 * len(unmarked)


def test_a_slower_ports_queue_may_be_smaller() -> None:
    neighbours = {1: PortView("h1", RATE_BPS, 0), 2: PortView("agg0", RATE_BPS, 0, tier=1)}
    view = replace(VIEW, name="tor0", port_rates_bps=dict.fromkeys(neighbours, RATE_BPS), neighbours=neighbours)
    chosen = {"queue_bytes": 1000, "smaller_queues": [{"switch": "tor0", "towards": "agg0", "fraction": 0.25}]}
    found = {}
    for entry in programs.parameters("trim", chosen).entries(view):
        if isinstance(entry, TableEntry) and entry.table == "queue_limit" and entry.match["priority"] == Exact(3):
            port = entry.match["port"]
            assert isinstance(port, Exact)
            assert isinstance(entry.action, Action)
            found[port.value] = entry.action.params["limit_bytes"]
    assert found == {1: 1000, 2: 250}


def test_the_queue_of_trimmed_packets_may_be_twice_that_of_data() -> None:
    view = replace(VIEW, port_rates_bps={1: 100_000_000_000, 2: 400_000_000_000}, base_rtt_ns=8_000)
    for entry in programs.parameters("trim", {"header_queue_bytes": None}).entries(view):
        if isinstance(entry, TableEntry) and entry.match.get("priority") == Exact(3) and entry.table == "queue_limit":
            assert isinstance(entry.action, Action)
            assert entry.action.params["trim_limit_bytes"] == 2 * entry.action.params["limit_bytes"]


def test_a_smaller_queue_that_is_nowhere_is_refused() -> None:
    network = topologies.build("leaf-spine", {})
    for switch, towards in (("leaf9", "spine0"), ("leaf0", "leaf1")):
        chosen = {"smaller_queues": [{"switch": switch, "towards": towards, "fraction": 0.5}]}
        with pytest.raises(UserError, match=f"no port of '{switch}' leads to '{towards}'"):
            programs.parameters("trim", chosen).entries(replace(VIEW, network=network))


def test_what_is_trimmed_on_a_port_to_a_host_may_be_told_apart() -> None:
    """Port 1 leads to a host, port 2 to a switch."""
    neighbours = {1: PortView("h1", RATE_BPS, 0), 2: PortView("agg0", RATE_BPS, 0, tier=1)}
    view = replace(VIEW, port_rates_bps=dict.fromkeys(neighbours, RATE_BPS), neighbours=neighbours)
    for told, last_hop, at_host in (({}, -1, TRIM_DSCP), ({"trim_last_hop_dscp": 50}, 50, 50)):
        chosen = programs.parameters("trim", told)
        assert chosen.last_hop_dscp == last_hop
        found = {}
        for entry in chosen.entries(view):
            if isinstance(entry, TableEntry) and entry.table == "queue_limit":
                port = entry.match["port"]
                assert isinstance(port, Exact)
                assert isinstance(entry.action, Action)
                if entry.action.name == "trim_when_full":
                    found[port.value] = entry.action.params["trim_dscp"]
        assert found == {1: at_host, 2: TRIM_DSCP}


@pytest.mark.parametrize(
    ("dscp", "message"),
    [(TRIM_DSCP, "should differ from trim_dscp"), (24, "trim_last_hop_dscp 24 has priority 3 in this network")],
)
def test_a_last_hop_dscp_that_says_something_else_is_refused(dscp: int, message: str) -> None:
    with pytest.raises(UserError, match=message):
        programs.parameters("trim", {"trim_last_hop_dscp": dscp}).entries(VIEW)


def test_a_packet_that_finds_no_room_is_cut_and_marked(make_rig: MakeRig) -> None:
    sent = FLOW.data(psn=9, wire_bytes=SIZE)
    rig = make_rig("trim", {**parameters(), "queue_bytes": 50})
    after = rig.run([Sent(1, sent)])[OUT][0]
    packet = dissect(after)
    assert len(after) == TRIM_SIZE
    assert (packet[IP].len, packet[UDP].len) == (TRIM_SIZE - 14, TRIM_SIZE - 34)
    assert packet[IP].tos == TRIM_DSCP << 2 | ECT0
    assert (packet[BTH].opcode, packet[BTH].psn, packet[BTH].dest_qp) == (TRIMMED_OPCODE, 9, 7)
    assert packet[UDP].sport == FLOW.entropy
    assert ip_checksum_ok(after)
    # Addresses, identification, ports, the BTH after its opcode, and the remaining payload are unchanged.
    assert after[:14] == sent[:14]
    assert after[26:38] == sent[26:38]
    assert after[43:] == sent[43:TRIM_SIZE]
    assert [rig.counter(name, OUT) for name in ("trimmed", "trimmed_sent", "trimmed_dropped")] == [1, 1, 0]


@pytest.mark.parametrize("size", [TRIM_SIZE - 6, TRIM_SIZE, TRIM_SIZE + 1])
def test_a_packet_that_is_short_already_keeps_its_length(make_rig: MakeRig, size: int) -> None:
    after = make_rig("trim", {**parameters(), "queue_bytes": 50}).run([Sent(1, FLOW.data(wire_bytes=size))])[OUT][0]
    assert len(after) == min(size, TRIM_SIZE)
    assert dissect(after)[IP].len == len(after) - 14
    assert dissect(after)[BTH].opcode == TRIMMED_OPCODE


def test_only_data_packets_are_trimmed(make_rig: MakeRig) -> None:
    opcodes = [*range(0x20), 0x81, 0xC4, 0xE0, 0xE2, 0xE3]
    rig = make_rig("trim", {**parameters(headers=100), "queue_bytes": 50})
    received = rig.run([Sent(1, FLOW.data(psn=opcode, opcode=opcode)) for opcode in opcodes])[OUT]
    assert sorted(trimmed(received)) == list(DATA_OPCODES)
    assert len(received) == len(DATA_OPCODES)
    assert rig.counter("queue_dropped", OUT) == len(opcodes) - len(DATA_OPCODES)


def test_trim_size_dscp_and_priority_are_the_control_planes(make_rig: MakeRig) -> None:
    chosen = {"trim_size_bytes": 100, "trim_dscp": 11, "trim_priority": 5}
    after = make_rig("trim", {**parameters(), "queue_bytes": 50, **chosen}).run([Sent(1, FLOW.data(wire_bytes=SIZE))])
    assert len(after[OUT][0]) == 100
    assert dissect(after[OUT][0])[IP].tos >> 2 == 11


@BOTH
def test_the_next_switch_knows_a_trimmed_packet_by_its_dscp(architecture: str | None) -> None:
    """Check that a trimmed packet enters the next switch's queue of trimmed packets with its length."""
    first = QueueRig("trim", {**parameters(), "queue_bytes": 50}, architecture=architecture)
    first.inject(burst(3))
    second = queue_rig(parameters(headers=1), architecture)
    second.inject((0, frame) for _, frame in first.run())
    # One packet leaves at once, one is queued, and one finds no room.
    assert trimmed([frame for _, frame in second.run()]) == [0, 1]
    assert second.counter("trimmed") == 0
    assert second.counter("queue_dropped") == 1


def test_without_trimming_a_full_queue_drops(make_rig: MakeRig) -> None:
    rig = make_rig("trim", {**parameters(trimming=False), "queue_bytes": 50})
    assert not rig.run([Sent(1, FLOW.data(wire_bytes=SIZE))])[OUT]
    assert rig.counter("queue_dropped", OUT) == 1
    assert rig.counter("trimmed", OUT) == 0


@BOTH
def test_the_queue_holds_exactly_what_it_may(architecture: str | None) -> None:
    """In a burst of 30 packets, one leaves at once, ten are queued, ten are trimmed, and nine are dropped.

    Trimmed packets overtake the others: they leave directly after the packet that was on the wire.
    """
    rig = queue_rig(parameters(), architecture)
    rig.inject(burst(30))
    arrived = rig.run()
    order = [psn_of(frame) for _, frame in arrived]
    # The packet on the wire has left the queue, so eleven are admitted, and packet 11 is the first trimmed one.
    assert order == [0, *range(11, 21), *range(1, 11)]
    assert trimmed([frame for _, frame in arrived]) == list(range(11, 21))
    assert arrived[10][0] == SIZE + 10 * TRIM_SIZE
    counts = {name: rig.counter(name) for name in ("trimmed", "trimmed_sent", "trimmed_dropped", "queue_dropped")}
    assert counts == {"trimmed": 19, "trimmed_sent": 10, "trimmed_dropped": 9, "queue_dropped": 0}
    assert rig.fabric.conservation()["drop_buffer"] == 0
    assert known_depths(rig, architecture) == [0, 0]


def known_depths(rig: QueueRig, architecture: str | None) -> list[int]:
    """Return the program's counts of its queues of data and of trimmed packets, in bytes."""
    if architecture is None:
        return [rig.register("queue_bytes", queue) for queue in (DATA_QUEUE, HEADER_QUEUE)]
    numbers = [OUT * 16 + priority for priority in (3, 6)]
    return [
        rig.register(register, number)
        for register, number in zip(("admission_depths", "trimmed_admission_depths"), numbers, strict=True)
    ]


@BOTH
def test_marks_follow_the_queue_and_trimmed_packets_get_none(architecture: str | None) -> None:
    rig = queue_rig(parameters(kmin_fraction=0.2, kmax_fraction=0.8), architecture)
    rig.inject(burst(30))
    marks = {psn_of(frame): dissect(frame)[IP].tos & 3 == 3 for _, frame in rig.run()}
    # After packet i from 1 to 10, 10 - i packets remain. More than 8 always cause a mark, and up to 2 never do.
    assert marks[1]
    assert not any(marks[psn] for psn in (8, 9, 10))
    assert not any(marks[psn] for psn in range(11, 21))


@BOTH
@settings(max_examples=60, deadline=None)
@given(st.data())
def test_the_count_is_the_queue_at_any_time(architecture: str | None, data: st.DataObject) -> None:
    """With random arrivals and sizes, the registers equal the traffic manager's counts, and it drops nothing.

    In T2NA the packet that fills a queue may exceed its limit.
    """
    rng = random.Random(data.draw(st.integers(0, 2**32)))
    limits = {"data": data.draw(st.integers(2, 12)), "headers": data.draw(st.integers(1, 12))}
    most = (limits["data"] * SIZE + (architecture is not None) * SIZE, (limits["headers"] + 1) * SIZE)
    rig = queue_rig(parameters(**limits), architecture)
    time_ns = 0
    count = 300
    checks = []
    for psn in range(count):
        time_ns += rng.choice((0, 0, 0, rng.randrange(500), rng.randrange(4000)))
        frame = frame_of(rng.choice((60, 64, 65, 500, SIZE)), rng.choice((24, 24, 24, 48, 8)))
        rig.inject([(time_ns, numbered(frame, psn))])

    def check(_: int) -> None:
        queues = [rig.queues().get(priority, 0) for priority in (3, 6)]
        checks.append([known_depths(rig, architecture) == queues, queues[0] <= most[0], queues[1] <= most[1]])

    for at in range(0, time_ns, 997):
        rig.fabric.at(at, check)
    arrived = rig.run()
    assert all(all(check) for check in checks)
    assert rig.fabric.conservation()["drop_buffer"] == 0
    dropped = rig.counter("trimmed_dropped") + rig.counter("queue_dropped")
    assert len(arrived) + dropped == count
    assert rig.counter("trimmed") == rig.counter("trimmed_sent") + rig.counter("trimmed_dropped")
    assert rig.counter("trimmed_sent") == len(trimmed([frame for _, frame in arrived]))
    assert known_depths(rig, architecture) == [0, 0]


@BOTH
@pytest.mark.parametrize("flows", [2, 5])
def test_flows_in_step_are_trimmed_alike(flows: int, architecture: str | None) -> None:
    """Each flow sends one packet per packet time, in a fixed order.

    Without random spread, the first flow would get all room. Other draws might deviate by more than
    the allowed 10%, but the draws are the same in each run.
    """
    rig = queue_rig(parameters(data=100, headers=1000, trim_from_fraction=0.5), architecture)
    step_ns = SIZE + flows * TRIM_SIZE
    count = 2000
    for flow in range(flows):
        psns = range(flow, flows * count, flows)
        rig.inject((i * step_ns + flow, FLOW.data(psn=psn, wire_bytes=SIZE)) for i, psn in enumerate(psns))
    whole = [psn_of(frame) % flows for _, frame in rig.run() if len(frame) == SIZE]
    shares = [whole.count(flow) / len(whole) for flow in range(flows)]
    assert shares == pytest.approx([1 / flows] * flows, rel=0.1)


@BOTH
def test_the_lot_begins_at_its_part_of_the_queue_and_a_full_one_takes_nothing(architecture: str | None) -> None:
    """T2NA's random part of the queue is a power of two: 32,767 of 50,000 bytes."""
    rig = queue_rig(parameters(data=100, headers=1000, trim_from_fraction=0.5), architecture)
    rig.inject(burst(400))
    cut = trimmed([frame for _, frame in rig.run()])
    assert min(cut) > (51 if architecture is None else 68)  # the first one leaves at once
    assert 400 - len(cut) in (100, 101)
    assert any(later not in cut for later in range(min(cut), 101))


def test_packets_lost_by_the_traffic_manager_are_forgotten_when_the_queue_is_empty() -> None:
    """The traffic manager's limit is below the program's, which is not allowed in a run."""
    rig = QueueRig("trim", parameters(data=20), queue_bytes=5 * SIZE)
    rig.inject(burst(15))
    rig.run()
    assert rig.fabric.conservation()["drop_buffer"] == 9
    assert rig.register("queue_bytes", DATA_QUEUE) == 0


def test_a_link_that_was_down_does_not_leave_its_queues_full_for_ever() -> None:
    """All counted packets are lost with the link. After the drain time, a packet passes untrimmed again."""
    rig = QueueRig("trim", parameters(stale_drain_times=10))
    drain_ns = 10 * (10 * SIZE + 10 * TRIM_SIZE) * 8 * 10**9 // RATE_BPS
    rig.inject(burst(30))
    rig.fabric.at(500, lambda _: rig.fabric.set_link_up(rig.link, False))
    rig.fabric.at(10_000, lambda _: rig.fabric.set_link_up(rig.link, True))
    rig.inject(burst(1, first=100, time_ns=drain_ns + 1_000))
    rig.inject(burst(12, first=200, time_ns=drain_ns + 5_000))
    whole = [psn_of(frame) for _, frame in rig.run() if len(frame) == SIZE]
    assert whole[0] == 100
    assert set(range(200, 211)) <= set(whole)


@pytest.mark.parametrize(
    ("parameters", "text"),
    [
        ({"trim_size_bytes": 53}, "program.trim_size_bytes:"),
        ({"kmin_fraction": 0.9}, "kmin_fraction should not exceed kmax_fraction (0.8)"),
        ({"data_priorities": [7]}, "data_priorities should be below trim_priority (6)"),
        ({"trim_prio": 1}, "program.trim_prio: no such key; did you mean 'trim_priority'?"),
    ],
)
def test_wrong_parameters_are_named(parameters: dict[str, object], text: str) -> None:
    with pytest.raises(UserError) as raised:
        programs.parameters("trim", parameters)
    assert text in str(raised.value)


def test_a_dscp_that_means_another_priority_is_refused() -> None:
    view = replace(VIEW, priority_of_dscp={**VIEW.priority_of_dscp, TRIM_DSCP: 1})
    with pytest.raises(UserError, match="trim_dscp 49 has priority 1 in this network"):
        programs.parameters("trim", {}).entries(view)


def by_traffic_manager(data: int = 10, headers: int = 10, **others: object) -> dict[str, object]:
    return parameters(data, headers, trimmed_by="traffic-manager", **others)


def test_what_the_traffic_manager_trims_is_cut_and_marked() -> None:
    """Check that of a burst of 15 one packet leaves at once, ten wait, and four are trimmed."""
    rig = QueueRig("trim", by_traffic_manager())
    frames = burst(15)
    rig.inject(frames)
    arrived = [frame for _, frame in rig.run()]
    cut = [frame for frame in arrived if len(frame) == TRIM_SIZE]
    assert trimmed(arrived) == [psn_of(frame) for frame in cut] == [psn_of(frame) for frame in arrived[1:5]]
    assert sorted(psn_of(frame) for frame in arrived) == list(range(15))
    assert {psn_of(frame) for frame in cut} < set(range(10, 15))
    for frame in cut:
        packet, (_, sent) = dissect(frame), frames[psn_of(frame)]
        assert (packet[IP].len, packet[UDP].len, packet[UDP].chksum) == (TRIM_SIZE - 14, TRIM_SIZE - 34, 0)
        assert packet[IP].tos == TRIM_DSCP << 2 | ECT0
        assert ip_checksum_ok(frame)
        assert frame[26:38] == sent[26:38]
        assert frame[43:] == sent[43:TRIM_SIZE]
    counts = {name: rig.counter(name) for name in ("trimmed", "trimmed_sent", "queue_dropped", "cut_dropped")}
    assert counts == {"trimmed": 4, "trimmed_sent": 4, "queue_dropped": 0, "cut_dropped": 0}
    assert rig.fabric.conservation()["drop_buffer"] == 0


def test_the_traffic_manager_trims_data_only() -> None:
    """A control packet that would be trimmed is dropped. A data packet as short as a trimmed one is unchanged."""
    rig = QueueRig("trim", by_traffic_manager(data=1))
    control = FLOW.data(psn=2, opcode=0xE0, wire_bytes=SIZE)
    short = FLOW.data(psn=3, wire_bytes=TRIM_SIZE)
    rig.inject([*burst(2), (0, control), (0, short)])
    arrived = [frame for _, frame in rig.run()]
    assert len(arrived) + rig.counter("cut_dropped") == 4
    assert not any(psn_of(frame) == 3 for frame in arrived if frame[OPCODE] == TRIMMED_OPCODE)
    assert rig.counter("cut_dropped") + rig.counter("trimmed") == 1


def test_the_traffic_manager_drops_where_packets_are_not_trimmed() -> None:
    rig = QueueRig("trim", by_traffic_manager(trimming=False))
    rig.inject(burst(30))
    assert len(rig.run()) == 11
    assert rig.fabric.conservation()["drop_buffer"] == 19


def test_what_is_cut_on_a_port_without_an_entry_is_dropped() -> None:
    rig = QueueRig("trim", parameters())
    trimming = programs.parameters("trim", by_traffic_manager(data=1)).trimming_ports(QUEUE_VIEW)[OUT]
    rig.fabric.set_trimming(rig.node, OUT, **trimming.model_dump())
    rig.inject(burst(5))
    arrived = [frame for _, frame in rig.run()]
    assert {len(frame) for frame in arrived} == {SIZE}
    assert rig.counter("cut_dropped") == 5 - len(arrived) == 3
    assert rig.counter("trimmed") == 0


def test_what_the_traffic_manager_trims_on_a_port_to_a_host_may_be_told_apart() -> None:
    """Port 1 leads to a host, port 2 to a switch. The program trims no queue."""
    neighbours = {1: PortView("h1", RATE_BPS, 0), 2: PortView("agg0", RATE_BPS, 0, tier=1)}
    view = replace(VIEW, port_rates_bps=dict.fromkeys(neighbours, RATE_BPS), neighbours=neighbours)
    chosen = programs.parameters("trim", by_traffic_manager(trim_last_hop_dscp=50))
    entries = [entry for entry in chosen.entries(view) if isinstance(entry, TableEntry)]
    assert not any(entry.table == "queue_limit" for entry in entries)
    marks = {entry.match["port"]: entry.action for entry in entries if entry.table == "traffic_manager_trims"}
    assert marks == {
        Exact(1): Action("trimmed_dscp", {"dscp": 50}),
        Exact(2): Action("trimmed_dscp", {"dscp": TRIM_DSCP}),
    }
    found = chosen.trimming_ports(view)
    assert {port: trimming.limit_bytes for port, trimming in found.items()} == {1: 10 * SIZE, 2: 10 * SIZE}
    assert {trimming.trim_limit_bytes for trimming in found.values()} == {10 * TRIM_SIZE}
    assert found[1].seed != found[2].seed


@pytest.mark.parametrize("flows", [2, 5])
def test_the_coin_trims_flows_in_step_alike(flows: int) -> None:
    """In each step, one of `flows` packets finds room, and coins decide which packet gets the last place.

    In half of the steps this is the packet of the last flow, in a quarter that of the flow before
    it, and so on, so that each flow gets room.
    """
    rig = QueueRig("trim", by_traffic_manager(data=100, headers=1000))
    step_ns = SIZE + flows * TRIM_SIZE
    count = 2000
    for flow in range(flows):
        psns = range(flow, flows * count, flows)
        rig.inject((i * step_ns + flow, FLOW.data(psn=psn, wire_bytes=SIZE)) for i, psn in enumerate(psns))
    whole = [psn_of(frame) % flows for _, frame in rig.run() if len(frame) == SIZE]
    shares = [whole.count(flow) / len(whole) for flow in range(flows)]
    assert all(share > 0.5**flows for share in shares)
