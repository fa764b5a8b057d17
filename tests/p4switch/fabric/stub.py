"""The fabric with a stub instead of a pipeline, hand-made endpoints, and small networks."""

import importlib.machinery
import importlib.util
import os
import struct
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from p4switch import native, traffic

HERE = Path(__file__).parent
PACKAGE = HERE.parents[2] / "p4switch"
NEVER = 2**61
GBPS = 1_000_000_000
DROPS = ("program_ingress", "program_egress", "buffer", "no_port", "link_down", "link_loss", "hops", "endless")


def build(*flags: str) -> Path:
    fabric, engine = PACKAGE / "fabric" / "c", PACKAGE / "engine" / "c"
    return native.build(
        "fabric with a stub",
        [HERE / "stub_switch.c", *sorted(fabric.glob("*.c")), *traffic.SOURCES, *traffic.PYTHON_SOURCES],
        headers=[*fabric.glob("*.h"), *traffic.HEADERS, engine / "switch.h", engine / "python.h"],
        flags=[f"-I{native.python_include()}", *flags],
    )


def load_library(path: Path) -> ModuleType:
    loader = importlib.machinery.ExtensionFileLoader("_engine", str(path))
    spec = importlib.util.spec_from_loader("_engine", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


@cache
def load() -> ModuleType:
    """Load the fabric, built with P4CC_FABRIC_FLAGS of the environment, for sanitizers."""
    return load_library(build(*os.environ.get("P4CC_FABRIC_FLAGS", "").split()))


def examples(count: int) -> int:
    """Return how many examples hypothesis tries; with sanitizers there are fewer, because runs are slow."""
    return count // 10 if os.environ.get("P4CC_FABRIC_FLAGS") else count


def ip(number: int) -> int:
    return 10 << 24 | number


def frame(
    src: int, dst: int, wire_len: int = 1000, priority: int = 0, qp: int = 7, mark: int = 0, queue: int = 0
) -> bytes:
    """Return a RoCEv2 frame between hosts of these numbers (the low 16 bits of the address).

    `mark` is its PSN and `queue` one of the highest priority's queues; stub_switch.c describes the
    others.
    """
    ethernet = b"\x02\x00" + struct.pack("!I", ip(dst)) + b"\x02\x00" + struct.pack("!I", ip(src)) + b"\x08\x00"
    ipv4 = struct.pack("!BBHHHBBHII", 0x45, priority << 5, wire_len - 14, queue, 0, 64, 17, 0, ip(src), ip(dst))
    udp = struct.pack("!HHHH", 0xC000, 4791, wire_len - 34, 0)
    bth = struct.pack("!BBHII", 4, 0, 0xFFFF, qp, mark)
    return ethernet + ipv4 + udp + bth


def mark_of(data: bytes) -> int:
    return int(struct.unpack("!I", data[50:54])[0])


class Host:
    """Sends given frames, each no earlier than its time, and keeps received ones. Obeys PFC on request."""

    def __init__(self, frames: Iterable[tuple[int, bytes]] = (), obeys_pfc_of: int | None = None) -> None:
        self.frames = sorted(frames, key=lambda pair: pair[0])
        self.next = 0
        self.got: list[tuple[int, bytes]] = []
        self.pauses: list[tuple[int, bytes]] = []
        self.rate_bps = obeys_pfc_of
        self.paused_until = [0] * 8
        self.now = 0

    def receive(self, now_ns: int, data: bytes) -> None:
        assert now_ns >= self.now
        self.now = now_ns
        if data[12:14] != b"\x88\x08":
            self.got.append((now_ns, data))
            return
        self.pauses.append((now_ns, data))
        if self.rate_bps:
            for i in range(8):
                if data[17] >> i & 1:
                    quanta = int.from_bytes(data[18 + 2 * i : 20 + 2 * i], "big")
                    self.paused_until[i] = now_ns + -(-quanta * 512 * GBPS // self.rate_bps)

    def ready_ns(self) -> int:
        if self.next == len(self.frames):
            return NEVER
        time, data = self.frames[self.next]
        return max(time, self.paused_until[data[15] >> 5] if len(data) > 15 else 0)

    def next_frame(self, now_ns: int) -> bytes | None:
        assert now_ns >= self.now
        self.now = now_ns
        if self.ready_ns() > now_ns:
            return None
        self.next += 1
        return self.frames[self.next - 1][1]

    def next_wakeup_ns(self) -> int:
        return self.ready_ns()


def balance(fabric: Any) -> dict[str, int]:
    """Return the ledger after a check of its balance."""
    terms: dict[str, int] = fabric.conservation()
    assert terms["balance"] == 0, terms
    assert terms["pfc_balance"] == 0, terms
    right = terms["delivered"] + terms["queued"] + terms["on_wire"] + sum(terms[f"drop_{reason}"] for reason in DROPS)
    assert terms["entered"] + terms["copied"] == right, terms
    return terms


def columns(table: dict[str, bytes]) -> dict[str, list[int]]:
    """Return the counts of a fabric."""
    return {name: np.frombuffer(data, np.int64).tolist() for name, data in table.items()}


class Star:
    """Hosts 0 .. n-1 at ports 0 .. n-1 of one switch, which is node n."""

    def __init__(
        self, hosts: list[Host], *, rate_bps: int = 100 * GBPS, delay_ns: int = 1000, framing_bytes: int = 0,
        grow: int = 0, stamp: bool = False, routes: dict[int, list[int]] | None = None,
        rates: dict[int, int] | None = None, independent_hosts: bool = False, **switch: Any,
    ) -> None:
        engine = load()
        self.hosts = hosts
        self.fabric = engine.Fabric(framing_bytes=framing_bytes, independent_hosts=independent_hosts)
        for host in hosts:
            self.fabric.add_host(host)
        pipeline = engine.Switch(routes or {i: [i] for i in range(len(hosts))}, grow=grow, stamp=stamp)
        self.switch = self.fabric.add_switch(pipeline, **switch)
        self.links = [
            self.fabric.connect(i, 0, self.switch, i, rate_bps=(rates or {}).get(i, rate_bps), delay_ns=delay_ns)
            for i in range(len(hosts))
        ]

    def run(self, until_ns: int | None = None) -> str:
        result: str = self.fabric.run(until_ns)
        balance(self.fabric)
        return result
