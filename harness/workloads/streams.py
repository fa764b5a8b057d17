"""Named flows, each with its hosts and its times: what a figure with a timeline shows."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, model_validator

from harness.workloads.base import Flow, Setting, Size, Time, Traffic, WorkloadParameters, expect_hosts, register
from p4switch.errors import UserError

ENDLESS_BYTES = 2**39  # at 100 Gb/s more than ten seconds


class Stream(BaseModel):
    """One flow between two hosts, by index. It ends after `size_bytes`, or at `stop_ns` (of model time)."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    name: str
    source: Annotated[int, Field(ge=0)]
    destination: Annotated[int, Field(ge=0)]
    start_ns: Time = 0
    stop_ns: Time | None = None
    size_bytes: Size | None = None

    @model_validator(mode="after")
    def _ends(self) -> Stream:
        if (self.stop_ns is None) == (self.size_bytes is None):
            raise ValueError(f"flow {self.name!r} should have either size_bytes or stop_ns")
        if self.stop_ns is not None and self.stop_ns <= self.start_ns:
            raise ValueError(f"flow {self.name!r} should stop after its start")
        return self


@register("streams")
class Streams(WorkloadParameters):
    flows: Annotated[list[Stream], Field(min_length=1)]

    def generate(self, setting: Setting) -> Traffic:
        flows = []
        for stream in self.flows:
            expect_hosts("flows", max(stream.source, stream.destination) + 1, setting)
            if stream.source == stream.destination:
                raise UserError(f"workload.flows: {stream.name!r} goes from host {stream.source} to itself")
            size_bytes = ENDLESS_BYTES if stream.size_bytes is None else stream.size_bytes
            flows.append(
                Flow(
                    stream.source,
                    stream.destination,
                    size_bytes,
                    stream.start_ns,
                    group=stream.name,
                    stop_ns=stream.stop_ns,
                )
            )
        return Traffic(flows)
