"""No traffic, for scenarios that have only flows of groups."""

from __future__ import annotations

from harness.workloads.base import Setting, Traffic, WorkloadParameters, register


@register("none")
class NoTraffic(WorkloadParameters):
    """Workload without flows; the scenario's `groups` have all flows."""

    def generate(self, setting: Setting) -> Traffic:
        return Traffic([])
