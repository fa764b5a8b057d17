"""Which remote operations contend with a host's own: the bookkeeping of 3CPO's multicast congestion control.

Source: thesis, 6.2.2, figures 6.5 to 6.7.
"""

from __future__ import annotations

from host_agents.fifo import Fifo


class Matching:
    """One group's flits of one type (request or response), by the member that sends them; a host's own are left out.

    What a host sends stands against what each other member sends. `unmatched` is above 0 where the host is ahead, below
    where the member is. It never exceeds `local_ops`, the host's flits that are under way, and is never below
    `outstanding`, what was heard of the member and has not expired: older flits contend for nothing any more.
    """

    def __init__(self, members: int, own: int) -> None:
        self.unmatched = [0] * members
        self.outstanding = [0] * members
        self.local_ops = 0
        self._own = own

    def sent(self, flits: int) -> int:
        """The host sends so many flits. Returns how many remote ones they match, over all members."""
        matched = 0
        own = self._own
        unmatched = self.unmatched
        self.local_ops += flits
        for source in range(len(unmatched)):
            if source != own:
                ahead = unmatched[source]
                if ahead < 0:
                    matched += min(flits, -ahead)
                unmatched[source] = ahead + flits
        return matched

    def answered(self, flits: int) -> None:
        """An operation of so many flits is no longer under way."""
        self.local_ops -= flits
        most = self.local_ops
        own = self._own
        unmatched = self.unmatched
        for source in range(len(unmatched)):
            if source != own and unmatched[source] > most:
                unmatched[source] = most

    def heard(self, source: int, flits: int) -> int:
        """So many flits of another member. Returns how many of the host's own they match."""
        if source == self._own:
            return 0
        ahead = self.unmatched[source]
        self.unmatched[source] = ahead - flits
        self.outstanding[source] -= flits
        return min(flits, ahead) if ahead > 0 else 0

    def expired(self, source: int, flits: int) -> None:
        """What was heard so long ago is no longer under way."""
        if source == self._own:
            return
        self.outstanding[source] += flits
        if self.unmatched[source] < self.outstanding[source]:
            self.unmatched[source] = self.outstanding[source]


class Heard:
    """A remote operation in the queue."""

    def __init__(self, at: float, source: int, request_flits: int, response_flits: int) -> None:
        self.at = at
        self.source = source
        self.request_flits = request_flits
        self.response_flits = response_flits


class GroupMatching:
    """One group: both types of flits, and the queue of remote operations, which forgets them in time.

    An operation stays for the current RTT and the last gap between the host's own sends. Times are in cycles.
    `peak` is the most that the queue has held.
    """

    def __init__(self, members: int, own: int) -> None:
        self.requests = Matching(members, own)
        self.responses = Matching(members, own)
        self.peak = 0
        self._queue: Fifo[Heard] = Fifo()

    def heard(self, heard: Heard) -> None:
        """Keeps it until it expires; what it matches is counted apart, by type."""
        self._queue.push(heard)
        self.peak = max(self.peak, self._queue.size)

    def expire(self, now: float, stay: float) -> None:
        """What has been in the queue for `stay`."""
        queue = self._queue
        while queue.size > 0 and queue.peek().at + stay <= now:
            old = queue.pop()
            self.requests.expired(old.source, old.request_flits)
            self.responses.expired(old.source, old.response_flits)
