"""SLEEK, Ultra Ethernet's recovery of losses where switches do not trim and packets take several paths.

Packets that arrive early tell of a loss only when there are many of them. When they are worth more than some windows, a
recovery begins: what is missing between the first missing packet and the newest one, at most a window of it, is sent
again, each packet once, whatever the window is. The recovery ends when all that had been sent when it began has
arrived. The window does not react; only time-outs shrink it.

When no acknowledgement comes for some base RTTs, a probe leaves, and then another every few: a packet without payload
that the receiver has already, so that it is answered at once. It waits in the queues of data. When its answer shows
hardly any delay, what was sent before it and is missing is lost.

The reference simulator sends again all that is missing, also what has just left; here a packet is taken as lost only if
it left before the one that is acknowledged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from host_agents.timers import Timer, TimerOwner

if TYPE_CHECKING:
    from host_agents.selective_repeat import SelectiveRepeatSender

FEWEST_PACKETS: Final = 5  # early ones that begin a recovery
# In base RTTs: the time without an acknowledgement to the first probe, where nothing waits to be sent and where
# something does; to each further probe; and the RTT of a probe that has met no congestion.
_QUIET_AT_END: Final = 2
_QUIET: Final = 3
_BETWEEN_PROBES: Final = 5
_CLEAR: Final = 2


class Sleek(TimerOwner):
    """The recovery of one sending half."""

    def __init__(
        self, sender: SelectiveRepeatSender, windows: float, bdp_bytes: float, packet_bytes: int, base_rtt_ns: int
    ) -> None:
        super().__init__()
        self.recovering = False
        self._sender = sender
        self._windows = windows
        self._bdp_bytes = bdp_bytes
        self._packet_bytes = float(packet_bytes)
        self._base_rtt_ns = base_rtt_ns
        self._until = 0  # the recovery is over when all before this packet has arrived
        self._resent_to = 0  # all before it that was missing has been sent again in this recovery
        self._timer = Timer(sender.limiter.port.timers, self)

    def on_ack(self, now_ns: int, order: int) -> None:
        """Handle an acknowledgement caused by the packet of this order among all sent (-1: by none)."""
        sender = self._sender
        if self.recovering and sender.unacked >= self._until:
            self._end()
        window_bytes = self._window_bytes()
        if not self.recovering and not sender.has_lost():
            threshold = max(self._windows * window_bytes / self._packet_bytes, float(FEWEST_PACKETS))
            if float(sender.early) >= threshold:
                self._begin()
        if self.recovering:
            self._send_again(now_ns, order)
        if sender.outstanding() or sender.has_data():
            quiet = _QUIET if sender.has_data() else _QUIET_AT_END
            self._timer.arm(now_ns + quiet * self._base_rtt_ns)
        else:
            self._timer.cancel()

    def on_probe(self, now_ns: int, rtt_ns: int, order: int) -> None:
        """Handle the answer to a probe, which left when `order` packets had been sent."""
        if rtt_ns < _CLEAR * self._base_rtt_ns and self._sender.outstanding():
            self._begin()
            self._send_again(now_ns, order)

    def on_timer(self, now_ns: int, timer: Timer) -> None:
        """Send a probe after a long time without acknowledgements."""
        sender = self._sender
        if sender.outstanding():
            sender.send_probe(now_ns)
            timer.arm(now_ns + _BETWEEN_PROBES * self._base_rtt_ns)

    def close(self) -> None:
        self._end()
        self._timer.cancel()

    def _window_bytes(self) -> float:
        return min(self._sender.point.window_bytes, self._bdp_bytes)

    def _begin(self) -> None:
        if not self.recovering:
            self.recovering = True
            self._sender.limiter.recovering += 1
        self._until = self._sender.fresh
        self._resent_to = self._sender.unacked

    def _end(self) -> None:
        if self.recovering:
            self.recovering = False
            self._sender.limiter.recovering -= 1

    def _send_again(self, now_ns: int, order: int) -> None:
        """Send missing packets again that left before the packet of this order."""
        sender = self._sender
        packets = max(1, int(self._window_bytes() / self._packet_bytes))
        end = min(self._until, sender.unacked + packets)
        number = max(self._resent_to, sender.unacked)
        while number < end and sender.resend_if_missing(now_ns, number, order):
            number += 1
        self._resent_to = max(self._resent_to, number)
