"""The order in which hosts go on whose flows start when others are done: decision 5.

Such hosts go through a window one by one, as independent ones do, but each is held at the end of
the instant in which it reports something, and where one of its flows starts. Then they get their
turns in order of time: the session notes what a host has reported, flows start, and the host goes
on until it is held again. So the session does everything in the order of time, though hosts mostly
run alone. Where several workers have the hosts, each has a session, and all take all turns in the
same order.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from heapq import heappop, heappush
from operator import itemgetter
from typing import NamedTuple

from harness.workloads import Flow
from harness.worlds.host_session import Event, Failed
from harness.worlds.parallel import Crew
from harness.worlds.session import Session
from host_agents.timers import NEVER
from p4switch.fabric import Fabric


class Report(NamedTuple):
    """A host's events of one instant. Nothing else arrives there before `next_arrival_ns`."""

    time_ns: int
    host: int
    events: list[Event]
    next_arrival_ns: int


_Failure = tuple[int, int, Failed]  # time, host
_Told = tuple[list[Report], list[_Failure]]


class Turns:
    """The turns of the hosts of one run, whose traffic is `local`. All workers take them alike."""

    def __init__(
        self, fabric: Fabric, session: Session, crew: Crew, least_ns: Callable[[Flow], int]
    ) -> None:
        """`least_ns`: how long a flow takes at least from its start until it is done."""
        self._fabric = fabric
        self._session = session
        self._crew = crew
        self._least_ns = least_ns
        # Of this worker's hosts, what other workers do not know yet. No flow follows from a failure,
        # so it holds nobody.
        self._untold: dict[int, Report] = {}  # by host
        self._failures: list[_Failure] = []
        self._held: list[Report] = []  # a heap of all workers'
        self._starts_ns: defaultdict[int, list[int]] = defaultdict(list)  # heaps, by host
        self._known = 0  # flows of the session's, of which it is known when they start
        self._careful_ns = 0
        self._taken: set[int] = set()  # hosts whose turn it is

    def begin(self) -> None:
        """Hold hosts at the starts of the session's first flows."""
        for host in self._look_at_new():
            self._fabric.hold(host, self._starts_ns[host][0])

    def report(self, host: int, event: Event) -> None:
        """Hold a host, in a call of its own, until the session has noted an event."""
        now_ns = self._fabric.now_ns
        if isinstance(event, Failed):
            self._failures.append((now_ns, host, event))
            self._fabric.settle_again()
            return
        if host not in self._untold:
            self._untold[host] = Report(now_ns, host, [], 0)
            self._fabric.hold(host, now_ns + 1)
        self._untold[host].events.append(event)

    def take(self, host: int) -> None:
        """Make it the turn of a host, which gets a message now."""
        self._fabric.turn(host, self._fabric.now_ns)
        self._taken.add(host)

    def settle(self, end_ns: int) -> None:
        """Let hosts go on that are held before `end_ns`.

        A host that has gone on reports nothing before the next frame arrives there, so all turns
        before that are known.
        """
        failures, self._failures = self._failures, []
        self._note_failures(self._tell(failures))
        known_ns = end_ns  # all reports before are known
        while True:
            start_ns = self._session.next_start_ns
            held_ns = self._held[0].time_ns if self._held else NEVER
            now_ns = held_ns if start_ns is None else min(start_ns, held_ns)
            if known_ns <= min(now_ns, end_ns - 1):
                self._tell([])
                known_ns = end_ns
            elif now_ns >= end_ns:
                return
            elif now_ns == start_ns:
                self._start(now_ns)
                known_ns = now_ns
            else:
                report = heappop(self._held)
                self._note(report)
                known_ns = min(known_ns, report.next_arrival_ns)

    def _tell(self, failures: list[_Failure]) -> list[_Failure]:
        """Tell all workers what this one's hosts have reported. Return all failures, in order."""
        reports = [
            report._replace(next_arrival_ns=self._fabric.next_arrival_ns(report.host))
            for report in self._untold.values()
        ]
        self._untold = {}
        told: list[_Told] = self._crew.share((reports, failures))
        for others, _ in told:
            for report in others:
                heappush(self._held, report)
        return sorted((failure for _, others in told for failure in others), key=itemgetter(0, 1))

    def _start(self, now_ns: int) -> None:
        """Flows whose hosts are held at their start."""
        self._fabric.turn(0, now_ns)
        self._session.start_due(now_ns)
        self._go_on(now_ns)

    def _note(self, report: Report) -> None:
        """What a host has reported, and the flows that start at once because of it."""
        now_ns, host, events, _ = report
        self._fabric.turn(host, now_ns)
        for event in events:
            self._session.note(host, event)
        if self._look_at_new() - {host}:
            raise RuntimeError(
                f"host {host}: flows start at other hosts because of what it reports, "
                "but the traffic says that it is local"
            )
        self._stop_if_finished()
        self._session.start_due(now_ns)
        self._taken.add(host)
        self._go_on(now_ns)

    def _note_failures(self, failures: list[_Failure]) -> None:
        for _, host, failed in failures:
            self._session.note(host, failed)
        if failures:
            self._stop_if_finished()

    def _stop_if_finished(self) -> None:
        if self._session.finished:
            self._fabric.stop()

    def _go_on(self, now_ns: int) -> None:
        """The hosts whose turn it is, up to where they are held again or the window ends."""
        for host in sorted(self._taken):
            starts_ns = self._starts_ns[host]
            while starts_ns and starts_ns[0] <= now_ns:
                heappop(starts_ns)
            self._fabric.hold(host, starts_ns[0] if starts_ns else None)
            self._fabric.go_on(host)
        self._taken.clear()

    def _look_at_new(self) -> set[int]:
        """Return the sources of flows that the session did not know before.

        No run is over before each flow has taken the time that it takes at least. From then on
        windows are of an instant each, so that the run ends with the one in which the last flow is
        done.
        """
        sources: set[int] = set()
        new = self._session.records[self._known :]
        for record in new:
            flow = record.flow
            for source in flow.sources:
                heappush(self._starts_ns[source], flow.start_ns)
                sources.add(source)
            self._careful_ns = max(self._careful_ns, flow.start_ns + self._least_ns(flow))
        self._known += len(new)
        if new:
            self._fabric.careful_from(self._careful_ns)
        return sources
