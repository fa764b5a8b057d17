"""Injection control: the part of a protocol for collectives that decides when a host may send.

It gets sent, received and answered operations with times in cycles of 16 bytes at link rate, and is
independent of frames and NICs.
"""

from __future__ import annotations

import math
import random
from typing import Final

from mypy_extensions import mypyc_attr

from host_agents.collective.tokens import TokenBucket

READ: Final = 0
WRITE: Final = 1
PUSH: Final = 2
# Flits of an operation by kind: a packet has a header of one flit, and eight flits of payload if it
# carries any.
REQUEST_FLITS: Final = [1, 9, 9]
RESPONSE_FLITS: Final = [9, 1, 9]
UNICAST: Final = 0  # number of the group for operations between two hosts
NEVER: Final = math.inf

# Tokens that a read or a write has to wait for; sending it always costs tokens of both kinds. A
# push waits for both.
NEEDS_READS_BOTH: Final = "reads-both"  # a read waits for both, a write for request tokens
NEEDS_BOTH: Final = "both"
NEEDS_LARGE: Final = "large"  # each waits for tokens of the kind of its large packet


@mypyc_attr(allow_interpreted_subclasses=True)
class Injection:
    """Injection limited only by the number of unanswered operations of each kind."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.unanswered = [0, 0, 0]  # by kind

    def draw_from(self, chance: random.Random) -> None:
        """Use the host's random numbers; called before all other methods."""

    def join(self, group: int, members: int, rank: int) -> None:
        """Join a group as member `rank`."""

    def ready_at(self, kind: int) -> float:
        """Return the time at which an operation may be sent, in cycles.

        A past time means that it may be sent at once, and NEVER that an answer has to arrive first.
        """
        return 0.0 if self.unanswered[kind] < self.limit else NEVER

    def on_sent(self, now: float, group: int, kind: int) -> bool:
        """Handle an operation that leaves for the first time; return whether it is a probe."""
        self.unanswered[kind] += 1
        return False

    def on_repeated(self, now: float, kind: int, probe: bool) -> None:
        """Handle a request that is repeated without an answer; it is no longer a probe."""

    def on_heard(self, now: float, group: int, source: int, kind: int) -> None:
        """Handle another member's request when it arrives for the first time."""

    def on_answered(self, now: float, group: int, kind: int, latency: float, probe: bool) -> None:
        """Handle an answer.

        `latency` is the time from injection to the answer; it is negative if it is unknown, because
        the request was repeated.
        """
        self.unanswered[kind] -= 1

    def sizes(self) -> dict[str, int]:
        """Return the largest numbers of entries in its queues and arrays, by name."""
        return {}


class Throttle(Injection):
    """Injection limited by tokens for request flits and response flits, with one operation at a time as a probe.

    `slack` is the delay in cycles by which a clock of whole nanoseconds may delay a packet without
    delaying later ones. A subclass changes the watermarks when the probe's answer arrives
    (`on_probe`).
    """

    def __init__(self, limit: int, share: float, depth: float, slack: float, needs: str) -> None:
        super().__init__(limit)
        self.requests = TokenBucket(share, depth + slack)
        self.responses = TokenBucket(share, depth + slack)
        self._probing = False
        self._read_needs_request = needs != NEEDS_LARGE
        self._write_needs_response = needs == NEEDS_BOTH

    def on_probe(self, now: float, latency: float) -> None:
        """Handle the end of an RTT."""

    def ready_at(self, kind: int) -> float:
        if self.unanswered[kind] >= self.limit:
            return NEVER
        if kind == READ and not self._read_needs_request:
            return self.responses.ready_at()
        if kind == WRITE and not self._write_needs_response:
            return self.requests.ready_at()
        return max(self.requests.ready_at(), self.responses.ready_at())

    def on_sent(self, now: float, group: int, kind: int) -> bool:
        self.unanswered[kind] += 1
        self._pay(now, kind)
        probe = not self._probing
        self._probing = True
        return probe

    def on_repeated(self, now: float, kind: int, probe: bool) -> None:
        self._pay(now, kind)
        if probe:
            self._probing = False

    def on_answered(self, now: float, group: int, kind: int, latency: float, probe: bool) -> None:
        self.unanswered[kind] -= 1
        if probe:
            self._probing = False
            self.on_probe(now, latency)

    def _pay(self, now: float, kind: int) -> None:
        self.requests.take(now, float(REQUEST_FLITS[kind]))
        self.responses.take(now, float(RESPONSE_FLITS[kind]))
