"""Multicast in every program: copies along each group's tree, and counted drops of packets without a tree."""

from __future__ import annotations

import pytest

import topologies
from control_plane import controller, programs
from control_plane.controller import Settings
from control_plane.programs.base import SwitchView
from control_plane.programs.entries import MulticastGroup
from tests.p4src.conftest import MakeRig
from tests.p4src.packets import Flow, ip_checksum_ok, psn_of
from tests.p4src.rigs import Sent
from topologies.groups import Group

NO_ROUTE, NO_GROUP = 4, 5
TOPOLOGY = topologies.build("fat-tree", {"k": 4})
ALL = Group(1, 0, tuple(range(1, 16)))
NEAR = Group(2, 0, (1, 2))


def view_of(switch: str) -> SwitchView:
    settings = Settings(groups=(ALL, NEAR))
    return controller.switch_view(TOPOLOGY, TOPOLOGY.switch_by_name[switch], settings)


def to(group: str) -> Flow:
    return Flow(str(TOPOLOGY.hosts[0].address), group)


@pytest.mark.parametrize("program", ["ecn", "int", "trim"])
def test_a_copy_leaves_by_each_port_of_the_tree(make_rig: MakeRig, program: str) -> None:
    first = TOPOLOGY.uplink(TOPOLOGY.hosts[0])
    edge = first.node
    view = view_of(edge)
    rig = make_rig(program, view=view, MULTICAST="1")
    frames = [to("239.0.0.1").data(1), to("239.0.0.2").data(2), to(str(TOPOLOGY.hosts[1].address)).data(3)]
    received = rig.run([Sent(first.port, frame) for frame in frames])
    everywhere, near = view.group_ports(ALL), view.group_ports(NEAR)
    assert len(everywhere) == len(near) == 2  # the other host, and one way up
    assert first.port not in (*everywhere, *near)
    (beside,) = (port for port in view.host_ports if port != first.port)
    found = {port: sorted(psn_of(frame) for frame in frames) for port, frames in received.items()}
    expected: dict[int, list[int]] = {}
    for port, psn in [*((port, 1) for port in everywhere), *((port, 2) for port in near), (beside, 3)]:
        expected.setdefault(port, []).append(psn)
    assert found == expected
    for copies in received.values():
        for frame in copies:
            assert ip_checksum_ok(frame)
            assert frame[22] == frames[0][22] - 1


def test_a_group_without_an_entry_is_dropped_and_counted(make_rig: MakeRig) -> None:
    rig = make_rig("ecn", view=view_of(TOPOLOGY.uplink(TOPOLOGY.hosts[0]).node), MULTICAST="1")
    unknown = [to("239.0.0.3").data(), to("239.255.255.255").data(), to("224.0.0.1").data()]
    received = rig.run([Sent(1, frame) for frame in unknown])
    assert not any(received.values())
    assert (rig.counter("ingress_drops", NO_GROUP), rig.counter("ingress_drops", NO_ROUTE)) == (2, 1)


def test_a_switch_beside_the_tree_knows_the_group_as_unknown(make_rig: MakeRig) -> None:
    beside = [s.name for s in TOPOLOGY.switches if not view_of(s.name).group_ports(NEAR)]
    assert beside
    rig = make_rig("ecn", view=view_of(beside[0]), MULTICAST="1")
    assert not any(rig.run([Sent(1, to("239.0.0.2").data())]).values())
    assert rig.counter("ingress_drops", NO_GROUP) == 1


def test_trees_reach_every_member_once() -> None:
    for group in (ALL, NEAR):
        reached: list[str] = []
        waiting = [TOPOLOGY.uplink(TOPOLOGY.hosts[0]).node]
        while waiting:
            switch = waiting.pop()
            for port in view_of(switch).group_ports(group):
                there = TOPOLOGY.ports[switch][port].node
                (reached if there in TOPOLOGY.host_by_name else waiting).append(there)
        assert sorted(reached) == sorted(TOPOLOGY.hosts[member].name for member in group.members)


def test_without_groups_programs_have_no_entries_for_them() -> None:
    plain = controller.switch_view(TOPOLOGY, TOPOLOGY.switches[0], Settings())
    kinds = {type(entry) for entry in programs.parameters("ecn", {}).entries(plain)}
    assert MulticastGroup not in kinds
