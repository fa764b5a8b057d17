"""State of the packet path that the control plane may change and that belongs to no object of the program."""

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
    """State of a port. `metadata` is put in front of its packets; the first field is in the highest bits.

    `backup` - 1 is the backup port of multicast groups (0: there is none). Copies for groups are sent
    to it if the device protects against failures and the control plane has `stopped` the port or its
    link has `failed`. A stopped port without protection gets no packets. `went_down` becomes 1 when
    the link goes down, and 2 when the packet generator has noticed that. The port can trigger the
    packet generator again only after the control plane has set `went_down` to 0.
    """

    cell = (("metadata", 64), *_LINK)


class WidePortState(PortState):
    """State of a port of T2NA, where programs skip the lowest 64 bits of `metadata`."""

    cell = (("metadata", 192), *_LINK)


class MirrorState(ExternType):
    """State of a mirror session: its complete destination, and the maximum length of a copy in bytes (0: unlimited).

    `direction` is 1 for ingress, 2 for egress and 3 for both; 0 means that the session does not exist in BfRuntime.
    Packets do not depend on `direction`.
    """

    cell = (
        ("enabled", 8), ("unicast", 8), ("port", 16), ("group_a", 16), ("group_b", 16), ("rid", 16),
        ("level1_xid", 16), ("level2_xid", 16), ("hash1", 16), ("hash2", 16), ("max_bytes", 16), ("qid", 8),
        ("color", 8), ("cos", 8), ("copy_to_cpu", 8), ("direction", 8),
    )  # fmt: skip


class PruneState(ExternType):
    """Bit mask of the ports that packets with this level-2 exclusion id do not reach.

    It applies to nodes whose replication id is that of the packet.
    """

    cell = (("ports", PORTS),)


class DeviceState(ExternType):
    """State of the device: the port for copies to the CPU, and the queue for packets that found a queue full.

    If `global_rid` is not 0, packets with that replication id are pruned at nodes with any
    replication id. See `PortState` for `protects` and `fails_over`.
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

    `trigger` is one of `Trigger`:

    - RECIRCULATION is a recirculated packet whose first 4 bytes (TNA) or 16 bytes (T2NA) are equal to `value` in the
      bits of `mask`.
    - DEPARSER is a packet for which the deparser calls `emit` of a `Pktgen`.
    - ONE_SHOT and PERIODIC are timers of `timer_ns`, which start when the application is enabled. `due` is the tick at
      which the timer ends next. 0 means that it is not known, and the highest number that there is none.
    - PORT_DOWN is a port of the pipe that goes down. In T2NA, the cell `value` of `PortMaskState` selects the ports.

    The application generates its batches of packets all at once. The packets arrive at `port` of the pipe and have
    `length` bytes of the buffer from `offset` on. The other members count triggers, batches and packets.
    """

    cell = (
        ("value", 128), ("mask", 128), ("due", 64), ("triggers", 64), ("batches_made", 64), ("packets_made", 64),
        ("timer_ns", 32), ("batches", 32), ("packets", 32), ("offset", 16), ("length", 16),
        ("enabled", 8), ("trigger", 8), ("port", 8),
    )  # fmt: skip


class PktgenBufferState(ExternType):
    """Bytes of the packet generator's buffer; the first byte is in the highest bits."""

    BYTES = 16
    """Number of bytes in a cell."""
    cell = (("bytes", 8 * BYTES),)


class ScheduleState(ExternType):
    """Order in which a port of the pipe serves its first 16 queues.

    The first queue is in the lowest bits of each member. `priorities` has 8 bits for each queue: its
    priority + 1, or 0 if the priority is the number of the queue. `weights` has 16 bits for each
    queue: its weight among the queues of the same priority. A queue with weight 0 is served before
    those with a weight. `disabled` has a bit for each queue that is not served.
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
    """Bit mask of the ports of a pipe that trigger an application of T2NA's packet generator by going down."""

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
