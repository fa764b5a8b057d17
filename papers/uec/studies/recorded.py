"""The simulator's cases that are recorded with one seed, 1,024 hosts among them: our runs beside its figures.

    python -m papers.uec.studies.recorded [--csv FILE] [--seed 1]

It takes the simulator's figures from `measured/recorded_cases.csv`, carries out the scenarios, and
fails if a row deviates by more than the page allows (README.md, U14). With
1,024 hosts a run takes some 10 s and 0.6 GB; there are 18 of them.
"""

from __future__ import annotations

from pathlib import Path

import click
import pandas as pd

import p4cc

MEASURED = Path(__file__).parents[1] / "measured" / "recorded_cases.csv"
SCENARIOS = ("uec-validation", "uec-1024", "uec-oversubscribed-1024")
VARIANT_OF = {"NSCC": "{case}", "RCCC": "{case}, RCCC", "both": "{case}, both"}
PACKET_BYTES = {"NSCC": 4092, "RCCC": 4088, "both": 4088}  # payload of a full packet

TAIL = 0.05  # the largest difference of the last flow's end, as a share of the simulator's
SENT_AGAIN = 1.5  # the largest ratio of the numbers of packets sent again
FEW = 1e-3  # a share of all packets so small that a ratio means nothing
# Over one path each, chance decides whether the most loaded link carries five flows or six, so the
# last flow may end as much later or earlier as one flow takes at 100 Gb/s.
CHANCE_US = {"V13": 163.0}
# With our time-out of 400 us the simulator ends so much later than with its own of 100 us: a median of 9,094 us.
TIME_OUT_US = {("V5", "both"): 291.0}


def rows(seed: int) -> pd.DataFrame:
    """Return the table of the simulator's figures with ours of this seed."""
    table = pd.read_csv(MEASURED)
    runs = [p4cc.run(scenario, seeds=[seed]) for scenario in SCENARIOS]
    results = {result.summary["variant"]: result for of_scenario in runs for result in of_scenario}
    for index, row in table.iterrows():
        result = results[VARIANT_OF[row["protocol"]].format(case=row["case"])]
        last_us = result.flows["completed_ns"].max() / 1e3
        table.loc[index, "last_us"] = round(last_us, 1)
        table.loc[index, "difference_percent"] = round(100 * (last_us / row["simulator_last_us"] - 1), 1)
        table.loc[index, "sent_again"] = result.summary["retransmitted"]
        table.loc[index, "packets"] = result.flows["size_bytes"].floordiv(PACKET_BYTES[row["protocol"]]).add(1).sum()
    return table


def deviations(table: pd.DataFrame) -> list[str]:
    """Return a line for each row that deviates by more than the page allows."""
    found = []
    for row in table.to_dict("records"):
        expected_us = row["simulator_last_us"] + TIME_OUT_US.get((row["simulator_case"], row["protocol"]), 0.0)
        allowed_us = TAIL * row["simulator_last_us"] + CHANCE_US.get(row["simulator_case"], 0.0)
        fewer, more = sorted((row["sent_again"], row["simulator_sent_again"]))
        name = f"{row['simulator_case']}, {row['protocol']}"
        if abs(row["last_us"] - expected_us) > allowed_us:
            found.append(f"{name}: ends at {row['last_us']} us, the simulator at {row['simulator_last_us']} us")
        if more > SENT_AGAIN * fewer and more > FEW * row["packets"]:
            found.append(f"{name}: {row['sent_again']} packets sent again, {row['simulator_sent_again']} there")
    return found


@click.command()
@click.option("--csv", "csv_file", type=click.Path(path_type=Path), help="Write the table.")
@click.option("--seed", default=1, show_default=True)
def main(csv_file: Path | None, seed: int) -> None:
    """Carry out the runs; print their table, and fail if a row deviates."""
    table = rows(seed)
    click.echo(table.to_string(index=False))
    deviating = deviations(table)
    if deviating:
        raise click.ClickException("; ".join(deviating))
    if csv_file is not None:
        table.to_csv(csv_file, index=False)


if __name__ == "__main__":
    main()
