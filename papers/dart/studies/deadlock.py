"""Dart's lanes with tiny buffers: how many random loads end in a deadlock, and whether any packet is lost.

    python -m papers.dart.studies.deadlock [--count 200] [--first 1] [--rule turn --rule none] [--csv FILE]

A load is 60 messages of 8 KiB, which start within 20 us, between random hosts of a Clos network.
Its switches hold a few packets a port. Every packet that may be deflected is deflected, up to seven
times. There is no congestion control, so only PFC limits senders.

With lanes that follow turns all messages have to arrive, and no packet may be lost, dropped or sent
again, although packets change between the classes that PFC pauses. Without a rule for lanes some
loads deadlock.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import pandas as pd

from harness.plan.scenario import check

RULES = ("turn", "none")
HOSTS = 8


@dataclass(frozen=True)
class Outcome:
    seed: int
    rule: str
    ended: str  # reason of the run's end: "done", "deadlock" ...
    changed: int  # packets in the second lane, counted at each switch
    dropped: int  # number of packets, including acknowledgements
    waiting: int  # number of packets in switches and on links at the end, including acknowledgements
    again: int  # data packets that were sent again

    @property
    def whole(self) -> bool:
        """True if every packet arrived at its first sending."""
        return self.ended == "done" and self.dropped == self.waiting == self.again == 0


def tables(seed: int, rule: str) -> dict[str, Any]:
    """Return the scenario of a seed."""
    rng = random.Random(seed)
    flows = []
    for i in range(60):
        source, destination = rng.sample(range(HOSTS), 2)
        ends = {"source": source, "destination": destination}
        flows.append({"name": f"message {i}", **ends, "start_ns": rng.randrange(20_000), "size_bytes": 8_192})
    return {
        "cc": "dart",
        "seeds": seed,
        "limit_ns": 5_000_000,  # less than the time-out, so that lost packets are not sent again
        "topology": {
            "name": "clos",
            "pods": 2,
            "tors_per_pod": 2,
            "hosts_per_tor": 2,
            "aggs_per_pod": 2,
            "spines_per_agg": 2,
            "link_rate_bps": 10e9,
            "fabric_rate_bps": 10e9,
            "link_delay_ns": 1000,
        },
        "workload": {"name": "streams", "flows": flows},
        # This is the least sufficient headroom: two delays, the frame that exceeds the threshold, a
        # frame that is being sent at either end, and the pause frame. It leaves 25 KB, of which a
        # port may hold an eighth in a class.
        "switch": {
            "buffer_bytes": 94_000,
            "pfc": {"headroom_delays": 2.0, "headroom_frames": 4, "xon_gap_bytes": 0},
        },
        "nic": {"mtu_bytes": 1460},
        "protocols": {"dart": {"apportion": False, "fall_back": False, "tokens": 7, "first_window_bdp": 0.0}},
        "programs": {"dart": {"threshold_bytes": 0, "lane_rule": rule}},
        "record": {"queue_interval_ns": 0, "rate_interval_ns": 0},
    }


def measure(seed: int, rule: str) -> Outcome:
    from harness.plan.resolve import plan
    from harness.worlds.virtual import VirtualWorld

    (run,) = plan("dart-deadlock", check(tables(seed, rule)), Path())
    recording = VirtualWorld(run).run()
    queues = recording.queue_stats
    second = queues["priority"] == run.lossless_priorities[1]
    ledger = recording.conservation
    return Outcome(
        seed,
        rule,
        ended=recording.ended,
        changed=int(queues["enqueued_packets"][second].sum()),
        dropped=sum(count for name, count in ledger.items() if name.startswith("drop_")),
        waiting=ledger["queued"] + ledger["on_wire"],
        again=sum(record.columns["retransmitted"] for record in recording.flows),
    )


def summary(outcomes: Sequence[Outcome]) -> str:
    stuck = [outcome for outcome in outcomes if outcome.ended == "deadlock"]
    whole = [outcome for outcome in outcomes if outcome.whole]
    text = f"{len(stuck)} of {len(outcomes)} loads deadlock, {len(whole)} are delivered without a loss"
    text += f"; {sum(outcome.changed for outcome in outcomes)} packets in the second lane"
    others = [outcome.seed for outcome in outcomes if outcome not in stuck and outcome not in whole]
    return text + (f"; neither: {others}" if others else "")


@click.command()
@click.option("--count", default=200, show_default=True)
@click.option("--first", default=1, show_default=True, help="Seed of the first load.")
@click.option("--rule", "rules", multiple=True, type=click.Choice(RULES), default=RULES, show_default=True)
@click.option("--csv", "csv_file", type=click.Path(path_type=Path), help="Write a row for each load.")
def main(count: int, first: int, rules: tuple[str, ...], csv_file: Path | None) -> None:
    from harness.worlds.native_hosts import use_native_hosts

    use_native_hosts()
    outcomes: list[Outcome] = []
    for rule in rules:
        batch = [measure(seed, rule) for seed in range(first, first + count)]
        click.echo(f"lane_rule {rule}: {summary(batch)}")
        outcomes += batch
    if csv_file:
        pd.DataFrame(outcomes).to_csv(csv_file, index=False)


if __name__ == "__main__":
    main()
