"""Implementations of outlets: for a reaction point with its queue pairs, and for a receiving end."""

from __future__ import annotations

from host_agents.cc.base import Host, NotificationOutlet, ReactionOutlet, ReactionPoint, Traffic
from host_agents.frames import Frames
from host_agents.limiter import RateLimiter
from host_agents.messages import Connection
from host_agents.packets import Packet
from host_agents.port import Port
from host_agents.sender import Sender


class SenderTraffic(Traffic):
    """Traffic of all `senders` together."""

    def __init__(self) -> None:
        super().__init__()
        self.senders: list[Sender] = []

    def oldest_unacked(self) -> int:
        oldest = self.fresh_packets
        for sender in self.senders:
            oldest = min(oldest, sender.oldest_place(oldest))
        return oldest


class SenderOutlet(ReactionOutlet):
    """Outlet through the first open queue pair of a reaction point; without one it sends nothing."""

    def __init__(self, host: Host, traffic: Traffic, port: Port) -> None:
        super().__init__(host, traffic)
        self.senders: list[Sender] = []
        self.limiters: list[RateLimiter] = []
        self._port = port

    def qpn(self) -> int:
        return self.senders[0].qpn if self.senders else 0

    def peer_address(self) -> int:
        return self.senders[0].frames.peer_address if self.senders else 0

    def partition_key(self) -> int:
        return self.senders[0].frames.partition_key if self.senders else 0xFFFF

    def data_priority(self) -> int:
        return self.senders[0].limiter.data_priority if self.senders else 0

    def control_entropy(self, now_ns: int) -> int:
        return self.senders[0].load_balancer.control_entropy(now_ns) if self.senders else 0

    def send_control(self, packet: Packet, body: bytes, *, psn: int = 0, entropy: int = -1, priority: int = -1) -> None:
        if self.senders:
            sender = self.senders[0]
            frame = sender.frames.control_frame(
                packet.opcode, body, psn=psn, entropy=sender.entropy if entropy < 0 else entropy, priority=priority
            )
            self._port.send_control(frame)

    def send_counter(self, packet: Packet, value: int, entropy: int) -> None:
        if self.senders:
            self._port.send_control(self.senders[0].frames.counter(packet.opcode, value, entropy))

    def send_cnp(self) -> None:
        if self.senders:
            sender = self.senders[0]
            sender.stats.cnps_sent += 1
            self._port.send_control(sender.frames.cnp(sender.entropy))

    def send_again(self, place: int) -> None:
        for sender in self.senders:
            sender.send_again(place)
            sender.limiter.wake(self._port.now_ns)

    def set_priority(self, priority: int) -> None:
        for limiter in self.limiters:
            limiter.set_priority(priority)

    def may_retry(self, now_ns: int) -> bool:
        going_on = False
        for sender in self.senders[:]:  # a sender that fails leaves the list
            if sender.messages.size > 0 and sender.may_retry(now_ns):
                going_on = True
        return going_on

    def count_malformed(self) -> None:
        self._port.stats.malformed += 1

    def set_rto(self, rto_ns: int) -> None:
        for sender in self.senders:
            sender.rto_ns = rto_ns

    def rate_changed(self) -> None:
        for limiter in self.limiters:
            limiter.rate_changed()

    def window_opened(self) -> None:
        for limiter in self.limiters:
            limiter.wake(self._port.now_ns)


class ReceiverOutlet(NotificationOutlet):
    """Outlet of a notification point, which works without a sending half, since most ends only receive."""

    def __init__(self, host: Host, connection: Connection, frames: Frames, port: Port, data_priority: int) -> None:
        super().__init__(host)
        self.is_open = True
        self._connection = connection
        self._frames = frames
        self._port = port
        self._data_priority = data_priority

    def qpn(self) -> int:
        return self._connection.qpn

    def peer_address(self) -> int:
        return self._frames.peer_address

    def partition_key(self) -> int:
        return self._frames.partition_key

    def data_priority(self) -> int:
        return self._data_priority

    def control_entropy(self, now_ns: int) -> int:
        return self._connection.control_entropy(now_ns) if self.is_open else 0

    def send_control(self, packet: Packet, body: bytes, *, psn: int = 0, entropy: int = -1, priority: int = -1) -> None:
        if self.is_open:
            if entropy < 0:
                entropy = self._connection.data_entropy()
            self._port.send_control(
                self._frames.control_frame(packet.opcode, body, psn=psn, entropy=entropy, priority=priority)
            )

    def send_counter(self, packet: Packet, value: int, entropy: int) -> None:
        if self.is_open:
            self._port.send_control(self._frames.counter(packet.opcode, value, entropy))

    def send_cnp(self) -> None:
        if self.is_open:
            self._connection.stats.cnps_sent += 1
            self._port.send_control(self._frames.cnp(self._connection.data_entropy()))

    def count_malformed(self) -> None:
        self._port.stats.malformed += 1

    def count_held_pull(self) -> None:
        if self.is_open:
            self._connection.stats.pulls_held += 1


class Group:
    """Reaction point and the queue pairs that share it."""

    def __init__(self, point: ReactionPoint, host: Host, port: Port, shared: bool) -> None:
        traffic = SenderTraffic()
        self.point = point
        self.shared = shared  # True if all queue pairs to a destination share it; it then outlives them
        self.limiter: RateLimiter | None = None  # the limiter of all, if they also share the rate
        self.traffic = traffic
        self.outlet = SenderOutlet(host, traffic, port)
        point.bind(self.outlet)

    def join(self, sender: Sender) -> None:
        """Add a queue pair that is opened."""
        self.traffic.senders.append(sender)
        self.outlet.senders.append(sender)
        if sender.limiter not in self.outlet.limiters:
            self.outlet.limiters.append(sender.limiter)

    def leave(self, sender: Sender) -> None:
        """Remove a queue pair that is closed, or has failed while others continue."""
        if sender not in self.outlet.senders:
            return  # it failed before it was closed
        self.traffic.senders.remove(sender)
        self.outlet.senders.remove(sender)
        if sender.limiter is not self.limiter:
            self.outlet.limiters.remove(sender.limiter)
        if not self.shared:
            self.point.close()
