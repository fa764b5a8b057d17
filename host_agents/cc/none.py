"""Protocol without congestion control, which always sends at line rate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from host_agents.cc.base import Path, ReactionPoint
from host_agents.registry import ProtocolInfo, register


@dataclass(frozen=True)
class NoneParameters:
    window_bytes: int = 0  # a fixed window; 0: unlimited


def reaction_point(parameters: NoneParameters, mechanisms: Mapping[str, object], path: Path) -> ReactionPoint:
    point = ReactionPoint(path)
    if parameters.window_bytes > 0:
        point.window_bytes = float(parameters.window_bytes)
    return point


register(
    ProtocolInfo(
        name="none",
        summary="no congestion control: line rate, PFC or drops decide",
        source="",
        program="ecn",
        parameters=NoneParameters,
        reaction_point=reaction_point,
        held_back_by="nothing",
    )
)
