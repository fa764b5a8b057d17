"""Smallest world for tests (`p4cc.testing`): two NICs and a link with rate, delay and faults."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from host_agents import wire
from host_agents.config import NicConfig
from host_agents.nic import Nic
from host_agents.qp import QueuePair
from host_agents.registry import resolve, resolve_load_balancer
from host_agents.timers import NEVER


@dataclass
class Trouble:
    """Faults of the link, each with a probability; `seed` determines when they happen."""

    loss: float = 0.0
    duplicate: float = 0.0
    reorder: float = 0.0
    reorder_ns: int = 5_000
    seed: int = 1


@dataclass(order=True)
class _Event:
    time_ns: int
    order: int
    action: Callable[[int], None] = field(compare=False)


# Called with each frame at its arrival. It returns the frame, a changed frame, or None to drop it.
Hook = Callable[[int, bytes], bytes | None]


class Wire:
    """Full-duplex link between two NICs.

    `hook` may change, drop or record frames.
    """

    def __init__(
        self, a: Nic, b: Nic, *, delay_ns: int = 1_000, trouble: Trouble | None = None, hook: Hook | None = None
    ) -> None:
        self.nics = (a, b)
        self.delay_ns = delay_ns
        self.trouble = trouble or Trouble()
        self.hook = hook
        self.now_ns = 0
        self.sent: list[tuple[int, int, bytes]] = []  # (time, sender, frame) of every frame put on the link
        self._random = random.Random(self.trouble.seed)
        self._events: list[_Event] = []
        self._order = 0
        self._free_ns = [0, 0]
        self._planned_ns = [NEVER, NEVER]

    def run(self, until_ns: int) -> None:
        """Run everything up to and including `until_ns`."""
        for side in (0, 1):
            self._plan(side)
        while self._events and self._events[0].time_ns <= until_ns:
            event = heapq.heappop(self._events)
            self.now_ns = event.time_ns
            event.action(event.time_ns)
        self.now_ns = until_ns

    def _at(self, time_ns: int, action: Callable[[int], None]) -> None:
        self._order += 1
        heapq.heappush(self._events, _Event(time_ns, self._order, action))

    def _plan(self, side: int) -> None:
        """Schedule the next request for a frame of `side`, when it has one and its link is free."""
        due = max(self.nics[side].next_wakeup_ns(), self._free_ns[side], self.now_ns)
        if due < self._planned_ns[side]:
            self._planned_ns[side] = due
            self._at(due, lambda now: self._poll(side, now))

    def _poll(self, side: int, now_ns: int) -> None:
        if self._planned_ns[side] == now_ns:
            self._planned_ns[side] = NEVER
        if now_ns >= self._free_ns[side]:
            frame = self.nics[side].next_frame(now_ns)
            if frame is not None:
                nic = self.nics[side]
                if nic.config.check_icrc:
                    frame = wire.materialize(frame)  # ICRCs need whole frames
                busy_ns = -(-wire.wire_bytes(frame) * 8_000_000_000 // nic.config.line_rate_bps)
                self._free_ns[side] = now_ns + busy_ns
                self.sent.append((now_ns, side, frame))
                self._carry(side, now_ns + busy_ns + self.delay_ns, frame)
        self._plan(side)

    def _carry(self, side: int, arrival_ns: int, frame: bytes) -> None:
        trouble, chance = self.trouble, self._random
        copies = 2 if chance.random() < trouble.duplicate else 1
        for _ in range(copies):
            if chance.random() < trouble.loss:
                continue
            delay_ns = chance.randrange(trouble.reorder_ns) if chance.random() < trouble.reorder else 0
            self._at(arrival_ns + delay_ns, lambda now: self._arrive(1 - side, now, frame))

    def _arrive(self, side: int, now_ns: int, frame: bytes) -> None:
        arrived = frame if self.hook is None else self.hook(now_ns, frame)
        if arrived is not None:
            self.nics[side].receive(now_ns, arrived)
            self._plan(side)


def pair(
    protocol: str = "none",
    parameters: Mapping[str, Any] | None = None,
    *,
    load_balancer: str = "ecmp",
    line_rate_bps: int = 100_000_000_000,
    base_rtt_ns: int = 8_000,
    **config: Any,
) -> tuple[Nic, Nic]:
    """Return two NICs, 10.0.0.2 and 10.0.0.3, with the same configuration."""
    chosen = resolve(protocol, parameters)
    balancer = resolve_load_balancer(load_balancer)

    def nic(address: str) -> Nic:
        return Nic(NicConfig(address, line_rate_bps, base_rtt_ns, **config), chosen, balancer)

    return nic("10.0.0.2"), nic("10.0.0.3")


def connect(a: Nic, b: Nic, qpn: int = 1, **options: Any) -> tuple[QueuePair, QueuePair]:
    """Open a queue pair from `a` to `b`, and its peer; both have the number `qpn`."""
    return (
        a.open_qp(b.config.address, qpn, qpn, **options),
        b.open_qp(a.config.address, qpn, qpn, **options),
    )


def trimmed(frame: bytes) -> bytes:
    """Return a data frame whose payload a switch removed: headers up to and including the BTH."""
    out = bytearray(frame[: wire.AFTER_BTH])
    out[wire.TOTAL_LENGTH : wire.TOTAL_LENGTH + 2] = wire.OVERHEAD_BYTES.to_bytes(2, "big")
    out[wire.UDP_LENGTH : wire.UDP_LENGTH + 2] = (wire.OVERHEAD_BYTES - wire.IPV4_BYTES).to_bytes(2, "big")
    out[wire.BTH] = wire.TRIMMED
    return wire.checksummed(out)
