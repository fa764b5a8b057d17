"""Probes: their values in the virtual world, the run that they do not change, and invalid ones."""

from __future__ import annotations

import re
from dataclasses import astuple
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from harness.columns.traffic_manager import PORT, PRIORITY
from harness.measure import results
from harness.measure.recording import Recording
from harness.plan.resolve import plan
from harness.plan.run import Run
from harness.plan.scenario import check, parse
from harness.worlds.virtual import VirtualWorld
from p4switch.errors import UserError
from reports.figures import REGISTRY, Figure, figures
from reports.groups import Comparison, compare

MEASUREMENTS = Path(__file__).parents[3] / "docs" / "measurements.md"
PROBES: list[dict[str, Any]] = [
    {"kind": "register", "reads": "fsr_of", "name": "shares", "interval_ns": 20_000},
    {"kind": "counter", "reads": "ecn_marked", "name": "marked"},
    {"kind": "counter", "reads": "SwitchEgress.stage.ecn_marked", "name": "marks", "interval_ns": 7_000},
    {"kind": "reaction_point", "reads": "alpha", "name": "alpha", "interval_ns": 10_000, "hosts": "h0-0-[34]"},
    {"kind": "queue", "name": "waiting", "interval_ns": 5_000, "leads_to": "h0-0-2"},
    {"kind": "queue", "name": "data", "priority": 3, "interval_ns": 5_000},
    {"kind": "queue", "name": "sent", "reads": "tx_packets"},
]


def planned(cc: str | list[str] = "dcqcn", probes: list[dict[str, Any]] | None = None) -> list[Run]:
    tables = {
        "cc": cc,
        "limit_ns": 2_000_000,
        "topology": {"name": "single-switch", "hosts": 4, "link_rate_bps": 10e9},
        "workload": {"name": "incast", "senders": 3, "size_bytes": 100_000},
        "record": {"probes": PROBES if probes is None else probes},
    }
    return plan("x", check(tables), Path())


@cache
def recorded(cc: str = "dcqcn") -> tuple[Run, Recording]:
    run = planned(["dcqcn", "accurate"])[0 if cc == "dcqcn" else 1]
    return run, VirtualWorld(run).run()


def test_a_run_has_the_tables_that_its_program_and_its_protocol_have_something_for() -> None:
    run, recording = recorded()
    assert [probe.name for probe in run.probes] == ["marked", "marks", "alpha", "waiting", "data", "sent"]
    assert set(recording.tables) == {"rates", "links", *(probe.name for probe in run.probes)}
    run, recording = recorded("accurate")
    assert "shares" in recording.tables
    assert "alpha" not in recording.tables


def test_queues_are_those_that_are_always_recorded() -> None:
    _, recording = recorded()
    waiting = recording.tables["waiting"]
    assert list(waiting.columns) == ["time_ns", "switch", "port", "leads_to", "depth_bytes"]
    queues = recording.series["queues"].table().query("leads_to == 'h0-0-2' and time_ns % 5000 == 0")
    assert waiting["depth_bytes"].max() > 10_000
    assert waiting["depth_bytes"].tolist() == queues["depth_bytes"].tolist()
    # What waits for that host is data, and nothing else is of that priority.
    assert recording.tables["data"]["depth_bytes"].tolist() == waiting["depth_bytes"].tolist()


def test_every_quantity_that_is_declared_is_the_traffic_managers() -> None:
    _, recording = recorded()
    assert set(PORT.names) <= recording.port_stats.keys()
    assert set(PRIORITY.names) <= recording.queue_stats.keys()
    (line,) = [line for line in MEASUREMENTS.read_text().splitlines() if line.startswith("| `queue` | `switch`")]
    assert re.findall(r"`(\w+)`", line)[4:] == [*PORT.names, "priority", *PRIORITY.names]


def test_counts_at_the_end_are_the_run_s() -> None:
    _, recording = recorded()
    marked = sum(record.columns["marked"] for record in recording.flows)
    assert marked > 0
    assert recording.tables["marked"]["packets"].tolist() == [marked]
    sent = recording.tables["sent"].set_index("leads_to")["tx_packets"]
    assert sent["h0-0-2"] == sum(record.columns["packets_sent"] for record in recording.flows)


def test_a_counter_over_time_grows_to_what_it_is_at_the_end() -> None:
    _, recording = recorded()
    marks = recording.tables["marks"]
    assert marks["time_ns"].tolist() == list(range(0, recording.end_ns + 1, 7_000))
    assert marks["packets"].is_monotonic_increasing
    assert 0 < marks["packets"].iloc[-1] <= recording.tables["marked"]["packets"].sum()


def test_a_register_is_what_the_protocol_obeys() -> None:
    _, recording = recorded("accurate")
    shares = recording.tables["shares"].query("index == 1 and 100_000 <= time_ns <= 200_000")
    rates = recording.tables["rates"].query("100_000 <= time_ns <= 200_000")
    assert len(shares) == 6
    assert set(shares["value"] * 1000) == set(rates["rate_limit_bps"])  # it is in kb/s


def test_an_attribute_is_read_while_a_connection_sends() -> None:
    _, recording = recorded()
    alpha = recording.tables["alpha"]
    assert set(alpha["host"]) == {"h0-0-3", "h0-0-4"}
    assert alpha["alpha"].between(0, 1).all()
    assert alpha["alpha"].nunique() > 3
    done_ns = {record.qp: record.completed_ns for record in recording.flows}
    assert (alpha["time_ns"] <= alpha["qp"].map(done_ns)).all()


def test_probes_change_nothing() -> None:
    _, probed = recorded()
    (run,) = planned(probes=[])
    plain = VirtualWorld(run).run()
    assert [astuple(record) for record in probed.flows] == [astuple(record) for record in plain.flows]
    assert probed.tables["rates"].equals(plain.tables["rates"])
    assert probed.series["queues"].table().equals(plain.series["queues"].table())


@pytest.fixture
def comparison(tmp_path: Path) -> Comparison:
    found = []
    for cc in ("dcqcn", "accurate"):
        run, recording = recorded(cc)
        found.append(results.write(tmp_path / cc, results.files(run, recording)))
    return compare(found)[0]


def test_tables_are_files_and_the_scenario_makes_them_again(comparison: Comparison) -> None:
    result = comparison.variants[0].results[0]
    assert {"flows", "queues", "rates", "alpha", "marks"} < result.tables
    assert result.table("alpha").shape == recorded()[1].tables["alpha"].shape
    with pytest.raises(UserError, match="no table 'alpa'; did you mean 'alpha'"):
        result.table("alpa")
    again = plan("x", check(parse(result.scenario_text)), Path())[0]
    assert again.probes == recorded()[0].probes == tuple(result.probes)


def test_what_was_read_over_time_is_a_figure(comparison: Comparison) -> None:
    found = figures(comparison)
    probes = [name for name in found if name.startswith("probe-")]
    assert probes == ["probe-alpha", "probe-data", "probe-marks", "probe-shares", "probe-waiting"]
    both, one = found["probe-data"].plot(comparison), found["probe-alpha"].plot(comparison)
    assert [axes.get_title() for axes in both.axes] == ["dcqcn", "accurate"]
    assert [axes.get_title() for axes in one.axes] == ["dcqcn"]
    assert len(one.axes[0].lines) == 2  # two hosts


def test_a_figure_is_a_class_that_says_what_it_needs(comparison: Comparison, monkeypatch: pytest.MonkeyPatch) -> None:
    class Marks(Figure):
        needs = ("marks",)

        def caption(self, comparison: Comparison) -> str:
            return "marks"

        def draw(self, axes: Any, variants: Any) -> None:
            raise AssertionError

    monkeypatch.setattr(REGISTRY, "all", lambda: {"marks": Marks})
    assert "marks" not in figures(comparison), "the second variant has no such table"
    assert next(iter(figures(Comparison("x", "", comparison.variants[:1])))) == "marks"


@pytest.mark.parametrize(
    ("probe", "words"),
    [
        ({"kind": "register", "reads": "x", "name": "x"}, "'x': program 'ecn' has no register 'x'; there is none"),
        ({"kind": "counter", "reads": "ecn_markd", "name": "x"}, "no counter 'ecn_markd'; did you mean 'ecn_marked'"),
        ({"kind": "counter", "reads": "ecn_marked", "name": "x", "indices": [512]}, "has 512 cells; there is no 512"),
        ({"kind": "counter", "reads": "ecn_marked", "name": "x", "switches": "t*"}, "has no switch 't*'"),
        (
            {"kind": "reaction_point", "reads": "alph", "name": "x", "interval_ns": 1},
            "'dcqcn' has 'alph'; did you mean 'alpha'",
        ),
        ({"kind": "reaction_point", "reads": "path", "name": "x", "interval_ns": 1}, "'path' of 'dcqcn' is not a num"),
        ({"kind": "reaction_point", "reads": "alpha", "name": "x"}, "record.probes.0.interval_ns: missing"),
        ({"kind": "queue", "reads": "depth", "name": "x"}, "a port has no 'depth'; did you mean 'depth_bytes'"),
        ({"kind": "queue", "reads": "tx_bytes", "priority": 3, "name": "x"}, "a queue has no 'tx_bytes'"),
        ({"kind": "queue", "name": "x", "port": 9}, "has no such port"),
        ({"kind": "queue", "name": "flows"}, "there is a table 'flows' already"),
        ({"kind": "queue", "name": "operations"}, "there is a table 'operations' already"),
        ({"kind": "queue", "name": "../x"}, "record.probes.0.name"),
        ({"kind": "que", "name": "x"}, "no probe kind 'que'; did you mean 'queue'"),
        ({"name": "x"}, "record.probes.0.kind: missing; expected one of counter, program, queue"),
    ],
)
def test_mistakes(probe: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError) as raised:
        planned(probes=[probe])
    assert words in str(raised.value)


def test_marks_seen_in_frames_are_those_that_the_program_counts() -> None:
    record = {"probes": [{"kind": "counter", "reads": "ecn_marked", "name": "marked"}]}
    incast = {"name": "incast", "size_bytes": 300_000, "interval_ns": 0}
    star = {"name": "single-switch", "hosts": 5}
    scenario = check({"cc": "dcqcn", "topology": star, "workload": incast, "record": record})
    (run,) = plan("marks", scenario, Path())
    recording = VirtualWorld(run).run()
    links = recording.tables["links"].query("node == 's0'")
    told = recording.tables["marked"].groupby("index")["packets"].max()
    seen = links.groupby("port")["marked"].sum()
    assert seen.sum() > 0
    assert {port: n for port, n in seen.items() if n} == {port: n for port, n in told.items() if n}
