"""s-PERC in the virtual world, through p4src/sperc.p4: rates are max-min, and no state of flows remains."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from harness.measure.results import Result, load_all
from papers.max_min import max_min
from tests.e2e.runs import forked, run
from tests.margins import QUOTIENT, packet_gbps

HEADROOM = 0.05
SCENARIO = """
title = "two parking lots in a row: f1 and f2 share 40 Gb/s between the switches, f3 to f5 have what is left"
cc = ["sperc"]
limit_ns = 2_000_000

[topology]
name = "parking-lot"
switches = 3
hosts_per_switch = 2
link_rate_bps = 100e9
bottleneck_rate_bps = 40e9
link_delay_ns = 500
nic_switches = {nic_switches}

[protocols.sperc]
own_link = {own_link}

[workload]
name = "streams"
flows = [
    {{ name = "f1", source = 0, destination = 5, stop_ns = 600_000 }},
    {{ name = "f2", source = 1, destination = 3, start_ns = 3_000, stop_ns = 300_000 }},
    {{ name = "f3", source = 2, destination = 5, start_ns = 5_000, stop_ns = 600_000 }},
    {{ name = "f4", source = 2, destination = 4, start_ns = 7_000, stop_ns = 600_000 }},
    {{ name = "f5", source = 4, destination = 5, start_ns = 9_000, stop_ns = 600_000 }},
]

[record]
rate_interval_ns = 10_000

[[record.probes]]
kind = "program"
"""

# The links that may bind: the two between switches, in the order of the row, and those of hosts 2, 4 (out), 5 (in).
PATHS = {
    "f1": ("s0", "s1", "to 5"),
    "f2": ("s0",),
    "f3": ("from 2", "s1", "to 5"),
    "f4": ("from 2", "s1"),
    "f5": ("from 4", "to 5"),
}
GBPS = {"s0": 40.0, "s1": 40.0, "from 2": 100.0, "from 4": 100.0, "to 5": 100.0}


@pytest.fixture(scope="module", params=[False, True], ids=["host", "switch"])
def result(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Result:
    """Return the result of a run in which the host, or a switch in the NIC, processes the NIC's own link."""
    folder = tmp_path_factory.mktemp("sperc")
    scenario = folder / "rows.toml"
    in_a_switch = bool(request.param)
    scenario.write_text(SCENARIO.format(nic_switches=str(in_a_switch).lower(), own_link=str(not in_a_switch).lower()))
    (one,) = run(str(scenario))
    return one


def limits_gbps(one: Result, from_us: int, to_us: int) -> pd.DataFrame:
    """Return the smallest and the largest rate limit of each flow, in Gb/s."""
    rates = one.rates.query(f"{from_us * 1000} <= time_ns <= {to_us * 1000}")
    names = one.flows.set_index("qp")["group"]
    return (rates.groupby("qp")["rate_limit_bps"].agg(["min", "max"]) / 1e9).rename(index=names)


@pytest.mark.parametrize(
    ("from_us", "to_us", "flows"),
    [(100, 290, ("f1", "f2", "f3", "f4", "f5")), (390, 590, ("f1", "f3", "f4", "f5"))],
)
def test_rates_are_max_min_and_stay(result: Result, from_us: int, to_us: int, flows: tuple[str, ...]) -> None:
    """Check the rates some round trips after the last change, and after the end of f2.

    The tolerance is that of a quotient of quotients.
    """
    capacity = {link: (1 - HEADROOM) * gbps for link, gbps in GBPS.items()}
    ideal = dict(zip(flows, max_min(capacity, [PATHS[flow] for flow in flows]), strict=True))
    found = limits_gbps(result, from_us, to_us)
    for flow, rate in ideal.items():
        assert found.loc[flow, "min"] == pytest.approx(rate, rel=2 * QUOTIENT), flow
        assert found.loc[flow, "max"] == pytest.approx(rate, rel=2 * QUOTIENT), flow


def test_nothing_is_left_of_flows_that_have_ended(result: Result) -> None:
    assert result.summary["ended"] == "done"
    assert sum(result.summary["drops"].values()) == 0
    state = result.table("program_state")
    registers = set(state[state["kind"] == "register"]["object"])
    assert "round_end_of" in registers  # links have processed control packets
    assert not registers & {"sum_e_of", "num_b_of", "interval_of"}


OUTAGE = """
title = "a link fails in the way of a flow, whose host sends to a neighbour later"
cc = ["sperc", "sperc+1rc+weights"]
limit_ns = 4_000_000

[topology]
name = "leaf-spine"
spines = 1
hosts_per_leaf = 2
link_rate_bps = 10e9
fabric_rate_bps = 10e9

[workload]
name = "streams"
flows = [
    { name = "over", source = 0, destination = 2, stop_ns = 4_000_000 },
    { name = "near", source = 0, destination = 1, start_ns = 3_000_000, stop_ns = 4_000_000 },
]

[record]
rate_interval_ns = 100_000

[[variants]]
name = "never"

[[variants]]
name = "for 100 us"
set = { events = [{ time_ns = 500_000, link = ["leaf1", "spine0"], up = false }, \
{ time_ns = 600_000, link = ["leaf1", "spine0"], up = true }] }

[[variants]]
name = "for 1 ms"
set = { events = [{ time_ns = 500_000, link = ["leaf1", "spine0"], up = false }, \
{ time_ns = 1_500_000, link = ["leaf1", "spine0"], up = true }] }
"""


def test_after_an_outage_hosts_are_as_fast_as_without(tmp_path: Path) -> None:
    scenario = tmp_path / "outage.toml"
    scenario.write_text(OUTAGE.replace("\\\n", ""))
    gbps: dict[str, dict[str, dict[str, float]]] = {}
    for one in run(str(scenario)):
        names = one.flows.set_index("qp")["group"]
        for when in ("2_000_000 < time_ns <= 3_000_000", "3_200_000 < time_ns <= 3_900_000"):
            means = one.rates.query(when).groupby("qp")["throughput_bps"].mean() / 1e9
            outage = one.summary["variant"].rpartition(", ")[2]
            gbps.setdefault(f"{one.summary['protocol']}, {when}", {})[outage] = means.rename(index=names).to_dict()
    for measured in gbps.values():
        usual = measured.pop("never")
        assert usual["over"] > 4.5
        either_count = 2 * packet_gbps(700e3)  # of the shorter interval
        assert measured == {outage: pytest.approx(usual, abs=either_count) for outage in ("for 100 us", "for 1 ms")}


def test_what_an_outage_leaves_behind_is_told_and_is_no_error(tmp_path: Path) -> None:
    """Check a flow that starts while a link is down.

    The switch before the link has counted the flow, and gets no message about its end.
    """
    scenario = tmp_path / "outage.toml"
    text = OUTAGE.replace("4_000_000", "900_000").replace("3_000_000", "550_000").replace("\\\n", "")
    scenario.write_text(text.replace('name = "over",', 'name = "over", start_ns = 520_000,'))
    options = ["--set", 'cc="sperc"', "--set", "limit_ns=3_000_000", "--out", str(tmp_path / "out")]
    done = forked("run", str(scenario), *options)
    assert done.returncode == 0, done.stderr
    told = "a link was down, and flows that have ended left num_b_of of spine0: 1048576, interval_of of spine0: "
    assert told in done.stderr
    summaries = {found.summary["variant"]: found.summary for found in load_all(tmp_path / "out")}
    assert "residue" not in summaries["never"]
    assert summaries["for 100 us"]["residue"].keys() == {
        f"{register}_of of {switch}" for register in ("num_b", "interval") for switch in ("leaf0", "spine0")
    }
    assert told in (tmp_path / "out" / "report.html").read_text()
