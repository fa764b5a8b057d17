"""k-ary fat-trees (Al-Fares et al., SIGCOMM 2008): k pods, k^3/4 hosts, every link at the same rate.

The ToRs' uplinks may be over-subscribed: with `oversubscription` o a ToR has k/2 hosts and k/(2 o)
uplinks, and a pod has k/(2 o) aggregation switches. Above them the tree is not over-subscribed.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, field_validator, model_validator

from topologies.clos import build_clos
from topologies.model import Topology
from topologies.registry import TopologyParameters, register


@register("fat-tree")
class FatTree(TopologyParameters):
    """Fat-tree of k-port switches: k pods, each with k/2 ToR and k/2 aggregation switches."""

    k: Annotated[int, Field(ge=2, le=64)] = 4  # ports of a switch; the tree has k pods and k^3 / 4 hosts
    oversubscription: Annotated[int, Field(ge=1)] = 1  # rate of a ToR's hosts divided by that of its uplinks

    @field_validator("k")
    @classmethod
    def _even(cls, k: int) -> int:
        if k % 2:
            raise ValueError("should be even, because half of a switch's ports go up")
        return k

    @model_validator(mode="after")
    def _whole_uplinks(self) -> FatTree:
        if (self.k // 2) % self.oversubscription:
            raise ValueError(
                f"oversubscription {self.oversubscription} should divide the {self.k // 2} hosts of a ToR (k / 2)"
            )
        return self

    def build(self) -> Topology:
        """Return the network of these parameters."""
        half = self.k // 2
        return build_clos(
            "fat-tree",
            pods=self.k,
            tors_per_pod=half,
            aggs_per_pod=half // self.oversubscription,
            spines_per_agg=half,
            hosts_per_tor=half,
            host_rate_bps=self.link_rate_bps,
            fabric_rate_bps=self.link_rate_bps,
            delay_ns=self.link_delay_ns,
            parameters=self.model_dump(),
        )
