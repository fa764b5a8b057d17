"""Traffic: which host sends how much to which, and when. One file a workload here, found and registered by name."""

from harness.workloads.base import Flow, Traffic, WorkloadParameters, build, collectives, groups, names, parameters

__all__ = [
    "Flow",
    "Traffic",
    "WorkloadParameters",
    "build",
    "collectives",
    "groups",
    "names",
    "parameters",
]
