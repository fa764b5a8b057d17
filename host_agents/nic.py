"""NIC without I/O, clocks or threads. It gets frames and the time, and returns frames and the next wake-up time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from librt.strings import read_i64_be
from mypy_extensions import i64

from host_agents import wire
from host_agents.address_set import AddressSet
from host_agents.assignments import CollectiveConfig
from host_agents.cc.base import Host, NotificationOutlet, NotificationPoint, Path
from host_agents.collective.engine import Engine
from host_agents.collective.packets import QPN as COLLECTIVE_QPN
from host_agents.config import SCOPE_QP, NicConfig
from host_agents.errors import HostError
from host_agents.frames import Frames
from host_agents.members import Members
from host_agents.messages import CompletionCallback, DeliveryCallback
from host_agents.outlet import Group
from host_agents.packets import TO_NOTIFICATION_POINT, TO_REACTION_POINT, TO_SENDER, Packet
from host_agents.pcie import Pcie
from host_agents.port import CLASSES, Port
from host_agents.qp import GroupQueuePair, QueuePair
from host_agents.registry import LoadBalancing, Protocol
from host_agents.sending import Sending

_RECENT: Final = 16  # queue pairs
_ANSWERS: Final = (wire.SACK, wire.CUMULATIVE)
_CUMULATIVE_END: Final = wire.AFTER_BTH + wire.AETH_BYTES + wire.CUMULATIVE_BYTES


class Nic(Port):
    """NIC with one port.

    `docs/host-api.md` shows its use.
    """

    def __init__(self, config: NicConfig, protocol: Protocol, load_balancing: LoadBalancing) -> None:
        super().__init__()
        self.address = wire.parse_address(config.address)
        self.frames_received = 0
        # Lookup without the dictionary, by the last bits of the number.
        self._recent: list[QueuePair | None] = [None] * _RECENT
        self.on_complete: CompletionCallback | None = None
        self.on_failed: CompletionCallback | None = None
        self.on_delivered: DeliveryCallback | None = None
        self.queue_pairs: dict[int, QueuePair] = {}
        self.config = config
        self.protocol = protocol
        self._opcodes = protocol.opcodes
        self.load_balancing = load_balancing
        seed = config.seed << 32 | self.address
        self.pcie = Pcie(config.pcie, config.line_rate_bps) if config.pcie.rate > 0.0 else None
        self.host = Host(seed, config.rto_ns, self.timers, config.nics, config.last_hop_dscp, self.pcie)
        self._checks_icrc = config.check_icrc
        self._joined = AddressSet()  # addresses of multicast groups
        self.collectives: Engine | None = None
        self._paths: dict[tuple[int, int], Path] = {}  # by length of a full packet and the peer's kind of link
        self._silent: NotificationPoint | None = None
        self._sending: Sending | None = None  # settings of the queue pair opened last
        # Groups that outlive their queue pairs, by protocol, destination and partition key.
        self._groups: dict[tuple[str, int, int], Group] = {}

    # Queue pairs

    def open_qp(
        self,
        peer_address: str,
        qpn: int,
        peer_qpn: int,
        *,
        first_psn: int = 0,
        priority: int | None = None,
        protocol: Protocol | None = None,
        load_balancing: LoadBalancing | None = None,
        members: Sequence[str] = (),
        partition_key: int = wire.DEFAULT_PARTITION,
    ) -> QueuePair:
        """Open a queue pair to `peer_qpn` at `peer_address`; the peer opens its own with the numbers exchanged.

        `first_psn` is the PSN of the first packet in each direction. Protocol, load balancer and priority are the
        NIC's unless given. With `members`, `peer_address` is that of a multicast group, and these are its hosts, each
        with a queue pair `peer_qpn` to this one. Both ends have the same partition key, a tenant's. Raises HostError
        when `qpn` is taken, a number is out of range, a member is given twice, the NIC's `cc_scope` or `reliability` is
        none of the protocol's, or the priority is not that of the queue pairs that the rate is shared with.
        """
        config = self.config
        if not 0 < qpn < COLLECTIVE_QPN or not 0 < peer_qpn < COLLECTIVE_QPN:
            raise HostError(f"queue pair numbers {qpn} and {peer_qpn}: expected 1 to {COLLECTIVE_QPN - 1}")
        if not 0 < partition_key <= wire.DEFAULT_PARTITION:
            raise HostError(f"partition key {partition_key}: expected 1 to {wire.DEFAULT_PARTITION}")
        if qpn in self.queue_pairs:
            raise HostError(f"queue pair {qpn} of {config.address} is open already")
        try:
            behind = Members([wire.parse_address(member) for member in members]) if members else None
        except ValueError as error:
            raise HostError(f"queue pair {qpn} of {config.address}: {error}") from None
        destination = wire.parse_address(peer_address)
        sending = self._sending_to(
            destination,
            protocol or self.protocol,
            load_balancing or self.load_balancing,
            config.data_priority if priority is None else priority,
            partition_key,
        )
        group = sending.shared
        if group is not None and group.limiter is not None:
            if not group.outlet.senders:
                group.limiter.set_data_priority(sending.data_priority)
            elif group.limiter.data_priority != sending.data_priority:
                raise HostError(
                    f"queue pair {qpn} of {config.address}: priority {sending.data_priority}; expected "
                    f"{group.limiter.data_priority}, that of the queue pairs to {peer_address} that share its rate "
                    f"(cc_scope {sending.scope!r})"
                )
        point = self._notification_point(sending)
        frames = Frames(
            self.address,
            destination,
            peer_qpn,
            sending.data_priority,
            config.control_priority,
            sending.telemetry,
            wire.ACKNOWLEDGE if point.own_ack is None else point.own_ack.opcode,
            partition_key,
            sending.ecn,
            sending.lengths,
            config.mac_prefix,
        )
        if behind is None:
            qp = QueuePair(self, qpn, frames, sending, point, first_psn)
        else:
            qp = GroupQueuePair(self, qpn, frames, sending, point, first_psn, behind)
        self.queue_pairs[qpn] = qp
        return qp

    def _path_to(self, kind: int, wire_bytes: int) -> Path:
        """Return the properties of the path to a NIC, or to a group, before anything is sent.

        `kind` is the kind of the peer's link. It is -1 for a group, and if all links are alike. A
        full data packet has `wire_bytes`.
        """
        config = self.config
        path = self._paths.get((wire_bytes, kind))
        if path is None:
            peers = config.peers
            base_rtts_ns, base_rtt_ns, peer_bps = config.base_rtts_ns, config.base_rtt_ns, 0.0
            if peers is not None and kind >= 0:
                base_rtts_ns, peer_bps = peers.base_rtts_ns[kind], float(peers.rates_bps[kind])
                base_rtt_ns = max(base_rtts_ns)
            path = Path(
                float(config.line_rate_bps),
                base_rtt_ns,
                config.mtu_bytes,
                wire_bytes,
                config.cell_bytes,
                base_rtts_ns,
                config.frame_overhead_bytes,
                peer_bps,
            )
            self._paths[wire_bytes, kind] = path
        return path

    def close_qp(self, qp: QueuePair) -> None:
        """Forget a queue pair whose messages are complete; frames for it count as `unknown_qp` from now on."""
        if qp.sends:
            raise HostError(f"queue pair {qp.qpn} of {self.config.address} still has messages to send")
        self.forget(qp)
        qp.close()

    def forget(self, qp: QueuePair) -> None:
        """Forget a queue pair, whose frames count as `unknown_qp` from now on."""
        if self.queue_pairs.get(qp.qpn) is qp:
            del self.queue_pairs[qp.qpn]
            self._recent[qp.qpn % _RECENT] = None

    def join(self, group_address: str) -> None:
        """Accept packets of a multicast group from now on."""
        self._joined.add(wire.parse_address(group_address))

    def open_collectives(self, config: CollectiveConfig, contents: bytes | None = None) -> Engine:
        """Open the NIC's engine for collectives; `contents` is the host's memory, if it has one.

        Raises HostError when the protocol is not for collectives, or there is an engine already.
        """
        if self.collectives is not None:
            raise HostError(f"{self.config.address} has an engine for collectives already")
        slack_cycles = self.config.line_rate_bps / 128e9  # frames leave at whole ns, so they may be late by up to 1 ns
        engine = Engine(
            config,
            self.address,
            self.host,
            self.config.line_rate_bps,
            self.protocol.injection(slack_cycles),
            self._joined.add,
            contents,
        )
        self.collectives = engine
        self._arbiter = engine
        return engine

    def _notification_point(self, sending: Sending) -> NotificationPoint:
        """Return the notification point of a new queue pair; one that does not listen serves all."""
        point = sending.silent
        if point is None:
            point = sending.protocol.notification_point(sending.path)
            if not point.listens:
                if self._silent is None:
                    self._silent = point
                    point.bind(NotificationOutlet(self.host))
                point = self._silent
                sending.silent = point
        return point

    def _sending_to(
        self,
        destination: int,
        protocol: Protocol,
        load_balancing: LoadBalancing,
        data_priority: int,
        partition_key: int,
    ) -> Sending:
        """Return the settings of a new queue pair; the previous one's object if they are the same."""
        before = self._sending
        peers = self.config.peers
        kind = -1 if peers is None else peers.kind_of.get(destination, -1)
        if (
            before is not None
            and before.shared is self._groups.get((protocol.name, destination, partition_key))
            and before.kind == kind
            and before.protocol is protocol
            and before.load_balancing is load_balancing
            and before.data_priority == data_priority
        ):
            return before
        config = self.config
        self._opcodes = self._opcodes.joined(protocol.opcodes)
        path = self._path_to(kind, protocol.info.data_bytes(config.mtu_bytes))
        scope = protocol.scope(config.cc_scope)
        protocol.check_reliability(config.reliability)
        group = self._group(protocol, scope, destination, partition_key, path)
        slack_ns = config.pacing_slack_bytes * 8e9 / config.line_rate_bps
        sending = Sending(
            self.host,
            self,
            path,
            kind,
            protocol.nic_config(config),
            protocol,
            load_balancing,
            data_priority,
            slack_ns,
            scope,
            group,
        )
        self._sending = sending
        return sending

    def _group(self, protocol: Protocol, scope: str, destination: int, partition_key: int, path: Path) -> Group | None:
        """Return the reaction point that a new queue pair shares with others; None if it has its own."""
        if scope == SCOPE_QP:
            return None
        key = (protocol.name, destination, partition_key)
        group = self._groups.get(key)
        if group is None:
            group = Group(protocol.reaction_point(path), self.host, self, True)
            self._groups[key] = group
        return group

    # The driver's three calls

    def receive(self, now_ns: int, frame: bytes) -> None:
        """Handle a frame that arrived completely at `now_ns`."""
        self.now_ns = now_ns
        if self.timers.first_ns <= now_ns or self._waiting_ns <= now_ns:
            self._serve(now_ns)
        self.frames_received += 1
        if len(frame) < wire.AFTER_BTH:
            self._receive_other(now_ns, frame)
            return
        word: i64 = read_i64_be(frame, 12)  # type, version, type of service, total length, identification
        if (word >> 40) & 0xFFFFFF != 0x080045:
            self._receive_other(now_ns, frame)
            return
        total_length: i64 = (word >> 16) & 0xFFFF
        ports: i64 = read_i64_be(frame, wire.SOURCE_PORT)  # source, destination, length, checksum
        udp_length: i64 = (ports >> 16) & 0xFFFF
        # Bytes after the BTH on the wire, including padding, without ICRC.
        after_bth: i64 = udp_length - (wire.UDP_BYTES + wire.BTH_BYTES + wire.ICRC_BYTES)
        if (
            frame[wire.PROTOCOL] != 17
            or (ports >> 32) & 0xFFFF != wire.ROCE_PORT
            or udp_length + wire.IPV4_BYTES != total_length
            or after_bth < 0
            or not wire.checksum_holds(frame)
            or (self._checks_icrc and frame[wire.BTH] < wire.WITH_INT and not wire.icrc_holds(frame))
        ):
            self.stats.malformed += 1
            return
        addresses: i64 = read_i64_be(frame, wire.SOURCE)
        if addresses & 0xFFFFFFFF != self.address and not self._joined.has(addresses & 0xFFFFFFFF):
            self.stats.misdelivered += 1
            return
        bth: i64 = read_i64_be(frame, wire.BECN)  # FECN, BECN, destination QP, AckReq, PSN
        qpn: int = (bth >> 32) & wire.QPN_MASK
        if qpn == COLLECTIVE_QPN and self.collectives is not None:
            if not self.collectives.receive(now_ns, frame, after_bth):
                self.stats.malformed += 1
            return
        slot: i64 = (bth >> 32) % _RECENT
        qp = self._recent[slot]
        if qp is None or qp.qpn != qpn:
            qp = self.queue_pairs.get(qpn)
            self._recent[slot] = qp
        peer: int = (addresses >> 32) & 0xFFFFFFFF
        partition: int = frame[wire.PARTITION] << 8 | frame[wire.PARTITION + 1]
        if qp is None or (qp.peer_address != peer and not qp.hears(peer)) or qp.frames.partition_key != partition:
            self.stats.unknown_qp += 1
            return
        self._receive_packet(now_ns, qp, frame, bth, after_bth, (word >> 32) & 3 == wire.CE)

    def _receive_packet(self, now_ns: int, qp: QueuePair, frame: bytes, bth: i64, after_bth: i64, marked: bool) -> None:
        """Handle a packet for a queue pair, with its BTH from FECN to PSN and the bytes after it on the wire."""
        opcode: int = frame[wire.BTH]
        psn: int = bth & wire.PSN_MASK
        offset: int = wire.AFTER_BTH
        kind = opcode
        if opcode >= wire.WITH_INT:
            if opcode < wire.FIRST_CONTROL:
                kind = opcode - wire.WITH_INT
            if opcode < wire.FIRST_CONTROL or opcode == wire.SACK_WITH_INT:
                if len(frame) <= offset or len(frame) < offset + wire.SHIM_BYTES + 8 * (frame[offset] >> 4):
                    self.stats.malformed += 1
                    return
                offset += wire.SHIM_BYTES + 8 * (frame[offset] >> 4)
        if offset == wire.AFTER_BTH and qp.telemetry and (kind <= wire.ACKNOWLEDGE or opcode in _ANSWERS):
            self.stats.malformed += 1  # data and its answers need a shim there
            return
        rest: int = after_bth - (offset - wire.AFTER_BTH)
        if kind <= wire.SEND_ONLY:
            payload = rest - qp.option_bytes - (frame[wire.PAD] >> 4 & 3)
            if payload <= qp.short_bytes:
                payload = _short_payload(frame, rest, qp.short_bytes)
            if payload < 0 or kind == 3:
                self.stats.malformed += 1
                return
            last = kind == wire.SEND_LAST or kind == wire.SEND_ONLY
            qp.on_data(now_ns, psn, payload, last, bth & wire.ACK_REQUEST != 0, marked, frame)
        elif kind == wire.ACKNOWLEDGE:
            if rest < wire.AETH_BYTES or len(frame) < offset + wire.AETH_BYTES:
                self.stats.malformed += 1
                return
            qp.on_ack(now_ns, psn, frame[offset], frame, offset)
        elif kind == wire.CNP:
            qp.on_cnp(now_ns)
        elif kind >= wire.FIRST_CONTROL:
            self._receive_control(now_ns, qp, opcode, psn, frame, offset, rest)
        else:
            self.stats.malformed += 1

    def may_report(self, frame: bytes) -> bool:
        """Return whether a frame's arrival may complete a message, or may acknowledge all of one.

        It is also True if that cannot be determined quickly. It assumes that no frame that arrives
        before this one completes or acknowledges a message.
        """
        if len(frame) < wire.AFTER_BTH or (read_i64_be(frame, 12) >> 40) & 0xFFFFFF != 0x080045:
            return False
        bth: i64 = read_i64_be(frame, wire.BECN)
        qpn: int = (bth >> 32) & wire.QPN_MASK
        qp = self.queue_pairs.get(qpn)
        if qp is None:
            return qpn == COLLECTIVE_QPN
        opcode: int = frame[wire.BTH]
        kind = opcode - wire.WITH_INT if wire.WITH_INT <= opcode < wire.FIRST_CONTROL else opcode
        psn: int = bth & wire.PSN_MASK
        if kind <= wire.SEND_ONLY:
            return kind == wire.SEND_LAST or kind == wire.SEND_ONLY or qp.holds_early
        if kind == wire.ACKNOWLEDGE:
            return qp.may_complete(psn)
        if kind == wire.CUMULATIVE:
            return len(frame) >= _CUMULATIVE_END and qp.may_complete((_first_missing_of(frame) - 1) & wire.PSN_MASK)
        if kind == wire.SACK or kind == wire.SACK_WITH_INT:
            offset = wire.AFTER_BTH
            if kind == wire.SACK_WITH_INT and len(frame) > offset:
                offset += wire.SHIM_BYTES + wire.INT_RECORD_BYTES * (frame[offset] >> 4)
            if len(frame) < offset + wire.AETH_BYTES + wire.SACK_BYTES:
                return False
            sack: i64 = read_i64_be(frame, offset + wire.AETH_BYTES)
            first_missing: int = (sack >> 40) & wire.PSN_MASK
            return qp.may_complete((first_missing - 1) & wire.PSN_MASK)
        return kind != wire.CNP and kind != wire.NACK and kind != wire.TRIMMED

    def next_frame(self, now_ns: int) -> bytes | None:
        """Return the frame to send now that the link is free.

        None means that there is none before `next_wakeup_ns()`.
        """
        self.now_ns = now_ns
        if self.timers.first_ns <= now_ns or self._waiting_ns <= now_ns:
            self._serve(now_ns)
        paused = 0
        if self._any_pause:
            paused = self._paused_classes(now_ns)
        if self._first_control is not None:
            control = self._take_control(paused)
            if control is not None:
                self.frames_sent += 1
                return control
        if self._arbiter is not None:
            arbitrated = self._arbiter.transmit(now_ns, paused)
            if arbitrated is not None:
                self.frames_sent += 1
                return arbitrated
        priority = CLASSES - 1
        sendable = self._ready & ~paused
        while sendable != 0:
            if sendable >> priority & 1:
                frame = self._take_ready(priority).transmit(now_ns)
                if frame is not None:
                    self.frames_sent += 1
                    return frame
                sendable = self._ready & ~paused
            else:
                priority -= 1
        return None

    def next_wakeup_ns(self) -> int:
        """Return the time of the next call of `next_frame` if nothing arrives; NEVER if nothing is due.

        A past time means at once.
        """
        wakeup = min(self.timers.first_ns, self._waiting_ns)
        if self._first_control is not None:
            wakeup = min(wakeup, self._control_due_ns())
        if self._arbiter is not None:
            wakeup = min(wakeup, self._arbiter.due_ns(self._paused_until_ns))
        if self._ready != 0:
            for priority in range(CLASSES):
                if self._ready >> priority & 1:
                    wakeup = min(wakeup, self._paused_until_ns[priority])
        return wakeup

    def _receive_control(
        self, now_ns: int, qp: QueuePair, opcode: int, psn: int, frame: bytes, offset: int, rest: int
    ) -> None:
        """Handle a control packet; `rest` bytes follow `frame[offset]` on the wire."""
        if opcode == wire.NACK:
            qp.on_nack(now_ns, psn, frame)
        elif opcode == wire.TRIMMED:
            if qp.telemetry and not _has_shim(frame):
                self.stats.malformed += 1
            else:
                qp.on_trimmed(now_ns, psn, frame)
        elif opcode <= wire.SACK_WITH_INT and len(frame) >= offset + wire.AETH_BYTES + wire.SACK_BYTES:
            sack: i64 = read_i64_be(frame, offset + wire.AETH_BYTES)
            first_missing: int = (sack >> 40) & wire.PSN_MASK
            map_psn: int = (sack >> 16) & wire.PSN_MASK
            early: i64 = read_i64_be(frame, offset + wire.AETH_BYTES + wire.SACK_BYTES - 8)
            qp.on_sack(now_ns, psn, first_missing, map_psn, early, frame, offset)
        elif opcode == wire.CUMULATIVE and len(frame) >= _CUMULATIVE_END:
            missing = _first_missing_of(frame)
            qp.on_sack(now_ns, psn, missing, (missing + 1) & wire.PSN_MASK, 0, frame, offset)
        else:
            packet = self._opcodes.find(opcode)
            if packet is None or not packet.fits(frame, offset):
                self.stats.malformed += 1
            elif packet.wraps:
                self._receive_wrapped(now_ns, qp, opcode - packet.opcode, psn, frame, rest - packet.size_bytes)
            else:
                self._receive_own(now_ns, qp, packet, opcode, psn, frame, offset)

    def _receive_own(
        self, now_ns: int, qp: QueuePair, packet: Packet, opcode: int, psn: int, frame: bytes, offset: int
    ) -> None:
        """Handle a protocol's own control packet, which is complete."""
        side = packet.side(frame, offset)
        if side == TO_REACTION_POINT:
            if not qp.retired:
                qp.reaction_point.on_control(now_ns, opcode, frame, offset)
                qp.limiter.wake(now_ns)
        elif side == TO_NOTIFICATION_POINT:
            qp.notification_point.on_control(now_ns, opcode, frame, offset)
        elif side == TO_SENDER:
            if not qp.retired:
                qp.reaction_point.on_control(now_ns, opcode, frame, offset)
            qp.on_ack(now_ns, psn, frame[offset], frame, offset)
        else:
            self.stats.malformed += 1

    def _receive_wrapped(self, now_ns: int, qp: QueuePair, kind: int, psn: int, frame: bytes, rest: int) -> None:
        """Handle data of this reliable-connection opcode that a protocol has wrapped in a packet of its own.

        Its headers are complete; `rest` bytes follow them on the wire.
        """
        payload = rest - (frame[wire.PAD] >> 4 & 3)
        if qp.telemetry or payload < 0 or kind > wire.SEND_ONLY or kind == 3:
            self.stats.malformed += 1
            return
        last = kind == wire.SEND_LAST or kind == wire.SEND_ONLY
        marked = frame[wire.TOS] & 3 == wire.CE
        qp.on_data(now_ns, psn, payload, last, frame[wire.ACK_PSN] & 0x80 != 0, marked, frame)

    def _receive_other(self, now_ns: int, frame: bytes) -> None:
        quanta = wire.parse_pause(frame)
        if quanta is None:
            self.stats.malformed += 1
            return
        self.stats.pauses_received += 1
        if not self.config.pfc:
            return
        for priority, count in quanta.items():
            until = now_ns - (-count * wire.QUANTUM_BITS * 1_000_000_000 // self.config.line_rate_bps)
            planned = max(self._paused_until_ns[priority], now_ns)
            self.stats.paused_ns[priority] += until - planned
            self._pause(priority, until)


def _first_missing_of(frame: bytes) -> int:
    """Return the first missing packet's PSN in a cumulative ACK, which is complete."""
    word: i64 = read_i64_be(frame, wire.AFTER_BTH)
    first_missing: int = (word >> 8) & wire.PSN_MASK
    return first_missing


def _short_payload(frame: bytes, rest: int, most: int) -> int:
    """Return the payload length, at most `most`, that a data packet of the shortest length states.

    -1 if it is invalid.
    """
    if rest != wire.SHORT_BYTES or len(frame) < wire.AFTER_BTH + wire.SHORT_BYTES:
        return -1
    payload: int = frame[wire.AFTER_BTH] << 8 | frame[wire.AFTER_BTH + 1]
    return payload if payload <= most else -1


def _has_shim(frame: bytes) -> bool:
    """Return whether the INT shim after the BTH is complete with its records."""
    at: i64 = wire.AFTER_BTH
    return len(frame) > at + 1 and len(frame) >= at + wire.SHIM_BYTES + wire.INT_RECORD_BYTES * (frame[at] >> 4)
