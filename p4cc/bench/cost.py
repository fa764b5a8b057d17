"""Benchmarks of P4 pipelines, hosts and whole runs, all in CPU time of one core.

A whole run is a permutation of 2 MB flows at 100 Gb/s on a k-ary fat-tree, including ACKs and all
switch hops. Each run has a process of its own, so that its peak memory can be measured. Its time
does not include the set-up, which is reported separately. The fastest of several runs counts,
because other work on the machine can only add time.

The compiled hosts have to be in place before this module is imported.
"""

from __future__ import annotations

import json
import platform
import subprocess
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import psutil

from control_plane import programs
from harness.measure.summary import performance
from harness.plan.resolve import plan
from harness.plan.run import Run
from harness.plan.scenario import check, load
from harness.worlds.expected import expected
from harness.worlds.local import most_resident_bytes
from harness.worlds.partition import partition, shares
from harness.worlds.speed_up import Terms, Work, cpu_s, wall_s
from harness.worlds.virtual import VirtualWorld
from host_agents import registry
from host_agents.host_cost import host_cost
from p4cc.bench.training_cost import KINDS, FlowRun, fastest, flow_cost
from p4cc.bench.window_cost import MeetingCost, Shared, WindowCosts, meeting_cost, terms_of, window_costs
from p4switch import processes
from p4switch.compiler import compile_program
from p4switch.daemon import process_cost
from p4switch.engine import pipeline_cost
from p4switch.errors import UserError
from p4switch.fabric.memory_latency import memory_latency_ns

# Protocols of the end-to-end runs, and the largest k of each. Each protocol is compared with HPCC
# at the same k, unless BESIDE names another one.
PROTOCOLS = {"dcqcn": 16, "hpcc": 16, "sperc": 8, "sperc+1rc+weights": 8, "dart": 8}
COMBINED = ("sperc+1rc", "sperc+1rc+weights")  # protocols with mechanisms that the benchmark of hosts measures, too
COMPARED = "hpcc"
SHARED = ("dcqcn", "hpcc", "smartt")  # protocols whose runs are also made with two workers
SCALE_FLOW_BYTES = 200_000  # size of a flow in the largest networks
SEVERAL = (2, 4, 8)  # numbers of workers whose windows are measured
LONGER = 10  # ratio of two flow sizes, which separate fixed costs from costs per frame
MANY = (2, 8, 64, 512)  # numbers of workers for which the model makes predictions
BESIDE = {"dart": "dcqcn"}  # protocol with which each one is compared, if it is not COMPARED
Say = Callable[[str], object]


@dataclass(frozen=True)
class Extent:
    """Extent of a benchmark.

    `sizes` has the values of k for the fat-trees, and `matrix_k` is k for the matrix.
    `transactions` is the number of transactions of each host in an all-reduce.
    """

    sizes: tuple[int, ...]
    matrix_k: int
    flow_bytes: int
    repeats: int
    transactions: int
    time_limit_s: int  # wall-clock limit of one run
    large: tuple[int, ...] = (32, 64)  # k of the fat-trees that two workers run once
    small_networks: bool = False  # whether the smaller of two networks is used where there is a choice


WHOLE = Extent(sizes=(4, 8, 16), matrix_k=8, flow_bytes=2_000_000, repeats=3, transactions=128, time_limit_s=900)
QUICK = Extent(
    sizes=(4, 8), matrix_k=4, flow_bytes=200_000, repeats=1, transactions=8, time_limit_s=120, large=(8,),
    small_networks=True,
)  # fmt: skip
_ONE_RUN = """
import json, sys
from dataclasses import asdict
from harness.worlds.native_hosts import use_native_hosts
use_native_hosts()
from p4cc.bench import cost
print(json.dumps(asdict(getattr(cost, sys.argv[1])(*map(json.loads, sys.argv[2:])))))
"""
_ALL_REDUCES = ("3cpo-fig10", "3cpo-fig13")  # scenarios with 64 and with 128 hosts


@dataclass(frozen=True)
class EndToEnd:
    """Cost of one run.

    A packet-hop is one transmission of a frame, data or control, over one link.
    """

    protocol: str
    load_balancer: str
    k: int
    hosts: int
    data_packets: int
    packet_hops: int
    set_up_cpu_s: float
    run_cpu_s: float
    peak_memory_bytes: int
    run_wall_s: float = 0.0
    workers: int = 1

    @property
    def us_per_data_packet(self) -> float:
        return self.run_cpu_s * 1e6 / self.data_packets

    @property
    def ns_per_packet_hop(self) -> float:
        return self.run_cpu_s * 1e9 / self.packet_hops


@dataclass(frozen=True)
class AllReduce:
    """Cost of one all-reduce in the network with 3CPO.

    Hosts receive the requests of all members, and the answers to their own.
    """

    hosts: int
    transactions: int  # transactions per host
    frames_received: int
    set_up_cpu_s: float
    run_cpu_s: float
    peak_memory_bytes: int

    @property
    def us_per_frame(self) -> float:
        return self.run_cpu_s * 1e6 / self.frames_received


def measure(protocol: str, k: int, extent: Extent, load_balancer: str = "ecmp") -> EndToEnd:
    """Return the fastest of several runs, each in a process of its own.

    Raises CalledProcessError if a run fails, and TimeoutExpired if it exceeds the time limit.
    """
    costs = [EndToEnd(**figures) for figures in _runs(extent, "run", protocol, load_balancer, k, extent.flow_bytes)]
    return min(costs, key=lambda cost: cost.run_cpu_s)


def _runs(extent: Extent, function: str, *arguments: str | int | bool) -> list[dict[str, Any]]:
    """Return the results of a function of this module, called in processes of its own.

    Raises as `measure` does.
    """
    command = processes.python("-c", _ONE_RUN, function, *map(json.dumps, arguments))
    results = []
    for _ in range(extent.repeats):
        done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=extent.time_limit_s)
        results.append(json.loads(done.stdout))
    return results


def planned(protocol: str, load_balancer: str, k: int, flow_bytes: int) -> Run:
    scenario = check(
        {
            "cc": protocol,
            "lb": load_balancer,
            "topology": {"name": "fat-tree", "k": k},
            "workload": {"name": "permutation", "size_bytes": flow_bytes},
            "record": {"queue_interval_ns": 0, "rate_interval_ns": 0},
        }
    )
    return plan("bench", scenario, Path())[0]


def run(protocol: str, load_balancer: str, k: int, flow_bytes: int, workers: int = 1) -> EndToEnd:
    """Run in this process, and in further processes if there are several workers."""
    world = VirtualWorld(planned(protocol, load_balancer, k, flow_bytes), workers=workers)
    started_s = time.perf_counter()
    recording = world.run()
    run_wall_s = time.perf_counter() - started_s
    assert recording.ended == "done", recording.ended
    assert recording.conservation["balance"] == 0
    cost = performance(recording)
    return EndToEnd(
        protocol,
        load_balancer,
        k,
        len(world.network.nics),
        cost["data_packets"],
        int(recording.port_stats["tx_packets"].sum()),
        cost["set_up_cpu_s"],
        cost["run_cpu_s"],
        cost["peak_memory_bytes"],
        run_wall_s,
        workers,
    )


def flow_run(workload: str, k: int, size: int, workers: int, permutation: bool) -> FlowRun:
    """Run a workload of `training_cost`, or its permutation, in this process and its workers."""
    kind = KINDS[workload]
    scenario = kind.permutation(k, size) if permutation else kind.scenario(k, size)
    world = VirtualWorld(plan("bench", scenario, Path())[0], workers=workers)
    set_up_memory_bytes = most_resident_bytes()
    started_s = time.perf_counter()
    recording = world.run()
    run_wall_s = time.perf_counter() - started_s
    assert recording.ended == "done", recording.ended
    cost = performance(recording)
    return FlowRun(
        len(recording.flows),
        cost["data_packets"],
        cost["run_cpu_s"],
        run_wall_s,
        set_up_memory_bytes,
        cost["peak_memory_bytes"],
    )


def windows_of(k: int, flow_bytes: int, workers: int) -> WindowCosts:
    """Return the cost of the windows of a run; the measurement makes the workers' meetings slower."""
    return window_costs(planned(COMPARED, "ecmp", k, flow_bytes), workers)


def meeting(workers: int) -> MeetingCost:
    """Return the cost of a meeting of this process with others."""
    return meeting_cost(workers)


def all_reduce(scenario: str, transactions: int) -> AllReduce:
    """Run the all-reduce of a scenario in this process."""
    application = f"workload.applications=[{{operations={transactions}}}]"
    loaded, folder = load(scenario, ["variants=[]", "cc=3cpo", application])
    world = VirtualWorld(plan(scenario, loaded, folder)[0])
    recording = world.run()
    assert recording.ended == "done", recording.ended
    assert recording.conservation["balance"] == 0
    cost = performance(recording)
    return AllReduce(
        len(world.network.nics),
        transactions,
        recording.conservation["delivered"],
        cost["set_up_cpu_s"],
        cost["run_cpu_s"],
        cost["peak_memory_bytes"],
    )


def measure_all(parts: Sequence[str], quick: bool, say: Say, matrix_k: int | None = None) -> dict[str, Any]:
    """Measure the parts, print each line as soon as it is known, and return the figures by part.

    `matrix_k` replaces the usual k of the matrix's fat-tree.
    """
    extent = QUICK if quick else WHOLE
    extent = replace(extent, matrix_k=matrix_k or extent.matrix_k)
    figures: dict[str, Any] = {"machine": machine()}
    say(f"on {figures['machine']['cpu']}, {figures['machine']['load']:.1f} processes running on average")
    for name in parts:
        figures[name.replace("-", "_")] = PARTS[name](extent, say)
    return figures


def _figures(cost: EndToEnd) -> dict[str, Any]:
    return {
        **asdict(cost),
        "us_per_data_packet": cost.us_per_data_packet,
        "ns_per_packet_hop": cost.ns_per_packet_hop,
    }


def end_to_end(extent: Extent, say: Say) -> list[dict[str, Any]]:
    """Measure how the cost of a packet-hop grows with the network."""
    rows = []
    measured: dict[tuple[str, int], float] = {}
    for protocol, largest in PROTOCOLS.items():
        first: EndToEnd | None = None
        for k in (k for k in extent.sizes if k <= largest):
            cost = measure(protocol, k, extent)
            first = first or cost
            measured[protocol, k] = cost.us_per_data_packet
            other = BESIDE.get(protocol, COMPARED)
            say(
                f"permutation, {protocol}, k = {k}: {cost.us_per_data_packet:.2f} us a data packet"
                f"{_beside(cost.us_per_data_packet, measured.get((other, k)), other)}, "
                f"{cost.ns_per_packet_hop:.0f} ns a packet-hop ({cost.ns_per_packet_hop / first.ns_per_packet_hop:.2f} "
                f"of k = {first.k}), {cost.peak_memory_bytes / 2**20:.0f} MiB"
            )
            rows.append(_figures(cost))
    return rows


def workers(extent: Extent, say: Say) -> list[dict[str, Any]]:
    """Compare two workers with one on the largest network: wall-clock time, CPU time and memory.

    Runs with one and with two workers alternate.
    """
    rows = []
    k, once = extent.sizes[-1], replace(extent, repeats=1)
    for protocol in SHARED:
        runs: dict[int, list[EndToEnd]] = {1: [], 2: []}
        for _ in range(extent.repeats):
            for count, costs in runs.items():
                (figures,) = _runs(once, "run", protocol, "ecmp", k, extent.flow_bytes, count)
                costs.append(EndToEnd(**figures))
        one, two = (min(costs, key=lambda cost: cost.run_wall_s) for costs in runs.values())
        ratios = {
            "wall_ratio": two.run_wall_s / one.run_wall_s,
            "cpu_ratio": two.run_cpu_s / one.run_cpu_s,
            "memory_ratio": two.peak_memory_bytes / one.peak_memory_bytes,
        }
        say(
            f"two workers, {protocol}, k = {k}: {ratios['wall_ratio']:.2f} of one's wall-clock time "
            f"({two.run_wall_s:.1f} of {one.run_wall_s:.1f} s), {ratios['cpu_ratio']:.2f} of its CPU time, "
            f"{ratios['memory_ratio']:.2f} of its memory"
        )
        rows.append({"protocol": protocol, "k": k, "one": asdict(one), "two": asdict(two), **ratios})
    return rows


def scale(extent: Extent, say: Say) -> list[dict[str, Any]]:
    """Measure set-up and run of the largest networks, once each, with two workers."""
    rows = []
    for k in extent.large:
        (figures,) = _runs(replace(extent, repeats=1), "run", "dcqcn", "ecmp", k, SCALE_FLOW_BYTES, 2)
        cost = EndToEnd(**figures)
        say(
            f"k = {k}, {cost.hosts:,} hosts, two workers: set up in {cost.set_up_cpu_s:.1f} s of CPU, run in "
            f"{cost.run_wall_s:.1f} s ({cost.us_per_data_packet:.2f} us of CPU a data packet), "
            f"{cost.peak_memory_bytes / 2**30:.1f} GiB"
        )
        rows.append(_figures(cost))
    return rows


def windows(extent: Extent, say: Say) -> dict[str, Any]:
    """Measure windows and meetings of several workers, and compare a run's cost with the model."""
    k, flow_bytes, once = extent.sizes[-1], min(SCALE_FLOW_BYTES, extent.flow_bytes), replace(extent, repeats=1)
    shortest = planned(COMPARED, "ecmp", k, flow_bytes)
    topology, network_bytes = shortest.topology, expected(shortest).network_bytes

    def made(workers: int, flow_bytes: int) -> EndToEnd:
        costs = [EndToEnd(**row) for row in _runs(extent, "run", COMPARED, "ecmp", k, flow_bytes, workers)]
        return min(costs, key=lambda cost: cost.run_wall_s)

    def watched(workers: int, flow_bytes: int) -> WindowCosts:
        (row,) = _runs(once, "windows_of", k, flow_bytes, workers)
        return WindowCosts(**row)

    def shared(one: EndToEnd, two: EndToEnd, costs: WindowCosts) -> Shared:
        return Shared(Work(one.run_cpu_s, one.packet_hops, costs.windows, network_bytes), costs, two.run_cpu_s)

    one, several = made(1, flow_bytes), [made(n, flow_bytes) for n in SEVERAL]
    timed = [watched(n, flow_bytes) for n in SEVERAL]
    meetings = [MeetingCost(**row) for n in SEVERAL for row in _runs(once, "meeting", n)]
    short = shared(one, several[0], timed[0])
    long_bytes = LONGER * flow_bytes
    long = shared(made(1, long_bytes), made(2, long_bytes), watched(2, long_bytes))
    work, terms = short.work, terms_of(short, long, meetings)
    say(
        f"windows, {COMPARED}, k = {k}: {work.windows} of {work.cpu_s / work.windows * 1e3:.1f} ms; "
        f"{terms.crossing_s * 1e9:.0f} ns a frame that crosses, {terms.copying_s * 1e9:.2f} ns once for each of "
        f"{network_bytes / 1e6:.0f} MB, {terms.meeting_s * 1e6:.1f} us a meeting of two and "
        f"{terms.meeting_each_s * 1e6:.2f} us for each further one, imbalance {terms.imbalance:.2f}"
    )
    rows = []
    for costs, alone, cost in zip(timed, meetings, several, strict=True):
        of = shares(topology, partition(topology, costs.workers), costs.workers)
        foreseen = {
            "wall_s": wall_s(work, of, terms, processes.processors()),
            "cpu_s": cpu_s(work, of, terms),
            "crossing_frames": of.crossing * work.packet_hops,
            "largest_share": max(of.work),
        }
        say(
            f"{costs.workers} workers, foreseen and measured: {foreseen['wall_s']:.2f} and {cost.run_wall_s:.2f} s of "
            f"wall-clock time, {foreseen['cpu_s']:.2f} and {cost.run_cpu_s:.2f} s of CPU, "
            f"{foreseen['crossing_frames']:,.0f} and {costs.crossing_frames:,} frames that cross, largest share "
            f"{foreseen['largest_share']:.3f} and {costs.largest_share:.3f}; imbalance {costs.imbalance:.2f}, "
            f"a meeting {alone.wall_s * 1e6:.1f} us"
        )
        rows.append({**asdict(costs), "meeting": asdict(alone), "measured": asdict(cost), "foreseen": foreseen})
    return {"one": asdict(one), "terms": asdict(terms), "workers": rows, "larger": _speed_ups(extent, terms, say)}


def _speed_ups(extent: Extent, terms: Terms, say: Say) -> list[dict[str, Any]]:
    """Return the speed-ups that the model predicts for more workers with a processor each."""
    rows = []
    for k in dict.fromkeys((extent.sizes[-1], extent.large[-1])):
        larger = planned(COMPARED, "ecmp", k, SCALE_FLOW_BYTES)
        foreseen = expected(larger)
        work = Work(foreseen.run_s, foreseen.packet_hops, foreseen.windows, foreseen.network_bytes)
        for count in MANY:
            of = shares(larger.topology, partition(larger.topology, count), count)
            gain = work.cpu_s / wall_s(work, of, terms)
            say(f"k = {k}, {count} workers: {gain:.1f} times as fast, by the model")
            rows.append({"k": k, "workers": count, "speed_up": gain})
    return rows


def training(extent: Extent, say: Say) -> list[dict[str, Any]]:
    """Measure the cost of a flow apart from its packets, and the gain of two workers.

    The workloads consist of short messages. Runs of all kinds alternate. The cost of a flow depends
    most on the small runs, so there are two of them in each round.
    """
    rows, once = [], replace(extent, repeats=1)
    for workload, kind in KINDS.items():
        k = kind.quick_k if extent.small_networks else kind.k
        runs: defaultdict[tuple[int, int, bool], list[FlowRun]] = defaultdict(list)
        kinds = permutation, small, large, two = (
            (extent.flow_bytes, 1, True), (kind.sizes[0], 1, False), (kind.sizes[1], 1, False),
            (kind.sizes[1], 2, False),
        )  # fmt: skip
        for _ in range(extent.repeats):
            for size, count, is_permutation in (small, permutation, large, small, two):
                (figures,) = _runs(once, "flow_run", workload, k, size, count, is_permutation)
                runs[size, count, is_permutation].append(FlowRun(**figures))
        cost = flow_cost(workload, k, *(runs[each] for each in kinds))
        error = "" if cost.us_per_flow_error is None else f" ± {cost.us_per_flow_error:.0f}"
        say(
            f"{workload}, k = {k}, {cost.flows:,} flows: {cost.us_per_data_packet:.2f} us a data packet "
            f"({cost.packet_ratio:.2f} x permutation), {cost.us_per_flow:.0f}{error} us and "
            f"{cost.bytes_per_flow / 1024:.1f} KiB a flow besides; two workers: {cost.wall_ratio:.2f} of one's "
            f"wall-clock time, {cost.cpu_ratio:.2f} of its CPU time"
        )
        names = ("permutation", "small", "large", "two_workers")
        rows.append(
            {**asdict(cost), **{name: asdict(fastest(runs[each])) for name, each in zip(names, kinds, strict=True)}}
        )
    return rows


def collectives(extent: Extent, say: Say) -> list[dict[str, Any]]:
    """Measure all-reduces in the network: the cost of each frame that a host receives.

    The cost includes the switches.
    """
    rows = []
    for scenario in _ALL_REDUCES:
        runs = [AllReduce(**figures) for figures in _runs(extent, "all_reduce", scenario, extent.transactions)]
        cost = min(runs, key=lambda cost: cost.run_cpu_s)
        say(
            f"all-reduce of {cost.hosts}, {cost.transactions} transactions each: {cost.us_per_frame:.2f} us a frame "
            f"received, {cost.set_up_cpu_s + cost.run_cpu_s:.1f} s, {cost.peak_memory_bytes / 2**20:.0f} MiB"
        )
        rows.append({**asdict(cost), "us_per_frame": cost.us_per_frame})
    return rows


def _beside(cost: float, compared: float | None, other: str = COMPARED) -> str:
    return "" if compared is None else f" ({cost / compared:.2f} x {other})"


def matrix(extent: Extent, say: Say) -> list[dict[str, Any]]:
    """Measure every protocol with every load balancer.

    A run that exceeds its time limit is reported, not measured.
    """
    rows = []
    for protocol in registry.protocols():
        per_hop: dict[str, float] = {}
        for balancer in registry.load_balancers():
            try:
                cost = measure(protocol, extent.matrix_k, extent, balancer)
            except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
                say(f"permutation, {protocol}, {balancer}, k = {extent.matrix_k}: not measured: {_reason(error)}")
                continue
            per_hop[balancer] = cost.ns_per_packet_hop
            against = f" ({cost.ns_per_packet_hop / per_hop['ecmp']:.2f} of ecmp)" if "ecmp" in per_hop else ""
            say(
                f"permutation, {protocol}, {balancer}, k = {cost.k}: {cost.us_per_data_packet:.2f} us a data packet, "
                f"{cost.ns_per_packet_hop:.0f} ns a packet-hop{against}, {cost.peak_memory_bytes / 2**20:.0f} MiB"
            )
            rows.append(_figures(cost))
    return rows


def _reason(error: subprocess.CalledProcessError | subprocess.TimeoutExpired) -> str:
    if isinstance(error, subprocess.TimeoutExpired):
        return f"took over {error.timeout:.0f} s"
    lines: list[str] = error.stderr.strip().splitlines()
    return lines[-1] if lines else f"status {error.returncode}"


def machine() -> dict[str, Any]:
    """Return the properties of the machine that the figures depend on."""
    model = platform.processor()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [line.partition(":")[2].strip() for line in cpuinfo.read_text().splitlines() if "model name" in line]
        model = names[0] if names else model
    return {"cpu": model or platform.machine(), "python": platform.python_version(), "load": psutil.getloadavg()[0]}


def memory(_: Extent, say: Say) -> dict[str, float]:
    """Measure loads from memory that no longer fits the caches, by MiB in use."""
    latency_ns = {str(size): memory_latency_ns(size) for size in (1, 16, 128)}
    say("memory: " + ", ".join(f"{ns:.0f} ns a load in {size} MiB" for size, ns in latency_ns.items()))
    return latency_ns


def pipelines(_: Extent, say: Say) -> list[dict[str, Any]]:
    """Measure P4 programs against hand-written C, and other packets against plain frames."""
    compiled = {
        name: compile_program(programs.program(name).source).program
        for name in ("ecn", "int", "collective", "sperc", "dart")
    }
    compared = ("ecn", "int", "collective")
    others = {
        "collective, a contribution": pipeline_cost.contributing(compiled["collective"]),
        "sperc, a control packet": pipeline_cost.controlling(compiled["sperc"]),
        "dart, a data packet without tokens": pipeline_cost.deflecting(compiled["dart"], 0),
        "dart, a data packet that finds the table full": pipeline_cost.deflecting(compiled["dart"], 4),
    }
    forwarding = [pipeline_cost.forwarding(name, compiled[name]) for name in compared]
    chips = {}
    for name in ("ecn", "int"):
        tna_program = compile_program(programs.program(name).source, arch="tna")
        chips[f"{name} for tna"] = pipeline_cost.on_chip(name, tna_program.program)
    ns = pipeline_cost.measure({name: load for loads in (*forwarding, chips, others) for name, load in loads.items()})
    rows: list[dict[str, Any]] = []
    for name in compared:
        row = {
            "packets": name, "ns": ns[name], "ratio_to_hand_written": ns[name] / ns[f"{name} by hand"],
            "silent_ratio": ns[f"{name} silent"] / ns[name],
        }  # fmt: skip
        say(f"pipeline {name}: {1e3 / ns[name]:.2f} M packets/s, {row['ratio_to_hand_written']:.2f} x hand-written C")
        say(f"pipeline {name}: {row['silent_ratio']:.2f} x as long when built for tracing, with tracing off")
        rows.append(row)
    for name in chips:
        row = {"packets": name, "ns": ns[name], "ratio_to_v1model": ns[name] / ns[name.removesuffix(" for tna")]}
        ratio = row["ratio_to_v1model"]
        say(f"pipeline {name}: {1e3 / ns[name]:.2f} M packets/s, {ratio:.2f} x as long as for v1model")
        rows.append(row)
    for name in others:
        row = {"packets": name, "ns": ns[name], "ratio_to_ecn": ns[name] / ns["ecn"]}
        say(f"pipeline {name}: {ns[name]:.0f} ns, {row['ratio_to_ecn']:.2f} x ecn")
        rows.append(row)
    return rows


def switch_process(_: Extent, say: Say) -> list[dict[str, Any]]:
    """Measure `p4cc switch` on veth pairs, and a plain forwarder in C for comparison.

    Returns nothing if that is unavailable.
    """
    try:
        rows = process_cost.measure(programs.program("ecn").source)
    except UserError as error:
        say(f"switch process: not measured: {error}")
        return []
    for row in rows:
        say(
            f"switch process, {row.what}: {row.forwarded_pps / 1e3:.0f} of {row.offered_pps / 1e3:.0f} thousand "
            f"packets/s, {row.cpu_us_per_packet:.2f} us of CPU a packet"
        )
    return [asdict(row) for row in rows]


def hosts(_: Extent, say: Say) -> list[dict[str, Any]]:
    """Measure a data packet that is sent, received and acknowledged, and the processing of its ACK."""
    rows = []
    measured: dict[str, float] = {}
    first = (COMPARED, *BESIDE.values())
    for protocol in dict.fromkeys((*first, *registry.protocols(), *COMBINED)):
        cost = host_cost(protocol)
        measured[protocol] = cost.total_ns
        other = BESIDE.get(protocol, COMPARED)
        beside = _beside(cost.total_ns, measured.get(other), other)
        say(f"hosts, {protocol}: {cost.total_ns:.0f} ns a data packet{beside}")
        rows.append({**asdict(cost), "total_ns": cost.total_ns})
    return rows


PARTS: dict[str, Callable[[Extent, Say], Any]] = {
    "memory": memory,
    "pipelines": pipelines,
    "hosts": hosts,
    "switch-process": switch_process,
    "end-to-end": end_to_end,
    "workers": workers,
    "windows": windows,
    "scale": scale,
    "training": training,
    "collectives": collectives,
    "matrix": matrix,
}
