"""Several workers go through random networks together: what they find is what one worker finds, whoever has which node,
and however late each of them is."""

import mmap
import os
import random
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stub import examples, load
from test_order import END_NS, Link, Network, build, networks, results

from p4switch.fabric import joined

EXAMPLES = int(os.environ.get("P4CC_WORKER_EXAMPLES", "40"))  # more of them, now and then
LATE_S = 0.0005


@dataclass(frozen=True)
class Split:
    """Of a network's nodes among workers. `late`: the seed of how long each is late at each meeting; 0: none is."""

    workers: int
    owners: tuple[int, ...]  # by node of the plan, hosts first
    independent: bool
    late: int
    untils: tuple[int, ...]
    events: int  # in a slice


@st.composite
def splits(draw: st.DrawFn, plan: Network) -> Split:
    workers = draw(st.integers(2, 4))
    independent = draw(st.booleans())
    rank = st.integers(0, workers - 1)
    owners = [draw(rank) if independent or i >= plan.hosts else 0 for i in range(plan.hosts + plan.switches)]
    untils = draw(st.lists(st.integers(0, 60_000), max_size=3))
    return Split(workers, tuple(owners), independent, draw(st.sampled_from([0, 0, 1, 2, 3])), tuple(sorted(untils)),
                 draw(st.sampled_from([7, 500, 10**9])))


class Crew:
    """The workers of one network, each a thread here: while one waits, the others run."""

    def __init__(self, plan: Network, split: Split) -> None:
        self.plan, self.split = plan, split
        self.memory = mmap.mmap(-1, load().Fabric.shared_bytes(split.workers))
        self.failed = False

    def run(self) -> list["Worker"]:
        with ThreadPoolExecutor(self.split.workers) as pool:
            return list(pool.map(self._work, range(self.split.workers)))

    def _work(self, rank: int) -> "Worker":
        try:
            worker = Worker(self, rank)
            worker.run()
        except BaseException:
            self.failed = True
            raise
        return worker

    def check(self) -> None:
        if self.failed:
            raise InterruptedError("another worker has failed")


class Worker:
    def __init__(self, crew: Crew, rank: int) -> None:
        plan = self.plan = crew.plan
        self.split, self.rank = crew.split, rank
        self.network, self.hosts, self.pipes = build(plan, None, self.split.independent)
        order = [*range(plan.hosts), *range(plan.hosts, plan.hosts + plan.switches)]
        if plan.switches_first:
            order = order[plan.hosts:] + order[: plan.hosts]
        self.network.join(rank, self.split.workers, [self.split.owners[i] for i in order], crew.memory,
                          told=lambda _: None, waiting=crew.check, spins=0)
        self.rng = random.Random(100 * self.split.late + rank)

    def be_late(self, now_ns: int) -> None:
        if self.split.late:
            time.sleep(self.rng.random() * LATE_S)

    def run(self) -> None:
        for time_ns in range(0, 20_000, 1000):
            self.network.at(time_ns, self.be_late)
        for until_ns in (*self.split.untils, END_NS):
            while self.network.run(max(until_ns, self.network.now_ns), max_events=self.split.events) == "events":
                pass
        assert not any(pipe.backwards for pipe in self.pipes)
        told = bytes([self.rank]) * 9
        gathered = self.network.gather(told, to_all=True)
        assert gathered == [bytes([i]) * 9 for i in range(self.split.workers)]
        assert self.network.gather(told) == (gathered if self.rank == 0 else [])


def together(workers: list[Worker]) -> dict[str, Any]:
    """As `results` of one network."""
    networks = [worker.network for worker in workers]
    first, *others = networks
    for network in others:
        first.add_records(network.take_records())
        assert network.pfc_events() == first.pfc_events()
        assert (network.now_ns, network.events) == (first.now_ns, first.events)
    split = workers[0].split
    hosts = [workers[owner].hosts[i] for i, owner in enumerate(split.owners[: len(workers[0].hosts)])]

    def table(name: str) -> Any:
        return joined.columns([getattr(network, name)() for network in networks])

    ledger = joined.ledger([network.conservation() for network in networks])
    plan = workers[0].plan
    probed = [end for link in plan.links if link.a >= plan.hosts and not link.at_ns for end in (link.a, link.b)]
    owners = np.array([split.owners[i] for i in probed])
    times, values = joined.samples([network.samples() for network in networks], owners)
    return {
        "hops": first.trace_records(), "frames": first.captured(), "ports": table("port_stats"),
        "queues": table("queue_stats"), "pfc": table("pfc_stats"), "incidents": first.pfc_events(),
        "flows": table("flow_stats"), "buffers": table("buffer_stats"), "ledger": ledger,
        "samples": (times, values.tobytes()), "now": first.now_ns,
        "got": [host.got for host in hosts], "pauses": [host.pauses for host in hosts],
    }


@settings(deadline=None, max_examples=examples(EXAMPLES))
@given(st.data())
def test_workers_find_what_one_finds(data: st.DataObject):
    plan = data.draw(networks())
    split = data.draw(splits(plan))
    network, hosts, _ = build(plan, None)
    network.run(END_NS)
    expected = results(network, hosts)
    found = together(Crew(plan, split).run())
    assert found.keys() == expected.keys()
    for name in expected:
        assert found[name] == expected[name], name


@pytest.mark.parametrize("owners", [(1, 1, 0, 0, 1, 0), (0, 0, 1, 1, 0, 1), (0, 1, 1, 0, 1, 0)])
def test_a_link_fails_between_two_workers(owners: tuple[int, ...]):
    """What is on it is lost at one, what waits for it at the other; a trace has both in the order of one worker."""
    gbps = 10**9
    links = (Link(0, 4, 100 * gbps, 600), Link(1, 4, 100 * gbps, 600), Link(2, 5, 100 * gbps, 600),
             Link(3, 5, 100 * gbps, 600), Link(4, 5, 10 * gbps, 3000))
    loads = (*((0, 2, 0, 1000 + i, 0) for i in range(40)), *((2, 3, 0, 100, 0) for _ in range(200)))
    plan = Network(4, 2, False, links, False, loads, (), {}, None, {}, ((9000, 4, 0),), 10_000)
    network, hosts, _ = build(plan, None)
    network.run(END_NS)
    expected = results(network, hosts)
    lost = [node for time_ns, node, event, *_ in expected["hops"] if (time_ns, event) == (9000, "drop:link_down")]
    assert lost.count(4) > 20
    for independent in (True, False):
        if independent or not any(owners[:4]):
            found = together(Crew(plan, Split(2, owners, independent, 0, (), 10**9)).run())
            assert found == expected


def test_an_error_in_the_meeting_before_the_first_window_ends_the_run():
    links = (Link(0, 1, 10**9, 600),)
    network, _, _ = build(Network(1, 1, False, links, False, (), (), {}, None, {}, (), 10_000), None)

    def told(words: list[bytes]) -> None:
        if words == [b"last"]:
            raise LookupError("of the one that was told")
        network.tell(b"last")

    network.join(0, 1, [0, 0], mmap.mmap(-1, load().Fabric.shared_bytes(1)), told=told, waiting=list, spins=0)
    network.tell(b"first")
    with pytest.raises(LookupError, match=r"^of the one that was told$"):
        network.run(END_NS)
    assert network.run(END_NS) == "idle"
