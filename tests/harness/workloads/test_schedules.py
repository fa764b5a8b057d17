"""Schedules of ranks: collectives by algorithm, GOAL, Chakra, a training step."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Callable, Iterator
from copy import deepcopy
from heapq import heappop, heappush
from math import ceil, inf
from pathlib import Path
from random import Random
from typing import Any, cast, get_args

import pytest

from harness.measure import results
from harness.plan import resolve, scenario
from harness.plan.inputs import inputs
from harness.workloads import build
from harness.workloads.base import Flow, Traffic
from harness.workloads.chakra import message_class
from harness.workloads.patterns import Algorithm, Collective, add, rounds
from harness.workloads.schedule import ANY, Schedule, ScheduleTraffic
from harness.workloads.training import Training
from harness.worlds.virtual import VirtualWorld
from p4switch.errors import UserError
from topologies import build as topology_of

ROOTED: tuple[Collective, ...] = ("broadcast", "reduce", "gather", "scatter")
COLLECTIVES: tuple[Collective, ...] = tuple(each for each in get_args(Collective) if each not in ROOTED)
ALGORITHMS: tuple[Algorithm, ...] = get_args(Algorithm)


def carried(traffic: Traffic, delay_ns: Callable[[Flow], int] = lambda _: 0) -> list[Flow]:
    """Return the flows in the order of their starts, in a network in which each takes the given time."""
    started: list[Flow] = []
    events: list[tuple[int, int, str, Flow]] = []
    numbers = iter(range(1 << 30))

    def push(flows: Any) -> None:
        for flow in flows:
            heappush(events, (flow.start_ns, next(numbers), "start", flow))

    push(traffic.flows)
    while events:
        now_ns, _, what, flow = heappop(events)
        if what == "start":
            started.append(flow)
            heappush(events, (now_ns + delay_ns(flow), next(numbers), "delivered", flow))
        elif what == "delivered":
            push(traffic.on_delivered(flow, now_ns))
            heappush(events, (now_ns + delay_ns(flow), next(numbers), "completed", flow))
        else:
            push(traffic.on_completed(flow, now_ns))
    return started


def cases() -> Iterator[tuple[Collective, Algorithm, int]]:
    for collective in COLLECTIVES:
        for algorithm in ALGORITHMS:
            for n in (2, 3, 4, 5, 6, 8, 13):
                if (collective, algorithm) != ("all-to-all", "tree"):
                    yield collective, algorithm, n


@pytest.mark.parametrize(("collective", "algorithm", "n"), list(cases()))
def test_every_rank_has_heard_of_all_that_it_needs(collective: Collective, algorithm: Algorithm, n: int) -> None:
    """A rank may send only data that it has received; after a reduction or a gathering it needs that of all ranks."""
    heard = [{i} for i in range(n)]
    for messages in rounds(collective, algorithm, n):
        before = [set(known) for known in heard]
        for sender, receiver, blocks in messages:
            assert sender != receiver
            assert 0 < blocks <= (n * n // 4 if collective == "all-to-all" else n)
            heard[receiver] |= before[sender]
    assert all(known == set(range(n)) for known in heard)


@pytest.mark.parametrize("n", range(2, 18))
def test_recursive_doubling_sends_just_what_the_other_does_not_have(n: int) -> None:
    """An all-gather sends each block once to each rank without it; an all-to-all moves each block towards its rank."""
    has = [{i} for i in range(n)]
    for messages in rounds("all-gather", "recursive-doubling", n):
        before = [set(blocks) for blocks in has]
        for sender, receiver, blocks in messages:
            assert blocks == len(before[sender] - before[receiver])
            has[receiver] |= before[sender]
    assert has == [set(range(n))] * n

    partners = n - (1 << n.bit_length() - 1)
    takes_part = [(i | 1) if i < 2 * partners else i for i in range(n)]  # for each rank, itself or another
    places = sorted(set(takes_part))
    parcels = [{(i, j) for j in range(n) if j != i} for i in range(n)]
    exchanges = list(rounds("all-to-all", "recursive-doubling", n))
    bits = [0, *range(len(exchanges) - 2), 0] if partners else range(len(exchanges))
    for number, (messages, bit) in enumerate(zip(exchanges, bits, strict=True)):
        moved = []
        for sender, receiver, blocks in messages:
            if partners and number in (0, len(exchanges) - 1):
                going = {p for p in parcels[sender] if number == 0 or p[1] == receiver}
            else:
                other = places.index(receiver) >> bit & 1
                going = {p for p in parcels[sender] if places.index(takes_part[p[1]]) >> bit & 1 == other}
            assert blocks == len(going)
            moved.append((sender, receiver, going))
        for sender, receiver, going in moved:
            parcels[sender] -= going
            parcels[receiver] |= going
    assert parcels == [{(j, i) for j in range(n) if j != i} for i in range(n)]


@pytest.mark.parametrize("n", [2, 3, 5, 8])
@pytest.mark.parametrize("algorithm", ["ring", "tree", "recursive-doubling"])
def test_what_has_a_root_brings_each_part_to_where_it_belongs(algorithm: Algorithm, n: int) -> None:
    for up in ("reduce", "gather"):
        has = [{i} for i in range(n)]
        for messages in rounds(up, algorithm, n):
            for sender, receiver, blocks in messages:
                assert blocks == (n if up == "reduce" else len(has[sender]))
                has[receiver] |= has[sender]
        assert has[0] == set(range(n))
    for down in ("broadcast", "scatter"):
        left = [n if i == 0 else 0 for i in range(n)]  # parts that a rank has, its own and others'
        for messages in rounds(down, algorithm, n):
            for sender, receiver, blocks in messages:
                assert left[sender] >= blocks
                assert left[receiver] == 0
                left[receiver] = blocks
                left[sender] -= blocks if down == "scatter" else 0
        assert left == [n if down == "broadcast" else 1] * n


@pytest.mark.parametrize(
    ("collective", "algorithm", "blocks"),  # that rank 1 of 8 sends
    [
        ("all-reduce", "ring", 14),
        ("all-gather", "ring", 7),
        ("reduce-scatter", "ring", 7),
        ("all-to-all", "ring", 7),
        ("all-reduce", "recursive-doubling", 24),
        ("all-gather", "recursive-doubling", 7),
        ("reduce-scatter", "recursive-doubling", 7),
        ("all-to-all", "recursive-doubling", 12),
        ("all-reduce", "tree", 8),
        ("all-gather", "tree", 1),
        ("reduce-scatter", "tree", 8),
    ],
)
def test_how_much_a_rank_sends(collective: Collective, algorithm: Algorithm, blocks: int) -> None:
    sent: Counter[int] = Counter()
    for messages in rounds(collective, algorithm, 8):
        for sender, _, count in messages:
            sent[sender] += count
    assert sent[1] == blocks


def test_rounds_of_a_collective_follow_each_other_over_any_group() -> None:
    schedule = Schedule(10)
    group = (7, 2, 9, 4)
    add(schedule, "all-reduce", "ring", group, 4001, {7: [schedule.calc(7, 500)]})
    traffic = ScheduleTraffic(schedule, range(10, 20))
    flows = carried(traffic, lambda _: 100)
    assert {flow.size_bytes for flow in flows} == {ceil(4001 / 4)}
    assert [flow.start_ns for flow in flows[:3]] == [0, 0, 0]  # all but the one that computes
    assert {(flow.source, flow.destination) for flow in flows} == {(17, 12), (12, 19), (19, 14), (14, 17)}
    assert len(flows) == 4 * 6
    assert traffic.summary()["job_completion_ns"] == 500 + 6 * 200  # sent, delivered, acknowledged: 200 a round


def test_groups_that_an_algorithm_is_not_for() -> None:
    with pytest.raises(UserError, match=r"all-to-all: no tree"):
        rounds("all-to-all", "tree", 8)


def test_a_processor_does_one_thing_after_the_other() -> None:
    schedule = Schedule(1)
    first = schedule.calc(0, 100)
    schedule.calc(0, 50)
    schedule.calc(0, 70, processor=1)
    last = schedule.calc(0, 10, [first], processor=1)
    schedule.operations[last].follows.append(schedule.calc(0, 5, [first]))
    traffic = ScheduleTraffic(schedule, [0])
    assert traffic.flows == []
    assert traffic.summary() == {
        "job_completion_ns": 155,  # 100 + 50 + 5; the other processor ends at 110
        "step_ns": [155],
        "computing_ns": 235,
        "unfinished_operations": 0,
    }


def test_messages_are_received_in_order_also_by_who_comes_late_and_from_oneself() -> None:
    schedule = Schedule(2)
    sends = [schedule.send(0, 1, 10), schedule.send(0, 1, 20)]
    schedule.operations[sends[1]].requires.append(sends[0])
    late = schedule.recv(1, 0, [schedule.calc(1, 1000)])
    schedule.calc(1, 7, [late])
    schedule.recv(1, 0, [late])
    own = schedule.send(1, 1, 5, tag=3)
    schedule.recv(1, 1, [own], tag=3)
    schedule.check("it")
    traffic = ScheduleTraffic(schedule, range(2))
    assert [flow.size_bytes for flow in carried(traffic, lambda flow: flow.size_bytes)] == [10, 20]
    assert traffic.summary()["job_completion_ns"] == 1007


def test_a_receive_ends_after_its_begin_though_its_message_is_there_before() -> None:
    schedule = Schedule(2)
    schedule.send(0, 1, 10)
    received = schedule.recv(1, 0, [schedule.calc(1, 100)])
    schedule.send(1, 0, 20, [received])
    schedule.recv(0, 1)
    traffic = ScheduleTraffic(schedule, range(2))
    assert [flow.start_ns for flow in carried(traffic, lambda _: 10)] == [0, 100]
    assert traffic.summary()["job_completion_ns"] == 120


def test_a_message_is_for_the_receive_that_begins_first() -> None:
    """The message matches that receive even if it is known later."""
    schedule = Schedule(2)
    first = schedule.send(0, 1, 10, tag=1)
    schedule.send(0, 1, 20, [first])
    second = schedule.send(0, 1, 30, [schedule.calc(0, 500)])
    late = schedule.recv(1, 0, [schedule.calc(1, 100)])
    early = schedule.recv(1, 0, [schedule.recv(1, 0, tag=1)])
    answer = schedule.send(1, 0, 40, [early])
    schedule.recv(0, 1)
    traffic = ScheduleTraffic(schedule, range(2))
    carried(traffic, lambda _: 10)
    ends = traffic._ended_ns
    assert (ends[early], ends[answer], ends[late]) == (30, 50, 510)
    assert ends[second] == 520


def test_no_operation_of_tree_exchanges_ends_before_what_it_requires(tmp_path: Path) -> None:
    values = {"algorithm": "tree", "members": [[0, 1, 2, 3, 4, 5, 6], [5, 2, 7]], "steps": 3, "compute_ns": 1000}
    traffic = made("exchange", tmp_path, 8, **values)
    assert isinstance(traffic, ScheduleTraffic)
    flows = carried(traffic, lambda flow: 1 + 97 * flow.source * flow.destination % 700)
    assert len(flows) == 3 * (2 * 6 + 2 * 2)
    assert traffic.summary()["unfinished_operations"] == 0
    for one, ended_ns in zip(traffic._operations, traffic._ended_ns, strict=True):
        assert ended_ns >= one.duration_ns + max((traffic._ended_ns[other] for other in one.requires), default=0)


def test_ranks_that_wait_for_each_other_are_a_mistake() -> None:
    schedule = Schedule(3)
    schedule.send(2, 0, 10)
    schedule.recv(0, 2)
    for rank in range(2):
        schedule.send(rank, 1 - rank, 10, [schedule.recv(rank, 1 - rank, tag=5)], tag=5)
    schedule.check("it")
    traffic = ScheduleTraffic(schedule, range(3))
    assert "mistakes" not in traffic.summary()  # a message is on its way
    carried(traffic)
    summary = traffic.summary()
    assert summary["job_completion_ns"] is None
    assert summary["mistakes"] == [
        "rank 0 waits for ever for a message from rank 1, tag 5",
        "rank 1 waits for ever for a message from rank 0, tag 5",
    ]


def test_schedules_that_cannot_end() -> None:
    schedule = Schedule(2)
    schedule.send(0, 1, 10, tag=4)
    with pytest.raises(UserError, match="it: from rank 0 to rank 1, tag 4: 1 more sends than receives"):
        schedule.check("it")
    schedule.recv(1, 0, tag=4)
    schedule.check("it")
    schedule.operations[0].requires.append(schedule.calc(0, 5, [0]))
    with pytest.raises(UserError, match="operations of rank 0 wait for each other in a cycle"):
        schedule.check("it")
    schedule = Schedule(2)
    schedule.send(0, 2, 10)
    with pytest.raises(UserError, match="no rank 2; expected 0 to 1"):
        schedule.check("it")


GOAL = """/* two ranks,
   by hand */
num_ranks 2
rank 0 {
l1: calc 1500 cpu 1  // before
l2: send 4096b to 1 tag 7 cpu 0 nic 0
l2 requires l1
l3: recv 64b from 1 tag 8
}

rank 1 {
l1: recv 4096b from 0 tag 7
l2: calc 300
l2 requires l1
l3: send 64b to 0 tag 8
l3 irequires l2
}
"""


def made(name: str, folder: Path, hosts: int = 4, **values: Any) -> Traffic:
    topology = topology_of("single-switch", {"hosts": hosts})
    return build(name, values, topology, 1, folder)


def test_a_goal_schedule(tmp_path: Path) -> None:
    (tmp_path / "two.goal").write_text(GOAL)
    traffic = made("goal", tmp_path, file="two.goal")
    flows = carried(traffic, lambda _: 100)
    assert [(f.source, f.destination, f.size_bytes, f.start_ns) for f in flows] == [
        (0, 1, 4096, 1500),
        (1, 0, 64, 1600),  # with the computing, not after it
    ]
    assert traffic.summary() == {
        "job_completion_ns": 1900,
        "step_ns": [1900],
        "computing_ns": 1500,
        "unfinished_operations": 0,
    }


ANY_GOAL = """num_ranks 3
rank 0 {
l1: recv 8b from -1 tag -1
l2: recv 8b from 2 tag -1 cpu 1nic 0
l3: recv 8b from -1 tag 5
l4: calc 100000
l5: recv 8b from -1 tag -1
l5 requires l4
l6: recv 8b from -1 tag -1
l6 requires l5
}
rank 1 {
l1: send 10 b to 0 tag 5
l2: calc 500
l3: send 20b to 0 tag 6
l3 requires l2
l4: send 30b to 0 tag 5
l4 requires l3
}
rank 2 {
l1: calc 3000
l2: send 40b to 0 tag 7
l2 requires l1
l3: send 50b to 0 tag 8
l3 requires l2
}
"""


def test_a_receive_from_any_rank_takes_what_comes_first(tmp_path: Path) -> None:
    """Check MPI's wildcards as Schedgen writes them, and `cpu 1nic 0` as ATLAHS' generator writes it."""
    (tmp_path / "any.goal").write_text(ANY_GOAL)
    traffic = made("goal", tmp_path, file="any.goal")
    assert isinstance(traffic, ScheduleTraffic)
    carried(traffic, lambda _: 100)
    # The first arrives at 100 and is l1's, which is before l3; that at 600 fits l5 alone; that at 800 is l3's.
    assert traffic._ended_ns[:6] == [100, 3100, 800, 100_000, 100_000, 100_000]
    assert traffic.summary()["unfinished_operations"] == 0


def test_of_messages_that_are_there_a_receive_from_any_rank_takes_the_first(tmp_path: Path) -> None:
    schedule = Schedule(3)
    schedule.send(2, 0, 40, tag=9)
    schedule.send(1, 0, 10, tag=1)
    last = schedule.recv(0, ANY, [schedule.recv(0, 0)], ANY)  # known when it has heard of itself
    schedule.recv(0, 1, [last], ANY)
    schedule.send(0, 0, 5, [schedule.recv(0, 1, tag=3)])
    schedule.send(1, 0, 900, tag=3)
    schedule.check("it")
    traffic = ScheduleTraffic(schedule, range(3))
    carried(traffic, lambda flow: flow.size_bytes)
    assert traffic.summary()["unfinished_operations"] == 1  # the message of rank 1 is gone
    assert traffic.summary()["mistakes"] == ["rank 0 waits for ever for a message from rank 1, any tag"]


def test_wildcards_that_do_not_fit(tmp_path: Path) -> None:
    (tmp_path / "two.goal").write_text(GOAL.replace("send 4096b to 1", "send 4096b to -1"))
    with pytest.raises(UserError, match=r"two\.goal:6: 'l2: send 4096b to -1 .*'; expected the rank and tag of a send"):
        made("goal", tmp_path, file="two.goal")
    (tmp_path / "two.goal").write_text(GOAL.replace("send 4096b to 1", f"send {'40' * 999}b to -1"))
    with pytest.raises(UserError) as caught:
        made("goal", tmp_path, file="two.goal")
    assert len(str(caught.value)) < len(str(tmp_path)) + 200  # the line is not repeated at length
    (tmp_path / "two.goal").write_text(GOAL.replace("l3: recv 64b from 1 tag 8", "l3: calc 5\nl4: recv 1b from -1"))
    made("goal", tmp_path, file="two.goal")  # as many, though with another tag: known when it is carried out
    (tmp_path / "two.goal").write_text(
        GOAL.replace("l3: recv 64b from 1 tag 8", "l3: recv 1b from -1\nl4: recv 1b from 1")
    )
    with pytest.raises(UserError, match="from any rank to rank 0, any tag: 1 more receives than sends"):
        made("goal", tmp_path, file="two.goal")


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("num_ranks 2", "ranks 2", r"two.goal:3: expected num_ranks N"),
        ("rank 1 {", "rank 2 {", r"two.goal:11: rank 2; expected each of 0 to 1 once"),
        ("l2: calc 300", "l2: compute 300", r"two.goal:13: expected calc NS, .*; got 'l2: compute 300'"),
        ("l2: calc 300", "l1: calc 300", r"two.goal:13: label 'l1' is given twice in rank 1"),
        ("l2 requires l1\nl3: r", "l2 requires l9\nl3: r", r"two.goal:7: no label 'l9' in rank 0"),
        ("64b to 0 tag 8", "64b to 0 tag 9", r"from rank 1 to rank 0, tag 9: 1 more sends than receives|tag 8: 1 more"),
        ("irequires l2\n}", "irequires l2", r"two.goal: ends too soon; expected }"),
        ("calc 300", "calc " + "9" * 20, r"two.goal:13: expected a .* from 0 to [0-9]+, got '9{20}"),
        ("calc 300", "calc " + "9" * 5000, r"two.goal:13: expected a .* from 0 to [0-9]+, got '9{20}"),
        ("num_ranks 2", "num_ranks " + "9" * 5000, r"two.goal:3: expected a .* from 0 to [0-9]+, got '9{20}"),
        ("cpu 1", "cpu " + "9" * 5000, r"two.goal:5: expected a .* from 0 to [0-9]+, got '9{20}"),
        (
            "calc 300",
            "calc 9" + "0" * 17 + "\ncalc 9" + "0" * 17 + "\ncalc 9" + "0" * 17,
            r"two.goal: computes for 2.7e\+18 ns in all; expected less than 2305843009213693952",
        ),
    ],
)
def test_mistakes_in_a_goal_schedule(tmp_path: Path, old: str, new: str, told: str) -> None:
    assert old in GOAL
    (tmp_path / "two.goal").write_text(GOAL.replace(old, new))
    with pytest.raises(UserError, match=told):
        made("goal", tmp_path, file="two.goal")


def trace(path: Path, *nodes: dict[str, Any]) -> None:
    """Write a Chakra trace; attributes are given as `attr`, by name."""
    messages = [message_class("Metadata")(version="0.0.4")]
    for values in nodes:
        attributes = []
        for name, value in values.pop("attr", {}).items():
            kind = {bool: "bool_val", int: "int64_val", float: "double_val", str: "string_val"}[type(value)]
            attributes.append(message_class("Attribute")(**{"name": name, kind: value}))
        messages.append(message_class("Node")(**values, attr=attributes))
    content = b""
    for message in messages:
        data = message.SerializeToString()
        length = len(data)
        while length >= 0x80:
            content += bytes([length & 0x7F | 0x80])
            length >>= 7
        content += bytes([length]) + data
    path.write_bytes(content)


def traces(folder: Path) -> None:
    for rank in range(2):
        peer = {"comm_dst": 1, "comm_size": 2000} if rank == 0 else {"comm_src": 0, "comm_size": 2000}
        trace(
            folder / f"two.{rank}.et",
            {"id": 1, "name": "forward", "type": 4, "duration_micros": 3 + rank, "attr": {"is_cpu_op": False}},
            {"id": 5, "name": "x", "type": 5 + rank, "data_deps": [1], "attr": {**peer, "comm_tag": 2}},
            {
                "id": 7, "name": "gradients", "type": 7, "ctrl_deps": [5],
                "attr": {"comm_type": 0, "comm_size": 8000, "pg_name": "all"},
            },
            {"id": 8, "name": "update " + "x" * 200, "type": 4, "data_deps": [7], "duration_micros": 2},
        )  # fmt: skip


def test_a_chakra_trace(tmp_path: Path) -> None:
    traces(tmp_path)
    (tmp_path / "groups.json").write_text(json.dumps({"all": [1, 0]}))
    traffic = made("chakra", tmp_path, file="two.{rank}.et", process_groups="groups.json")
    flows = carried(traffic, lambda _: 1000)
    assert (
        [(f.source, f.destination, f.size_bytes, f.start_ns) for f in flows]
        == [
            (0, 1, 2000, 3000),
            (0, 1, 4000, 5000),  # sent and acknowledged
            (1, 0, 4000, 4000),  # received
            *((s, 1 - s, 4000, 7000) for s in (1, 0)),
        ][:1]
        + sorted(((f.source, f.destination, f.size_bytes, f.start_ns) for f in flows[1:]), key=lambda f: f[3])
    )
    assert [(f.source, f.size_bytes, f.start_ns) for f in flows] == [
        (0, 2000, 3000),
        (1, 4000, 4000),  # has received
        (0, 4000, 5000),  # its send is acknowledged
        (1, 4000, 6000),
        (0, 4000, 7000),
    ]
    assert traffic.summary()["job_completion_ns"] == 9000 + 2000
    assert traffic.summary()["computing_ns"] == 6000


def of_all(folder: Path, ranks: int, *nodes: dict[str, Any]) -> list[Flow]:
    """Return the flows of a trace that all ranks share, in a network in which each flow takes 1 us."""
    for rank in range(ranks):
        trace(folder / f"same.{rank}.et", *({"id": i, **node} for i, node in enumerate(deepcopy(nodes))))
    return carried(made("chakra", folder, file="same.{rank}.et"), lambda _: 1000)


def collective(kind: int, **values: Any) -> dict[str, Any]:
    return {"name": "nccl", "type": 7, "attr": {"comm_type": kind, "comm_size": 6000, **values}}


@pytest.mark.parametrize(
    ("kind", "sizes"),
    [
        (0, {2000}),
        (1, {6000}),
        (2, {6000}),
        (3, {6000, 12_000}),
        (4, {2000, 4000}),
        (5, {6000}),
        (6, {2000}),
        (7, {2000}),
    ],
)
def test_comm_size_is_what_a_rank_puts_in(tmp_path: Path, kind: int, sizes: set[int]) -> None:
    """Check a ring of three: an all-gather's messages are as large as the part of one rank, not a third of it."""
    assert {flow.size_bytes for flow in of_all(tmp_path, 3, collective(kind))} == sizes


def test_groups_of_a_trace_of_pytorch(tmp_path: Path) -> None:
    """Two groups have the same ranks; the first lists no ranks, which means all."""
    groups = [("0", []), ("1", [1, 2]), ("2", [1, 2])]
    told = json.dumps([{"pg_name": name, "ranks": ranks, "group_size": 3} for name, ranks in groups])
    start = {"name": "## process_group:init ##", "type": 1, "inputs": message_class("Inputs")(values=str([told]))}
    small = [collective(0, pg_name=name, comm_size=size) for name, size in (("1", 200), ("2", 400))]
    for rank, nodes in enumerate(([], small, small[::-1])):
        every = [start, *nodes, collective(0, pg_name="0")]
        trace(tmp_path / f"three.{rank}.et", *({"id": i, **node} for i, node in enumerate(deepcopy(every))))
    flows = carried(made("chakra", tmp_path, file="three.{rank}.et"), lambda _: 1000)
    assert {(flow.source, flow.destination) for flow in flows if flow.size_bytes < 2000} == {(1, 2), (2, 1)}
    assert {(flow.source, flow.destination) for flow in flows if flow.size_bytes == 2000} == {(0, 1), (1, 2), (2, 0)}
    with pytest.raises(UserError, match=r"same\.0\.et: node 0: its process groups are '\[7\]'; expected names and ra"):
        of_all(tmp_path, 2, {**start, "inputs": message_class("Inputs")(values="[7]")})


def test_a_collective_on_the_processor_only_launches_that_of_the_accelerator(tmp_path: Path) -> None:
    launch = {"name": "c10d::broadcast_", "type": 7, "duration_micros": 9, "attr": {"is_cpu_op": True}}
    flows = of_all(tmp_path, 2, launch, {**collective(5, is_cpu_op=False), "data_deps": [0]})
    assert [(flow.source, flow.destination, flow.start_ns) for flow in flows] == [(0, 1, 9000)]


def test_data_dependencies_say_the_order(tmp_path: Path) -> None:
    """PyTorch's control dependencies are callers, which may be the node itself, or may be missing."""
    first = {"type": 4, "duration_micros": 3, "ctrl_deps": [0, 77]}
    second = {"type": 4, "duration_micros": 4, "ctrl_deps": [0], "attr": {"is_cpu_op": True}}
    third = {**collective(0), "ctrl_deps": [2, 99], "data_deps": [1]}
    assert {flow.start_ns for flow in of_all(tmp_path, 2, first, second, third)} == {7000, 9000}


def test_a_trace_that_is_packed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    traces(tmp_path)
    plain = carried(made("chakra", tmp_path, file="two.{rank}.et"), lambda _: 1000)
    for path in tmp_path.glob("two.*.et"):
        path.write_bytes(gzip.compress(path.read_bytes()))
    packed = carried(made("chakra", tmp_path, file="two.{rank}.et"), lambda _: 1000)
    assert [(f.source, f.size_bytes, f.start_ns) for f in packed] == [
        (f.source, f.size_bytes, f.start_ns) for f in plain
    ]
    whole = (tmp_path / "two.1.et").read_bytes()
    (tmp_path / "two.1.et").write_bytes(whole[:-9])
    with pytest.raises(UserError, match=r"two\.1\.et: not a Chakra trace: it is cut off"):
        made("chakra", tmp_path, file="two.{rank}.et")
    text = gzip.decompress(whole)
    (tmp_path / "two.1.et").write_bytes(gzip.compress(text[:40]) + gzip.compress(text[40:]))
    assert len(carried(made("chakra", tmp_path, file="two.{rank}.et"), lambda _: 1000)) == len(plain)
    monkeypatch.setattr("harness.workloads.chakra._MAX_BYTES", 300)
    with pytest.raises(UserError, match=r"two\.0\.et: expected at most 300 bytes, unpacked"):
        made("chakra", tmp_path, file="two.{rank}.et")
    (tmp_path / "two.1.et").write_bytes(b"\x1f\x8b12345")
    monkeypatch.undo()
    with pytest.raises(UserError, match=r"two\.1\.et: not a Chakra trace: (Error -3|it is cut off)"):
        made("chakra", tmp_path, file="two.{rank}.et")


@pytest.mark.parametrize(
    ("node", "told"),
    [
        (
            {"type": 7, "attr": {"comm_type": 0, "comm_size": 9, "pg_name": "all"}},
            "different numbers of collectives: 2 of rank 0, 1 of",
        ),
        ({"type": 7, "attr": {"comm_type": 10, "comm_size": 9}}, "node 9: collective 10; expected one of 0, 1"),
        ({"type": 5, "attr": {"comm_dst": 1}}, "node 9: comm_size None; expected a number"),
        ({"type": 5, "attr": {"comm_dst": 1, "comm_size": 9}}, "1 more sends than receives"),
        ({"type": 4, "data_deps": [77]}, "node 9 waits for node 77, which does not exist"),
        ({"type": 4, "id": 1}, "node 1: given twice"),
        ({"type": 12}, "node 9: type 12; expected 1 to 7"),
        (
            {"type": 6, "attr": {"comm_src": 1, "comm_tag": "abc"}},
            r"two\.0\.et: node 9: comm_tag 'abc'; expected a number from -\d+ to \d+$",
        ),
        ({"type": 5, "attr": {"comm_dst": 1, "comm_size": inf}}, r"two\.0\.et: node 9: comm_size inf; expected a num"),
        ({"type": 5, "attr": {"comm_dst": 1, "comm_size": -5}}, r"node 9: comm_size -5; expected a number from 0 to"),
        ({"type": 7, "attr": {"comm_type": 0, "comm_size": -5}}, r"node 9: comm_size -5; expected a number from 0 to"),
        ({"type": 5, "attr": {"comm_dst": 1, "comm_size": "9" * 5000}}, r"node 9: comm_size '9{39}; expected a number"),
        ({"type": 4, "duration_micros": 1 << 63}, r"two\.0\.et: node 9: duration_micros \d+; expected less than \d+$"),
    ],
)
def test_mistakes_in_a_chakra_trace(tmp_path: Path, node: dict[str, Any], told: str) -> None:
    traces(tmp_path)
    before = (tmp_path / "two.0.et").read_bytes()
    trace(tmp_path / "more.et", {"id": 9, **node})
    (tmp_path / "two.0.et").write_bytes(before + (tmp_path / "more.et").read_bytes().split(b"0.0.4", 1)[1])
    with pytest.raises(UserError, match=told):
        made("chakra", tmp_path, file="two.{rank}.et")


def test_collectives_of_groups_with_common_ranks_do_not_take_each_others_messages(tmp_path: Path) -> None:
    """Ranks 1 and 2 are in both groups and start them in different orders; rank 1's own tags occur in messages, too."""
    (tmp_path / "groups.json").write_text(json.dumps({"a": [0, 1, 2], "b": [1, 2]}))
    a, b = (
        {"type": 7, "attr": {"comm_type": 7, "comm_size": size, "pg_name": name}}
        for name, size in (("a", 3000), ("b", 8000))
    )
    for rank, mine in enumerate(([a], [b, a], [a, b])):
        own: tuple[list[Any], ...] = ([], [{"type": 5, "attr": {"comm_dst": 2, "comm_size": 7, "comm_tag": -1}}], [])
        own[2].append({"type": 6, "attr": {"comm_src": 1, "comm_size": 7, "comm_tag": -1}})
        trace(tmp_path / f"three.{rank}.et", *({"id": i, **node} for i, node in enumerate(mine + own[rank])))
    traffic = made("chakra", tmp_path, file="three.{rank}.et", process_groups="groups.json")
    assert isinstance(traffic, ScheduleTraffic)
    sends = [one for one in traffic._operations if one.kind == "send" and (one.rank, one.peer) == (1, 2)]
    assert sorted(one.size_bytes for one in sends) == [7, 1000, 1000, 4000]
    assert len({one.tag for one in sends}) == 3  # the own message, the two rounds of a, the one of b


def test_metadata_takes_no_time(tmp_path: Path) -> None:
    traces(tmp_path)
    with (tmp_path / "two.0.et").open("ab") as file:
        trace(tmp_path / "more.et", {"id": 9, "type": 1, "duration_micros": 50})
        file.write((tmp_path / "more.et").read_bytes().split(b"0.0.4", 1)[1])
    traffic = made("chakra", tmp_path, file="two.{rank}.et")
    assert traffic.summary()["computing_ns"] == 6000


def test_files_that_are_no_chakra_traces(tmp_path: Path) -> None:
    traces(tmp_path)
    for content in (b"", b"\xff" * 20, (tmp_path / "two.1.et").read_bytes()[:-3]):
        (tmp_path / "two.1.et").write_bytes(content)
        with pytest.raises(UserError, match=r"two\.1\.et: not a Chakra trace"):
            made("chakra", tmp_path, file="two.{rank}.et")
    with pytest.raises(UserError, match=r"expected a name with \{rank\} in it"):
        made("chakra", tmp_path, file="two.et")
    with pytest.raises(UserError, match="no files for ranks 0 and 1"):
        made("chakra", tmp_path, file="three.{rank}.et")


@pytest.mark.parametrize(("pipeline", "batches"), [(1, 3), (4, 4), (4, 8), (3, 1)])
def test_a_training_step_in_a_network_that_takes_no_time_is_the_pipelines(
    tmp_path: Path, pipeline: int, batches: int
) -> None:
    values = {"pipeline": pipeline, "micro_batches": batches, "data": 2, "tensor": 2, "steps": 2}
    traffic = made("training", tmp_path, 16, **values)
    flows = carried(traffic)
    step_ns = (batches + pipeline - 1) * 300_000  # 1F1B: its bubble is a forward and a backward of every other stage
    summary = traffic.summary()
    assert summary["step_ns"] == [step_ns, step_ns]
    assert summary["computing_ns"] == 2 * batches * 300_000
    parts = Training(**cast(Any, values))
    tensor = 2 * pipeline * batches * 2 * parts.turns * 2 * 2 * 2  # replicas, ..., passes, turns, steps, rounds, ranks
    stages = 2 * 2 * (pipeline - 1) * batches * 2 * 2  # ranks of a stage, ..., ways, steps
    data = 2 * pipeline * 2 * 2 * 2  # parts, stages, steps, rounds, replicas
    assert len(flows) == tensor + stages + data == 2 * parts._messages()
    assert traffic.flow_bytes == sum(flow.size_bytes for flow in flows)


def test_a_pass_takes_longer_by_its_messages(tmp_path: Path) -> None:
    values = {"pipeline": 1, "micro_batches": 1, "data": 1, "tensor": 2}
    traffic = made("training", tmp_path, 16, **values)
    carried(traffic, lambda _: 1000)
    assert traffic.summary()["step_ns"] == [300_000 + 2 * 2 * 2 * 2000]  # passes, turns, rounds


@pytest.mark.parametrize(
    ("name", "values"),
    [("exchange", {"steps": 10_000}), ("training", {"steps": 1000, "micro_batches": 1024, "tensor": 4, "data": 4})],
)
def test_more_messages_than_can_be_held(tmp_path: Path, name: str, values: dict[str, int]) -> None:
    with pytest.raises(UserError, match=r"makes about .* flows; expected at most 2000000"):
        made(name, tmp_path, 64, **values)


def test_more_operations_than_can_be_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    values = {"data": 1, "tensor": 1, "pipeline": 1, "micro_batches": 1024, "turns": 1000, "steps": 1000}
    with pytest.raises(UserError, match=r"workload\.turns: makes about 2e\+09 operations; expected at most 6000000"):
        made("training", tmp_path, **values)
    (tmp_path / "two.goal").write_text(GOAL)
    monkeypatch.setattr("harness.workloads.schedule.MAX_OPERATIONS", 5)
    with pytest.raises(UserError, match=r"workload: makes more than 5 operations"):
        made("goal", tmp_path, file="two.goal")


def test_messages_of_a_trace_are_counted_before_they_are_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    traces(tmp_path)
    monkeypatch.setattr("harness.workloads.base.MAX_FLOWS", 4)  # it has a send, and four of the all-reduce
    monkeypatch.setattr("harness.workloads.chakra.add", lambda *_, **__: pytest.fail("made before they were counted"))
    with pytest.raises(UserError, match=r"workload\.file: makes about 5 flows; expected at most 4"):
        made("chakra", tmp_path, file="two.{rank}.et")


def test_llm_step_is_of_128_ranks() -> None:
    # Only planned: carried out it takes some seconds.
    (run,) = resolve.plan("llm-step", scenario.load("llm-step", ["cc=hpcc"])[0], Path())
    assert len(run.topology.hosts) == 128
    assert {flow.source for flow in run.traffic().flows} == set(range(32))  # the first stage's


def test_a_schedule_in_the_virtual_world_and_its_step_times(tmp_path: Path) -> None:
    tables = {
        "cc": "hpcc",
        "topology": {"name": "single-switch", "hosts": 4},
        "workload": {
            "name": "exchange", "collective": "all-gather", "algorithm": "recursive-doubling",
            "members": [[3, 1, 0, 2]], "size_bytes": 40_000, "compute_ns": 10_000, "steps": 2,
        },
    }  # fmt: skip
    (run,) = resolve.plan("exchange", scenario.check(tables), tmp_path)
    summary = json.loads(results.files(run, VirtualWorld(run).run())["summary.json"])
    first, second = summary["workload"]["step_ns"]
    assert summary["flows_delivered"] == 2 * 2 * 4
    assert summary["workload"]["job_completion_ns"] == first + second
    fastest_ns = 10_000 + 8 * 30_000 / 100  # the links alone, at 100 Gb/s
    assert fastest_ns < second < 2 * fastest_ns


def test_what_a_run_is_made_of_has_the_traces(tmp_path: Path) -> None:
    traces(tmp_path)
    workload = {"name": "chakra", "file": "two.{rank}.et"}
    tables = {"cc": "none", "topology": {"name": "single-switch"}, "workload": workload}
    (run,) = resolve.plan("traced", scenario.check(tables), tmp_path)
    assert {Path(path).name for path in inputs(run)["files"]} == {"two.0.et", "two.1.et"}


@pytest.mark.parametrize("file", ["{folder}/two.{rank}.et", "two.{rank}{rank}.et", "{folder}/two.{rank}{rank}.et"])
def test_traces_are_found_by_any_name(tmp_path: Path, file: str) -> None:
    traces(tmp_path)
    for rank in "01":
        (tmp_path / f"two.{rank}.et").rename(tmp_path / file.replace("{folder}/", "").replace("{rank}", rank))
    workload = {"name": "chakra", "file": file.replace("{folder}", str(tmp_path))}
    tables = {"cc": "none", "topology": {"name": "single-switch"}, "workload": workload}
    (run,) = resolve.plan("traced", scenario.check(tables), tmp_path)
    assert len(inputs(run)["files"]) == 2


def test_random_placement_of_ranks(tmp_path: Path) -> None:
    (tmp_path / "two.goal").write_text(GOAL)
    flows = carried(made("goal", tmp_path, 60, file="two.goal", placement="random"))
    hosts = list(range(60))
    Random("workload 1").shuffle(hosts)
    assert [(f.source, f.destination) for f in flows] == [(hosts[0], hosts[1]), (hosts[1], hosts[0])]
