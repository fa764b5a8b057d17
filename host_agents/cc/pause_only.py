"""Pause-only: line rate, where only link-level flow control (PFC) limits senders.

It is the baseline of ACCurate's figure 4 (section III-B). Unlike `none` its runs have PFC on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from host_agents.cc.base import Path, ReactionPoint
from host_agents.registry import ProtocolInfo, register


@dataclass(frozen=True)
class PauseOnlyParameters:
    pass


def reaction_point(parameters: PauseOnlyParameters, mechanisms: Mapping[str, object], path: Path) -> ReactionPoint:
    return ReactionPoint(path)


register(
    ProtocolInfo(
        name="pause-only",
        summary="line rate; PFC alone holds senders back",
        source="Karampelas et al. (ACCurate), section III-B",
        program="ecn",
        parameters=PauseOnlyParameters,
        reaction_point=reaction_point,
        held_back_by="nothing",
    )
)
