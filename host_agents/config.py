"""Configuration of a NIC and its network."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from host_agents.errors import ParameterError
from host_agents.nic_tables import PcieConfig, SleekConfig
from host_agents.wire import MAC_PREFIX, parse_address

GO_BACK_N: Final = "go-back-n"
SELECTIVE_REPEAT: Final = "selective-repeat"
RELIABILITIES: Final = (GO_BACK_N, SELECTIVE_REPEAT)
DATAGRAM: Final = "datagram"  # mode of protocols whose packets are sent once; a NIC cannot select it

# Scopes of a reaction point (thesis, 3.4): each QP has its own; QPs to one destination share it,
# and each may send at its rate (as measured for ConnectX-5); QPs to one destination share it and
# its rate.
SCOPE_QP: Final = "qp"
SCOPE_DESTINATION: Final = "destination"
SCOPE_PAIR: Final = "pair"
CC_SCOPES: Final = (SCOPE_QP, SCOPE_DESTINATION, SCOPE_PAIR)

MAX_MTU_BYTES: Final = 9000
MAX_INCAST: Final = 255  # largest number of members of an announced incast


@dataclass(frozen=True)
class Peers:
    """Link rates and base RTTs to other NICs, for a NIC in a network whose links differ.

    `kind_of` has the kind of link of each NIC, by its IPv4 address as a number. For each kind,
    `rates_bps` has the rate, and `base_rtts_ns` has the base RTTs to NICs with such a link, in the
    form of `NicConfig.base_rtts_ns`.
    """

    kind_of: dict[int, int]
    rates_bps: tuple[int, ...]
    base_rtts_ns: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class NicConfig:
    """Configuration of one NIC.

    Packet sizes are payload unless the name says wire.

    `base_rtt_ns` is the largest base RTT of the network, the T of window-based protocols.
    `base_rtts_ns` has the base RTT by the number of routers on the path, from 0; a value of 0 means
    that it is unknown. A packet's DSCP is 8 times its priority, and its PFC class is the priority.
    Control packets (ACK, CNP ...) have precedence over data. Raises ParameterError for a value that
    is out of its range or unknown.
    """

    address: str
    line_rate_bps: int
    base_rtt_ns: int
    mtu_bytes: int = 1000
    data_priority: int = 3
    control_priority: int = 6
    pfc: bool = True  # obey 802.1Qbb pause frames
    reliability: str = GO_BACK_N
    cc_scope: str | None = None  # None: the protocol's default
    # Number of packets of a message for which one ACK is sent. The last packet of a message is also
    # acknowledged. When ECN marks begin or end, the packets before the change are acknowledged at
    # once. With selective repeat, packets that arrive early (out of order) are acknowledged at once
    # if losses are found by them (`loss_packets`). Otherwise they wait like packets in order, as
    # long as a SACK can name them.
    ack_every_packets: int = 1
    # If above 0, with selective repeat, this replaces the rule above: one ACK is sent when this
    # many bytes of frames have arrived since the last one (Ultra Ethernet). The first packet,
    # marked packets, duplicates and packets that request an ACK are acknowledged at once. A sender
    # requests an ACK in the last packet that waits to be sent, in a packet that uses up the window
    # or the credit, and in retransmissions.
    ack_every_bytes: int = 0
    # Longest time that a packet waits for the ACK of a later one; None: a base RTT. If it is
    # shorter than the time in which a sender sends `ack_every_packets`, ACKs are more frequent. If
    # it is set, a packet that uses up the window or the credit also requests an ACK.
    ack_wait_ns: int | None = None
    rto_ns: int = 1_000_000
    # Number of retransmissions after time-outs without any new acknowledgement. After one more
    # time-out the queue pair is in error (IBTA volume 1, 12.7.38: the retry count, of 3 bits; 7 is
    # no special case). From then on it neither sends nor receives, and its messages fail.
    retry_count: int = 7
    # Selective repeat: a packet is lost when a packet that was sent this many packets later is
    # acknowledged. 0: losses are found by time-out and trimming only.
    loss_packets: int = 3
    sleek: SleekConfig = field(default_factory=SleekConfig)
    pcie: PcieConfig = field(default_factory=PcieConfig)
    # Selective repeat: number of packets that may be sent beyond the oldest unacknowledged one; 0:
    # unlimited.
    receive_window_packets: int = 0
    # How late the link may send a paced packet without delaying those after it, in bytes at line
    # rate.
    pacing_slack_bytes: int = 1100
    cell_bytes: int = 80  # unit of the queue lengths in the switches' telemetry
    stamps: bool = False  # data packets carry their send time, so that the receiver can measure latencies
    seed: int = 1
    base_rtts_ns: tuple[int, ...] = ()
    # Frames are complete, with their ICRC, and a data packet or an answer with a wrong ICRC is
    # malformed. Packets that switches may change are not checked: packets with a shim, and control
    # packets of protocols.
    check_icrc: bool = False
    # Bytes that a link charges for a frame beyond its own: preamble, FCS and gap; 0 if that is not
    # charged.
    frame_overhead_bytes: int = 0
    mac_prefix: int = MAC_PREFIX  # first two bytes of the MAC addresses in its frames
    peers: Peers | None = None  # None: the links of all NICs are equal, or unknown
    last_hop_dscp: int = -1  # DSCP of packets trimmed on the port to their receiver; -1: not distinguished
    nics: tuple[int, ...] = ()  # IPv4 addresses, as numbers, of the network's NICs by their ids, at most 2^16

    @property
    def answers_early(self) -> bool:
        """True if selective repeat answers packets out of order at once; see `ack_every_packets`."""
        return self.loss_packets > 0 or (self.ack_every_packets == 1 and self.ack_every_bytes == 0)

    def __post_init__(self) -> None:
        try:
            parse_address(self.address)
        except ValueError as error:
            raise ParameterError(f"address {error}") from None
        for name, low, high in (
            ("line_rate_bps", 1, 1 << 50),
            ("base_rtt_ns", 1, 1 << 40),
            ("mtu_bytes", 1, MAX_MTU_BYTES),
            ("data_priority", 0, 7),
            ("control_priority", 0, 7),
            ("ack_every_packets", 1, 1 << 20),
            ("ack_every_bytes", 0, 1 << 30),
            ("rto_ns", 1, 1 << 40),
            ("retry_count", 0, 7),
            ("loss_packets", 0, 1 << 20),
            ("receive_window_packets", 0, 1 << 23),
            ("pacing_slack_bytes", 0, 1 << 20),
            ("cell_bytes", 1, 1 << 16),
            ("mac_prefix", 0, 0xFFFF),
            ("frame_overhead_bytes", -(1 << 10), 1 << 10),
            ("last_hop_dscp", -1, 63),
        ):
            value = getattr(self, name)
            if not low <= value <= high:
                raise ParameterError(f"{name} {value}: expected {low} to {high}")
        if self.ack_wait_ns is not None and not 1 <= self.ack_wait_ns <= 1 << 40:
            raise ParameterError(f"ack_wait_ns {self.ack_wait_ns}: expected 1 to {1 << 40}, or None")
        for name, allowed in (("reliability", (*RELIABILITIES, DATAGRAM)), ("cc_scope", (None, *CC_SCOPES))):
            value = getattr(self, name)
            if value not in allowed:
                raise ParameterError(f"{name} {value!r}: expected one of: {', '.join(filter(None, allowed))}")
        if self.sleek.windows > 0.0 and (self.reliability == GO_BACK_N or self.loss_packets > 0):
            raise ParameterError(
                f"sleek.windows {self.sleek.windows}: expected 0, or {SELECTIVE_REPEAT} with loss_packets 0"
            )
        if self.ack_every_bytes > 0 and self.reliability == GO_BACK_N:
            raise ParameterError(
                f"ack_every_bytes {self.ack_every_bytes} with {GO_BACK_N}: expected 0, or {SELECTIVE_REPEAT}"
            )
