"""Program of a host in collectives, step by step. Hosts of a group interact through frames only.

A step is a collective operation on a whole vector (`all_reduce` ...), in packets of 128 bytes. The
initiators divide the vector: each one reads the reduction of its slice over all members, writes it
to all members, or both. A step ends for a host when its own operations are answered and it has
received the writes of others. Other hosts may not have received theirs, so there has to be a
barrier before a step that reads data written by an earlier step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from host_agents import wire
from host_agents.assignments import (
    ALL_GATHER,
    ALL_REDUCE,
    BARRIER,
    BROADCAST,
    PUSHED_ALL_REDUCE,
    RANDOM,
    REDUCE,
    STEPS,
    UNICAST_RANDOM,
    UNICAST_READ,
    Joining,
    Step,
)
from host_agents.collective.engine import Engine, Membership
from host_agents.collective.injection import PUSH, READ, UNICAST, WRITE
from host_agents.collective.operations import Operation, OperationOwner, Stream
from host_agents.collective.packets import ADDRESS_UNIT_BYTES, OPERATORS, PAYLOAD_BYTES
from host_agents.errors import HostError
from host_agents.timers import Timer

_READING: Final = (ALL_REDUCE, REDUCE)
_WRITING: Final = (BROADCAST, ALL_GATHER, BARRIER)
_PER_UNIT: Final = PAYLOAD_BYTES // ADDRESS_UNIT_BYTES


class Program(OperationOwner):
    """Steps of one host.

    `on_end` is called after the last one, at the NIC's time.
    """

    def __init__(self, engine: Engine, on_end: Callable[[int], object]) -> None:
        self.engine = engine
        self.ended_ns = -1
        self._on_end = on_end
        self.memberships: dict[int, Membership] = {}  # by group
        # By group: for each initiator, the number of writes in all steps so far.
        self._expected: dict[int, list[int]] = {}
        self._steps: Sequence[Step] = ()
        self._place = -1  # index of the current or next step
        self._open = 0  # number of its unanswered operations
        self._running = False
        engine.on_write = self._on_write
        self._timer = Timer(engine.timers, self)

    def join(self, joining: Joining) -> None:
        """Join a group.

        Raises HostError if this host is already in a group with this number.
        """
        self.memberships[joining.number] = self.engine.join(joining)
        self._expected[joining.number] = [joining.first_sequence] * joining.members

    def start(self, steps: Sequence[Step], at_ns: int) -> None:
        """Execute steps from `at_ns` on, after earlier ones.

        Raises HostError for impossible steps.
        """
        for step in steps:
            self._check(step)
        self._steps = steps
        self._place = -1
        self.ended_ns = -1
        self._advance(at_ns)

    def on_timer(self, now_ns: int, timer: Timer) -> None:
        self._running = True
        self._open = 1  # one for the step itself, so that it does not end before everything is posted
        self._carry_out(now_ns, self._steps[self._place])
        self._close(now_ns)

    def on_answered(self, now_ns: int, operation: Operation) -> None:
        step = self._steps[self._place]
        memory = self.engine.memory
        kind = operation.stream.kind
        if memory is not None and kind != WRITE:
            result = operation.result
            memory.write(operation.address, result if step.group == UNICAST else memory.numbers(result))
        if step.kind == ALL_REDUCE and kind == READ:
            self._post(
                now_ns, self.memberships[step.group].streams[WRITE], step, operation.address, operation.size_bytes
            )
        self._close(now_ns)

    # Steps

    def _check(self, step: Step) -> None:
        if step.kind not in STEPS:
            raise HostError(f"collective step {step.kind!r}: expected one of: {', '.join(STEPS)}")
        if step.operator not in OPERATORS:
            raise HostError(f"operator {step.operator!r}: expected one of: {', '.join(OPERATORS)}")
        if step.group == UNICAST:
            if not step.peer:
                raise HostError(f"collective step {step.kind!r}: expected a group or a peer")
        elif step.group not in self.memberships:
            raise HostError(f"collective step {step.kind!r}: this host is not in group {step.group}")
        elif self.memberships[step.group].push != (step.kind == PUSHED_ALL_REDUCE):
            raise HostError(
                f"collective step {step.kind!r}: group {step.group} is for pushes, or the step is, not both"
            )
        elif any(not 0 <= rank < self.memberships[step.group].members for rank in step.initiators):
            raise HostError(f"collective step {step.kind!r}: an initiator that is not a member of group {step.group}")

    def _advance(self, now_ns: int) -> None:
        self._running = False
        self._place += 1
        if self._place < len(self._steps):
            self._timer.arm(now_ns + self._steps[self._place].idle_ns)
        else:
            self.ended_ns = now_ns
            self._on_end(now_ns)

    def _carry_out(self, now_ns: int, step: Step) -> None:
        """Post the operations of a step."""
        if step.group == UNICAST:
            self._unicast(now_ns, step)
            return
        membership = self.memberships[step.group]
        packets = 1 if step.kind == BARRIER else -(-step.size_bytes // PAYLOAD_BYTES)
        if step.kind == PUSHED_ALL_REDUCE:
            for packet in range(packets):
                self._post_packet(now_ns, membership.streams[PUSH], step, packet)
            return
        initiators = step.initiators or tuple(range(membership.members))
        each = packets if step.kind in (BARRIER, RANDOM) else -(-packets // len(initiators))
        for place in range(len(initiators)):
            rank = initiators[place]
            first = 0 if step.kind in (BARRIER, RANDOM) else place * each
            count = each if step.kind in (BARRIER, RANDOM) else max(0, min(each, packets - first))
            if step.kind in _WRITING or step.kind == ALL_REDUCE:
                self._expected[step.group][rank] += count
            if rank == membership.rank:
                for packet in range(first, first + count):
                    kind = READ if step.kind in _READING else WRITE
                    if step.kind == RANDOM and self.engine.coin():
                        kind = READ
                    self._post_packet(now_ns, membership.streams[kind], step, packet)

    def _unicast(self, now_ns: int, step: Step) -> None:
        peer = wire.parse_address(step.peer)
        for packet in range(-(-step.size_bytes // PAYLOAD_BYTES)):
            kind = READ if step.kind == UNICAST_READ else WRITE
            if step.kind == UNICAST_RANDOM and self.engine.coin():
                kind = READ
            self._post_packet(now_ns, self.engine.stream(kind, peer), step, packet)

    def _post_packet(self, now_ns: int, stream: Stream, step: Step, packet: int) -> None:
        size_bytes = 0 if step.kind == BARRIER else min(PAYLOAD_BYTES, step.size_bytes - packet * PAYLOAD_BYTES)
        self._post(now_ns, stream, step, step.address + packet * _PER_UNIT, size_bytes)

    def _post(self, now_ns: int, stream: Stream, step: Step, address: int, size_bytes: int) -> None:
        self._open += 1
        self.engine.post(self.engine.operation(stream, address, size_bytes, OPERATORS[step.operator], self, now_ns))

    def _close(self, now_ns: int) -> None:
        """Decrease the number of operations to wait for."""
        self._open -= 1
        self._end_step(now_ns)

    def _on_write(self, now_ns: int, membership: Membership) -> None:
        self._end_step(now_ns)

    def _end_step(self, now_ns: int) -> None:
        """End the step if nothing is left to wait for."""
        if not self._running or self._open > 0:
            return
        step = self._steps[self._place]
        if step.group != UNICAST and step.kind != RANDOM:
            membership = self.memberships[step.group]
            expected = self._expected[step.group]
            for rank in range(membership.members):
                if membership.writes_before(rank) < expected[rank]:
                    return
        self._advance(now_ns)
