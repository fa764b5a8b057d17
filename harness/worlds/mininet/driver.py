"""Driver of one sans-I/O NIC in real time: the host's link, its schedule, and the order of events.

As in the switches, every event is processed with its nominal time, in order, however late the
process is. A frame arrives at the time at which the kernel received it, and the link becomes free
when the last bit is sent. So lateness does not change the inputs and actions of the NIC. It only
delays frames, which is recorded. A frame that is sent late by less than the link's delay still
arrives on time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from heapq import heappop, heappush
from itertools import count
from typing import Protocol

from host_agents import framing, wire
from host_agents.nic import Nic
from host_agents.timers import NEVER

Action = Callable[[int], object]  # called with its scheduled model time
LAG_BUCKETS = 40


class LinkChance:
    """Random loss on a link, drawn for each frame in the same way as on switches' links.

    The random numbers are splitmix64 of the seed.
    """

    def __init__(self, seed: int) -> None:
        self.loss = 0.0
        self._state = seed
        self._state = self._draw()

    def loses(self) -> bool:
        """Return whether the next frame is lost."""
        return self.loss > 0 and self._draw() >> 11 < int(self.loss * (1 << 53))

    def _draw(self) -> int:
        mask = (1 << 64) - 1
        self._state = z = (self._state + 0x9E3779B97F4A7C15) & mask
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & mask
        z = (z ^ z >> 27) * 0x94D049BB133111EB & mask
        return z ^ z >> 31


class Port(Protocol):
    """Raw socket.

    Times are wall-clock ns (CLOCK_MONOTONIC).
    """

    def receive(self) -> Iterable[tuple[int, bytes]]:
        """Yield (arrival, frame) of all frames that have arrived."""

    def send(self, frame: bytes) -> None: ...


class Driver:
    """Driver of a NIC at a port.

    Model time is (wall clock - epoch) / dilation; nothing happens before 0.
    """

    def __init__(
        self, nic: Nic, port: Port, *, rate_bps: int, delay_ns: int, framing_bytes: int, dilation: int
    ) -> None:
        """Create the driver with rate and delay of the host's link in model time.

        The caller sets `epoch_ns` before anything else.
        """
        self.nic = nic
        self.now_ns = 0
        self.epoch_ns = 0  # CLOCK_MONOTONIC at model time 0
        self.sent = 0
        self.received = 0
        self.bad_icrc = 0
        self.lost = 0  # frames lost because the link was down
        self.lost_at_random = 0  # frames lost at random while it was up
        self.delivered_bytes: dict[int, int] = {}  # on the wire, including framing, by local queue pair
        self.lag_log2_ns = [0] * LAG_BUCKETS
        self.lag_sum_ns = 0
        self.captured: list[tuple[int, bool, bytes]] | None = None  # (model time of the first bit, whether sent, frame)
        self._port = port
        self._rate_bps = rate_bps
        self._up = True
        self._chance: LinkChance | None = None  # None: no random losses so far
        self._delay_ns = delay_ns
        self._framing_bytes = framing_bytes
        self._dilation = dilation
        self._free_ns = 0  # time at which the link's last bit is sent: _free_ns + _free_part / _rate_bps
        self._free_part = 0
        self._idle = True  # the NIC had nothing to send at the last request
        self._frozen = False
        self._flight: deque[tuple[int, bytes]] = deque()  # (wall clock of the arrival at the switch, frame)
        self._schedule: list[tuple[int, int, Action]] = []
        self._order = count()

    def at(self, time_ns: int, action: Action) -> None:
        """Schedule `action` at a model time; simultaneous ones run in the order in which they were scheduled."""
        heappush(self._schedule, (max(time_ns, self.now_ns), next(self._order), action))

    def change_link(
        self, up: bool, rate_bps: int, delay_ns: int | None = None, loss: float = 0.0, seed: int = 0
    ) -> None:
        """Give the link these properties from now on.

        None for the delay leaves it unchanged. Frames on a link that goes down are lost, and so are
        later ones. Random losses follow from the first `seed`. If the delay becomes shorter, frames
        still do not overtake earlier ones.
        """
        self._delay_ns = self._delay_ns if delay_ns is None else delay_ns
        if loss and self._chance is None:
            self._chance = LinkChance(seed)
        if self._chance is not None:
            self._chance.loss = loss
        self._free_ns += self._free_part > 0  # the fraction was in units of the old rate
        self._free_part = 0
        self._rate_bps = rate_bps
        self._up = up
        down_ns = self.wall_ns(self.now_ns)
        while not up and self._flight and self._flight[-1][0] > down_ns:
            self._flight.pop()
            self.lost += 1

    def model_ns(self, wall_ns: int) -> int:
        return (wall_ns - self.epoch_ns) // self._dilation

    def wall_ns(self, model_ns: int) -> int:
        return self.epoch_ns + model_ns * self._dilation

    def next_due_ns(self) -> int:
        """Return the wall-clock time of the next event if nothing arrives."""
        if self._frozen:
            return self._flight[0][0] if self._flight else NEVER
        # The NIC's frame may be taken late, as long as it reaches the switch in time.
        asked = min(max(self._ask_ns() + self._delay_ns // 2, self.now_ns), NEVER)
        due = self.wall_ns(min(asked, self._schedule[0][0] if self._schedule else NEVER))
        return min(due, self._flight[0][0]) if self._flight else due

    def run(self, wall_ns: int) -> None:
        """Process everything up to `wall_ns`."""
        until = self.model_ns(wall_ns)
        for stamp, frame in self._port.receive():
            self._catch_up(min(self.model_ns(stamp), until))
            self._arrive(frame)
        self._catch_up(until)

    def flush(self, clock: Callable[[], int]) -> None:
        """Hand over the frames that should have reached the switch by now."""
        flight = self._flight
        while flight:
            now = clock()
            if flight[0][0] > now:
                return
            due, frame = flight.popleft()
            lag = now - due
            self.lag_log2_ns[min(lag.bit_length() - 1 if lag else 0, LAG_BUCKETS - 1)] += 1
            self.lag_sum_ns += lag
            self._port.send(frame)

    def freeze(self) -> None:
        """Silence the NIC; frames that it has sent are still delivered."""
        self._frozen = True

    @property
    def unsent(self) -> int:
        """Number of frames that left the NIC and have not reached the switch."""
        return len(self._flight)

    def _ask_ns(self) -> int:
        """Return when to request a frame from the NIC."""
        free = self._free_ns + (self._free_part > 0)
        return max(free, self.nic.next_wakeup_ns()) if self._idle else free

    def _catch_up(self, until: int) -> None:
        """Process all events until `until`; at equal times the schedule precedes the link."""
        while True:
            ask = self._ask_ns()
            if self._schedule and self._schedule[0][0] <= min(ask, until):
                self.now_ns, _, action = heappop(self._schedule)
                action(self.now_ns)
                self._idle = False
            elif ask <= until:
                self.now_ns = max(self.now_ns, ask)
                self._send()
            else:
                self.now_ns = max(self.now_ns, until)
                return

    def _send(self) -> None:
        """Send the NIC's next frame, if there is one, on the free link."""
        headers = self.nic.next_frame(self.now_ns)
        if headers is None:
            self._idle = True
            return
        self._idle = False
        frame = wire.materialize(headers)
        begin = self.now_ns
        if self._free_ns + (self._free_part > 0) < begin:
            self._free_ns, self._free_part = begin, 0
        work = framing.link_bytes(len(frame), self._framing_bytes) * 8_000_000_000 + self._free_part
        self._free_ns += work // self._rate_bps
        self._free_part = work % self._rate_bps
        arrival = self.wall_ns(self._free_ns + (self._free_part > 0) + self._delay_ns)
        if not self._up:
            self.lost += 1
        elif self._chance is not None and self._chance.loses():
            self.lost_at_random += 1
        else:
            self._flight.append((max(arrival, self._flight[-1][0]) if self._flight else arrival, frame))
        self.sent += 1
        if self.captured is not None:
            self.captured.append((begin, True, frame))

    def _arrive(self, frame: bytes) -> None:
        self.received += 1
        length = len(frame)
        if length > wire.AFTER_BTH and wire.is_roce(frame):
            qpn = wire.dest_qpn(frame)
            self.delivered_bytes[qpn] = self.delivered_bytes.get(qpn, 0) + length + self._framing_bytes
            # Switches insert telemetry into packets with a shim, and trim; all other frames keep
            # their ICRC. If the NIC checks the ICRC itself, bad frames are among the malformed
            # ones.
            checked = frame[wire.BTH] >= wire.WITH_INT or self.nic.config.check_icrc
            if not checked and not wire.icrc_holds(frame):
                self.bad_icrc += 1
        if self.captured is not None:
            first_bit = self.now_ns - self._delay_ns - (length + self._framing_bytes) * 8_000_000_000 // self._rate_bps
            self.captured.append((max(first_bit, 0), False, frame))
        self.nic.receive(self.now_ns, frame)
        self._idle = False
