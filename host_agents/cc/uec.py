"""Sizes and time-outs shared by the congestion controls of Ultra Ethernet, derived from a network.

The consortium's reference simulator derives all of them from the link rate, the base RTT of the longest path and the
size of a full packet. Windows, queues and thresholds scale with the bandwidth-delay product, measured in that of a
reference network of 100 Gb/s and 12 us.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

REFERENCE_RATE_BPS: Final = 100e9
REFERENCE_RTT_NS: Final = 12_000.0
_RTO_FIXED_NS: Final = 15_000.0  # part of the time-out that does not depend on queues
_RTO_LINKS: Final = 6.0  # number of full queues on the longest path in which a packet may wait
_KMIN_SHARE: Final = 0.2
_KMAX_SHARE: Final = 0.8
_QUEUE_BDP_WITHOUT_TRIMMING: Final = 5


@dataclass(frozen=True)
class Scale:
    """Ratio of a network to the reference network.

    `bdp` is its bandwidth-delay product divided by the reference's (the simulator's scaling factor
    a). `payload_bytes` is that of a full packet; its product with `bdp` is the unit of NSCC's
    increases.
    """

    bdp_bytes: float
    bdp: float
    payload_bytes: float

    def increase_bytes(self, packets: float) -> float:
        """Return the payload of a number of packets at the reference BDP, scaled to this one."""
        return packets * self.payload_bytes * self.bdp


def scale(
    rate_bps: float,
    base_rtt_ns: float,
    payload_bytes: int,
    reference_rate_bps: float = REFERENCE_RATE_BPS,
    reference_rtt_ns: float = REFERENCE_RTT_NS,
) -> Scale:
    """Return the ratio of a network of this rate and base RTT to the reference network."""
    bdp_bytes = rate_bps * base_rtt_ns / 8e9
    return Scale(bdp_bytes, bdp_bytes / (reference_rate_bps * reference_rtt_ns / 8e9), float(payload_bytes))


@dataclass(frozen=True)
class Sizes:
    """Settings of switches and time-outs in a network with this full packet size.

    `queue_bytes` is the limit of a port's queue of data; that of its trimmed and control packets is
    twice that. Marks begin at `kmin_bytes` and are certain from `kmax_bytes` on.
    """

    bdp_packets: int
    queue_bytes: int
    kmin_bytes: int
    kmax_bytes: int
    rto_ns: float


def sizes(rate_bps: float, base_rtt_ns: float, packet_bytes: int, trimming: bool = True) -> Sizes:
    """Return queue, thresholds and retransmission time-out of a network of this rate and base RTT.

    A queue is one bandwidth-delay product in whole packets, or five if switches drop instead of
    trimming. A time-out is 15 us plus the time to drain six queues.
    """
    packets = math.ceil(rate_bps * base_rtt_ns / 8e9 / packet_bytes)
    queue_bytes = packets * packet_bytes * (1 if trimming else _QUEUE_BDP_WITHOUT_TRIMMING)
    return Sizes(
        bdp_packets=packets,
        queue_bytes=queue_bytes,
        kmin_bytes=math.ceil(_KMIN_SHARE * packets) * packet_bytes,
        kmax_bytes=math.ceil(_KMAX_SHARE * packets) * packet_bytes,
        rto_ns=_RTO_FIXED_NS + _RTO_LINKS * 8e9 * queue_bytes / rate_bps,
    )
