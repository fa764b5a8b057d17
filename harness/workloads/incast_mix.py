"""Poisson incasts of short messages and Poisson long flows, between random hosts (Dart, section VI-A)."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from harness.workloads.base import (
    Flow,
    Setting,
    Size,
    Time,
    Traffic,
    WorkloadParameters,
    expect_flows,
    expect_hosts,
    expect_incast,
    register,
)
from p4switch.errors import UserError
from topologies import Topology

SHORT = "short"
LONG = "long"


@register("incast-mix")
class IncastMix(WorkloadParameters):
    """Incasts and long flows with a given load.

    `load` is the payload on the uplinks of the switches next to the hosts, relative to the uplinks'
    capacity in one direction. Incasts are the share `short_share` of it, and flows of `long_bytes`
    are the rest. Both arrive until `duration_ns`.

    In an incast `senders` random hosts send to another random host, at once or up to `jitter_ns`
    later. The size of each message is drawn from `short_bytes`. With `announced` the senders know
    of the incast and its senders. With `persistent_groups` that number of groups of hosts is drawn
    once, and each incast takes place in a random group; its messages between the same two hosts
    share a queue pair. Short messages have the class `short_priority`, if one is given.
    """

    load: Annotated[float, Field(gt=0, lt=1)] = 0.4  # relative to the uplinks' capacity, one way
    short_share: Annotated[float, Field(ge=0, le=1)] = 0.4  # share of incasts in the load
    senders: Annotated[int, Field(ge=1)] = 16  # number of senders of an incast
    # Sizes of an incast's messages.
    short_bytes: Annotated[tuple[Size, ...], Field(min_length=1, strict=False)] = (2048, 4096, 8192)
    long_bytes: Size = 1_000_000  # size of a long flow
    jitter_ns: Time = 0  # largest difference of starts within an incast
    announced: bool = True  # whether senders know of the incast
    # Number of fixed groups of hosts; none: each incast has hosts and queue pairs of its own.
    persistent_groups: Annotated[int, Field(ge=1)] | None = None
    # Class of short messages; none: that of all data.
    short_priority: Annotated[int, Field(ge=0, le=7)] | None = None
    duration_ns: Annotated[Time, Field(gt=0)] = 10_000_000  # end of the arrivals of messages and flows

    def generate(self, setting: Setting) -> Traffic:
        expect_hosts("senders", self.senders + 1, setting)
        if self.announced:
            expect_incast("senders", self.senders)
        uplinks_bps, crossing = _uplinks(setting.topology)
        payload_bps = self.load * uplinks_bps / crossing
        mean_bytes = self.senders * sum(self.short_bytes) / len(self.short_bytes)
        incasts = self._arrivals(setting, self.short_share * payload_bps, mean_bytes, self.senders)
        longs = self._arrivals(setting, (1 - self.short_share) * payload_bps, self.long_bytes, 1)
        groups = [self._group(setting) for _ in range(self.persistent_groups or 0)]
        qp = SHORT if groups else None
        flows: list[Flow] = []
        for number, time_ns in enumerate(incasts):
            destination, *sources = setting.rng.choice(groups) if groups else self._group(setting)
            incast = (number & 0xFFFF, tuple(sources)) if self.announced else None
            for source in sources:
                size_bytes = setting.rng.choice(self.short_bytes)
                start_ns = time_ns + setting.rng.randint(0, self.jitter_ns)
                flows.append(
                    Flow(
                        source,
                        destination,
                        size_bytes,
                        start_ns,
                        group=SHORT,
                        qp=qp,
                        incast=incast,
                        priority=self.short_priority,
                    )
                )
        for time_ns in longs:
            source, destination = setting.rng.sample(range(setting.hosts), 2)
            flows.append(Flow(source, destination, self.long_bytes, time_ns, group=LONG))
        flows.sort(key=lambda flow: (flow.start_ns, flow.source))
        return Traffic(flows)

    def _group(self, setting: Setting) -> list[int]:
        """Return random hosts for an incast: the receiver and the senders."""
        return setting.rng.sample(range(setting.hosts), self.senders + 1)

    def _arrivals(self, setting: Setting, payload_bps: float, mean_bytes: float, flows: int) -> list[int]:
        """Return Poisson arrival times in ns at which arrivals of `mean_bytes` make up `payload_bps`."""
        times: list[int] = []
        if payload_bps == 0:
            return times
        gap_ns = mean_bytes * 8e9 / payload_bps
        expect_flows("duration_ns", flows * int(self.duration_ns / gap_ns))
        time_ns = setting.rng.expovariate(1 / gap_ns)
        while time_ns < self.duration_ns:
            times.append(int(time_ns))
            time_ns += setting.rng.expovariate(1 / gap_ns)
        return times


def _uplinks(topology: Topology) -> tuple[int, float]:
    """Return the one-way rate of all uplinks of switches next to hosts, and a flow's chance to use one.

    The rate is in b/s. Raises UserError if there are no uplinks.
    """
    tier_of = {switch.name: switch.tier for switch in topology.switches}
    uplinks_bps = sum(
        link.rate_bps for link in topology.links if {0} < {tier_of.get(link.a, 0), tier_of.get(link.b, 0)}
    )
    hosts = len(topology.hosts)
    beside = dict.fromkeys(tier_of, 0)
    for host in topology.hosts:
        beside[topology.uplink(host).node] += 1
    crossing = 1 - sum(count * (count - 1) for count in beside.values()) / (hosts * (hosts - 1))
    if uplinks_bps == 0 or crossing == 0:
        raise UserError(
            f"workload.load: is the load of the uplinks of switches next to hosts; topology {topology.name!r} has none"
        )
    return uplinks_bps, crossing
