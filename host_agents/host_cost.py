"""What the hosts cost in CPU time: one data packet sent, received and acknowledged, and the ACK processed.

The frames go from NIC to NIC in batches, without a network between, so that nothing but the hosts is measured: the time
includes one call from Python for each frame, which is dearer than the fabric's own.
"""

from __future__ import annotations

import time
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
BATCH = 200
MAX_IDLE = 100  # round trips


@dataclass(frozen=True)
class HostCost:
    """CPU time of the hosts, ns per delivered data packet."""

    protocol: str
    reliability: str
    queue_pairs: int
    native: bool
    packets: int
    send_ns: float
    receive_ns: float
    send_ack_ns: float
    receive_ack_ns: float

    @property
    def total_ns(self) -> float:
        return self.send_ns + self.receive_ns + self.send_ack_ns + self.receive_ack_ns


class _Telemetry:
    """What five idle switches would do to a data frame with an INT shim."""

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


def _control(nic: Nic, now_ns: int, until_ns: int) -> list[bytes]:
    """What the receiver sends until then: ACKs at once, pulls at the pace of the link."""
    frames: list[bytes] = []
    while (due_ns := max(now_ns, nic.next_wakeup_ns())) < until_ns:
        now_ns = due_ns
        frame = nic.next_frame(now_ns)
        if frame is None:
            now_ns += PACKET_NS
        else:
            frames.append(frame)
    return frames


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

    Raises RuntimeError where the protocol stops sending, as one may that needs what a switch would say.
    """
    chosen = resolve(protocol)
    balancer = resolve_load_balancer(load_balancer)
    nics = [
        Nic(NicConfig(a, LINE_RATE_BPS, BASE_RTT_NS, reliability=reliability, rto_ns=1 << 39), chosen, balancer)
        for a in ("10.0.0.2", "10.0.0.3")
    ]
    sender, receiver = nics
    for qpn in range(1, queue_pairs + 1):
        receiver.open_qp("10.0.0.2", qpn, qpn)
        sender.open_qp("10.0.0.3", qpn, qpn).post(1000 * (packets // queue_pairs + 1))
    telemetry = _Telemetry(hops)
    clock = time.thread_time_ns
    spent = [0, 0, 0, 0]
    now_ns = 0
    done = 0
    idle = 0
    while done < packets:
        frames: list[bytes] = []
        times = range(now_ns, now_ns + BATCH * PACKET_NS, PACKET_NS)
        t0 = clock()
        for at_ns in times:
            frame = sender.next_frame(at_ns)
            if frame is not None:
                frames.append(frame)
        t1 = clock()
        if chosen.info.telemetry:
            frames = [telemetry.stamp(at_ns, frame) for at_ns, frame in zip(times, frames, strict=False)]
        now_ns += BASE_RTT_NS // 2
        t2 = clock()
        for frame in frames:
            receiver.receive(now_ns, frame)
        t3 = clock()
        controls = _control(receiver, now_ns, now_ns + BASE_RTT_NS // 2)
        t4 = clock()
        now_ns += BASE_RTT_NS // 2
        for control in controls:
            sender.receive(now_ns, control)
        t5 = clock()
        for i, nanoseconds in enumerate((t1 - t0, t3 - t2, t4 - t3, t5 - t4)):
            spent[i] += nanoseconds
        done += len(frames)
        idle = 0 if frames else idle + 1
        if idle == MAX_IDLE:
            raise RuntimeError(f"{protocol}: after {done} packets nothing is sent for {MAX_IDLE * BASE_RTT_NS} ns")
    each = [nanoseconds / done for nanoseconds in spent]
    return HostCost(protocol, reliability, queue_pairs, native.active(), done, *each)
