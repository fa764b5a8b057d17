"""Tenants that communicate along overlays: rings over their own hosts (thesis, 3.5.3).

In overlay s of a tenant of n hosts, host i sends to host i + s mod n. There are n - 1 of them. A
tenant that uses several at once, or another one every RTT, has new pairs of hosts for which
congestion control has no state yet.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from harness.workloads.base import (
    ENDLESS_BYTES,
    Flow,
    Setting,
    Size,
    Time,
    Traffic,
    WorkloadParameters,
    expect_flows,
    expect_hosts,
    register,
)
from p4switch.tables import Table


class Tenant(Table):
    """Tenant with hosts by index, in the order in which overlays count them.

    All `overlays` are used at once, or each for `gap_ns` in turn, always on new queue pairs.
    """

    name: str  # group of its flows
    # Hosts by index, in the order in which overlays count them.
    hosts: Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=2)]
    # Distances of overlays: each host sends this many places ahead in that order.
    overlays: Annotated[list[Annotated[int, Field(ge=1)]], Field(min_length=1)] = [1]
    # Duration of one overlay's turn; none: all overlays at once.
    gap_ns: Annotated[Time, Field(gt=0)] | None = None
    # Bytes that each host sends in each turn of an overlay. None: as much as possible until the
    # turn ends, or all. Bytes that are not sent by then are never sent.
    size_bytes: Size | None = None

    @model_validator(mode="after")
    def _rings(self) -> Tenant:
        hosts, overlays = self.hosts, self.overlays
        if len(set(hosts)) < len(hosts):
            raise ValueError(f"tenant {self.name!r} should have each host once")
        if max(overlays) >= len(hosts):
            raise ValueError(f"tenant {self.name!r} of {len(hosts)} hosts has overlays 1 to {len(hosts) - 1}")
        return self


@register("overlays")
class Overlays(WorkloadParameters):
    tenants: Annotated[list[Tenant], Field(min_length=1)]  # tenants that share the network
    # End of turns, and of flows without a size.
    duration_ns: Annotated[Time, Field(gt=0)] = 1_000_000

    def generate(self, setting: Setting) -> Traffic:
        flows = []
        for tenant in self.tenants:
            expect_hosts("tenants", max(tenant.hosts) + 1, setting)
            for start_ns, stop_ns, overlays in self._turns(tenant):
                flows += [
                    Flow(
                        source,
                        tenant.hosts[(i + step) % len(tenant.hosts)],
                        ENDLESS_BYTES if tenant.size_bytes is None else tenant.size_bytes,
                        start_ns,
                        group=tenant.name,
                        stop_ns=stop_ns if tenant.size_bytes is None else None,
                    )
                    for step in overlays
                    for i, source in enumerate(tenant.hosts)
                ]
        return Traffic(sorted(flows, key=lambda flow: flow.start_ns))

    def _turns(self, tenant: Tenant) -> list[tuple[int, int, list[int]]]:
        """Return (start, end, overlays in use) of each turn of a tenant."""
        if tenant.gap_ns is None:
            return [(0, self.duration_ns, tenant.overlays)]
        starts = range(0, self.duration_ns, tenant.gap_ns)
        expect_flows("tenants", len(starts) * len(tenant.hosts))
        return [
            (start, min(start + tenant.gap_ns, self.duration_ns), [tenant.overlays[turn % len(tenant.overlays)]])
            for turn, start in enumerate(starts)
        ]
