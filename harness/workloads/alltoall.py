"""All-to-all: every host sends to every other, a limited number at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Annotated, Any

from pydantic import Field

from harness.workloads.base import Flow, Setting, Size, Traffic, WorkloadParameters, expect_hosts, register


@register("alltoall")
class AllToAll(WorkloadParameters):
    """Host i sends to i+1, i+2, ... (modulo `hosts`), with `window` transfers unacknowledged at any time."""

    hosts: Annotated[int, Field(ge=2)] | None = None  # number of hosts that take part; none: all
    size_bytes: Size = 100_000  # bytes that each host sends to each other host
    window: Annotated[int, Field(ge=1)] = 4  # unacknowledged transfers of a host at a time

    def generate(self, setting: Setting) -> Traffic:
        hosts = setting.hosts if self.hosts is None else self.hosts
        expect_hosts("hosts", hosts, setting)
        return _WindowedAllToAll(hosts, self.size_bytes, min(self.window, hosts - 1))


class _WindowedAllToAll(Traffic):
    def __init__(self, hosts: int, size_bytes: int, window: int) -> None:
        self._hosts = hosts
        self._size_bytes = size_bytes
        self._next_step = [window + 1] * hosts
        self._left = hosts * (hosts - 1)
        self._last_ns = 0  # time of the last completion
        super().__init__([self._flow(i, step, 0) for step in range(1, window + 1) for i in range(hosts)])

    def _flow(self, source: int, step: int, start_ns: int) -> Flow:
        return Flow(source, (source + step) % self._hosts, self._size_bytes, start_ns, group="alltoall")

    @property
    def local(self) -> bool:
        return True

    @property
    def flow_bytes(self) -> int:
        return self._hosts * (self._hosts - 1) * self._size_bytes

    def on_completed(self, flow: Flow, now_ns: int) -> Iterable[Flow]:
        self._left -= 1
        self._last_ns = max(self._last_ns, now_ns)
        step = self._next_step[flow.source]
        if step == self._hosts:
            return ()
        self._next_step[flow.source] += 1
        return (self._flow(flow.source, step, now_ns),)

    def part(self, owns: Callable[[int], bool]) -> tuple[int, int]:
        return self._hosts * (self._hosts - 1) - self._left, self._last_ns

    def join(self, part: tuple[int, int]) -> None:
        completed, last_ns = part
        self._left -= completed
        self._last_ns = max(self._last_ns, last_ns)

    def summary(self) -> dict[str, Any]:
        return {"job_completion_ns": None if self._left else self._last_ns}
