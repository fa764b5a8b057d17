"""Weights (sections 5.3 and 5.4 of Snyder's thesis): n flows of a host get 1/n of a flow's share each.

Opening more of them then gains little. Flows that start in the same epoch share the numbers of their speculative
packets, and the weight that those have is that of the epoch's start (5.3.1): both at once would punish twice.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from host_agents.ranges import one_of
from host_agents.registry import MechanismInfo, register

SHARE_HOST: Final = "host"


@dataclass(frozen=True)
class WeightsParameters:
    # Who shares numbers: a host's flows of an epoch, to whatever destination.
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
