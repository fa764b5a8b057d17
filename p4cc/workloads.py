"""Public interface for workloads.

A workload's file defines a subclass of `WorkloadParameters` with a method `generate(setting)` that returns a `Traffic`,
and registers it by name.
"""

from harness.workloads.base import Flow, Setting, Size, Time, Traffic, WorkloadParameters, expect_hosts, names, register

__all__ = [
    "Flow",
    "Setting",
    "Size",
    "Time",
    "Traffic",
    "WorkloadParameters",
    "expect_hosts",
    "names",
    "register",
]
