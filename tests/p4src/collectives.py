"""Tools for tests of collectives: packets, a network without time, and a Python model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from control_plane import controller, programs
from control_plane.controller import Settings
from host_agents import wire
from host_agents.collective import packets
from host_agents.collective.packets import (
    ACKNOWLEDGEMENT,
    CONTRIBUTION,
    LANES,
    PUSH,
    QPN,
    READ,
    RESULT,
    SUM,
    WRITE,
    group_address,
)
from tests.p4src.rigs import BuiltinRig
from topologies import Topology
from topologies.collectives import CollectiveGroup, trees
from topologies.trees import Tree

SLOTS = 128  # slots of each switch; these groups have fewer
ANSWER_DSCP = 32  # DSCP of priority 4
WITH_LANES = (WRITE, CONTRIBUTION, PUSH, RESULT)
Lanes = tuple[int, ...]

COMBINE: dict[int, Any] = {0: np.add, 1: np.minimum, 2: np.maximum, 3: np.bitwise_and, 4: np.bitwise_or}
COMBINE[5] = np.bitwise_xor


def combined(operator: int, contributions: Iterable[Sequence[int]]) -> tuple[Lanes, Lanes]:
    """Return numpy's result for 32-bit lanes, and in 64 bits, which do not overflow here.

    Lanes are unsigned.
    """
    wide = [np.array(lanes, dtype=np.uint32).astype(np.int32).astype(np.int64) for lanes in contributions]
    exact = COMBINE[operator].reduce(np.stack(wide))
    return tuple((exact & 0xFFFFFFFF).tolist()), tuple(exact.tolist())


@dataclass(frozen=True)
class Message:
    """Packet of a collective. Its opcode determines whether it has `lanes`, unless it is cut short."""

    source: int
    destination: int
    opcode: int
    sequence: int = 1
    rank: int = 0
    operator: int = SUM
    retry: int = 0
    overflow: int = 0
    tree: int = 1
    group: int = 1
    lanes: Lanes = ()
    dscp: int = 24

    def frame(self) -> bytes:
        values = {
            name: getattr(self, name) for name in ("operator", "retry", "overflow", "tree", "group", "rank", "sequence")
        }
        body = packets.HEADER.encode({**values, "valid_bytes": 128, "address": 7})
        body += b"".join(lane.to_bytes(4, "big") for lane in self.lanes)
        start = wire.header(
            self.source, self.destination, 49152, self.opcode, QPN, after_bth_bytes=len(body), dscp=self.dscp, ecn=2
        )
        return start + (self.sequence & wire.PSN_MASK).to_bytes(4, "big") + body + bytes(wire.ICRC_BYTES)

    @staticmethod
    def of(frame: bytes) -> Message:
        """Check lengths, checksum and MAC addresses of a frame, and return its message."""
        found = packets.HEADER.decode(frame, wire.AFTER_BTH)
        opcode = frame[wire.BTH]
        start = wire.AFTER_BTH + packets.HEADER.size_bytes
        end = start + 4 * LANES if opcode in WITH_LANES else start
        source, destination = (int.from_bytes(frame[at : at + 4], "big") for at in (wire.SOURCE, wire.DESTINATION))
        assert wire.wire_bytes(frame) == len(frame) == end + wire.ICRC_BYTES
        assert int.from_bytes(frame[wire.UDP_LENGTH : wire.UDP_LENGTH + 2], "big") == len(frame) - 34
        assert wire.checksum_holds(frame)
        assert frame[:12] == wire.mac_of(destination) + wire.mac_of(source)
        assert (found["valid_bytes"], found["address"], found["reserved"]) == (128, 7, 0)
        assert wire.psn(frame) == found["sequence"] & wire.PSN_MASK
        lanes = tuple(int.from_bytes(frame[at : at + 4], "big") for at in range(start, end, 4))
        names = ("operator", "retry", "overflow", "tree", "group", "rank", "sequence")
        return Message(
            source, destination, opcode, lanes=lanes, dscp=frame[wire.TOS] >> 2, **{name: found[name] for name in names}
        )


@dataclass
class Slot:
    sequence: int = 0
    overflow: int = 0
    heard: set[int] = field(default_factory=set)  # numbers of the children whose contributions have arrived
    lanes: Lanes = (0,) * LANES


@dataclass
class Placed:
    """Position of a switch in one tree of a group."""

    group: CollectiveGroup
    children: tuple[int, ...]  # ports of the children, in order
    up: int | None
    above: tuple[int, ...]  # every port to the same switch as `up`

    @property
    def everyone(self) -> set[int]:
        return set(range(len(self.children)))


class Reference:
    """Reference of `collective.p4`, which has a slot for each group, rank and sequence modulo the window."""

    def __init__(self, topology: Topology, switch: str, groups: Sequence[CollectiveGroup]) -> None:
        self.drops: list[str] = []
        self.groups: list[CollectiveGroup] = []  # groups with a tree that contains the switch
        self.slots: dict[tuple[bool, int, int, int], Slot] = {}
        self._placed: dict[tuple[int, int], Placed] = {}
        for group in groups:
            found = [(number, tree) for number, tree in enumerate(trees(topology, group), start=1) if switch in tree]
            for number, tree in found:
                self._placed[group.number, number] = self._place(topology, switch, group, tree)
            if found:
                self.groups.append(group)

    @staticmethod
    def _place(topology: Topology, switch: str, group: CollectiveGroup, tree: Tree) -> Placed:
        up = tree.up.get(switch)
        ports = topology.ports[switch]
        above = () if up is None else tuple(p for p, there in ports.items() if there.node == ports[up].node)
        return Placed(group, tree.down[switch], up, above)

    def process(self, port: int, message: Message) -> list[tuple[int | None, Message]]:
        """Return (port, packet) of each sent packet. Port None is the route to the packet's destination."""
        placed = self._placed.get((message.group, message.tree))
        if placed is None or port not in (*placed.children, *placed.above):
            return self._drop("no entry")
        child = placed.children.index(port) if port in placed.children else None
        if message.rank >= placed.group.ranks:
            return self._drop("rank")
        if message.operator > 5:
            return self._drop("operator")
        if message.sequence == 0:
            return self._drop("sequence")
        if message.opcode == RESULT:
            return self._copies(placed, message, set()) if child is None else self._drop("direction")
        if message.opcode in (WRITE, READ):
            if child is not None and placed.up is not None:
                return [(placed.up, message)]
            return self._request(placed, port, message)
        if child is None:
            return self._drop("direction") if message.opcode == PUSH else [(None, message)]
        return self._contribution(placed, child, message)

    def _drop(self, why: str) -> list[tuple[int | None, Message]]:
        self.drops.append(why)
        return []

    def _slot(self, placed: Placed, message: Message) -> Slot:
        kind = message.opcode in (WRITE, ACKNOWLEDGEMENT)
        place = message.sequence % placed.group.rank_slots
        return self.slots.setdefault((kind, message.group, message.rank, place), Slot())

    def _copies(self, placed: Placed, message: Message, without: set[int]) -> list[tuple[int | None, Message]]:
        return [(port, message) for child, port in enumerate(placed.children) if child not in without]

    def _request(self, placed: Placed, port: int, message: Message) -> list[tuple[int | None, Message]]:
        slot = self._slot(placed, message)
        if message.sequence < slot.sequence:
            return self._drop("stale")
        heard = slot.heard if slot.sequence == message.sequence else set()
        if heard != placed.everyone:
            return self._copies(placed, message, heard)
        is_write = message.opcode == WRITE
        answer = replace(
            message,
            opcode=ACKNOWLEDGEMENT if is_write else CONTRIBUTION,
            source=group_address(message.tree, message.group),
            destination=message.source,
            lanes=() if is_write else slot.lanes,
            overflow=message.overflow if is_write else slot.overflow,
            dscp=ANSWER_DSCP,
        )
        return [(port, answer)]

    def _contribution(self, placed: Placed, child: int, message: Message) -> list[tuple[int | None, Message]]:
        slot = self._slot(placed, message)
        if message.sequence < slot.sequence:
            return self._drop("stale")
        if message.opcode != ACKNOWLEDGEMENT and len(message.lanes) < LANES:
            return self._drop("lanes")
        if message.sequence == slot.sequence and child in slot.heard:
            if message.opcode == PUSH and message.retry and slot.heard == placed.everyone:
                return self._whole(placed, message, slot, placed.everyone - {child})
            return self._drop("duplicate")
        if message.sequence > slot.sequence:
            slot.sequence, slot.overflow, slot.heard = message.sequence, message.overflow, {child}
            slot.lanes = message.lanes
        else:
            slot.heard = slot.heard | {child}
            slot.overflow |= message.overflow
            if message.lanes:
                slot.lanes, exact = combined(message.operator, (slot.lanes, message.lanes))
                if message.operator == SUM and any(not -(2**31) <= lane < 2**31 for lane in exact):
                    slot.overflow = 1
        if slot.heard != placed.everyone:
            return self._drop("absorbed")
        return self._whole(placed, message, slot, set())

    def _whole(
        self, placed: Placed, message: Message, slot: Slot, without: set[int]
    ) -> list[tuple[int | None, Message]]:
        whole = replace(message, source=group_address(message.tree, message.group))
        if message.opcode != ACKNOWLEDGEMENT:
            whole = replace(whole, lanes=slot.lanes, overflow=slot.overflow)
        if placed.up is not None:
            return [(placed.up, whole)]
        if message.opcode != PUSH:
            return [(None, whole)]
        return self._copies(placed, replace(whole, opcode=RESULT, retry=0, dscp=ANSWER_DSCP), without)


class Network:
    """Switches that run the program, each with its reference, and links without delay."""

    def __init__(self, topology: Topology, groups: Sequence[CollectiveGroup]) -> None:
        self.topology = topology
        self.passed: list[tuple[str, int, Message]] = []  # sent messages: receiver, port, message
        self.rigs: dict[str, BuiltinRig] = {}
        self.references = {switch.name: Reference(topology, switch.name, groups) for switch in topology.switches}
        parameters = programs.parameters("collective", {"slots": SLOTS})
        for switch in topology.switches:
            view = controller.switch_view(topology, switch, Settings(collectives=groups))
            self.rigs[switch.name] = BuiltinRig("collective", parameters.entries(view), **parameters.defines())

    def pass_on(self, switch: str, port: int, message: Message) -> list[tuple[str, int, Message]]:
        """Pass a packet to a switch, and return (node, ingress port, packet) of the reference's outputs."""
        found = self.rigs[switch].switch.process(port, message.frame(), 0)
        sent = [(port, Message.of(frame)) for port, frame in found]
        expected = self.references[switch].process(port, message)
        assert [packet for _, packet in sent] == [packet for _, packet in expected]
        for (port, _), (wanted, _) in zip(sent, expected, strict=True):
            assert wanted in (None, port)
        there = self.topology.ports[switch]
        made = [(there[port].node, there[port].port, packet) for port, packet in sent]
        self.passed += made
        return made

    def slots_in_use(self, switch: str) -> int:
        """Return the larger number of slots with a sequence number, among slots of reads and of writes."""
        engine = self.rigs[switch].switch
        return max(
            sum(any(engine.register_read(name, index)[:4]) for index in range(SLOTS))
            for name in ("read_state", "write_state")
        )

    def forget(self, switch: str) -> None:
        """Set the switch's registers to zero."""
        engine = self.rigs[switch].switch
        for name in ("read_state", "write_state", *(f"sums{i}" for i in range(LANES))):
            for index in range(SLOTS):
                engine.register_write(name, index, bytes(12 if name.endswith("state") else 4))
        self.references[switch].slots.clear()
