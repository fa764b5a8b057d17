"""The fluid model of sampling frequency: two flows that only decrease, once in s ACKs or once in an RTT.

    python -m papers.fairness.studies.fig4 [--csv FILE] [--plot FILE]

"Fast Convergence to Fairness" (Snyder and Lebeck), IV-B and figure 4; thesis, 4.1.2 and figure 4.2. With a decrease
per s ACKs, S' = -beta S^2 / (s MTU). With one per RTT, R' = -beta R / r. Both have closed solutions. The difference of
two rates measures their unfairness. Rates are in bytes per ns, and times in ns.
"""

from __future__ import annotations

from pathlib import Path

import click
import matplotlib as mpl
import numpy as np
from matplotlib import pyplot
from numpy.typing import NDArray

Array = NDArray[np.float64]

# Figure 4.
RTT_NS = 30_000.0
MTU_BYTES = 1_000.0
ACKS = 30.0
BETA = 0.5
RATES = (12.5, 6.25)  # 100 and 50 Gb/s
SPAN_NS = 600_000


def per_acks(rate: float, times_ns: Array, acks: float = ACKS, mtu_bytes: float = MTU_BYTES) -> Array:
    """Return S(t) of a flow that starts with `rate` and decreases once in `acks` ACKs."""
    return rate / (1 + BETA * rate * times_ns / (acks * mtu_bytes))


def per_rtt(rate: float, times_ns: Array, rtt_ns: float = RTT_NS) -> Array:
    """Return R(t) of a flow that starts with `rate` and decreases once in an RTT."""
    return rate * np.exp(-BETA * times_ns / rtt_ns)


def table(times_ns: Array) -> dict[str, Array]:
    """Return the difference of both flows' rates by kind of decrease, and the disadvantage per RTT (eq. 2)."""
    high, low = RATES
    rtt = per_rtt(high, times_ns) - per_rtt(low, times_ns)
    acks = per_acks(high, times_ns) - per_acks(low, times_ns)
    return {"time_ns": times_ns, "per_rtt": rtt, "per_acks": acks, "advantage": rtt - acks}


def time_to(part: float, times_ns: Array, difference: Array) -> float:
    """Return the time, in ns, at which the difference has fallen to a share of its first value."""
    return float(times_ns[np.argmax(difference <= part * difference[0])])


def plot(columns: dict[str, Array], file: Path) -> None:
    mpl.use("Agg")
    figure, axes = pyplot.subplots(figsize=(5, 3), layout="constrained")
    axes.plot(columns["time_ns"] / 1e3, columns["advantage"])
    axes.set(xlabel="time (µs)", ylabel="difference of fairness (B/ns)")
    figure.savefig(file)


@click.command()
@click.option("--csv", type=click.Path(dir_okay=False, path_type=Path), help="Write the curves here.")
@click.option("--plot", "plot_file", type=click.Path(dir_okay=False, path_type=Path), help="Draw figure 4 here.")
def main(csv: Path | None, plot_file: Path | None) -> None:
    """Print the fairness of each kind of decrease over time, with the parameters of figure 4."""
    columns = table(np.arange(0, SPAN_NS + 1, 100, dtype=float))
    times_ns, advantage = columns["time_ns"], columns["advantage"]
    click.echo(f"1/r {1 / RTT_NS:.2e} < (C1 + C0) / (s MTU) {sum(RATES) / (ACKS * MTU_BYTES):.2e}: per ACKs is faster")
    for part in (0.5, 0.1, 0.01):
        ends = [time_to(part, times_ns, columns[kind]) / 1e3 for kind in ("per_acks", "per_rtt")]
        click.echo(
            f"difference down to {part:.0%} after {ends[0]:.1f} us per {ACKS:.0f} ACKs, {ends[1]:.1f} us per RTT"
        )
    best = int(np.argmax(advantage))
    click.echo(f"largest advantage {advantage[best]:.2f} B/ns after {times_ns[best] / 1e3:.1f} us")
    if csv is not None:
        rows = np.column_stack(list(columns.values()))
        np.savetxt(csv, rows, delimiter=",", header=",".join(columns), comments="", fmt="%.6g")
    if plot_file is not None:
        plot(columns, plot_file)


if __name__ == "__main__":
    main()
