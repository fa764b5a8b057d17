"""Sender that sends with its receiver's credit, as with EQDS and RCCC."""

from __future__ import annotations

from host_agents.cc.base import Path, ReactionOutlet, ReactionPoint
from host_agents.cc.composite import CompositeReactionPoint
from host_agents.timers import Timer


class CreditReactionPoint(CompositeReactionPoint):
    """Reaction point that holds `credit_bytes`, and repeats its request if no credit comes.

    A subclass arms `_retry` when it starts, and keeps `_heard_ns` up to date.
    """

    def __init__(self, path: Path, parts: list[ReactionPoint]) -> None:
        super().__init__(path, parts)  # window protocols, which also limit the sender
        self.credit_bytes = 0  # the last packet may overdraw it
        self.speculating = False  # whether the credit is the speculative one, with which a sender starts
        self._heard_ns = 0  # time of the last pull or request

    def bind(self, outlet: ReactionOutlet) -> None:
        super().bind(outlet)
        self._retry = self.timer()

    def on_timer(self, now_ns: int, timer: Timer) -> None:
        """Repeat the request if there is no credit and nothing has arrived for a time-out."""
        due_ns = self._heard_ns + self.host.rto_ns
        if due_ns <= now_ns:
            due_ns = now_ns + self.host.rto_ns
            if self.traffic.waiting_bytes > 0 and self.credit_bytes <= 0:
                if not self.outlet.may_retry(now_ns):
                    return
                self._send_request(now_ns)
        timer.arm(due_ns)

    def _send_request(self, now_ns: int) -> None:
        raise NotImplementedError
