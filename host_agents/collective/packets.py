"""The packets of in-network collectives: multicast writes, read reductions, pushed contributions.

All of them are addressed to queue pair 0xFFFFFF, and the PSN is the sequence number modulo 2^24.
Requests (writes, read reductions) and pushed results are sent to the group's address, which
includes the tree. Answers are sent to the initiator. Packets that a switch has combined have the
group's address as source.

Source: chapter 6 of the thesis on memory fabrics (papers/collectives/README.md), whose flit is 16 bytes.
"""

from __future__ import annotations

from typing import Final

from host_agents.packets import HEXADECIMAL, Field, Header, Packet

NAME: Final = "collective"  # name of the P4 program, and of the include with these packets

QPN: Final = 0xFFFFFF
LANES: Final = 32
PAYLOAD_BYTES: Final = 4 * LANES
ADDRESS_UNIT_BYTES: Final = 16  # unit of the field `address`

WRITE: Final = 0xF8
ACKNOWLEDGEMENT: Final = 0xF9
READ: Final = 0xFA
CONTRIBUTION: Final = 0xFB
PUSH: Final = 0xFC
RESULT: Final = 0xFD

# Operators that combine contributions, lane by lane; lanes are 32-bit integers in two's complement.
SUM: Final = 0
MIN: Final = 1
MAX: Final = 2
AND: Final = 3
OR: Final = 4
XOR: Final = 5
OPERATORS: Final[dict[str, int]] = {"sum": SUM, "min": MIN, "max": MAX, "and": AND, "or": OR, "xor": XOR}
# Identity of each operator, which unused lanes have.
IDENTITIES: Final[dict[int, int]] = {SUM: 0, MIN: 0x7FFFFFFF, MAX: 0x80000000, AND: 0xFFFFFFFF, OR: 0, XOR: 0}

# Trees count from 1, so that no group's address is equal to that of a multicast flow.
_ADDRESSES: Final = 239 << 24  # administratively scoped: RFC 2365

HEADER: Final = Header(
    "collective",
    (
        Field("operator", 4, values={number: name for name, number in OPERATORS.items()}),
        Field("retry", 1, "sent again"),
        Field("overflow", 1, "a partial sum did not fit a lane"),
        Field("reserved", 2),
        Field("tree", 8, "which of the group's trees, from 1; 0: unicast"),
        Field("group", 16, "0: unicast"),
        Field("rank", 16, "the initiator's place in the group, from 0; 0 in pushed packets"),
        Field("valid_bytes", 16, "of the payload", unit="bytes"),
        Field("sequence", 32, "number of the operation, from 1: of this initiator and kind, or of the group's pushes"),
        Field("address", 32, "in the memory of each member", unit="16 bytes"),
    ),
    "In-network collectives, directly after the BTH.",
)
LANES_HEADER: Final = Header(
    "lanes",
    tuple(Field(f"lane{i}", 32, display=HEXADECIMAL) for i in range(LANES)),
    "Payload of a collective; lanes that are not used have the operator's identity.",
)


def _packet(name: str, opcode: int, has_lanes: bool, meaning: str) -> Packet:
    return Packet(name, opcode, (HEADER, LANES_HEADER) if has_lanes else (HEADER,), meaning=meaning)


PACKETS: Final = (
    _packet("collective write", WRITE, True, "data for every member of a group, or for one host"),
    _packet("collective acknowledgement", ACKNOWLEDGEMENT, False, "acknowledgement of a write"),
    _packet("read reduction", READ, False, "request to every member of a group, or to one host"),
    _packet("contribution", CONTRIBUTION, True, "answer to a read by a member, or combined by switches"),
    _packet("pushed contribution", PUSH, True, "data without a request, towards the root of a tree"),
    _packet("pushed result", RESULT, True, "result of pushed contributions for every member"),
)


def group_address(tree: int, group: int) -> int:
    """Return the IPv4 address of a group on one of its trees: 239.tree.group."""
    return _ADDRESSES | tree << 16 | group


def tree_of(rank: int, sequence: int, trees: int) -> int:
    """Return the number of the tree that an operation of a group uses; numbers start at 1."""
    return 1 + (rank + sequence) % trees
