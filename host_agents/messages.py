"""Messages, what became of them, and the counts kept for a queue pair."""

from __future__ import annotations

from collections.abc import Callable

from host_agents.timers import TimerOwner


class QpStats:
    """Counts of one queue pair, both halves. Bytes are payload unless the name says wire."""

    def __init__(self) -> None:
        # sender; what changes with every packet comes first, so that it shares a cache line
        self.packets_sent = 0  # retransmissions included
        self.wire_bytes_sent = 0
        self.bytes_acked = 0
        self.acks_received = 0
        # receiver, likewise
        self.packets_received = 0  # all that arrived, duplicates and discarded ones included
        self.bytes_delivered = 0  # in order, each byte once
        self.acks_sent = 0
        self.marked_received = 0  # with ECN CE
        self.links_crossed = 0  # by all that arrived, by their TTL: hosts' links included
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
        self.out_of_window = 0  # so far ahead that no sender can have sent it: discarded
        self.trimmed_received = 0
        self.naks_sent = 0
        self.nacks_sent = 0
        self.cnps_sent = 0
        self.max_latency_ns = -1  # of packets that arrived, from when they were sent; -1: not measured
        self.pulls_held = 0  # times that credit was held back because nothing came of what was sent before

    def counts(self) -> dict[str, int]:
        """Return all counts by name."""
        return {name: getattr(self, name) for name in QP_COUNTS}


class NicStats:
    """Counts of one NIC."""

    def __init__(self) -> None:
        self.malformed = 0  # not a frame this NIC understands, or cut short, or a bad IPv4 checksum or ICRC
        self.misdelivered = 0  # for another address
        self.unknown_qp = 0  # a queue pair in error is none, either
        self.retries_exceeded = 0  # queue pairs that are in error for it
        self.pauses_received = 0
        self.paused_ns = [0] * 8  # time during which a class had to be silent, by class


_FRESH = QpStats()
QP_COUNTS = tuple(name for name in dir(_FRESH) if name[0] != "_" and getattr(_FRESH, name) == 0)
"""The names of the counts, which begin with 0, in alphabetical order."""


class Connection(TimerOwner):
    """One end of a reliable connection, as its messages know it: a `QueuePair`."""

    def __init__(self, qpn: int) -> None:
        self.qpn = qpn
        self.stats = QpStats()

    def post(self, size_bytes: int, start_ns: int = 0, tag: object = None, group: IncastGroup | None = None) -> Message:
        """Send `size_bytes`, not before `start_ns` nor before the messages posted earlier. Raises ValueError.

        `group` says of which incast the message is a part. Raises HostError for one that cannot be, and when the queue
        pair is in error.
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
        """Return the entropy of the data packet sent last, or of the first one to come."""
        raise NotImplementedError

    def control_entropy(self, now_ns: int) -> int:
        """Return the entropy that the load balancer gives to a control packet sent now."""
        raise NotImplementedError


class IncastGroup:
    """An incast that an application knows of beforehand: the NICs that send to one receiver at a time, by their ids."""

    def __init__(self, number: int, members: tuple[int, ...]) -> None:
        self.number = number  # tells the incasts to a receiver apart, modulo 2^16
        self.members = members


class Message:
    """Bytes to send on a queue pair. Times are in ns, -1 until they happen."""

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
        self.sequence = sequence  # from 0, per QP
        self.size_bytes = size_bytes
        self.start_ns = start_ns
        self.tag = tag
        self.group = group
        self.first_sent_ns = -1
        self.completed_ns = -1  # every byte is acknowledged
        self.failed_ns = -1  # it never will be
        self.first_packet = 0  # its packets are first_packet <= n < end_packet
        self.end_packet = 0


class Delivery:
    """A message that has arrived whole and in order."""

    def __init__(self, qp: Connection, sequence: int, size_bytes: int, time_ns: int) -> None:
        self.qp = qp
        self.sequence = sequence
        self.size_bytes = size_bytes
        self.time_ns = time_ns


CompletionCallback = Callable[[Message], None]
DeliveryCallback = Callable[[Delivery], None]
