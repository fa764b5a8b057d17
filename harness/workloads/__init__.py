"""Traffic: which host sends how much to which, and when. One file a workload, registered by name."""

from harness.workloads.base import Flow, Traffic, WorkloadParameters, build, names, parameters

from harness.workloads import allreduce, alltoall, htsim, incast, ns3, permutation, poisson, streams  # isort: skip

__all__ = [
    "Flow",
    "Traffic",
    "WorkloadParameters",
    "allreduce",
    "alltoall",
    "build",
    "htsim",
    "incast",
    "names",
    "ns3",
    "parameters",
    "permutation",
    "poisson",
    "streams",
]
