"""Matching of remote operations with a host's own: the bookkeeping of 3CPO's multicast congestion control.

Source: thesis, 6.2.2, figures 6.5 to 6.7.
"""

from __future__ import annotations

from typing import Final

from librt.vecs import vec
from mypy_extensions import i64

_FEWEST: Final = 16  # slots for remote operations


class Matching:
    """Flits of one type (request or response) in one group, by the other member that sends them.

    The host's flits are matched with those of each other member. `unmatched` is positive if the
    host is ahead, and negative if the member is ahead. Its upper limit is `local_ops`, the host's
    flits in progress. Its lower limit is `outstanding`, minus the number of the member's flits that
    have not expired, because older flits no longer contend.
    """

    def __init__(self, members: int, own: int) -> None:
        self.unmatched = vec[i64]([0] * members)
        self.outstanding = vec[i64]([0] * members)
        self.local_ops = 0
        self._own = own

    def sent(self, flits: int) -> int:
        """Record `flits` sent by the host; return the number of remote flits that they match, over all members."""
        self.local_ops += flits
        matched: i64 = 0
        more: i64 = flits
        own: i64 = self._own
        unmatched = self.unmatched
        for source in range(len(unmatched)):
            if source != own:
                ahead = unmatched[source]
                if ahead < 0:
                    matched += more if more < -ahead else -ahead
                unmatched[source] = ahead + more
        return matched

    def answered(self, flits: int) -> None:
        """Record that an operation of `flits` is no longer in progress."""
        self.local_ops -= flits
        most: i64 = self.local_ops
        own: i64 = self._own
        unmatched = self.unmatched
        for source in range(len(unmatched)):
            if source != own and unmatched[source] > most:
                unmatched[source] = most

    def heard(self, source: i64, flits: i64) -> int:
        """Record `flits` of another member; return the number of the host's own flits that they match."""
        if source == self._own:
            return 0
        ahead = self.unmatched[source]
        self.unmatched[source] = ahead - flits
        self.outstanding[source] -= flits
        matched: i64 = 0
        if ahead > 0:
            matched = flits if flits < ahead else ahead
        return matched

    def expired(self, source: i64, flits: i64) -> None:
        """Expire flits that arrived too long ago to be in progress."""
        if source == self._own:
            return
        outstanding = self.outstanding[source] + flits
        self.outstanding[source] = outstanding
        if self.unmatched[source] < outstanding:
            self.unmatched[source] = outstanding


class GroupMatching:
    """Matching of one group: both types of flits, and the queue of remote operations until they expire.

    An operation stays for the current RTT and the last gap between the host's own sends. Times are
    in cycles. `peak` is the largest length of the queue. The queue is a ring of numbers. An object
    for each operation would be traversed by the garbage collector and occupy three cache lines.
    """

    def __init__(self, members: int, own: int) -> None:
        self.requests = Matching(members, own)
        self.responses = Matching(members, own)
        self.peak = 0
        self._size = 0
        self._head = 0
        self._mask = _FEWEST - 1
        self._heard_at = vec[float]([0.0] * _FEWEST)
        self._flits = vec[i64]([0] * _FEWEST)  # source, request flits and response flits, 8 bits each of the latter

    def heard(self, at: float, source: int, request_flits: int, response_flits: int) -> None:
        """Keep a remote operation until it expires.

        Its matches are counted separately, by type.
        """
        if self._size > self._mask:
            self._grow()
        place = (self._head + self._size) & self._mask
        self._heard_at[place] = at
        self._flits[place] = source << 16 | request_flits << 8 | response_flits
        self._size += 1
        self.peak = max(self.peak, self._size)

    def expire(self, now: float, stay: float) -> None:
        """Expire operations that have been in the queue for `stay`."""
        while self._size > 0 and self._heard_at[self._head] + stay <= now:
            flits = self._flits[self._head]
            self._head = (self._head + 1) & self._mask
            self._size -= 1
            source = flits >> 16
            self.requests.expired(source, flits >> 8 & 0xFF)
            self.responses.expired(source, flits & 0xFF)

    def _grow(self) -> None:
        """Double the ring; the oldest operation moves to the first place."""
        places = self._mask + 1
        heard_at = vec[float]([0.0] * (2 * places))
        flits = vec[i64]([0] * (2 * places))
        for number in range(places):
            place = (self._head + number) & self._mask
            heard_at[number] = self._heard_at[place]
            flits[number] = self._flits[place]
        self._heard_at, self._flits = heard_at, flits
        self._head = 0
        self._mask = 2 * places - 1
