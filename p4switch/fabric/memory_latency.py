"""Benchmark of the fabric itself: a permutation on k-ary fat-trees with trivial pipelines and hosts, in C.

    python -m p4switch.fabric.memory_latency [K ...]

K is the arity of a tree.
"""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from p4switch import native, traffic

HERE = Path(__file__).parent
WINDOW_PACKETS = 30
MODEL_US = 200
_TIMEOUT_S = 300


@dataclass(frozen=True)
class Cost:
    """Cost of one run.

    A hop is one packet that passes one switch. The cost includes hosts and the trivial pipelines.
    """

    k: int
    independent_hosts: bool
    hosts: int
    hops: int
    events: int
    cpu_s: float
    max_rss_bytes: int

    @property
    def ns_per_hop(self) -> float:
        return self.cpu_s * 1e9 / self.hops


def build(*flags: str) -> Path:
    """Build the benchmark and return its path.

    Raises native.BuildError.
    """
    fabric, engine = HERE / "c", HERE.parent / "engine" / "c"
    # These files need Python.
    sources = [path for path in sorted(fabric.glob("*.c")) if not path.name.startswith("fabric_")]
    return native.build(
        "benchmark of the fabric",
        [HERE / "bench_c" / "fat_tree.c", *sources, *traffic.SOURCES],
        headers=[
            *(path for path in fabric.glob("*.h") if path.name != "fabric.h"),
            *(path for path in traffic.HEADERS if not path.name.startswith("py_")),
            engine / "allocate.h",
            engine / "switch.h",
        ],
        flags=flags,
        suffix="",
    )


def measure(k: int, independent_hosts: bool = True, model_us: int = MODEL_US) -> Cost:
    """Measure a run in a separate process.

    Raises native.BuildError, CalledProcessError, TimeoutExpired.
    """
    command = [str(build()), str(k), str(model_us), str(WINDOW_PACKETS), str(int(independent_hosts))]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=_TIMEOUT_S)
    result = json.loads(done.stdout)
    assert result["lost"] == 0, result
    return Cost(k, independent_hosts, *(result[name] for name in ("hosts", "hops", "events", "cpu_s", "max_rss_bytes")))


def memory_latency_ns(mebibytes: int) -> float:
    """Return the time of a load from a block of memory that depends on the previous load, as the minimum of three runs.

    Raises native.BuildError, CalledProcessError, TimeoutExpired.
    """
    program = native.build("measurement of memory latency", [HERE / "bench_c" / "latency.c"], suffix="")
    command = [str(program), str(mebibytes)]
    done = [
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=_TIMEOUT_S) for _ in range(3)
    ]
    return min(float(d.stdout) for d in done)


def main() -> None:
    for k in [int(word) for word in sys.argv[1:]] or [4, 8, 16]:
        for independent in (False, True):
            cost = measure(k, independent)
            hosts = f"{cost.hosts} hosts{' (independent)' if independent else ''}"
            per_event = cost.cpu_s * 1e9 / cost.events
            memory = cost.max_rss_bytes / 2**20
            print(f"k = {k:2}, {hosts:26} {cost.ns_per_hop:4.0f} ns/hop {per_event:4.0f} ns/event {memory:4.0f} MiB")


if __name__ == "__main__":
    main()
