"""Cost of flows: workloads of many short messages, compared with a permutation.

The permutation has the same network and protocol. The model of a run's CPU time is a fixed cost per
data packet plus a fixed cost per flow. Runs of the same flows with two message sizes separate the
two costs. The sizes are far apart, so that the cost of a flow is nearly that of the small run, and
an error of the large run hardly matters.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass
from typing import Any

from harness.plan.scenario import Scenario, check

PROTOCOL = "hpcc"
Tables = dict[str, Any]
_FABRIC_400 = {"name": "fat-tree", "link_rate_bps": 400e9, "link_delay_ns": 500}
_FABRIC_100 = {"name": "fat-tree"}


@dataclass(frozen=True)
class Kind:
    """Workload on a fat-tree, run with two message sizes.

    `tables` returns the scenario's tables for a k and one of `sizes`. The first size gives fewer
    data packets.
    """

    k: int
    quick_k: int
    topology: Tables
    mtu_bytes: int
    sizes: tuple[int, int]
    tables: Callable[[int, int], Tables]

    def scenario(self, k: int, size: int) -> Scenario:
        """Return the scenario of one run."""
        return self._checked(k, self.tables(k, size))

    def permutation(self, k: int, flow_bytes: int) -> Scenario:
        """Return the scenario of the permutation on the same network."""
        return self._checked(k, {"workload": {"name": "permutation", "size_bytes": flow_bytes}})

    def _checked(self, k: int, tables: Tables) -> Scenario:
        common = {
            "cc": PROTOCOL,
            "topology": {**self.topology, "k": k},
            "nic": {"mtu_bytes": self.mtu_bytes},
            "record": {"queue_interval_ns": 0, "rate_interval_ns": 0},
            "limit_ns": 1_000_000_000,
        }
        return check({**common, **tables})


def _llm_step(k: int, tensor_bytes: int) -> Tables:
    """Return a training step on half of the hosts (all in a small network).

    Tensor groups have four members, and there are four stages.
    """
    hosts = k**3 // 4
    ranks = min(hosts, max(64, hosts // 2))
    workload = {
        "name": "training",
        "data": ranks // 16,
        "tensor": 4,
        "pipeline": 4,
        "micro_batches": 4,
        "tensor_bytes": tensor_bytes,
        "activation_bytes": tensor_bytes,
        "gradient_bytes": 15 * tensor_bytes,
    }
    return {"workload": workload}


def _moe_step(k: int, pair_bytes: int) -> Tables:
    """Return all-to-alls in groups of every eighth host of half of the hosts."""
    members = list(range(0, k**3 // 8, 8 if k > 4 else 2))
    workload = {
        "name": "exchange",
        "collective": "all-to-all",
        "members": [members],
        "size_bytes": pair_bytes * len(members),
    }
    return {"workload": workload}


def _all_to_all(_: int, pair_bytes: int) -> Tables:
    return {"workload": {"name": "alltoall", "size_bytes": pair_bytes}}


def _hadoop(_: int, mtu_bytes: int) -> Tables:
    """Return Hadoop's traffic, whose flow sizes are fixed, so that the number of packets is varied."""
    workload = {"name": "poisson", "distribution": "hadoop", "load": 0.5, "duration_ns": 1_000_000}
    return {"workload": workload, "nic": {"mtu_bytes": mtu_bytes}}


KINDS = {
    "llm-step": Kind(16, 4, _FABRIC_400, 4096, (16_384, 262_144), _llm_step),
    "moe": Kind(16, 4, _FABRIC_400, 4096, (65_536, 1_000_000), _moe_step),
    "all-to-all": Kind(8, 4, _FABRIC_100, 1000, (4000, 60_000), _all_to_all),
    "hadoop": Kind(8, 4, _FABRIC_100, 1000, (4096, 1000), _hadoop),
}


@dataclass(frozen=True)
class FlowRun:
    """Cost of one run."""

    flows: int
    data_packets: int
    run_cpu_s: float
    run_wall_s: float
    set_up_memory_bytes: int  # peak before the run
    peak_memory_bytes: int


@dataclass(frozen=True)
class FlowCost:
    """Cost of a workload, and its ratio to the cost of a permutation."""

    workload: str
    k: int
    flows: int
    data_packets: int
    us_per_data_packet: float
    us_per_flow: float  # CPU time of a flow without that of its packets
    us_per_flow_error: float | None  # estimated error, from the repeats; None if each size has one run
    bytes_per_flow: float  # memory of the small run without that of the network
    packet_ratio: float  # cost of a data packet divided by that in the permutation
    wall_ratio: float  # wall-clock time of two workers divided by that of one
    cpu_ratio: float


def flow_cost(
    workload: str,
    k: int,
    permutation: Sequence[FlowRun],
    small: Sequence[FlowRun],
    large: Sequence[FlowRun],
    two: Sequence[FlowRun],
) -> FlowCost:
    """Return the cost of a flow from runs of each kind; `two` are runs like `large` with two workers.

    The fastest run of each kind counts. The error is estimated from the difference to the second
    fastest run.
    """
    network, less, more, shared = map(fastest, (permutation, small, large, two))
    packet_s = (more.run_cpu_s - less.run_cpu_s) / (more.data_packets - less.data_packets)
    # The time of the flows is (1 + further) * less - further * more.
    further = less.data_packets / (more.data_packets - less.data_packets)
    error_s = None
    if len(small) > 1 and len(large) > 1:
        error_s = math.hypot((1 + further) * _to_second_s(small), further * _to_second_s(large))
    return FlowCost(
        workload,
        k,
        more.flows,
        more.data_packets,
        packet_s * 1e6,
        (less.run_cpu_s - packet_s * less.data_packets) / less.flows * 1e6,
        None if error_s is None else error_s / less.flows * 1e6,
        (less.peak_memory_bytes - less.set_up_memory_bytes) / less.flows,
        packet_s / (network.run_cpu_s / network.data_packets),
        shared.run_wall_s / more.run_wall_s,
        shared.run_cpu_s / more.run_cpu_s,
    )


def fastest(runs: Sequence[FlowRun]) -> FlowRun:
    """Return the minimum of each figure."""
    return FlowRun(*(min(values) for values in zip(*map(astuple, runs), strict=True)))


def _to_second_s(runs: Sequence[FlowRun]) -> float:
    """Return the difference of CPU time between the fastest and the second fastest run."""
    first_s, second_s, *_ = sorted(run.run_cpu_s for run in runs)
    return second_s - first_s
