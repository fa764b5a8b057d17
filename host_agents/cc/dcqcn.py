"""DCQCN (Zhu et al., SIGCOMM 2015): ECN marks become CNPs at the receiver, CNPs become rate cuts at the sender.

There are three sets of constants, each a protocol by name. `dcqcn` has those with which the
published HPCC simulator runs DCQCN at 100 Gb/s: it cuts at most once in an interval of the sender.
`dcqcn-paper` has those of the paper, which cuts at every CNP. `dcqcn-connectx` has a vendor's
defaults. A scenario's table `protocols` changes single constants.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from host_agents.cc.base import NotificationOutlet, NotificationPoint, Path, ReactionOutlet, ReactionPoint
from host_agents.fifo import Fifo
from host_agents.ranges import POSITIVE, SHARE, SHARE_OR_NONE, one_of
from host_agents.registry import ProtocolInfo, register
from host_agents.timers import NEVER, Timer

FLOW: Final = "flow"
PORT: Final = "port"


@dataclass(frozen=True)
class DcqcnParameters:
    # At most one CNP in this time, limited by `cnp_limit`; 0: one for each marked packet, as in the
    # simulator.
    cnp_interval_ns: int = 0
    # CNPs that this interval separates: those of a flow, or those of all flows that a NIC receives.
    cnp_limit: str = field(default=FLOW, metadata=one_of(FLOW, PORT))
    cnp_delay_ns: int = 0  # time from a marked packet's arrival until its CNP is sent
    rate_decrease_interval_ns: int = 4_000  # interval with at most one cut; 0: each CNP causes a cut at once
    alpha_interval_ns: int = field(default=1_000, metadata=POSITIVE)  # alpha decays once in this time without a CNP
    # G, weight of the newest indication of congestion in alpha.
    gain: float = field(default=1 / 256, metadata=SHARE)
    initial_alpha: float = field(default=1.0, metadata=SHARE_OR_NONE)  # alpha at the first CNP
    first_cnp_rate_bps: float = 0.0  # upper limit of the rate from the first CNP on, before any cut; 0: none
    # Smallest factor of a cut.
    least_left: float = field(default=0.0, metadata=SHARE_OR_NONE)
    # Timer: time from one increase to the next.
    rate_increase_interval_ns: int = field(default=300_000, metadata=POSITIVE)
    byte_counter_bytes: int = 0  # B: also an increase after this many bytes sent; 0: no byte counter
    # F, number of increases towards the target rate before additive ones.
    fast_recovery_steps: int = field(default=1, metadata=POSITIVE)
    additive_increase_bps: float = 20e6  # R_AI, which an additive increase adds to the target rate
    hyper_increase_bps: float = 200e6  # R_HAI, which a hyper increase adds to the target rate
    min_rate_bps: float = field(default=100e6, metadata=POSITIVE)  # the smallest rate
    rate_step_bps: float = 0.0  # the limiter supports multiples of this only and rounds down; 0: any rate
    clamp_target_rate: bool = False  # whether a cut that follows another without an increase also cuts the target rate
    window_bytes: int = 0  # a fixed window; 0: unlimited


@dataclass(frozen=True)
class DcqcnPaperParameters(DcqcnParameters):
    """Parameters of SIGCOMM 2015, section 5 and table, with N = K = 55 us as deployed, B = 10 MB and F = 5."""

    cnp_interval_ns: int = 50_000
    rate_decrease_interval_ns: int = 0
    alpha_interval_ns: int = field(default=55_000, metadata=POSITIVE)
    rate_increase_interval_ns: int = field(default=55_000, metadata=POSITIVE)
    byte_counter_bytes: int = 10_000_000
    fast_recovery_steps: int = field(default=5, metadata=POSITIVE)
    additive_increase_bps: float = 40e6
    hyper_increase_bps: float = 400e6
    clamp_target_rate: bool = True


@dataclass(frozen=True)
class DcqcnConnectxParameters(DcqcnParameters):
    """Defaults of NVIDIA's ConnectX-4 and later, from its page of DCQCN parameters.

    dce_tcp_g 1019 and initial_alpha_value 1023 are divided by 1024, rpg_byte_reset counts units of
    64 bytes, and rpg_gd 11 is the paper's cut by half of alpha. A CNP is limited by port, as Linux
    describes min_time_between_cnps; its own delay is not published.
    """

    cnp_interval_ns: int = 4_000
    cnp_limit: str = field(default=PORT, metadata=one_of(FLOW, PORT))
    gain: float = field(default=5 / 1024, metadata=SHARE)
    initial_alpha: float = field(default=1023 / 1024, metadata=SHARE_OR_NONE)
    least_left: float = field(default=0.5, metadata=SHARE_OR_NONE)
    byte_counter_bytes: int = 64 * 32_767
    additive_increase_bps: float = 5e6
    hyper_increase_bps: float = 50e6
    min_rate_bps: float = field(default=1e6, metadata=POSITIVE)


CUT: Final = 1
INCREASE: Final = 2


class Dcqcn(ReactionPoint):
    """Reaction point with current rate (R_C), target rate (R_T) and alpha. `rate_bps` is R_C in limiter steps.

    Alpha's periodic updates are computed when it is next read, each with its own nominal time.
    """

    def __init__(self, parameters: DcqcnParameters, path: Path) -> None:
        super().__init__(path)
        self.parameters = parameters
        self.current_bps = path.line_rate_bps
        self.target_bps = path.line_rate_bps
        self.alpha = parameters.initial_alpha
        self.timer_steps = 0  # T: increases by the timer since the last cut
        self.byte_steps = 0  # BC: increases by the byte counter since the last cut
        if parameters.window_bytes > 0:
            self.window_bytes = float(parameters.window_bytes)
        self._bytes = 0  # bytes towards the byte counter
        self._alpha_ns = NEVER  # time of the next periodic update of alpha; NEVER before the first CNP
        self._alpha_cnp = False  # a CNP since the last update
        self._cut_ns = NEVER  # the next time at which a cut may be made

    def bind(self, outlet: ReactionOutlet) -> None:
        super().bind(outlet)
        self._cut_timer = self.timer(CUT)
        self._increase_timer = self.timer(INCREASE)

    def on_cnp(self, now_ns: int) -> None:
        p = self.parameters
        first = self._alpha_ns == NEVER
        if first and 0.0 < p.first_cnp_rate_bps < self.current_bps:
            self.target_bps = p.first_cnp_rate_bps
            self._take(p.first_cnp_rate_bps)
        if p.rate_decrease_interval_ns == 0:  # equation 1: the cut uses alpha before its update
            self.update_alpha(now_ns)
            self._cut(now_ns)
            self.alpha = (1.0 - p.gain) * self.alpha + p.gain
            self._alpha_ns = now_ns + p.alpha_interval_ns
            return
        if first:
            # Alpha starts at 1, and the intervals start now. A cut comes after alpha's update at
            # the same time.
            self._alpha_ns = now_ns + p.alpha_interval_ns
            self._cut_ns = now_ns + p.rate_decrease_interval_ns + 1
            self.target_bps = self.current_bps
        else:
            self.update_alpha(now_ns)
            self._alpha_cnp = True
        if not self._cut_timer.is_armed():
            since_cut_ns = now_ns - self._cut_ns
            if since_cut_ns >= 0:
                self._cut_ns += (since_cut_ns // p.rate_decrease_interval_ns + 1) * p.rate_decrease_interval_ns
            self._cut_timer.arm(self._cut_ns)

    def on_sent(self, now_ns: int, wire_bytes: int) -> None:
        limit = self.parameters.byte_counter_bytes
        if limit == 0:
            return
        self._bytes += wire_bytes
        if self._bytes >= limit:
            self._bytes -= limit
            self._increase()
            self.byte_steps += 1

    def on_timer(self, now_ns: int, timer: Timer) -> None:
        if timer.kind == CUT:
            self.update_alpha(now_ns)
            self._cut(now_ns)
        else:
            self._increase()
            self.timer_steps += 1
            if self.current_bps < self.path.line_rate_bps:
                timer.arm(now_ns + self.parameters.rate_increase_interval_ns)

    def update_alpha(self, now_ns: int) -> None:
        """Apply all periodic updates of alpha up to now: towards 1 after a CNP, towards 0 without."""
        if self._alpha_ns > now_ns:
            return
        p = self.parameters
        updates = (now_ns - self._alpha_ns) // p.alpha_interval_ns + 1
        self._alpha_ns += updates * p.alpha_interval_ns
        if self._alpha_cnp:
            self._alpha_cnp = False
            self.alpha = (1.0 - p.gain) * self.alpha + p.gain
            updates -= 1
        self.alpha *= math.pow(1.0 - p.gain, float(updates))

    def _cut(self, now_ns: int) -> None:
        p = self.parameters
        if p.clamp_target_rate or self.timer_steps > 0 or self.byte_steps > 0:
            self.target_bps = self.current_bps
        self.timer_steps = 0
        self.byte_steps = 0
        self._bytes = 0
        self._increase_timer.arm(now_ns + p.rate_increase_interval_ns)
        self._take(max(p.min_rate_bps, self.current_bps * max(p.least_left, 1.0 - self.alpha / 2.0)))

    def _increase(self) -> None:
        """Increase the rate: fast recovery, additive or hyper increase, by the steps since the last cut."""
        p = self.parameters
        low, high = self.timer_steps, self.timer_steps
        if p.byte_counter_bytes > 0:
            low, high = min(low, self.byte_steps), max(high, self.byte_steps)
        if high >= p.fast_recovery_steps:
            step = p.hyper_increase_bps if low > p.fast_recovery_steps else p.additive_increase_bps
            self.target_bps = min(self.target_bps + step, self.path.line_rate_bps)
        self._take((self.current_bps + self.target_bps) / 2.0)

    def _take(self, rate_bps: float) -> None:
        """Set a new current rate, and set the limiter to it, rounded down to a multiple of the limiter's step."""
        self.current_bps = rate_bps
        step_bps = self.parameters.rate_step_bps
        self.set_rate(rate_bps if step_bps == 0.0 else max(1.0, rate_bps // step_bps) * step_bps)


class CnpGap:
    """Earliest time of the next CNP, for one flow or for all that a NIC receives."""

    def __init__(self) -> None:
        self.next_ns = 0


class CnpSender(NotificationPoint):
    """Notification point that sends a CNP for a marked packet, at most one in an interval.

    The CNP is sent a fixed time after the mark.
    """

    def __init__(self, parameters: DcqcnParameters, path: Path) -> None:
        super().__init__(path)
        self.interval_ns = parameters.cnp_interval_ns
        self.delay_ns = parameters.cnp_delay_ns
        self._by_port = parameters.cnp_limit == PORT
        self._gap = CnpGap()

    def bind(self, outlet: NotificationOutlet) -> None:
        super().bind(outlet)
        if self._by_port:
            shared = self.host.part("cnp gap", CnpGap)
            assert isinstance(shared, CnpGap)
            self._gap = shared
        if self.delay_ns > 0:
            self._cnp_timer = self.timer()
            self._due_ns = Fifo[int]()  # times of CNPs that are yet to be sent

    def on_data(self, now_ns: int, marked: bool, frame: bytes) -> None:
        if not marked or now_ns < self._gap.next_ns:
            return
        self._gap.next_ns = now_ns + self.interval_ns
        if self.delay_ns == 0:
            self.outlet.send_cnp()
            return
        self._due_ns.push(now_ns + self.delay_ns)
        if self._due_ns.size == 1:
            self._cnp_timer.arm(now_ns + self.delay_ns)

    def on_timer(self, now_ns: int, timer: Timer) -> None:
        self._due_ns.pop()
        self.outlet.send_cnp()
        if self._due_ns.size > 0:
            timer.arm(self._due_ns.peek())


def reaction_point(parameters: DcqcnParameters, mechanisms: Mapping[str, object], path: Path) -> ReactionPoint:
    return Dcqcn(parameters, path)


def notification_point(parameters: DcqcnParameters, path: Path) -> NotificationPoint:
    return CnpSender(parameters, path)


DCQCN: Final = ProtocolInfo(
    name="dcqcn",
    summary="rate cuts by CNPs, constants of the published HPCC simulator",
    source="Zhu et al., Congestion Control for Large-Scale RDMA Deployments, SIGCOMM 2015",
    program="ecn",
    parameters=DcqcnParameters,
    reaction_point=reaction_point,
    notification_point=notification_point,
)
register(DCQCN)
register(
    dataclasses.replace(
        DCQCN,
        name="dcqcn-paper",
        summary="rate cuts by CNPs, constants of the paper",
        parameters=DcqcnPaperParameters,
    )
)
register(
    dataclasses.replace(
        DCQCN,
        name="dcqcn-connectx",
        summary="rate cuts by CNPs, defaults of NVIDIA's ConnectX-4 and later",
        source="NVIDIA, DCQCN CC Parameters (DOCA documentation); np_min_time_between_cnps of Linux's mlx5 driver",
        parameters=DcqcnConnectxParameters,
    )
)
