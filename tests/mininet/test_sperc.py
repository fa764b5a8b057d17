"""s-PERC, 1RC and weights on real frames: a parking lot's max-min rates, and figure 5.8 with four senders.

They run in both worlds and, if it is installed, on BMv2. The decisions of switches are checked, but
not their speed.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.measure.results import Result
from papers.max_min import max_min
from tests.margins import QUOTIENT
from tests.mininet.conftest import Both
from tests.mininet.margins import expected
from tests.mininet.networks import needs_bmv2, needs_mininet, run_on

HEADROOM = 0.05
END_NS = 140_000

pytestmark = needs_mininet

PARKING_LOT = f"""
title = "f1 crosses both links between switches, f2 and f3 one each; f4 shares the second"
cc = "sperc"
limit_ns = {2 * END_NS}

[topology]
name = "parking-lot"
switches = 3
hosts_per_switch = 2
link_rate_bps = 10e9
bottleneck_rate_bps = 10e9
link_delay_ns = 1_000

[workload]
name = "streams"
flows = [
    {{ name = "f1", source = 0, destination = 5, stop_ns = {END_NS} }},
    {{ name = "f2", source = 1, destination = 3, stop_ns = {END_NS} }},
    {{ name = "f3", source = 2, destination = 4, stop_ns = {END_NS} }},
    {{ name = "f4", source = 3, destination = 4, stop_ns = {END_NS} }},
]

[record]
rate_interval_ns = 20_000
"""
PATHS = {"f1": ("s0", "s1"), "f2": ("s0",), "f3": ("s1", "to 4"), "f4": ("s1", "to 4")}

FIGURE_8 = """
title = "figure 5.8 with four senders of 60 KB"
cc = "sperc+1rc+weights"

[topology]
name = "single-switch"
hosts = 5
link_rate_bps = 10e9
link_delay_ns = 4_000

[protocols."sperc+1rc+weights"]
"1rc" = { clock_error_ns = 0 }

[workload]
name = "streams"
flows = [
    { name = "v1", source = 1, destination = 0, size_bytes = 60_000 },
    { name = "v2", source = 2, destination = 0, size_bytes = 60_000, start_ns = 4_000 },
    { name = "v3", source = 3, destination = 0, size_bytes = 60_000, start_ns = 8_000 },
    { name = "attacker", source = 4, destination = 0, size_bytes = 60_000, start_ns = 12_000 },
]

[attack]
kind = "staggered"
hosts = [4]

[record]
columns = ["let_through"]
"""


def nothing_is_left(result: Result) -> bool:
    """Return whether the registers were read, and SumE, NumB and the interval are 0."""
    (check,) = [check for check in result.summary["checks"] if "nothing is left" in check["name"]]
    return bool(check["holds"]) and check["detail"] == "0 everywhere"


def test_rates_of_a_parking_lot_are_max_min_in_both_worlds(both: Both, tmp_path: Path) -> None:
    path = tmp_path / "lot.toml"
    path.write_text(PARKING_LOT)
    for (result,) in both(str(path)):
        assert nothing_is_left(result)
        expect_max_min(result)


@needs_bmv2
def test_rates_of_a_parking_lot_are_max_min_on_bmv2(tmp_path: Path) -> None:
    path = tmp_path / "lot.toml"
    path.write_text(PARKING_LOT)
    expect_max_min(run_on("bmv2", str(path), out=tmp_path / "out"))


def expect_max_min(result: Result) -> None:
    ideal = max_min(dict.fromkeys(("s0", "s1", "to 4"), (1 - HEADROOM) * 10e9), list(PATHS.values()))
    names = result.flows.set_index("qp")["group"]
    limits = result.rates.pivot(index="time_ns", columns="qp", values="rate_limit_bps").rename(columns=names.to_dict())
    settled = limits.loc[END_NS - 60_000 : END_NS - 20_000, list(PATHS)]
    for flow, rate in zip(PATHS, ideal, strict=True):
        assert settled[flow].to_numpy(float) == pytest.approx(rate, rel=2 * QUOTIENT), flow


def test_an_attacked_incast_is_the_same_in_both_worlds(both: Both, tmp_path: Path) -> None:
    """Flows take the same time, and the same number of each flow's speculative packets passes."""
    path = tmp_path / "fig8.toml"
    path.write_text(FIGURE_8)
    (virtual,), (mininet,) = both(str(path))
    for result in (virtual, mininet):
        assert result.summary["timeouts"] == 0
        assert result.summary["retransmitted"] == result.summary["drops"]["speculative"] > 0
        assert nothing_is_left(result)
    for flow in virtual.flows["group"]:
        def fct_ns(result: Result, flow: str = flow) -> float:
            return float(result.flows.set_index("group")["fct_ns"].astype(float)[flow])

        low_ns, high_ns = expected([str(path)], mininet, fct_ns)
        assert low_ns <= fct_ns(mininet) <= high_ns
    assert let_through(mininet) == let_through(virtual)
    assert min(let_through(virtual)) >= 1


@needs_bmv2
def test_an_attacked_incast_loses_speculative_packets_alone_on_bmv2(tmp_path: Path) -> None:
    """Each lost packet is retransmitted once."""
    path = tmp_path / "fig8.toml"
    path.write_text(FIGURE_8)
    result = run_on("bmv2", str(path), out=tmp_path / "out")
    assert result.summary["timeouts"] == 0
    assert result.summary["retransmitted"] == result.summary["drops"]["speculative"] > 0
    assert min(let_through(result)) >= 1


def let_through(result: Result) -> list[int]:
    """Return the numbers of speculative packets that pass, by flow and piece."""
    pieces = result.table("pieces").set_index(["flow", "piece"]).sort_index()
    return [int(number) for number in pieces["let_through"]]
