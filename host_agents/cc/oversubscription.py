"""Pull rate of a receiver where the network is the bottleneck: RCCC's control of over-subscription.

The pull pacer of a NIC assumes that what it draws can come. Where uplinks carry less than the hosts' links together,
it cannot; what the receivers draw too much is trimmed on its way. So each NIC has a controller, which scales what its
pacer draws. At intervals it looks at what has come since the last one. Packets trimmed before their last hop take
their share off the rate at once, a mean share of marks above a target shrinks it, and without either it grows, ever
faster as long as nothing is marked. Where switches do not tell trims at the last hop apart, all count.

From Ultra Ethernet's reference simulator, where it runs with RCCC alone in networks that are over-subscribed.
"""

from __future__ import annotations

from typing import Final

from host_agents.cc.base import Host, Path
from host_agents.pull_pacer import PullPacer
from host_agents.timers import Timer, TimerOwner

INTERVAL_BASE_RTTS: Final = 1.5
SPREAD: Final = 0.25  # of an interval, by lot, so that receivers do not act in step
MARK_GAIN: Final = 0.5  # of one interval, in the mean share of marked packets
MARK_TARGET: Final = 0.3  # the mean share above which the rate shrinks
DECREASE: Final = 0.5  # of the excess over the target
INCREASE: Final = 0.01  # of the link's rate
LEAST_RATE: Final = 0.01
FLOOR: Final = 0.9  # of the share of the uplinks that each host has if all send


class Oversubscription(TimerOwner):
    """The controller of one NIC. `rate` is the pacer's rate as a share of its full rate."""

    def __init__(self, host: Host, path: Path, pacer: PullPacer, ratio: float) -> None:
        super().__init__()
        self.rate = 1.0
        self.marked_share = 0.0  # the mean
        self._least_rate = max(FLOOR / ratio, LEAST_RATE)
        self._pacer = pacer
        self._random = host.random
        self._interval_ns = INTERVAL_BASE_RTTS * float(path.base_rtt_ns)
        self._timer = Timer(host.timers, self)
        self._received = 0  # packets since it looked last, trimmed ones included
        self._marked = 0
        self._trimmed = 0  # before their last hop
        self._trimmed_last = 0  # at it
        self._increases = 0  # in turn

    def on_data(self, now_ns: int, marked: bool) -> None:
        self._count(now_ns)
        if marked:
            self._marked += 1

    def on_trimmed(self, now_ns: int, last_hop: bool) -> None:
        self._count(now_ns)
        if last_hop:
            self._trimmed_last += 1
        else:
            self._trimmed += 1

    def _count(self, now_ns: int) -> None:
        self._received += 1
        if not self._timer.is_armed():
            self._arm(now_ns)

    def _arm(self, now_ns: int) -> None:
        part = 1.0 - SPREAD + 2.0 * SPREAD * self._random.random()
        self._timer.arm(now_ns + int(part * self._interval_ns))

    def on_timer(self, now_ns: int, timer: Timer) -> None:
        """End an interval, and schedule the next one unless nothing comes and the rate is whole again."""
        idle = self._received == 0
        self._adjust()
        if idle and self.rate >= 1.0:
            self.marked_share = 0.0
            self._increases = 0
        else:
            self._arm(now_ns)

    def _adjust(self) -> None:
        whole = self._received - self._trimmed - self._trimmed_last
        share = float(self._marked) / float(whole) if whole > 0 else 0.0
        self.marked_share += MARK_GAIN * (share - self.marked_share)
        rate = self.rate
        if self._trimmed > 0:
            rate -= float(self._trimmed) / float(self._received)
        excess = self.marked_share - MARK_TARGET
        if excess > 0.0:
            rate *= 1.0 - DECREASE * excess
        if self._trimmed > 0 or excess > 0.0:
            self._increases = 0
        else:
            doublings = min(self._increases, 7) if self._marked == 0 else 0  # by then the rate is whole
            rate += INCREASE * float(1 << doublings)
            self._increases += 1
        self.rate = min(max(rate, self._least_rate), 1.0)
        self._pacer.set_rate(self.rate)
        self._received = 0
        self._marked = 0
        self._trimmed = 0
        self._trimmed_last = 0
