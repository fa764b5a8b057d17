"""Summary of a run's traffic that plans need."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from harness import workloads
from harness.plan.scenario import LinkEvent
from host_agents.assignments import Assignment


@dataclass(frozen=True)
class TrafficSummary:
    """Properties of a traffic that are checked before a run starts."""

    assignments: Mapping[int, Assignment]
    priorities: frozenset[int]  # classes that flows set themselves
    failed: tuple[LinkEvent, ...]  # links that are down according to the traffic's file
    first_start_ns: int  # first start among the flows known before the run

    @classmethod
    def of(cls, traffic: workloads.Traffic) -> TrafficSummary:
        own = frozenset(flow.priority for flow in traffic.flows if flow.priority is not None)
        failed = tuple(LinkEvent(link=[a, b], up=False) for a, b in traffic.failed_links)
        starts_ns = [flow.start_ns for flow in traffic.flows]
        starts_ns += [assignment.start_ns for assignment in traffic.assignments.values()]
        return cls(traffic.assignments, own, failed, min(starts_ns))
