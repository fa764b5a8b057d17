"""TCP beside RDMA: Reno, CUBIC and DCTCP over SACK, a receive window and a time-out from RTTs.

`Tcp` is common to all three: slow start from an initial window (RFC 6928), one cut per window of
data regardless of the number of losses (RFC 6675), and the retransmission time-out (RFC 6298). A
law defines the growth and the cuts of the window. A packet is lost when three later ones are
acknowledged. Receivers acknowledge every second packet, and only DCTCP's packets are ECN-capable.
Windows are in wire bytes. Headers are those of RoCEv2, and frames have the lengths of TCP's with
time stamps (`host_agents.lengths`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from mypy_extensions import mypyc_attr

from host_agents.cc.base import Feedback, Path, ReactionPoint
from host_agents.cc.dctcp import MarkedShare
from host_agents.config import SELECTIVE_REPEAT, NicConfig
from host_agents.lengths import TCP
from host_agents.nic_tables import SleekConfig
from host_agents.ranges import POSITIVE, SHARE, SHARE_OR_NONE
from host_agents.registry import ProtocolInfo, register

MAX_RTO_NS: Final = 60_000_000_000  # RFC 6298, 2.5


@dataclass(frozen=True)
class TcpParameters:
    initial_window_packets: float = field(default=10.0, metadata=POSITIVE)  # the first window (RFC 6928)
    receive_window_bytes: int = field(default=6_291_456, metadata=POSITIVE)  # the receiver's buffer; Linux: tcp_rmem
    min_rto_ns: int = field(default=5_000_000, metadata=POSITIVE)  # minimum time-out; Linux: 200 ms


@dataclass(frozen=True)
class CubicParameters(TcpParameters):
    cubic_c: float = field(default=0.4, metadata=POSITIVE)  # C, packets per second cubed (RFC 9438, 4.6)
    beta: float = field(default=0.7, metadata=SHARE)  # factor of the window at a loss (RFC 9438, 4.6)


@dataclass(frozen=True)
class TcpDctcpParameters(TcpParameters):
    gain: float = field(default=1 / 16, metadata=SHARE)  # g, weight of the newest window's share of marks
    initial_alpha: float = field(default=1.0, metadata=SHARE_OR_NONE)  # initial share of marks


@mypyc_attr(allow_interpreted_subclasses=True)
class Law:
    """Growth and cut of a window in packets, as in Reno (RFC 5681)."""

    def grown(self, now_ns: int, window: float, acked: float, srtt_ns: float) -> float:
        """Return the window after `acked` packets were acknowledged in congestion avoidance."""
        return window + acked / window

    def after_loss(self, window: float) -> float:
        """Return the window that a loss leaves."""
        return window / 2.0


class CubicLaw(Law):
    """Window growth of CUBIC (RFC 9438)."""

    def __init__(self, parameters: CubicParameters) -> None:
        self.c = parameters.cubic_c
        self.beta = parameters.beta
        self._w_max = 0.0  # window before the last cut, or less (fast convergence)
        self._k_s = 0.0  # time until the window has that size again
        self._since_ns = -1  # start of this congestion avoidance; -1: none
        self._estimate = 0.0  # Reno's window for the same loss rate
        self._prior = 0.0  # the window at the last cut

    def grown(self, now_ns: int, window: float, acked: float, srtt_ns: float) -> float:
        if self._since_ns < 0:
            self._since_ns = now_ns
            self._w_max = max(self._w_max, window)
            self._k_s = ((self._w_max - window) / self.c) ** (1.0 / 3.0)
            self._estimate = window
        alpha = 3.0 * (1.0 - self.beta) / (1.0 + self.beta) if self._estimate < self._prior else 1.0
        self._estimate += alpha * acked / window
        t_s = (now_ns - self._since_ns) / 1e9
        if self._at(t_s) < self._estimate:
            return max(window, self._estimate)
        target = min(max(self._at(t_s + srtt_ns / 1e9), window), 1.5 * window)
        return window + (target - window) * acked / window

    def after_loss(self, window: float) -> float:
        self._since_ns = -1
        self._prior = window
        self._w_max = window * (1.0 + self.beta) / 2.0 if window < self._w_max else window
        return window * self.beta

    def _at(self, t_s: float) -> float:
        """Return W_cubic (RFC 9438, equation 1)."""
        return self.c * (t_s - self._k_s) ** 3 + self._w_max


class Tcp(ReactionPoint):
    """Congestion window that follows a law.

    The rate is the line's, so ACKs clock the packets.
    """

    def __init__(self, parameters: TcpParameters, law: Law, path: Path) -> None:
        super().__init__(path)
        self.parameters = parameters
        self.law = law
        self.segment_bytes = float(path.wire_bytes)
        self.max_bytes = self.segment_bytes * window_packets(parameters, path.mtu_bytes)  # the receiver counts payload
        self.ssthresh_bytes = self.max_bytes
        self.recover = 0  # losses of packets first sent before this one belong to the last cut
        self.window_bytes = min(parameters.initial_window_packets * self.segment_bytes, self.max_bytes)
        self.srtt_ns = 0.0  # 0: no RTT yet
        self.rttvar_ns = 0.0
        self._backoff = 1
        self._recovering = False

    def on_ack(self, feedback: Feedback) -> None:
        if feedback.rtt_ns >= 0 and not feedback.resent:
            self._measure(float(feedback.rtt_ns))
        acked = float(feedback.acked_bytes)
        if acked <= 0.0:
            return
        if self._backoff > 1:  # time stamps give retransmissions an RTT, too
            self._backoff = 1
            self._tell_rto()
        if self._recovering:
            if self.traffic.oldest_unacked() < self.recover:
                return  # the window does not change
            self._recovering = False
        if self.window_bytes < self.ssthresh_bytes:
            grown = min(self.window_bytes + acked, self.ssthresh_bytes)
        else:
            s = self.segment_bytes
            grown = s * self.law.grown(feedback.now_ns, self.window_bytes / s, acked / s, self.srtt_ns)
        self.set_window(min(grown, self.max_bytes))

    def on_nack(self, now_ns: int, wire_bytes: int, trimmed: bool) -> None:
        """Cut once for all losses of packets in flight at the last cut (RFC 6675, 5)."""
        if self.traffic.oldest_unacked() >= self.recover:
            self._cut()
            self._recovering = True
            self.set_window(self.ssthresh_bytes)

    def on_timeout(self, now_ns: int) -> None:
        self._cut()
        self._recovering = False
        self.set_window(self.segment_bytes)
        self._backoff = min(2 * self._backoff, 1 << 16)
        self._tell_rto()
        self.outlet.send_again(self.traffic.oldest_unacked())  # everything in flight (RFC 6675, 5.1)

    def _cut(self) -> None:
        self.recover = self.traffic.fresh_packets
        s = self.segment_bytes
        self.ssthresh_bytes = max(s * self.law.after_loss(self.window_bytes / s), 2.0 * s)

    def _measure(self, rtt_ns: float) -> None:
        """Include an RTT in the time-out (RFC 6298, 2)."""
        if self.srtt_ns == 0.0:
            self.srtt_ns = rtt_ns
            self.rttvar_ns = rtt_ns / 2.0
        else:
            self.rttvar_ns = 0.75 * self.rttvar_ns + 0.25 * abs(self.srtt_ns - rtt_ns)
            self.srtt_ns = 0.875 * self.srtt_ns + 0.125 * rtt_ns
        self._tell_rto()

    def _tell_rto(self) -> None:
        rto_ns = max(self.parameters.min_rto_ns, round(self.srtt_ns + 4.0 * self.rttvar_ns)) * self._backoff
        self.outlet.set_rto(min(rto_ns, MAX_RTO_NS))


class TcpDctcp(Tcp):
    """DCTCP (RFC 8257): marks cut the window, once in a window of data, by half of their share."""

    def __init__(self, parameters: TcpDctcpParameters, path: Path) -> None:
        super().__init__(parameters, Law(), path)
        self.marked_share = MarkedShare(parameters.gain, parameters.initial_alpha)
        self._cut_order = -1  # marks of packets sent before this one have had their cut

    def on_ack(self, feedback: Feedback) -> None:
        self.marked_share.on_ack(feedback, self.traffic.sent_packets)
        if feedback.marked and feedback.order >= self._cut_order:
            self._cut_order = self.traffic.sent_packets
            cut_bytes = self.window_bytes * (1.0 - self.marked_share.alpha / 2.0)
            self.ssthresh_bytes = max(cut_bytes, 2.0 * self.segment_bytes)
            self.set_window(self.ssthresh_bytes)
        super().on_ack(feedback)


def window_packets(parameters: TcpParameters, mtu_bytes: int) -> int:
    """Return the number of full packets for which the receiver has room."""
    return max(1, parameters.receive_window_bytes // mtu_bytes)


def nic(parameters: TcpParameters, config: NicConfig) -> NicConfig:
    """Return the NIC's settings for TCP: SACK, three duplicates, delayed ACKs, a receive window."""
    return replace(
        config,
        reliability=SELECTIVE_REPEAT,
        loss_packets=3,
        ack_every_packets=2,
        ack_every_bytes=0,
        sleek=SleekConfig(),
        rto_ns=parameters.min_rto_ns,
        receive_window_packets=window_packets(parameters, config.mtu_bytes),
    )


def reno(parameters: TcpParameters, mechanisms: Mapping[str, object], path: Path) -> ReactionPoint:
    return Tcp(parameters, Law(), path)


def cubic(parameters: CubicParameters, mechanisms: Mapping[str, object], path: Path) -> ReactionPoint:
    return Tcp(parameters, CubicLaw(parameters), path)


def dctcp(parameters: TcpDctcpParameters, mechanisms: Mapping[str, object], path: Path) -> ReactionPoint:
    return TcpDctcp(parameters, path)


RENO: Final = ProtocolInfo(
    name="tcp-reno",
    summary="TCP with Reno's window: cross traffic that is not RDMA",
    source="RFC 5681, 6298, 6675",
    program="ecn",
    parameters=TcpParameters,
    reaction_point=reno,
    reliabilities=(SELECTIVE_REPEAT,),
    nic=nic,
    lengths=TCP,
    ecn_capable=False,
)
register(RENO)
register(
    replace(
        RENO,
        name="tcp-cubic",
        summary="TCP with CUBIC's window: cross traffic that is not RDMA",
        source="RFC 9438, 6298, 6675",
        parameters=CubicParameters,
        reaction_point=cubic,
    )
)
register(
    replace(
        RENO,
        name="tcp-dctcp",
        summary="TCP with DCTCP's window: cross traffic that is not RDMA",
        source="RFC 8257, 6298, 6675",
        parameters=TcpDctcpParameters,
        reaction_point=dctcp,
        ecn_capable=True,
    )
)
