"""EQDS (Olteanu et al., NSDI 2022): the receiver draws data from all its senders at the rate of its link.

A sender may send while it has credit. It starts with speculative credit, one window, which it loses with the first
ACK, NACK or pull; from then on every packet is drawn by a pull, of one full packet. Pulls leave at line rate, round
robin over the senders, by the NIC's pull pacer. A trimmed packet is drawn again without being asked for (as in NDP,
Handley et al., SIGCOMM 2017, 3.2): its NACK only says what to send. Pulls run ahead of what comes by a window, so that
a demand that nobody has sends no more than that. Frames: docs/wire-formats.md, "RTS and pull".

Where the paper's data packets carry the sender's demand, an RTS does here: one when a burst outgrows the speculative
credit, one when speculation ends early, one after each loss that was not a trim. All counts are cumulative, of wire
bytes, so that a lost RTS or pull is made good by the next; a sender that waits for a time-out sends its RTS again.

With a window protocol (`eqds+smartt`, `eqds+mprdma`; SMaRTT, section 5.1) a packet needs credit and room in the window.
The demand stays all that waits, whatever the window, so that receivers go on sharing their link evenly. What a sender
cannot use yet it keeps for one BDP at most; the rest it lets go, and asks for again when half of that is used.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from host_agents import wire
from host_agents.cc.base import Feedback, NotificationOutlet, NotificationPoint, Path, ReactionOutlet, ReactionPoint
from host_agents.cc.composite import CompositeReactionPoint
from host_agents.config import SCOPE_QP
from host_agents.lb.base import FIRST_ENTROPY
from host_agents.packets import TO_NOTIFICATION_POINT, TO_REACTION_POINT, Field, Header, Packet
from host_agents.pull_pacer import pull_pacer
from host_agents.ranges import POSITIVE, SHARE
from host_agents.registry import Protocol, ProtocolInfo, register
from host_agents.timers import Timer

# Cumulative counts of wire bytes since the queue pair was opened; a body of this form has `send_counter`.
RTS: Final = Packet(
    "RTS",
    0xE9,
    (
        Header(
            "rts",
            (Field("demand", 64, "what the sender wants pulled, without what was trimmed", unit="bytes"),),
            "Request to send of EQDS.",
        ),
    ),
    to=TO_NOTIFICATION_POINT,
    meaning="asks the receiver to pull",
)
PULL: Final = Packet(
    "pull",
    0xEA,
    (
        Header(
            "pull",
            (Field("granted", 64, "what the receiver has granted, in steps of one full packet", unit="bytes"),),
            "Pull of EQDS.",
        ),
    ),
    to=TO_REACTION_POINT,
    meaning="credit for the sender",
)
_DEMAND: Final = RTS.place("demand")
_GRANTED: Final = PULL.place("granted")


@dataclass(frozen=True)
class EqdsParameters:
    # The speculative credit of a burst; rounded up to whole packets.
    speculative_bdp: float = field(default=1.0, metadata=POSITIVE)
    pull_rate: float = field(default=1.0, metadata=SHARE)  # what pulls draw, as a part of the line rate
    # How much a receiver draws before any of it has come: more than the queues of a path hold.
    pull_window_bdp: float = field(default=64.0, metadata=POSITIVE)


class Eqds(CompositeReactionPoint):
    """The sender. It holds `credit_bytes` and has told the receiver of `demand_bytes` to pull.

    What is on its way to it is its demand, and what the receiver knows to have been trimmed, less what was pulled; that
    and the credit have to cover what waits to be sent.
    """

    def __init__(self, parameters: EqdsParameters, path: Path, parts: list[ReactionPoint]) -> None:
        super().__init__(path, parts)  # window protocols, which limit the sender too
        self.credit_bytes = 0  # the last packet may overdraw it
        self._most_credit_bytes = max(path.wire_bytes, int(path.bdp_bytes))  # of what was pulled
        self.demand_bytes = 0  # all that the RTSs asked for
        self.speculating = False
        self._active = False
        packets = math.ceil(parameters.speculative_bdp * path.bdp_bytes / float(path.wire_bytes))
        self._speculative_bytes = packets * path.wire_bytes
        self._pulled_bytes = 0
        self._trimmed_bytes = 0  # what NACKs told of, in full packets: the receiver pulls it again by itself
        self._heard_ns = 0  # when the last pull came, or the last RTS left

    def bind(self, outlet: ReactionOutlet) -> None:
        super().bind(outlet)
        self._retry = self.timer()

    def may_send(self, inflight_bytes: int) -> bool:
        return self.credit_bytes > 0 and super().may_send(inflight_bytes)

    def on_start(self, now_ns: int) -> None:
        if not self._active:
            self._active = True
            self.speculating = True
            self.credit_bytes = self._speculative_bytes
            self._heard_ns = now_ns
            self._retry.arm(now_ns + self.host.rto_ns)
        super().on_start(now_ns)

    def on_post(self, now_ns: int) -> None:
        self._request(now_ns)
        super().on_post(now_ns)

    def on_idle(self, now_ns: int) -> None:
        super().on_idle(now_ns)
        if self.traffic.waiting_bytes == 0 and self.traffic.inflight_bytes == 0:
            self._active = False
            self.credit_bytes = 0
            self._retry.cancel()

    def on_sent(self, now_ns: int, wire_bytes: int) -> None:
        self.credit_bytes -= wire_bytes
        super().on_sent(now_ns, wire_bytes)
        if 2 * self.credit_bytes < self._most_credit_bytes:
            self._request(now_ns)

    def on_ack(self, feedback: Feedback) -> None:
        self._stop_speculating(feedback.now_ns)
        super().on_ack(feedback)

    def on_nack(self, now_ns: int, wire_bytes: int, trimmed: bool) -> None:
        if trimmed:
            self._trimmed_bytes += self.path.wire_bytes
        self._stop_speculating(now_ns)
        self._request(now_ns)
        super().on_nack(now_ns, wire_bytes, trimmed)

    def on_timeout(self, now_ns: int) -> None:
        self._stop_speculating(now_ns)
        self._request(now_ns)
        super().on_timeout(now_ns)

    def on_control(self, now_ns: int, opcode: int, frame: bytes, offset: int) -> None:
        """Take the credit of a pull beyond the previous one."""
        super().on_control(now_ns, opcode, frame, offset)
        if opcode != PULL.opcode:
            return
        pulled = _GRANTED.get(frame, offset)
        more = pulled - self._pulled_bytes
        if more <= 0:
            return  # an older one, overtaken
        if pulled > self.demand_bytes + (self.traffic.sent_packets + 1) * self.path.wire_bytes:
            self.outlet.count_malformed()  # more than was asked for and can have been trimmed
            return
        self._stop_speculating(now_ns)
        self._heard_ns = now_ns
        self._pulled_bytes = pulled
        if self._active:
            self.credit_bytes = min(self.credit_bytes + more, self._most_credit_bytes)
            self.outlet.window_opened()

    def on_timer(self, now_ns: int, timer: Timer) -> None:
        """Repeat the RTS if there is no credit and nothing was heard for a time-out."""
        due_ns = self._heard_ns + self.host.rto_ns
        if due_ns <= now_ns:
            due_ns = now_ns + self.host.rto_ns
            if self.traffic.waiting_bytes > 0 and self.credit_bytes <= 0:
                if not self.outlet.may_retry(now_ns):
                    return
                self._send_rts(now_ns)
        timer.arm(due_ns)

    def _stop_speculating(self, now_ns: int) -> None:
        if self.speculating:
            self.speculating = False
            if self.credit_bytes > 0:
                self.credit_bytes = 0
            self._request(now_ns)

    def _request(self, now_ns: int) -> None:
        """Request credit for waiting data that neither credit nor expected pulls cover."""
        wanted = self.traffic.waiting_bytes - self.credit_bytes + self._pulled_bytes - self._trimmed_bytes
        if wanted > self.demand_bytes:
            self.demand_bytes = wanted
            self._send_rts(now_ns)

    def _send_rts(self, now_ns: int) -> None:
        self._heard_ns = now_ns
        self.outlet.send_counter(RTS, self.demand_bytes, self.outlet.control_entropy(now_ns))


class EqdsReceiver(NotificationPoint):
    """The receiver. It owes its sender pulls for its demand and for each trimmed packet, less the granted ones.

    What it has granted and not seen come, whole or trimmed, is at most a window. Losses leave less of it, until the RTS
    that follows a loss says that nothing is on its way.
    """

    def __init__(self, parameters: EqdsParameters, path: Path) -> None:
        super().__init__(path)
        self.demand_bytes = 0
        self.granted_bytes = 0
        self._trimmed_bytes = 0  # in full packets, of what is missing
        self._entropy = FIRST_ENTROPY  # of the packet that came last; a pull goes back on its path, as an ACK does
        self._drawn_bytes = 0  # granted, and on its way
        self._window_bytes = max(path.wire_bytes, int(parameters.pull_window_bdp * path.bdp_bytes))
        self._held = False  # back by the window
        self._turn_bytes = int(float(path.link_bytes(path.wire_bytes)) / parameters.pull_rate)

    def bind(self, outlet: NotificationOutlet) -> None:
        super().bind(outlet)
        self._pacer = pull_pacer(self.host, self.path)

    def owed_bytes(self) -> int:
        return self.demand_bytes + self._trimmed_bytes - self.granted_bytes if not self.closed else 0

    def on_data(self, now_ns: int, marked: bool, frame: bytes) -> None:
        self._arrived(frame)
        if self._held:
            self._pull(now_ns)

    def on_trimmed(self, now_ns: int, missing: bool, frame: bytes) -> None:
        self._arrived(frame)
        if missing:
            self._trimmed_bytes += self.path.wire_bytes
        self._pull(now_ns)

    def on_control(self, now_ns: int, opcode: int, frame: bytes, offset: int) -> None:
        """Handle an RTS; one without news comes from a waiting sender, so repeat the granted credit."""
        if opcode != RTS.opcode:
            return
        demand = _DEMAND.get(frame, offset)
        self._drawn_bytes = 0
        if demand > self.demand_bytes:
            self.demand_bytes = demand
        else:
            self.outlet.send_counter(PULL, self.granted_bytes, self._entropy)
        self._pull(now_ns)

    def on_turn(self, now_ns: int) -> int:
        if self.owed_bytes() <= 0:
            return 0
        if self._drawn_bytes >= self._window_bytes:
            self._held = True
            self.outlet.count_held_pull()
            return 0
        self._drawn_bytes += self.path.wire_bytes
        self.granted_bytes += self.path.wire_bytes
        self.outlet.send_counter(PULL, self.granted_bytes, self._entropy)
        return self._turn_bytes

    def _arrived(self, frame: bytes) -> None:
        self._entropy = frame[wire.SOURCE_PORT] << 8 | frame[wire.SOURCE_PORT + 1]
        self._drawn_bytes = max(0, self._drawn_bytes - self.path.wire_bytes)

    def _pull(self, now_ns: int) -> None:
        self._held = False
        if self.owed_bytes() > 0:
            self._pacer.add(now_ns, self)


def reaction_point(parameters: EqdsParameters, mechanisms: Mapping[str, object], path: Path) -> ReactionPoint:
    parts = [added.reaction_point(path) for added in mechanisms.values() if isinstance(added, Protocol)]
    return Eqds(parameters, path, parts)


def notification_point(parameters: EqdsParameters, path: Path) -> NotificationPoint:
    return EqdsReceiver(parameters, path)


register(
    ProtocolInfo(
        name="eqds",
        summary="receivers draw data with paced pulls; speculative first window",
        source="Olteanu et al., An Edge-Queued Datagram Service for All Datacenter Traffic, NSDI 2022",
        program="trim",
        parameters=EqdsParameters,
        reaction_point=reaction_point,
        notification_point=notification_point,
        mechanisms=("mprdma", "smartt"),
        scopes=(SCOPE_QP,),  # receivers ask each queue pair for what it has said that it has
        packets=(RTS, PULL),
        own_packets=1.0,  # a pull
        selective=True,
        held_back_by="grants",
    )
)
