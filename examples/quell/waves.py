"""Waves: every interval some hosts, drawn at random, send to host 0 together."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from p4cc.workloads import Flow, Setting, Size, Time, Traffic, WorkloadParameters, expect_hosts, register


@register("waves")
class Waves(WorkloadParameters):
    waves: Annotated[int, Field(ge=1)] = 2
    senders: Annotated[int, Field(ge=1)] = 4
    size_bytes: Size = 1_000_000
    interval_ns: Time = 200_000

    def generate(self, setting: Setting) -> Traffic:
        expect_hosts("senders", self.senders + 1, setting)
        flows = [
            Flow(source, 0, self.size_bytes, wave * self.interval_ns, group=f"wave {wave}")
            for wave in range(self.waves)
            for source in sorted(setting.rng.sample(range(1, setting.hosts), self.senders))
        ]
        return Traffic(flows)
