"""Chapter 3's attacks in small runs: shares of a link by scope of congestion control."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from harness.measure.results import Result, load_all
from harness.plan import scenario
from reports.figures import figures
from reports.figures.isolation_matrix import gains, penalties
from reports.groups import compare
from tests.margins import packet_gbps

# Small versions of built-in scenarios: some of their variants, and the keys that are changed.
FIG9 = ("4, per QP", "4, per destination", "16, no CC")
FIG10 = ("staggered", "parallel", "staggered, ECN at 8 KB")
STREAMS = [{"name": str(i), "source": i, "destination": i + 2, "stop_ns": 2_000_000} for i in range(2)]
AGAINST = [
    {"name": "attacker", "source": 0, "destination": 2, "start_ns": 300_000, "size_bytes": 1_125_000},
    {"name": "victim", "source": 1, "destination": 3, "stop_ns": 600_000},
]
TESTBED = {
    "cc": "dcqcn-connectx",
    "attack.gap_ns": 4_050,
    "protocols": {"dcqcn-connectx": {"cnp_delay_ns": 15_000, "cnp_limit": "flow"}},
}
SHORT = {"workload.duration_ns": 300_000, "seeds": 1, "record.rate_interval_ns": 10_000}
RATES = ("topology.link_rate_bps", "topology.bottleneck_rate_bps")
TWINS: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "isolation-fig9": (FIG9, {"workload.flows": STREAMS, **dict.fromkeys(RATES, 10e9)}),
    "isolation-fig10": (FIG10, {"workload.flows": AGAINST}),
    "isolation-fig10 by the testbed's NICs": (("staggered, alone", *FIG10), {"workload.flows": AGAINST, **TESTBED}),
    "isolation-fig11": (
        ("no attack", "parallel", "staggered"),
        {"topology": {"name": "single-switch", "hosts": 8}, "workload.duration_ns": 2_000_000, "workload.load": 0.7},
    ),
    "isolation-fig12": (
        ("per QP", "per pair"),
        {"topology": {"name": "single-switch", "hosts": 4}, "workload.duration_ns": 2_000_000},
    ),
    "isolation-matrix": (
        ("none", "parallel", "shuffled at once"),
        SHORT,
    ),
    "isolation-matrix by pair": (("none", "parallel"), {**SHORT, "nic": {"cc_scope": "pair"}}),
}
RUN = """
import json, sys, p4cc
for tables, folder in json.load(sys.stdin):
    p4cc.run(tables, out=folder)
"""


def twin(name: str) -> dict[str, Any]:
    """Return the tables of a small scenario, which `TWINS` describes."""
    variants, changes = TWINS[name]
    tables = scenario.read(scenario.find(name.partition(" ")[0]))
    tables["variants"] = [variant for variant in tables["variants"] if variant["name"] in variants]
    for key, value in changes.items():
        *above, last = key.split(".")
        table = tables
        for part in above:
            table = table[part]
        table[last] = value
    return tables


@cache
def results(name: str) -> dict[str, Result]:
    """Return results by variant; one process with compiled hosts makes all runs."""
    return {result.summary["variant"]: result for result in load_all(all_twins() / name)}


@cache
def all_twins() -> Path:
    folder = TemporaryDirectory()
    _folders.append(folder)
    asked = json.dumps([(twin(name), str(Path(folder.name) / name)) for name in TWINS])
    done = subprocess.run([sys.executable, "-c", RUN], input=asked, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return Path(folder.name)


_folders: list[TemporaryDirectory[str]] = []  # removed when the tests are over


def found(result: Result) -> dict[str, Any]:
    isolation: dict[str, Any] = result.summary["isolation"]
    return isolation


def test_a_parallel_attack_gains_by_queue_pairs_and_nothing_by_turns_of_ports() -> None:
    """Check figure 3.9 with 2 ms at 10 Gb/s.

    If ports take turns, attackers and victims differ by at most a packet.
    """
    share = {name: found(result)["attackers_share"] for name, result in results("isolation-fig9").items()}
    assert share["16, no CC"] == pytest.approx(0.5, abs=packet_gbps(2e6) / 10)
    assert round(share["4, per QP"] / (1 - share["4, per QP"])) == 4
    assert 0.5 < share["4, per destination"] < share["4, per QP"]


def test_a_staggered_attack_beats_a_parallel_one() -> None:
    """Check figure 3.10, against a flow that has used the link alone for 0.3 ms."""
    rates = {name: found(r)["attackers"]["flow_rate_bps"] / 1e9 for name, r in results("isolation-fig10").items()}
    assert 55 < rates["staggered"] < 75
    assert rates["parallel"] < 0.6 * rates["staggered"]
    assert rates["staggered, ECN at 8 KB"] > rates["staggered"] + 5


def test_the_testbeds_nics_give_the_staggered_attack_the_thesis_rates() -> None:
    """Check claim I2 with figure 3.10 and the README's settings; the thesis has 74, 60 and 74 Gb/s.

    The thesis rounds 74 Gb/s and says "about 60". A tolerance of 5% is less than half of the
    distance to 70 Gb/s, which other settings give.
    """
    results_by_variant = results("isolation-fig10 by the testbed's NICs")
    rates = {name: found(r)["attackers"]["flow_rate_bps"] / 1e9 for name, r in results_by_variant.items()}
    assert rates["staggered, alone"] == pytest.approx(74, abs=0.5)
    assert rates["staggered"] == pytest.approx(60, rel=0.05)
    assert rates["staggered, ECN at 8 KB"] > 0.98 * rates["staggered, alone"]
    assert rates["parallel"] < 0.6 * rates["staggered"]


def test_breaking_up_long_flows_costs_short_ones() -> None:
    """Check figure 3.11 on a rack of 8 hosts: the tail of flows of up to 25 KB."""
    worst = {
        name: result.flows.query("role == 'victim' and size_bytes <= 25_000")["slowdown"].quantile(0.99)
        for name, result in results("isolation-fig11").items()
    }
    assert worst["parallel"] > 1.3 * worst["no attack"]
    assert worst["staggered"] > 1.3 * worst["no attack"]


def test_a_short_flow_pays_for_the_pairs_window() -> None:
    """Check figure 3.12 on a rack of 4 hosts, where new flows mostly find an existing pair."""
    slow = {
        name: result.flows.query("20_000 <= size_bytes <= 110_000")["slowdown"].quantile(0.99)
        for name, result in results("isolation-fig12").items()
    }
    assert slow["per pair"] > 1.2 * slow["per QP"]
    (comparison,) = compare(list(results("isolation-fig12").values()))
    shown = figures(comparison)["short-flow-penalty"].plot(comparison).axes[0]
    (penalty,) = penalties(comparison.results)["pair"]
    assert penalty > 1.2
    assert [text.get_text() for text in shown.texts] == [f"{penalty:.2f}"]


def test_the_matrix_tells_secure_from_vulnerable() -> None:
    """Check table 3.2: attacks gain with scope `qp`, and parallel ones gain nothing with scope `pair`."""
    of_qps, of_pairs = (list(results(name).values()) for name in ("isolation-matrix", "isolation-matrix by pair"))
    table = gains(of_qps + of_pairs)
    assert list(table.index) == [("dcqcn", "qp"), ("dcqcn", "pair")]
    assert (table.loc[("dcqcn", "qp")] >= 1.2).all()
    assert table.loc[("dcqcn", "pair"), "parallel"] < 1.1
    (comparison,) = compare(of_qps)
    shown = figures(comparison)["isolation-matrix"].plot(comparison).axes[0]
    assert [text.get_text() for text in shown.texts] == [f"{gain:.2f}" for gain in table.iloc[0]]


def test_shares_and_the_victims_slowdown_are_drawn() -> None:
    for name, figure in (("isolation-fig9", "isolation"), ("isolation-fig11", "victims")):
        (comparison,) = compare(list(results(name).values()))
        axes = figures(comparison)[figure].plot(comparison).axes[0]
        assert len(axes.lines) + len(axes.patches) >= len(comparison.variants)
