"""Errors of outside networks, each of which gives one line when the network is built."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from ipaddress import IPv4Address

import pytest

from p4switch.architectures.ports import MAX_PORT
from p4switch.errors import UserError
from topologies.checks import check
from topologies.model import Builder, Link, Switch, Topology

RATE_BPS, DELAY_NS = 10**9, 1000


def pair() -> Builder:
    """Return two hosts, each with its own switch."""
    builder = Builder("mine")
    for switch in ("s0", "s1"):
        builder.switch(switch, 0)
    builder.link("s0", "s1", RATE_BPS, DELAY_NS)
    builder.host("10.0.0.2", "s0", RATE_BPS, DELAY_NS)
    builder.host("10.0.1.2", "s1", RATE_BPS, DELAY_NS)
    return builder


def built(*more: Link) -> Topology:
    topology = pair().build({})
    return replace(topology, links=(*topology.links, *more))


def link(a: str, a_port: int, b: str, b_port: int) -> Link:
    return Link(a, a_port, b, b_port, RATE_BPS, DELAY_NS)


def star(ports: int) -> Topology:
    builder = Builder("wide")
    builder.switch("s0", 0)
    for i in range(ports):
        builder.host(f"10.{i // 200}.{i % 200}.2", "s0", RATE_BPS, DELAY_NS)
    return builder.build({})


def other_address(topology: Topology) -> Topology:
    first, second = topology.hosts
    return replace(topology, hosts=(first, replace(second, address=IPv4Address("10.0.0.2"))))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: built(link("h0-0-2", 2, "s1", 3)), "host h0-0-2 has 2 links; expected one"),
        (lambda: built(link("h0-0-2", 1, "s1", 3)), "host h0-0-2 has 2 links; expected one"),
        (lambda: replace(built(), links=built().links[:2]), "host h0-1-2 has no links; expected one"),
        (lambda: built(link("s0", 1, "s1", 3)), "port 1 of s0 has 2 links; expected one"),
        (lambda: built(link("s0", 3, "s7", 1)), "a link leads to 's7', which is neither a host nor a switch of it"),
        (lambda: built(link("s0", 511, "s1", 3)), "s0 has a port 511; expected 1 to 510"),
        (lambda: built(link("s0", 0, "s1", 3)), "s0 has a port 0; expected 1 to 510"),
        (lambda: replace(built(), switches=(*built().switches, Switch("s1", 3, 0))), "two nodes are called 's1'"),
        (lambda: other_address(built()), "two hosts have the address 10.0.0.2; expected addresses of their own"),
        (lambda: star(4001), "switch s0 has 4001 ports; expected at most 510"),
    ],
)
def test_a_network_that_cannot_be_is_one_line(make: Callable[[], Topology], message: str) -> None:
    with pytest.raises(UserError) as refused:
        check(make())
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_what_can_be_is_let_through() -> None:
    assert check(built(link("s0", 3, "s1", 510))).name == "mine"
    assert len(check(star(MAX_PORT)).hosts) == MAX_PORT
