"""Three-tier Clos networks. The defaults are HPCC's 320 hosts (SIGCOMM 2019), used by the VAI/SF paper (fig. 7).

There are five pods of 4 ToR and 4 aggregation switches, fully connected at 400 Gb/s, 16 hosts per
ToR at 100 Gb/s, and 16 spines. The first aggregation switch of each pod has links to the first four
spines, the second to the next four, and so on.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from topologies.model import Builder, Topology
from topologies.registry import Rate, TopologyParameters, register

Count = Annotated[int, Field(ge=1, le=250)]


@register("clos")
class Clos(TopologyParameters):
    """Clos network: `link_rate_bps` is the hosts' rate, `fabric_rate_bps` that of links between switches."""

    pods: Count = 5  # number of pods
    tors_per_pod: Count = 4  # top-of-rack switches, to which hosts are connected
    aggs_per_pod: Count = 4  # aggregation switches, each connected to all ToRs of its pod
    spines_per_agg: Count = 4  # spines above each aggregation switch of a pod; those of other pods share them
    hosts_per_tor: Count = 16  # number of hosts in each rack
    fabric_rate_bps: Rate = 400_000_000_000  # rate of each link between two switches

    def build(self) -> Topology:
        """Return the network of these parameters."""
        return build_clos(
            "clos",
            pods=self.pods,
            tors_per_pod=self.tors_per_pod,
            aggs_per_pod=self.aggs_per_pod,
            spines_per_agg=self.spines_per_agg,
            hosts_per_tor=self.hosts_per_tor,
            host_rate_bps=self.link_rate_bps,
            fabric_rate_bps=self.fabric_rate_bps,
            delay_ns=self.link_delay_ns,
            parameters=self.model_dump(),
        )


def build_clos(
    name: str,
    *,
    pods: int,
    tors_per_pod: int,
    aggs_per_pod: int,
    spines_per_agg: int,
    hosts_per_tor: int,
    host_rate_bps: int,
    fabric_rate_bps: int,
    delay_ns: int,
    parameters: dict[str, object],
) -> Topology:
    """Build pods of fully connected ToR and aggregation switches.

    Aggregation switch i reaches spines i*s to i*s + s - 1.

    Parameters
    ----------
    name
        Name of the topology.
    pods, tors_per_pod, aggs_per_pod
        Numbers of pods, and of switches in each.
    spines_per_agg
        Spines above an aggregation switch, s.
    hosts_per_tor
        Hosts below a ToR.
    host_rate_bps, fabric_rate_bps
        Rates of links of hosts, and between switches.
    delay_ns
        Propagation delay of each link.
    parameters
        Parameters of the topology, for the record of a run.

    Returns
    -------
    Topology
        The network.
    """
    builder = Builder(name)
    spines = [builder.switch(f"spine{i}", 2) for i in range(aggs_per_pod * spines_per_agg)]
    for pod in range(pods):
        tors = [builder.switch(f"tor{pod}-{i}", 0) for i in range(tors_per_pod)]
        aggs = [builder.switch(f"agg{pod}-{i}", 1) for i in range(aggs_per_pod)]
        for rack, tor in enumerate(tors):
            for host in range(hosts_per_tor):
                builder.host(f"10.{pod}.{rack}.{host + 2}", tor, host_rate_bps, delay_ns)
            for agg in aggs:
                builder.link(tor, agg, fabric_rate_bps, delay_ns)
        for i, agg in enumerate(aggs):
            for spine in spines[i * spines_per_agg : (i + 1) * spines_per_agg]:
                builder.link(agg, spine, fabric_rate_bps, delay_ns)
    return builder.build(parameters)
