"""The receiving half of a queue pair: what arrives, what is delivered, what is answered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from host_agents.messages import Delivery
from host_agents.wire import PSN_HALF, PSN_MASK

if TYPE_CHECKING:
    from host_agents.qp import QueuePair


class Receiver:
    """What go-back-N and selective repeat have in common. Packets are numbered from 0 without bound."""

    def __init__(self, qp: QueuePair, first_psn: int) -> None:
        self.qp = qp
        self.psn_base = first_psn
        self.expected = 0  # every packet before it has been delivered
        self.messages = 0  # delivered, the MSN of ACKs
        self._message_bytes = 0

    def absolute(self, psn: int) -> int:
        """The packet number nearest to the expected one that has this PSN."""
        delta = (psn - self.psn_base - self.expected) & PSN_MASK
        if delta >= PSN_HALF:
            delta -= PSN_MASK + 1
        return self.expected + delta

    def psn(self, number: int) -> int:
        return (self.psn_base + number) & PSN_MASK

    def on_data(
        self, now_ns: int, psn: int, payload_bytes: int, last: bool, ack_request: bool, marked: bool, frame: bytes
    ) -> None:
        """A data packet arrived; `last` when it ends its message."""
        raise NotImplementedError

    def on_trimmed(self, now_ns: int, psn: int, frame: bytes) -> None:
        """The header of a data packet arrived whose payload a switch cut off."""
        raise NotImplementedError

    def deliver(self, now_ns: int, payload_bytes: int, last: bool) -> None:
        """The next packet in order goes to the application."""
        qp = self.qp
        qp.stats.bytes_delivered += payload_bytes
        self._message_bytes += payload_bytes
        if last:
            delivery = Delivery(qp, self.messages, self._message_bytes, now_ns)
            self.messages += 1
            self._message_bytes = 0
            callback = qp.nic.on_delivered
            if callback is not None:
                callback(delivery)
