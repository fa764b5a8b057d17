"""State of the packet path that no object of the program holds and the control plane may change."""

from __future__ import annotations

from p4switch.architectures.extern import ExternType
from p4switch.architectures.packet_path import State

PORTS = 512
APPLICATIONS = 16
BUFFER_CELLS = 1024  # of 16 bytes


class PortState(ExternType):
    """A port: `metadata` is what its packets have in front of them, its first field in the highest bits."""

    cell = (("metadata", 64), ("loopback", 8))


class WidePortState(PortState):
    """The same for T2NA: the lowest 64 bits of `metadata` are those that programs pass over."""

    cell = (("metadata", 192), ("loopback", 8))


class MirrorState(ExternType):
    """A mirror session: the whole destination, and how many bytes a copy has at most (0: all of them).

    `direction` is 1 for ingress, 2 for egress and 3 for both, and nothing is looked at by it; 0 is that of a session
    that BfRuntime does not have.
    """

    cell = (
        ("enabled", 8), ("unicast", 8), ("port", 16), ("group_a", 16), ("group_b", 16), ("rid", 16),
        ("level1_xid", 16), ("level2_xid", 16), ("hash1", 16), ("hash2", 16), ("max_bytes", 16), ("qid", 8),
        ("color", 8), ("cos", 8), ("copy_to_cpu", 8), ("direction", 8),
    )  # fmt: skip


class PruneState(ExternType):
    """The ports, as bits, to which packets with this level-2 exclusion id and a node's replication id are not sent."""

    cell = (("ports", PORTS),)


class DeviceState(ExternType):
    """The port to which copies for the CPU are sent, and the queue of packets that another one had no room for.

    Packets with the replication id `global_rid`, unless that is 0, are pruned at nodes with any other, too.
    """

    cell = (
        ("cpu_port", 16), ("cpu_enabled", 8), ("deflect_port", 16), ("deflect_qid", 8), ("deflect_enabled", 8),
        ("global_rid", 16),
    )  # fmt: skip


class PktgenState(ExternType):
    """An application of the packet generator, which all pipes have.

    What triggers it is 1 for a packet that is recirculated with the bits of `value` where `mask` has ones, in the first
    4 bytes (TNA) or 16 (T2NA), and 2 for a packet for which the deparser emits to a `Pktgen`. It generates so many
    batches of so many packets, all of them at once, which come by `port` of the pipe and have `length` bytes of the
    buffer from `offset` on.
    """

    cell = (
        ("value", 128), ("mask", 128), ("batches", 32), ("packets", 32), ("offset", 16), ("length", 16),
        ("enabled", 8), ("trigger", 8), ("port", 8),
    )  # fmt: skip


class PktgenBufferState(ExternType):
    """Bytes of the packet generator's buffer, the first in the highest bits."""

    cell = (("bytes", 128),)


def states(port: type[PortState], sessions: int) -> dict[str, State]:
    """Return the states by the names that the C of the packet's path has for them."""
    return {
        "port": State("$port", port, PORTS),
        "mirror": State("$mirror", MirrorState, sessions),
        "prune": State("$prune", PruneState, PORTS),
        "device": State("$device", DeviceState, 1),
        "pktgen": State("$pktgen", PktgenState, APPLICATIONS),
        "pktgen_buffer": State("$pktgen_buffer", PktgenBufferState, BUFFER_CELLS),
    }
