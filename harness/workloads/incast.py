"""N to 1 with staggered starts: the incast of the VAI/SF paper (16 to 1, two flows of 1 MB start every 20 us)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from harness.workloads.base import Flow, Setting, Size, Time, Traffic, WorkloadParameters, expect_hosts, register


@register("incast")
class Incast(WorkloadParameters):
    """Incast from `senders` hosts to host 0.

    The senders are taken in the order of their addresses or drawn at random; by default they are
    all other hosts.
    """

    senders: Annotated[int, Field(ge=1)] | None = None  # number of senders; none: all other hosts
    order: Literal["addresses", "random"] = "addresses"  # order in which hosts start
    size_bytes: Size = 1_000_000  # size of each flow
    starts_together: Annotated[int, Field(ge=1)] = 2  # number of flows that start at the same time
    interval_ns: Time = 20_000  # time from one start to the next
    announced: bool = False  # senders know of the incast and its senders

    def generate(self, setting: Setting) -> Traffic:
        senders = setting.hosts - 1 if self.senders is None else self.senders
        expect_hosts("senders", senders + 1, setting)
        sources = list(range(1, setting.hosts))
        if self.order == "random":
            setting.rng.shuffle(sources)
        members = tuple(sources[:senders])
        incast = (1, members) if self.announced else None
        return Traffic(
            [
                Flow(
                    source,
                    0,
                    self.size_bytes,
                    i // self.starts_together * self.interval_ns,
                    group="incast",
                    incast=incast,
                )
                for i, source in enumerate(members)
            ]
        )
