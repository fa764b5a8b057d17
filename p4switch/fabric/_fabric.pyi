"""The virtual network: hosts, switches, links and one clock. It is part of the native extension, like `Switch`.

Nodes are small ints in order of creation, and so are links. Times are in ns from the start, rates in bit/s of payload
on the wire (Ethernet header to the last byte before the FCS, plus `framing_bytes` per frame). A wrong node, port, link
or value raises ValueError and changes nothing. The same calls and frames give the same events and records, byte for
byte.

Columns (`dict[str, bytes]`) are int64 arrays in native order: `{k: np.frombuffer(v, np.int64) for k, v in t.items()}`.
"""
from collections.abc import Callable, Sequence
from mmap import mmap
from typing import Any, Literal, Protocol

from p4switch.engine._engine import RawEvent, Switch

NEVER_NS: int  # 2**61; all times are before it

class Endpoint(Protocol):
    """Endpoint of a host; see docs/architecture.md, seam 4. From NEVER_NS on, next_wakeup_ns means never.

    It may also have `may_report(frame)`: whether a frame on its way to the endpoint may make it report something that
    others have to know before they continue. By default every frame may.
    """

    def receive(self, now_ns: int, frame: bytes, /) -> None: ...
    def next_frame(self, now_ns: int, /) -> bytes | None: ...
    def next_wakeup_ns(self) -> int: ...

Stop = Literal["until", "idle", "events", "wall", "stopped", "deadlock"]
Probe = Literal[
    "depth_bytes",      # waiting now, without the frame in transmission (priority None: the whole port)
    "depth_packets",
    "depth_max_bytes",  # the most since the last sample
    "tx_bytes",         # cumulative: differences over an interval give utilisation (priority None only)
    "paused",           # 1 while this priority may not send (priority None: bit mask of all eight)
    "buffer_bytes",     # the switch's whole occupancy (port and priority are ignored)
]

class Fabric:
    """Network of nodes that run in turns, in windows no longer than the shortest link's delay.

    A long delay is fast, 0 is slow. Results are as if all events were processed in order of time. At one instant
    callbacks come first, then at each node PFC, arrivals by port, and links that become free by port.
    """

    def __init__(
        self,
        *,
        framing_bytes: int = 0,
        tick_ns: int = 1,
        independent_hosts: bool = False,
        settle: Callable[[int, bool], int | None] | None = None,
    ) -> None:
        """Create an empty network.

        framing_bytes: bytes that a frame occupies on the link beyond its length; preamble 8 + gap 12 + FCS 4 = 24. A
        negative number means headers that are not charged; a frame then costs at least 16 bytes. tick_ns: length of a
        tick of the switches' clocks.

        independent_hosts: a promise that endpoints affect each other through frames only, which speeds up large
        networks. Calls are then in order of time for each endpoint, but not among endpoints; in such a call `stop`,
        `kick` of another host and `at` (except for the same host) take effect at the end of the window, and changes to
        the network raise RuntimeError.

        settle: called with a time and False if independent hosts are held (`hold`) before that time. It moves these
        hosts by `turn` and `go_on`, in any order, until none is held before it. With several workers it may return a
        time instead if it needs messages of others. It is then called again, with True, at all workers when they have
        met. Before the returned time nothing starts at this worker that the others do not know, apart from what follows
        from frames that are under way.
        """
    now_ns: int  # read only, as are the next three
    events: int  # processed so far
    nodes: int
    links: int

    # -- building ---------------------------------------------------------------------------------------------------
    def add_host(self, endpoint: Endpoint, *, name: str = "") -> int:
        """Add a host with one port, 0, and return its number."""
    def add_switch(
        self,
        switch: Switch,
        *,
        name: str = "",
        latency_ns: int = 0,  # from the last bit in to the enqueue; PFC frames are not subject to it
        scheduler: Literal["fifo", "round_robin"] = "fifo",  # within a priority; round_robin: over ingress ports
        queue_bytes: int | None = None,  # limits of each queue (port, priority), each port, and of the whole switch
        yellow_bytes: int | None = None,  # the same of each queue, for packets that a program has given this colour
        red_bytes: int | None = None,
        queue_packets: int | None = None,
        port_bytes: int | None = None,
        port_packets: int | None = None,
        buffer_bytes: int | None = None,
        alpha: float | None = None,  # a lossy queue may hold alpha * (what of the shared buffer is free)
        cell_bytes: int = 80,  # unit of enq_qdepth and deq_qdepth; 0: packets
        # Between a port's queues: the higher priority first, or, among equal_priorities, that whose head was enqueued
        # first, or that which was served least recently.
        classes: Literal["strict", "oldest", "least_recent"] = "strict",
        equal_priorities: Sequence[int] = (),
        dscp_classes: Sequence[int] | None = None,  # the PFC class of each DSCP; None: the priority of the queue
    ) -> int:
        """Add a switch, which may be in one fabric only, and return its number.

        Priorities are 0-7, the highest first; larger ones count as 7. A packet that finds its port idle never waits and
        is not subject to the limits of queue and port.
        """
    def set_queue(
        self, node: int, port: int, priority: int, *, limit_bytes: int | None = None, limit_packets: int | None = None
    ) -> None:
        """Override the limits of one queue; None means no limit."""
    def set_port(
        self,
        node: int,
        port: int,
        *,
        limit_bytes: int | None = None,
        limit_packets: int | None = None,
        scheduler: Literal["fifo", "round_robin"] = "fifo",
    ) -> None:
        """Override the limits and the scheduler of one port of a switch, before any packet is queued there."""
    def set_trimming(
        self,
        node: int,
        port: int,
        *,
        priorities: Sequence[int],  # those whose packets are trimmed when their queue has no room
        limit_bytes: int | None,  # of each of these queues
        trim_priority: int,  # the queue that trimmed packets go on in, and its limit
        trim_limit_bytes: int | None,
        trim_size_bytes: int | None,  # what is left of a trimmed packet; None: nothing, it is dropped
        # Which packet is trimmed: the one that comes, or by a fair coin it or the youngest one of the queue.
        victim: Literal["newest", "newest_or_youngest"] = "newest",
        seed: int = 0,  # of the coin
    ) -> None:
        """Have a port of a switch trim packets that find no room, before any packet is queued there.

        v1model's egress finds the trimmed length in `packet_length`, and the old length in the packet's headers, which
        it may correct. No more than the trimmed length leaves.
        """
    def set_pfc(
        self,
        node: int,
        *,
        priorities: Sequence[int],  # the lossless ones
        port: int | None = None,  # None: all ports connected so far or later
        xoff_bytes: int | None = None,  # static: pause when (ingress port, priority) holds more than this ...
        alpha: float | None = None,  # ... or dynamic: than alpha * (what of the shared buffer is free)
        xon_gap_bytes: int = 0,  # resume when it holds no more than the threshold less this
        headroom_bytes: int | None = None,  # of each (ingress port, priority), above xoff; taken off the shared buffer.
        # None: no reservation, the shared buffer is the limit
        reaction_ns: int = 0,  # from the pause frame's last bit in until this switch's transmitter obeys
        quanta: int = 65535,  # of each pause; refreshed at half time while the cause lasts
    ) -> None: ...
    def connect(
        self,
        a: int,
        a_port: int,
        b: int,
        b_port: int,
        *,
        rate_bps: int,
        delay_ns: int,
        rate_back_bps: int | None = None,  # b to a; default: rate_bps
        loss: float = 0.0,  # share of the frames, PFC frames included, that are lost at random (LINK_LOSS)
        seed: int = 0,  # what is lost follows from it, from the link's number and from the direction
        framing_bytes: int = ...,  # charged for every frame; default: as all links
    ) -> int:
        """Add a full-duplex link and return its number; direction 0 is from a to b, direction 1 from b to a.

        If both ends are one port of a switch, frames that leave this port come back to it.
        """

    # -- running ----------------------------------------------------------------------------------------------------
    def run(
        self,
        until_ns: int | None = None,
        *,
        max_events: int | None = None,
        max_wall_s: float | None = None,
        progress: Callable[[int, int], object] | None = None,  # (now_ns, events)
        progress_events: int = 1_000_000,
    ) -> Stop:
        """Run all events up to and including until_ns, and return why the run ended.

        "idle" means that no events are left (now_ns is then the last event's time, or until_ns if given). The other
        limits and the progress are checked between windows. An exception of an endpoint or a callback, or
        KeyboardInterrupt, is raised here after its event is completed; run may be called again. With several workers,
        the first one whose max_wall_s has passed ends the run for all.
        """
    def stop(self) -> None:
        """From a callback: run returns "stopped" after this event."""
    def at(
        self, time_ns: int, call: Callable[[int], object], *, host: int | None = None, own: bool = False
    ) -> None:
        """Schedule call(now_ns) at time_ns, which is not in the past, before the frames of that instant.

        At the present instant the call comes after them. Calls at the same time are in order of insertion, those with
        `host` last. host: the call affects that endpoint only (for instance posting a message). Then it does not end a
        window, which matters for large numbers of calls, and an independent host gets it in its turn. own: with several
        workers (see `join`) only this one has the call.
        """
    def kick(self, host: int) -> None:
        """Notify a host that has new data to send (a message was posted), which sends if its link is idle."""
    def hold(self, host: int, time_ns: int | None, /) -> None:
        """Hold a host from a time on, until it is held at a later one; with None it is not held.

        During one of its own calls, it is held at the end of the instant at the earliest.
        """
    def turn(self, host: int, time_ns: int, /) -> None:
        """Make it the host's turn in `settle`, at a time that it has reached.

        `now_ns` is that time, and a message may be posted.
        """
    def go_on(self, host: int, time_ns: int | None, /) -> None:
        """Hold a host in `settle` at this time, as `hold` does, and run it up to this time.

        It stops earlier where it is held in the meantime, or at the end of the window.
        """
    def settle_again(self) -> None:
        """Have `settle` called after the hosts' part of this window; during `settle`, of the next window."""
    def finished(self, finished: bool, /) -> None:
        """Set whether this worker needs no more events; the run stops in the window in which no worker needs more."""
    @property
    def known_ns(self) -> int:
        """Time before which all workers have been told at the last meeting whatever starts anywhere.

        It takes into account when hosts may report something (`may_report`) and what `settle` returned at each worker;
        NEVER_NS with one worker.
        """
    def careful_from(self, time_ns: int | None, /) -> None:
        """Make every window one instant long from a time on, so that `stop` ends a run with the instant.

        The latest time counts, at whichever worker it was given.
        """
    def inject(self, node: int, port: int, frame: bytes) -> None:
        """Let a frame arrive now at a switch's port as if from its wire (packet-out, tests), counted as entered.

        With several workers (see `join`) all call this, and the frame arrives at the worker of the switch.
        """

    # -- several workers --------------------------------------------------------------------------------------------
    @staticmethod
    def shared_bytes(workers: int) -> int:
        """Return the size of the memory that this number of workers shares."""
    @staticmethod
    def on_crash(arguments: Sequence[bytes]) -> None:
        """Replace this process by this program, given by absolute path, when it crashes for lack of memory.

        () disables this. Forked children are not affected.
        """
    def join(
        self,
        rank: int,
        count: int,
        owners: Sequence[int],  # by node: the rank of the worker that runs it
        *,
        deliver: Callable[[list[bytes]], object],  # messages of each worker, by rank, in order
        # How they reach each other. By memory: writable, zeros, shared_bytes(count), the same for all; ...
        memory: mmap | None = None,
        waiting: Callable[[], object] | None = None,  # while others are awaited, now and then; its exceptions end it
        spins: int = 0,  # looks for the others before this worker sleeps
        # ... or by a function, which all call when they have come to the same point. It gets a notice for all, and what
        # is for each by rank; it gives everyone's notices, and what each had for this one. Its exceptions end the run.
        exchange: Callable[[bytes, list[bytes]], tuple[list[bytes], list[bytes | bytearray]]] | None = None,
    ) -> None:
        """Become worker `rank` of `count`, which build the same network, and make the same calls in the same order.

        These calls are run, set_link_up, gather and so on, and those scheduled by `at` (except with `own`). The events
        are those of a run with one worker. Records and counts concern the worker's own nodes: see
        p4switch.fabric.joined. Hosts that are not independent all belong to one worker, and their calls do not access
        the network.
        """
    def broadcast(self, data: bytes, others: bool = False) -> None:
        """Send a message to all workers, including this one, or to the others, which receive it at the next meeting."""
    def gather(self, data: bytes, to_all: bool = False) -> list[bytes]:
        """Return the values that all workers give, by rank.

        Unless `to_all` is set, only the first worker gets them, and the others an empty list. This is not allowed in a
        call of a host.
        """
    def take_records(self) -> bytes:
        """Return traces and captures, for another worker to add to its own."""
    def add_records(self, data: bytes) -> None: ...

    # -- link events ------------------------------------------------------------------------------------------------
    def set_link_up(self, link: int, up: bool) -> None:
        """Set whether a link is up.

        When it goes down, frames on the wire and in the queues to it are lost (LINK_DOWN), as are frames sent until it
        is up again.
        """
    def set_link_rate(self, link: int, rate_bps: int, *, direction: Literal[0, 1] | None = None) -> None:
        """Set the rate from the next frame on; the direction None means both."""
    def set_link_delay(self, link: int, delay_ns: int) -> None:
        """Set the delay from the next frame on, which does not overtake those in flight.

        Where workers share the network, each calls this at the same time.
        """
    def set_link_loss(self, link: int, loss: float) -> None:
        """Set the loss from the next frame on; see `connect`."""

    # -- what was recorded ------------------------------------------------------------------------------------------
    def port_stats(self) -> dict[str, bytes]:
        """Return a row for each connected port.

        Columns: node, port, link, direction, rate_bps, rx_packets, rx_bytes, tx_packets, tx_bytes, busy_ns (time that
        its transmitter was sending, including PFC frames, which no other column counts), drop_<reason> (packets; see
        `conservation`), drop_bytes, depth_bytes, max_bytes, max_packets. A switch that lost packets at ports that it
        does not have has a further row with port, link and direction -1.
        """
    def queue_stats(self) -> dict[str, bytes]:
        """Return a row for each queue of a switch that was ever used.

        Columns: node, port, priority, enqueued_packets, enqueued_bytes (those that passed an idle port
        included), dropped_packets, dropped_bytes (no room), depth_bytes, depth_packets, max_bytes,
        max_packets, byte_ns (integral of depth over time: mean depth = byte_ns / now_ns).
        """
    def pfc_stats(self) -> dict[str, bytes]:
        """Return a row for each (port, priority) of a switch that ever paused or was paused.

        Columns: node, port, priority, pauses_sent (refreshes excluded), resumes_sent, refreshes_sent,
        pauses_received, paused_ns (its transmitter stood still or would have), longest_ns, ingress_max_bytes,
        headroom_max_bytes. Times include a pause that still lasts.
        """
    def link_counters(self) -> dict[str, bytes]:
        """Return a short form of `port_stats` and `pfc_stats` of each connected port, which is cheap to call often.

        Columns: node, port, tx_packets, tx_bytes, busy_ns, paused_ns (of all priorities), marked (packets that left
        with ECN CE and arrived without), dropped (for all reasons), depth_bytes.
        """
    def buffer_stats(self) -> dict[str, bytes]:
        """Return one row for each switch: node, depth_bytes, max_bytes."""
    def port_counts(self, node: int) -> dict[int, dict[str, Any]]:
        """Return the counts of a switch's ports, as arguments of `p4runtime.ports.port_counts`.

        In a network of several workers these are the counts of this one.
        """
    def flow(self, src_ip: int, dst_ip: int, qp: int) -> int:
        """Return the tag of a flow: IPv4 addresses and BTH destination queue pair (0 for flows that are not RoCEv2).

        Tags count from 1; a flow gets the next one when its first frame enters the network, or here.
        """
    def flow_stats(self) -> dict[str, bytes]:
        """Return a row for each tag.

        Columns: tag, src_ip, dst_ip, qp, host (the first sender, -1: none), sent_packets, sent_bytes,
        delivered_packets, delivered_bytes, dropped_packets, dropped_bytes, first_sent_ns, last_sent_ns,
        first_delivered_ns, last_delivered_ns (-1: never).
        """
    def conservation(self) -> dict[str, int]:
        """Return the ledger of packets: entered + copied == delivered + drop_<reason>... + queued + on_wire.

        The reasons: program_ingress, program_egress, buffer, no_port, link_down, link_loss, hops, endless. copied ==
        cloned + multicast, as the pipelines count them. PFC frames are separate: pfc_sent == pfc_received + pfc_lost +
        pfc_on_wire. queued, on_wire and pfc_on_wire are counted by walking through queues and wires. "balance" and
        "pfc_balance" are the left side minus the right side; any value but 0 is a bug.
        """
    def pfc_events(self) -> list[tuple[int, Literal["storm", "deadlock"], int, list[tuple[int, int, int]]]]:
        """Return (time_ns, kind, id, [(node, port, priority), ...]) of storms and deadlocks.

        storm: this queue was blocked for longer than the limit. deadlock: these queues wait for each other in this
        order, and nothing outside can release them.
        """
    def watch_pfc(
        self, *, interval_ns: int = 100_000, storm_ns: int = 1_000_000, stop_on_deadlock: bool = True
    ) -> None:
        """Set the interval at which paused queues are checked, and the pause after which they are reported.

        The check is on by default with these values; it takes place at multiples of the interval.
        """

    # -- recording --------------------------------------------------------------------------------------------------
    def probe(self, kind: Probe, node: int, port: int = 0, priority: int | None = None) -> int:
        """Add a column of `samples`, before the first sample; a host has tx_bytes only."""
    def sample(self, interval_ns: int, start_ns: int = 0) -> None:
        """Sample all probes at start_ns, start_ns + interval_ns, ..., in the state before any event of that instant."""
    def samples(self) -> tuple[bytes, bytes]:
        """Remove and return (times, values): int64, values row-major, one row per time, one column per probe."""
    def trace(
        self, tag: int, packets: int = ..., from_ns: int = 0, until_ns: int = ..., pipelines: bool = True
    ) -> None:
        """Record every hop of this flow's packets; 0 means all packets.

        The limits apply to all traced flows together: the number of packets, and the packets sent from from_ns on and
        before until_ns. Without `pipelines`, events of pipelines built for tracing are not recorded.
        """
    def trace_records(self) -> list[tuple[int, int, str | RawEvent, int, int, int, int, int, int]]:
        """Remove and return records of hops, by time and node.

        They are (time_ns, node, event, port, priority, depth_bytes, wire_len, packet, psn). `packet` is the same for
        all hops of one, and of its copies: source address << 32, and a number from 1; 0: it belongs to no flow. psn is
        -1 where it had none when it was sent. Events: "send" (a host starts), "receive" (last bit in, at a switch or a
        host), "enqueue" (depth: that on arrival), "transmit" (starts; depth: that on departure), "drop:<reason>", and
        the events of pipelines built for tracing (see `Switch.traced`). priority is -1 where it is not known.
        """
    def capture(self, link: int, snap_bytes: int = 65535) -> None:
        """Capture both directions of a link, including PFC frames, when a frame's first bit is on it."""
    def captured(self) -> list[tuple[int, int, int, bytes, int]]:
        """Remove and return (time_ns, link, direction, header bytes, wire_len), by time and link."""
