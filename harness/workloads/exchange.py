"""Collectives of hosts by algorithm, over any groups: ring, recursive doubling, tree."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator
from typing_extensions import Self

from harness.workloads.base import (
    Setting,
    Size,
    Time,
    Traffic,
    WorkloadParameters,
    expect_flows,
    expect_hosts,
    register,
)
from harness.workloads.patterns import Algorithm, Collective, add, messages
from harness.workloads.schedule import Ends, Schedule, ScheduleTraffic

Group = Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=2)]


@register("exchange")
class Exchange(WorkloadParameters):
    """Collective of each group, repeated `steps` times, each time after `compute_ns` of computing."""

    collective: Collective = "all-reduce"  # the collective of each group
    algorithm: Algorithm = "ring"  # algorithm of the collective
    # Groups of hosts by index, in the order of their ranks; none: one group of all hosts.
    members: list[Group] | None = None
    size_bytes: Size = 4_000_000  # size of a group's vector
    compute_ns: Time = 0  # computing time before each step, on each host
    steps: Annotated[int, Field(ge=1, le=10_000)] = 1  # number of repetitions

    @model_validator(mode="after")
    def _once_each(self) -> Self:
        for number, group in enumerate(self.members or []):
            if len(set(group)) < len(group):
                raise ValueError(f"members.{number} should have each host once")
        return self

    def generate(self, setting: Setting) -> Traffic:
        groups = self.members or [list(range(setting.hosts))]
        expect_hosts("members", max(map(max, groups)) + 1, setting)
        each = sum(messages(self.collective, self.algorithm, len(group)) for group in groups)
        expect_flows("steps", self.steps * each)
        schedule = Schedule(setting.hosts)
        ends: list[Ends] = [{} for _ in groups]
        for step in range(self.steps):
            schedule.step = step
            for number, group in enumerate(groups):
                ready = {rank: [schedule.calc(rank, self.compute_ns, ends[number].get(rank, ()))] for rank in group}
                ends[number] = add(schedule, self.collective, self.algorithm, group, self.size_bytes, ready, tag=number)
        schedule.check("workload")
        return ScheduleTraffic(schedule, range(setting.hosts))
