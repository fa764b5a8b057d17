"""Random networks of every shape: the results equal those of a single order of time for all nodes."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.p4switch.fabric.stub import GBPS, Host, balance, examples, frame, ip, load, mark_of

END_NS = 200_000
DELAYS_NS = [0, 1, 40, 600, 600, 1000, 3000, 3000, 5000, 20_000]
MARKS = 1000  # marks of a load's frames are below, those of replies above


@dataclass(frozen=True)
class Link:
    """Ends are numbers of nodes, hosts first. A late link is connected during the run."""

    a: int
    b: int
    rate_bps: int
    delay_ns: int
    at_ns: int = 0


@dataclass(frozen=True)
class Network:
    hosts: int
    switches: int
    switches_first: bool  # True if switches are added before hosts
    links: tuple[Link, ...]
    detours: bool  # routes that make cycles of queues waiting for each other
    loads: tuple[tuple[int, int, int, int, int], ...]  # from, to, time, length, priority
    pauses: tuple[tuple[int, int, int], ...]  # a host's own pause frames: host, time, quanta
    config: dict[str, Any]
    pfc: dict[str, Any] | None
    watch: dict[str, int]
    changes: tuple[tuple[int, int, int], ...]  # time, link, kind
    sample_ns: int


@dataclass(frozen=True)
class Cuts:
    """Divisions of a run that must not change its results."""

    untils: tuple[int, ...]
    events: int  # number of events in a slice
    calls: tuple[int, ...]  # times of callbacks that do nothing
    errors: frozenset[int]  # marks of frames whose receiver raises an error
    stops: frozenset[int]
    rest_ns: int  # after an error: how soon the next call is, and the end of the next slice
    kicks: bool


@st.composite
def networks(draw: st.DrawFn) -> Network:
    switches = draw(st.integers(1, 5))
    hosts = draw(st.integers(2, 7))
    delays = draw(st.lists(st.sampled_from(DELAYS_NS), min_size=1, max_size=3))
    rates = [GBPS, 7 * GBPS + 1, 100 * GBPS]

    def link(a: int, b: int, late: bool = False) -> Link:
        return Link(a, b, draw(st.sampled_from(rates)), draw(st.sampled_from(delays)),
                    draw(st.integers(1, 20_000)) if late else 0)

    links = []
    direct = draw(st.booleans()) and hosts > 3
    if direct:
        links.append(link(hosts - 2, hosts - 1))
    for h in range(hosts - 2 if direct else hosts):
        links.append(link(h, hosts + draw(st.integers(0, switches - 1)), late=draw(st.integers(0, 5)) == 0))
    if draw(st.booleans()):  # a ring
        links += [link(hosts + i, hosts + (i + 1) % switches) for i in range(switches)]
    else:  # trees, maybe several
        links += [link(hosts + draw(st.integers(0, i - 1)), hosts + i)
                  for i in range(1, switches) if draw(st.integers(0, 5))]
    for _ in range(draw(st.integers(0, 2))):
        links.append(link(hosts + draw(st.integers(0, switches - 1)), hosts + draw(st.integers(0, switches - 1)),
                          late=draw(st.booleans())))
    host = st.integers(0, hosts - 1)
    times = st.integers(0, draw(st.sampled_from([2000, 20_000])))
    config: dict[str, Any] = {
        "scheduler": draw(st.sampled_from(["fifo", "round_robin"])),
        "latency_ns": draw(st.sampled_from([0, 400])),
        "queue_bytes": draw(st.sampled_from([None, 3000, 20_000])),
        "buffer_bytes": draw(st.sampled_from([None, 8000, 60_000])),
    }
    pfc = None
    if draw(st.booleans()):
        pfc = {"priorities": [1, 3], "xon_gap_bytes": 500, "quanta": draw(st.sampled_from([3, 100, 65535])),
               "reaction_ns": draw(st.sampled_from([0, 250])), "xoff_bytes": draw(st.sampled_from([0, 1500, 10_000]))}
    return Network(
        hosts, switches, draw(st.booleans()), tuple(links), draw(st.booleans()),
        tuple(draw(st.lists(st.tuples(host, host, times, st.integers(60, 3000), st.integers(0, 7)),
                            min_size=draw(st.sampled_from([0, 20, 80])), max_size=120))),
        tuple(draw(st.lists(st.tuples(host, times, st.sampled_from([1, 200, 65535])), max_size=4))),
        config, pfc,
        {"interval_ns": draw(st.sampled_from([9000, 20_000, 100_000])), "storm_ns": draw(st.sampled_from([1, 50_000]))},
        tuple(draw(st.lists(st.tuples(times, st.integers(0, len(links) - 1), st.integers(0, 3)), max_size=6))),
        draw(st.integers(100, 30_000)),
    )


@st.composite
def cuts(draw: st.DrawFn) -> Cuts:
    times = st.lists(st.integers(0, 60_000), max_size=8)
    marks = st.frozensets(st.integers(0, 80), max_size=8)
    return Cuts(tuple(sorted(draw(times))), draw(st.sampled_from([1, 7, 500, 10**9])), tuple(draw(times)),
                draw(marks), draw(marks),
                draw(st.sampled_from([0, 1, 9, 200, 3000])), draw(st.booleans()))


class Lively(Host):
    """Answers some frames, at once or in a separate call; obeys PFC; raises errors and stops the run on request."""

    def __init__(self, network: Any, number: int, cuts: Cuts | None, frames: Iterable[tuple[int, bytes]]) -> None:
        super().__init__(frames, obeys_pfc_of=GBPS)
        self.network, self.number, self.cuts = network, number, cuts
        self.node, self.others = -1, [-1]

    def send(self, now_ns: int, to: int, mark: int) -> None:
        self.frames.insert(self.next, (now_ns, frame(self.number, to, 64 + mark % 700, mark % 8, mark=mark)))

    def receive(self, now_ns: int, data: bytes) -> None:
        super().receive(now_ns, data)
        if data[12:14] == b"\x88\x08":
            return
        mark, source = mark_of(data), int.from_bytes(data[28:30], "big")
        if mark < MARKS and mark % 3 == 0:
            self.send(now_ns, source, MARKS + mark)
            self.network.kick(self.node)
        elif mark < MARKS and mark % 3 == 1:
            self.network.at(now_ns + 37 * (mark % 200), lambda now: self.later(now, source, MARKS + mark),
                            host=self.node)
        if self.cuts:
            self.disturb(now_ns, mark, self.cuts)

    def later(self, now_ns: int, to: int, mark: int) -> None:
        assert now_ns >= self.now
        self.send(now_ns, to, mark)
        self.network.kick(self.node)

    def disturb(self, now_ns: int, mark: int, cuts: Cuts) -> None:
        if cuts.kicks:
            self.network.kick(self.others[mark % len(self.others)])
        if mark % 11 == 2:
            self.network.at(now_ns + mark, lambda now: None, own=True)
        if mark in cuts.stops:
            self.network.stop()
        if mark in cuts.errors:
            raise LookupError(mark)


def routes(plan: Network, switch: int) -> dict[int, list[int]]:
    """Return the port towards each host, on the shortest path or with detours."""
    ends = [(link.a, 2 * i, link.b) for i, link in enumerate(plan.links)]
    ends += [(link.b, 2 * i + 1, link.a) for i, link in enumerate(plan.links)]
    found = {}
    for host in range(plan.hosts):
        seen, todo = {host: 0}, [host]
        while todo:
            at = todo.pop(-1 if plan.detours else 0)
            for node, port, there in ends:
                if there == at and node >= plan.hosts and node not in seen:
                    seen[node] = port
                    todo.append(node)
        if switch in seen:
            found[host] = [seen[switch]]
    return found


def pause(quanta: int) -> bytes:
    return b"\x01\x80\xc2\x00\x00\x01" + bytes(6) + b"\x88\x08\x01\x01\x00\x0a" + quanta.to_bytes(2, "big") * 8


def build(plan: Network, cuts: Cuts | None, independent: bool = False) -> tuple[Any, list[Lively], list[Any]]:
    engine = load()
    pipes = [engine.Switch(routes(plan, plan.hosts + s)) for s in range(plan.switches)]
    network = engine.Fabric(independent_hosts=independent or cuts is not None)
    hosts = [Lively(network, h, cuts, [(time, frame(a, b, length, priority, mark=i))
                                       for i, (a, b, time, length, priority) in enumerate(plan.loads) if a == h]
                    + [(time, pause(quanta)) for a, time, quanta in plan.pauses if a == h])
             for h in range(plan.hosts)]
    nodes: dict[int, int] = {}

    def add_switches() -> None:
        for s, pipe in enumerate(pipes, plan.hosts):
            nodes[s] = network.add_switch(pipe, **plan.config)
            if plan.pfc:
                network.set_pfc(nodes[s], **plan.pfc)

    if plan.switches_first:
        add_switches()
    for h, host in enumerate(hosts):
        nodes[h] = host.node = network.add_host(host)
    if not plan.switches_first:
        add_switches()
    for host in hosts:
        host.others = [nodes[h] for h in range(plan.hosts)]
    for a in range(plan.hosts):
        for b in range(plan.hosts):
            network.flow(ip(a), ip(b), 7)  # without this, tags follow the order in which flows are first seen
    numbers: dict[int, int] = {}

    def connect(i: int, link: Link) -> None:
        numbers[i] = network.connect(
            nodes[link.a], 0 if link.a < plan.hosts else 2 * i, nodes[link.b], 0 if link.b < plan.hosts else 2 * i + 1,
            rate_bps=link.rate_bps, delay_ns=link.delay_ns)
        network.capture(numbers[i])

    def change(i: int, kind: int) -> None:
        if i in numbers and kind < 2:
            network.set_link_up(numbers[i], bool(kind))
        elif i in numbers:
            network.set_link_rate(numbers[i], kind * GBPS)

    for i, link in enumerate(plan.links):
        if link.at_ns:
            network.at(link.at_ns, lambda now, i=i, link=link: connect(i, link))
        else:
            connect(i, link)
    for time, i, kind in plan.changes:
        network.at(time, lambda now, i=i, kind=kind: change(i, kind))
    for i, link in enumerate(plan.links):
        if link.a >= plan.hosts and not link.at_ns:
            network.probe("depth_bytes", nodes[link.a], 2 * i)
            network.probe("tx_bytes", nodes[link.b], 0 if link.b < plan.hosts else 2 * i + 1)
    network.sample(plan.sample_ns)
    network.watch_pfc(stop_on_deadlock=False, **plan.watch)
    network.trace(0)
    return network, hosts, pipes


def run_to(network: Any, host: int, until_ns: int, cuts: Cuts) -> None:
    """Run to a time, with as many continuations as the run needs."""
    while True:
        until_ns = max(until_ns, network.now_ns)  # after a host's error, some hosts may be beyond this time
        before = network.now_ns
        try:
            status = network.run(until_ns, max_events=cuts.events, progress_events=50,
                                 progress=lambda now, events: balance(network))
        except LookupError:
            resumed_ns = network.now_ns + cuts.rest_ns
            network.at(resumed_ns, lambda now: None)
            if cuts.kicks:
                network.kick(host)
            if resumed_ns < until_ns:
                run_to(network, host, resumed_ns, cuts)
        else:
            if status in ("idle", "until"):
                return
        assert network.now_ns >= before


def results(network: Any, hosts: list[Lively]) -> dict[str, Any]:
    return {
        "hops": network.trace_records(), "frames": network.captured(), "ports": network.port_stats(),
        "queues": network.queue_stats(), "pfc": network.pfc_stats(), "incidents": network.pfc_events(),
        "flows": network.flow_stats(), "buffers": network.buffer_stats(), "ledger": balance(network),
        "samples": network.samples(), "now": network.now_ns, "got": [host.got for host in hosts],
        "pauses": [host.pauses for host in hosts],
    }


@settings(deadline=None, max_examples=examples(150))
@given(networks(), cuts())
def test_windows_and_what_cuts_them_leave_no_trace(plan: Network, cuts: Cuts) -> None:
    """One uninterrupted run in order of time is compared with other ways to run.

    These are independent hosts, two sides that take turns if there are two, runs in slices,
    callbacks, errors after which the run continues, and stops.
    """
    network, hosts, _ = build(plan, None)
    network.run(END_NS)
    expected = results(network, hosts)
    network, hosts, pipes = build(plan, cuts)
    for time in cuts.calls:
        network.at(time, lambda now: None)
    for until in (*cuts.untils, END_NS):
        run_to(network, hosts[0].node, until, cuts)
    assert not any(pipe.backwards for pipe in pipes)
    for name, found in results(network, hosts).items():
        assert found == expected[name], name
