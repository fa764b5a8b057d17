"""The sending end of a reliable connection to a multicast group: a packet is acknowledged when every member has it.

Members answer by unicast, each as an ordinary receiver. What the sender goes by is the least that any of them has in
order; congestion control sees the ACK that moves it. What is sent again goes to all, and those who have it discard it.
A NAK counts where the others have all before it; other losses are found by time-out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from host_agents import wire
from host_agents.cc.base import NotificationPoint
from host_agents.errors import HostError
from host_agents.frames import Frames
from host_agents.lb.base import LoadBalancer
from host_agents.limiter import RateLimiter
from host_agents.outlet import Group
from host_agents.qp import QueuePair

if TYPE_CHECKING:
    from host_agents.nic import Nic


class GroupQueuePair(QueuePair):
    """Open it with `Nic.open_qp`, with the members' addresses. Raises HostError for members given twice."""

    def __init__(
        self,
        nic: Nic,
        qpn: int,
        group_address: int,
        frames: Frames,
        group: Group,
        limiter: RateLimiter,
        load_balancer: LoadBalancer,
        notification_point: NotificationPoint,
        first_psn: int,
        members: Sequence[int],
    ) -> None:
        super().__init__(
            nic, qpn, group_address, frames, group, limiter, load_balancer, notification_point, first_psn
        )
        self._expected = dict.fromkeys(members, 0)  # by member: it has every packet before this one
        if len(self._expected) < len(members):
            raise HostError(f"queue pair {qpn}: a member of its group is given twice")

    def hears(self, address: int) -> bool:
        return address in self._expected

    def on_ack(self, now_ns: int, psn: int, syndrome: int, frame: bytes, offset: int) -> None:
        number = self.sender.absolute(psn)
        if syndrome != wire.SYNDROME_NAK_SEQUENCE:
            self._on_cumulative(now_ns, number + 1, frame, offset)
        elif self._least_after(number, frame) == number:
            super().on_ack(now_ns, psn, syndrome, frame, offset)
        else:
            self._on_cumulative(now_ns, number, frame, offset)

    def on_sack(self, now_ns: int, psn: int, first_missing_psn: int, bitmap: int, frame: bytes, offset: int) -> None:
        """What a member has beyond the first packet that it misses is not kept: it is sent again to all."""
        self._on_cumulative(now_ns, self.sender.absolute(first_missing_psn), frame, offset)

    def _on_cumulative(self, now_ns: int, number: int, frame: bytes, offset: int) -> None:
        sender = self.sender
        least = self._least_after(number, frame)
        if least > sender.unacked:
            super().on_ack(now_ns, (sender.psn_base + least - 1) & wire.PSN_MASK, wire.SYNDROME_ACK, frame, offset)
        else:
            self.stats.acks_received += 1

    def _least_after(self, number: int, frame: bytes) -> int:
        """Every member has all packets before it, now that the sender of `frame` has all before `number`."""
        member = int.from_bytes(frame[wire.SOURCE : wire.SOURCE + 4], "big")
        unacked = self.sender.unacked
        before = self._expected.get(member, number)
        if not before < number <= self.sender.fresh:
            return unacked
        self._expected[member] = number
        return min(self._expected.values()) if before == unacked else unacked
