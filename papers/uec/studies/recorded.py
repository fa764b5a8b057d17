"""Our runs compared with the simulator's cases that are recorded with one seed, some with 1,024 hosts.

    python -m papers.uec.studies.recorded [--csv FILE] [--seed 1]

The command takes the simulator's figures from `measured/recorded_cases.csv`, runs the scenarios,
and fails if a row deviates by more than README.md (U14) allows.
With 1,024 hosts a run takes some 10 s and 0.6 GB; there are 18 of them.
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

TAIL = 0.05  # largest relative difference of the last flow's end
SENT_AGAIN = 1.5  # largest ratio of the numbers of resent packets
FEW = 1e-3  # below this share of all packets the ratio is not checked
# With one path for each flow, chance decides whether the most loaded link carries five flows or
# six. So the end of the last flow varies by the time of one flow at 100 Gb/s.
CHANCE_US = {"V13": 163.0}
# How much later the simulator ends with our time-out of 400 us than with its own of 100 us: at a
# median of 9,094 us.
TIME_OUT_US = {("V5", "both"): 291.0}


def rows(seed: int) -> pd.DataFrame:
    """Return the table of the simulator's figures with our figures for this seed."""
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


def deviations(table: pd.DataFrame) -> dict[str, str]:
    """Return a description of each row that deviates by more than the limits, by case and protocol."""
    found = {}
    for row in table.to_dict("records"):
        expected_us = row["simulator_last_us"] + TIME_OUT_US.get((row["simulator_case"], row["protocol"]), 0.0)
        allowed_us = TAIL * row["simulator_last_us"] + CHANCE_US.get(row["simulator_case"], 0.0)
        fewer, more = sorted((row["sent_again"], row["simulator_sent_again"]))
        texts = []
        if abs(row["last_us"] - expected_us) > allowed_us:
            texts.append(f"ends at {row['last_us']} us, the simulator at {row['simulator_last_us']} us")
        if more > SENT_AGAIN * fewer and more > FEW * row["packets"]:
            texts.append(f"{row['sent_again']} packets sent again, {row['simulator_sent_again']} there")
        if texts:
            found[f"{row['simulator_case']}, {row['protocol']}"] = "; ".join(texts)
    return found


@click.command()
@click.option("--csv", "csv_file", type=click.Path(path_type=Path), help="Write the table.")
@click.option("--seed", default=1, show_default=True)
def main(csv_file: Path | None, seed: int) -> None:
    """Execute the runs, print their table, and fail if a row deviates."""
    table = rows(seed)
    click.echo(table.to_string(index=False))
    found = [f"{row}: {text}" for row, text in deviations(table).items()]
    if found:
        raise click.ClickException("; ".join(found))
    if csv_file is not None:
        table.to_csv(csv_file, index=False)


if __name__ == "__main__":
    main()
