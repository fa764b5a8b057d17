"""EQDS (Olteanu et al., NSDI 2022): the receiver pulls data from all its senders at its link's rate.

A sender may send while it has credit. It starts with speculative credit of one window, which it
loses with the first ACK, NACK or pull. From then on every packet needs a pull, which grants one
full packet. The NIC's pull pacer sends pulls at line rate, round robin over the senders. A trimmed
packet is pulled again without a request (as in NDP, Handley et al., SIGCOMM 2017, 3.2); its NACK
only identifies the packet. Pulls are at most a window ahead of arrivals, so that a demand without
data behind it costs no more than that. Frames: docs/wire-formats.md, "RTS and pull".

The paper's data packets carry the sender's demand. Here an RTS carries it. A sender sends one when
a burst exceeds the speculative credit, when speculation ends early, and after each loss without
trimming. All counts are cumulative wire bytes, so that the next RTS or pull makes up for a lost
one. A sender that has waited for a time-out sends its RTS again.

With a window protocol (`eqds+smartt`, `eqds+mprdma`; SMaRTT, section 5.1) a packet needs credit and
room in the window. The demand is all waiting data, whatever the window, so that receivers share
their link evenly. A sender keeps at most one BDP of credit that it cannot use yet. It drops the
rest, and requests it again when half of that is used.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from host_agents import wire
from host_agents.cc.base import Feedback, NotificationOutlet, NotificationPoint, Path, ReactionPoint
from host_agents.cc.credit import CreditReactionPoint
from host_agents.config import SCOPE_QP
from host_agents.lb.base import FIRST_ENTROPY
from host_agents.packets import TO_NOTIFICATION_POINT, TO_REACTION_POINT, Field, Header, Packet
from host_agents.pull_pacer import pull_pacer
from host_agents.ranges import POSITIVE, SHARE
from host_agents.registry import Protocol, ProtocolInfo, register

# Cumulative counts of wire bytes since the queue pair was opened, in the form of `send_counter`.
RTS: Final = Packet(
    "RTS",
    0xE9,
    (
        Header(
            "rts",
            (Field("demand", 64, "requested by the sender in total, without trimmed packets", unit="bytes"),),
            "Request to send of EQDS.",
        ),
    ),
    to=TO_NOTIFICATION_POINT,
    meaning="request for credit",
)
PULL: Final = Packet(
    "pull",
    0xEA,
    (
        Header(
            "pull",
            (Field("granted", 64, "granted in total, in steps of one full packet", unit="bytes"),),
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
    # Speculative credit of a burst; rounded up to whole packets.
    speculative_bdp: float = field(default=1.0, metadata=POSITIVE)
    pull_rate: float = field(default=1.0, metadata=SHARE)  # rate of pulled data, as a share of the line rate
    # Credit that a receiver grants ahead of arrivals: more than the queues of a path hold.
    pull_window_bdp: float = field(default=64.0, metadata=POSITIVE)


class Eqds(CreditReactionPoint):
    """Sender, which holds `credit_bytes` and has requested `demand_bytes` from the receiver.

    The credit that it can expect is its demand plus the trimmed bytes that the receiver knows of,
    minus the pulled bytes. This and the credit that it holds have to cover its waiting data.
    """

    def __init__(self, parameters: EqdsParameters, path: Path, parts: list[ReactionPoint]) -> None:
        super().__init__(path, parts)
        self._most_credit_bytes = max(path.wire_bytes, int(path.bdp_bytes))  # limit of pulled credit
        self.demand_bytes = 0  # cumulative demand in RTSs
        self._active = False
        packets = math.ceil(parameters.speculative_bdp * path.bdp_bytes / float(path.wire_bytes))
        self._speculative_bytes = packets * path.wire_bytes
        self._pulled_bytes = 0
        self._trimmed_bytes = 0  # full packets reported by NACKs, which the receiver pulls again without a request

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
        if opcode != PULL.opcode:
            super().on_control(now_ns, opcode, frame, offset)
            return
        pulled = _GRANTED.get(frame, offset)
        more = pulled - self._pulled_bytes
        if more <= 0:
            return  # an older pull that was overtaken
        if pulled > self.demand_bytes + (self.traffic.sent_packets + 1) * self.path.wire_bytes:
            self.outlet.count_malformed()  # more than was requested plus what may have been trimmed
            return
        self._stop_speculating(now_ns)
        self._heard_ns = now_ns
        self._pulled_bytes = pulled
        if self._active:
            self.credit_bytes = min(self.credit_bytes + more, self._most_credit_bytes)

    def _stop_speculating(self, now_ns: int) -> None:
        if self.speculating:
            self.speculating = False
            if self.credit_bytes > 0:
                self.credit_bytes = 0
            self._request(now_ns)

    def _request(self, now_ns: int) -> None:
        """Request credit for waiting data that neither held nor expected credit covers."""
        wanted = self.traffic.waiting_bytes - self.credit_bytes + self._pulled_bytes - self._trimmed_bytes
        if wanted > self.demand_bytes:
            self.demand_bytes = wanted
            self._send_request(now_ns)

    def _send_request(self, now_ns: int) -> None:
        self._heard_ns = now_ns
        self.outlet.send_counter(RTS, self.demand_bytes, self.outlet.control_entropy(now_ns))


class EqdsReceiver(NotificationPoint):
    """Receiver, which owes its sender pulls for its demand and trimmed packets, minus the granted ones.

    Granted data that has not arrived, whole or trimmed, is at most a window. Lost packets reduce
    what can be granted, until the RTS after a loss reports that nothing is in flight.
    """

    def __init__(self, parameters: EqdsParameters, path: Path) -> None:
        super().__init__(path)
        self.demand_bytes = 0
        self.granted_bytes = 0
        self._trimmed_bytes = 0  # credit owed for missing packets, in full packets
        self._entropy = FIRST_ENTROPY  # entropy of the last packet; a pull returns on its path, like an ACK
        self._drawn_bytes = 0  # granted and in flight
        self._window_bytes = max(path.wire_bytes, int(parameters.pull_window_bdp * path.bdp_bytes))
        self._held = False  # held back by the window
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
        """Handle an RTS; if it requests nothing new, its sender still waits, so repeat the granted credit."""
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
        scopes=(SCOPE_QP,),  # receivers account for the demand of each queue pair
        packets=(RTS, PULL),
        own_packets=1.0,  # a pull
        selective=True,
        held_back_by="grants",
    )
)
