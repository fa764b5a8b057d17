"""Collectives in the network: the behaviour of one switch packet by packet, and operations in networks of switches.

The reference (tests/p4src/collectives.py) processes the packets of every switch of a network, too, and numpy computes
the expected sums.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import topologies
from control_plane import controller
from control_plane.controller import Settings
from control_plane.programs.base import SwitchView
from host_agents.collective.operations import Seen
from host_agents.collective.packets import (
    ACKNOWLEDGEMENT,
    CONTRIBUTION,
    LANES,
    OPERATORS,
    PUSH,
    READ,
    RESULT,
    SUM,
    WRITE,
    group_address,
    tree_of,
)
from tests.p4src.collectives import ANSWER_DSCP, Lanes, Message, Network, combined
from tests.p4src.conftest import MakeRig
from tests.p4src.rigs import Rig, Sent
from topologies import Topology
from topologies.collectives import CollectiveGroup, trees
from topologies.model import Builder
from topologies.trees import Tree

DROPS = ("rank", "operator", "lanes", "sequence", "direction", "stale", "duplicate")
LEDGER = {
    "absorbed": ("collective_absorbed", 0),
    "combined": ("collective_made", 0),
    "asked": ("collective_absorbed", 1),
    "answered": ("collective_made", 1),
    "pruned": ("collective_pruned", 0),
}
NO_GROUP = 5
GROUP = group_address(1, 1)
W = 4

# Four hosts on ports 1 to 4 of a switch, which is the root, or a leaf whose port 5 leads up.
ALONE = topologies.build("single-switch", {"hosts": 4})
TWO_TIERS = topologies.build("leaf-spine", {"leaves": 2, "spines": 1, "hosts_per_leaf": 4})
UP = 5
RATE_BPS, DELAY_NS = 10**11, 1000
HOSTS = [int(host.address) for host in TWO_TIERS.hosts]


def view_of(topology: Topology, switch: str, *groups: CollectiveGroup) -> SwitchView:
    return controller.switch_view(topology, topology.switch_by_name[switch], Settings(collectives=groups))


def root_of_four(make_rig: MakeRig, **options: Any) -> tuple[Rig, list[int]]:
    """Return a single switch, and its hosts' addresses."""
    group = CollectiveGroup(1, (0, 1, 2, 3), window=W, **options)
    rig = make_rig("collective", view=view_of(ALONE, ALONE.switches[0].name, group))
    return rig, [int(host.address) for host in ALONE.hosts]


def leaf_of_four(make_rig: MakeRig, **options: Any) -> Rig:
    group = CollectiveGroup(1, tuple(range(8)), window=W, **options)
    return make_rig("collective", view=view_of(TWO_TIERS, "leaf0", group))


def sent(rig: Rig, *packets: tuple[int, Message]) -> dict[int, list[Message]]:
    """Return the leaving packets, by port."""
    received = rig.run([Sent(port, message.frame()) for port, message in packets])
    return by_class({port: [Message.of(frame) for frame in frames] for port, frames in received.items() if frames})


def by_class(messages: dict[int, list[Message]]) -> dict[int, list[Message]]:
    """Return the messages of each port ordered by class, because BMv2 sends a higher class first."""
    return {port: sorted(of_port, key=lambda message: message.dscp) for port, of_port in messages.items()}


def counted(rig: Rig) -> dict[str, int]:
    drops = {name: rig.counter("collective_drops", index) for index, name in enumerate(DROPS)}
    done = {name: rig.counter(*cell) for name, cell in LEDGER.items()}
    assert done.pop("asked") == done["answered"]
    return {name: count for name, count in {**drops, **done}.items() if count}


def lanes(*values: int) -> Lanes:
    """Return lanes with these values, followed by zeros."""
    return (*(value & 0xFFFFFFFF for value in values), *(0,) * (LANES - len(values)))


ALL_LANES = tuple(range(1, LANES + 1))


def times(factor: int) -> Lanes:
    return tuple(factor * lane for lane in ALL_LANES)


def the_worked_example(hosts: Sequence[int], asks: int) -> tuple[list[tuple[int, Message]], Message, Message]:
    """Return the packets and the results of two sequences. Children are at ports 1 to 4; `asks` sends requests."""
    request = Message(hosts[0], GROUP, READ)

    def answer(child: int, sequence: int = 1) -> tuple[int, Message]:
        factor = 10 ** (child - 1) * (1 if sequence == 1 else 7)
        return child, Message(hosts[child - 1], hosts[0], CONTRIBUTION, sequence, lanes=times(factor))

    again = replace(request, retry=1)
    packets = [
        (asks, request),
        *(answer(3), answer(1), answer(3)),  # the last one is a duplicate
        (asks, again),  # a request for the contributions of 2 and 4
        *(answer(2), answer(4)),  # a result
        (asks, again),  # the slot answers it
        *(answer(child, 1 + W) for child in (4, 3, 2, 1)),  # a result in the same slot
        answer(2),  # late
    ]
    first = Message(GROUP, hosts[0], CONTRIBUTION, lanes=times(1111))
    second = Message(GROUP, hosts[0], CONTRIBUTION, 1 + W, lanes=times(7777))
    return packets, first, second


EXAMPLE_COUNTS = {"absorbed": 8, "combined": 2, "answered": 1, "duplicate": 1, "stale": 1, "pruned": 2}


def test_the_worked_example_at_the_root(make_rig: MakeRig) -> None:
    rig, hosts = root_of_four(make_rig)
    packets, first, second = the_worked_example(hosts, 1)
    request, again = packets[0][1], packets[4][1]
    results = [first, replace(first, retry=1, dscp=ANSWER_DSCP), second]
    expected = {1: [request, *results], 2: [request, again], 3: [request], 4: [request, again]}
    assert sent(rig, *packets) == by_class(expected)
    assert counted(rig) == EXAMPLE_COUNTS


def test_the_worked_example_at_a_leaf(make_rig: MakeRig) -> None:
    """Requests come from above, and sums go up."""
    rig = leaf_of_four(make_rig)
    packets, first, second = the_worked_example(HOSTS, UP)
    request, again = packets[0][1], packets[4][1]
    received = sent(rig, *packets)
    partial = [first, replace(first, retry=1, dscp=ANSWER_DSCP), second]
    expected = {1: [request], 2: [request, again], 3: [request], 4: [request, again], UP: partial}
    assert received == by_class(expected)
    assert counted(rig) == EXAMPLE_COUNTS


def test_a_request_goes_up_and_a_result_comes_down_untouched(make_rig: MakeRig) -> None:
    rig = leaf_of_four(make_rig)
    request = Message(HOSTS[1], GROUP, READ, rank=1)
    result = Message(GROUP, HOSTS[1], CONTRIBUTION, rank=1, lanes=ALL_LANES)
    assert sent(rig, (2, request), (UP, result)) == {UP: [request], 2: [result]}
    assert counted(rig) == {}


def test_writes_are_copied_and_acknowledged_together(make_rig: MakeRig) -> None:
    rig, hosts = root_of_four(make_rig)
    write = Message(hosts[2], GROUP, WRITE, rank=2, lanes=ALL_LANES)
    read = Message(hosts[2], GROUP, READ, rank=2)  # reads have separate slots
    acks = [(child, Message(hosts[child - 1], hosts[2], ACKNOWLEDGEMENT, rank=2)) for child in (4, 1, 2, 3)]
    again = replace(write, retry=1)
    received = sent(rig, (3, write), *acks[:2], (3, again), (3, read), *acks[2:], (3, again))
    whole = replace(acks[0][1], source=GROUP)
    assert received == {
        1: [write, read],
        2: [write, again, read],
        3: [write, again, read, whole, replace(whole, retry=1, dscp=ANSWER_DSCP)],
        4: [write, read],
    }
    assert counted(rig) == {"absorbed": 4, "combined": 1, "answered": 1, "pruned": 2}


def test_pushed_contributions_become_a_result_for_all(make_rig: MakeRig) -> None:
    rig, hosts = root_of_four(make_rig, push=True)
    pushes = [(child, Message(hosts[child - 1], GROUP, PUSH, lanes=times(child))) for child in (1, 2, 3, 4)]
    (_, first), (_, second) = pushes[:2]
    again = (2, replace(second, retry=1))
    received = sent(rig, pushes[0], again, *pushes[2:], again, pushes[0])
    result = Message(GROUP, GROUP, RESULT, lanes=times(10), dscp=ANSWER_DSCP)
    assert first.lanes == ALL_LANES
    assert received == {1: [result], 2: [result, result], 3: [result], 4: [result]}
    assert counted(rig) == {"absorbed": 4, "combined": 1, "answered": 1, "duplicate": 1, "pruned": 3}


def test_a_leaf_passes_pushed_sums_up_and_results_down(make_rig: MakeRig) -> None:
    rig = leaf_of_four(make_rig, push=True)
    pushes = [(child, Message(HOSTS[child - 1], GROUP, PUSH, lanes=times(child))) for child in (1, 2, 3, 4)]
    again = (4, replace(pushes[3][1], retry=1))
    result = Message(GROUP, GROUP, RESULT, lanes=times(10), dscp=ANSWER_DSCP)
    received = sent(rig, *pushes, again, (UP, result))
    partial = replace(pushes[0][1], source=GROUP, lanes=times(10))
    assert received == {UP: [partial, replace(partial, retry=1)], **{child: [result] for child in (1, 2, 3, 4)}}


EDGES = (0, 1, -1, 2**31 - 1, -(2**31), 0x5A5A5A5A, -0x12345678)


@pytest.mark.parametrize("operator", OPERATORS)
def test_operators(make_rig: MakeRig, operator: str) -> None:
    rig, hosts = root_of_four(make_rig)
    rng = random.Random(operator)
    given = [lanes(*(rng.choice((*EDGES, rng.getrandbits(32))) for _ in range(LANES))) for _ in range(4)]
    number = OPERATORS[operator]
    packets = [
        (child, Message(hosts[child - 1], hosts[0], CONTRIBUTION, operator=number, lanes=given[child - 1]))
        for child in (2, 4, 1, 3)
    ]
    ((_, (result,)),) = sent(rig, *packets).items()
    assert result.lanes == combined(number, given)[0]
    assert result.overflow == (operator == "sum")  # at least one of 32 lanes at the limits overflows


@pytest.mark.parametrize(
    ("given", "overflow"),
    [
        ((2**31 - 1, 0, 0, 0), 0),
        ((2**30, 2**30 - 1, 0, 0), 0),
        ((2**30, 2**30, 0, 0), 1),
        ((-(2**30), -(2**30), 0, 0), 0),
        ((-(2**30), -(2**30), -1, 0), 1),
        ((2**30, 2**30, -1, -1), 1),  # the overflow of a partial sum is kept
        ((2**31 - 1, -(2**31), 1, 0), 0),
    ],
)
@pytest.mark.parametrize("lane", [0, LANES - 1])
def test_overflow_is_seen_and_stays(make_rig: MakeRig, given: tuple[int, ...], overflow: int, lane: int) -> None:
    rig, hosts = root_of_four(make_rig)
    packets = [
        (child, Message(hosts[child - 1], hosts[0], CONTRIBUTION, lanes=lanes(*(0,) * lane, value)))
        for child, value in enumerate(given, start=1)
    ]
    again = (1, Message(hosts[0], GROUP, READ, retry=1))
    first, repeated = sent(rig, *packets, again)[1]
    assert first.overflow == repeated.overflow == overflow
    assert first.lanes[lane] == sum(given) & 0xFFFFFFFF


def test_an_overflow_below_is_kept_and_that_of_an_older_sequence_is_not(make_rig: MakeRig) -> None:
    rig, hosts = root_of_four(make_rig)
    flags = {1: (0, 1, 0, 0), 1 + W: (0, 0, 0, 0)}
    packets = [
        (child, Message(hosts[child - 1], hosts[0], CONTRIBUTION, sequence, overflow=flag, lanes=ALL_LANES))
        for sequence, of in flags.items()
        for child, flag in enumerate(of, start=1)
    ]
    assert [result.overflow for result in sent(rig, *packets)[1]] == [1, 0]


def test_what_is_malformed_is_dropped_and_counted(make_rig: MakeRig) -> None:
    rig = leaf_of_four(make_rig)
    good = Message(HOSTS[0], HOSTS[4], CONTRIBUTION, rank=4, lanes=ALL_LANES)
    push = replace(good, opcode=PUSH, destination=GROUP)
    bad = [
        (1, replace(good, rank=8)),
        (1, replace(good, operator=6)),
        (1, replace(good, operator=15)),
        (1, replace(good, sequence=0)),
        (1, replace(good, lanes=ALL_LANES[:-1])),
        (1, replace(good, lanes=())),
        (UP, push),
        (1, replace(push, opcode=RESULT)),
        (1, replace(good, group=2)),
        (1, replace(good, tree=2)),
        (1, replace(good, opcode=READ, destination=group_address(1, 2), group=2, lanes=())),
    ]
    assert sent(rig, *bad) == {}
    assert counted(rig) == {"rank": 1, "operator": 2, "sequence": 1, "lanes": 2, "direction": 2}
    assert rig.counter("ingress_drops", NO_GROUP) == 3


def test_short_lanes_leave_the_slot_alone(make_rig: MakeRig) -> None:
    rig, hosts = root_of_four(make_rig)
    packets = [(child, Message(hosts[child - 1], hosts[0], CONTRIBUTION, lanes=times(child))) for child in (1, 2, 3, 4)]
    short = (1, replace(packets[0][1], sequence=1 + W, lanes=ALL_LANES[:5]))
    assert sent(rig, *packets[:2], short, *packets[2:])[1][0].lanes == times(10)


def test_unicast_is_routed_and_nothing_else(make_rig: MakeRig) -> None:
    rig, hosts = root_of_four(make_rig)
    plain = [
        (1, Message(hosts[0], hosts[2], opcode, tree=0, group=0, rank=99, lanes=ALL_LANES if has else ()))
        for opcode, has in ((WRITE, True), (READ, False), (ACKNOWLEDGEMENT, False), (CONTRIBUTION, True))
    ]
    assert sent(rig, *plain) == {3: [message for _, message in plain]}
    assert counted(rig) == {}


@st.composite
def networks(draw: st.DrawFn) -> tuple[Topology, list[CollectiveGroup]]:
    """Draw a random tree of switches with hosts, or leaves and spines, and groups of some of the hosts."""
    if draw(st.booleans()):
        shape = {"leaves": draw(st.integers(1, 3)), "spines": draw(st.integers(1, 2)), "hosts_per_leaf": 2}
        topology = topologies.build("leaf-spine", {**shape, "links_per_spine": draw(st.integers(1, 2))})
    else:
        topology = tree_of_switches(draw(st.lists(st.integers(0, 3), max_size=4)), draw(st.integers(2, 6)))
    hosts = range(len(topology.hosts))
    groups = []
    for number in range(1, draw(st.integers(1, 2)) + 1):
        members = tuple(draw(st.permutations(hosts))[: draw(st.integers(1, len(hosts)))])
        window = draw(st.sampled_from([1, 2, 4]))
        groups.append(CollectiveGroup(number, members, window, first_sequence=draw(st.sampled_from([1, 1000]))))
    return topology, groups


def tree_of_switches(parents: Sequence[int], hosts: int) -> Topology:
    """Return a tree in which switch i + 1 is below switch parents[i], or the last one before it.

    The last switches get hosts first.
    """
    builder = Builder("tree")
    switches = [builder.switch("s0", 0)]
    for number, parent in enumerate(parents, start=1):
        switches.append(builder.switch(f"s{number}", 0))
        builder.link(switches[min(parent, number - 1)], switches[-1], RATE_BPS, DELAY_NS)
    for host in range(hosts):
        builder.host(f"10.0.0.{host + 2}", switches[-1 - host % len(switches)], RATE_BPS, DELAY_NS)
    return builder.build({})


class Hosts:
    """Members and initiators. Each rank has the same number of operations of each kind, with lanes from numbers."""

    def __init__(
        self, network: Network, groups: Sequence[CollectiveGroup], operations: int, rng: random.Random
    ) -> None:
        self.rng = rng
        self.topology = network.topology
        self.groups = {group.number: group for group in groups}
        self.trees = {group.number: len(trees(self.topology, group)) for group in groups}
        self.operators = {group.number: rng.choice(list(OPERATORS.values())) for group in groups}
        self.answered: dict[tuple[int, int, int, int], Message] = {}  # by opcode, group, rank, sequence
        self.delivered: Counter[tuple[int, int, int, int]] = Counter()  # by member, group, rank, sequence
        self.seen: dict[tuple[int, int, int], Seen] = {}  # writes, by member, group, rank
        self.wanted = {
            (opcode, group.number, rank, sequence)
            for group in groups
            for opcode in ((PUSH,) if group.push else (WRITE, READ))
            for rank in range(len(group.members))
            for sequence in range(group.first_sequence, group.first_sequence + operations)
        }
        self._address = [int(host.address) for host in self.topology.hosts]
        self._lanes: dict[tuple[int, ...], Lanes] = {}
        self._posted: set[tuple[int, int, int, int]] = set()

    def contribution(self, *of: int) -> Lanes:
        """Return a member's contribution for (group, rank, sequence, member), or the data that a rank writes."""
        if of not in self._lanes:
            kind = self.rng.choice((1, 2))
            self._lanes[of] = lanes(
                *(self.rng.choice(EDGES) if kind == 1 else self.rng.getrandbits(28) for _ in range(LANES))
            )
        return self._lanes[of]

    def post(self, again: bool = False) -> list[tuple[str, int, Message]]:
        """Return the requests that the windows allow, and also all unanswered requests if `again`."""
        found = []
        for what in sorted(self.wanted - self.answered.keys()):
            opcode, number, rank, sequence = what
            group = self.groups[number]
            step = group.rank_slots if opcode != PUSH else group.window
            before = (opcode, number, rank, sequence - step)
            if (before in self.wanted and before not in self.answered) or (what in self._posted and not again):
                continue
            if opcode != PUSH and any(
                (opcode, number, rank, earlier) in self.wanted and (opcode, number, rank, earlier) not in self.answered
                for earlier in range(group.first_sequence, sequence - step + 1)
            ):
                continue
            found.append(self._request(what, retry=int(what in self._posted)))
            self._posted.add(what)
        return found

    def _request(self, what: tuple[int, int, int, int], retry: int) -> tuple[str, int, Message]:
        opcode, number, rank, sequence = what
        asks = 0 if opcode == PUSH else rank
        tree = tree_of(asks, sequence, self.trees[number])
        host = self.groups[number].members[rank]
        message = Message(
            *(self._address[host], group_address(tree, number), opcode, sequence),
            rank=asks,
            operator=self.operators[number],
            retry=retry,
            tree=tree,
            group=number,
            lanes={READ: (), WRITE: self.contribution(number, rank, sequence)}[opcode]
            if opcode != PUSH
            else self.contribution(number, 0, sequence, host),
        )
        return self._into(host, message)

    def _into(self, host: int, message: Message) -> tuple[str, int, Message]:
        up = self.topology.uplink(self.topology.hosts[host])
        return up.node, up.port, message

    def receive(self, name: str, message: Message) -> list[tuple[str, int, Message]]:
        host = self.topology.host_by_name[name].index
        number, rank, sequence = message.group, message.rank, message.sequence
        assert host in self.groups[number].members
        if message.opcode == READ:
            given = self.contribution(number, rank, sequence, host)
            return [self._into(host, self._answer(host, message, CONTRIBUTION, given))]
        if message.opcode == WRITE:
            assert message.lanes == self.contribution(number, rank, sequence)
            group = self.groups[number]
            seen = self.seen.setdefault((host, number, rank), Seen(group.first_sequence, group.rank_slots))
            if not seen.within(sequence):
                return []  # a late packet, whose initiator has already been answered
            self.delivered[host, number, rank, sequence] += seen.note(sequence)
            return [self._into(host, self._answer(host, message, ACKNOWLEDGEMENT, ()))]
        assert message.source == group_address(message.tree, number)
        kind = {CONTRIBUTION: READ, ACKNOWLEDGEMENT: WRITE, RESULT: PUSH}[message.opcode]
        if kind == PUSH:
            rank = self.groups[number].members.index(host)
        else:
            assert self.groups[number].members[rank] == host
        known = self.answered.setdefault((kind, number, rank, sequence), message)
        assert (known.lanes, known.overflow) == (message.lanes, message.overflow)
        return self.post()

    def _answer(self, host: int, message: Message, opcode: int, given: Lanes) -> Message:
        source, destination = self._address[host], message.source
        return replace(message, source=source, destination=destination, opcode=opcode, lanes=given, dscp=ANSWER_DSCP)

    def check(self) -> None:
        """Check that every request is answered, and that the answers are equal to numpy's results."""
        assert self.answered.keys() == self.wanted
        for (opcode, number, rank, sequence), message in self.answered.items():
            members = self.groups[number].members
            if opcode == WRITE:
                assert {self.delivered[member, number, rank, sequence] for member in members} == {1}
                continue
            asks = 0 if opcode == PUSH else rank
            given = [self.contribution(number, asks, sequence, member) for member in members]
            wrapped, exact = combined(self.operators[number], given)
            assert message.lanes == wrapped
            if self.operators[number] != SUM:
                assert not message.overflow
            elif any(not -(2**31) <= lane < 2**31 for lane in exact):
                assert message.overflow
            elif not any(may_overflow(column) for column in zip(*given, strict=True)):
                assert not message.overflow


def may_overflow(lane: Iterable[int]) -> bool:
    """Return whether the sum of some of these values overflows."""
    signed = [value - (1 << 32) if value >> 31 else value for value in lane]
    return sum(v for v in signed if v > 0) >= 2**31 or sum(v for v in signed if v < 0) < -(2**31)


def run(network: Network, hosts: Hosts, loss: float, duplicates: float, forgets: Sequence[int]) -> None:
    """Deliver packets in any order until all requests are answered; when none is in flight, requests are repeated."""
    rng = hosts.rng
    flying = hosts.post()
    switches = [switch.name for switch in network.topology.switches]
    steps = 0
    while hosts.answered.keys() != hosts.wanted:
        if not flying:
            flying = hosts.post(again=True)
        steps += 1
        assert steps < 100_000
        if steps in forgets:
            network.forget(rng.choice(switches))
        index = rng.randrange(len(flying))
        flying[index], flying[-1] = flying[-1], flying[index]
        node, port, message = flying[-1]
        if rng.random() >= duplicates:
            flying.pop()
        if rng.random() < loss:
            continue
        flying += network.pass_on(node, port, message) if node in network.rigs else hosts.receive(node, message)


@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.too_slow])
@given(networks(), st.integers(0, 2**32), st.sampled_from([0.0, 0.05, 0.2]), st.sampled_from([0.0, 0.2]), st.booleans())
def test_operations_are_exact_whatever_is_lost_repeated_or_forgotten(
    made: tuple[Topology, list[CollectiveGroup]], seed: int, loss: float, duplicates: float, forgets: bool
) -> None:
    topology, groups = made
    rng = random.Random(seed)
    network = Network(topology, groups)
    hosts = Hosts(network, groups, operations=5, rng=rng)
    run(network, hosts, loss, duplicates, [rng.randrange(20, 400) for _ in range(2 if forgets else 0)])
    hosts.check()
    for switch, reference in network.references.items():
        used = network.slots_in_use(switch)
        assert used <= sum(group.slots for group in reference.groups)


@settings(deadline=None, max_examples=10, suppress_health_check=[HealthCheck.too_slow])
@given(networks(), st.integers(0, 2**32), st.sampled_from([0.0, 0.2]), st.sampled_from([0.0, 0.2]))
def test_pushed_sums_are_exact_whatever_is_lost_or_repeated(
    made: tuple[Topology, list[CollectiveGroup]], seed: int, loss: float, duplicates: float
) -> None:
    topology, groups = made[0], [replace(group, push=True) for group in made[1]]
    network = Network(topology, groups)
    hosts = Hosts(network, groups, operations=8, rng=random.Random(seed))
    run(network, hosts, loss, duplicates, ())
    hosts.check()


@settings(deadline=None, max_examples=15, suppress_health_check=[HealthCheck.too_slow])
@given(networks(), st.integers(0, 2**32), st.booleans())
def test_without_loss_one_aggregate_a_link_and_operation(
    made: tuple[Topology, list[CollectiveGroup]], seed: int, push: bool
) -> None:
    topology, groups = made[0], [replace(group, push=push) for group in made[1]]
    network = Network(topology, groups)
    hosts = Hosts(network, groups, operations=4, rng=random.Random(seed))
    run(network, hosts, 0.0, 0.0, ())
    hosts.check()
    combined_of = Counter(
        (node, port, message.opcode, message.group, message.rank, message.sequence)
        for node, port, message in network.passed
        if message.source >> 24 == 239
    )
    assert set(combined_of.values()) == {1}
    expected = 0
    for opcode, number, rank, sequence in hosts.wanted:
        group = hosts.groups[number]
        found = trees(topology, group)
        tree = found[tree_of(0 if opcode == PUSH else rank, sequence, len(found)) - 1]
        switches = [node for node, children in tree.down.items() if children]
        # From each switch except the root to the switch above it; then to the initiator, or on all links to members.
        if opcode != PUSH:
            expected += len(switches) - 1 + steps_down(topology, tree, group.members[rank])
        elif rank == 0:
            expected += 2 * (len(switches) - 1) + len(group.members)
    assert len(combined_of) == expected
    assert not any("duplicate" in reference.drops for reference in network.references.values())


def steps_down(topology: Topology, tree: Tree, member: int) -> int:
    """Return the number of links from a tree's root to one of its members."""
    node, links = topology.hosts[member].name, 0
    while node != tree.root:
        node, links = topology.ports[node][tree.up[node]].node, links + 1
    return links
