"""What an engine for collectives is told: how its NIC queues, answers and numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from host_agents.errors import ParameterError

FIFO: Final = "fifo"
RANDOM: Final = "random"
LEAST_RECENT: Final = "least_recent"
ROUND_ROBIN: Final = "round_robin"
SEPARATE: Final = "separate"
SHARED: Final = "shared"
MAX_FIRST_SEQUENCE: Final = 1 << 30


@dataclass(frozen=True)
class CollectiveConfig:
    """Raises ParameterError. A cycle is 16 bytes at link rate; a sequence number of an operation stays below that of
    the initiator's oldest unanswered one plus `window`, in each group (or towards each host) and of each kind.
    """

    window: int = 128  # a power of two: switches have that many slots for an initiator
    first_sequence: int = 1
    data: bool = False  # packets carry lanes, and members have memory; else all lanes are zeros and left out
    memory_cycles: int = 180  # until a read is answered
    response_order: str = FIFO  # which of the responses that wait goes next
    arbiter: str = LEAST_RECENT  # which queue goes next (thesis, 6.2.5)
    injection_queues: str = SEPARATE  # of reads and writes
    request_priority: int = 3
    response_priority: int = 4
    fraction_bits: int = -1  # of float32 numbers as fixed point; below 0: numbers are integers

    def __post_init__(self) -> None:
        if self.window < 1 or self.window & (self.window - 1):
            raise ParameterError(f"window {self.window}: expected a power of two")
        for name, low, high in (
            ("first_sequence", 1, MAX_FIRST_SEQUENCE),
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
