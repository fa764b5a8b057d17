"""Program of test_native.py in a separate process, which prints digests of the hosts' actions for comparison.

With `--native` the compiled hosts are used.
"""

import dataclasses
import hashlib
import sys

import host_agents

if "--native" in sys.argv:
    assert host_agents.use_native()

from collections.abc import Callable, Mapping
from typing import Any

from host_agents import bits, native, nic, wire
from host_agents.assignments import CollectiveConfig, Step
from host_agents.cc.base import Feedback, Path, ReactionPoint
from host_agents.cc.one_rc import SPECULATIVE
from host_agents.cc.sperc import CONTROL
from host_agents.collective.memory import Memory
from host_agents.registry import Protocol
from p4cc._link import Trouble, Wire, connect, pair, trimmed
from tests.host_agents import collective_star
from tests.host_agents.collective_star import GROUP, Star, nics, programs
from tests.host_agents.narrow import of_kind


class Switch:
    """Marks every seventh data frame and stamps an INT record of a loaded 100 Gb/s link on those with a shim.

    With `trims`, it cuts the payload off every eleventh. Of s-PERC's speculative packets it lets the first 20 pass.
    """

    def __init__(self, trims: str | bool) -> None:
        self.trims = trims
        self.sent_bytes = 0
        self.frames = 0

    def __call__(self, now_ns: int, frame: bytes) -> bytes | None:
        out = bytearray(frame)
        if frame[wire.BTH] == CONTROL.opcode:
            place = wire.AFTER_BTH + CONTROL.place("let_through").byte
            out[place : place + 3] = (20).to_bytes(3, "big")
            return bytes(out)
        if frame[wire.BTH] & 0xF8 == SPECULATIVE.opcode:
            return frame if SPECULATIVE.get("sequence", frame, wire.AFTER_BTH) < 20 else None
        data = frame[wire.BTH] in (0, 1, 2, 4, 0xC0, 0xC1, 0xC2, 0xC4)
        if not data:
            return frame
        self.frames += 1
        if self.trims and self.frames % 11 == 0:
            return trimmed(frame)
        if self.frames % 7 == 0:
            out[wire.TOS] |= 3
        if frame[wire.BTH] >= 0xC0:
            self.sent_bytes += 1100
            cells = self.frames * 37 % 300
            record = 10 << 60 | now_ns % 2**24 << 36 | (self.sent_bytes >> 7) % 2**20 << 16 | cells
            out[54:56] = (0x1007).to_bytes(2, "big")
            out[56:] = record.to_bytes(8, "big")
            for offset in (16, 38):
                out[offset : offset + 2] = (int.from_bytes(out[offset : offset + 2], "big") + 8).to_bytes(2, "big")
        out[24:26] = b"\0\0"
        out[24:26] = wire.ip_checksum(bytes(out[14:34])).to_bytes(2, "big")
        return bytes(out)


class Halving(ReactionPoint):
    """A protocol in plain Python, on compiled or on plain NICs."""

    def on_ack(self, feedback: Feedback) -> None:
        self.set_rate(self.rate_bps / 2 if feedback.marked else min(self.rate_bps * 1.1, self.path.line_rate_bps))


USUAL = Trouble(loss=0.01, reorder=0.02, duplicate=0.01)
FAR = Trouble(loss=0.02, reorder=0.3, reorder_ns=30_000)  # by more packets than a SACK's map names


def run(
    protocol: str,
    reliability: str,
    scope: str,
    parameters: Mapping[str, Any] | None = None,
    point: Callable[[Path], ReactionPoint] | None = None,
    trims: str | bool = False,
    trouble: Trouble = USUAL,
) -> None:
    a, b = pair(protocol, parameters, reliability=reliability, cc_scope=scope, rto_ns=60_000)
    options: dict[str, Protocol] = {}
    if point is not None:
        info = dataclasses.replace(a.protocol.info, reaction_point=lambda parameters, mechanisms, path: point(path))
        options = {"protocol": dataclasses.replace(a.protocol, info=info)}
    qps = [connect(a, b, n, **options) for n in (1, 2, 3)]
    for i, (qa, qb) in enumerate(qps):
        qa.post(150_000 + i, start_ns=7_001 * i)
        qb.post(5_000)
    link = Wire(a, b, trouble=trouble, hook=Switch(trims))
    digest = hashlib.sha256()
    for t in range(20_000, 400_000, 20_000):
        link.run(t)
        for qa, _ in qps:
            digest.update(repr((t, qa.rate_bps, qa.window_bytes, qa.inflight_bytes)).encode())
    link.run(100_000_000)
    for time_ns, side, frame in link.sent:
        digest.update(b"%d %d " % (time_ns, side) + frame)
    for qa, qb in qps:
        assert qb.stats.bytes_delivered == qa.stats.bytes_posted
        digest.update(repr((qa.stats.counts(), qb.stats.counts())).encode())
    print(protocol, reliability, scope, point is not None, len(link.sent), digest.hexdigest())


def collectives(protocol: str, push: bool = False, arbiter: str = "least_recent") -> None:
    hosts = nics(4, protocol, rto_ns=20_000)
    config = CollectiveConfig(response_order="random", fraction_bits=8, arbiter=arbiter)
    contents = [bytes((7 * rank + 3 * i) % 120 for i in range(4096)) for rank in range(4)]
    steps = [Step("all_reduce", GROUP, 4096), Step("random", GROUP, 512)]
    if push:
        steps = [Step("pushed_all_reduce", GROUP, 4096), Step("unicast_read", 0, 4096, peer="10.0.0.3")]
    made = programs(hosts, steps, contents=contents, config=config, push=push)
    star = Star(hosts, collective_star.Trouble(loss=0.05, duplicate=0.05, late=0.1))
    star.run()
    digest = hashlib.sha256()
    for time_ns, host, frame in star.seen:
        digest.update(b"%d %d " % (time_ns, host) + frame)
    for program in made:
        engine = program.engine
        assert program.ended_ns > 0
        memory = of_kind(engine.memory, Memory)
        digest.update(repr((engine.record(), engine.stats.counts(), engine.sizes())).encode() + memory.contents)
    print(protocol, push, arbiter, len(star.seen), digest.hexdigest())


def maps() -> None:
    """Print the bits of a ring at all places, and parts of maps of every length."""
    words = bits.ring(256)
    for number in range(1_000, 1_256):
        if number % 3 == 0 or number % 7 < 2:
            bits.insert(words, number)
    for number in range(1_000, 1_256, 9):
        bits.remove(words, number)
    found = [bits.map_of(words, first) for first in range(990, 1_200)]
    parts = [bits.lowest(whole, count) for whole in (-1, found[20]) for count in range(-1, 66)]
    print("maps", hashlib.sha256(repr((found, parts)).encode()).hexdigest())


assert native.active() == ("--native" in sys.argv)
assert nic.__file__.endswith(".so") == ("--native" in sys.argv)
for reliability in ("go-back-n", "selective-repeat"):
    for scope in ("qp", "destination", "pair"):
        for protocol in ("none", "hpcc", "dcqcn", "dcqcn-paper"):
            run(protocol, reliability, scope)
    for protocol in ("eqds", "eqds+mprdma", "eqds+smartt", "smartt", "mprdma", "bbr"):
        run(protocol, reliability, "qp", trims=True)
    for protocol in ("sperc", "sperc+1rc", "sperc+1rc+weights"):
        run(protocol, reliability, "qp")
    run("none", reliability, "qp", point=Halving)
run("none", "selective-repeat", "qp", trouble=FAR)
maps()
for protocol in ("dart", "dart-paper"):
    run(protocol, "go-back-n", "pair", {"short_bytes": 150_001, "source_ecn_bytes": 3_000})
run("dcqcn", "go-back-n", "qp", {"gain": 0.5, "rate_increase_interval_ns": 20_000, "byte_counter_bytes": 20_000})
for protocol in ("collective-none", "collective-window", "collective-aimd", "3cpo"):
    collectives(protocol)
for protocol in ("collective-none", "3cpo"):
    collectives(protocol, push=True, arbiter="round_robin")
