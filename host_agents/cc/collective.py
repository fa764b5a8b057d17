"""Collectives without congestion control, with a static window, and with AIMD alone.

These are the baselines for 3CPO. Source: thesis, 6.1.4 (table 6.1; AIMD's thresholds).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from host_agents.cc.base import Path, ReactionPoint
from host_agents.collective.injection import NEEDS_READS_BOTH, Injection, Throttle
from host_agents.collective.packets import NAME, PACKETS
from host_agents.ranges import POSITIVE, SHARE, check_watermarks, expect_less, one_of
from host_agents.registry import ProtocolInfo, register


@dataclass(frozen=True)
class NoneParameters:
    # Unanswered operations of each kind that an initiator may have.
    outstanding: int = field(default=128, metadata=POSITIVE)


@dataclass(frozen=True)
class WindowParameters:
    # Limit of unanswered operations of each kind. Table 6.1: 3, 5, 12, 24, 48, 128, 128 for 64, 32,
    # 16, 8, 4, 2, 1 initiators.
    window: int = field(default=3, metadata=POSITIVE)


@dataclass(frozen=True)
class AimdParameters:
    wm_min: float = field(default=100.0, metadata=POSITIVE)  # the smallest watermark
    wm_max: float = field(default=2468.0, metadata=POSITIVE)  # the largest watermark: a token per cycle
    wm_start: float = field(default=2468.0, metadata=POSITIVE)  # the first watermark
    wm_ai: float = 50.0  # added after a probe below `lat_thresh`
    lat_thresh: float = 2000.0  # latency of a probe in cycles from which on the watermark falls
    # Latency in cycles from which on a decrease is the largest.
    max_lat_thresh: float = field(default=5000.0, metadata=POSITIVE)
    base_md: float = field(default=0.5, metadata=SHARE)  # factor of the largest decrease, from `max_lat_thresh` on
    # Largest number of tokens that accumulate during idle time.
    depth: float = field(default=1.0, metadata=POSITIVE)
    # Tokens that a read waits for: both kinds, or one of them.
    needs: str = field(default=NEEDS_READS_BOTH, metadata=one_of("reads-both", "both", "large"))
    # Unanswered operations of each kind that an initiator may have.
    outstanding: int = field(default=128, metadata=POSITIVE)

    def __post_init__(self) -> None:
        """Raise ParameterError for inconsistent parameters."""
        check_watermarks("collective-aimd", self.wm_min, self.wm_start, self.wm_max)
        expect_less("collective-aimd", "lat_thresh", self.lat_thresh, "max_lat_thresh", self.max_lat_thresh)


class Aimd(Throttle):
    def __init__(self, parameters: AimdParameters, slack: float) -> None:
        p = parameters
        super().__init__(p.outstanding, p.wm_start / p.wm_max, p.depth, slack, p.needs)
        self.parameters = p
        self.watermark = p.wm_start

    def on_probe(self, now: float, latency: float) -> None:
        p = self.parameters
        if latency < p.lat_thresh:
            self.watermark += p.wm_ai
        else:
            over = (latency - p.lat_thresh) / (p.max_lat_thresh - p.lat_thresh)
            self.watermark *= 1.0 - min(over, 1.0) * (1.0 - p.base_md)
        self.watermark = min(max(self.watermark, p.wm_min), p.wm_max)
        self.requests.set_share(now, self.watermark / p.wm_max)
        self.responses.set_share(now, self.watermark / p.wm_max)


def without_cc(parameters: NoneParameters, slack: float) -> Injection:
    return Injection(parameters.outstanding)


def window(parameters: WindowParameters, slack: float) -> Injection:
    return Injection(parameters.window)


def aimd(parameters: AimdParameters, slack: float) -> Injection:
    return Aimd(parameters, slack)


def reaction_point(parameters: object, mechanisms: Mapping[str, object], path: Path) -> ReactionPoint:
    """Return the reaction point of ordinary queue pairs, which send at line rate."""
    return ReactionPoint(path)


WITHOUT_CC: Final = ProtocolInfo(
    name="collective-none",
    summary="collectives at line rate",
    source="Snyder, thesis, 6.1.4",
    program=NAME,
    parameters=NoneParameters,
    reaction_point=reaction_point,
    packets=PACKETS,
    packets_of=NAME,
    injection=without_cc,
)
register(WITHOUT_CC)
register(
    dataclasses.replace(
        WITHOUT_CC,
        name="collective-window",
        summary="collectives with a static window",
        source="Snyder, thesis, 6.1.4, table 6.1",
        parameters=WindowParameters,
        injection=window,
    )
)
register(
    dataclasses.replace(
        WITHOUT_CC,
        name="collective-aimd",
        summary="collectives with token buckets, additive increase and multiplicative decrease by a probe's latency",
        parameters=AimdParameters,
        injection=aimd,
    )
)
