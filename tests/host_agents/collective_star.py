"""Stand-in for a switch that reduces and replicates, to test hosts: NICs, links with loss, duplicates, reordering.

It works on whole frames of operations, in plain Python; the switches' own program is tested in tests/p4src.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from host_agents import wire
from host_agents.assignments import CollectiveConfig, Joining, Step
from host_agents.collective.packets import (
    ACKNOWLEDGEMENT,
    CONTRIBUTION,
    HEADER,
    LANES_HEADER,
    OPERATORS,
    PUSH,
    READ,
    RESULT,
    WRITE,
)
from host_agents.collective.program import Program
from host_agents.config import NicConfig
from host_agents.nic import Nic
from host_agents.registry import resolve, resolve_load_balancer
from host_agents.timers import NEVER

GROUP = 1
DELAY_NS = 300
LANES = slice(wire.AFTER_BTH + HEADER.size_bytes, wire.AFTER_BTH + HEADER.size_bytes + LANES_HEADER.size_bytes)
_NUMPY = dict(
    zip(
        OPERATORS.values(), (np.add, np.minimum, np.maximum, np.bitwise_and, np.bitwise_or, np.bitwise_xor), strict=True
    )
)


@dataclass
class Trouble:
    """Probabilities of faults, each for every frame on a link."""

    loss: float = 0.0
    duplicate: float = 0.0
    late: float = 0.0
    seed: int = 1


def nics(
    count: int,
    cc: str = "collective-none",
    rto_ns: int = 100_000,
    parameters: Mapping[str, object] | None = None,
) -> list[Nic]:
    protocol, balancer = resolve(cc, parameters), resolve_load_balancer("ecmp")
    return [
        Nic(
            NicConfig(
                address=f"10.0.0.{host + 2}", line_rate_bps=200_000_000_000, base_rtt_ns=1_000, rto_ns=rto_ns, seed=7
            ),
            protocol,
            balancer,
        )
        for host in range(count)
    ]


def programs(
    hosts: Sequence[Nic],
    steps: Sequence[Step],
    *,
    contents: Sequence[bytes] = (),
    config: CollectiveConfig | None = None,
    window: int = 8,
    push: bool = False,
) -> list[Program]:
    """Return programs of the steps for hosts that are all in one group."""
    made = []
    for rank, nic in enumerate(hosts):
        engine = nic.open_collectives(config or CollectiveConfig(), contents[rank] if contents else None)
        for other in hosts:
            engine.accept(other.address)
        program = Program(engine, lambda _: None)
        program.join(Joining(GROUP, len(hosts), rank, 3, window, push=push))
        program.start(steps, 0)
        made.append(program)
    return made


class Star:
    """NICs around one switch. `seen` has every frame that a host sent; a link takes the frame's time and `DELAY_NS`."""

    def __init__(self, hosts: Sequence[Nic], trouble: Trouble | None = None) -> None:
        self.hosts = hosts
        self.seen: list[tuple[int, int, bytes]] = []  # (time, host, frame)
        self.now_ns = 0
        self._trouble = trouble or Trouble()
        self._random = random.Random(self._trouble.seed)
        self._slots: dict[tuple[int, int, int], tuple[set[int], np.ndarray | None]] = {}
        self._events: list[tuple[int, int, int, bytes | None]] = []  # (time, order, host; -1: the switch, frame)
        self._order = 0
        self._free_ns = [0] * len(hosts)

    def run(self, until_ns: int = 50_000_000) -> None:
        while True:
            due = [max(nic.next_wakeup_ns(), free) for nic, free in zip(self.hosts, self._free_ns, strict=True)]
            host = min(range(len(due)), key=due.__getitem__)
            first = self._events[0][0] if self._events else NEVER
            if min(due[host], first) > until_ns:
                return
            if first <= due[host]:
                self.now_ns, _, target, frame = heapq.heappop(self._events)
                assert frame is not None
                if target < 0:
                    self._at_switch(-target - 1, frame)
                else:
                    self.hosts[target].receive(self.now_ns, frame)
                continue
            self.now_ns = max(self.now_ns, due[host])
            sent = self.hosts[host].next_frame(self.now_ns)
            if sent is not None:
                self.seen.append((self.now_ns, host, sent))
                self._free_ns[host] = self.now_ns + -(-(wire.wire_bytes(sent) - 58) * 8 // 200)
                self._carry(-host - 1, sent, self._free_ns[host])
            else:
                assert self.hosts[host].next_wakeup_ns() > self.now_ns, (
                    "a host that wants to be asked, and says nothing"
                )

    def _carry(self, target: int, frame: bytes, at_ns: int) -> None:
        trouble, rng = self._trouble, self._random
        for _ in range(2 if rng.random() < trouble.duplicate else 1):
            if rng.random() >= trouble.loss:
                late_ns = rng.randrange(5_000) if rng.random() < trouble.late else 0
                self._order += 1
                heapq.heappush(self._events, (at_ns + DELAY_NS + late_ns, self._order, target, frame))

    def _at_switch(self, host: int, frame: bytes) -> None:
        header = HEADER.decode(frame, wire.AFTER_BTH)
        opcode = frame[wire.BTH]
        if header["group"] == 0:
            destination = int.from_bytes(frame[wire.DESTINATION : wire.DESTINATION + 4], "big")
            self._send([nic.address for nic in self.hosts].index(destination), frame)
            return
        if opcode in (WRITE, READ):
            key = (int(opcode == READ), header["rank"], header["sequence"])
            heard = self._slots.setdefault(key, (set(), None))[0]
            for member in range(len(self.hosts)):
                if len(heard) == len(self.hosts) or member not in heard:
                    self._send(member, frame)
            return
        key = ({CONTRIBUTION: 1, ACKNOWLEDGEMENT: 0, PUSH: 2}[opcode], header["rank"], header["sequence"])
        heard, lanes = self._slots.setdefault(key, (set(), None))
        if host in heard and len(heard) != len(self.hosts):
            return
        if host not in heard:
            if opcode != ACKNOWLEDGEMENT and len(frame) > LANES.start:
                own = np.frombuffer(frame[LANES], ">i4").astype(np.int32)
                lanes = own if lanes is None else _NUMPY[header["operator"]](lanes, own)
            heard.add(host)
            self._slots[key] = (heard, lanes)
            if len(heard) < len(self.hosts):
                return
        out = bytearray(frame)
        if lanes is not None:
            out[LANES] = lanes.astype(">i4").tobytes()
        if opcode == PUSH:
            out[wire.BTH] = RESULT
            for member in range(len(self.hosts)):
                self._send(member, bytes(out))
        else:
            self._send(header["rank"], bytes(out))

    def _send(self, member: int, frame: bytes) -> None:
        self._carry(member, frame, self.now_ns)
