"""Mutated traffic files of other simulators: they give valid flows, or an error with file and line, in time."""

from __future__ import annotations

import gzip
import random
import re
import time
import warnings
from collections.abc import Sequence
from pathlib import Path

import topologies
from harness import workloads
from harness.workloads.base import MAX_SIZE_BYTES, MAX_TIME_NS
from harness.workloads.chakra import message_class
from p4switch.errors import UserError
from tools.attack.attack import Attack, Finding

_FILES = 50  # an attempt
_CPU_S = 20.0  # limit for one file, since all of them are small
_MOST_TOLD = 1000  # characters
_NS3 = b"3\n0 1 3 100 20000 0.0\n1 2 3 100 500 2.0000015\n4 3 3 100 7 1e-6\n"
_HTSIM = b"""Nodes 5
Connections 4
Triggers 2
Failures 1
0->1 id 1 start 0 size 5000 send_done_trigger 1 prio 3
1->2 id 2 start 7000 size 900 recv_done_trigger 2 msg 4
2->3 id 3 trigger 1 size 1
3->4 id 4 trigger 2 size 77 msg
trigger id 1 barrier count 1
trigger id 2 multishot
failure switch_type AGG switch_id 0 link_id 1
# the end
"""
_GOAL = b"""num_ranks 3
rank 0 {
l1: calc 1500 cpu 1
l2: send 4096b to 1 tag 7
l2 requires l1 /* what it waits for */
}
rank 1 {
l1: recv 4096b from 0 tag 7 cpu 1
l2: send 10b to 2 nic 3
l2 irequires l1
}
rank 2 {
l1: recv 10b from -1 tag -1 // from anybody
}
"""
_SIZES = b"0 0\n1000 20\n20000 90.5\n1e6 100\n"
_WORDS = (
    b"1e999999", b"9" * 5000, b"inf", b"nan", b"-1", b"-5000000", b"\xc2\xb2", b"0", b"18446744073709551616", b"1e30",
    b"0->0", b"->", b"}", b"{", b"/*", b"*/", b"//", b"#", b"barrier", b"count", b"trigger", b"requires", b"from -1",
    b"\0", b"\xff\xfe", b"\x1b[2J", b"tag", b"l1", b"num_ranks", b"rank", b"1.5", b".", b"e", b"failure", b"\r",
    b"\x0c",
)  # fmt: skip
_TOKEN = re.compile(rb"\s+|\d+|\w+|.", re.DOTALL)


def _varint(number: int) -> bytes:
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def _trace(rank: int) -> bytes:
    """Return the trace of two ranks that send to each other, compute, and reduce."""
    out = b""
    messages = [message_class("Metadata")(version="0.0.4")]
    for number, (kind, attributes) in enumerate(
        (
            (4, {}),
            (5, {"comm_dst": 1 - rank, "comm_size": 900, "comm_tag": 1}),
            (6, {"comm_src": 1 - rank, "comm_size": 900, "comm_tag": 1}),
            (7, {"comm_type": 0, "comm_size": 5000}),
        )
    ):
        node = message_class("Node")(id=number, name="x", type=kind, duration_micros=2)
        if number:
            node.data_deps.append(number - 1)
        for name, value in attributes.items():
            one = node.attr.add()
            one.name, one.int64_val = name, value
        messages.append(node)
    for message in messages:
        data = message.SerializeToString()
        out += _varint(len(data)) + data
    return out


def _words(data: bytes, rng: random.Random) -> bytes:
    tokens = _TOKEN.findall(data)
    for _ in range(rng.randint(1, 4)):
        i, j = rng.randrange(len(tokens)), rng.randrange(len(tokens))
        what = rng.randrange(6)
        if what == 0:
            tokens[i] = rng.choice(_WORDS)
        elif what == 1:
            tokens[i:i] = [b" ", rng.choice(_WORDS), b" "]
        elif what == 2:
            tokens[i] = tokens[j]
        elif what == 3:
            del tokens[i : i + rng.randint(1, 8)]
        elif what == 4:
            tokens[j:j] = tokens[i : i + rng.randint(1, 20)]
        else:
            tokens[i] *= rng.choice((2, 50, 5000))
        tokens = tokens or [b" "]
    return b"".join(tokens)


def _bytes(data: bytes, rng: random.Random) -> bytes:
    out = bytearray(data)
    for _ in range(rng.choice((1, 2, 8))):
        out[rng.randrange(len(out))] = rng.randrange(256)
    return bytes(out[: rng.choice((len(out), len(out), rng.randrange(len(out))))])


def _packed(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data) + 1)
    members = [gzip.compress(data[:at]), *([gzip.compress(b"")] * rng.choice((0, 1, 5000))), gzip.compress(data[at:])]
    packed = b"".join(members)
    return packed if rng.random() < 0.5 else _bytes(packed, rng)


class WorkloadFiles(Attack):
    units = "files"
    short_turns = 700

    def __init__(self, folder: Path, corpus: Sequence[Path] = ()) -> None:
        super().__init__(folder, corpus)
        self._networks = [
            topologies.build("single-switch", {"hosts": 5}), topologies.build("fat-tree", {"k": 4}),
        ]  # fmt: skip
        self._traces = [_trace(rank) for rank in range(2)]
        warnings.simplefilter("ignore")

    def attempt(self, rng: random.Random) -> int:
        for _ in range(_FILES):
            kind = rng.choice(("ns3", "htsim", "goal", "chakra", "poisson"))
            data = self._made(kind, rng)
            if problem := self._problem(kind, rng):
                raise Finding(f"{kind}: {problem}", {f"{kind}.txt": data})
        return _FILES

    def _made(self, kind: str, rng: random.Random) -> bytes:
        """Write a mutated file, and return it."""
        if kind == "chakra":
            for rank, trace in enumerate(self._traces):
                (self.folder / f"x.{rank}.et").write_bytes(trace)
            data = _bytes(self._traces[1], rng) if rng.random() < 0.7 else self._traces[1]
            data = _packed(data, rng) if rng.random() < 0.3 else data
            (self.folder / "x.1.et").write_bytes(data)
            return data
        data = {"ns3": _NS3, "htsim": _HTSIM, "goal": _GOAL, "poisson": _SIZES}[kind]
        data = _words(data, rng) if rng.random() < 0.9 else _bytes(data, rng)
        (self.folder / "x.txt").write_bytes(data)
        return data

    def _problem(self, kind: str, rng: random.Random) -> str | None:
        values: dict[str, object] = {"file": "x.{rank}.et" if kind == "chakra" else "x.txt"}
        if kind == "poisson":
            values = {"distribution": "x.txt", "load": 0.1, "duration_ns": 10_000}
        network = rng.choice(self._networks)
        before_s = time.process_time()
        try:
            traffic = workloads.build(kind, values, network, 1, self.folder)
        except UserError as error:
            message = str(error)
            if len(message) > _MOST_TOLD + 2 * len(str(self.folder)) or "\n" in message:
                return f"not one short line: {message!r:.300}"
            return self._slow(before_s)
        for flow in traffic.flows:
            sound = 0 <= flow.start_ns < MAX_TIME_NS and 1 <= flow.size_bytes < MAX_SIZE_BYTES
            hosts = range(len(network.hosts))
            if not sound or flow.source == flow.destination or {flow.source, flow.destination} - set(hosts):
                return f"a flow that is none: {flow}"
        return self._slow(before_s)

    @staticmethod
    def _slow(before_s: float) -> str | None:
        taken_s = time.process_time() - before_s
        return f"{taken_s:.1f} s of CPU for a small file" if taken_s > _CPU_S else None
