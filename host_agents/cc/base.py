"""Base classes of congestion-control protocols: reaction point (sender) and notification point (receiver).

A reaction point sets `rate_bps` and `window_bytes` for the rate limiters of the QPs that share it.
A rate counts the bytes that links charge, including framing, and a window counts the bytes of
frames (`Path.charged_bps`). The NIC calls its `on_...` methods, which do nothing by default. It can
read its `path`, its `traffic`, which only the transport writes, and its `host`. It sends packets
through its `outlet`.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final

from mypy_extensions import mypyc_attr

from host_agents import framing, wire
from host_agents.errors import HostError, LimitError
from host_agents.packets import Packet
from host_agents.pcie import Pcie
from host_agents.timers import Timer, TimerOwner, TimerQueue

UNLIMITED: Final = 1e18  # window in bytes that never closes
MAX_RATE_BPS: Final = 1e18  # upper limit of a reaction point's rate, above that of any link


class Path:
    """Properties of the network that a reaction point knows before it sends."""

    def __init__(
        self,
        line_rate_bps: float,
        base_rtt_ns: int,
        mtu_bytes: int,
        wire_bytes: int,
        cell_bytes: int,
        base_rtts_ns: tuple[int, ...] = (),
        frame_overhead_bytes: int = 0,
        bottleneck_bps: float = 0.0,
    ) -> None:
        self.line_rate_bps = line_rate_bps
        # The rate of the slower one of the two ends' links; 0 if the other end's is unknown.
        self.bottleneck_bps = min(bottleneck_bps, line_rate_bps) if bottleneck_bps > 0.0 else line_rate_bps
        # The largest base RTT of the network between ends with links like these two.
        self.base_rtt_ns = base_rtt_ns
        self.mtu_bytes = mtu_bytes  # payload of a full packet
        self.wire_bytes = wire_bytes  # a full packet on the wire, as it leaves the host
        self.cell_bytes = cell_bytes  # unit of the queue lengths that switches report
        self.frame_overhead_bytes = frame_overhead_bytes  # bytes that a link charges for a frame beyond its own
        self._base_rtts_ns = base_rtts_ns

    def link_bytes(self, frame_bytes: int) -> int:
        """Return the bytes that a link charges for a frame of `frame_bytes`, Ethernet to ICRC."""
        if self.frame_overhead_bytes == 0:  # this is called for every packet that is sent
            return frame_bytes
        return framing.link_bytes(frame_bytes, self.frame_overhead_bytes)

    def charged_bps(self, frames_bps: float) -> float:
        """Return the rate that a link charges for full packets with a rate of `frames_bps`."""
        if self.frame_overhead_bytes == 0:
            return frames_bps
        return frames_bps * float(self.link_bytes(self.wire_bytes)) / float(self.wire_bytes)

    def frames_bps(self, charged_bps: float) -> float:
        """Return the rate of full packets for which a link charges `charged_bps`; the inverse of `charged_bps`."""
        if self.frame_overhead_bytes == 0:
            return charged_bps
        return charged_bps * float(self.wire_bytes) / float(self.link_bytes(self.wire_bytes))

    def base_rtt_over(self, hops: int) -> int:
        """Return the base RTT of paths over a number of routers.

        Parameters
        ----------
        hops
            Number of routers.

        Returns
        -------
        int
            Base RTT in ns, or the network's largest if that of `hops` is unknown.
        """
        if 0 <= hops < len(self._base_rtts_ns) and self._base_rtts_ns[hops] > 0:
            return self._base_rtts_ns[hops]
        return self.base_rtt_ns

    @property
    def bdp_bytes(self) -> float:
        """Bandwidth-delay product: the rate of the slower end times the base RTT."""
        return self.bottleneck_bps * self.base_rtt_ns / 8e9


class Feedback:
    """Content of one ACK.

    The NIC reuses one object: keep its values, never the object.
    """

    def __init__(self) -> None:
        self.now_ns = 0
        self.order = 0  # number of the acknowledged packet among all that this reaction point has sent, from 0
        self.acked_bytes = 0  # newly acknowledged wire bytes
        # Time since the packet was last sent; -1 if unknown. If the packet was sent before, and
        # this is below the base RTT, an earlier copy has caused the ACK.
        self.rtt_ns = -1
        self.resent = False  # the packet was sent more than once
        # Whether the ACK does not belong to a request: the packet filled a gap, or no packet caused
        # the ACK.
        # ACK.
        self.unsolicited = False
        self.marked = False  # the packet arrived with ECN CE
        self.entropy = 0  # UDP source port of the packet
        self.hops = 0  # routers that the ACK passed (from its TTL)
        # INT echo: `int_hops` records of 8 bytes from `frame[int_offset]`; `int_hops` is 0 without
        # an echo.
        self.frame = b""
        self.int_offset = 0
        self.int_hops = 0
        self.path_id = 0


class Trimmed:
    """Description of a trimmed packet, as a NACK reports it.

    The NIC reuses one object: keep its values, never the object.
    """

    def __init__(self) -> None:
        self.now_ns = 0
        self.wire_bytes = 0  # size before it was trimmed
        self.rtt_ns = -1  # time since it was sent, if it was sent once; -1: unknown
        self.marked = False  # it had ECN CE before it was trimmed
        self.last_hop = False  # trimmed on the port to its receiver, if switches distinguish that


class Traffic:
    """Totals of the data that the queue pairs of one reaction point have sent.

    Only the transport writes them.
    """

    def __init__(self) -> None:
        self.sent_packets = 0  # data packets sent so far, including retransmissions
        self.fresh_packets = 0  # data packets sent so far, without retransmissions
        # Wire bytes of data packets that are in flight, neither acknowledged nor given up; and of
        # those that wait to be sent or resent.
        self.inflight_bytes = 0
        self.waiting_bytes = 0
        self.held_bytes = 0  # part of these that belongs to messages queued behind one that travels alone
        self.unacked_bytes = 0  # demand: payload of started messages minus the acknowledged payload

    def oldest_unacked(self) -> int:
        """Return the number of the oldest unacknowledged packet, in order of first sending.

        It is `fresh_packets` if there is none.
        """
        return self.fresh_packets


class Counting:
    """Part of a NIC that counts flows, as switches do."""

    def left(self) -> dict[str, int]:
        """Return the current counts by name, which are 0 when all flows have ended."""
        raise NotImplementedError


class Host:
    """Shared state of all points of one NIC."""

    def __init__(
        self,
        seed: int = 0,
        rto_ns: int = 1_000_000,
        timers: TimerQueue | None = None,
        nics: tuple[int, ...] = (),
        last_hop_dscp: int = -1,
        pcie: Pcie | None = None,
    ) -> None:
        self.pcie = pcie  # None: received data never waits
        self.seed = seed
        self._last_hop_dscp = last_hop_dscp
        self.nics = nics  # addresses of the network's NICs by their ids
        self.rto_ns = rto_ns  # the retransmission time-out
        self.timers = timers or TimerQueue()
        self.random = random.Random(seed)
        self._parts: dict[str, object] = {}

    def part(self, name: str, make: Callable[[], object]) -> object:
        """Return a part of this NIC that its queue pairs share.

        Parameters
        ----------
        name
            Name of the part.
        make
            Function that makes it at the first call.

        Returns
        -------
        object
            The part.
        """
        part = self._parts.get(name)
        if part is None:
            part = make()
            self._parts[name] = part
        return part

    def trimmed_at_last_hop(self, frame: bytes) -> bool:
        """Return whether the packet `frame` was trimmed on the port to this NIC.

        False if switches do not distinguish that.
        """
        return frame[wire.TOS] >> 2 == self._last_hop_dscp

    def residue(self) -> dict[str, int]:
        """Return the counts of flows of all parts that are not 0."""
        return {
            f"{what} of the {name}": left
            for name, part in self._parts.items()
            if isinstance(part, Counting)
            for what, left in part.left().items()
            if left
        }


@mypyc_attr(allow_interpreted_subclasses=True)
class Outlet:
    """Control packets of a point to its peer, and counters of its NIC.

    This base class sends nothing.
    """

    def __init__(self, host: Host) -> None:
        self.host = host

    def qpn(self) -> int:
        """Return the number of the queue pair that sends."""
        return 0

    def peer_address(self) -> int:
        """Return the IPv4 address of the peer."""
        return 0

    def partition_key(self) -> int:
        """Return the partition key of the queue pair that sends."""
        return 0xFFFF

    def data_priority(self) -> int:
        """Return the priority of the queue pair's data packets."""
        return 0

    def control_entropy(self, now_ns: int) -> int:
        """Return the entropy (UDP source port) that the load balancer gives to a control packet sent now."""
        return 0

    def send_control(self, packet: Packet, body: bytes, *, psn: int = 0, entropy: int = -1, priority: int = -1) -> None:
        """Send a control packet to the peer, ahead of all data.

        Parameters
        ----------
        packet
            Declaration of the packet.
        body
            Bytes after the BTH.
        psn
            PSN of the BTH.
        entropy
            UDP source port; default: that of the last data packet.
        priority
            Class; default: that of control packets.
        """

    def send_counter(self, packet: Packet, value: int, entropy: int) -> None:
        """Send a control packet with a body of one 8-byte number, as receiver-driven protocols use.

        Parameters
        ----------
        packet
            Declaration of the packet.
        value
            The number.
        entropy
            UDP source port.
        """

    def send_cnp(self) -> None:
        """Send a congestion notification packet to the peer (annex A17.9.3)."""

    def count_malformed(self) -> None:
        """Count a control packet with impossible contents as malformed."""


@mypyc_attr(allow_interpreted_subclasses=True)
class ReactionOutlet(Outlet):
    """Outlet of a reaction point, which directs the queue pairs that share it.

    Control packets leave through the first of these queue pairs that is open. This base class sends nothing.
    """

    def __init__(self, host: Host, traffic: Traffic) -> None:
        super().__init__(host)
        self.traffic = traffic

    def send_again(self, place: int) -> None:
        """Send data packets again from this place on, in order of first sending, since they have not arrived.

        The protocol detected the loss, so it counts neither as a NAK nor as a time-out.
        """

    def set_priority(self, priority: int) -> None:
        """Set the class in which data packets wait and leave from now on; -1: the NIC's class.

        Requires `own_headers`.
        """

    def may_retry(self, now_ns: int) -> bool:
        """Count a request of the protocol that was not answered in time; return whether it may be repeated.

        False means that the retries are used up: the connection has ended.
        """
        return True

    def set_rto(self, rto_ns: int) -> None:
        """Set the transport's retransmission time-out, which otherwise is the NIC's."""

    def rate_changed(self) -> None:
        """Apply the reaction point's new rate at once."""

    def window_opened(self) -> None:
        """Resume sending, since `may_send` may have become true."""


@mypyc_attr(allow_interpreted_subclasses=True)
class NotificationOutlet(Outlet):
    """Outlet of a notification point, which sends no data. This base class sends nothing."""

    def count_held_pull(self) -> None:
        """Count credit that was held back because earlier packets did not arrive."""


# Outlets of points before `bind`.
_no_reaction_outlet: Final = ReactionOutlet(Host(), Traffic())
_no_notification_outlet: Final = NotificationOutlet(_no_reaction_outlet.host)


@mypyc_attr(allow_interpreted_subclasses=True)
class Point(TimerOwner):
    """Common base of both points: a path, and, once an outlet is bound, a host and timers."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.host = _no_reaction_outlet.host
        self.closed = False
        self._timers: list[Timer] = []

    def timer(self, kind: int = 0) -> Timer:
        """Return a new timer that calls this object's `on_timer`; requires `bind`."""
        timer = Timer(self.host.timers, self, kind)
        self._timers.append(timer)
        return timer

    def close(self) -> None:
        """Stop all timers, since the (last) queue pair is closed."""
        self.closed = True
        for timer in self._timers:
            timer.dismiss()


@mypyc_attr(allow_interpreted_subclasses=True)
class ReactionPoint(Point):
    """Base class of the sender's side. It starts at line rate with an unlimited window."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.outlet = _no_reaction_outlet
        self.rate_bps = path.line_rate_bps
        self.window_bytes = UNLIMITED
        self.traffic = Traffic()
        self.whole: ReactionPoint | None = None  # the composite reaction point that contains this one
        self.draws_credits = False  # every packet, also a resent one, needs a credit of its own
        self.own_headers = False  # it returns each data packet's headers; set at its creation
        # Messages of up to this size travel alone if everything before them is acknowledged when
        # they start: the queue pair sends nothing more until they are acknowledged. Set at its
        # creation.
        self.alone_bytes = -1

    @property
    def shapes_data(self) -> bool:
        """True if it uses more than rate and window: its own headers, or messages that travel alone."""
        return self.own_headers or self.alone_bytes >= 0

    @property
    def at_rest(self) -> bool:
        """True if it sends nothing, and ignores packets of the protocol, until the next message starts.

        It is asked only while all data is acknowledged.
        """
        return True

    def bind(self, outlet: ReactionOutlet) -> None:
        """Bind the point to its outlet and the traffic of its queue pairs; called once, before anything else."""
        self.outlet = outlet
        self.host = outlet.host
        self.traffic = outlet.traffic

    def on_start(self, now_ns: int) -> None:
        """Handle the end of an idle period: a queue pair has something to send again."""

    def on_incast(self, now_ns: int, outlet: Outlet, sequence: int, number: int, members: tuple[int, ...]) -> None:
        """Handle the start of a message of an incast; called before `on_post`.

        Parameters
        ----------
        now_ns
            Current time in ns.
        outlet
            Outlet of the message's queue pair.
        sequence
            Number of the message in its queue pair.
        number
            Number of the incast.
        members
            Ids of the NICs that send to this receiver at that time, this one included.
        """

    def on_post(self, now_ns: int) -> None:
        """Handle the start of a message, which adds to the waiting data; follows `on_start` if that is called."""

    def on_idle(self, now_ns: int) -> None:
        """Handle that all data of a queue pair is acknowledged."""

    def on_requeued(self, now_ns: int) -> None:
        """Handle a packet that SLEEK found missing and queued again.

        `on_nack` is not called, because this is no congestion.
        """

    def data_headers(
        self, now_ns: int, headers: bytes, place: int, message_bytes: int, alone: bool, again: bool
    ) -> bytes:
        """Return all bytes ahead of the payload of a data packet.

        It is called only with `own_headers`, before the packet is counted and charged with its
        length; `on_sent` follows. A `Wrapper` appends headers of a packet. Entropy, PSN and AckReq
        are filled in afterwards.

        Parameters
        ----------
        now_ns
            Current time in ns.
        headers
            The usual headers, up to and with the BTH (and an empty INT shim).
        place
            Place of the packet, in order of first sending.
        message_bytes
            Size of its message.
        alone
            Whether the message travels alone (`alone_bytes`).
        again
            Whether the packet is retransmitted.

        Returns
        -------
        bytes
            Headers up to the payload.
        """
        return headers

    def on_sent(self, now_ns: int, wire_bytes: int) -> None:
        """Handle a data packet that leaves.

        Parameters
        ----------
        now_ns
            Current time in ns.
        wire_bytes
            Bytes that links charge for it.
        """

    def on_ack(self, feedback: Feedback) -> None:
        """Handle an ACK; `feedback` is only valid during the call."""

    def on_nack(self, now_ns: int, wire_bytes: int, trimmed: bool) -> None:
        """Handle a packet that did not arrive whole.

        Parameters
        ----------
        now_ns
            Current time in ns.
        wire_bytes
            Size of the packet, Ethernet to ICRC.
        trimmed
            Whether a switch trimmed it; otherwise it is missing (a NAK).
        """

    def on_trimmed(self, trimmed: Trimmed) -> None:
        """Handle a packet that was trimmed on its way; calls `on_nack`.

        `trimmed` is only valid during the call.
        """
        self.on_nack(trimmed.now_ns, trimmed.wire_bytes, True)

    def on_expired(self, now_ns: int, wire_bytes: int) -> None:
        """Handle the time-out of one packet under selective repeat.

        `on_timeout` follows after all of them.

        Parameters
        ----------
        now_ns
            Current time in ns.
        wire_bytes
            Bytes that links charge for the packet.
        """

    def on_timeout(self, now_ns: int) -> None:
        """Handle a retransmission time-out."""

    def on_cnp(self, now_ns: int) -> None:
        """Handle a congestion notification packet."""

    def on_control(self, now_ns: int, opcode: int, frame: bytes, offset: int) -> None:
        """Handle a control packet (opcodes 0xE0 to 0xFF).

        The NIC then resumes the queue pair that received it if `may_send` has become true. A reaction
        point that several queue pairs share calls `outlet.window_opened` for the others.

        Parameters
        ----------
        now_ns
            Current time in ns.
        opcode
            BTH opcode.
        frame
            Header bytes of the frame.
        offset
            Start of the bytes after the BTH.
        """

    def may_send(self, inflight_bytes: int) -> bool:
        """Return whether the window lets a packet leave now; the last one may exceed it."""
        return inflight_bytes < self.window_bytes

    def set_rate(self, rate_bps: float) -> None:
        """Set the rate at once, which also moves the next-service time.

        Parameters
        ----------
        rate_bps
            Rate that links charge, framing included.

        Raises
        ------
        HostError
            If it is not a finite number above 0.
        """
        if rate_bps != self.rate_bps:
            if not 0.0 < rate_bps <= MAX_RATE_BPS:  # also false for NaN
                raise HostError(f"set_rate({rate_bps!r}): expected bits a second above 0, not infinitely many")
            self.rate_bps = rate_bps
            whole = self.whole
            if whole is None:
                self.outlet.rate_changed()
            else:
                whole.on_part_changed()

    def set_window(self, window_bytes: float) -> None:
        """Set the window at once; packets in flight are not affected by a smaller one.

        Parameters
        ----------
        window_bytes
            Bytes of frames in flight, Ethernet to ICRC.

        Raises
        ------
        HostError
            If it is negative or NaN.
        """
        if not window_bytes >= 0.0:  # also true for NaN
            raise HostError(f"set_window({window_bytes!r}): expected a number of bytes from 0 on")
        wider = window_bytes > self.window_bytes
        self.window_bytes = window_bytes
        if wider:
            whole = self.whole
            if whole is None:
                self.outlet.window_opened()
            else:
                whole.on_part_changed()

    def expect_limits(self) -> None:
        """Raise LimitError for an assigned rate or window that `set_rate` or `set_window` refuses."""
        if not 0.0 < self.rate_bps <= MAX_RATE_BPS:
            mistake = f"rate_bps = {self.rate_bps!r}: expected bits a second above 0, not infinitely many"
        elif not self.window_bytes >= 0.0:
            mistake = f"window_bytes = {self.window_bytes!r}: expected a number of bytes from 0 on"
        else:
            return
        raise LimitError(f"{type(self).__name__}.{mistake}", self)

    def on_part_changed(self) -> None:
        """Handle a new rate or a wider window of a part."""


@mypyc_attr(allow_interpreted_subclasses=True)
class NotificationPoint(Point):
    """Base class of the receiver's side, which does nothing: ACKs and NAKs belong to the transport.

    If `listens` is false, it is not called and sends nothing, and one instance serves all queue
    pairs of a NIC.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.outlet = _no_notification_outlet
        self.listens = True  # whether it gets packets and messages; set at its creation
        self.pulling = False  # whether it is in the pull pacer's ring
        # Whether it uses turns for further credit while no receiver owes any; set at its creation.
        self.pulls_ahead = False
        self.idling = False  # whether it is in the pull pacer's idle ring
        # Whether it joins the idle ring whenever it has no credit left to send, even if it already
        # is a member; set at its creation.
        # already; set at its creation.
        self.idles_repeatedly = False
        self.own_ack: Packet | None = None  # packet of its answers: an AETH, then `ack_body`; go-back-N only

    def bind(self, outlet: NotificationOutlet) -> None:
        """Bind the point to its outlet; called once, before anything else."""
        self.outlet = outlet
        self.host = outlet.host

    def on_data(self, now_ns: int, marked: bool, frame: bytes) -> None:
        """Handle a data packet of this QP, in order or not.

        Parameters
        ----------
        now_ns
            Current time in ns.
        marked
            Whether it arrived with ECN CE.
        frame
            Header bytes of the frame.
        """

    def echo(self, now_ns: int, marked: bool, frame: bytes) -> bool:
        """Return whether the answer to a data packet echoes its ECN mark.

        It is called only with `own_ack`, for each data packet, after its delivery and before its
        answer, if there is one.

        Parameters
        ----------
        now_ns
            Current time in ns.
        marked
            Whether it arrived with ECN CE.
        frame
            Header bytes of the frame.

        Returns
        -------
        bool
            Whether the answer echoes the mark.
        """
        return marked

    def ack_body(self) -> bytes:
        """Return the bytes of an ACK or NAK after its AETH, always of the same size.

        It is called only with `own_ack`.
        """
        return b""

    def on_trimmed(self, now_ns: int, missing: bool, frame: bytes) -> None:
        """Handle the header of a data packet whose payload a switch removed.

        Parameters
        ----------
        now_ns
            Current time in ns.
        missing
            Whether the packet was still missing. If so, a NACK requests it again.
        frame
            Header bytes of the frame.
        """

    def on_message_start(self, now_ns: int) -> None:
        """Handle the in-order delivery of the first packet of a message."""

    def on_message_end(self, now_ns: int, size_bytes: int) -> None:
        """Handle the in-order delivery of the last packet of a message.

        The call follows that of `on_message_start` immediately if the message has one packet.

        Parameters
        ----------
        now_ns
            Current time in ns.
        size_bytes
            Payload of the message.
        """

    def on_control(self, now_ns: int, opcode: int, frame: bytes, offset: int) -> None:
        """Handle a control packet for the receiver.

        Parameters
        ----------
        now_ns
            Current time in ns.
        opcode
            BTH opcode.
        frame
            Header bytes of the frame.
        offset
            Start of the bytes after the BTH.
        """

    def on_turn(self, now_ns: int) -> int:
        """Send one credit on a turn of the NIC's pull pacer.

        Returns the bytes that links charge for the data that the credit triggers, or 0.
        """
        return 0

    def on_idle_turn(self, now_ns: int) -> int:
        """Send further credit on a turn when no receiver owes any (`pulls_ahead`).

        Returns the bytes like `on_turn`; 0 ends its turns.
        """
        return 0
