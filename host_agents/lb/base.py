"""Load balancer of one QP, which chooses the next entropy from feedback on paths.

The entropy is the UDP source port; switches hash it, so it names a path. An ACK carries the entropy of the packet that
caused it in its own source port.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import mypyc_attr

FIRST_ENTROPY: Final = 0xC000  # RoCEv2 source ports lie in 0xC000-0xFFFF
ENTROPIES: Final = 0x4000
ENTROPY_COUNT: Final = {"ge": 1, "le": ENTROPIES}  # range of a parameter for the number of entropies used


@mypyc_attr(allow_interpreted_subclasses=True)
class LoadBalancer:
    """Base class; an entropy is a UDP source port."""

    # Whether the entropy ever changes. If not, it is queried once, and there is no feedback.
    balances = True

    def next_entropy(self, now_ns: int) -> int:
        """Return the entropy of the data packet that is about to be sent."""
        raise NotImplementedError

    def control_entropy(self, now_ns: int) -> int:
        """Return the entropy of a control packet, which is not acknowledged."""
        return self.next_entropy(now_ns)

    def on_ack(self, now_ns: int, entropy: int, marked: bool) -> None:
        """Handle the arrival of a packet with this entropy, ECN-marked or not."""

    def on_nack(self, now_ns: int, entropy: int) -> None:
        """Handle a trimmed packet with this entropy."""

    def on_expired(self, now_ns: int, entropy: int) -> None:
        """Handle the time-out of one packet with this entropy.

        `on_timeout` follows, once for all of them.
        """

    def on_timeout(self, now_ns: int) -> None:
        """Handle a retransmission time-out."""
