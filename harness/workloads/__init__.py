"""Traffic: who sends how much to whom, and when.

Each workload is a file in this package, found and registered by name.
"""

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
