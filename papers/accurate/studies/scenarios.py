"""ACCurate on random networks: whether rates reach the max-min allocation, and in how many periods.

    python -m papers.accurate.studies.scenarios [--count 100] [--first 0] [--rule RULE]... [--csv FILE]

A scenario is a random network with links of four rates and 2 to 50 flows between random hosts, all of which start
within one period. It runs through p4src/accurate.p4 in the virtual world. The reference is water-filling over the
links that the flows' packets take. A scenario has settled once all rate limits are within 3% of the reference, and
stay there to the end.
"""

from __future__ import annotations

import random
import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import pandas as pd

from control_plane.programs.accurate import capacity_kbps
from harness.plan.how import Tracing
from harness.plan.scenario import check
from papers.max_min import max_min

if TYPE_CHECKING:
    from harness.plan.run import Run

PERIOD_NS = 20_000
ALPHA = 0.05
TOLERANCE = 0.03
LIMIT_PERIODS = 15
OBSERVED_PERIODS = 40
RATES_BPS = [10e9, 25e9, 40e9, 100e9]
RULES = ("corrected", "published")

Link = tuple[str, int]  # a switch and its egress port


@dataclass(frozen=True)
class Outcome:
    seed: int
    rule: str
    switches: int
    flows: int
    bottlenecks: int  # number of distinct rates in the max-min allocation
    periods: int | None  # periods until rates settle; None: more than OBSERVED_PERIODS
    error: float  # largest relative error after LIMIT_PERIODS


def tables(seed: int, rule: str, limit_ns: int, clock_error_ns: int = 0) -> dict[str, Any]:
    """Return the tables of a seed's scenario."""
    rng = random.Random(f"scenario {seed}")
    switches, hosts, flows = rng.randint(2, 8), rng.randint(4, 16), rng.randint(2, 50)
    streams = []
    for i in range(flows):
        source, destination = rng.sample(range(hosts), 2)
        start_ns = rng.randrange(PERIOD_NS)
        ends = {"source": source, "destination": destination, "start_ns": start_ns, "stop_ns": 10 * limit_ns}
        streams.append({"name": f"f{i}", **ends})
    return {
        "cc": "accurate",
        "limit_ns": limit_ns,
        "topology": {
            "name": "random",
            "seed": seed,
            "switches": switches,
            "extra_links": rng.randint(0, switches),
            "hosts": hosts,
            "rates_bps": RATES_BPS,
            "link_delay_ns": 300,
            "nic_switches": True,
        },
        "workload": {"name": "streams", "flows": streams},
        "record": {"queue_interval_ns": 0, "rate_interval_ns": PERIOD_NS},
        "protocols": {"accurate": {"clock_error_ns": clock_error_ns}},
        "programs": {"accurate": {"rule": rule, "alpha": ALPHA, "clock_error_ns": clock_error_ns}},
    }


def planned(values: dict[str, Any]) -> Run:
    from harness.plan.resolve import plan

    return plan("random", check(values), Path())[0]


def paths(run: Run, flows: int) -> list[list[Link]]:
    """Return the links that each flow's packets take, by flow.

    They come from traces: one run for each flow.
    """
    from harness.worlds.virtual import VirtualWorld

    switches = {switch.name for switch in run.topology.switches}
    links = []
    for flow in range(flows):
        world = VirtualWorld(run, trace=Tracing(flow, pipelines=False))
        world.run()
        hops = ((world.network.names[node], event, port) for _, node, event, port, *_ in world.trace_records())
        links.append(list(dict.fromkeys((node, port) for node, event, port in hops
                                        if event == "transmit" and node in switches)))
    return links


def oracle(values: dict[str, Any]) -> list[float]:
    """Return the max-min rate of each flow in bit/s, while all flows are active.

    The paths are those in a run of the same flows with one packet each. Such flows send no FRPs.
    """
    flows = [
        {key: value for key, value in flow.items() if key != "stop_ns"} | {"size_bytes": 1}
        for flow in values["workload"]["flows"]
    ]
    run = planned({**values, "workload": {"name": "streams", "flows": flows}})
    capacity = {
        (switch.name, port): 1e3 * capacity_kbps(there.rate_bps, ALPHA)
        for switch in run.topology.switches
        for port, there in run.topology.ports[switch.name].items()
    }
    return max_min(capacity, paths(run, len(flows)))


def measure(seed: int, rule: str, periods: int = OBSERVED_PERIODS, clock_error_ns: int = 0) -> Outcome:
    """Return a scenario's outcome; periods count from the one in which the flows start."""
    from harness.worlds.virtual import VirtualWorld

    values = tables(seed, rule, (periods + 1) * PERIOD_NS, clock_error_ns)
    run = planned(values)
    ideal = oracle(values)
    recording = VirtualWorld(run).run()
    flow_of = {record.qp: record.flow.index for record in recording.flows}
    errors = [0.0] * (periods + 1)
    rates = recording.tables["rates"]
    for time_ns, qp, rate_bps in zip(rates["time_ns"], rates["qp"], rates["rate_limit_bps"], strict=True):
        period = time_ns // PERIOD_NS - 1  # the period that ends at `time_ns`
        errors[period] = max(errors[period], abs(rate_bps / ideal[flow_of[qp]] - 1))
    wrong = [period for period, error in enumerate(errors) if error > TOLERANCE]
    settled = wrong[-1] + 1 if wrong else 0
    return Outcome(
        seed,
        rule,
        switches=int(values["topology"]["switches"]),
        flows=len(ideal),
        bottlenecks=len({round(rate / 1e6) for rate in ideal}),
        periods=settled if settled <= periods else None,
        error=errors[min(LIMIT_PERIODS, periods)],
    )


def summary(outcomes: list[Outcome]) -> str:
    settled = sorted(o.periods for o in outcomes if o.periods is not None)
    in_time = sum(periods <= LIMIT_PERIODS for periods in settled)
    text = f"{in_time} of {len(outcomes)} scenarios within {TOLERANCE:.0%} after {LIMIT_PERIODS} periods"
    text += f", {len(settled)} after {OBSERVED_PERIODS}"
    if settled:
        text += f"; median {statistics.median(settled):g}, 90% {settled[len(settled) * 9 // 10]}, most {settled[-1]}"
    late = [o.seed for o in outcomes if o.periods is None or o.periods > LIMIT_PERIODS]
    return text + (f"; not in time: {late}" if late else "")


@click.command()
@click.option("--count", default=100, show_default=True)
@click.option("--first", default=0, show_default=True, help="Seed of the first scenario.")
@click.option("--rule", "rules", multiple=True, type=click.Choice(RULES), default=RULES, show_default=True)
@click.option("--clock-error-ns", default=0, show_default=True, help="Clocks are off by up to this, hosts' too.")
@click.option("--csv", "csv_file", type=click.Path(path_type=Path), help="Write a row for each scenario.")
def main(count: int, first: int, rules: tuple[str, ...], clock_error_ns: int, csv_file: Path | None) -> None:
    from harness.worlds.native_hosts import use_native_hosts

    use_native_hosts()
    outcomes: list[Outcome] = []
    for rule in rules:
        batch = [measure(seed, rule, clock_error_ns=clock_error_ns) for seed in range(first, first + count)]
        several = sum(o.bottlenecks > 1 for o in batch)
        click.echo(f"{rule} rule: {summary(batch)} ({several} with several bottlenecks)")
        outcomes += batch
    if csv_file:
        pd.DataFrame(outcomes).convert_dtypes().to_csv(csv_file, index=False)


if __name__ == "__main__":
    main()
