"""Load balancers with every program. The tests of forwarding include ECMP's paths."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from scapy.layers.inet import IP, TCP
from scapy.layers.l2 import Ether

from control_plane import load_balancing, programs
from control_plane.programs.entries import Action, Entry, Exact, Lpm, PortGroup, TableEntry
from harness.worlds.virtual import VirtualWorld
from p4cc.execution.batch import planned
from p4switch.errors import UserError
from tests.p4src.conftest import VIEW, MakeRig
from tests.p4src.packets import Flow, mac, psn_of
from tests.p4src.queues import OUT, QueueRig
from tests.p4src.rigs import BuiltinRig, Rig, Sent

FAR = Flow("10.0.0.2", "10.1.2.3")  # routed to one of ports 5 to 8
NEAR = Flow("10.0.0.2", "10.0.0.3")  # routed to port 2
PRIORITY = 3  # priority of the packets' DSCP

PAGE = (Path(__file__).parents[2] / "docs" / "p4-programs.md").read_text(encoding="utf-8")
SHOWN = re.findall(r"```p4\n(.*?)```", PAGE, re.DOTALL)
(FIRST_MEMBER,) = (text for text in SHOWN if "control LoadBalancer" in text)


def queue_of(port: int) -> int:
    return port << 3 | PRIORITY


def built_in(program: str, load_balancer: str) -> BuiltinRig:
    return BuiltinRig(program, programs.parameters(program, {}).entries(VIEW), load_balancer)


@pytest.mark.parametrize("program", programs.names())
def test_round_robin_takes_the_ports_of_a_group_in_turn(make_rig: MakeRig, program: str) -> None:
    """One flow uses four ports. The other group (ports 3 and 4) has its own turn."""
    rig = make_rig(program, load_balancer="round_robin")
    other = Flow("10.0.0.2", "10.0.1.9")
    sent = [Sent(1, (other if i % 3 == 2 else FAR).data(psn=i)) for i in range(12)]
    received = rig.run(sent)
    order = {psn_of(frame): port for port, frames in received.items() for frame in frames}
    assert [order[i] for i in range(12) if i % 3 != 2] == [5, 6, 7, 8, 5, 6, 7, 8]
    assert [order[i] for i in range(12) if i % 3 == 2] == [3, 4, 3, 4]


@pytest.mark.parametrize("program", programs.names())
def test_drill_takes_the_shortest_queue_once_it_has_seen_it(program: str) -> None:
    """Only the queue of port 7 is empty. The last choice is one of the candidates."""
    rig = built_in(program, "drill")
    chosen = []
    for i in range(64):
        for port in (5, 6, 7, 8):
            held = 0 if port == 7 else 1_000_000 + port
            rig.switch.register_write("queue_bytes", queue_of(port), held.to_bytes(4, "big"))
        chosen += [port for port, _ in rig.switch.process(1, FAR.data(psn=i), i)]
    assert len(chosen) == 64
    first = chosen.index(7)
    assert first < 16  # each draw of two ports out of four contains port 7 with probability 1/2
    assert set(chosen[first:]) == {7}
    assert 8 not in chosen  # it has the longest queue, and each two draws contain a shorter one


def test_drill_chooses_by_the_queue_of_the_packets_own_priority() -> None:
    rig = built_in("ecn", "drill")
    for port in (5, 6, 8):
        rig.switch.register_write("queue_bytes", port << 3 | 6, (1_000_000).to_bytes(4, "big"))
    chosen = Counter(port for i in range(256) for port, _ in rig.switch.process(1, FAR.data(psn=i), i))
    assert set(chosen) == {5, 6, 7, 8}  # all queues of priority 3 are empty, and the first of equal ones is kept


@pytest.mark.parametrize(("program", "unlimited"), [*((name, False) for name in programs.names()), ("trim", True)])
def test_what_drill_counts_is_what_the_queue_holds(program: str, unlimited: bool) -> None:
    """Trim counts the packets in queues with a limit, and DRILL counts those in other queues."""
    view = replace(VIEW, port_rates_bps=dict.fromkeys(VIEW.port_rates_bps, 10**10))
    room = {"queue_bytes": 1_000_000} if program == "trim" else {}  # for all frames
    rig = QueueRig(program, room, view, load_balancer="drill")
    if unlimited:
        rig.switch.table_clear("SwitchIngress.stage.queue_limit")
    frame = NEAR.data(payload=bytes(1000))
    rig.inject([(0, frame)] * 20)
    rig.run(5 * len(frame) + 1)
    assert rig.queues()[PRIORITY] > 10 * len(frame)
    assert rig.register("queue_bytes", queue_of(OUT)) == rig.queues()[PRIORITY]
    rig.run()
    assert len(rig.sink.arrived) == 20
    assert rig.register("queue_bytes", queue_of(OUT)) == 0


def test_packets_spread_by_queue_finish_a_permutation_before_flows_that_collide() -> None:
    """In a fat-tree, ECMP puts two of the flows on the same link, but DRILL and round robin do not."""
    ends = {}
    for name in ("ecmp", "round_robin", "drill"):
        settings = ["topology.k=4", "workload.size_bytes=60000", "cc=dctcp", f"switch.load_balancing={name}"]
        (run,) = planned(["permutation"], settings, {})
        recording = VirtualWorld(run).run()
        assert recording.ended == "done"
        ends[name] = recording.end_ns
    assert ends["drill"] < ends["round_robin"] < ends["ecmp"]


def test_a_file_anywhere(tmp_path: Path) -> None:
    """Check that a load balancer in any file needs neither its own entries nor a list of names."""
    file = tmp_path / "first_member.p4"
    file.write_text(FIRST_MEMBER)
    found = load_balancing.find("first_member.p4", tmp_path)
    assert (found.summary, found.per_packet) == ("The first port of a group, always", False)
    for program in programs.names():
        rig = built_in(program, str(file))
        flows = [Flow("10.0.0.2", "10.1.2.3", entropy) for entropy in range(49152, 49168)]
        assert {port for flow in flows for port, _ in rig.switch.process(1, flow.data(), 0)} == {5}


def test_those_that_come_with_it() -> None:
    found = {name: load_balancing.find(name, Path()) for name in load_balancing.names()}
    assert {name: one.per_packet for name, one in found.items()} == {
        "drill": True, "ecmp": False, "round_robin": True, "symmetric": False, "ugal": True,
        "valiant": False,
    }
    assert [name for name, one in found.items() if one.symmetric] == ["symmetric"]
    assert [name for name, one in found.items() if one.detours] == ["ugal", "valiant"]
    assert [name for name, one in found.items() if one.adaptive] == ["ugal"]
    assert all(one.summary for one in found.values())


@pytest.mark.parametrize(
    ("annotations", "per_packet", "symmetric"),
    [
        ("", False, False),
        ("@per_packet ", True, False),
        ("@symmetric\n@noWarn(\"unused\")\n@per_packet[1, (2)] /* @other */ ", True, True),
        ("// @per_packet\n", False, False),
        ("@per_packet control Other() { apply { } }\n@symmetric ", False, True),
        ("#if 0\n@per_packet\n#endif\n", False, False),
    ],
)
def test_annotations_of_its_control_say_what_it_does_to_a_flow(
    tmp_path: Path, annotations: str, per_packet: bool, symmetric: bool
) -> None:
    file = tmp_path / "mine.p4"
    file.write_text(FIRST_MEMBER.replace("control LoadBalancer", f"{annotations}control LoadBalancer"))
    found = load_balancing.find("mine.p4", tmp_path)
    assert (found.per_packet, found.symmetric) == (per_packet, symmetric)


def test_the_macro_of_before_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "mine.p4"
    file.write_text(FIRST_MEMBER + "#define LOAD_BALANCER_PER_PACKET\n")
    with pytest.raises(UserError, match=r"expected @per_packet or @symmetric in place of the macro"):
        built_in("ecn", str(file))


def test_what_cannot_be_one(tmp_path: Path) -> None:
    (tmp_path / "empty.p4").write_text("// Nothing\n")
    (tmp_path / "a-b.p4").write_text(FIRST_MEMBER)
    with pytest.raises(UserError, match=r"no load balancer 'dril'; did you mean 'drill'\?, or a \.p4 file"):
        load_balancing.find("dril", tmp_path)
    with pytest.raises(UserError, match=r"no file 'mine\.p4'"):
        load_balancing.find("mine.p4", tmp_path)
    with pytest.raises(UserError, match=r"empty\.p4 has no control LoadBalancer"):
        load_balancing.find("empty.p4", tmp_path)
    with pytest.raises(UserError, match=r"'a-b\.p4': expected a name of letters, digits and underscores"):
        load_balancing.find("a-b.p4", tmp_path)


GROUP_OF_FAR = 2  # group of ports in the routes of VIEW


def detours(
    ports: Sequence[int], count: int, *, is_first: bool = True, direct_exit: bool = False, detour_exit: bool = False
) -> list[Entry]:
    """Return the entries of a switch with `count` detours, the first of which have these ports."""
    group = Exact(GROUP_OF_FAR)
    choice = {"detours_count": count, "detours_salt": 7, "is_exit": direct_exit}
    return [
        TableEntry("departures", {"src_addr": Lpm(0x0A000000, 24)}, Action("departs", {"is_first": is_first})),
        TableEntry("detours", {"group_id": group}, Action("choose", choice)),
        *(
            TableEntry(
                "detour",
                {"group_id": group, "number": Exact(number)},
                Action("take", {"port": port, "is_exit": detour_exit}),
            )
            for number, port in enumerate(ports)
        ),
    ]


DETOURS = detours((1, 2), 3)


def spread(rig: Rig, source: str, destination: str) -> Counter[int]:
    """Send a packet of each of 600 flows, and return the number of packets by port."""
    sent = [Sent(1, Flow(source, destination, 49152 + i).data(psn=i)) for i in range(600)]
    return Counter({port: len(frames) for port, frames in rig.run(sent).items() if frames})


def test_valiant_takes_a_detour_from_its_own_group_alone(make_rig: MakeRig) -> None:
    """The third detour has no port here, so its flows are dropped. Their number is binomially distributed."""
    rig = make_rig("ecn", load_balancer="valiant", more=DETOURS)
    leaving = spread(rig, "10.0.0.2", "10.1.2.3")
    assert set(leaving) == {1, 2}
    assert all(abs(count - 200) < 5 * (600 / 3 * 2 / 3) ** 0.5 for count in leaving.values())


def test_valiant_goes_on_directly_where_there_is_no_detour(make_rig: MakeRig) -> None:
    rig = make_rig("ecn", load_balancer="valiant", more=DETOURS)
    assert set(spread(rig, "10.2.0.2", "10.1.2.3")) == {5, 6, 7, 8}


def test_valiant_goes_on_directly_to_a_group_without_detours(make_rig: MakeRig) -> None:
    rig = make_rig("ecn", load_balancer="valiant", more=DETOURS)
    assert set(spread(rig, "10.0.0.2", "10.0.1.9")) == {3, 4}


def test_valiant_chooses_a_path_for_what_is_not_udp_too(make_rig: MakeRig) -> None:
    rig = make_rig("ecn", load_balancer="valiant", more=DETOURS)
    other = bytes(Ether(dst=mac("10.1.2.3")) / IP(src="10.2.0.2", dst="10.1.2.3", ttl=9) / TCP(sport=1, dport=80))
    assert sum(len(frames) for frames in rig.run([Sent(1, other)]).values()) == 1


def ugal_port(entries: Sequence[Entry], held: Mapping[int, int], flow: Flow = FAR) -> int | None:
    """Return the port of a flow's packet, with `held` bytes in the queues. Ports 5 to 8 are direct."""
    rig = BuiltinRig("ecn", [*programs.parameters("ecn", {}).entries(VIEW), *entries], "ugal")
    for port, held_bytes in held.items():
        rig.switch.register_write("queue_bytes", queue_of(port), held_bytes.to_bytes(4, "big"))
    return next((port for port, _ in rig.switch.process(1, flow.data(), 0)), None)


DIRECT = (5, 6, 7, 8)


@pytest.mark.parametrize(
    ("direct_bytes", "detour_bytes", "detoured"),
    [(0, 0, False), (2000, 1000, False), (2002, 1000, True), (64, 0, True), (64, 1 << 31, False)],
)
def test_ugal_takes_the_detour_where_it_is_under_half_as_long(
    direct_bytes: int, detour_bytes: int, detoured: bool
) -> None:
    held = {**dict.fromkeys(DIRECT, direct_bytes), 1: detour_bytes}
    port = ugal_port(detours((1,), 1), held)
    assert port == 1 if detoured else port in DIRECT


@pytest.mark.parametrize(
    ("direct_exit", "detour_exit", "detour_is_shorter", "detoured"),
    [
        (False, True, False, True),
        (True, False, True, False),
        (True, True, False, False),
        (True, True, True, True),
        (False, False, True, False),
    ],
)
def test_a_later_switch_sends_out_of_the_group_what_can_leave_there(
    direct_exit: bool, detour_exit: bool, detour_is_shorter: bool, detoured: bool
) -> None:
    entries = detours((1,), 1, is_first=False, direct_exit=direct_exit, detour_exit=detour_exit)
    port = ugal_port(entries, dict.fromkeys(DIRECT if detour_is_shorter else (1,), 5000))
    assert port == 1 if detoured else port in DIRECT


def test_ugal_in_other_groups_and_with_one_kind_of_path() -> None:
    full = dict.fromkeys(DIRECT, 5000)
    assert ugal_port(detours((1,), 1), full, Flow("10.2.0.2", "10.1.2.3")) in DIRECT
    assert ugal_port(detours((), 1), full) in DIRECT  # there is no entry for the detour
    assert ugal_port(detours((1,), 1)[:1], full) in DIRECT
    tables = programs.parameters("ecn", {}).entries(VIEW)
    entries = [entry for entry in tables if not isinstance(entry, PortGroup)]
    for is_first in (True, False):
        rig = BuiltinRig("ecn", [*entries, *detours((1,), 1, is_first=is_first)], "ugal")
        assert [port for port, _ in rig.switch.process(1, FAR.data(), 0)] == [1]
    other = bytes(Ether(dst=mac("10.1.2.3")) / IP(src="10.2.0.2", dst="10.1.2.3", ttl=9) / TCP(sport=1, dport=80))
    assert len(rig.switch.process(1, other, 0)) == 0
