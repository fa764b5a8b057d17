"""Weights (sections 5.3 and 5.4 of Snyder's thesis): each of a host's n flows gets 1/n of a flow's share.

Opening more flows then gains little. Flows that start in the same epoch share the numbers of their
speculative packets, and these packets have the weight at the start of the epoch (5.3.1), since the
current weight would reduce their share twice.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from host_agents.ranges import one_of
from host_agents.registry import MechanismInfo, register

SHARE_HOST: Final = "host"


@dataclass(frozen=True)
class WeightsParameters:
    # Flows that share numbers: those of a host and an epoch, regardless of their destination.
    share: str = field(default=SHARE_HOST, metadata=one_of(SHARE_HOST, "off"))


register(
    MechanismInfo(
        name="weights",
        summary="n flows of a host weigh 1/n each",
        source="Snyder, thesis, sections 5.3, 5.3.1 and 5.4",
        parameters=WeightsParameters,
        needs=("1rc",),
    )
)
