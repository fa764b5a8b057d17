"""RCCC, the receiver's congestion control of Ultra Ethernet: it draws data from all its senders by credit.

A sender may send while its credit is above 0. Each packet's bytes are deducted, so the last packet may overdraw the
credit. A sender starts with speculative credit of one and a half BDP. The first ACK, NACK or pull cancels the unused
part of it. Each data packet carries a pull target: the credit that the sender needs in all for the data that waits.
Credit is counted cumulatively in quanta of 256 bytes, so the next pull makes up for a lost one.

The receivers of a NIC take turns at its pull pacer, which draws 99% of the link's rate. In its turn a receiver grants
up to 64 quanta of its backlog, the pull target minus the credit granted so far. When no receiver has a backlog, those
that were served before still take turns and grant up to the largest credit beyond the target. Thus lost data, or data
that waits at the sender, need no time-out. A trimmed packet does not add to the backlog; the sender's next data packet
includes it in its target. A sender without credit sends a request (RTS) when no pull has come for a
time-out, and so does one that starts again without credit.

`rccc+nscc` sends if there is both credit and room in NSCC's window, and requests at most one packet beyond the window.
There are two differences from the consortium's reference simulator. An RTS is a control packet here; there it takes a
sequence number of the data and is acknowledged. A queue pair that is served again leaves the idle list here; there it
stays and is listed anew (`as_simulated_idle`), so that it gets many needless pulls. Frames: docs/wire-formats.md,
"Ultra Ethernet's credit".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from mypy_extensions import i64

from host_agents import wire
from host_agents.cc.base import Feedback, NotificationOutlet, NotificationPoint, Path, ReactionOutlet, ReactionPoint
from host_agents.cc.credit import CreditReactionPoint
from host_agents.cc.oversubscription import Oversubscription
from host_agents.config import SCOPE_QP
from host_agents.lb.base import ENTROPY_COUNT, FIRST_ENTROPY
from host_agents.packets import TO_NOTIFICATION_POINT, TO_REACTION_POINT, Field, Header, Packet
from host_agents.pull_pacer import pull_pacer
from host_agents.ranges import POSITIVE, SHARE, SHARE_OR_NONE
from host_agents.registry import Protocol, ProtocolInfo, register
from host_agents.template import Wrapper

QUANTUM_BYTES: Final = 256

_TARGET_HEADER: Final = Header(
    "pull_target",
    (Field("target", 32, "requested by the sender since the queue pair was opened", unit="256 bytes"),),
    "Pull target of RCCC.",
)
DATA: Final = Packet(
    "data with target",
    0xF0,
    (_TARGET_HEADER,),
    opcodes=8,
    wraps=True,
    meaning="data; RC opcode n is sent as 0xF0 + n",
)
RTS: Final = Packet(
    "target",
    0xE6,
    (_TARGET_HEADER,),
    to=TO_NOTIFICATION_POINT,
    meaning="request for credit without data",
)
PULL: Final = Packet(
    "pull of quanta",
    0xE7,
    (
        Header(
            "granted_quanta",
            (Field("granted", 64, "granted since the queue pair was opened", unit="256 bytes"),),
            "Pull of RCCC.",
        ),
    ),
    to=TO_REACTION_POINT,
    meaning="credit for the sender",
)
_TARGET: Final = DATA.place("target")
_REQUESTED: Final = RTS.place("target")
_GRANTED: Final = PULL.place("granted")
_WRAPPED_MASK: Final = 0xF8
_FASTER: Final = 8.0  # largest ratio of a receiver's link rate to the sender's
_HALF: Final = 1 << 31  # a target that is further ahead, modulo 2^32, is an old one


@dataclass(frozen=True)
class RcccParameters:
    """Defaults are the reference simulator's."""

    most_credit_bdp: float = field(default=1.5, metadata=POSITIVE)  # the largest credit, and the speculative one
    quanta_per_pull: int = field(default=64, metadata=POSITIVE)  # quanta of 256 bytes that one pull grants at most
    pull_rate: float = field(default=0.99, metadata=SHARE)  # rate of pulled data, as a share of the line rate
    # Time of a pull that grants nothing, in quanta.
    empty_pull_quanta: int = field(default=4, metadata=POSITIVE)
    pull_entropies: int = field(default=128, metadata=ENTROPY_COUNT)  # number of paths that pulls use in turn
    request_base_rtts: float = 1.0  # least time between two requests (RTS) of a queue pair
    # Hosts' total rate divided by the capacity of their switches' uplinks. Above 1 a controller in
    # each NIC scales the pull rate of its receivers, with the parameters below; 1: their links are
    # the bottleneck.
    oversubscription: float = field(default=1.0, metadata={"ge": 1})
    oversubscription_interval_base_rtts: float = field(default=1.5, metadata=POSITIVE)  # mean time between changes
    # Random part of that time, so that receivers do not act in step: a factor from 1 minus this to
    # 1 plus this.
    oversubscription_spread: float = field(default=0.25, metadata={"ge": 0, "lt": 1})
    oversubscription_mark_gain: float = field(default=0.5, metadata=SHARE)  # weight of an interval in the mean
    oversubscription_mark_target: float = field(default=0.3, metadata=SHARE_OR_NONE)  # mean share of marks to exceed
    oversubscription_decrease: float = field(default=0.5, metadata=SHARE_OR_NONE)  # gain of the excess over the target
    # First increase after a decrease, as a share of the link's rate; it doubles while nothing is marked.
    oversubscription_increase: float = field(default=0.01, metadata=SHARE)
    oversubscription_least_rate: float = field(default=0.01, metadata=SHARE)  # least rate, as a share of the link's
    # The same, as a share of each host's part of the uplinks if all send; the larger limit applies.
    oversubscription_least_uplink_share: float = field(default=0.9, metadata=SHARE_OR_NONE)
    # The reference simulator seems to do this unintentionally: a receiver joins the list of idle ones each time it has
    # been served, even if it is there. Each entry gets at least one pull, and so does each higher target.
    as_simulated_idle: bool = False


def credit_quanta(parameters: RcccParameters, path: Path) -> int:
    """Return the largest credit, in whole quanta and at least a full packet."""
    most_bytes = max(parameters.most_credit_bdp * path.bdp_bytes, float(path.wire_bytes))
    return -(-int(most_bytes) // QUANTUM_BYTES)


class Senders:
    """Sending halves of a NIC, and the number of those that wait for the link.

    These have data and may send it. With a single sending half the number is not kept up to date,
    because nobody reads it.
    """

    def __init__(self) -> None:
        self.waiting = 0
        self.several = False  # whether two have been open at the same time
        self._only: Rccc | None = None  # the only one so far

    def join(self, sender: Rccc) -> None:
        only = self._only
        if only is None:
            self._only = sender
        elif not self.several:
            self.several = True
            only.look()

    def leave(self, sender: Rccc) -> None:
        if self._only is sender and not self.several:
            self._only = None


class Rccc(CreditReactionPoint):
    """Sender, which holds `credit_bytes`."""

    def __init__(self, parameters: RcccParameters, path: Path, parts: list[ReactionPoint]) -> None:
        super().__init__(path, parts)
        self.own_headers = True
        # Attributes that every packet needs come first, to occupy fewer cache lines.
        self.most_credit_bytes = credit_quanta(parameters, path) * QUANTUM_BYTES
        self.credit_bytes = self.most_credit_bytes
        self._most_credit = float(self.most_credit_bytes)
        self.pulled_quanta = 0
        self._wrapper = Wrapper(DATA)
        self._senders = Senders()  # a placeholder until it is bound
        self.speculating = True
        self._waits = False  # whether it is counted among the queue pairs that wait for the link
        self._request_gap_ns = int(parameters.request_base_rtts * float(path.base_rtt_ns))
        self._requested_ns = -1  # time of the last RTS; -1: never
        self._pulled_ns = 0  # time of the last pull
        self._bytes_per_ns = _FASTER * path.line_rate_bps / 8e9

    def bind(self, outlet: ReactionOutlet) -> None:
        super().bind(outlet)
        senders = self.host.part("RCCC senders", Senders)
        assert isinstance(senders, Senders)
        self._senders = senders
        senders.join(self)

    def close(self) -> None:
        super().close()
        self._count(False)
        self._senders.leave(self)

    def may_send(self, inflight_bytes: int) -> bool:
        if self.credit_bytes <= 0:
            return False
        return len(self.parts) == 0 or super().may_send(inflight_bytes)  # alone it has no window

    def on_start(self, now_ns: int) -> None:
        super().on_start(now_ns)
        if not self._retry.is_armed():
            self._heard_ns = now_ns
            self._retry.arm(now_ns + self.host.rto_ns)

    def on_post(self, now_ns: int) -> None:
        super().on_post(now_ns)
        self.look()
        if self.credit_bytes <= 0:
            self._send_request(now_ns)

    def on_idle(self, now_ns: int) -> None:
        super().on_idle(now_ns)
        self.look()
        self._retry.cancel()

    def data_headers(
        self, now_ns: int, headers: bytes, place: int, message_bytes: int, alone: bool, again: bool
    ) -> bytes:
        size = self.path.wire_bytes  # the packet still belongs to the waiting data and is not yet deducted
        target = self._target(max(0, self.traffic.waiting_bytes - size), self.credit_bytes - size)
        return self._wrapper.wrap_word(headers, target & 0xFFFFFFFF)

    def on_sent(self, now_ns: int, wire_bytes: int) -> None:
        self.credit_bytes -= wire_bytes
        super().on_sent(now_ns, wire_bytes)
        self.look()

    def on_ack(self, feedback: Feedback) -> None:
        self._stop_speculating()
        super().on_ack(feedback)
        self.look()

    def on_nack(self, now_ns: int, wire_bytes: int, trimmed: bool) -> None:
        self._stop_speculating()
        super().on_nack(now_ns, wire_bytes, trimmed)
        self.look()

    def on_timeout(self, now_ns: int) -> None:
        self._stop_speculating()
        super().on_timeout(now_ns)
        self._send_request(now_ns)

    def on_control(self, now_ns: int, opcode: int, frame: bytes, offset: int) -> None:
        """Take the credit of a pull beyond the previous one."""
        if opcode != PULL.opcode:
            super().on_control(now_ns, opcode, frame, offset)
            return
        pulled = _GRANTED.get(frame, offset)
        more = pulled - self.pulled_quanta
        if more < 0:
            return  # an older pull that was overtaken
        # A receiver's pacer grants at most its link's rate, whether the sender uses the credit or
        # not.
        most_bytes = float(self.most_credit_bytes) + self._bytes_per_ns * float(now_ns - self._pulled_ns)
        if float(more * QUANTUM_BYTES) > most_bytes:
            self.outlet.count_malformed()
            return
        self._stop_speculating()
        self._heard_ns = now_ns
        self._pulled_ns = now_ns
        self.pulled_quanta = pulled
        self.credit_bytes = min(self.credit_bytes + more * QUANTUM_BYTES, self.most_credit_bytes)
        self.look()

    def _stop_speculating(self) -> None:
        if self.speculating:
            self.speculating = False
            self.credit_bytes = min(self.credit_bytes, 0)

    def _target(self, waiting_bytes: i64, credit_bytes: i64) -> int:
        """Return the pull target in quanta for the waiting data beyond the credit."""
        packet_bytes: i64 = self.path.wire_bytes
        most_bytes: i64 = self.most_credit_bytes
        if self.window_bytes < self._most_credit:
            most_bytes = min(most_bytes, i64(self.window_bytes) + packet_bytes)
        wanted: i64 = max(min(waiting_bytes, most_bytes) - credit_bytes, 0)
        if self.speculating and waiting_bytes > 0:
            wanted = max(wanted, packet_bytes)
        waiting: i64 = self._senders.waiting
        if waiting > 1:
            wanted //= waiting
        quanta: int = (wanted + QUANTUM_BYTES - 1) // QUANTUM_BYTES
        return self.pulled_quanta + quanta

    def _send_request(self, now_ns: int) -> None:
        """Send a request for credit, unless the last one was just sent."""
        if self.traffic.waiting_bytes == 0:
            return
        if self._requested_ns >= 0 and now_ns - self._requested_ns < self._request_gap_ns:
            return
        self._requested_ns = now_ns
        self._heard_ns = now_ns
        target = self._target(self.traffic.waiting_bytes, self.credit_bytes)
        self.outlet.send_control(
            RTS, RTS.encode(target=target & 0xFFFFFFFF), entropy=self.outlet.control_entropy(now_ns)
        )

    def look(self) -> None:
        """Update whether the sender waits for the link."""
        if not self._senders.several:
            return
        traffic = self.traffic
        self._count(self.credit_bytes > 0 and traffic.waiting_bytes > 0 and self.may_send(traffic.inflight_bytes))

    def _count(self, waits: bool) -> None:
        if waits != self._waits:
            self._waits = waits
            self._senders.waiting += 1 if waits else -1


class RcccReceiver(NotificationPoint):
    """Receiver, which owes its sender the pull target minus the granted credit, in quanta."""

    def __init__(self, parameters: RcccParameters, path: Path) -> None:
        super().__init__(path)
        self.pulls_ahead = True
        self.idles_repeatedly = parameters.as_simulated_idle
        # Attributes that every packet needs come first, to occupy fewer cache lines.
        self._control: Oversubscription | None = None
        self.target_quanta = 0
        self.granted_quanta = 0
        self._most_ahead_quanta = credit_quanta(parameters, path)
        # Largest possible request beyond the granted credit: the largest credit plus the overdraft
        # by the last packet.
        self._most_owed_quanta = self._most_ahead_quanta + -(-2 * path.wire_bytes // QUANTUM_BYTES)
        self._quanta_per_pull = parameters.quanta_per_pull
        self._empty_pull_quanta = parameters.empty_pull_quanta
        self._turn_bytes = float(QUANTUM_BYTES) / parameters.pull_rate  # bytes of the link for a quantum
        self._asked = False  # it answers, even without new credit
        self._new_entries = 0  # its entries in the idle ring that have had no pull yet, if it joins repeatedly
        self._entropies = parameters.pull_entropies
        self._next_entropy = 0
        self._parameters = parameters

    def bind(self, outlet: NotificationOutlet) -> None:
        super().bind(outlet)
        self._pacer = pull_pacer(self.host, self.path)
        if self._parameters.oversubscription > 1.0:
            control = self.host.part("RCCC controller", self._make_control)
            assert isinstance(control, Oversubscription)
            self._control = control

    def _make_control(self) -> Oversubscription:
        return Oversubscription(self.host, self.path, self._pacer, self._parameters)

    def on_data(self, now_ns: int, marked: bool, frame: bytes) -> None:
        if self._control is not None:
            self._control.on_data(now_ns, marked)
        if frame[wire.BTH] & _WRAPPED_MASK == DATA.opcode:  # the transport has checked that it is complete
            self._hear(now_ns, _TARGET.get(frame, wire.AFTER_BTH), False)

    def on_trimmed(self, now_ns: int, missing: bool, frame: bytes) -> None:
        if self._control is not None:
            self._control.on_trimmed(now_ns, self.host.trimmed_at_last_hop(frame))
        if len(frame) >= wire.AFTER_BTH + DATA.size_bytes:
            self._hear(now_ns, _TARGET.get(frame, wire.AFTER_BTH), True)

    def on_control(self, now_ns: int, opcode: int, frame: bytes, offset: int) -> None:
        if opcode == RTS.opcode:
            self._hear(now_ns, _REQUESTED.get(frame, offset), True)

    def on_turn(self, now_ns: int) -> int:
        owed = self.target_quanta - self.granted_quanta
        if self.closed or (owed <= 0 and not self._asked):
            if self.idles_repeatedly:
                self._new_entries += 1
            return 0
        self._asked = False
        return self._grant(max(0, min(owed, self._quanta_per_pull)))

    def on_idle_turn(self, now_ns: int) -> int:
        ahead = self.granted_quanta - self.target_quanta
        if self.closed or self.pulling:
            return 0
        if self._new_entries > 0:
            self._new_entries -= 1
        elif not 0 <= ahead < self._most_ahead_quanta:
            return 0
        return self._grant(self._quanta_per_pull)

    def _grant(self, quanta: int) -> int:
        self.granted_quanta += quanta
        entropy = FIRST_ENTROPY + self._next_entropy
        self._next_entropy = (self._next_entropy + 1) % self._entropies
        self.outlet.send_counter(PULL, self.granted_quanta, entropy)
        return int(float(quanta if quanta > 0 else self._empty_pull_quanta) * self._turn_bytes)

    def _hear(self, now_ns: int, low: int, asked: bool) -> None:
        """Handle the pull target modulo 2^32 of an arrived packet; if `asked`, it is answered in any case."""
        more = (low - self.target_quanta) & 0xFFFFFFFF
        if 0 < more < _HALF:
            if self.target_quanta + more - self.granted_quanta > self._most_owed_quanta:
                self.outlet.count_malformed()
                return
            self.target_quanta += more
        elif not asked:
            return
        if asked or self.idles_repeatedly:
            self._asked = True
        if not self.closed:
            self._pacer.add(now_ns, self)


def reaction_point(parameters: RcccParameters, mechanisms: Mapping[str, object], path: Path) -> ReactionPoint:
    parts = [added.reaction_point(path) for added in mechanisms.values() if isinstance(added, Protocol)]
    return Rccc(parameters, path, parts)


def notification_point(parameters: RcccParameters, path: Path) -> NotificationPoint:
    return RcccReceiver(parameters, path)


register(
    ProtocolInfo(
        name="rccc",
        summary="Ultra Ethernet's receiver: draws data with paced pulls of credit in quanta",
        source="Ultra Ethernet Consortium, specification 1.0, and its reference simulator uet-htsim",
        program="trim",
        parameters=RcccParameters,
        reaction_point=reaction_point,
        notification_point=notification_point,
        mechanisms=("nscc",),
        scopes=(SCOPE_QP,),  # receivers account for the demand of each queue pair
        packets=(DATA, RTS, PULL),
        selective=True,
        held_back_by="grants",
    )
)
