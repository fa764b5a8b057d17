"""The session alone: its requests to hosts, and its reactions to their reports."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable
from copy import deepcopy
from dataclasses import replace
from typing import NoReturn

from harness.columns.column import Receiver, filled_by
from harness.columns.flows import usual
from harness.measure.flow_record import FlowRecord, Sent
from harness.measure.recording import Rate
from harness.workloads import Flow, Traffic
from harness.worlds.host_session import Completed, Connect, Delivered, Failed, HostReport, Post, RateSample
from harness.worlds.session import Connection, Session
from host_agents.assignments import Assignment
from host_agents.timers import NEVER

COUNTS = {"packets_sent": 2, "retransmitted": 1, "timeouts": 0, "naks": 0, "cnps": 0}
SENT = Sent(size_bytes=1000, first_sent_ns=5, completed_ns=90, columns=COUNTS)


def delivered(number: int, sequence: int, time_ns: int, marked: int) -> Delivered:
    return Delivered(number, sequence, time_ns, {"marked_received": marked})


class Hosts:
    """All requests of a session to its hosts, in order."""

    def __init__(
        self,
        traffic: Traffic,
        os_overhead_ns: int = 0,
        owns: Callable[[int], bool] = lambda host: True,
        divided: bool = False,
    ) -> None:
        self.asked: list[tuple[int, Connect | Post | Assignment]] = []
        self.session = Session(
            traffic,
            lambda sources, destinations: ("+".join(map(str, sources)), "+".join(map(str, destinations))),
            lambda host, request: self.asked.append((host, request)),
            usual(),
            os_overhead_ns,
            owns,
            lambda record: self.started.append(record.flow.index),
            divided,
        )
        self.started: list[int] = []
        self.session.begin()

    def taken(self) -> list[tuple[int, Connect | Post | Assignment]]:
        asked, self.asked = self.asked, []
        return asked


def test_flows_are_handed_over_when_they_are_due_receivers_first() -> None:
    hosts = Hosts(Traffic([Flow(0, 1, 1000, 50), Flow(1, 2, 2000, 10, stop_ns=99)]))
    assert (hosts.session.next_start_ns, hosts.taken()) == (10, [])
    hosts.session.start_due(10)
    post = Post(2, 1, 2000, 10, 99, only=True)
    assert hosts.taken() == [(2, Connect(2, "1", 10)), (1, Connect(2, "2", 10)), (1, post)]
    assert hosts.session.next_start_ns == 50
    hosts.session.start_due(1000)
    post = Post(3, 0, 1000, 50, None, only=True)
    assert hosts.taken() == [(1, Connect(3, "0", 50)), (0, Connect(3, "1", 50)), (0, post)]
    assert hosts.session.next_start_ns == NEVER


def test_each_of_several_sessions_asks_its_own_hosts_and_knows_all_starts() -> None:
    """Connections have the same numbers in all sessions; each session's requests go to its own hosts."""
    flows = [Flow(0, 2, 1000, 0), Flow(2, 3, 1000, 0), Flow(1, 0, 1000, 0), Flow(3, 1, 1000, 0)]
    asked: list[tuple[int, object]] = []
    for own in ({0, 1}, {2, 3}):
        hosts = Hosts(Traffic(deepcopy(flows)), owns=own.__contains__)
        hosts.session.start_due(0)
        assert hosts.started == [0, 1, 2, 3]
        assert [record.qp for record in hosts.session.records] == [2, 3, 4, 5]
        taken = hosts.taken()
        assert {host for host, _ in taken} == own
        asked += taken
    alone = Hosts(Traffic(flows))
    alone.session.start_due(0)
    everything = alone.taken()
    assert len(asked) == len(everything)
    assert all(one in everything for one in asked)


def test_a_session_gets_the_details_that_only_another_one_has() -> None:
    flows = [Flow(0, 1, 1000, 0), Flow(1, 0, 1000, 0), Flow(1, 0, 1000, 0)]
    first, second = (Hosts(Traffic(deepcopy(flows)), owns=own.__eq__) for own in (0, 1))
    nothing = replace(SENT, first_sent_ns=-1, columns={})
    for hosts, own in ((first, 0), (second, 1)):
        hosts.session.start_due(0)
        hosts.session.note(1, Delivered(2, 0, 70, {"marked_received": 4} if own else {}))
        hosts.session.note(0, Completed(0, nothing if own else SENT))
        hosts.session.note(0, Delivered(3, 0, 60, {} if own else {"marked_received": 2}))
        hosts.session.note(1, Completed(1, SENT if own else nothing))
    details = second.session.details()
    assert list(map(list, details.sent)) == [[3], [0]]
    first.session.join(details)
    done, back, unfinished = first.session.records
    for record, marked in ((done, 4), (back, 2)):
        assert (record.first_sent_ns, record.completed_ns, record.columns["marked"]) == (5, 90, marked)
        assert {name: record.columns[name] for name in COUNTS} == COUNTS
    assert (unfinished.first_sent_ns, unfinished.columns["packets_sent"]) == (-1, 0)


class _Followed(Traffic):
    """Traffic in which each flow is followed by two pieces of one flow at the same host."""

    local = True

    def on_completed(self, flow: Flow, now_ns: int) -> Iterable[Flow]:
        if flow.whole is not None:
            return ()
        whole = Flow(flow.source, flow.destination, flow.size_bytes // 2, now_ns, pieces=2)
        return [replace(whole, size_bytes=size, qp="same", whole=whole) for size in (300, whole.size_bytes - 300)]

    def part(self, owns: Callable[[int], bool]) -> None:
        return None


def test_a_session_takes_over_flows_before_it_gets_their_details() -> None:
    """All data that it gets can be pickled, and pieces still belong to one flow."""

    def carried_out(own: set[int], source: int, flows: Iterable[int]) -> Session:
        traffic = _Followed([Flow(0, 1, 1000, 0, qp="same"), Flow(2, 3, 1000, 0, qp="same")])
        session = Hosts(traffic, owns=own.__contains__, divided=True).session
        session.start_due(0)
        while session.next_opening_ns(0) == 0:
            session.open_next()
        for time_ns, flow in enumerate(flows, 90):
            session.note(source, Completed(flow, replace(SENT, completed_ns=time_ns)), time_ns)
            session.start_due(time_ns)
        return session

    first, second = carried_out({0, 1}, 0, [0, 2, 3]), carried_out({2, 3}, 2, [1, 2, 3])
    started, details = (pickle.loads(pickle.dumps(part())) for part in (second.started, second.details))
    first.take_over([started])
    flows = [(record.flow.source, record.flow.index, record.qp, record.place) for record in first.records]
    assert [flow[:2] for flow in flows] == [(0, 0), (2, 1), (0, 2), (0, 3), (2, 4), (2, 5)]
    assert [flow[2:] for flow in flows if flow[0] == 2] == [(3, 0), (3, 1), (3, 2)]
    assert all(record.completed_ns < 0 for record in first.records if record.flow.source == 2)
    first.join(details)
    assert [record.completed_ns for record in first.records] == [90, 90, 91, 92, 91, 92]
    wholes = [record.flow.whole for record in first.records[4:]]
    assert wholes[0] is wholes[1]
    assert wholes[0] == Flow(2, 3, 2 * SENT.size_bytes, 90, pieces=2, index=1)


def test_flows_of_one_name_share_a_connection() -> None:
    hosts = Hosts(Traffic([Flow(0, 1, 1000, 0, qp="a"), Flow(0, 1, 500, 0, qp="a"), Flow(0, 2, 1, 0, qp="a")]))
    hosts.session.start_due(0)
    posts = [request for _, request in hosts.taken() if isinstance(request, Post)]
    assert [post.number for post in posts] == [2, 2, 3]
    hosts.session.note(1, delivered(2, 1, 70, 4))
    assert [(r.delivered_ns, r.columns["marked"]) for r in hosts.session.records] == [(-1, 0), (70, 4), (-1, 0)]


def test_the_place_of_a_flow_is_found_without_going_through_its_connection() -> None:
    """Otherwise a queue pair that fails with 10,000 messages would take 50 million steps."""

    class Flows(list[FlowRecord]):
        def __iter__(self) -> NoReturn:
            raise AssertionError("gone through")

    hosts = Hosts(Traffic([Flow(0, 1, 1000, 5 - i, qp="a") for i in range(5)]))
    connection = Connection(2, (0,), (1,), Flows())
    hosts.session.connections.append(connection)
    hosts.session._shared[(0, (), 1, (), "a")] = connection
    hosts.session.start_due(5)
    assert [hosts.session.place_of(Failed(flow, SENT)) for flow in range(5)] == [(2, 4 - flow) for flow in range(5)]


def test_all_connections_of_an_announced_incast_are_there_when_it_begins() -> None:
    """Check that the receiver can send each sender its share, separately for each incast."""
    flows = [Flow(source, 2, 10, 50 * source + later, incast=(number, (0, 1)), priority=4)
             for number, later in ((7, 0), (8, 200)) for source in (0, 1)]  # fmt: skip
    hosts = Hosts(Traffic(flows))
    hosts.session.start_due(0)
    asked = hosts.taken()
    assert [(host, request.number) for host, request in asked if isinstance(request, Connect)] == [
        (2, 2), (0, 2), (2, 3), (1, 3)
    ]  # fmt: skip
    assert {(request.time_ns, request.priority) for _, request in asked if isinstance(request, Connect)} == {(0, 4)}
    assert [(host, request) for host, request in asked if isinstance(request, Post)] == [
        (0, Post(2, 0, 10, 0, None, (7, (0, 1)), only=True))
    ]
    hosts.session.start_due(50)
    assert hosts.taken() == [(1, Post(3, 1, 10, 50, None, (7, (0, 1)), only=True))]


def test_the_operating_system_has_a_message_before_the_nic() -> None:
    hosts = Hosts(Traffic([Flow(0, 1, 1000, 50, stop_ns=90)]), os_overhead_ns=25)
    hosts.session.start_due(50)
    assert hosts.taken()[-1] == (0, Post(2, 0, 1000, 75, 115, only=True))


def test_a_flow_is_done_whatever_word_comes_first() -> None:
    for order in ((0, 1), (1, 0)):
        hosts = Hosts(Traffic([Flow(0, 1, 1000, 0)]))
        hosts.session.start_due(0)
        events = ((1, delivered(2, 0, 60, 3)), (0, Completed(0, SENT)))
        for i in order:
            assert not hosts.session.finished
            hosts.session.note(*events[i])
        assert hosts.session.finished
        (record,) = hosts.session.records
        assert (record.delivered_ns, record.completed_ns) == (60, 90)
        assert (record.columns["marked"], record.columns["packets_sent"]) == (3, 2)


def test_a_flow_that_a_source_has_given_up_is_over() -> None:
    hosts = Hosts(Traffic([Flow(0, 1, 1000, 0), Flow(1, 0, 1000, 0)]))
    hosts.session.start_due(0)
    hosts.session.note(0, Failed(0, replace(SENT, completed_ns=-1, columns={**COUNTS, "timeouts": 8})))
    assert not hosts.session.finished
    hosts.session.note(0, delivered(3, 0, 60, 3))
    hosts.session.note(1, Completed(1, SENT))
    assert (hosts.session.finished, hosts.session.failures, hosts.session.done) == (True, 1, 1)
    hosts.session.end([HostReport({}, {}, {})] * 2)
    assert [(r.completed_ns, r.columns["timeouts"]) for r in hosts.session.records] == [(-1, 8), (90, 0)]


def test_messages_that_nobody_sent_are_counted() -> None:
    hosts = Hosts(Traffic([Flow(0, 1, 1000, 0)]))
    hosts.session.start_due(0)
    for host, sequence in ((1, 1), (1, 1 << 20), (0, 0)):  # never posted; at the sender
        hosts.session.note(host, delivered(2, sequence, 50, 0))
    assert hosts.session.forged == 3
    assert hosts.session.records[0].delivered_ns == -1
    hosts.session.note(1, delivered(2, 0, 60, 3))
    assert hosts.session.records[0].delivered_ns == 60
    hosts.session.note(0, Completed(0, SENT))
    hosts.session.note(1, delivered(2, 0, 70, 3))  # once more
    assert (hosts.session.forged, hosts.session.done, hosts.session.records[0].delivered_ns) == (4, 1, 60)


def test_a_workload_answers_with_flows() -> None:
    class PingPong(Traffic):
        def on_delivered(self, flow: Flow, now_ns: int) -> Iterable[Flow]:
            return [Flow(flow.destination, flow.source, 1000, now_ns)] if flow.index == 0 else []

    hosts = Hosts(PingPong([Flow(0, 1, 1000, 0)]))
    hosts.session.start_due(0)
    hosts.session.note(1, delivered(2, 0, 60, 0))
    hosts.session.note(0, Completed(0, SENT))
    assert not hosts.session.finished
    assert hosts.session.next_start_ns == 60
    hosts.taken()
    hosts.session.start_due(60)
    assert hosts.taken()[-1] == (1, Post(3, 1, 1000, 60, None, only=True))


def test_a_transfer_to_several_is_done_when_each_has_all_of_it() -> None:
    hosts = Hosts(Traffic([Flow(0, 1, 1000, 0, further_destinations=(2, 3))]))
    hosts.session.start_due(0)
    asked = hosts.taken()
    assert asked == [
        *((receiver, Connect(2, "0", 0, joins="1+2+3")) for receiver in (1, 2, 3)),
        (0, Connect(2, "1+2+3", 0, members=("1", "2", "3"))),
        (0, Post(2, 0, 1000, 0, None, only=True)),
    ]
    (record,) = hosts.session.records
    hosts.session.note(0, Completed(0, SENT))
    for host, time_ns in ((3, 80), (1, 50)):
        hosts.session.note(host, delivered(2, 0, time_ns, 1))
        assert (record.delivered_ns, hosts.session.finished) == (-1, False)
    hosts.session.note(2, delivered(2, 0, 70, 1))
    assert (record.delivered_ns, record.columns["marked"], hosts.session.finished) == (80, 3, True)


def test_a_transfer_from_several_is_done_when_each_has_sent_it() -> None:
    hosts = Hosts(Traffic([Flow(1, 0, 1000, 0, further_sources=(2,))]))
    hosts.session.start_due(0)
    assert [host for host, request in hosts.taken() if isinstance(request, Post)] == [1, 2]
    hosts.session.note(0, delivered(2, 0, 60, 0))
    hosts.session.note(1, Completed(0, SENT))
    before = hosts.session.finished
    hosts.session.note(2, Completed(0, replace(SENT, first_sent_ns=3, completed_ns=95)))
    assert (before, hosts.session.finished) == (False, True)
    (record,) = hosts.session.records
    assert (record.first_sent_ns, record.completed_ns) == (3, 95)
    assert (record.columns["packets_sent"], record.columns["retransmitted"]) == (4, 2)


def test_the_end_of_a_run_that_was_cut_short() -> None:
    hosts = Hosts(Traffic([Flow(0, 1, 1000, 0), Flow(0, 1, 1000, 20_000)]))
    hosts.session.start_due(10_000)
    so_far = replace(SENT, completed_ns=-1, columns={**COUNTS, "packets_sent": 1})
    counts = dict.fromkeys((count for _, source in filled_by(Receiver, usual()) for count in source.counts), 7)
    reports = [HostReport({0: so_far}, {}, {}), HostReport({}, {2: counts}, {2: 400})]
    hosts.session.end(reports)
    record, late = hosts.session.records
    assert (late.flow.start_ns, late.delivered_ns, late.completed_ns) == (20_000, -1, -1)
    assert (record.completed_ns, record.delivered_wire_bytes) == (-1, 400)
    assert (record.columns["packets_sent"], record.columns["marked"]) == (1, 7)


def test_rates_are_what_arrived_between_samples() -> None:
    hosts = Hosts(Traffic([Flow(0, 1, 1000, 0)]))
    hosts.session.start_due(0)
    totals = {10: 300, 30: 500}
    samples = [RateSample(time_ns, 2, (1e9, 2e9, -1)) for time_ns in (10, 20, 30)]
    hosts.session.note_rates(samples, lambda sample: totals.get(sample.time_ns))
    assert hosts.session.rates == [
        Rate(time_ns, 2, (1e9, 2e9, -1), delivered_bytes)
        for time_ns, delivered_bytes in ((10, 300), (20, 0), (30, 200))
    ]
