"""Ultra Ethernet beside SMaRTT, EQDS, HPCC and DCQCN: when the last flow ends, and what is sent again.

    python -m papers.uec.studies.beside [--csv FILE] [--figure FILE] [--seed 1]

The runs are those of the scenarios below; each variant's name begins with the case, and the protocol is the run's.
"""

from __future__ import annotations

from pathlib import Path

import click
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

import p4cc._hosts  # isort: split

import p4cc
from reports.plots import styled

SCENARIOS = ("uec-beside-incast", "uec-beside-permutation", "uec-all-to-all", "uec-training")
PROTOCOLS = ("smartt", "eqds", "nscc", "rccc", "rccc+nscc", "hpcc", "dcqcn")
LOAD_BALANCERS = {"nscc": "mixed", "smartt": "reps"}  # of the cases that compare several


def rows(seed: int) -> pd.DataFrame:
    """Return a row for each run: case, protocol, load balancer, the end of the last flow in us, packets sent again."""
    records = []
    for scenario in SCENARIOS:
        results = p4cc.run(scenario, seeds=[seed])  # whose folder lasts as long as this
        for result in results:
            summary = result.summary
            protocol, balancer = summary["protocol"], summary["load_balancer"]
            case = summary["variant"].removeprefix(f"{protocol}, ").removeprefix(f"{balancer}, ")
            records.append(
                {
                    "scenario": scenario,
                    "case": case.partition(", ")[0],
                    "protocol": protocol,
                    "load_balancer": balancer,
                    "last_us": result.flows["completed_ns"].max() / 1e3,
                    "sent_again": summary["retransmitted"],
                }
            )
    return pd.DataFrame(records)


def drawing(table: pd.DataFrame) -> Figure:
    """Return the ends of each case, beside the soonest of them, as bars by protocol."""
    usual = table[
        [LOAD_BALANCERS.get(protocol, balancer) == balancer
         for protocol, balancer in zip(table["protocol"], table["load_balancer"], strict=True)]
    ]
    ends = usual.pivot_table(index="case", columns="protocol", values="last_us", sort=False)
    ends = ends.reindex(columns=list(PROTOCOLS)).dropna(thresh=len(PROTOCOLS) - 1)
    beside = ends.div(ends.min(axis="columns"), axis="index")
    figure = Figure(figsize=(7.0, 2.6), layout="constrained")
    axes = figure.subplots()
    width = 0.8 / len(PROTOCOLS)
    for number, protocol in enumerate(PROTOCOLS):
        places = np.arange(len(beside)) + (number - (len(PROTOCOLS) - 1) / 2) * width
        axes.bar(places, beside[protocol], width, label=protocol)
    axes.set_xticks(np.arange(len(beside)), beside.index)
    axes.set_ylabel("end of the last flow,\nthe soonest one's = 1")
    axes.set_ylim(bottom=0.9)
    axes.legend(ncols=len(PROTOCOLS), fontsize="x-small", loc="upper center", bbox_to_anchor=(0.5, 1.2))
    return figure


@click.command()
@click.option("--csv", "csv_file", type=click.Path(path_type=Path), help="Write a row for each run.")
@click.option("--figure", "figure_file", type=click.Path(path_type=Path), help="Write the ends as bars.")
@click.option("--seed", default=1, show_default=True)
def main(csv_file: Path | None, figure_file: Path | None, seed: int) -> None:
    """Carry out the runs; print their table."""
    table = rows(seed)
    click.echo(table.to_string(index=False, float_format="{:.1f}".format))
    if csv_file is not None:
        table.to_csv(csv_file, index=False)
    if figure_file is not None:
        with styled():
            drawing(table).savefig(figure_file)


if __name__ == "__main__":
    main()
