"""s-PERC on many networks: whether the rates reach the max-min allocation within 6N rounds, and stay there.

    python -m papers.sperc.studies.scenarios [--count 300] [--first 0] [--network NAME]... [--csv FILE]

Each control packet goes through p4src/sperc.p4, link by link; no data is sent. One switch
represents all links, with a port for each. A flow sends its first control packet in the first
period, and each further one a period after the one before.

N is the number of iterations of a parallel water-filling. A round is a round of the program, 1.5
periods. Rounds count from the first packet of the last flow.
"""

from __future__ import annotations

import heapq
import random
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pandas as pd

from control_plane import controller, programs
from control_plane.load_balancing import find
from control_plane.pipelines import Build, pipeline
from control_plane.programs.base import SwitchView
from host_agents import wire
from host_agents.cc.sperc import CONTROL, RECORDS, control_body
from host_agents.cc.sperc_link import NEW_FLOW, Record
from p4switch.p4runtime.client import LocalClient
from p4switch.p4runtime.device import Device
from papers.max_min import water_filling
from topologies import Route

if TYPE_CHECKING:
    from p4switch.engine import Switch

PERIOD_NS = SwitchView.base_rtt_ns
ROUND_NS = PERIOD_NS * 3 // 2
HOP_NS = 1_000
TOLERANCE = 0.01
MORE_ROUNDS = 20  # rounds that are observed after the limit
HEADROOM = 0.05
RATES_BPS = (10 * 10**9, 25 * 10**9, 40 * 10**9, 100 * 10**9)
NETWORKS = ("random", "fat-tree")
MOST_WEIGHTS = (1, 20)
MOST_LINKS = 6  # largest number of links of a path

HEADER_BYTES = sum(header.size_bytes for header in CONTROL.headers)
RECORD_BYTES = CONTROL.records[0].header.size_bytes


@dataclass(frozen=True)
class Network:
    """Rates of the links by their number, the links of each flow, and the n by which each flow's rate is divided."""

    rates_bps: tuple[int, ...]
    paths: tuple[tuple[int, ...], ...]
    weights: tuple[int, ...]


@dataclass(frozen=True)
class Outcome:
    network: str
    most_weight: int
    seed: int
    links: int
    flows: int
    iterations: int  # N
    rounds: float | None  # rounds until all rates are correct to the end; None: they are not correct at the end
    error: float  # largest relative error after 6N rounds

    @property
    def in_time(self) -> bool:
        return self.rounds is not None and self.rounds <= 6 * self.iterations


def drawn(kind: str, most_weight: int, seed: int) -> Network:
    """Return the network of a seed."""
    rng = random.Random(f"{kind} {most_weight} {seed}")
    rates, paths = _random(rng) if kind == "random" else _fat_tree(rng)
    return Network(tuple(rates), tuple(paths), tuple(rng.randint(1, most_weight) for _ in paths))


def _random(rng: random.Random) -> tuple[list[int], list[tuple[int, ...]]]:
    links = rng.randint(2, 12)
    paths = [tuple(rng.sample(range(links), rng.randint(1, min(links, MOST_LINKS)))) for _ in range(rng.randint(2, 50))]
    return [rng.choice(RATES_BPS) for _ in range(links)], paths


def _fat_tree(rng: random.Random, k: int = 4) -> tuple[list[int], list[tuple[int, ...]]]:
    """Return a fat-tree with links of one rate, and random hosts and paths of flows."""
    numbers: dict[tuple[str | int, ...], int] = {}

    def link(*name: str | int) -> int:
        return numbers.setdefault(name, len(numbers))

    half = k // 2
    hosts = [(pod, edge, i) for pod in range(k) for edge in range(half) for i in range(half)]
    paths = []
    for _ in range(rng.randint(2, 64)):
        source, destination = rng.sample(hosts, 2)
        agg, core = rng.randrange(half), rng.randrange(half)
        path = [link("from", *source)]
        if source[:2] != destination[:2]:
            path.append(link("up", *source[:2], agg))
            if source[0] != destination[0]:
                path += [link("to core", source[0], agg, core), link("from core", destination[0], agg, core)]
            path.append(link("down", *destination[:2], agg))
        paths.append((*path, link("to", *destination)))
    return [RATES_BPS[-1]] * len(numbers), paths


class Links:
    """The program, for all links of a network."""

    def __init__(self, rates_bps: Sequence[int], choices: Mapping[str, float]) -> None:
        self._switch = _program(rates_bps, choices)
        source = wire.parse_address("192.168.0.1")
        self._starts = [
            wire.header(source, address, 0xC000, CONTROL.opcode, 7, after_bth_bytes=CONTROL.size_bytes) + bytes(4)
            for address in map(_address, range(len(rates_bps)))
        ]

    def process(self, link: int, body: bytes, now_ns: int) -> bytes:
        """Return the contents of a control packet after the program has processed it at this link."""
        ((_, frame),) = self._switch.process(0, self._starts[link] + body + bytes(wire.ICRC_BYTES), now_ns)
        return frame[wire.AFTER_BTH : wire.AFTER_BTH + len(body)]


def _address(link: int) -> int:
    return 10 << 24 | link << 8 | 2


def _program(rates_bps: Sequence[int], choices: Mapping[str, float]) -> Switch:
    program = programs.program("sperc")
    parameters = program.checked({"headroom": HEADROOM, **choices}, "programs.sperc")
    compiled = pipeline(Build.of(program.source, find("ecmp", Path()), parameters.defines()))
    routes = [Route(IPv4Network((IPv4Address(_address(link)), 32)), (link,)) for link in range(len(rates_bps))]
    tables = compiled.program.tables
    view = SwitchView(device_id=1, port_rates_bps=dict(enumerate(rates_bps)), routes=routes, tables=tables)
    switch = compiled.switch(1, 1)
    controller.install(LocalClient(Device(lambda _: switch)), compiled.program, parameters, view)
    return switch


@dataclass
class Flow:
    """State of a source: the body of its control packet, whose records are in the order of the path."""

    path: tuple[int, ...]
    weight: int
    body: bytes
    hop: int = 0
    sent_ns: int = 0

    def returned(self) -> float:
        """Return the rate, in bit/s, of a returned control packet, whose records are in the order of sending."""
        records = self.body[HEADER_BYTES:]
        turned = RECORD_BYTES * len(self.path)
        kept = records[-turned:] + records[:-turned]
        self.body = self.body[:1] + b"\0" + self.body[2:HEADER_BYTES] + kept
        own = [r for r in CONTROL.decode_records(self.body, 0) if r["state"] != NEW_FLOW]
        return 1e3 * min(r["x"] for r in own) / self.weight


def measure(kind: str, most_weight: int, seed: int, **choices: float) -> Outcome:
    """Return the outcome of the network of a seed; `choices` are parameters of the program."""
    net = drawn(kind, most_weight, seed)
    capacity = {link: 1e3 * round(rate * (1 - HEADROOM) / 1e3) for link, rate in enumerate(net.rates_bps)}
    ideal, iterations = water_filling(capacity, net.paths, [1 / n for n in net.weights])
    links = Links(net.rates_bps, choices)
    rng = random.Random(f"times {kind} {most_weight} {seed}")
    starts_ns = [rng.randrange(PERIOD_NS) for _ in net.paths]
    from_ns = max(starts_ns)
    due_ns, end_ns = from_ns + 6 * iterations * ROUND_NS, from_ns + (6 * iterations + MORE_ROUNDS) * ROUND_NS
    flows = [
        Flow(path, n, control_body([Record() for _ in range(RECORDS)], False, 0, n, n, 1, 1, 0))
        for path, n in zip(net.paths, net.weights, strict=True)
    ]
    rates = [0.0] * len(flows)
    wrong_ns, error = 0, 1.0
    events = [(start_ns, number) for number, start_ns in enumerate(starts_ns)]
    heapq.heapify(events)
    while events[0][0] < end_ns:
        now_ns, number = heapq.heappop(events)
        flow = flows[number]
        if flow.hop < len(flow.path):
            if flow.hop == 0:
                flow.sent_ns = now_ns
            flow.body = links.process(flow.path[flow.hop], flow.body, now_ns)
            flow.hop += 1
            heapq.heappush(events, (now_ns + HOP_NS, number))
            continue
        flow.hop = 0
        rates[number] = flow.returned()
        heapq.heappush(events, (flow.sent_ns + PERIOD_NS, number))
        if abs(rates[number] / ideal[number] - 1) > TOLERANCE:
            wrong_ns = now_ns
        if now_ns <= due_ns:
            error = max(abs(rate / best - 1) for rate, best in zip(rates, ideal, strict=True))
    settled = end_ns - wrong_ns > 2 * PERIOD_NS
    rounds = max(0.0, (wrong_ns - from_ns) / ROUND_NS) if settled else None
    return Outcome(kind, most_weight, seed, len(net.rates_bps), len(flows), iterations, rounds, error)


def summary(outcomes: Sequence[Outcome]) -> str:
    settled = sorted(o.rounds for o in outcomes if o.rounds is not None)
    text = f"{sum(o.in_time for o in outcomes)} of {len(outcomes)} within {TOLERANCE:.0%} inside 6N rounds, for good"
    if settled:
        text += f"; rounds: median {statistics.median(settled):.1f}, most {settled[-1]:.1f}"
        text += f"; of 6N at most {max(o.rounds / (6 * o.iterations) for o in outcomes if o.rounds is not None):.0%}"
    late = [o.seed for o in outcomes if not o.in_time]
    return text + (f"; not in time: {late}" if late else "")


@click.command()
@click.option("--count", default=300, show_default=True, help="Networks of each kind and range of weights.")
@click.option("--first", default=0, show_default=True, help="Seed of the first.")
@click.option("--network", "networks", multiple=True, type=click.Choice(NETWORKS), default=NETWORKS, show_default=True)
@click.option("--tolerance", default=2**-12, show_default=True, help="Tolerance, as a share of the link.")
@click.option("--digits", default=20, show_default=True, help="Significant binary digits of b.")
@click.option("--round-rtts", default=1.5, show_default=True, help="Length of the program's rounds, in periods.")
@click.option("--csv", "csv_file", type=click.Path(path_type=Path), help="Write a row for each network.")
def main(
    count: int,
    first: int,
    networks: tuple[str, ...],
    tolerance: float,
    digits: int,
    round_rtts: float,
    csv_file: Path | None,
) -> None:
    choices = {"tolerance": tolerance, "digits": digits, "round_rtts": round_rtts}
    outcomes: list[Outcome] = []
    for kind in networks:
        for most_weight in MOST_WEIGHTS:
            batch = [measure(kind, most_weight, seed, **choices) for seed in range(first, first + count)]
            click.echo(f"{kind}, weights {f'1-{most_weight}' if most_weight > 1 else '1'}: {summary(batch)}")
            outcomes += batch
    if csv_file:
        pd.DataFrame(outcomes).convert_dtypes().to_csv(csv_file, index=False)


if __name__ == "__main__":
    main()
