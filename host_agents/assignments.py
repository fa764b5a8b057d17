"""Assignments of hosts for collectives: groups, steps, and how the NIC queues and answers.

This module is not compiled, because workloads use it before the compiled hosts are in place.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from host_agents.errors import ParameterError

MAX_GROUPS: Final = 0xFFFF
MAX_TREES: Final = 255
FIFO: Final = "fifo"
RANDOM_ORDER: Final = "random"
LEAST_RECENT: Final = "least_recent"
ROUND_ROBIN: Final = "round_robin"
SEPARATE: Final = "separate"
SHARED: Final = "shared"
UNICAST_WINDOW: Final = 128  # window of operations towards one host, and in groups that set no window


@dataclass(frozen=True)
class Joining:
    """Membership of a host in a group, with its rank.

    `window`, a power of two, is the number of slots that a switch has for an initiator. An
    initiator sends an operation only if its sequence number is less than that of the oldest
    unanswered operation of the same kind, plus `window`. A `push` group is only for pushed
    contributions. Raises ParameterError for a number that is out of its range.
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
    """Configuration of collectives on one NIC. A cycle is 16 bytes at link rate.

    Raises ParameterError for a value that is out of its range or unknown.
    """

    memory_cycles: int = 180  # time from a read's arrival until its answer is ready
    response_order: str = FIFO  # choice among waiting responses
    arbiter: str = LEAST_RECENT  # choice among queues (thesis, 6.2.5)
    injection_queues: str = SEPARATE  # whether reads and writes have separate queues
    request_priority: int = 3
    response_priority: int = 4
    fraction_bits: int = -1  # fixed-point representation of float32 numbers; below 0: numbers are integers

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
            ("response_order", (FIFO, RANDOM_ORDER)),
            ("arbiter", (LEAST_RECENT, ROUND_ROBIN)),
            ("injection_queues", (SEPARATE, SHARED)),
        ):
            if getattr(self, name) not in allowed:
                raise ParameterError(f"{name} {getattr(self, name)!r}: expected one of: {', '.join(allowed)}")


# Kinds of steps.
ALL_REDUCE: Final = "all_reduce"
REDUCE: Final = "reduce"  # each initiator reduces its slice
BROADCAST: Final = "broadcast"
ALL_GATHER: Final = "all_gather"
BARRIER: Final = "barrier"
# Each operation is a read or a write with equal probability; hosts do not wait for others' writes.
RANDOM: Final = "random"
UNICAST_READ: Final = "unicast_read"
UNICAST_WRITE: Final = "unicast_write"
UNICAST_RANDOM: Final = "unicast_random"
PUSHED_ALL_REDUCE: Final = "pushed_all_reduce"  # contributions are sent unrequested, and results go to all members
STEPS: Final = (
    ALL_REDUCE, REDUCE, BROADCAST, ALL_GATHER, BARRIER, RANDOM, UNICAST_READ, UNICAST_WRITE, UNICAST_RANDOM,
    PUSHED_ALL_REDUCE,
)  # fmt: skip


@dataclass(frozen=True)
class Step:
    """Step of a host's program.

    `initiators` are ranks, in order of their slices; none means all members. A unicast step names
    the address of its `peer`. In steps of kind `random` and `barrier` each initiator uses the whole
    vector. No host waits for the writes of `random` steps.
    """

    kind: str
    group: int = 0  # 0: unicast
    size_bytes: int = 0  # size of the vector
    address: int = 0  # start of the vector in each member's memory, in units of 16 bytes
    operator: str = "sum"
    initiators: tuple[int, ...] = ()
    peer: str = ""
    idle_ns: int = 0  # pause before the step


@dataclass(frozen=True)
class Assignment:
    """Assignment of a host before a run: its groups, its steps from `start_ns` on, and the contents of its memory.

    Without `contents`, packets carry no data, but their lengths on the wire stay the same. `peers`
    are the addresses of the hosts whose unicast operations this host answers.
    """

    config: CollectiveConfig
    joinings: tuple[Joining, ...]
    steps: tuple[Step, ...]
    start_ns: int = 0
    contents: bytes | None = None
    peers: tuple[str, ...] = ()
