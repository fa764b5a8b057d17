"""Numbers of the ports behind a chip's front panel."""

from __future__ import annotations

import pytest

import topologies
from p4switch.architectures.architecture import ARCHITECTURES
from p4switch.architectures.front_panel import FrontPanel
from p4switch.errors import UserError
from topologies.model import renumbered

# The first and the last port of the first two pipes. P4Runtime has no port 0, and T2NA's first 8 ports lead elsewhere.
NUMBERS = {"tna": {1: 1, 63: 63, 64: 128, 127: 191, 255: 447}, "t2na": {1: 8, 64: 71, 65: 136, 256: 455}}


def panel(chip: str) -> FrontPanel:
    found = ARCHITECTURES.find(chip).front_panel
    assert found is not None
    return found


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
    assert sorted(renumbered(plain, panel("t2na"), frozenset({8})).ports["s0"]) == [9, 10]


def test_a_network_keeps_its_links_and_hosts_their_ports() -> None:
    plain = topologies.build("fat-tree", {"k": 4})
    chips = renumbered(plain, panel("t2na"))
    assert [(link.a, link.b) for link in chips.links] == [(link.a, link.b) for link in plain.links]
    for switch in plain.switches:
        assert sorted(chips.ports[switch.name]) == [port + 7 for port in sorted(plain.ports[switch.name])]
    for host in plain.hosts:
        assert sorted(chips.ports[host.name]) == sorted(plain.ports[host.name])


def test_a_network_whose_numbers_stay_is_the_same() -> None:
    plain = topologies.build("fat-tree", {"k": 4})
    assert renumbered(plain, None) is plain
    assert renumbered(plain, panel("tna")) is plain


def test_a_switch_with_more_ports_than_the_chip_is_named() -> None:
    plain = topologies.build("single-switch", {"hosts": 17})
    with pytest.raises(UserError, match=r"^switch s0: port 17: expected at most 16$"):
        renumbered(plain, FrontPanel(pipes=1, first=0, count=16))
