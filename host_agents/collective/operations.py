"""Operations of an initiator, their numbers, and the record of those that a member has seen."""

from __future__ import annotations

from host_agents.collective.packets import tree_of
from host_agents.timers import TimerOwner

NOT_YET = -1


class OperationOwner(TimerOwner):
    """Owner of operations, which posts them."""

    def on_answered(self, now_ns: int, operation: Operation) -> None:
        """Handle the completion of an operation: all members have answered.

        After a read, `operation.result` has the reduced data, encoded as lanes.
        """
        raise NotImplementedError


class Operation:
    """Read reduction, multicast write, pushed contribution, or a unicast operation.

    Times are in ns, -1: not yet.
    """

    def __init__(
        self,
        stream: Stream,
        address: int,
        size_bytes: int,
        operator: int,
        owner: OperationOwner,
        posted_ns: int,
        lanes: bytes = b"",
    ) -> None:
        self.stream = stream
        self.address = address  # in units of 16 bytes
        self.size_bytes = size_bytes
        self.operator = operator
        self.owner = owner
        self.lanes = lanes  # lanes to be sent
        self.result = b""
        self.overflow = False
        self.sequence = 0  # set when it is sent
        self.posted_ns = posted_ns
        self.sent_ns = NOT_YET  # first sending
        self.done_ns = NOT_YET
        self.repeats = 0
        self.probe = False


class Stream:
    """Numbered operations of one kind that a host initiates in a group or towards one host.

    The operation with number s uses the tree (rank + s) mod trees. Numbers are smaller than that of
    the oldest unanswered operation plus `window`, so a switch's slot is free whenever a newer
    operation uses it.
    """

    def __init__(
        self, kind: int, group: int, rank: int, addresses: list[int], first_sequence: int, window: int
    ) -> None:
        """Create a stream.

        `addresses` are those of the group on each of its trees, or the address of the host.
        """
        self.kind = kind
        self.group = group
        self.rank = rank
        self.addresses = addresses
        self.next = first_sequence
        self.oldest = first_sequence  # number of the oldest unanswered operation
        self._window = window
        self._open: dict[int, Operation] = {}  # by sequence

    def may_send(self) -> bool:
        return self.next < self.oldest + self._window

    def number(self, operation: Operation) -> None:
        """Give a number to an operation that is sent now."""
        operation.sequence = self.next
        self._open[self.next] = operation
        self.next += 1

    def take(self, sequence: int) -> Operation | None:
        """Remove and return the answered operation of this number; None if there is none."""
        operation = self._open.pop(sequence, None)
        if operation is not None and sequence == self.oldest:
            while self.oldest < self.next and self.oldest not in self._open:
                self.oldest += 1
        return operation

    def tree(self, sequence: int) -> int:
        """Return the tree of a group's operation, from 1; 0 for unicast."""
        return tree_of(self.rank, sequence, len(self.addresses)) if self.group else 0

    def unanswered(self) -> list[Operation]:
        return list(self._open.values())


class Seen:
    """Sequences of one initiator and kind that a member has seen: all before `before`, and those in a bitmap."""

    def __init__(self, first_sequence: int, window: int) -> None:
        self.before = first_sequence
        self._window = window
        self._bits = 0  # bit i: before + i

    def within(self, sequence: int) -> bool:
        """Return whether an initiator that respects its window can have sent this sequence now."""
        return self.before - self._window <= sequence < self.before + self._window

    def note(self, sequence: int) -> bool:
        """Record a sequence; return whether it is new."""
        ahead = sequence - self.before
        if ahead < 0 or self._bits >> ahead & 1:
            return False
        self._bits |= 1 << ahead
        while self._bits & 1:
            self._bits >>= 1
            self.before += 1
        return True
