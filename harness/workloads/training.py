"""A training step of a language model, data-, tensor- and pipeline-parallel, with one forward, one backward (1F1B).

Rank p (D T) + d T + t is tensor t of replica d of stage p. In each pass of a micro-batch the ranks of a tensor group
compute and all-reduce alternately. Each stage sends activations to the next stage, and their gradients to the one
before. At the end of a step the replicas all-reduce the weights' gradients. Source: Narayanan et al., "Efficient
Large-Scale Language Model Training on GPU Clusters Using Megatron-LM", SC 2021.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Annotated, Literal

from pydantic import Field

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
from harness.workloads.patterns import Algorithm, add, messages
from harness.workloads.schedule import Schedule, ScheduleTraffic, expect_operations

Degree = Annotated[int, Field(ge=1, le=1024)]
Pass = Literal["forward", "backward"]


@register("training")
class Training(WorkloadParameters):
    """Training with sizes in payload bytes.

    A stage's computing times are those of one micro-batch; each of the `turns` takes an equal part.
    """

    data: Degree = 8  # number of replicas of the model
    tensor: Degree = 4  # number of ranks that share each layer
    pipeline: Degree = 4  # number of stages
    micro_batches: Annotated[int, Field(ge=1, le=1024)] = 8  # number of micro-batches of each replica in a step
    steps: Annotated[int, Field(ge=1, le=1000)] = 1  # number of steps, one after the other
    # Number of all-reduces of a tensor group in each pass of a micro-batch.
    turns: Annotated[int, Field(ge=1, le=1000)] = 2
    tensor_bytes: Size = 262_144  # size of the vector of each all-reduce in a tensor group
    # Size of the message from each rank of a stage to its peer in the next stage, and of the
    # message back.
    activation_bytes: Size = 262_144
    gradient_bytes: Size = 4_000_000  # size of the gradients of each rank's weights
    forward_ns: Time = 100_000  # forward time of a stage and micro-batch
    backward_ns: Time = 200_000  # backward time of a stage and micro-batch
    tensor_algorithm: Algorithm = "ring"  # algorithm of the tensor groups' all-reduces
    data_algorithm: Algorithm = "ring"  # algorithm of the replicas' all-reduces

    def generate(self, setting: Setting) -> Traffic:
        ranks = self.data * self.tensor * self.pipeline
        expect_hosts("data", ranks, setting)
        messages_of_step = self._messages()
        expect_flows("micro_batches", self.steps * messages_of_step)
        computing = ranks * 2 * self.micro_batches * self.turns
        expect_operations("turns", self.steps * (computing + 2 * messages_of_step))
        schedule = Schedule(ranks)
        last: dict[int, list[int]] = {rank: [] for rank in range(ranks)}
        tags = count(1)
        for step in range(self.steps):
            schedule.step = step
            for stage in range(self.pipeline):
                for replica in range(self.data):
                    self._stage(schedule, last, stage, replica, step, tags)
            for stage in range(self.pipeline):
                for part in range(self.tensor):
                    group = [self._rank(stage, replica, part) for replica in range(self.data)]
                    ends = add(
                        schedule, "all-reduce", self.data_algorithm, group, self.gradient_bytes, last, next(tags)
                    )
                    last.update({rank: list(end) for rank, end in ends.items()})
        schedule.check("workload")
        return ScheduleTraffic(schedule, range(setting.hosts))

    def _messages(self) -> int:
        """Return the number of messages of a step."""
        passes = 2 * self.micro_batches
        within = self.data * self.pipeline * passes * self.turns
        between = self.data * self.tensor * (self.pipeline - 1) * passes
        return (
            within * messages("all-reduce", self.tensor_algorithm, self.tensor)
            + between
            + self.tensor * self.pipeline * messages("all-reduce", self.data_algorithm, self.data)
        )

    def _rank(self, stage: int, replica: int, part: int) -> int:
        return (stage * self.data + replica) * self.tensor + part

    def _stage(
        self,
        schedule: Schedule,
        last: dict[int, list[int]],
        stage: int,
        replica: int,
        step: int,
        tags: Iterator[int],
    ) -> None:
        """Add all passes of one stage of one replica.

        Messages between stages have tags of at most 0.
        """
        group = [self._rank(stage, replica, part) for part in range(self.tensor)]
        for way, batch in self._order(stage):
            forward = way == "forward"
            before, behind = (stage - 1, stage + 1) if forward else (stage + 1, stage - 1)
            tag = -2 * (step * self.micro_batches + batch) - forward
            if 0 <= before < self.pipeline:
                for part, rank in enumerate(group):
                    last[rank] = [*last[rank], schedule.recv(rank, self._rank(before, replica, part), tag=tag)]
            self._pass(schedule, last, group, self.forward_ns if forward else self.backward_ns, tags)
            if 0 <= behind < self.pipeline:  # another stage continues the pass
                for part, rank in enumerate(group):
                    peer = self._rank(behind, replica, part)
                    schedule.send(rank, peer, self.activation_bytes, last[rank], tag)

    def _pass(
        self, schedule: Schedule, last: dict[int, list[int]], group: list[int], time_ns: int, tags: Iterator[int]
    ) -> None:
        for _ in range(self.turns):
            for rank in group:
                last[rank] = [schedule.calc(rank, time_ns // self.turns, last[rank])]
            ends = add(schedule, "all-reduce", self.tensor_algorithm, group, self.tensor_bytes, last, next(tags))
            last.update({rank: list(end) for rank, end in ends.items()})

    def _order(self, stage: int) -> Iterator[tuple[Pass, int]]:
        """Yield the order of 1F1B: a forward pass for each later stage, then one backward and one forward in turn."""
        ahead = min(self.pipeline - stage - 1, self.micro_batches)
        yield from (("forward", batch) for batch in range(ahead))
        for batch in range(self.micro_batches):
            if ahead + batch < self.micro_batches:
                yield "forward", ahead + batch
            yield "backward", batch
