"""Turns of hosts if flows start after others are done: decision 5.

Hosts run through a window one by one, as independent hosts do. But a host is held at any time at
which one of its flows starts, or at which it reports an event after which flows may start. Held
hosts then get turns in order of time. In a turn the session processes the host's reports, flows
start, and the host continues until it is held again.

With several workers each has a session, and gives turns to its own hosts without regard to the
others. It tells them only those flows that go to their hosts or need a new connection. New
connections wait for the order in which all hosts of the network have their turns, because they are
numbered in that order, and so does what follows at the worker, since a host's random numbers depend
on when its connections are opened.
"""

from __future__ import annotations

import pickle
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import replace
from heapq import heappop, heappush
from operator import itemgetter

from harness.workloads import Flow
from harness.worlds.host_session import Completed, Delivered, Ended, Event, Failed
from harness.worlds.session import Session
from host_agents.timers import NEVER
from p4switch.fabric import Fabric

# Host, number of the connection, place of the flow on it, and event. Numbers of flows differ between workers.
_Report = tuple[int, int, int, Delivered | Completed | Failed]

class Turns:
    """Turns of one run's hosts, at one worker. The traffic is `local`."""

    def __init__(
        self,
        fabric: Fabric,
        session: Session,
        earliest_end_ns: Callable[[Flow], int],
        tell_others: Callable[[bytes], object] | None = None,
    ) -> None:
        """Prepare the turns.

        `earliest_end_ns` returns a time before which the run cannot end because of a new flow.
        `tell_others` sends messages to the other workers, whose sessions are divided; None if there
        are none.
        """
        self._fabric = fabric
        self._session = session
        self._earliest_end_ns = earliest_end_ns
        self._tell_others = tell_others
        traffic = session.traffic
        self._awaited: tuple[type, ...] = (
            *((Delivered,) if traffic.follows_deliveries else ()),
            *((Completed,) if traffic.follows_completions else ()),
        )
        # Reports that the session has not processed yet: a heap of times and hosts, and the events
        # of one instant by host. `_rest` has events from which no flow follows, and for which no
        # host is held.
        self._held: list[tuple[int, int]] = []
        self._events: dict[int, list[Event]] = {}
        self._rest: list[tuple[int, int, Event]] = []  # time, host, event
        self._starts_ns: defaultdict[int, list[int]] = defaultdict(list)  # heaps, by host
        self._careful_ns = 0
        # Hosts that have their turn and are to continue: a heap of the turns' times and hosts.
        self._turns: list[tuple[int, int]] = []
        self._known_ns = 0  # time before which the order of all connections is known
        # Messages: flows with the time and host from which they follow, and reports that concern
        # other sessions, which are yet to be sent; and reports of others that this session has not
        # processed yet.
        self._new_flows: list[tuple[int, int, Flow]] = []
        self._new_reports: list[_Report] = []
        self._heard: list[_Report] = []

    def begin(self) -> None:
        """Hold hosts at the starts of the session's first flows."""
        for record in self._session.records:
            self._expect(record.flow)
        for host, starts_ns in self._starts_ns.items():
            self._fabric.hold(host, starts_ns[0])

    def report(self, host: int, event: Event) -> None:
        """Take a host's report within a call of that host, and hold the host if flows may follow from it."""
        now_ns = self._fabric.now_ns
        if self._tell_others is not None and not isinstance(event, Ended):
            self._tell_report(host, event)
        if not isinstance(event, self._awaited):
            self._rest.append((now_ns, host, event))
            self._fabric.settle_again()
            return
        events = self._events.get(host)
        if events is None:
            self._events[host] = [event]
            heappush(self._held, (now_ns, host))
        else:
            events.append(event)
        self._fabric.hold(host, now_ns + 1)

    def hear(self, messages: Iterable[bytes]) -> None:
        """Process the messages of other workers: flows of their hosts, and reports that concern other sessions."""
        for data in messages:
            flows, reports = pickle.loads(data)
            for known_ns, host, flow in flows:
                self._session.learn(flow, known_ns, host)
                self._expect(flow, known_ns)
            self._heard += reports
        if not self._session.finished:
            self._fabric.finished(False)

    def hand_over(self, host: int) -> None:
        """Give a turn to a host, which gets a message now."""
        now_ns = self._fabric.now_ns
        self._fabric.turn(host, now_ns)
        heappush(self._turns, (now_ns, host))

    def settle(self, end_ns: int, again: bool) -> int | None:
        """Continue hosts that are held before `end_ns`, and stop the run if all is done.

        Everything happens in order of time, except that reports are processed even if an earlier
        flow waits for its connection. Then the flows that follow from them, and the hosts, wait
        behind that flow. So the workers know all flows of a window after few meetings. Starts come
        before the reports of their instant, for which the hosts are held, so a frame of the same
        instant may wait. Return None if all hosts are at the end; otherwise the time of the next
        turn, which has to wait until the workers have met (`again`).
        """
        session, held, turns = self._session, self._held, self._turns
        known_ns = self._known_ns = self._fabric.known_ns
        if not again:
            self._note_rest()
        while True:
            start_ns = session.next_start_ns
            opening_ns = session.next_opening_ns(known_ns) if session.divided else NEVER
            turn_ns = turns[0][0] if turns and self._may_go_on(turns[0][0]) else NEVER
            next_ns = min(start_ns, opening_ns, turn_ns)
            if held and held[0][0] < min(next_ns, end_ns):
                self._note(*heappop(held))
                continue
            if next_ns >= end_ns:
                break
            self._fabric.turn(0, next_ns)
            if next_ns == start_ns:
                session.start_due(next_ns)
            elif next_ns == opening_ns:
                session.open_next()
            else:
                self._go_on(next_ns)
        self._note_heard()
        self._fabric.finished(session.finished)
        waits = bool(session.waiting or self._new_reports or self._heard)
        if self._new_flows or self._new_reports:
            assert self._tell_others is not None
            self._tell_others(pickle.dumps((self._new_flows, self._new_reports), pickle.HIGHEST_PROTOCOL))
            self._new_flows, self._new_reports = [], []
        if not waits:
            return None
        return held[0][0] if held else NEVER

    def _note(self, now_ns: int, host: int) -> None:
        """Process a host's reports, and start the flows that follow from them."""
        session = self._session
        self._fabric.turn(host, now_ns)
        heappush(self._turns, (now_ns, host))
        for event in self._events.pop(host):
            for flow in session.note(host, event, now_ns):
                if flow.source != host or flow.further_sources:
                    raise RuntimeError(
                        f"host {host}: its reports start flows at other hosts, "
                        "but the traffic declares that this host starts flows only here"
                    )
                self._expect(flow, now_ns)
                if session.divided and session.concerns_others(flow):
                    self._new_flows.append((now_ns, host, flow))
        session.start_due(now_ns)
        if not session.waiting:
            self._go_on(now_ns)

    def _note_rest(self) -> None:
        """Process events for which no host is held."""
        if not self._rest:
            return
        rest, self._rest = self._rest, []
        for _, host, event in sorted(rest, key=itemgetter(0, 1)):
            if self._session.note(host, event):
                raise RuntimeError("flows start because of an event that, by the traffic's declaration, starts none")

    def _note_heard(self) -> None:
        """Process other workers' reports on flows that concern this session and have started here, too."""
        heard, self._heard = self._heard, []
        for report in heard:
            host, number, place, event = report
            flow = self._session.flow_at(number, place)
            if flow is not None:
                self._session.note(host, event if isinstance(event, Delivered) else replace(event, flow=flow))
            elif self._session.has_flows_of(number):
                self._heard.append(report)

    def _tell_report(self, host: int, event: Delivered | Completed | Failed) -> None:
        """Tell the other workers a report that concerns their sessions, too, unless it is forged."""
        session = self._session
        if isinstance(event, Failed) or session.is_joint(event):
            number, place = session.place_of(event)
            if session.flow_at(number, place) is not None:
                self._new_reports.append((host, number, place, event))

    def _may_go_on(self, turn_ns: int) -> bool:
        """Return whether no flow that starts before a host's turn ends may still wait for its connection."""
        return turn_ns < self._known_ns or not self._session.waiting

    def _go_on(self, now_ns: int) -> None:
        """Continue the hosts that have their turn now, until they are held again or the window ends."""
        hosts = set()
        while self._turns and self._turns[0][0] == now_ns:
            hosts.add(heappop(self._turns)[1])
        for host in sorted(hosts):
            starts_ns = self._starts_ns[host]
            while starts_ns and starts_ns[0] <= now_ns:
                heappop(starts_ns)
            self._fabric.go_on(host, starts_ns[0] if starts_ns else None)

    def _expect(self, flow: Flow, now_ns: int = -1) -> None:
        """Prepare for a new flow, which may start later than now.

        From the earliest end of the run on each window is one instant, so that the run ends with
        the instant in which the last flow is done.
        """
        if flow.start_ns > now_ns:
            for source in flow.sources:
                if self._session.owns(source):
                    heappush(self._starts_ns[source], flow.start_ns)
        end_ns = self._earliest_end_ns(flow)
        if end_ns > self._careful_ns:
            self._careful_ns = end_ns
            self._fabric.careful_from(end_ns)

