"""Incasts one after the other beside a long flow (Dart, figure 10)."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from harness.workloads.base import (
    ENDLESS_BYTES,
    Flow,
    Setting,
    Size,
    Time,
    Traffic,
    WorkloadParameters,
    expect_hosts,
    expect_incast,
    register,
)


@register("incasts")
class Incasts(WorkloadParameters):
    """Incasts to host 0 every `interval_ns`, by hosts 2, 3 and so on.

    Each sender starts up to `jitter_ns` later, always on the same queue pair. With `background`
    host 1 sends to host 0 all the time. With `announced` the senders know of the incast and its
    senders.
    """

    senders: Annotated[int, Field(ge=1)] = 16  # number of senders of an incast
    size_bytes: Size = 262_144  # size of each message
    count: Annotated[int, Field(ge=1)] = 100  # number of incasts
    interval_ns: Annotated[Time, Field(gt=0)] = 5_000_000  # time from one incast to the next
    jitter_ns: Time = 100_000  # largest difference of starts within an incast
    background: bool = True  # host 1 sends to host 0 all the time
    announced: bool = False  # whether senders know of the incast

    def generate(self, setting: Setting) -> Traffic:
        expect_hosts("senders", self.senders + 2, setting)
        if self.announced:
            expect_incast("senders", self.senders)
        sources = tuple(range(2, self.senders + 2))
        end_ns = (self.count + 1) * self.interval_ns
        flows = [Flow(1, 0, ENDLESS_BYTES, 0, group="background", stop_ns=end_ns)] if self.background else []
        for number in range(1, self.count + 1):
            for source in sources:
                start_ns = number * self.interval_ns + setting.rng.randint(0, self.jitter_ns)
                incast = (number & 0xFFFF, sources) if self.announced else None
                flows.append(Flow(source, 0, self.size_bytes, start_ns, group="incast", qp="incasts", incast=incast))
        flows.sort(key=lambda flow: flow.start_ns)
        return Traffic(flows)
