"""Several workers in random networks have the results of one worker.

This holds for every assignment of nodes, and however late a worker is.
"""

import mmap
import os
import random
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from threading import Barrier
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p4switch.fabric import joined
from tests.p4switch.fabric.stub import examples, frame, load
from tests.p4switch.fabric.test_order import END_NS, Cuts, Link, Network, build, cuts, networks, results
from tests.p4switch.fabric.test_pfc import ring

EXAMPLES = int(os.environ.get("P4CC_WORKER_EXAMPLES", "40"))  # a larger number for occasional longer runs
LATE_S = 0.0005
AGAIN = ("events", "stopped")
TABLES = ("port", "queue", "pfc", "flow", "buffer")


@dataclass(frozen=True)
class Split:
    """Split of a network's nodes among workers.

    `late`: seed of the delay of each worker at each meeting; 0: no delays.

    `cuts`: divisions that must not change results, except for errors, which end a run of several
    workers.
    """

    workers: int
    owners: tuple[int, ...]  # by node of the plan, hosts first
    independent: bool
    late: int
    untils: tuple[int, ...]
    events: int  # number of events in a slice
    cuts: Cuts | None = None


@st.composite
def splits(draw: st.DrawFn, plan: Network, count: int | None = None) -> Split:
    workers = count or draw(st.integers(2, 4))
    independent = draw(st.booleans())
    rank = st.integers(0, workers - 1)
    owners = [draw(rank) if independent or i >= plan.hosts else 0 for i in range(plan.hosts + plan.switches)]
    cut = replace(draw(cuts()), errors=frozenset()) if independent and draw(st.booleans()) else None
    untils = cut.untils if cut else tuple(sorted(draw(st.lists(st.integers(0, 60_000), max_size=3))))
    return Split(workers, tuple(owners), independent, draw(st.sampled_from([0, 0, 1, 2, 3])), untils,
                 draw(st.sampled_from([7, 500, 10**9])), cut)


# Frames that nobody has sent: time, link, end, from, to, length.
Injected = tuple[int, int, int, int, int, int]


@st.composite
def injections(draw: st.DrawFn, plan: Network) -> list[Injected]:
    host = st.integers(0, plan.hosts - 1)
    drawn = st.tuples(st.integers(0, 20_000), st.integers(0, len(plan.links) - 1), st.integers(0, 1), host, host,
                      st.integers(60, 3000))
    return draw(st.lists(drawn, max_size=10))


def inject(network: Any, plan: Network, frames: list[Injected]) -> None:
    for time_ns, i, end, source, destination, length in frames:
        node = (plan.links[i].a, plan.links[i].b)[end]
        if node >= plan.hosts and not plan.links[i].at_ns:
            at = node - plan.hosts if plan.switches_first else node
            data = frame(source, destination, length)
            network.at(time_ns, lambda _, at=at, port=2 * i + end, data=data: network.inject(at, port, data))


class Meeting:
    """Exchange of bytes between threads, for `Fabric.join`."""

    def __init__(self, workers: int) -> None:
        self.barrier = Barrier(workers, timeout=100)
        self.desks: dict[int, tuple[bytes, list[bytes]]] = {}

    def exchange(self, rank: int, notice: bytes, parts: list[bytes]) -> tuple[list[bytes], list[bytes]]:
        self.desks[rank] = notice, parts
        self.barrier.wait()
        desks = [self.desks[i] for i in range(self.barrier.parties)]
        self.barrier.wait()
        return [notice for notice, _ in desks], [parts[rank] for _, parts in desks]


class Crew:
    """The workers of one network as threads: while one waits, the others run."""

    def __init__(
        self, plan: Network, split: Split, by_function: bool = False, injected: list[Injected] | None = None
    ) -> None:
        self.plan, self.split, self.by_function, self.injected = plan, split, by_function, injected or []
        self.memory = mmap.mmap(-1, load().Fabric.shared_bytes(split.workers))
        self.meeting = Meeting(split.workers)
        self.failed = False

    def run(self) -> list["Worker"]:
        with ThreadPoolExecutor(self.split.workers) as pool:
            return list(pool.map(self._work, range(self.split.workers)))

    def _work(self, rank: int) -> "Worker":
        way: dict[str, Any] = {"memory": self.memory, "waiting": self.check}
        if self.by_function:
            way = {"exchange": partial(self.meeting.exchange, rank)}
        try:
            worker = Worker(self.plan, self.split, rank, **way)
            inject(worker.network, self.plan, self.injected)
            worker.run()
        except BaseException:
            self.failed = True
            self.meeting.barrier.abort()
            raise
        return worker

    def check(self) -> None:
        if self.failed:
            raise InterruptedError("another worker has failed")


class Worker:
    def __init__(self, plan: Network, split: Split, rank: int, **way: Any) -> None:
        self.plan, self.split, self.rank = plan, split, rank
        self.network, self.hosts, self.pipes = build(plan, split.cuts, split.independent)
        order = [*range(plan.hosts), *range(plan.hosts, plan.hosts + plan.switches)]
        if plan.switches_first:
            order = order[plan.hosts:] + order[: plan.hosts]
        self.network.join(rank, split.workers, [split.owners[i] for i in order], deliver=lambda _: None, **way)
        self.rng = random.Random(100 * split.late + rank)

    def be_late(self, now_ns: int) -> None:
        if self.split.late:
            time.sleep(self.rng.random() * LATE_S)

    def run(self) -> None:
        for time_ns in range(0, 20_000, 1000):
            self.network.at(time_ns, self.be_late)
        for time_ns in self.split.cuts.calls if self.split.cuts else ():
            self.network.at(time_ns, lambda now: None)
        for until_ns in (*self.split.untils, END_NS):
            while self.network.run(max(until_ns, self.network.now_ns), max_events=self.split.events) in AGAIN:
                pass
        assert not any(pipe.backwards for pipe in self.pipes)
        told = bytes([self.rank]) * 9
        gathered = self.network.gather(told, to_all=True)
        assert gathered == [bytes([i]) * 9 for i in range(self.split.workers)]
        assert self.network.gather(told) == (gathered if self.rank == 0 else [])

    def part(self) -> dict[str, Any]:
        """Return the results that the worker has.

        Its own traces and captures are gone afterwards, except the first one's.
        """
        network = self.network
        return {
            "records": network.take_records() if self.rank else b"", "incidents": network.pfc_events(),
            "now": network.now_ns, "events": network.events, "samples": network.samples(),
            "ledger": network.conservation(), "hosts": [(host.got, host.pauses) for host in self.hosts],
            "tables": {name: getattr(network, f"{name}_stats")() for name in TABLES},
        }


def together(worker: Worker, parts: list[dict[str, Any]]) -> dict[str, Any]:
    """Return `results` of one network from those of all workers; `worker` is the first one."""
    first, plan, split = worker.network, worker.plan, worker.split
    for part in parts[1:]:
        first.add_records(part["records"])
        assert [part[name] for name in ("incidents", "now", "events")] == [
            parts[0][name] for name in ("incidents", "now", "events")
        ]
    hosts = [parts[owner]["hosts"][i] for i, owner in enumerate(split.owners[: plan.hosts])]
    tables = {name: joined.columns([part["tables"][name] for part in parts]) for name in parts[0]["tables"]}
    probed = [end for link in plan.links if link.a >= plan.hosts and not link.at_ns for end in (link.a, link.b)]
    owners = np.array([split.owners[i] for i in probed])
    times, values = joined.samples([part["samples"] for part in parts], owners)
    return {
        "hops": first.trace_records(), "frames": first.captured(), "ports": tables["port"],
        "queues": tables["queue"], "pfc": tables["pfc"], "incidents": parts[0]["incidents"],
        "flows": tables["flow"], "buffers": tables["buffer"],
        "ledger": joined.ledger([part["ledger"] for part in parts]),
        "samples": (times, values.tobytes()), "now": parts[0]["now"],
        "got": [got for got, _ in hosts], "pauses": [pauses for _, pauses in hosts],
    }


def found_by(crew: Crew) -> dict[str, Any]:
    workers = crew.run()
    return together(workers[0], [worker.part() for worker in workers])


def alone(plan: Network, injected: list[Injected] | None = None) -> dict[str, Any]:
    network, hosts, _ = build(plan, None)
    inject(network, plan, injected or [])
    network.run(END_NS)
    return results(network, hosts)


def same(found: dict[str, Any], expected: dict[str, Any]) -> None:
    assert found.keys() == expected.keys()
    for name in expected:
        assert found[name] == expected[name], name


@settings(deadline=None, max_examples=examples(EXAMPLES))
@given(st.data())
def test_workers_find_what_one_finds(data: st.DataObject) -> None:
    plan = data.draw(networks())
    injected = data.draw(injections(plan))
    crew = Crew(plan, data.draw(splits(plan)), data.draw(st.booleans()), injected)
    same(found_by(crew), alone(plan, injected))


@pytest.mark.parametrize("owners", [(1, 1, 0, 0, 1, 0), (0, 0, 1, 1, 0, 1), (0, 1, 1, 0, 1, 0)])
def test_a_link_fails_between_two_workers(owners: tuple[int, ...]) -> None:
    """One worker loses frames on the link, the other the waiting ones; a trace has both in the order of one worker."""
    gbps = 10**9
    links = (Link(0, 4, 100 * gbps, 600), Link(1, 4, 100 * gbps, 600), Link(2, 5, 100 * gbps, 600),
             Link(3, 5, 100 * gbps, 600), Link(4, 5, 10 * gbps, 3000))
    loads = (*((0, 2, 0, 1000 + i, 0) for i in range(40)), *((2, 3, 0, 100, 0) for _ in range(200)))
    plan = Network(4, 2, False, links, False, loads, (), {}, None, {}, ((9000, 4, 0),), 10_000)
    expected = alone(plan)
    lost = [node for time_ns, node, event, *_ in expected["hops"] if (time_ns, event) == (9000, "drop:link_down")]
    assert lost.count(4) > 20
    for independent in (True, False):
        if independent or not any(owners[:4]):
            same(found_by(Crew(plan, Split(2, owners, independent, 0, (), 10**9))), expected)


def test_an_error_in_the_meeting_before_the_first_window_ends_the_run() -> None:
    links = (Link(0, 1, 10**9, 600),)
    network, _, _ = build(Network(1, 1, False, links, False, (), (), {}, None, {}, (), 10_000), None)

    def told(words: list[bytes]) -> None:
        if words == [b"last"]:
            raise LookupError("of the one that was told")
        network.broadcast(b"last")

    network.join(0, 1, [0, 0], deliver=told, memory=mmap.mmap(-1, load().Fabric.shared_bytes(1)), waiting=list)
    network.broadcast(b"first")
    with pytest.raises(LookupError, match=r"^of the one that was told$"):
        network.run(END_NS)
    assert network.run(END_NS) == "idle"


def shared(workers: int, work: Callable[[int, dict[str, Any]], Any]) -> list[Any]:
    """Return the results of each worker, which runs in its own thread."""
    way = {"deliver": list, "memory": mmap.mmap(-1, load().Fabric.shared_bytes(workers)), "waiting": list}
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(lambda rank: work(rank, way), range(workers)))


@pytest.mark.parametrize("owners", [(0, 1, 0), (1, 1, 0), (0, 1, 2)])
def test_a_deadlock_across_workers_is_found_as_one_worker_finds_it(owners: tuple[int, ...]) -> None:
    def made() -> Any:
        return ring(3, 3000, 2, xoff_bytes=30_000, xon_gap_bytes=2000)[0]

    def work(rank: int, way: dict[str, Any]) -> Any:
        network = made()
        network.join(rank, 1 + max(owners), [0, 0, 0, *owners], **way)
        return network.run(10_000_000), network.pfc_events(), network.now_ns

    network = made()
    expected = network.run(10_000_000), network.pfc_events(), network.now_ns
    assert expected[0] == "deadlock"
    assert len(expected[1][0][3]) == 3
    assert shared(1 + max(owners), work) == [expected] * (1 + max(owners))


def test_the_one_whose_time_is_up_ends_the_run_for_all() -> None:
    def work(rank: int, way: dict[str, Any]) -> Any:
        network, _, _ = ring(3, 300, 1, xoff_bytes=30_000)
        network.join(rank, 2, [0, 0, 0, 0, 1, 0], **way)

        def again(now_ns: int) -> None:
            network.at(now_ns + 1, again)

        network.at(0, again)  # the callback repeats for ever
        limit_s = 0.01 if rank else 1000
        status = network.run(max_wall_s=limit_s, progress=lambda now, events: None, progress_events=50)
        return status, network.now_ns, network.events

    found = shared(2, work)
    assert found[0] == found[1]
    assert found[0][0] == "wall"


def test_what_is_longer_than_the_memory_between_two_workers_comes_whole() -> None:
    lengths = [0, 5, 10_000, 300_000, 7, 64_000, 1_200_000, 20_000, 3]  # 16 workers: a piece has half a megabyte
    given = [[bytes([rank + i]) * (length * (rank % 3)) for i, length in enumerate(lengths)] for rank in range(16)]

    def work(rank: int, way: dict[str, Any]) -> Any:
        network, _, _ = ring(3, 300, 1, xoff_bytes=30_000)
        network.join(rank, 16, [0, 0, 0, 0, 1, 2], **way)
        return [network.gather(data, to_all=True) for data in given[rank]]

    assert shared(16, work) == [[list(data) for data in zip(*given, strict=True)]] * 16


def test_a_host_of_several_workers_does_not_inject() -> None:
    network, _, _ = build(Network(1, 1, False, (Link(0, 1, 10**9, 600),), False, ((0, 0, 5, 100, 0),), (), {}, None,
                                      {}, (), 10_000), None)
    network.join(0, 1, [0, 0], deliver=list, memory=mmap.mmap(-1, load().Fabric.shared_bytes(1)), waiting=list)
    network.at(7, lambda now: network.inject(1, 1, frame(0, 0)), host=0)
    with pytest.raises(RuntimeError, match=r"^inject from within a host's call, with several workers; .* at\(\)$"):
        network.run(END_NS)
