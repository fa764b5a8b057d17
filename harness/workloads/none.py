"""No traffic, for scenarios whose flows are those of their groups."""

from __future__ import annotations

from harness.workloads.base import Setting, Traffic, WorkloadParameters, register


@register("none")
class NoTraffic(WorkloadParameters):
    """No flows: those of `groups` are all there are."""

    def generate(self, setting: Setting) -> Traffic:
        return Traffic([])
