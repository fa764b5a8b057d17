"""What an end-to-end run costs: CPU time per delivered data packet and per packet-hop, and peak memory.

The workload is a permutation of 2 MB flows at 100 Gb/s on a k-ary fat-tree, ACKs and all switch hops included. Each run
has a process of its own, so that memory is its own; time is CPU time of the run, without set-up, which is told apart.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

SIZES = (4, 8, 16)
PROTOCOLS = ("dcqcn", "hpcc")
FLOW_BYTES = 2_000_000
_TIME_LIMIT_S = 900


@dataclass(frozen=True)
class EndToEnd:
    """One run. A packet-hop is one transmission of a frame, data or control, over one link."""

    protocol: str
    k: int
    hosts: int
    data_packets: int
    packet_hops: int
    set_up_cpu_s: float
    run_cpu_s: float
    peak_memory_bytes: int

    @property
    def us_per_data_packet(self) -> float:
        return self.run_cpu_s * 1e6 / self.data_packets

    @property
    def ns_per_packet_hop(self) -> float:
        return self.run_cpu_s * 1e9 / self.packet_hops


def measure(protocol: str, k: int, flow_bytes: int = FLOW_BYTES) -> EndToEnd:
    """Runs in a process of its own. Raises CalledProcessError if it fails."""
    command = [sys.executable, "-m", "harness.bench", protocol, str(k), str(flow_bytes)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=_TIME_LIMIT_S)
    return EndToEnd(**json.loads(done.stdout))


def run(protocol: str, k: int, flow_bytes: int) -> EndToEnd:
    """Runs in this process."""
    from harness.hosts import use_native_hosts

    use_native_hosts()

    from harness.experiment import plan
    from harness.scenario import check
    from harness.summary import performance
    from harness.worlds.virtual import VirtualWorld

    scenario = check(
        {
            "cc": protocol,
            "topology": {"name": "fat-tree", "k": k},
            "workload": {"name": "permutation", "size_bytes": flow_bytes},
            "record": {"queue_interval_ns": 0, "rate_interval_ns": 0},
        }
    )
    world = VirtualWorld(plan("bench", scenario, Path())[0])
    recording = world.run()
    assert recording.ended == "done", recording.ended
    assert recording.conservation["balance"] == 0
    cost = performance(recording)
    return EndToEnd(
        protocol,
        k,
        len(world.nics),
        cost["data_packets"],
        int(recording.port_stats["tx_packets"].sum()),
        cost["set_up_cpu_s"],
        cost["run_cpu_s"],
        cost["peak_memory_bytes"],
    )


if __name__ == "__main__":
    print(json.dumps(asdict(run(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))))
