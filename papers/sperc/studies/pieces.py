"""Study of the thesis' figures 5.10 and 5.11 with pieces of broken-up flows, and with whole flows.

    python -m papers.sperc.studies.pieces [--folder FOLDER] [--csv FILE]

The thesis divides a flow over a BDP "into smaller flows", and takes the largest latency, the slowdown and the mean
weight "of each flow". It does not say whether a piece is a flow. Tables and reports of a run have whole flows. Each row
is a run and one of the two ways to count.
"""

from __future__ import annotations

from pathlib import Path

import click
import pandas as pd

import p4cc

_LEAST_BYTES = 10_000
_MOST_BYTES = 1_000_000


def measured(flows: pd.DataFrame) -> dict[str, float]:
    """Return the values of figures 5.10 and 5.11 for a table of flows or of pieces.

    `latency_p999_us` is the 99.9% quantile of the largest packet latencies of all flows. All other
    values are for flows of 10 KB to 1 MB: their number, quantiles of their slowdowns, quantiles of
    slowdown times mean weight, and the number of these products above 4. Undelivered flows are only
    counted.
    """
    arrived = flows[flows["slowdown"].notna()]
    size = arrived["size_bytes"]
    middle = arrived[(size >= _LEAST_BYTES) & (size <= _MOST_BYTES)]
    weighted = middle["slowdown"] * middle["mean_weight"]
    return {
        "counted": len(flows),
        "unfinished": len(flows) - len(arrived),
        "latency_p999_us": float(arrived["max_latency_ns"].quantile(0.999)) / 1e3,
        "middle": len(middle),
        "slowdown_p999": float(middle["slowdown"].quantile(0.999)),
        "weighted_p999": float(weighted.quantile(0.999)),
        "weighted_p99": float(weighted.quantile(0.99)),
        "weighted_over_4": int((weighted > 4).sum()),
    }


@click.command()
@click.option("--folder", type=click.Path(path_type=Path, exists=True), help="Results of sperc-fig9.")
@click.option("--csv", type=click.Path(path_type=Path), help="Write the table there.")
def main(folder: Path | None, csv: Path | None) -> None:
    """Print two rows for each run of sperc-fig9 with 1RC and weights; without a folder it is run first."""
    results = p4cc.load(folder) if folder else p4cc.run("sperc-fig9", cc=["sperc+1rc+weights"], seeds="1-3")
    rows = [
        {"run": run.name, "seed": run.seed, "counted_as": counted_as, **measured(table)}
        for run in results
        if "pieces" in run.tables and "mean_weight" in run.flows
        for counted_as, table in (("whole flows", run.flows), ("pieces", run.table("pieces")))
    ]
    table = pd.DataFrame(rows)
    click.echo(table.to_string(index=False, float_format=lambda value: f"{value:.2f}"))
    if csv is not None:
        table.to_csv(csv, index=False, float_format="%.3f")


if __name__ == "__main__":
    main()
