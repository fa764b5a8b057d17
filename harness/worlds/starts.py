"""Starts of flows whose hosts need no turns, and the delivery of hosts' reports."""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import Protocol

from harness.worlds import reports
from harness.worlds.host_session import Event
from harness.worlds.network import Network
from harness.worlds.session import Session
from host_agents.timers import NEVER
from p4switch.fabric import Fabric

# Every time at which the whole network stops shortens the windows in which it runs fast. So if
# hosts are independent, flows are not started individually, but passed to their hosts in advance.
_HAND_OVER_NS = 20_000


class Order(Protocol):
    """Order in which a session passes flows to hosts and processes hosts' reports."""

    def begin(self) -> None:
        """Prepare the session's first flows."""

    def hand_over(self, host: int) -> None:
        """Prepare a host that gets a message now."""

    def report(self, host: int, event: Event) -> None:
        """Process a report of a host in this process, within a call of that host."""

    def hear(self, messages: list[bytes]) -> None:
        """Process the messages of workers by rank, and those of one worker in the order of sending."""


class Starts:
    """Flows start at their times by the fabric's clock, and reports are processed at once."""

    def __init__(self, fabric: Fabric, session: Session, independent: bool) -> None:
        """Prepare the starts.

        `independent` means that no flow starts after others are done.
        """
        self._fabric = fabric
        self._session = session
        self._independent = independent
        self._ahead_ns = _HAND_OVER_NS if independent else 0
        self._due_ns: set[int] = set()  # times at which `_start_due` will be called

    def begin(self) -> None:
        self._schedule()

    def hand_over(self, host: int) -> None:
        """Do nothing, because the host continues by itself."""

    def report(self, host: int, event: Event) -> None:
        self._session.note(host, event)
        if not self._independent:
            self._schedule()
        if self._session.finished:
            self._fabric.stop()

    def hear(self, messages: list[bytes]) -> None:
        raise AssertionError("where one session knows all, workers tell each other nothing")

    def _schedule(self) -> None:
        """Schedule the start of the next flows, with one event for each time."""
        start_ns = self._session.next_start_ns
        if start_ns == NEVER:
            return
        time_ns = max(start_ns, self._fabric.now_ns)
        if time_ns not in self._due_ns:
            self._due_ns.add(time_ns)
            # Workers with independent hosts each have a session, which passes flows to its own
            # hosts.
            self._fabric.at(time_ns, self._start_due, own=not self._independent)

    def _start_due(self, now_ns: int) -> None:
        self._due_ns.remove(now_ns)
        self._session.start_due(now_ns + self._ahead_ns)
        self._schedule()


class SharedStarts:
    """Starts of flows at one of several workers; all workers' sessions process the same reports in the same order."""

    def __init__(self, starts: Starts, network: Network, session: Session, tell: Callable[[bytes], object]) -> None:
        """Prepare the starts; `tell` sends messages to all workers, including this one."""
        self._starts = starts
        self._network = network
        self._session = session
        self._tell = tell
        self._own_events: list[Event] = []  # events of this worker that were sent to all

    def begin(self) -> None:
        self._starts.begin()

    def hand_over(self, host: int) -> None:
        self._starts.hand_over(host)

    def report(self, host: int, event: Event) -> None:
        self._tell(reports.packed(self._network.fabric.now_ns, host, event, self._session.is_joint(event)))
        self._own_events.append(event)

    def hear(self, messages: list[bytes]) -> None:
        own_events = iter(self._own_events)  # messages arrive in the order in which they were sent
        self._own_events = []
        heard = map(reports.unpacked, messages)
        events = [(host, next(own_events) if self._network.owns(host) else event) for _, host, event in heard]
        for host, event in sorted(events, key=itemgetter(0)):
            self._starts.report(host, event)
