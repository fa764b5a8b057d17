"""Traffic: who sends how much to whom, and when.

Each workload is a file in this package, found and registered by name.
"""

from harness.workloads.base import (
    Flow,
    FlowFields,
    Traffic,
    WorkloadParameters,
    build,
    collectives,
    fields_of,
    flows_of,
    groups,
    names,
    parameters,
)

__all__ = [
    "Flow",
    "FlowFields",
    "Traffic",
    "WorkloadParameters",
    "build",
    "collectives",
    "fields_of",
    "flows_of",
    "groups",
    "names",
    "parameters",
]
