"""What an engine for collectives is told: how its NIC queues, answers and numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from host_agents.collective.packets import MAX_GROUPS, MAX_TREES
from host_agents.errors import ParameterError

FIFO: Final = "fifo"
RANDOM: Final = "random"
LEAST_RECENT: Final = "least_recent"
ROUND_ROBIN: Final = "round_robin"
SEPARATE: Final = "separate"
SHARED: Final = "shared"
UNICAST_WINDOW: Final = 128  # operations towards one host, as in a group whose window is not said


@dataclass(frozen=True)
class Joining:
    """A group that a host is in, with this rank.

    An operation's sequence number stays below that of the initiator's oldest unanswered one of its kind plus `window`,
    a power of two: a switch has that many slots for an initiator. A `push` group is one for pushed contributions, and
    for nothing else. Raises ParameterError.
    """

    number: int
    members: int
    rank: int
    trees: int
    window: int = UNICAST_WINDOW
    first_sequence: int = 1
    push: bool = False

    def __post_init__(self) -> None:
        if self.window < 1 or self.window & (self.window - 1):
            raise ParameterError(f"group {self.number}: window {self.window}; expected a power of two")
        for name, low, high in (
            ("number", 1, MAX_GROUPS),
            ("members", 1, 1 << 16),
            ("rank", 0, self.members - 1),
            ("trees", 1, MAX_TREES),
            ("first_sequence", 1, 1 << 30),
        ):
            value = getattr(self, name)
            if not low <= value <= high:
                raise ParameterError(f"group {self.number}: {name} {value}; expected {low} to {high}")


@dataclass(frozen=True)
class CollectiveConfig:
    """Raises ParameterError. A cycle is 16 bytes at link rate."""

    data: bool = False  # packets carry lanes, and members have memory; else all lanes are zeros and left out
    memory_cycles: int = 180  # until a read is answered
    response_order: str = FIFO  # which of the responses that wait goes next
    arbiter: str = LEAST_RECENT  # which queue goes next (thesis, 6.2.5)
    injection_queues: str = SEPARATE  # of reads and writes
    request_priority: int = 3
    response_priority: int = 4
    fraction_bits: int = -1  # of float32 numbers as fixed point; below 0: numbers are integers

    def __post_init__(self) -> None:
        for name, low, high in (
            ("memory_cycles", 0, 1 << 30),
            ("request_priority", 0, 7),
            ("response_priority", 0, 7),
            ("fraction_bits", -1, 30),
        ):
            value = getattr(self, name)
            if not low <= value <= high:
                raise ParameterError(f"{name} {value}: expected {low} to {high}")
        for name, allowed in (
            ("response_order", (FIFO, RANDOM)),
            ("arbiter", (LEAST_RECENT, ROUND_ROBIN)),
            ("injection_queues", (SEPARATE, SHARED)),
        ):
            if getattr(self, name) not in allowed:
                raise ParameterError(f"{name} {getattr(self, name)!r}: expected one of: {', '.join(allowed)}")
