"""Numbers of the ports behind a chip's front panel."""

from __future__ import annotations

from collections.abc import Collection

import pytest

import topologies
from p4switch.architectures.architecture import ARCHITECTURES
from p4switch.architectures.front_panel import FrontPanel
from p4switch.errors import UserError
from topologies.model import Topology, renumbered

# The first and the last port of the first two pipes. P4Runtime has no port 0, and T2NA's first 8 ports have other
# purposes.
NUMBERS = {"tna": {1: 1, 63: 63, 64: 128, 127: 191, 255: 447}, "t2na": {1: 8, 64: 71, 65: 136, 256: 455}}


def panel(chip: str) -> FrontPanel:
    found = ARCHITECTURES.find(chip).front_panel
    assert found is not None
    return found


def numbered(plain: Topology, chip: str, without: Collection[int] = ()) -> Topology:
    """Return the network in which all switches are such chips."""
    return renumbered(plain, dict.fromkeys(plain.switch_by_name, tuple(panel(chip).device_ports(without))))


@pytest.mark.parametrize("chip", NUMBERS)
def test_ports_follow_each_other_through_the_pipes(chip: str) -> None:
    ports = panel(chip).device_ports()
    assert {number: ports[number - 1] for number in NUMBERS[chip]} == NUMBERS[chip]


@pytest.mark.parametrize("chip", NUMBERS)
def test_no_two_ports_are_one(chip: str) -> None:
    ports = panel(chip).device_ports()
    assert len(set(ports)) == len(ports) == max(NUMBERS[chip])


def test_a_port_may_be_left_out() -> None:
    assert panel("t2na").device_ports(without={8, 10})[:3] == [9, 11, 12]
    plain = topologies.build("single-switch", {"hosts": 2})
    assert sorted(numbered(plain, "t2na", without={8}).ports["s0"]) == [9, 10]


def test_a_network_keeps_its_links_and_hosts_their_ports() -> None:
    plain = topologies.build("fat-tree", {"k": 4})
    chips = numbered(plain, "t2na")
    assert [(link.a, link.b) for link in chips.links] == [(link.a, link.b) for link in plain.links]
    for switch in plain.switches:
        assert sorted(chips.ports[switch.name]) == [port + 7 for port in sorted(plain.ports[switch.name])]
    for host in plain.hosts:
        assert sorted(chips.ports[host.name]) == sorted(plain.ports[host.name])


def test_a_network_whose_numbers_stay_is_the_same() -> None:
    plain = topologies.build("fat-tree", {"k": 4})
    assert renumbered(plain, {}) is plain
    assert numbered(plain, "tna") is plain


def test_a_switch_with_more_ports_than_the_chip_is_named() -> None:
    plain = topologies.build("single-switch", {"hosts": 17})
    with pytest.raises(UserError, match=r"^switch s0: port 17: expected at most 16$"):
        renumbered(plain, {"s0": tuple(FrontPanel(pipes=1, first=0, count=16).device_ports())})


def test_switches_of_several_chips_are_numbered_each_in_its_way() -> None:
    plain = topologies.build("leaf-spine", {"leaves": 2, "spines": 1, "hosts_per_leaf": 1})
    mixed = renumbered(plain, {"leaf0": tuple(panel("t2na").device_ports())})
    assert [sorted(mixed.ports[name]) for name in ("leaf0", "leaf1", "spine0")] == [[8, 9], [1, 2], [1, 2]]
    uplink = next(there for there in mixed.ports["spine0"].values() if there.node == "leaf0")
    assert mixed.ports["leaf0"][uplink.port].node == "spine0"
