"""ExpressPass (Cho et al., SIGCOMM 2017): credits trigger data, and links limit the rate of credits.

A sender with data requests credits, and each credit that arrives triggers one packet. Receivers
send credits. A link forwards as many credits as it can carry data in the other direction
(p4src/expresspass.p4), and drops the others; so does the receiver's own link. A receiver adapts its
rate of credits to their loss (algorithm 1). Six bits of the BTH of a data packet identify its
credit. If credits arrived in a fixed order, those of the same flow would always be dropped. So
their gaps and sizes are random. Frames: docs/wire-formats.md, "ExpressPass".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from host_agents import wire
from host_agents.cc.base import NotificationOutlet, NotificationPoint, Path, ReactionOutlet, ReactionPoint
from host_agents.config import SCOPE_QP
from host_agents.lb.base import FIRST_ENTROPY
from host_agents.packets import TO_NOTIFICATION_POINT, TO_REACTION_POINT, Field, Header, Packet
from host_agents.ranges import POSITIVE, SHARE, SHARE_OR_NONE, one_of
from host_agents.registry import ProtocolInfo, register
from host_agents.timers import Timer

CREDIT: Final = Packet(
    "credit",
    0xEE,
    (Header("credit", (Field("number", 32, "counts the credits of a queue pair"),), "Credit of ExpressPass."),),
    to=TO_REACTION_POINT,
    payload=True,
    meaning="permission to send one data packet; padded with a random number of zeros",
)
CREDIT_REQUEST: Final = Packet(
    "credit request",
    0xEF,
    (
        Header(
            "credit_request",
            (Field("stop", 1, "the sender has no more data"), Field("reserved", 31)),
            "Credit request of ExpressPass, and its end.",
        ),
    ),
    to=TO_NOTIFICATION_POINT,
    meaning="request to start or to stop sending credits",
)
_NUMBER: Final = CREDIT.place("number")
_STOP: Final = CREDIT_REQUEST.place("stop")
_NUMBER_MASK: Final = 0x3F  # the bits of a credit's number that data packets carry
CREDIT_BYTES: Final = wire.ETHERNET_BYTES + wire.OVERHEAD_BYTES + CREDIT.size_bytes


@dataclass(frozen=True)
class ExpressPassParameters:
    """Parameters of algorithm 1 and section 6.1 of the paper; values that it does not give are choices.

    The authors' simulator draws credits of 76 to 92 bytes on the wire; Ethernet's smallest frame
    takes 84 there, which leaves a spread of eight bytes. `feedback` "simulator" is the simulator's
    alternative to algorithm 1: rates are limited by the link, the target loss is multiplied by the
    unused share, and after a loss the rate becomes that of the arrivals. Its initial rate is a
    half.
    """

    # Algorithm by which a receiver adapts its rate.
    feedback: str = field(default="algorithm 1", metadata=one_of("algorithm 1", "simulator"))
    # Share of credits that may be lost without a decrease.
    target_loss: float = field(default=0.125, metadata=SHARE_OR_NONE)
    initial_rate: float = field(default=1 / 16, metadata=SHARE)  # share of the highest credit rate of a link
    initial_weight: float = field(default=1 / 16, metadata=SHARE)  # the first w, the aggressiveness of increases
    min_weight: float = field(default=0.01, metadata=SHARE)  # the smallest w
    max_weight: float = field(default=0.5, metadata=SHARE)  # the largest w
    # Random part of the time between two credits, in both directions.
    jitter: float = field(default=0.1, metadata=SHARE_OR_NONE)
    # Largest difference of credits in size.
    credit_spread_bytes: int = field(default=8, metadata={"ge": 0, "le": 64})
    # Time between two updates of the rate, and at least one credit.
    update_base_rtts: float = field(default=1.0, metadata=POSITIVE)
    # Credits that the receiver's link sends in one burst, and that a sender keeps.
    burst_credits: int = field(default=8, metadata=POSITIVE)


class ExpressPass(ReactionPoint):
    """Sender, which sends a packet for each credit; a credit without data to send is wasted.

    Credits that arrive while the link is busy or paused wait for their packets, up to the burst of
    a link.
    """

    def __init__(self, parameters: ExpressPassParameters, path: Path) -> None:
        super().__init__(path)
        self.own_headers = True
        self.draws_credits = True
        self.credits_wasted = 0
        self._active = False
        self._credits: list[int] = []  # numbers of unused credits
        self._most_credits = parameters.burst_credits
        self._heard_ns = 0

    def bind(self, outlet: ReactionOutlet) -> None:
        super().bind(outlet)
        self._retry = self.timer()

    def may_send(self, inflight_bytes: int) -> bool:
        return len(self._credits) > 0

    def on_start(self, now_ns: int) -> None:
        self._begin(now_ns)

    def on_post(self, now_ns: int) -> None:
        self._begin(now_ns)

    def on_nack(self, now_ns: int, wire_bytes: int, trimmed: bool) -> None:
        self._begin(now_ns)

    def on_requeued(self, now_ns: int) -> None:
        self._begin(now_ns)

    def on_timeout(self, now_ns: int) -> None:
        self._begin(now_ns)

    def on_idle(self, now_ns: int) -> None:
        self._end(now_ns)

    def on_control(self, now_ns: int, opcode: int, frame: bytes, offset: int) -> None:
        """Keep a credit for the next data packet, or count it as wasted."""
        self._heard_ns = now_ns
        if self.traffic.waiting_bytes == 0:
            self.credits_wasted += 1
            if not self._active:
                self._request(now_ns, 1)  # the receiver does not know of the end
        elif len(self._credits) == self._most_credits:
            self.credits_wasted += 1
        else:
            self._credits.append(_NUMBER.get(frame, offset))

    def data_headers(
        self, now_ns: int, headers: bytes, place: int, message_bytes: int, alone: bool, again: bool
    ) -> bytes:
        said = headers[wire.BECN] & ~_NUMBER_MASK | self._credits[0] & _NUMBER_MASK
        return headers[: wire.BECN] + bytes((said,)) + headers[wire.BECN + 1 :]

    def on_sent(self, now_ns: int, wire_bytes: int) -> None:
        del self._credits[0]
        if self.traffic.waiting_bytes == 0:
            self._end(now_ns)

    def on_timer(self, now_ns: int, timer: Timer) -> None:
        """Repeat the request after a time-out without credits."""
        due_ns = self._heard_ns + self.host.rto_ns
        if due_ns <= now_ns:
            if not self.outlet.may_retry(now_ns):
                return
            self._request(now_ns, 0)
            due_ns = now_ns + self.host.rto_ns
        timer.arm(due_ns)

    def _begin(self, now_ns: int) -> None:
        if not self._active and self.traffic.waiting_bytes > 0:
            self._active = True
            self._heard_ns = now_ns
            self._request(now_ns, 0)
            self._retry.arm(now_ns + self.host.rto_ns)

    def _end(self, now_ns: int) -> None:
        if self._active:
            self._active = False
            self.credits_wasted += len(self._credits)
            self._credits.clear()
            self._retry.cancel()
            self._request(now_ns, 1)

    def _request(self, now_ns: int, stop: int) -> None:
        body = CREDIT_REQUEST.encode(stop=stop)
        self.outlet.send_control(CREDIT_REQUEST, body, entropy=self.outlet.control_entropy(now_ns))


class CreditMeter:
    """Rate limit of the credits that a NIC sends on its own link, with a small burst.

    The limit is the rate at which credits request as much data as the link can carry. A credit of
    mean size takes `ns_per_credit`, and a larger one takes longer.
    """

    def __init__(self, ns_per_credit: float, burst_credits: int) -> None:
        self.dropped = 0
        self._ns_per_credit = ns_per_credit
        self._ahead_ns = ns_per_credit * float(burst_credits - 1)
        self._due_ns = 0.0  # time at which the credits so far are paid for

    def passes(self, now_ns: int, size: float) -> bool:
        """Return whether a credit passes; `size` is relative to the mean."""
        if self._due_ns - float(now_ns) > self._ahead_ns:
            self.dropped += 1
            return False
        self._due_ns = max(self._due_ns, float(now_ns)) + self._ns_per_credit * size
        return True


class ExpressPassReceiver(NotificationPoint):
    """Receiver, which sends credits at a share of a link's highest rate, and adapts the share to losses."""

    def __init__(self, parameters: ExpressPassParameters, path: Path) -> None:
        super().__init__(path)
        self.parameters = parameters
        self.credit_share = parameters.initial_rate  # cur_rate / max_rate
        self.weight = parameters.initial_weight
        self._increased = False  # True if the previous update increased the rate
        self._number = 0  # number of the last credit
        self._seen = 0  # number of the last credit that data has reported
        self._came = 0  # data packets that credits triggered since the last update
        self._lost = 0
        self._updated_ns = 0
        # Credits on the link: the bytes of each size, and the mean.
        self._sizes = [path.link_bytes(CREDIT_BYTES + more) for more in range(parameters.credit_spread_bytes + 1)]
        self._credit_bytes = float(sum(self._sizes)) / float(len(self._sizes))
        both_bytes = self._credit_bytes + float(path.link_bytes(path.wire_bytes))
        self._ns_per_credit = both_bytes * 8e9 / path.line_rate_bps
        self._update_ns = round(parameters.update_base_rtts * path.base_rtt_ns)
        self._least_share = min(1.0, self._ns_per_credit / float(max(1, self._update_ns)))
        self._entropy = FIRST_ENTROPY  # entropy of the last packet; credits take its path
        self._heard_ns = 0  # time of the last request or data

    def bind(self, outlet: NotificationOutlet) -> None:
        super().bind(outlet)
        self._timer = self.timer()
        meter = self.host.part("credit meter", self._make_meter)
        assert isinstance(meter, CreditMeter)
        self._meter = meter

    def _make_meter(self) -> CreditMeter:
        return CreditMeter(self._ns_per_credit, self.parameters.burst_credits)

    def on_control(self, now_ns: int, opcode: int, frame: bytes, offset: int) -> None:
        """Start or stop sending credits by a request."""
        self._entropy = frame[wire.SOURCE_PORT] << 8 | frame[wire.SOURCE_PORT + 1]
        self._heard_ns = now_ns
        if _STOP.get(frame, offset):
            self._timer.cancel()
        elif not self._timer.is_armed():
            self.credit_share = self.parameters.initial_rate
            self.weight = self.parameters.initial_weight
            self._increased = False
            self._seen = self._number
            self._came = 0
            self._lost = 0
            self._updated_ns = now_ns
            self._send(now_ns)

    def on_data(self, now_ns: int, marked: bool, frame: bytes) -> None:
        self._heard_ns = now_ns
        ahead = (frame[wire.BECN] - self._seen) & _NUMBER_MASK
        if ahead > 0 and self._seen + ahead <= self._number:
            self._seen += ahead
            self._came += 1
            self._lost += ahead - 1

    def on_timer(self, now_ns: int, timer: Timer) -> None:
        """Send a credit, unless the sender was not heard of for two time-outs.

        A sender without credits repeats its request after one time-out.
        """
        if now_ns - self._heard_ns < 2 * self.host.rto_ns:
            self._send(now_ns)

    def _send(self, now_ns: int) -> None:
        elapsed_ns = now_ns - self._updated_ns
        if elapsed_ns >= self._update_ns:
            self._updated_ns = now_ns
            if self._came + self._lost > 0:
                loss = float(self._lost) / float(self._came + self._lost)
                if self.parameters.feedback == "simulator":
                    self.update_as_simulated(loss, float(self._came) * self._ns_per_credit / float(elapsed_ns))
                else:
                    self.update(loss)
            self._came = 0
            self._lost = 0
        self._number += 1
        draw = self.host.random
        more_bytes = int(draw.random() * float(self.parameters.credit_spread_bytes + 1))
        if self._meter.passes(now_ns, float(self._sizes[more_bytes]) / self._credit_bytes):
            body = CREDIT.encode(number=self._number) + bytes(more_bytes)
            self.outlet.send_control(CREDIT, body, entropy=self._entropy)
        wait_ns = self._ns_per_credit / self.credit_share
        wait_ns *= 1.0 + self.parameters.jitter * (2.0 * draw.random() - 1.0)
        self._timer.arm(now_ns + max(1, round(wait_ns)))

    def update(self, loss: float) -> None:
        """Update the credit rate by the share of lost credits, once per update period (algorithm 1)."""
        p = self.parameters
        if loss <= p.target_loss:
            if self._increased:
                self.weight = (self.weight + p.max_weight) / 2.0
            self.credit_share = (1.0 - self.weight) * self.credit_share + self.weight * (1.0 + p.target_loss)
            self._increased = True
        else:
            self.credit_share *= (1.0 - loss) * (1.0 + p.target_loss)
            self.weight = max(self.weight / 2.0, p.min_weight)
            self._increased = False
        self.credit_share = max(self.credit_share, self._least_share)

    def update_as_simulated(self, loss: float, came_share: float) -> None:
        """Update the credit rate by the simulator's algorithm.

        It uses the arrived credits' share of the link's credit limit.
        """
        p = self.parameters
        target_loss = (1.0 - self.credit_share) * p.target_loss
        if loss <= target_loss:
            if self._increased:
                self.weight = min(self.weight + 0.05, p.max_weight)
            self.credit_share = (1.0 - self.weight) * self.credit_share + self.weight
            self._increased = True
        else:
            self.credit_share = min(self.credit_share, came_share * (1.0 + target_loss))
            self.weight = max(self.weight / 2.0, p.min_weight)
            self._increased = False
        self.credit_share = min(max(self.credit_share, self._least_share), 1.0)


def reaction_point(parameters: ExpressPassParameters, mechanisms: Mapping[str, object], path: Path) -> ReactionPoint:
    return ExpressPass(parameters, path)


def notification_point(parameters: ExpressPassParameters, path: Path) -> NotificationPoint:
    return ExpressPassReceiver(parameters, path)


register(
    ProtocolInfo(
        name="expresspass",
        summary="receivers send credits, and links drop credits for more data than they can carry",
        source="Cho et al., Credit-Scheduled Delay-Bounded Congestion Control for Datacenters, SIGCOMM 2017",
        program="expresspass",
        parameters=ExpressPassParameters,
        reaction_point=reaction_point,
        notification_point=notification_point,
        packets=(CREDIT, CREDIT_REQUEST),
        own_packets=1.35,  # a credit, including those that are dropped or come too late
        agrees=("credit_spread_bytes",),
        scopes=(SCOPE_QP,),
        single_path=True,
        held_back_by="grants",
        symmetric_paths=True,
    )
)
