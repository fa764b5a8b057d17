"""Ultra Ethernet compared with SMaRTT, EQDS, HPCC and DCQCN, in SMaRTT-REPS's scenarios and in a training step.

    python -m papers.uec.studies.beside [--csv FILE] [--figure FILE] [--seed 1]

The command runs the paper's scenarios with each of the protocols. SMaRTT and EQDS have the scenario's own settings.
HPCC and DCQCN have one path a flow and are lossless. Ultra Ethernet has the settings of its own scenarios.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import click
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

import p4cc._hosts  # isort: split

import p4cc
from reports.plots import styled

MEASURED: Final = Path(__file__).parents[1] / "measured" / "beside.csv"

Settings = dict[str, Any]

# Only the ends of flows are needed, so queues are sampled rarely.
_EVERY: Final[Settings] = {"variants": [], "record.queues": "hosts", "record.queue_interval_ns": 20_000}
_ULTRA_ETHERNET: Final[Settings] = {
    "nic.ack_every_bytes": 16_384,
    "load_balancers.mixed.entropies": 128,
    "programs.trim.trim_last_hop_dscp": 50,
    "programs.trim.header_queue_bytes": 2_291_600,
}
_BY_CREDIT: Final[Settings] = {**_ULTRA_ETHERNET, "programs.trim.mark_host_ports": False}
_LOSSLESS: Final[Settings] = {
    "switch.pfc.enabled": True,
    "switch.buffer_bytes": 32_000_000,
    "nic.rto_base_rtts": 1000.0,
}


@dataclass(frozen=True)
class Contender:
    """Protocol with its load balancer and settings; `untrimmed` are its settings if switches do not trim."""

    cc: str
    lb: str
    settings: Settings = field(default_factory=dict)
    untrimmed: Settings = field(default_factory=dict)


_SLEEK: Final[Settings] = {"nic.sleek.windows": 1.5}
CONTENDERS: Final = (
    Contender("smartt", "reps", untrimmed={"protocols.smartt.trimming": False}),
    Contender("eqds", "reps"),
    Contender("nscc", "mixed", _ULTRA_ETHERNET, {**_SLEEK, "protocols.nscc.trimming": False}),
    Contender("rccc", "mixed", _BY_CREDIT),
    Contender("rccc+nscc", "mixed", _BY_CREDIT, {**_SLEEK, "protocols.rccc+nscc.nscc.trimming": False}),
    Contender("hpcc", "ecmp", {**_LOSSLESS, "program": "int"}),
    Contender("dcqcn", "ecmp", {**_LOSSLESS, "program": "ecn"}),
)


@dataclass(frozen=True)
class Case:
    """Scenario with its over-subscription, and whether its switches trim."""

    name: str
    scenario: str
    oversubscription: int = 1
    settings: Settings = field(default_factory=dict)
    trims: bool = True

    def settings_of(self, contender: Contender) -> Settings:
        """Return the changes of the scenario for a contender."""
        changes = {**_EVERY, **self.settings}
        if not self.trims:
            changes |= {"programs.trim.trimming": False, "nic.rto_base_rtts": 2.5}
        changes |= contender.settings
        if not self.trims:
            changes |= contender.untrimmed
        if contender.cc == "rccc":
            changes["protocols.rccc.oversubscription"] = self.oversubscription
        return changes


CASES: Final = (
    Case("figure 1: permutation of 2 MiB, 8:1", "smartt-fig1", 8),
    Case("figure 3: 8 to 1, 8 MiB", "smartt-fig3"),
    Case("figure 6: permutation of 8 MiB, 8:1", "smartt-fig6", 8, {"workload.size_bytes": 8_388_608}),
    Case("figure 9: permutation of 2 MiB, 2:1, no trimming", "smartt-fig9", 2, trims=False),
    Case("figure 10: 32 to 1, 1 MiB", "smartt-fig10"),
    Case("figure 12: all-to-all of 256 KiB, 4:1", "smartt-fig12", 4, {"workload.window": 4}),
    Case("a training step", "uec-training", 4),
)


# Figure 6 of the paper compares load balancers, so NSCC runs with the others, too.
BALANCED: Final = next(case for case in CASES if case.name.startswith("figure 6"))
BALANCERS: Final = tuple(
    Contender("nscc", lb, {**_ULTRA_ETHERNET, f"load_balancers.{lb}.entropies": entropies})
    for lb, entropies in (("bitmap", 128), ("uec-reps", 128), ("oblivious", 128), ("reps", 256))
)
RUNS: Final = (
    *((case, contender) for case in CASES for contender in CONTENDERS),
    *((BALANCED, contender) for contender in BALANCERS),
)


def row(case: Case, contender: Contender, seed: int) -> dict[str, Any]:
    """Return the result of a run: case, protocol, end of the last flow in us, and packets resent and dropped."""
    settings = case.settings_of(contender)
    (result,) = p4cc.run(case.scenario, cc=contender.cc, lb=contender.lb, seeds=[seed], set=settings)
    return {
        "case": case.name,
        "protocol": contender.cc,
        "load_balancer": contender.lb,
        "last_us": round(result.flows["completed_ns"].max() / 1e3, 1),
        "sent_again": result.summary["retransmitted"],
        "dropped": sum(result.summary["drops"].values()),
    }


def drawing(table: pd.DataFrame) -> Figure:
    """Return bars by protocol: the end of each case relative to the earliest one."""
    protocols = [contender.cc for contender in CONTENDERS]
    usual = table.merge(pd.DataFrame([(one.cc, one.lb) for one in CONTENDERS], columns=["protocol", "load_balancer"]))
    ends = usual.pivot_table(index="case", columns="protocol", values="last_us", sort=False)[protocols]
    beside = ends.div(ends.min(axis="columns"), axis="index")
    figure = Figure(figsize=(9.0, 3.0), layout="constrained")
    axes = figure.subplots()
    width = 0.8 / len(protocols)
    for number, protocol in enumerate(protocols):
        places = np.arange(len(beside)) + (number - (len(protocols) - 1) / 2) * width
        axes.bar(places, beside[protocol], width, label=protocol)
    axes.set_xticks(np.arange(len(beside)), [name.replace(": ", ":\n").replace(", ", ",\n") for name in beside.index])
    axes.tick_params(axis="x", labelsize="x-small")
    axes.set_ylabel("end of the last flow,\nthe soonest one's = 1")
    axes.set_ylim(bottom=0.9)
    axes.legend(ncols=len(protocols), fontsize="x-small", loc="upper center", bbox_to_anchor=(0.5, 1.15))
    return figure


@click.command()
@click.option("--csv", "csv_file", type=click.Path(path_type=Path), help="Write a row for each run.")
@click.option("--figure", "figure_file", type=click.Path(path_type=Path), help="Write the ends as bars.")
@click.option("--seed", default=1, show_default=True)
def main(csv_file: Path | None, figure_file: Path | None, seed: int) -> None:
    """Execute the runs, and print their table."""
    table = pd.DataFrame([row(case, contender, seed) for case, contender in RUNS])
    click.echo(table.to_string(index=False))
    if csv_file is not None:
        table.to_csv(csv_file, index=False)
    if figure_file is not None:
        with styled():
            drawing(table).savefig(figure_file)


if __name__ == "__main__":
    main()
