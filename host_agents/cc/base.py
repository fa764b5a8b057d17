"""What a congestion-control protocol is made of: a reaction point (sender) and a notification point (receiver).

A reaction point sets `rate_bps` and `window_bytes`; the rate limiters of the QPs that share it obey. A rate counts what
links charge, framing included, a window the bytes of frames (`Path.charged_bps`). It learns from the `on_...` methods,
which the NIC calls (all of them do nothing by default), and from values: its `path`, its `traffic`, which the transport
alone writes, and the `host` it is on. What it has to say goes through its `outlet`.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final

from mypy_extensions import mypyc_attr

from host_agents import framing, wire
from host_agents.errors import HostError, LimitError
from host_agents.packets import Packet
from host_agents.timers import Timer, TimerOwner, TimerQueue

UNLIMITED: Final = 1e18  # bytes: a window that never closes
MAX_RATE_BPS: Final = 1e18  # of a reaction point: more than any link has


class Path:
    """What a reaction point may know of the network before it has sent anything."""

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
        # The slower one of the two ends' links; 0: nothing is known of the other end.
        self.bottleneck_bps = min(bottleneck_bps, line_rate_bps) if bottleneck_bps > 0.0 else line_rate_bps
        # The largest base RTT of the network, between ends with links such as these two have.
        self.base_rtt_ns = base_rtt_ns
        self.mtu_bytes = mtu_bytes  # payload of a full packet
        self.wire_bytes = wire_bytes  # a full packet on the wire, as it leaves the host
        self.cell_bytes = cell_bytes  # unit of the queue lengths that switches report
        self.frame_overhead_bytes = frame_overhead_bytes  # that a link takes for a frame beyond its own bytes
        self._base_rtts_ns = base_rtts_ns

    def link_bytes(self, frame_bytes: int) -> int:
        """What a link charges a frame of so many bytes, Ethernet to ICRC."""
        if self.frame_overhead_bytes == 0:  # asked for every packet that is sent
            return frame_bytes
        return framing.link_bytes(frame_bytes, self.frame_overhead_bytes)

    def charged_bps(self, frames_bps: float) -> float:
        """What a link charges a second of full packets that have so many bits a second: a limiter's rate for them."""
        if self.frame_overhead_bytes == 0:
            return frames_bps
        return frames_bps * float(self.link_bytes(self.wire_bytes)) / float(self.wire_bytes)

    def frames_bps(self, charged_bps: float) -> float:
        """Bits of full packets a second of which a link charges so much: what `charged_bps` takes."""
        if self.frame_overhead_bytes == 0:
            return charged_bps
        return charged_bps * float(self.wire_bytes) / float(self.link_bytes(self.wire_bytes))

    def base_rtt_over(self, hops: int) -> int:
        """The base RTT, ns, of paths through so many routers, where it is known; else the network's largest."""
        if 0 <= hops < len(self._base_rtts_ns) and self._base_rtts_ns[hops] > 0:
            return self._base_rtts_ns[hops]
        return self.base_rtt_ns

    @property
    def bdp_bytes(self) -> float:
        """Bandwidth-delay product: the rate of the slower end times the base RTT."""
        return self.bottleneck_bps * self.base_rtt_ns / 8e9


class Feedback:
    """What one ACK tells. The NIC reuses one object: keep its values, never the object."""

    def __init__(self) -> None:
        self.now_ns = 0
        self.order = 0  # place of the acknowledged packet among all that this reaction point has sent, from 0
        self.acked_bytes = 0  # wire bytes that left the network: newly acknowledged
        # Since the packet was sent last; -1: not known. If it was sent before, a time under the base RTT shows that an
        # earlier copy has caused the ACK.
        self.rtt_ns = -1
        self.resent = False  # the packet was sent more than once
        # It asked for no ACK, and has one because it filled a gap, or no packet caused the ACK.
        self.late = False
        self.marked = False  # the packet arrived with ECN CE
        self.entropy = 0  # its UDP source port
        self.hops = 0  # routers that the ACK passed (from its TTL)
        # INT echo: `int_hops` records of 8 bytes from `frame[int_offset]`; 0 hops when there is none.
        self.frame = b""
        self.int_offset = 0
        self.int_hops = 0
        self.path_id = 0


class Trimmed:
    """What a NACK tells of the packet that was trimmed.

    The NIC reuses one object: keep its values, never the object.
    """

    def __init__(self) -> None:
        self.now_ns = 0
        self.wire_bytes = 0  # its size before
        self.rtt_ns = -1  # since it was sent, if that was once; -1: not known
        self.marked = False  # with ECN CE, before it was trimmed
        self.last_hop = False  # on the port to its receiver; where switches tell that apart


class Traffic:
    """What the queue pairs of one reaction point have sent, in sum. The transport alone writes it."""

    def __init__(self) -> None:
        self.sent_packets = 0  # data packets sent so far, retransmissions included
        self.fresh_packets = 0  # the same without retransmissions
        # Data packets' bytes on the wire: sent and neither acknowledged nor given up; to be sent, first or again.
        self.inflight_bytes = 0
        self.waiting_bytes = 0
        self.held_bytes = 0  # of those, of messages that wait for one that travels alone
        self.unacked_bytes = 0  # payload of the messages that have started, less what is acknowledged: the demand

    def oldest_unacked(self) -> int:
        """Place, in order of first sending, of the oldest packet not acknowledged; `fresh_packets` if there is none."""
        return self.fresh_packets


class Counting:
    """A part of a NIC that counts flows, like a switch."""

    def left(self) -> dict[str, int]:
        """What it has of them, by name: when they are gone, 0."""
        raise NotImplementedError


class Host:
    """What all points of one NIC have in common."""

    def __init__(
        self,
        seed: int = 0,
        rto_ns: int = 1_000_000,
        timers: TimerQueue | None = None,
        nics: tuple[int, ...] = (),
        last_hop_dscp: int = -1,
    ) -> None:
        self.seed = seed
        self._last_hop_dscp = last_hop_dscp
        self.nics = nics  # addresses of the network's NICs by their ids
        self.rto_ns = rto_ns  # the retransmission time-out
        self.timers = timers or TimerQueue()
        self.random = random.Random(seed)
        self._parts: dict[str, object] = {}

    def part(self, name: str, make: Callable[[], object]) -> object:
        """The part of this NIC that has this name, which its queue pairs share. The first that asks makes it."""
        found = self._parts.get(name)
        if found is None:
            found = make()
            self._parts[name] = found
        return found

    def trimmed_at_last_hop(self, frame: bytes) -> bool:
        """Return whether the packet `frame` was trimmed on the port to this NIC.

        False where switches do not tell that apart.
        """
        return frame[wire.TOS] >> 2 == self._last_hop_dscp

    def residue(self) -> dict[str, int]:
        """What its parts count of flows, where that is not 0."""
        return {
            f"{what} of the {name}": left
            for name, part in self._parts.items()
            if isinstance(part, Counting)
            for what, left in part.left().items()
            if left
        }


@mypyc_attr(allow_interpreted_subclasses=True)
class Outlet:
    """The voice of a point: control packets to its peer, and word to those who obey its rate and window.

    A shared reaction point speaks through the first of its queue pairs that is open. This base class says nothing.
    """

    def __init__(self, host: Host, traffic: Traffic) -> None:
        self.host = host
        self.traffic = traffic

    def qpn(self) -> int:
        """The number of the queue pair that speaks."""
        return 0

    def peer_address(self) -> int:
        """The IPv4 address that it speaks to."""
        return 0

    def partition_key(self) -> int:
        """That of the queue pair that speaks."""
        return 0xFFFF

    def data_priority(self) -> int:
        """That of the queue pair's data packets."""
        return 0

    def control_entropy(self, now_ns: int) -> int:
        """The entropy (UDP source port) that the load balancer gives to a control packet that is sent now."""
        return 0

    def send_control(self, packet: Packet, body: bytes, *, psn: int = 0, entropy: int = -1, priority: int = -1) -> None:
        """A control packet to the peer, `body` after its BTH, ahead of all data.

        Entropy and priority default to those of the last data packet and of control packets.
        """

    def send_counter(self, packet: Packet, value: int, entropy: int) -> None:
        """A control packet whose body is one number of 8 bytes: what receiver-driven protocols tell each other."""

    def send_cnp(self) -> None:
        """A congestion notification packet to the peer (annex A17.9.3)."""

    def send_again(self, place: int) -> None:
        """Data packets from this place on, in order of first sending, have not arrived: they are sent again.

        The protocol knows it, so it counts neither as a NAK nor as a time-out.
        """

    def set_priority(self, priority: int) -> None:
        """The class in which data packets wait and leave from now on; -1: the NIC's. With `own_headers` only."""

    def may_retry(self, now_ns: int) -> bool:
        """A request of the protocol's own was not answered in time. False: once too often; nobody sends any more."""
        return True

    def count_malformed(self) -> None:
        """A control packet said what cannot be: the NIC counts it."""

    def count_held_pull(self) -> None:
        """Credit was held back because nothing came of what was sent before: the queue pair counts it."""

    def rate_changed(self) -> None:
        """The reaction point has another rate, effective at once."""

    def window_opened(self) -> None:
        """`may_send` may say more than before."""


_nowhere: Final = Outlet(Host(), Traffic())  # until `bind`


@mypyc_attr(allow_interpreted_subclasses=True)
class Point(TimerOwner):
    """What both sides have: a path, and, once they are bound, a host, a voice and timers."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.outlet = _nowhere
        self.host = _nowhere.host
        self.closed = False
        self._timers: list[Timer] = []

    def bind(self, outlet: Outlet) -> None:
        """Called once, before anything else."""
        self.outlet = outlet
        self.host = outlet.host

    def timer(self, kind: int = 0) -> Timer:
        """A new timer that calls this object's `on_timer`. Only after `bind`."""
        timer = Timer(self.host.timers, self, kind)
        self._timers.append(timer)
        return timer

    def close(self) -> None:
        """The (last) queue pair is closed: no timer shall fire any more."""
        self.closed = True
        for timer in self._timers:
            timer.dismiss()


@mypyc_attr(allow_interpreted_subclasses=True)
class ReactionPoint(Point):
    """Base class of the sender's side. It starts at line rate with an unlimited window."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.rate_bps = path.line_rate_bps
        self.window_bytes = UNLIMITED
        self.traffic = Traffic()
        self.whole: ReactionPoint | None = None  # that this one is a part of
        self.draws_credits = False  # every packet leaves on a credit of its own, one that is sent again, too
        self.own_headers = False  # it is asked for each data packet's headers; set when it is made
        # A message of up to so many bytes that starts when all before it is acknowledged travels alone: its queue pair
        # sends nothing behind it before it is acknowledged, too; set likewise.
        self.alone_bytes = -1

    @property
    def shapes_data(self) -> bool:
        """Whether it declares more than rate and window: headers of its own, or messages that travel alone."""
        return self.own_headers or self.alone_bytes >= 0

    def bind(self, outlet: Outlet) -> None:
        super().bind(outlet)
        self.traffic = outlet.traffic

    def on_start(self, now_ns: int) -> None:
        """A queue pair has something to send, after it had nothing."""

    def on_incast(self, now_ns: int, outlet: Outlet, sequence: int, number: int, members: tuple[int, ...]) -> None:
        """Before `on_post`: message number `sequence` of the queue pair of `outlet` is one of an incast's.

        `members` are the ids of the NICs that send to this receiver at that time, this one among them.
        """

    def on_post(self, now_ns: int) -> None:
        """A message starts: what waits has grown. Follows `on_start`, if that is called, too."""

    def on_idle(self, now_ns: int) -> None:
        """All that a queue pair had to send is acknowledged."""

    def on_requeued(self, now_ns: int) -> None:
        """SLEEK found a packet missing, which waits to be sent again. `on_nack` is not called: it is no congestion."""

    def data_headers(
        self, now_ns: int, headers: bytes, place: int, message_bytes: int, alone: bool, again: bool
    ) -> bytes:
        """All bytes ahead of the payload of a data packet that leaves, made of `headers`, the usual ones.

        Asked with `own_headers` only, before the packet is counted and charged with the length that it then has;
        `on_sent` follows. Both go up to and with the BTH (and an empty INT shim); a `Wrapper` puts headers of a packet
        behind. Entropy, PSN and AckReq are filled in afterwards. `place` is the packet's, in order of first sending.
        Its message has `message_bytes` and travels `alone` or not (`alone_bytes`); it is sent `again`, or for the first
        time.
        """
        return headers

    def on_sent(self, now_ns: int, wire_bytes: int) -> None:
        """A data packet leaves."""

    def on_ack(self, feedback: Feedback) -> None:
        """An ACK arrived. `feedback` is only valid during the call."""

    def on_nack(self, now_ns: int, wire_bytes: int, trimmed: bool) -> None:
        """A packet of this size did not arrive whole: trimmed on its way, or missing (a NAK)."""

    def on_trimmed(self, trimmed: Trimmed) -> None:
        """A packet was trimmed on its way. `trimmed` is only valid during the call. It calls `on_nack`."""
        self.on_nack(trimmed.now_ns, trimmed.wire_bytes, True)

    def on_expired(self, now_ns: int, wire_bytes: int) -> None:
        """Selective repeat: the time-out of one packet of this size expired. When all are told of, `on_timeout`."""

    def on_timeout(self, now_ns: int) -> None:
        """A retransmission time-out expired."""

    def on_cnp(self, now_ns: int) -> None:
        """A congestion notification packet arrived."""

    def on_control(self, now_ns: int, opcode: int, frame: bytes, offset: int) -> None:
        """A control packet (0xE0-0xFF) arrived; what follows the BTH starts at `frame[offset]`."""

    def may_send(self, inflight_bytes: int) -> bool:
        """Whether a packet may leave now, as far as the window goes. The last one may overshoot it."""
        return inflight_bytes < self.window_bytes

    def set_rate(self, rate_bps: float) -> None:
        """A new rate, effective at once: it also moves the next-service time of what was sent last.

        Raises HostError unless it is a number above 0.
        """
        if rate_bps != self.rate_bps:
            if not 0.0 < rate_bps <= MAX_RATE_BPS:  # a NaN, too
                raise HostError(f"set_rate({rate_bps!r}): expected bits a second above 0, not infinitely many")
            self.rate_bps = rate_bps
            whole = self.whole
            if whole is None:
                self.outlet.rate_changed()
            else:
                whole.on_part_changed()

    def set_window(self, window_bytes: float) -> None:
        """A new window, effective at once. A smaller one takes nothing back.

        Raises HostError unless it is a number from 0 on.
        """
        if not window_bytes >= 0.0:  # a NaN, too
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
        """Raises LimitError for a rate or a window that was assigned, and that `set_rate` or `set_window` refuses."""
        if not 0.0 < self.rate_bps <= MAX_RATE_BPS:
            told = f"rate_bps = {self.rate_bps!r}: expected bits a second above 0, not infinitely many"
        elif not self.window_bytes >= 0.0:
            told = f"window_bytes = {self.window_bytes!r}: expected a number of bytes from 0 on"
        else:
            return
        raise LimitError(f"{type(self).__name__}.{told}", self)

    def on_part_changed(self) -> None:
        """A part of this one has set another rate or a wider window."""


@mypyc_attr(allow_interpreted_subclasses=True)
class NotificationPoint(Point):
    """Base class of the receiver's side. By itself it does nothing: ACKs and NAKs are the transport's."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.pulling = False  # in the pull pacer's ring
        self.pulls_ahead = False  # it has turns for more than it owes when nobody owes anything; set when it is made
        self.idling = False  # in the pull pacer's ring of those
        self.own_ack: Packet | None = None  # what it answers with: an AETH, then `ack_body`; go-back-N only

    def on_data(self, now_ns: int, marked: bool, frame: bytes) -> None:
        """A data packet of this QP arrived, in order or not, ECN-marked or not."""

    def echo(self, now_ns: int, marked: bool, frame: bytes) -> bool:
        """Whether the answer to a data packet echoes its ECN mark. Asked for with `own_ack` only: for each data packet,
        when what it brings is delivered, before its answer, if it has one, is made.
        """
        return marked

    def ack_body(self) -> bytes:
        """What an ACK or NAK carries after its AETH, always of the same size. With `own_ack` only."""
        return b""

    def on_trimmed(self, now_ns: int, missing: bool, frame: bytes) -> None:
        """The header of a data packet arrived whose payload a switch cut off; `missing`: a NACK asks for it again."""

    def on_message_start(self, now_ns: int) -> None:
        """The first packet of a message is delivered, in order."""

    def on_message_end(self, now_ns: int, size_bytes: int) -> None:
        """The last packet of a message is delivered. Follows `on_message_start`, maybe at once."""

    def on_control(self, now_ns: int, opcode: int, frame: bytes, offset: int) -> None:
        """A control packet for the receiver arrived; what follows the BTH starts at `frame[offset]`."""

    def on_turn(self, now_ns: int) -> int:
        """Its turn at the NIC's pull pacer: send one credit. Returns what links charge for what it draws, or 0."""
        return 0

    def on_idle_turn(self, now_ns: int) -> int:
        """Its turn while nobody owes credit, of one that `pulls_ahead`. Returns the same; 0: it has no more turns."""
        return 0
