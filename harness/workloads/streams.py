"""Named flows with their hosts and times, for figures with a timeline."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from harness.workloads.base import (
    ENDLESS_BYTES,
    Flow,
    Setting,
    Size,
    Time,
    TimedParameters,
    Traffic,
    expect_flows,
    expect_hosts,
    expect_incast,
    register,
)
from p4switch.errors import UserError
from p4switch.tables import Table


class Stream(Table):
    """Flow between two hosts, by index, which ends after `size_bytes` or at `stop_ns` of model time.

    With `messages` it is that number of messages of `size_bytes` each, one after the other on a
    queue pair. Streams with the same `incast` form one that their senders know and announce.
    """

    name: str  # group of its flows
    source: Annotated[int, Field(ge=0)]  # a host, by index
    destination: Annotated[int, Field(ge=0)]  # a host, by index
    start_ns: Time = 0  # start time
    stop_ns: Time | None = None  # end time if it has no size
    size_bytes: Size | None = None  # size of each message; none: it sends until `stop_ns`
    messages: Annotated[int, Field(ge=1)] = 1  # number of messages, one after the other
    incast: Annotated[int, Field(ge=0)] | None = None  # number of the incast, for senders that announce one

    @model_validator(mode="after")
    def _ends(self) -> Stream:
        if (self.stop_ns is None) == (self.size_bytes is None):
            raise ValueError(f"flow {self.name!r} should have either size_bytes or stop_ns")
        if self.stop_ns is not None and self.stop_ns <= self.start_ns:
            raise ValueError(f"flow {self.name!r} should stop after its start")
        if self.messages > 1 and self.size_bytes is None:
            raise ValueError(f"flow {self.name!r} should have size_bytes, that of each of its messages")
        return self


@register("streams")
class Streams(TimedParameters):
    flows: Annotated[list[Stream], Field(min_length=1)]  # the individual flows

    def generate(self, setting: Setting) -> Traffic:
        flows = []
        incasts: dict[int, tuple[int, ...]] = {}
        for stream in self.flows:
            if stream.incast is not None:
                others = incasts.get(stream.incast, ())
                incasts[stream.incast] = others if stream.source in others else (*others, stream.source)
        for members in incasts.values():
            expect_incast("flows", len(members))
        expect_flows("flows", sum(stream.messages for stream in self.flows))
        for number, stream in enumerate(self.flows):
            expect_hosts("flows", max(stream.source, stream.destination) + 1, setting)
            if stream.source == stream.destination:
                raise UserError(f"workload.flows: {stream.name!r} goes from host {stream.source} to itself")
            size_bytes = ENDLESS_BYTES if stream.size_bytes is None else stream.size_bytes
            incast = None if stream.incast is None else (stream.incast, incasts[stream.incast])
            flows += [
                Flow(
                    stream.source,
                    stream.destination,
                    size_bytes,
                    stream.start_ns,
                    group=stream.name,
                    qp=f"stream {number}" if stream.messages > 1 else None,
                    stop_ns=stream.stop_ns,
                    incast=incast,
                )
                for _ in range(stream.messages)
            ]
        return Traffic(flows)
