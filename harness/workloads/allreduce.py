"""Ring all-reduce: 2 (n - 1) steps; in each, every host sends 1/n of the data to its successor.

A host's step s + 1 starts when it has received its predecessor's step s (it needs the data) and sent its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from harness.workloads.base import Flow, Setting, Size, Traffic, WorkloadParameters, expect_hosts, register
from topologies import Host


@register("allreduce")
class RingAllReduce(WorkloadParameters):
    """Ring all-reduce.

    `size_bytes` is the vector that every host contributes. The ring's order is that of the
    addresses, random, or a host of each rack in turn. Several rings have the same order, but
    separate queue pairs.
    """

    hosts: Annotated[int, Field(ge=2)] | None = None  # number of hosts that take part; none: all
    size_bytes: Size = 4_000_000  # the vector of each host
    order: Literal["addresses", "random", "racks in turn"] = "addresses"  # order of the ring
    # Number of rings. Each has an equal part of the vector; on servers with several NICs each takes
    # another NIC.
    rings: Annotated[int, Field(ge=1, le=256)] = 1

    def generate(self, setting: Setting) -> Traffic:
        hosts = setting.hosts if self.hosts is None else self.hosts
        expect_hosts("hosts", hosts, setting)
        ring = list(range(hosts))
        if self.order == "random":
            setting.rng.shuffle(ring)
        elif self.order == "racks in turn":
            ring = _racks_in_turn(setting.topology.hosts[:hosts])
        chunk_bytes = -(-self.size_bytes // (hosts * self.rings))
        if self.rings == 1:
            return _Ring(ring, chunk_bytes)
        return _Rings([_Ring(ring, chunk_bytes, f"{number} ") for number in range(self.rings)])


def _racks_in_turn(hosts: Sequence[Host]) -> list[int]:
    seen: Counter[int] = Counter()
    turns = []
    for host in hosts:
        rack = int(host.address) >> 8
        turns.append((seen[rack], rack, host.index))
        seen[rack] += 1
    return [index for _, _, index in sorted(turns)]


class _Ring(Traffic):
    def __init__(self, ring: list[int], chunk_bytes: int, name: str = "") -> None:
        self._ring = ring
        self._name = name
        self._place = {host: i for i, host in enumerate(ring)}
        self._chunk_bytes = chunk_bytes
        self._steps = 2 * (len(ring) - 1)
        self._sent = dict.fromkeys(ring, 0)  # steps of a host that were sent and acknowledged
        self._received = dict.fromkeys(ring, 0)
        self._started = dict.fromkeys(ring, 1)
        self._last_ns = 0  # time of the last delivery
        super().__init__([self._flow(host, 0) for host in ring])

    def _flow(self, host: int, start_ns: int) -> Flow:
        successor = self._ring[(self._place[host] + 1) % len(self._ring)]
        return Flow(host, successor, self._chunk_bytes, start_ns, group="allreduce", qp=f"{self._name}ring{host}")

    @property
    def local(self) -> bool:
        return True

    @property
    def flow_bytes(self) -> int:
        return len(self._ring) * self._steps * self._chunk_bytes

    def on_delivered(self, flow: Flow, now_ns: int) -> Iterable[Flow]:
        self._received[flow.destination] += 1
        self._last_ns = max(self._last_ns, now_ns)
        return self._next(flow.destination, now_ns)

    def on_completed(self, flow: Flow, now_ns: int) -> Iterable[Flow]:
        self._sent[flow.source] += 1
        return self._next(flow.source, now_ns)

    def _next(self, host: int, now_ns: int) -> Iterable[Flow]:
        done = min(self._sent[host], self._received[host])
        if done < self._started[host] or self._started[host] == self._steps:
            return ()
        self._started[host] += 1
        return (self._flow(host, now_ns),)

    def part(self, owns: Callable[[int], bool]) -> tuple[dict[int, int], int]:
        return {host: steps for host, steps in self._received.items() if owns(host)}, self._last_ns

    def join(self, part: tuple[dict[int, int], int]) -> None:
        received, last_ns = part
        self._received |= received
        self._last_ns = max(self._last_ns, last_ns)

    def summary(self) -> dict[str, Any]:
        done = all(steps == self._steps for steps in self._received.values())
        return {"job_completion_ns": self._last_ns if done else None}


class _Rings(Traffic):
    """Several rings at once; each gets the events of its own flows, by their queue pairs."""

    def __init__(self, rings: Sequence[_Ring]) -> None:
        self._rings = rings
        self._ring_of = {flow.qp: ring for ring in rings for flow in ring.flows}
        super().__init__([flow for ring in rings for flow in ring.flows])

    @property
    def local(self) -> bool:
        return True

    @property
    def flow_bytes(self) -> int:
        return sum(ring.flow_bytes for ring in self._rings)

    def on_delivered(self, flow: Flow, now_ns: int) -> Iterable[Flow]:
        return self._ring_of[flow.qp].on_delivered(flow, now_ns)

    def on_completed(self, flow: Flow, now_ns: int) -> Iterable[Flow]:
        return self._ring_of[flow.qp].on_completed(flow, now_ns)

    def part(self, owns: Callable[[int], bool]) -> list[object]:
        return [ring.part(owns) for ring in self._rings]

    def join(self, part: list[Any]) -> None:
        for ring, own in zip(self._rings, part, strict=True):
            ring.join(own)

    def summary(self) -> dict[str, Any]:
        ends_ns = [ring.summary()["job_completion_ns"] for ring in self._rings]
        return {"job_completion_ns": None if None in ends_ns else max(ends_ns)}
