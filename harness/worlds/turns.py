"""Order in which hosts continue whose flows start after others are done: decision 5.

Such hosts go through a window one by one, as independent ones do, but each is held at the end of
the instant in which it reports something after which flows may start, and where one of its flows
starts. Then they get their turns in order of time: the session processes the host's reports, flows
start, and the host continues until it is held again. So the session processes everything in order
of time, although hosts mostly run independently. With several workers each has a session, and all
process all turns in the same order.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from heapq import heappop, heappush
from operator import itemgetter

from harness.workloads import Flow
from harness.worlds import reports
from harness.worlds.host_session import Completed, Delivered, Event
from harness.worlds.session import Session
from host_agents.timers import NEVER
from p4switch.fabric import Fabric


class Turns:
    """Turns of the hosts of one run, whose traffic is `local`.

    All workers process them in the same way.
    """

    def __init__(
        self,
        fabric: Fabric,
        session: Session,
        least_ns: Callable[[Flow], int],
        tell_others: Callable[[bytes], object] | None = None,
    ) -> None:
        """Prepare the turns.

        `least_ns` is the least time from a flow's start until it is done. `tell_others` sends
        messages to the other workers; None if there are none.
        """
        self._fabric = fabric
        self._session = session
        self._least_ns = least_ns
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
        self._turn = (-1, -1)  # time and host of the last turn
        self._starts_ns: defaultdict[int, list[int]] = defaultdict(list)  # heaps, by host
        self._careful_ns = 0
        self._taken: set[int] = set()  # hosts that have their turn

    def begin(self) -> None:
        """Hold hosts at the starts of the session's first flows."""
        for record in self._session.records:
            self._expect(record.flow)
        for host, starts_ns in self._starts_ns.items():
            self._fabric.hold(host, starts_ns[0])

    def report(self, host: int, event: Event) -> None:
        """Take a host's report within a call of that host, and hold the host if flows may follow from it."""
        now_ns = self._fabric.now_ns
        if self._tell_others is not None:
            self._tell_others(reports.packed(now_ns, host, event, self._session.is_joint(event)))
        if self._keep(now_ns, host, event):
            self._fabric.hold(host, now_ns + 1)
        else:
            self._fabric.settle_again()

    def hear(self, messages: Iterable[bytes]) -> None:
        """Take reports of other workers' hosts."""
        for data in messages:
            time_ns, host, event = reports.unpacked(data)
            if self._keep(time_ns, host, event) and (time_ns, host) < self._turn:
                raise RuntimeError(
                    f"host {host}: what it reports at {time_ns} ns comes after the turn of {self._turn[0]} ns: "
                    "its may_report has missed a frame"
                )

    def hand_over(self, host: int) -> None:
        """Give a turn to a host, which gets a message now."""
        self._fabric.turn(host, self._fabric.now_ns)
        self._taken.add(host)

    def settle(self, end_ns: int) -> None:
        """Continue hosts that are held before `end_ns`, and stop the run if all is done.

        The fabric knows the time before which no host reports anything more; turns before that are
        the same at all workers. Starts come before the reports of their instant, and so depend on
        earlier ones only: a frame of the same instant may wait at a host that is held for its
        start.
        """
        self._note_rest()
        session, held = self._session, self._held
        known_ns = self._fabric.known_ns
        while True:
            start_ns = session.next_start_ns
            held_ns = held[0][0] if held else NEVER
            if start_ns is not None and start_ns <= held_ns and start_ns <= known_ns and start_ns < end_ns:
                self._start(start_ns)
            elif held_ns < known_ns and held_ns < end_ns:
                self._note(*heappop(held))
            elif known_ns < end_ns:
                known_ns = self._fabric.meet()
            else:
                break
        if session.finished:
            self._fabric.stop()

    def _keep(self, time_ns: int, host: int, event: Event) -> bool:
        """Keep an event until its host's turn. Return whether the host waits for that."""
        if not isinstance(event, self._awaited):
            self._rest.append((time_ns, host, event))
            return False
        events = self._events.get(host)
        if events is None:
            self._events[host] = [event]
            heappush(self._held, (time_ns, host))
        else:
            events.append(event)
        return True

    def _start(self, now_ns: int) -> None:
        """Start the flows whose hosts are held at their start."""
        self._fabric.turn(0, now_ns)
        self._session.start_due(now_ns)
        self._go_on(now_ns)

    def _note(self, now_ns: int, host: int) -> None:
        """Process a host's reports, and start the flows that follow from them at once.

        If the host is another worker's, it continues there.
        """
        session = self._session
        self._turn = (now_ns, host)
        if session.owns(host):
            self._fabric.turn(host, now_ns)
            self._taken.add(host)
        for event in self._events.pop(host):
            for flow in session.note(host, event):
                if flow.source != host or flow.further_sources:
                    raise RuntimeError(
                        f"host {host}: flows start at other hosts because of what it reports, "
                        "but the traffic says that it is local"
                    )
                self._expect(flow, now_ns)
        session.start_due(now_ns)
        if self._taken:
            self._go_on(now_ns)

    def _note_rest(self) -> None:
        """Process events for which no host is held."""
        if not self._rest:
            return
        rest, self._rest = self._rest, []
        for _, host, event in sorted(rest, key=itemgetter(0, 1)):
            if self._session.note(host, event):
                raise RuntimeError("flows start because of what the traffic says that none follows from")

    def _go_on(self, now_ns: int) -> None:
        """Continue the hosts that have their turn, until they are held again or the window ends."""
        for host in sorted(self._taken):
            starts_ns = self._starts_ns[host]
            while starts_ns and starts_ns[0] <= now_ns:
                heappop(starts_ns)
            self._fabric.go_on(host, starts_ns[0] if starts_ns else None)
        self._taken.clear()

    def _expect(self, flow: Flow, now_ns: int = -1) -> None:
        """Prepare for a new flow, which may start later than now.

        A run cannot end before each flow has had its least time. From then on each window is one
        instant, so that the run ends with the instant in which the last flow is done.
        """
        if flow.start_ns > now_ns:
            for source in flow.sources:
                if self._session.owns(source):
                    heappush(self._starts_ns[source], flow.start_ns)
        least_end_ns = flow.start_ns + self._least_ns(flow)
        if least_end_ns > self._careful_ns:
            self._careful_ns = least_end_ns
            self._fabric.careful_from(least_end_ns)
