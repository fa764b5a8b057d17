"""SLEEK, Ultra Ethernet's loss recovery if switches do not trim and packets take several paths.

Early packets indicate a loss only if there are many. When they amount to more than a number of
windows, a recovery begins. The missing packets between the first missing one and the newest one, at
most a window of them, are sent again, each once, regardless of the window. The recovery ends when
everything that had been sent at its beginning has arrived. The window does not react; only
time-outs reduce it.

After some base RTTs without an acknowledgement a probe is sent, and then one every few base RTTs. A
probe is a packet without payload that the receiver already has, so that it is answered at once. It
uses the queues of data. If its answer shows hardly any delay, missing packets sent before it are
lost.

The reference simulator resends all missing packets, including those just sent
(`as_simulated_resend`). By default a packet counts as lost only if it left before the acknowledged
one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from host_agents.nic_tables import SleekConfig
from host_agents.timers import Timer, TimerOwner

if TYPE_CHECKING:
    from host_agents.selective_repeat import SelectiveRepeatSender


class Sleek(TimerOwner):
    """Loss recovery of one sending half."""

    def __init__(
        self, sender: SelectiveRepeatSender, config: SleekConfig, bdp_bytes: float, packet_bytes: int, base_rtt_ns: int
    ) -> None:
        super().__init__()
        self.recovering = False
        self._sender = sender
        self._windows = config.windows
        self._least_packets = float(config.least_packets)
        self._resends_newer = config.as_simulated_resend
        self._bdp_bytes = bdp_bytes
        self._packet_bytes = float(packet_bytes)
        base_ns = float(base_rtt_ns)
        self._probe_after_ns = int(config.probe_after_base_rtts * base_ns)
        self._probe_after_end_ns = int(config.probe_after_end_base_rtts * base_ns)
        self._probe_again_ns = int(config.probe_again_base_rtts * base_ns)
        self._clear_ns = int(config.probe_clear_base_rtts * base_ns)
        self._until = 0  # the recovery ends when all packets before this one have arrived
        self._resent_to = 0  # missing packets before this one have been sent again in this recovery
        self._timer = Timer(sender.limiter.port.timers, self)

    def on_ack(self, now_ns: int, order: int) -> None:
        """Handle an acknowledgement caused by the packet of this order among all sent (-1: by none)."""
        sender = self._sender
        if self.recovering and sender.unacked >= self._until:
            self._end()
        window_bytes = self._window_bytes()
        if not self.recovering and not sender.has_lost():
            threshold = max(self._windows * window_bytes / self._packet_bytes, self._least_packets)
            if float(sender.early) >= threshold:
                self._begin()
        if self.recovering:
            self._send_again(now_ns, order)
        if sender.outstanding() or sender.has_data():
            self._timer.arm(now_ns + (self._probe_after_ns if sender.has_data() else self._probe_after_end_ns))
        else:
            self._timer.cancel()

    def on_probe(self, now_ns: int, rtt_ns: int, order: int) -> None:
        """Handle the answer to a probe that was sent after `order` packets."""
        if rtt_ns < self._clear_ns and self._sender.outstanding():
            self._begin()
            self._send_again(now_ns, order)

    def on_timer(self, now_ns: int, timer: Timer) -> None:
        """Send a probe after a long time without acknowledgements."""
        sender = self._sender
        if sender.outstanding():
            sender.send_probe(now_ns)
            timer.arm(now_ns + self._probe_again_ns)

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
        """Resend missing packets that left before the packet of this order; as simulated: all missing packets."""
        sender = self._sender
        if self._resends_newer:
            order = sender.traffic.sent_packets  # this is beyond the order of each packet sent so far
        packets = max(1, int(self._window_bytes() / self._packet_bytes))
        end = min(self._until, sender.unacked + packets)
        number = max(self._resent_to, sender.unacked)
        while number < end and sender.resend_if_missing(now_ns, number, order):
            number += 1
        self._resent_to = max(self._resent_to, number)
