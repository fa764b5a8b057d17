"""Base of the walk of one packet, and of its copies, through the blocks of a package."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

import z3

from p4switch.architectures.ports import MAX_PORT
from p4switch.testgen.run import LongerError, StopError
from p4switch.testgen.values import Scalar

if TYPE_CHECKING:
    from p4switch.testgen.machine import Machine

MAX_PASSES = 5
"""Maximum number of times that a packet is parsed again."""


class Walk(ABC):
    """Walk through `machine`. `waiting` are the remaining steps, in order."""

    port_bits: ClassVar[int] = 9

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.waiting: deque[Callable[[], None]] = deque()

    @abstractmethod
    def arrive(self, data: list[Scalar]) -> None:
        """Add the first step of a packet that arrives."""

    def run(self, data: list[Scalar]) -> None:
        """Run an arriving packet through the switch."""
        self.arrive(data)
        while self.waiting:
            self.machine.passes += 1
            if self.machine.passes > MAX_PASSES * 4:
                raise StopError(f"more than {MAX_PASSES} passes of the pipeline")
            self.waiting.popleft()()

    def port(self, name: str) -> Scalar:
        """Return the number of a port, which is an input."""
        port = self.machine.input(name, self.port_bits, lambda rng: rng.randrange(1, 8))
        below = None if port.formula is None else z3.ULE(port.formula, MAX_PORT)
        self.machine.require(Scalar(int(port.number <= MAX_PORT), below))
        return port

    def session(self, number: int) -> int:
        """Return the port of a clone or mirror session. The test chooses it."""
        port = self.port(f"session {number}")
        self.machine.out.sessions[number] = self.machine.pin(port)
        return port.number

    def replicas(self, group: int) -> list[tuple[int, Scalar]]:
        """Return the ports of a multicast group, each with its replication id. The test chooses them."""
        m = self.machine
        if group > 0xFFFF:
            raise StopError("a multicast group above 65535")
        members: list[tuple[int, Scalar]] = []
        for i in range(2):
            port = self.port(f"group {group} port {i}")
            rid = m.input(f"group {group} rid {i}", 16, _small)
            members.append((m.pin(port), rid))
        if members[0][0] == members[1][0]:
            m.inputs.numbers[f"group {group} port 1"] = members[0][0] % 8 + 1
            raise LongerError(m.inputs.numbers["len"])
        m.out.groups[group] = [(port, rid.number) for port, rid in members]
        return members

    @staticmethod
    def marks() -> Any:
        """Return an empty set of requests of externs."""
        return None

    @abstractmethod
    def loaded(self, header: str, name: str) -> None:
        """Record that the program reads a metadata field, so that the test has to set its value."""

    @abstractmethod
    def wrong_checksum(self, wrong: Scalar) -> None:
        """Set the program's flag for a wrong checksum."""


def _small(rng: random.Random) -> int:
    return rng.randrange(4)
