"""Multicast: one host sends the same bytes to many hosts, and switches replicate them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from harness.workloads.base import Flow, Setting, Size, Time, Traffic, WorkloadParameters, expect_hosts, register


@register("multicast")
class Multicast(WorkloadParameters):
    """Multicasts from hosts 0 to `senders` - 1, each a message to the next `receivers` hosts.

    By default the receivers are all other hosts.
    """

    senders: Annotated[int, Field(ge=1)] = 1  # number of senders, each with a group of its own
    # Number of receivers of each sender; none: all other hosts.
    receivers: Annotated[int, Field(ge=1)] | None = None
    size_bytes: Size = 1_000_000  # size of each message
    interval_ns: Time = 0  # time between the starts of two senders

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
