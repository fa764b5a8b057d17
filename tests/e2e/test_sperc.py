"""s-PERC in virtual time, through p4src/sperc.p4: max-min rates, and nothing left behind."""

from __future__ import annotations

import pandas as pd
import pytest

from harness.measure.max_min import max_min
from harness.measure.results import Result
from tests.e2e.runs import run

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
    """A run; the NIC's own link is the host's to process, or that of a switch in the NIC."""
    folder = tmp_path_factory.mktemp("sperc")
    scenario = folder / "rows.toml"
    in_a_switch = bool(request.param)
    scenario.write_text(SCENARIO.format(nic_switches=str(in_a_switch).lower(), own_link=str(not in_a_switch).lower()))
    (found,) = run(str(scenario))
    return found


def limits_gbps(found: Result, from_us: int, to_us: int) -> pd.DataFrame:
    """Smallest and largest rate limit of each flow."""
    rates = found.rates.query(f"{from_us * 1000} <= time_ns <= {to_us * 1000}")
    names = found.flows.set_index("qp")["group"]
    return (rates.groupby("qp")["rate_limit_bps"].agg(["min", "max"]) / 1e9).rename(index=names)


@pytest.mark.parametrize(
    ("from_us", "to_us", "flows"),
    [(100, 290, ("f1", "f2", "f3", "f4", "f5")), (390, 590, ("f1", "f3", "f4", "f5"))],
)
def test_rates_are_max_min_and_stay(result: Result, from_us: int, to_us: int, flows: tuple[str, ...]) -> None:
    """Within 1% from some round trips after the last change on; f2's end is one."""
    capacity = {link: (1 - HEADROOM) * gbps for link, gbps in GBPS.items()}
    ideal = dict(zip(flows, max_min(capacity, [PATHS[flow] for flow in flows]), strict=True))
    found = limits_gbps(result, from_us, to_us)
    for flow, rate in ideal.items():
        assert found.loc[flow, "min"] == pytest.approx(rate, rel=0.01), flow
        assert found.loc[flow, "max"] == pytest.approx(rate, rel=0.01), flow


def test_nothing_is_left_of_flows_that_have_ended(result: Result) -> None:
    assert result.summary["ended"] == "done"
    assert sum(result.summary["drops"].values()) == 0
    state = result.table("program_state")
    registers = set(state[state["kind"] == "register"]["object"])
    assert "round_end_of" in registers  # links have been asked
    assert not registers & {"sum_e_of", "num_b_of", "interval_of"}
