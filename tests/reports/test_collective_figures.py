"""Collectives in a report and on a sweep's page: figures of hand-made results."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from harness.measure.results import Result
from harness.plan import scenario
from reports.claims import Number, claims
from reports.figure_data import figure_table
from reports.figures.collectives import Collectives
from reports.groups import Comparison, compare
from reports.page import _ROWS, _rows_of_part, table
from reports.quantities import At
from reports.sweep_page import Entry, write_sweep

FLOWS = pd.DataFrame({"size_bytes": pd.Series(dtype=int), "fct_ns": pd.Series(dtype=float)})


def made(
    protocol: str, variant: str, bandwidths: tuple[float, ...], mean: float, seed: int = 1, claimed: Sequence[str] = ()
) -> Result:
    """Return a run with an application for each bandwidth; the longest latency is twice the mean."""
    latencies = {"mean": mean, "median": mean - 100, "max": 2 * mean, "mean_of_hosts": mean, "waited": 0.0}
    whole = {"operations": 10, "unanswered": 0, "repeats": 0, "cycles": 100.0}
    of_each = [
        {"kind": kind, **whole, "effective_bandwidth": value, "latency_cycles": latencies}
        for kind, value in zip(("all_reduce", "all_gather", "all_gather"), bandwidths, strict=False)
    ]
    summary: dict[str, Any] = {
        "scenario": "collective",
        "title": "collectives",
        "protocol": protocol,
        "variant": f"{protocol}, {variant}",
        "seed": seed,
        "ended": "done",
        "bottleneck": None,
        "drops": {},
        "pfc": {"pauses_sent": 0},
        "workload": {**of_each[0], "applications": of_each},
        **dict.fromkeys(("flows", "flows_delivered", "packets_sent", "retransmitted", "timeouts"), 0),
        **dict.fromkeys(("last_delivery_ns", "goodput_bps")),
    }
    result = Result(Path("nowhere"), summary, {"flows": FLOWS})
    result.__dict__.update(claims=list(claimed), probes=[])
    return result


def compared(*results: Result) -> Comparison:
    (comparison,) = compare(results)
    return comparison


def shown(comparison: Comparison, series: str) -> list[float]:
    """Return the values of a series of the figure, from left to right."""
    drawn = figure_table(Collectives().plot(comparison))
    return [float(y) for y in drawn[drawn["series"] == series]["y"]]


def test_protocols_stand_side_by_side_in_each_setting() -> None:
    comparison = compared(
        *(made("collective-none", f"{n} initiators", (n / 64,), 1000 * n) for n in (16, 64)),
        *(made("3cpo", f"{n} initiators", (1.5,), 1500, seed) for n in (16, 64) for seed in (1, 2)),
    )
    figure = Collectives().plot(comparison)
    assert [label.get_text() for label in figure.axes[1].get_xticklabels()] == ["16 initiators", "64 initiators"]
    assert shown(comparison, "collective-none") == [0.25, 1.0]
    assert shown(comparison, "3cpo") == [1.5, 1.5]
    numbers = figure_table(figure)
    for series in ("collective-none", "3cpo", "3cpo: longest"):
        assert numbers[numbers["series"] == series]["x"].tolist() == ["16 initiators", "64 initiators"]
    assert shown(comparison, "collective-none: mean") == [16_000, 64_000]
    assert shown(comparison, "collective-none: median") == [15_900, 63_900]
    assert shown(comparison, "3cpo: longest") == [3000, 3000]
    assert shown(comparison, "paper") == []
    assert "paper" not in Collectives().caption(comparison)


def test_applications_of_a_run_are_told_apart() -> None:
    comparison = compared(made("3cpo", "together", (1.9, 1.1, 1.2), 1500))
    places = [label.get_text() for label in Collectives().plot(comparison).axes[1].get_xticklabels()]
    assert places == ["together: all-reduce", "together: all-gather 2", "together: all-gather 3"]
    assert shown(comparison, "3cpo") == [1.9, 1.1, 1.2]


def test_the_table_has_nothing_of_flows_where_there_are_none() -> None:
    rows = dict(table(compared(made("3cpo", "x", (1.9,), 100)).variants, {})).keys()
    assert "effective bandwidth" in rows
    assert not rows & {"flows delivered", "packets sent", "retransmitted", "packets ECN-marked"}


def test_nothing_is_drawn_of_runs_in_which_nothing_was_answered() -> None:
    result = made("3cpo", "x", (1.0,), 100)
    result.summary["workload"]["applications"][0]["effective_bandwidth"] = None
    assert not Collectives().fits(compared(result))
    result.summary["workload"] = {}
    assert not Collectives().fits(compared(result))


def test_the_papers_numbers_stand_beside_ours() -> None:
    """Check M4's latency of reads, and M2's bandwidth and its latency "under 3,100"."""
    claimed = ("M2", "M4")
    comparison = compared(
        made("collective-none", "reads", (1.1,), 72_000, claimed=claimed),
        made("collective-window", "64 initiators", (1.9,), 1800, claimed=claimed),
    )
    assert sorted(shown(comparison, "paper")) == [2, 3100, 5000, 140_000]
    assert "the paper's numbers" in Collectives().caption(comparison)
    rows = dict(table(comparison.variants, claims()["M4"].paper))
    assert [(cell.text, cell.paper) for cell in rows["latency of operations: mean (cycles)"]] == [
        ("72,000", "140,000"),
        ("1,800", None),
    ]


@pytest.mark.parametrize(
    ("number", "scale", "text"),
    [
        (Number(74e9, 74e9), 1e-9, "74"),
        (Number(1300, 1600), 1, "1,300 to 1,600"),
        (Number(None, 4e9), 1e-9, "under 4"),
        (Number(0.5, None), 100, "over 50"),
    ],
)
def test_a_papers_number_is_written_in_the_rows_unit(number: Number, scale: float, text: str) -> None:
    assert number.written(scale) == text


def test_the_papers_numbers_are_of_variants_and_rows_that_there_are() -> None:
    """Check that each number belongs to a variant of the claim's scenario and a row of the table."""
    variants: dict[str, set[str]] = {}
    usual = {row.figure.key for row in _ROWS if isinstance(row.figure, At)}
    rows: defaultdict[str, set[str]] = defaultdict(lambda: set(usual))
    for path in scenario.built_in().values():
        checked = scenario.check(scenario.read(path))
        of_sizes = [row.figure for size in checked.record.sizes for row in _rows_of_part("sizes", size.name)]
        for claim in checked.claims:
            rows[claim] |= {figure.key for figure in of_sizes if isinstance(figure, At)}
        for variant in checked.variants:
            names = {variant.name, *(f"{cc}, {variant.name}" for cc in checked.cc)}
            for claim in checked.claims:
                variants.setdefault(claim, set()).update(names)
    numbers = {name: claim.paper for name, claim in claims().items() if claim.paper}
    assert {"I2", "R5", "M2", "M4", "M6"} <= set(numbers)
    for name, paper in numbers.items():
        assert set(paper) <= variants[name], name
        assert {key for of_variant in paper.values() for key in of_variant} <= rows[name], name


def test_a_sweep_of_collectives_has_bandwidths_and_latencies(tmp_path: Path) -> None:
    entries = [
        Entry({"workload.order": order, "workload.spread": 0}, name, made(protocol, "", (bandwidth,), 1500.25, seed))
        for name, protocol, bandwidth in (("none", "collective-none", 1.25), ("3CPO", "3cpo", 1.75))
        for order in ("fifo", "random")
        for seed in (1, 2)
    ]
    write_sweep(tmp_path, "starts", list(entries[0].values), entries)
    drawn = pd.read_csv(tmp_path / "plots" / "collectives.csv")
    assert drawn[drawn["series"] == "3cpo"]["y"].tolist() == [1.75, 1.75]  # one a setting: seeds are together
    runs = pd.read_csv(tmp_path / "runs.csv")
    assert runs["effective_bandwidth"].tolist() == [1.25] * 4 + [1.75] * 4
    page = (tmp_path / "sweep.html").read_text()
    assert page.count("<svg") == 1
    assert "order random" in page
    assert "spread 0" not in page  # it is the same in all
    assert "<td>1,500.25</td>" in page
    assert "Flow completion times" not in page
