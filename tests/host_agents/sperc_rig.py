"""Rig for s-PERC's hosts: a Python switch between two NICs."""

from collections.abc import Mapping
from typing import Any

from host_agents import wire
from host_agents.cc.one_rc import SPECULATIVE
from host_agents.cc.sperc import CONTROL, RECORDS
from host_agents.cc.sperc_link import NEW_FLOW, Link, Record
from host_agents.qp import QueuePair
from p4cc._link import Hook, Wire, connect, pair

GBPS = 1_000_000  # kb/s
LINE = 100_000_000_000
RTT = 8_000
PACKET = 1_058


def is_control(frame: bytes) -> bool:
    return len(frame) > wire.BTH and frame[wire.BTH] == CONTROL.opcode


def is_speculative(frame: bytes) -> bool:
    return len(frame) > wire.BTH and frame[wire.BTH] & 0xF8 == SPECULATIVE.opcode


def values(frame: bytes) -> dict[str, int]:
    return CONTROL.decode(frame, wire.AFTER_BTH)


def records(frame: bytes) -> list[dict[str, int]]:
    return CONTROL.decode_records(frame, wire.AFTER_BTH)


def speculative(frame: bytes) -> dict[str, int]:
    return SPECULATIVE.decode(frame, wire.AFTER_BTH)


class Switch:
    """A hook that acts as a switch on the path: a link's rate computation, 1RC's windows, and the records' turn."""

    def __init__(self, gbps: int, others: int = 0, drops: bool = True) -> None:
        self.link = Link(gbps * GBPS, gbps * GBPS // 4096, 12_000, 0)
        self.windows: dict[int, int] = {}  # packets, by epoch
        self.dropped: list[tuple[int, int, int]] = []  # of (epoch, weight, sequence)
        self.passed: list[tuple[int, int, int]] = []
        self._drops = drops
        for _ in range(others):
            self.link.process([Record() for _ in range(RECORDS)], 0, 1, 1, False, 0)

    def __call__(self, now: int, frame: bytes) -> bytes | None:
        if is_speculative(frame):
            return self._take(frame)
        if not is_control(frame) or values(frame)["response"]:
            return frame
        own = values(frame)
        known = [Record(r["b"], r["x"], r["state"], r["ignore"]) for r in records(frame)]
        new = known[0].state == NEW_FLOW
        self.link.process(known, 0, own["old_weight"], own["new_weight"], bool(own["leaving"]), now)
        window = self.windows.setdefault(own["epoch"], known[0].b * RTT // (8 * PACKET * 1_000_000))
        if new:
            own["let_through"] = max(1, min(window // own["speculative_weight"], own["let_through"]))
        own["switches_passed"] += 1
        turned = [{"b": r.b, "x": r.x, "state": r.state, "ignore": r.ignore} for r in known[1:] + known[:1]]
        return frame[: wire.AFTER_BTH] + CONTROL.encode(turned, **own) + frame[-4:]

    def _take(self, frame: bytes) -> bytes | None:
        own = speculative(frame)
        window = self.windows[own["epoch"]]  # the control packet was first
        passes = own["sequence"] < max(1, window // own["weight"])
        (self.passed if passes else self.dropped).append((own["epoch"], own["weight"], own["sequence"]))
        return frame if passes or not self._drops else None


def nics(
    hook: Hook | None = None,
    protocol: str = "sperc",
    parameters: Mapping[str, Any] | None = None,
    queue_pairs: int = 1,
    **config: Any,
) -> tuple[Wire, list[QueuePair]]:
    """Return a link between two NICs, and the queue pairs of the first, numbered from 1."""
    a, b = pair(protocol, parameters, line_rate_bps=LINE, base_rtt_ns=RTT, **config)
    return Wire(a, b, hook=hook), [connect(a, b, qpn)[0] for qpn in range(1, queue_pairs + 1)]


def controls(link: Wire, side: int) -> list[tuple[int, bytes]]:
    return [(now, frame) for now, sender, frame in link.sent if sender == side and is_control(frame)]
