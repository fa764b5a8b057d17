"""Study of the assumptions that the Dart paper leaves open, for its figures 11 to 14, tables I and II.

    python -m papers.dart.studies.assumptions [--folder FOLDER] [--skip-ms 6] [--csv FILE]

Flows that start in the first milliseconds are left out, because the number of long flows still
grows then. Each row is a variant, a load and a seed.
"""

from __future__ import annotations

from pathlib import Path

import click
import numpy as np
import pandas as pd

import p4cc
from harness.plan.scenario import read

_SHORT_BYTES = 8192  # sizes of the messages whose 99% the paper's figure 11 shows


def measured(flows: pd.DataFrame, skip_ns: int) -> dict[str, float]:
    """Return the values of figures 11 to 14 and tables I and II for one run's flows that start after `skip_ns`.

    `short_p99_us` and `short_p50_us` are completion times of 8 KB messages. `long_gbps` is the mean
    rate of a long flow. `load_added` is the relative increase of bytes times links over shortest
    paths, for all flows. `path_added` is the relative increase of short messages' links. All values
    except `unfinished` are for delivered flows.
    """
    counted = flows[flows["start_ns"] >= skip_ns]
    short = counted[(counted["group"] == "short") & (counted["size_bytes"] == _SHORT_BYTES)]
    long = counted[counted["group"] == "long"]
    arrived = counted[counted["fct_ns"].notna()]
    messages = arrived[arrived["group"] == "short"]
    carried_bytes = float((arrived["size_bytes"] * arrived["mean_links"]).sum())
    shortest = float((arrived["size_bytes"] * arrived["shortest_links"]).sum())
    return {
        "short": len(short),
        "long": len(long),
        "unfinished": int(counted["fct_ns"].isna().sum()),
        "short_p50_us": float(np.percentile(short["fct_ns"].dropna(), 50)) / 1e3,
        "short_p99_us": float(np.percentile(short["fct_ns"].dropna(), 99)) / 1e3,
        "long_gbps": float((long["size_bytes"] * 8 / long["fct_ns"]).mean()),
        "load_added": carried_bytes / shortest - 1,
        "path_added": float(messages["mean_links"].sum() / messages["shortest_links"].sum()) - 1,
    }


def _load(run: p4cc.Result) -> float:
    """Return the load of a run of the sweep."""
    return float(read(run.folder / "scenario.toml")["workload"]["load"])


@click.command()
@click.option("--folder", type=click.Path(path_type=Path, exists=True), help="Results of the sweep dart-assumptions.")
@click.option("--skip-ms", type=float, default=6.0, show_default=True, help="Leave out flows that start before.")
@click.option("--csv", type=click.Path(path_type=Path), help="Write the table there.")
def main(folder: Path | None, skip_ms: float, csv: Path | None) -> None:
    """Print a row for each run of the sweep dart-assumptions; without a folder the sweep is run first."""
    results = p4cc.sweep("dart-assumptions") if folder is None else p4cc.load(folder)
    rows = [
        {
            "variant": run.summary["title"],
            "load": _load(run),
            "seed": run.seed,
            **measured(run.flows, int(skip_ms * 1e6)),
        }
        for run in results
    ]
    table = pd.DataFrame(rows)
    click.echo(table.to_string(index=False, float_format=lambda value: f"{value:.3f}"))
    if csv is not None:
        table.to_csv(csv, index=False)


if __name__ == "__main__":
    main()
