"""Multicast: one host sends the same bytes to many, which the switches copy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from harness.workloads.base import Flow, Setting, Size, Time, Traffic, WorkloadParameters, expect_hosts, register


@register("multicast")
class Multicast(WorkloadParameters):
    """Hosts 0 to `senders` - 1 send a message to `receivers` hosts each, those after them; None: to all others."""

    senders: Annotated[int, Field(ge=1)] = 1  # how many hosts send, each to a group of its own
    receivers: Annotated[int, Field(ge=1)] | None = None  # of each sender; none: all other hosts
    size_bytes: Size = 1_000_000  # of each message
    interval_ns: Time = 0  # between the starts of two senders

    def generate(self, setting: Setting) -> Traffic:
        return Traffic(
            [
                Flow(
                    source,
                    first,
                    self.size_bytes,
                    source * self.interval_ns,
                    group="multicast",
                    further_destinations=tuple(further),
                )
                for source, (first, *further) in self._transfers(setting)
            ]
        )

    def groups(self, setting: Setting) -> Sequence[tuple[int, tuple[int, ...]]]:
        return [(source, receivers) for source, receivers in self._transfers(setting) if len(receivers) > 1]

    def _transfers(self, setting: Setting) -> list[tuple[int, tuple[int, ...]]]:
        expect_hosts("senders", self.senders, setting)
        receivers = setting.hosts - 1 if self.receivers is None else self.receivers
        expect_hosts("receivers", receivers + 1, setting)
        return [
            (source, tuple((source + step) % setting.hosts for step in range(1, receivers + 1)))
            for source in range(self.senders)
        ]
