"""Messages and their events, and the counts of a queue pair and of a NIC."""

from __future__ import annotations

from collections.abc import Callable

from host_agents.timers import TimerOwner


class QpStats:
    """Counts of one queue pair, both halves. Bytes are payload unless the name says wire."""

    def __init__(self) -> None:
        # sender; counts that change with every packet come first, to share a cache line
        self.packets_sent = 0  # including retransmissions
        self.wire_bytes_sent = 0
        self.bytes_acked = 0
        self.acks_received = 0
        # receiver, likewise
        self.packets_received = 0  # including duplicates and discarded packets
        self.bytes_delivered = 0  # in order, each byte once
        self.acks_sent = 0
        self.marked_received = 0  # with ECN CE
        self.links_crossed = 0  # links that all arrived packets crossed, hosts' links included, by their TTL
        # sender
        self.packets_retransmitted = 0
        self.bytes_posted = 0
        self.naks_received = 0
        self.nacks_received = 0  # trimmed packets
        self.cnps_received = 0
        self.marks_heard = 0  # answers to data that echo an ECN mark
        self.timeouts = 0
        # receiver
        self.duplicates = 0
        self.out_of_order = 0
        self.out_of_window = 0  # discarded, because no sender can have sent a packet so far ahead
        self.trimmed_received = 0
        self.naks_sent = 0
        self.nacks_sent = 0
        self.cnps_sent = 0
        self.max_latency_ns = -1  # largest time from a packet's sending to its arrival; -1: not measured
        self.pulls_held = 0  # times that credit was held back because earlier packets did not arrive

    def counts(self) -> dict[str, int]:
        """Return all counts by name."""
        return {name: getattr(self, name) for name in QP_COUNTS}


class NicStats:
    """Counts of one NIC."""

    def __init__(self) -> None:
        self.malformed = 0  # frames that are unknown, truncated, or have a bad IPv4 checksum or ICRC
        self.misdelivered = 0  # frames for another address
        self.unknown_qp = 0  # including queue pairs in error
        self.retries_exceeded = 0  # queue pairs in error for that reason
        self.pauses_received = 0
        self.paused_ns = [0] * 8  # time during which a class was paused, by class


_FRESH = QpStats()
QP_COUNTS = tuple(name for name in dir(_FRESH) if name[0] != "_" and getattr(_FRESH, name) == 0)
"""The names of the counts, which begin with 0, in alphabetical order."""


class Connection(TimerOwner):
    """One end of a reliable connection in the view of its messages: a `QueuePair`."""

    def __init__(self, qpn: int) -> None:
        self.qpn = qpn
        self.stats = QpStats()

    def post(self, size_bytes: int, start_ns: int = 0, tag: object = None, group: IncastGroup | None = None) -> Message:
        """Send `size_bytes`, not before `start_ns` nor before the messages posted earlier.

        Raises ValueError for a negative size.

        `group` is the incast that the message belongs to. Raises HostError for an invalid incast,
        and if the queue pair is in error.
        """
        raise NotImplementedError

    def truncate(self, message: Message) -> None:
        """End `message` with the next packet; its size becomes the bytes sent by then.

        Raises ValueError if a message was posted after it, or it has not started.
        """
        raise NotImplementedError

    def completed(self, message: Message) -> None:
        """Handle that every byte of `message` is acknowledged."""
        raise NotImplementedError

    def delivered(self, delivery: Delivery) -> None:
        """Handle a message that has arrived."""
        raise NotImplementedError

    def retries_exceeded(self, now_ns: int) -> None:
        """Handle the end of the connection after its retries without an acknowledgement."""
        raise NotImplementedError

    def data_entropy(self) -> int:
        """Return the entropy of the last data packet, or of the first one before it is sent."""
        raise NotImplementedError

    def control_entropy(self, now_ns: int) -> int:
        """Return the entropy that the load balancer gives to a control packet sent now."""
        raise NotImplementedError


class IncastGroup:
    """Incast that an application knows beforehand: ids of the NICs that send to one receiver at that time."""

    def __init__(self, number: int, members: tuple[int, ...]) -> None:
        self.number = number  # distinguishes the incasts to a receiver, modulo 2^16
        self.members = members


class Message:
    """Message to send on a queue pair.

    Times are in ns, or -1 before they happen.
    """

    def __init__(
        self,
        qp: Connection,
        sequence: int,
        size_bytes: int,
        start_ns: int,
        tag: object,
        group: IncastGroup | None = None,
    ) -> None:
        self.qp = qp
        self.sequence = sequence  # number from 0 in the QP
        self.size_bytes = size_bytes
        self.wire_bytes = 0  # of all its packets, when it has started
        self.start_ns = start_ns
        self.tag = tag
        self.group = group
        self.first_sent_ns = -1
        self.completed_ns = -1  # time at which every byte was acknowledged
        self.failed_ns = -1  # time at which it failed
        self.first_packet = 0  # its packets are first_packet <= n < end_packet
        self.end_packet = 0


class Delivery:
    """Message that has arrived completely and in order."""

    def __init__(self, qp: Connection, sequence: int, size_bytes: int, time_ns: int) -> None:
        self.qp = qp
        self.sequence = sequence
        self.size_bytes = size_bytes
        self.time_ns = time_ns


CompletionCallback = Callable[[Message], None]
DeliveryCallback = Callable[[Delivery], None]
