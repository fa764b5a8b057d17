"""No traffic: of a scenario whose flows are those of its groups."""

from __future__ import annotations

from harness.workloads.base import Setting, Traffic, WorkloadParameters, register


@register("none")
class NoTraffic(WorkloadParameters):
    """It has no flows: those of `groups` are all there are."""

    def generate(self, setting: Setting) -> Traffic:
        return Traffic([])
