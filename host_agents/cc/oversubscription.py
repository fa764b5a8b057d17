"""Pull rate of a receiver if the network is the bottleneck: RCCC's control of over-subscription.

The pull pacer of a NIC assumes that the network can deliver the pulled data. It cannot if uplinks
have a lower capacity than the hosts' links together; then excess packets are trimmed. So each NIC
has a controller that scales the rate of its pacer. At the end of each interval it evaluates the
packets that arrived in it. Packets trimmed before their last hop reduce the rate at once by their
share. A mean share of marks above a target also reduces it. Otherwise the rate grows, and faster
and faster as long as nothing is marked. If switches do not distinguish trims at the last hop, all
trims count.

The controller is from Ultra Ethernet's reference simulator, which uses it with RCCC alone in
over-subscribed networks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from host_agents.cc.base import Host, Path
from host_agents.pull_pacer import PullPacer
from host_agents.timers import Timer, TimerOwner

if TYPE_CHECKING:
    from host_agents.cc.rccc import RcccParameters

_MOST_DOUBLINGS: Final = 30  # limit of doublings; with an increase of 1e-9 or more the rate is full before that


class Oversubscription(TimerOwner):
    """Controller of one NIC.

    `rate` is the pacer's rate as a share of its full rate.
    """

    def __init__(self, host: Host, path: Path, pacer: PullPacer, parameters: RcccParameters) -> None:
        super().__init__()
        self.rate = 1.0
        self.marked_share = 0.0  # the mean
        p = parameters
        self._parameters = p
        uplink_share = p.oversubscription_least_uplink_share / p.oversubscription
        self._least_rate = max(uplink_share, p.oversubscription_least_rate)
        self._pacer = pacer
        self._random = host.random
        self._interval_ns = p.oversubscription_interval_base_rtts * float(path.base_rtt_ns)
        self._timer = Timer(host.timers, self)
        self._received = 0  # packets in this interval, including trimmed ones
        self._marked = 0
        self._trimmed = 0  # trimmed before their last hop
        self._trimmed_last = 0  # trimmed at their last hop
        self._increases = 0  # number of increases in succession

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
        spread = self._parameters.oversubscription_spread
        part = 1.0 - spread + 2.0 * spread * self._random.random()
        self._timer.arm(now_ns + int(part * self._interval_ns))

    def on_timer(self, now_ns: int, timer: Timer) -> None:
        """End an interval, and schedule the next one unless nothing arrives and the rate is full again."""
        idle = self._received == 0
        self._adjust()
        if idle and self.rate >= 1.0:
            self.marked_share = 0.0
            self._increases = 0
        else:
            self._arm(now_ns)

    def _adjust(self) -> None:
        p = self._parameters
        whole = self._received - self._trimmed - self._trimmed_last
        share = float(self._marked) / float(whole) if whole > 0 else 0.0
        self.marked_share += p.oversubscription_mark_gain * (share - self.marked_share)
        rate = self.rate
        if self._trimmed > 0:
            rate -= float(self._trimmed) / float(self._received)
        excess = self.marked_share - p.oversubscription_mark_target
        if excess > 0.0:
            rate *= 1.0 - p.oversubscription_decrease * excess
        if self._trimmed > 0 or excess > 0.0:
            self._increases = 0
        else:
            doublings = min(self._increases, _MOST_DOUBLINGS) if self._marked == 0 else 0
            rate += p.oversubscription_increase * float(1 << doublings)
            self._increases += 1
        self.rate = min(max(rate, self._least_rate), 1.0)
        self._pacer.set_rate(self.rate)
        self._received = 0
        self._marked = 0
        self._trimmed = 0
        self._trimmed_last = 0
