"""DCQCN (Zhu et al., SIGCOMM 2015): ECN marks become CNPs at the receiver, CNPs become rate cuts at the sender.

Two sets of constants. `dcqcn`: those with which the published HPCC simulator runs DCQCN at 100 Gb/s, which are an RNIC
vendor's: at most one cut in an interval of the sender. `dcqcn-paper`: those of the paper, which cuts at every CNP.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from host_agents.cc.base import NotificationPoint, Outlet, Path, ReactionPoint
from host_agents.ranges import POSITIVE, SHARE
from host_agents.registry import ProtocolInfo, register
from host_agents.timers import NEVER, Timer


@dataclass(frozen=True)
class DcqcnParameters:
    # At most one CNP in this time, of a notification point and flow; 0: one for each marked packet, as the simulator.
    cnp_interval_ns: int = 0
    rate_decrease_interval_ns: int = 4_000  # at most one cut in this time; 0: a cut at every CNP, at once
    alpha_interval_ns: int = field(default=1_000, metadata=POSITIVE)  # alpha decays once in this time without a CNP
    gain: float = field(default=1 / 256, metadata=SHARE)  # g, of the newest sign of congestion in alpha
    # The timer: from one increase to the next.
    rate_increase_interval_ns: int = field(default=300_000, metadata=POSITIVE)
    byte_counter_bytes: int = 0  # B: an increase once in so many bytes sent, too; 0: no byte counter
    # F, increases towards the target rate before additive ones.
    fast_recovery_steps: int = field(default=1, metadata=POSITIVE)
    additive_increase_bps: float = 20e6  # R_AI, what an additive increase adds to the target rate
    hyper_increase_bps: float = 200e6  # R_HAI, what a hyper increase adds to the target rate
    min_rate_bps: float = field(default=100e6, metadata=POSITIVE)  # the smallest rate
    clamp_target_rate: bool = False  # cut the target rate, too, in a cut that follows another without an increase
    window_bytes: int = 0  # a fixed window; 0: unlimited


@dataclass(frozen=True)
class DcqcnPaperParameters(DcqcnParameters):
    """SIGCOMM 2015, section 5 and table: N = K = 55 us timers as deployed, B = 10 MB, F = 5, R_AI = 40 Mb/s."""

    cnp_interval_ns: int = 50_000
    rate_decrease_interval_ns: int = 0
    alpha_interval_ns: int = field(default=55_000, metadata=POSITIVE)
    rate_increase_interval_ns: int = field(default=55_000, metadata=POSITIVE)
    byte_counter_bytes: int = 10_000_000
    fast_recovery_steps: int = field(default=5, metadata=POSITIVE)
    additive_increase_bps: float = 40e6
    hyper_increase_bps: float = 400e6
    clamp_target_rate: bool = True


CUT: Final = 1
INCREASE: Final = 2


class Dcqcn(ReactionPoint):
    """The reaction point: current rate `rate_bps` (R_C), target rate (R_T) and alpha.

    Alpha's periodic updates are made up for when it is next read, each at its own nominal time.
    """

    def __init__(self, parameters: DcqcnParameters, path: Path) -> None:
        super().__init__(path)
        self.parameters = parameters
        self.target_bps = path.line_rate_bps
        self.alpha = 1.0
        self.timer_steps = 0  # T: increases by the timer since the last cut
        self.byte_steps = 0  # BC: increases by the byte counter since the last cut
        if parameters.window_bytes > 0:
            self.window_bytes = float(parameters.window_bytes)
        self._bytes = 0  # towards the byte counter
        self._alpha_ns = NEVER  # time of the next periodic update of alpha; NEVER before the first CNP
        self._alpha_cnp = False  # a CNP since the last one
        self._cut_ns = NEVER  # the next moment at which a cut may be made

    def bind(self, outlet: Outlet) -> None:
        super().bind(outlet)
        self._cut_timer = self.timer(CUT)
        self._increase_timer = self.timer(INCREASE)

    def on_cnp(self, now_ns: int) -> None:
        p = self.parameters
        first = self._alpha_ns == NEVER
        if p.rate_decrease_interval_ns == 0:  # equation 1: the cut is by the alpha of before
            self.update_alpha(now_ns)
            self._cut(now_ns)
            self.alpha = (1.0 - p.gain) * self.alpha + p.gain
            self._alpha_ns = now_ns + p.alpha_interval_ns
            return
        if first:
            # Alpha starts at 1 and the intervals start here; a cut comes after alpha's update of the same moment.
            self._alpha_ns = now_ns + p.alpha_interval_ns
            self._cut_ns = now_ns + p.rate_decrease_interval_ns + 1
            self.target_bps = self.rate_bps
        else:
            self.update_alpha(now_ns)
            self._alpha_cnp = True
        if not self._cut_timer.is_armed():
            late = now_ns - self._cut_ns
            if late >= 0:
                self._cut_ns += (late // p.rate_decrease_interval_ns + 1) * p.rate_decrease_interval_ns
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
            if self.rate_bps < self.path.line_rate_bps:
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
            self.target_bps = self.rate_bps
        self.timer_steps = 0
        self.byte_steps = 0
        self._bytes = 0
        self._increase_timer.arm(now_ns + p.rate_increase_interval_ns)
        self.set_rate(max(p.min_rate_bps, self.rate_bps * (1.0 - self.alpha / 2.0)))

    def _increase(self) -> None:
        """Increase the rate: fast recovery, additive or hyper increase, by the steps since the last cut."""
        p = self.parameters
        low, high = self.timer_steps, self.timer_steps
        if p.byte_counter_bytes > 0:
            low, high = min(low, self.byte_steps), max(high, self.byte_steps)
        if high >= p.fast_recovery_steps:
            step = p.hyper_increase_bps if low > p.fast_recovery_steps else p.additive_increase_bps
            self.target_bps = min(self.target_bps + step, self.path.line_rate_bps)
        self.set_rate((self.rate_bps + self.target_bps) / 2.0)


class CnpSender(NotificationPoint):
    """The notification point: a CNP for a marked packet, at most one in an interval."""

    def __init__(self, interval_ns: int, path: Path) -> None:
        super().__init__(path)
        self.interval_ns = interval_ns
        self._next_ns = 0

    def on_data(self, now_ns: int, marked: bool, frame: bytes) -> None:
        if marked and now_ns >= self._next_ns:
            self._next_ns = now_ns + self.interval_ns
            self.outlet.send_cnp()


def reaction_point(parameters: DcqcnParameters, mechanisms: Mapping[str, object], path: Path) -> ReactionPoint:
    return Dcqcn(parameters, path)


def notification_point(parameters: DcqcnParameters, path: Path) -> NotificationPoint:
    return CnpSender(parameters.cnp_interval_ns, path)


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
