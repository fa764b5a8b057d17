"""State of the packet path that belongs to no object of the program and that the control plane may change."""

from __future__ import annotations

from enum import IntEnum

from p4switch.architectures.extern import ExternType
from p4switch.architectures.front_panel import PIPE_PORT_BITS
from p4switch.architectures.packet_path import State

PORTS = 512
APPLICATIONS = 16
BUFFER_CELLS = 1024  # number of cells of 16 bytes


PORT_MASKS = 2
_LINK = (("loopback", 8), ("backup", 16), ("stopped", 8), ("failed", 8), ("went_down", 8))


class PortState(ExternType):
    """State of a port: `metadata` precedes its packets, with its first field in the highest bits.

    `backup` - 1 is the backup port of multicast groups (0: there is none). Their packets take it if
    the control plane has `stopped` the port, or its link has `failed`, and the device protects
    against that. A stopped port without protection gets no packets. `went_down` is 1 if the link
    has gone down and the packet generator has not noticed it, and 2 if it has. The control plane
    sets it to 0, and until then the port triggers nothing again.
    """

    cell = (("metadata", 64), *_LINK)


class WidePortState(PortState):
    """State of a port of T2NA, where the lowest 64 bits of `metadata` are skipped by programs."""

    cell = (("metadata", 192), *_LINK)


class MirrorState(ExternType):
    """State of a mirror session: its complete destination, and the maximum length of a copy in bytes (0: unlimited).

    `direction` is 1 for ingress, 2 for egress and 3 for both, but does not affect any packet; 0 means that the session
    does not exist in BfRuntime.
    """

    cell = (
        ("enabled", 8), ("unicast", 8), ("port", 16), ("group_a", 16), ("group_b", 16), ("rid", 16),
        ("level1_xid", 16), ("level2_xid", 16), ("hash1", 16), ("hash2", 16), ("max_bytes", 16), ("qid", 8),
        ("color", 8), ("cos", 8), ("copy_to_cpu", 8), ("direction", 8),
    )  # fmt: skip


class PruneState(ExternType):
    """Ports, as bits, that packets with this level-2 exclusion id do not reach by nodes with their replication id."""

    cell = (("ports", PORTS),)


class DeviceState(ExternType):
    """Port of copies for the CPU, and the queue for packets that found another queue full.

    Unless `global_rid` is 0, packets with that replication id are pruned at all nodes, whatever
    their ids. See `PortState` for `protects` and `fails_over`.
    """

    cell = (
        ("cpu_port", 16), ("cpu_enabled", 8), ("deflect_port", 16), ("deflect_qid", 8), ("deflect_enabled", 8),
        ("global_rid", 16), ("protects", 8), ("fails_over", 8),
    )  # fmt: skip


class Trigger(IntEnum):
    """Triggers of the packet generator, as in packet_path.h."""

    RECIRCULATION = 1
    DEPARSER = 2
    ONE_SHOT = 3
    PERIODIC = 4
    PORT_DOWN = 5


class PktgenState(ExternType):
    """State of an application of the packet generator.

    Its `trigger` is a `Trigger`. RECIRCULATION is a recirculated packet that has the bits of `value` where `mask` has
    ones, in its first 4 bytes (TNA) or 16 bytes (T2NA). DEPARSER is a packet for which the deparser emits to a
    `Pktgen`. ONE_SHOT and PERIODIC are the end of `timer_ns`, counted from when it is enabled; `due` is the tick of the
    next one (0: not known, the highest number: none). PORT_DOWN is a port of the pipe that goes down, in T2NA only one
    of those in the cell `value` of `PortMaskState`. The application generates the given number of batches with the
    given number of packets, all at once. They arrive at `port` of the pipe and have `length` bytes of the buffer from
    `offset` on. The other members count what has been triggered and generated.
    """

    cell = (
        ("value", 128), ("mask", 128), ("due", 64), ("triggers", 64), ("batches_made", 64), ("packets_made", 64),
        ("timer_ns", 32), ("batches", 32), ("packets", 32), ("offset", 16), ("length", 16),
        ("enabled", 8), ("trigger", 8), ("port", 8),
    )  # fmt: skip


class PktgenBufferState(ExternType):
    """Bytes of the packet generator's buffer, the first in the highest bits."""

    BYTES = 16
    """Bytes of a cell."""
    cell = (("bytes", 8 * BYTES),)


class ScheduleState(ExternType):
    """Order in which a port of the pipe serves its first 16 queues.

    `priorities` has 8 bits for each queue, the first in the lowest ones: its priority + 1, or 0 if that is its number.
    `weights` has 16 bits for each: its share among queues of the same priority, or 0 if it comes before those.
    `disabled` has a bit for each queue that is not served.
    """

    QUEUES = 16
    cell = (("priorities", 8 * QUEUES), ("weights", 16 * QUEUES), ("disabled", QUEUES))


class ShaperState(ExternType):
    """Token buckets of a queue, or of all queues of a port together.

    Rates are in kbit/s with bursts in bytes, or, with `packets`, in packets a second with bursts in
    packets. The bucket of the maximum rate exists if the queue is `limited` and the rate is not 0,
    and that of the minimum rate if it is `guaranteed`. A queue below its minimum rate is served
    before all others, by `min_priority`. `provisioning` has no effect.
    """

    cell = (
        ("max_rate", 32), ("max_burst", 32), ("min_rate", 32), ("min_burst", 32), ("limited", 8), ("guaranteed", 8),
        ("min_priority", 8), ("packets", 8), ("provisioning", 8),
    )  # fmt: skip


class PortMaskState(ExternType):
    """Ports of a pipe, as bits, that may trigger an application of T2NA's packet generator by going down."""

    cell = (("mask", 128),)


def states(port: type[PortState], sessions: int) -> dict[str, State]:
    """Return the states by their names in the C of the packet path."""
    return {
        "port": State("$port", port, PORTS),
        "mirror": State("$mirror", MirrorState, sessions),
        "prune": State("$prune", PruneState, PORTS),
        "device": State("$device", DeviceState, 1),
        "pktgen": State("$pktgen", PktgenState, APPLICATIONS),
        "pktgen_buffer": State("$pktgen_buffer", PktgenBufferState, BUFFER_CELLS),
        "schedule": State("$schedule", ScheduleState, 1 << PIPE_PORT_BITS),
        "queue_shaper": State("$queue_shaper", ShaperState, ScheduleState.QUEUES << PIPE_PORT_BITS),
        "port_shaper": State("$port_shaper", ShaperState, PORTS),
    }
