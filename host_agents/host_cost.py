"""CPU time of the hosts: one data packet sent, received and acknowledged, and its ACK processed.

The frames are passed from NIC to NIC in batches, without a network, so that only the hosts are
measured. The time includes one call from Python for each frame, which is slower than the fabric's
own.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from host_agents import native, wire
from host_agents.config import NicConfig
from host_agents.headers import LINK_RATES_BPS
from host_agents.nic import Nic
from host_agents.registry import resolve, resolve_load_balancer

LINE_RATE_BPS = 100_000_000_000
RATE_CODE = LINK_RATES_BPS.index(LINE_RATE_BPS)  # in INT records
BASE_RTT_NS = 100_000
PACKET_NS = 90
TOGETHER = 10  # largest number of frames in a batch
MAX_IDLE = 200  # half round trips


@dataclass(frozen=True)
class HostCost:
    """CPU time of the sending and of the receiving host, in ns per delivered data packet."""

    protocol: str
    reliability: str
    queue_pairs: int
    native: bool
    packets: int
    sender_ns: float
    receiver_ns: float

    @property
    def total_ns(self) -> float:
        return self.sender_ns + self.receiver_ns


class _Telemetry:
    """Effect of five idle switches on a data frame with an INT shim."""

    def __init__(self, hops: int) -> None:
        self.hops = hops
        self.sent_bytes = 0

    def stamp(self, now_ns: int, frame: bytes) -> bytes:
        self.sent_bytes += 1100
        total = int.from_bytes(frame[16:18], "big") + 8 * self.hops
        udp = int.from_bytes(frame[38:40], "big") + 8 * self.hops
        head = bytearray(frame[: wire.AFTER_BTH])
        head[16:18] = total.to_bytes(2, "big")
        head[38:40] = udp.to_bytes(2, "big")
        head[24:26] = b"\0\0"
        head[24:26] = wire.ip_checksum(bytes(head[14:34])).to_bytes(2, "big")
        record = RATE_CODE << 60 | (now_ns & 0xFFFFFF) << 36 | (self.sent_bytes >> 7 & 0xFFFFF) << 16
        return bytes(head) + (self.hops << 12 | 0x5A5).to_bytes(2, "big") + record.to_bytes(8, "big") * self.hops


class _Side:
    """NIC with the frames in flight to it and its CPU time."""

    def __init__(self, nic: Nic, gap_ns: int) -> None:
        self.nic = nic
        self.spent_ns = 0
        self._gap_ns = gap_ns  # time between two frames that it sends
        self._now_ns = 0
        self._coming: deque[tuple[int, bytes]] = deque()

    def go_on(self, until_ns: int, came: Iterable[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
        """Return the frames sent until `until_ns`, with their times.

        Frames are passed in batches, as by a fabric.
        """
        coming, nic = self._coming, self.nic
        coming.extend(came)
        sent: list[tuple[int, bytes]] = []
        began_ns = time.thread_time_ns()
        while True:
            due_ns = nic.next_wakeup_ns()
            if coming:
                due_ns = min(due_ns, coming[0][0] + TOGETHER * PACKET_NS)
            if due_ns >= until_ns or self._now_ns >= until_ns:
                break
            now_ns = max(self._now_ns, due_ns)
            while coming and coming[0][0] <= now_ns:
                nic.receive(now_ns, coming.popleft()[1])
            for _ in range(TOGETHER):
                frame = nic.next_frame(now_ns)
                if frame is None:
                    break
                sent.append((now_ns, frame))
                now_ns += self._gap_ns
            self._now_ns = now_ns
        self.spent_ns += time.thread_time_ns() - began_ns
        return sent


def host_cost(
    protocol: str = "hpcc",
    *,
    packets: int = 100_000,
    hops: int = 5,
    queue_pairs: int = 1,
    reliability: str = "go-back-n",
    load_balancer: str = "ecmp",
) -> HostCost:
    """Measure `packets` data packets between two NICs; HPCC gets INT records of `hops` links.

    Raises RuntimeError if the protocol stops sending, for example because it needs information from
    switches.
    """
    chosen = resolve(protocol)
    balancer = resolve_load_balancer(load_balancer)
    nics = [
        Nic(NicConfig(a, LINE_RATE_BPS, BASE_RTT_NS, reliability=reliability, rto_ns=1 << 39), chosen, balancer)
        for a in ("10.0.0.2", "10.0.0.3")
    ]
    sender, receiver = _Side(nics[0], PACKET_NS), _Side(nics[1], 0)
    for qpn in range(1, queue_pairs + 1):
        receiver.nic.open_qp("10.0.0.2", qpn, qpn)
        sender.nic.open_qp("10.0.0.3", qpn, qpn).post(1000 * (packets // queue_pairs + 1))
    telemetry = _Telemetry(hops)
    delay_ns = BASE_RTT_NS // 2
    until_ns = done = idle = 0
    came: list[tuple[int, bytes]] = []
    answers: list[tuple[int, bytes]] = []
    while done < packets:
        until_ns += delay_ns  # time in which neither side gets frames of the other
        data = sender.go_on(until_ns, answers)
        if chosen.info.telemetry:
            data = [(at_ns, telemetry.stamp(at_ns, frame)) for at_ns, frame in data]
        answers = receiver.go_on(until_ns, came)
        came = [(at_ns + delay_ns, frame) for at_ns, frame in data]
        answers = [(at_ns + delay_ns, frame) for at_ns, frame in answers]
        done += len(data)
        idle = 0 if data else idle + 1
        if idle == MAX_IDLE:
            raise RuntimeError(f"{protocol}: after {done} packets nothing is sent for {MAX_IDLE * delay_ns} ns")
    each = [side.spent_ns / done for side in (sender, receiver)]
    return HostCost(protocol, reliability, queue_pairs, native.active(), done, *each)
