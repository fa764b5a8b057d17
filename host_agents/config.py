"""What a NIC is told about itself and its network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

GO_BACK_N: Final = "go-back-n"
SELECTIVE_REPEAT: Final = "selective-repeat"
RELIABILITY: Final = (GO_BACK_N, SELECTIVE_REPEAT)

# Who shares a reaction point (thesis 3.4.3): every QP has its own; QPs to one destination share it, and each
# may send at its rate; QPs to one destination share it and its rate.
SCOPE_QP: Final = "qp"
SCOPE_DESTINATION: Final = "destination"
SCOPE_PAIR: Final = "pair"
CC_SCOPES: Final = (SCOPE_QP, SCOPE_DESTINATION, SCOPE_PAIR)


@dataclass(frozen=True)
class NicConfig:
    """One NIC. Sizes of packets are payload unless the name says wire.

    `base_rtt_ns` is the largest base RTT of the network, the T of window-based protocols.
    """

    address: str
    line_rate_bps: int
    base_rtt_ns: int
    mtu_bytes: int = 1000
    data_priority: int = 3
    control_priority: int = 6
    pfc: bool = True
    reliability: str = GO_BACK_N
    cc_scope: str = SCOPE_QP
    # An ACK after so many packets in order; the last packet of a message and anything out of order ask for one anyway.
    ack_every_packets: int = 1
    rto_ns: int = 1_000_000
    # How late a paced packet may be (link busy with another QP) and still not delay the ones after it.
    pacing_slack_bytes: int = 1100
    seed: int = 1
