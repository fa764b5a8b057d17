"""3CPO: a host pays tokens for other members' operations that contend with its own; RTTs set its watermarks.

Source: thesis, 6.2.2 to 6.2.4, algorithm 6. Choices that the text leaves open are parameters
(papers/collectives/README.md).
"""

from __future__ import annotations

import dataclasses
import math
import random
from dataclasses import dataclass, field
from typing import Final

from host_agents.cc.collective import WITHOUT_CC
from host_agents.collective.injection import (
    NEEDS_READS_BOTH,
    PUSH,
    READ,
    REQUEST_FLITS,
    RESPONSE_FLITS,
    UNICAST,
    WRITE,
    Injection,
    Throttle,
)
from host_agents.collective.matching import GroupMatching
from host_agents.collective.tokens import DrawnTokens
from host_agents.ranges import POSITIVE, SHARE, check_watermarks, expect_less, one_of
from host_agents.registry import register

SUMMED = "summed"  # a cycle adds watermark / WM_MAX tokens
DRAWN = "drawn"  # a cycle adds one token with probability watermark / WM_MAX
_LEAST_FBS: Final = 0.05  # smallest factor that scales a decrease (algorithm 6, printed lines 16 and 19)
_FIRST_LATENCY: Final = 1000.0  # latency without load in cycles (6.3), assumed until one is measured


@dataclass(frozen=True)
class ThreeCpoParameters:
    """Parameters of 3CPO. Latencies are in cycles of 16 bytes at link rate."""

    wm_min: float = field(default=100.0, metadata=POSITIVE)  # the smallest watermark
    wm_max: float = field(default=2468.0, metadata=POSITIVE)  # the largest watermark: a token per cycle
    wm_start: float = field(default=2468.0, metadata=POSITIVE)  # the first watermark
    wm_ai: float = 50.0  # added after a probe below `lat_thresh`
    lat_thresh: float = 2000.0  # latency of a probe in cycles from which on the watermark falls
    # Latency in cycles from which on a decrease is the largest.
    max_lat_thresh: float = field(default=5000.0, metadata=POSITIVE)
    base_md: float = field(default=0.5, metadata=SHARE)  # factor of the largest decrease
    # Printed line 14: the watermark rises by the growth of the multicast congestion control.
    raise_by_equivalent: bool = True
    carry_over: bool = True  # tokens that could not be paid in an RTT count in the next
    first_cost: float = field(default=1.0, metadata=SHARE)  # cost of a remote flit before a latency is known
    # Cost of a remote flit if the latest collective operation took less than `low_latency`; the
    # cost is 1 from `high_latency` on.
    low_cost: float = field(default=0.8, metadata=SHARE)
    low_latency: float = 1000.0  # cycles of latency up to which a remote flit costs `low_cost`
    # Latency in cycles from which on a remote flit costs 1.
    high_latency: float = field(default=2000.0, metadata=POSITIVE)
    # Largest number of tokens that accumulate during idle time.
    depth: float = field(default=1.0, metadata=POSITIVE)
    # Whether a cycle adds watermark / wm_max tokens, or one token with this probability.
    tokens: str = field(default=SUMMED, metadata=one_of("summed", "drawn"))
    # Tokens that a read waits for: both kinds, or one of them.
    needs: str = field(default=NEEDS_READS_BOTH, metadata=one_of("reads-both", "both", "large"))
    # Unanswered operations of each kind that an initiator may have.
    outstanding: int = field(default=128, metadata=POSITIVE)

    def __post_init__(self) -> None:
        """Raise ParameterError for inconsistent parameters."""
        check_watermarks("3cpo", self.wm_min, self.wm_start, self.wm_max)
        expect_less("3cpo", "wm_min", self.wm_min, "wm_max", self.wm_max)
        expect_less("3cpo", "lat_thresh", self.lat_thresh, "max_lat_thresh", self.max_lat_thresh)
        expect_less("3cpo", "low_latency", self.low_latency, "high_latency", self.high_latency)


class Watermark:
    """Rate of one kind of tokens, called watermark (algorithm 6).

    `paid` is `global_dec`, the tokens paid for remote flits since the last probe.
    """

    def __init__(self, parameters: ThreeCpoParameters) -> None:
        self.parameters = parameters
        self.value = parameters.wm_start
        p = parameters
        self._alpha = 1.0 / (1.0 / math.sqrt(p.wm_min) - 1.0 / math.sqrt(p.wm_max))
        self._beta = self._alpha / math.sqrt(p.wm_max)
        self.paid = 0.0
        self.equivalent = 0.0  # decrease of the watermark that is equivalent to the tokens paid in the last RTT
        self._carry_over = 0.0  # tokens that could not be paid in the last RTT

    def on_probe(self, latency: float, share: float) -> None:
        """Update the watermark at the end of an RTT.

        `share` is the share of operations in the RTT whose packets of this kind are large. It is -1
        if no operation was sent.
        """
        p = self.parameters
        over = (latency - p.lat_thresh) / (p.max_lat_thresh - p.lat_thresh)
        md = 1.0 - max(1.0 - over * p.base_md, p.base_md)
        paid = self.paid
        if 0.0 <= share <= 0.5:
            large_less_small = REQUEST_FLITS[WRITE] - RESPONSE_FLITS[WRITE]
            paid += large_less_small * paid * (2.0 * (1.0 - share) - 1.0)
        paid += self._carry_over
        equivalent = p.wm_max * paid / latency
        possible = self.value / p.wm_max * latency
        grown = equivalent - self.equivalent
        if grown > 0.0:
            if p.raise_by_equivalent:
                self.value = min(self.value + grown, p.wm_max)
            if latency > p.lat_thresh and grown < self.value * md:
                self._decrease(md, equivalent)
        elif latency > p.lat_thresh:
            self._decrease(md, equivalent)
        self.equivalent = equivalent
        if p.carry_over:
            self._carry_over = max(0.0, paid - possible)
        self.paid = 0.0
        if latency < p.lat_thresh:
            self.value += p.wm_ai
        self.value = min(max(self.value, p.wm_min), p.wm_max)

    def _decrease(self, md: float, equivalent: float) -> None:
        p = self.parameters
        beyond = self.value - equivalent
        if beyond > 0.0:
            fbs = max(1.0 - (self._alpha / math.sqrt(max(beyond, p.wm_min)) - self._beta), _LEAST_FBS)
            self.value -= fbs * md * beyond


class ThreeCpo(Throttle):
    def __init__(self, parameters: ThreeCpoParameters, slack: float) -> None:
        p = parameters
        super().__init__(p.outstanding, p.wm_start / p.wm_max, p.depth, slack, p.needs)
        self.parameters = p
        self.request_watermark = Watermark(p)
        self.response_watermark = Watermark(p)
        self._groups: dict[int, GroupMatching] = {}
        self._matchings: list[GroupMatching] = []  # of all groups; each frame goes through the list
        self._sent = [0, 0, 0]  # multicast operations since the last probe, by kind
        self._latency = -1.0  # latency of the latest collective operation
        self._last_sent = -1.0  # time at which the latest collective operation was sent
        self._gap = 0.0  # time between the latest two operations

    def draw_from(self, chance: random.Random) -> None:
        if self.parameters.tokens == DRAWN:
            self.requests = DrawnTokens(self.requests.share, self.requests.depth, chance)
            self.responses = DrawnTokens(self.responses.share, self.responses.depth, chance)

    def join(self, group: int, members: int, rank: int) -> None:
        matching = GroupMatching(members, rank)
        self._groups[group] = matching
        self._matchings.append(matching)

    def on_sent(self, now: float, group: int, kind: int) -> bool:
        if group != UNICAST:
            self._expire(now)
            matching = self._groups[group]
            self._pay_remote(
                now, matching.requests.sent(REQUEST_FLITS[kind]), matching.responses.sent(RESPONSE_FLITS[kind])
            )
            self._sent[kind] += 1
            if self._last_sent >= 0.0:
                self._gap = now - self._last_sent
            self._last_sent = now
        return super().on_sent(now, group, kind)

    def on_heard(self, now: float, group: int, source: int, kind: int) -> None:
        self._expire(now)
        matching = self._groups[group]
        requests = REQUEST_FLITS[kind]
        responses = RESPONSE_FLITS[kind]
        matching.heard(now, source, requests, responses)
        self._pay_remote(now, matching.requests.heard(source, requests), matching.responses.heard(source, responses))

    def on_answered(self, now: float, group: int, kind: int, latency: float, probe: bool) -> None:
        if group != UNICAST:
            self._expire(now)
            matching = self._groups[group]
            matching.requests.answered(REQUEST_FLITS[kind])
            matching.responses.answered(RESPONSE_FLITS[kind])
            if latency >= 0.0:
                self._latency = latency
        super().on_answered(now, group, kind, latency, probe)

    def on_probe(self, now: float, latency: float) -> None:
        pushes = self._sent[PUSH]  # pushes have large packets of both kinds
        sent = self._sent[READ] + self._sent[WRITE] + pushes
        large_requests = (self._sent[WRITE] + pushes) / sent if sent > 0 else -1.0
        large_responses = (self._sent[READ] + pushes) / sent if sent > 0 else -1.0
        self.request_watermark.on_probe(latency, large_requests)
        self.response_watermark.on_probe(latency, large_responses)
        self._sent = [0, 0, 0]
        wm_max = self.parameters.wm_max
        self.requests.set_share(now, self.request_watermark.value / wm_max)
        self.responses.set_share(now, self.response_watermark.value / wm_max)

    def remote_cost(self) -> float:
        """Return the tokens for a matched remote flit."""
        p = self.parameters
        latency = self._latency
        if latency < 0.0:
            return p.first_cost
        if latency >= p.high_latency:
            return 1.0
        if latency <= p.low_latency:
            return p.low_cost
        return p.low_cost + (1.0 - p.low_cost) * (latency - p.low_latency) / (p.high_latency - p.low_latency)

    def sizes(self) -> dict[str, int]:
        """Return the peak lengths of the queues of remote operations, and the arrays' lengths, as sums over groups."""
        return {
            "remote_queue_entries": sum(matching.peak for matching in self._matchings),
            "array_entries": sum(4 * len(matching.requests.unmatched) for matching in self._matchings),
        }

    def _expire(self, now: float) -> None:
        """Expire remote operations.

        It has to be called before the latency or the gap changes, because the time at which an
        operation expires depends on them.
        """
        stay = (self._latency if self._latency >= 0.0 else _FIRST_LATENCY) + self._gap
        for matching in self._matchings:
            matching.expire(now, stay)

    def _pay_remote(self, now: float, requests: int, responses: int) -> None:
        cost = self.remote_cost()
        if requests > 0:
            self.requests.take(now, requests * cost)
            self.request_watermark.paid += requests * cost
        if responses > 0:
            self.responses.take(now, responses * cost)
            self.response_watermark.paid += responses * cost


def injection(parameters: ThreeCpoParameters, slack: float) -> Injection:
    return ThreeCpo(parameters, slack)


register(
    dataclasses.replace(
        WITHOUT_CC,
        name="3cpo",
        summary="collectives: tokens that remote operations cost, too, and watermarks by a probe's latency",
        source="Snyder, thesis, 6.2, algorithm 6",
        parameters=ThreeCpoParameters,
        injection=injection,
    )
)
