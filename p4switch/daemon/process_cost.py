"""Benchmark of one switch process against an upper limit, a C program that only forwards frames.

    python -m p4switch.daemon.process_cost [PROGRAM.p4]

Frames arrive on one veth pair and leave by another. The program is `ecn.p4`, or another one with the same table
`ipv4_lpm`. There are several runs at each rate, of which the best counts. The benchmark uses its own network namespace
and needs root. The machine should be idle, because generator and forwarder share its cores. The cost is the CPU time
of the forwarder, including the work of the kernel on its behalf.
"""
from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from p4switch import daemon, engine, native, processes, traffic
from p4switch.compiler import compile_program
from p4switch.errors import UserError
from p4switch.sources import SOURCE_DIRECTORY

_HERE = Path(__file__).parent
_MODULE = "p4switch.daemon.process_cost"
_DESTINATION = "10.0.0.2"
_SECONDS = 1.0
_TRIES = 3  # runs at each rate; the fastest counts, because other work on the machine only slows them down
_MARGIN_S = 0.7  # time for which the forwarder runs after the end of the generator
_TIME_LIMIT_S = 120


@dataclass(frozen=True)
class Forwarding:
    """Throughput of a forwarder in one run.

    The offered rate and the rate counted after the switch are in packets per second.
    """

    what: str
    frame_bytes: int
    offered_pps: float
    forwarded_pps: float
    cpu_us_per_packet: float


def measure(program: Path, frame_bytes: int = 1000) -> list[Forwarding]:
    """Measure the upper limit, the switch, and the switch at 1.2 times the limit.

    Raises UserError without root or tools.
    """
    if os.geteuid():
        raise UserError("raw sockets and network namespaces need root")
    command = ["unshare", "--net", *processes.python("-m", _MODULE, "--inside", str(program), str(frame_bytes))]
    try:
        done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=_TIME_LIMIT_S)
    except FileNotFoundError as error:
        raise UserError(f"{error.filename}: not found; expected util-linux") from error
    except subprocess.CalledProcessError as error:
        raise UserError(f"benchmark of the switch process failed: {error.stderr.strip().splitlines()[-1]}") from error
    return [Forwarding(**row) for row in json.loads(done.stdout.splitlines()[-1])]


def _tool() -> str:
    """Return the path of the program that contains the generator and the plain forwarder."""
    c = _HERE / "c"
    headers = [c / "live.h", *traffic.HEADERS, engine.C_FOLDER / "switch.h", engine.C_FOLDER / "python.h"]
    return str(native.build("veth", [_HERE / "bench_c" / "veth.c", c / "live_io.c"], headers=headers,
                            flags=["-D_GNU_SOURCE", "-pthread"], suffix=""))


def _inside(program: Path, frame_bytes: int) -> list[Forwarding]:
    for near, far in (("in0", "in1"), ("out0", "out1")):
        _run("ip", "link", "add", near, "type", "veth", "peer", "name", far)
        for end in (near, far):
            _run("ip", "link", "set", end, "up")
    tool = _tool()
    pipeline = _pipeline(program)

    def both(rate_pps: float, suffix: str) -> list[Forwarding]:
        """Measure forwarder and switch in turns, so that the machine's other load affects both."""
        plain, switch = [], []
        for _ in range(_TRIES):
            plain.append(_flood(tool, f"plain AF_PACKET forwarder{suffix}", _plain(tool), rate_pps, frame_bytes))
            switch.append(_flood(tool, f"{program.stem}{suffix}", _switch(pipeline), rate_pps, frame_bytes))
        return [max(tries, key=lambda row: row.forwarded_pps) for tries in (plain, switch)]

    rows = both(0, "")
    for share in (0.5, 1.2):
        rows += both(share * rows[0].forwarded_pps, f", {share:g} x limit")
    return rows


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, timeout=10)


def _pipeline(program: Path) -> Any:
    """Return a Switch with a route to port 2."""
    compiled = compile_program(program)
    switch = daemon.load().Switch(str(engine.build(compiled.program)))
    tables = [t.name for p in compiled.program.pipelines for t in p.tables if t.name.endswith(".ipv4_lpm")]
    if not tables:
        raise UserError(f"{program}: no table ipv4_lpm; expected a program with include/forwarding.p4")
    forward = tables[0].removesuffix("ipv4_lpm") + "forward"
    address = bytes(map(int, _DESTINATION.split(".")))
    switch.table_add(tables[0], [(address, 32)], 0, ("action", forward, [b"\x00\x02"]))
    return switch


def _flood(tool: str, what: str, forwarder: Any, rate_pps: float, frame_bytes: int) -> Forwarding:
    with forwarder as cpu:
        before = _received()
        command = [tool, "generate", "in0", str(_SECONDS), str(rate_pps), str(frame_bytes), _DESTINATION]
        done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=_TIME_LIMIT_S)
        forwarded = _received() - before
    sent = json.loads(done.stdout)
    return Forwarding(what, frame_bytes, sent["sent"] / sent["seconds"], forwarded / sent["seconds"],
                      cpu["seconds"] * 1e6 / max(forwarded, 1))


def _received() -> int:
    """Return the number of packets that arrived at the other end."""
    for line in Path("/proc/self/net/dev").read_text().splitlines():
        name, _, counters = line.partition(":")
        if name.strip() == "out0":
            return int(counters.split()[1])
    raise AssertionError("out0 is gone")


@contextmanager
def _plain(tool: str) -> Iterator[dict[str, float]]:
    cpu: dict[str, float] = {}
    command = [tool, "forward", "in1", "out1", str(_SECONDS + _MARGIN_S)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield cpu
        cpu["seconds"] = json.loads(process.stdout.readline())["cpu_seconds"]


@contextmanager
def _switch(pipeline: Any) -> Iterator[dict[str, float]]:
    cpu: dict[str, float] = {}
    live = daemon.load().Live()
    live.add_port(1, "in1")
    live.add_port(2, "out1")
    live.set_switch(pipeline)
    live.start()
    begin = time.process_time()
    yield cpu
    cpu["seconds"] = time.process_time() - begin
    live.stop()
    live.set_switch(None)


def main() -> None:
    arguments = sys.argv[1:]
    if arguments[:1] == ["--inside"]:
        print(json.dumps([asdict(row) for row in _inside(Path(arguments[1]), int(arguments[2]))]))
        return
    program = Path(arguments[0]) if arguments else SOURCE_DIRECTORY / "ecn.p4"
    for frame_bytes in (100, 1000):
        for row in measure(program, frame_bytes):
            print(f"{row.frame_bytes:5d} B  {row.what:45s} offered {row.offered_pps:9.0f}/s  "
                  f"forwarded {row.forwarded_pps:9.0f}/s  {row.cpu_us_per_packet:6.2f} us CPU a packet")


if __name__ == "__main__":
    main()
