"""Contents and figures of a report, from hand-made results or one small run."""

from __future__ import annotations

import json
import re
import warnings
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Drawing

from harness.columns.links import counted
from harness.measure import results
from harness.measure.links import LinkSamples
from harness.measure.provenance import differences
from harness.measure.results import Result
from harness.plan import resolve, scenario
from harness.worlds.virtual import VirtualWorld
from host_agents.cc.base import UNLIMITED
from p4cc.commands.report import command
from reports.claims import Number, claims, papers_numbers
from reports.export import STYLES, write_figures
from reports.figure_data import figure_table
from reports.figures.base import which_seed
from reports.figures.fct import CompletionTimes
from reports.figures.finish import StartAndFinish
from reports.figures.jain import Fairness
from reports.figures.links import Links
from reports.figures.queue import WorstQueue
from reports.figures.rates import RateLimits, Throughput, Windows
from reports.figures.rtt import RoundTripTimes
from reports.groups import Comparison, Estimate, Variant, compare
from reports.page import Cell, _leads, _Row, _written, table, write_report
from reports.plots import COLOURS, colour, for_paper

DUMBBELL: dict[str, Any] = {
    "cc": ["dcqcn", "hpcc", "none"],
    "topology": {"name": "dumbbell", "pairs": 3, "bottleneck_rate_bps": 50e9},
    "workload": {"name": "permutation", "across": "racks", "size_bytes": 40_000},
}


def draw(figure: Drawing) -> None:
    canvas: Any = FigureCanvasAgg(figure)  # not annotated
    canvas.draw()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> list[Result]:
    """Return results of three protocols over a dumbbell with the bottleneck in the middle."""
    folder = tmp_path_factory.mktemp("dumbbell")
    runs = resolve.plan("dumbbell", scenario.check(DUMBBELL), Path())
    return [results.write(folder / run.label, results.files(run, VirtualWorld(run).run())) for run in runs]


@pytest.fixture
def comparison(made: list[Result]) -> Comparison:
    (found,) = compare(made)
    return found


@pytest.mark.parametrize(
    ("seeds", "note"),
    [
        ([[1], [1]], ""),
        ([[1, 2], [1, 2]], " (seed 1; the runs have 2 seeds)"),
        ([[1, 2], [3]], " (seeds 1, 3; the runs have 3 seeds)"),
    ],
)
def test_a_caption_says_which_of_several_seeds_it_shows(seeds: list[list[int]], note: str) -> None:
    def of(seeds: list[int]) -> Any:
        return SimpleNamespace(results=[SimpleNamespace(summary={"seed": seed}) for seed in seeds])

    assert which_seed(Comparison("incast", "Incast", tuple(of(each) for each in seeds))) == note


def test_the_worst_queue_is_where_packets_waited(made: list[Result], comparison: Comparison) -> None:
    for result in made:
        worst = result.summary["queues"]["worst"][0]
        assert {worst["switch"], worst["leads_to"]} == {"s0", "s1"}
        depths = result.queues[(result.queues["switch"] == worst["switch"]) & (result.queues["port"] == worst["port"])]
        assert worst["queue_max_bytes"] >= depths["depth_bytes"].max()
        assert result.summary["queues"]["congested"] == 2
        assert worst["utilisation"] > 0.5
    labels = [str(line.get_label()) for line in WorstQueue().plot(comparison).axes[0].lines]
    assert all(re.search(r"s0 to s1|s1 to s0", label) for label in labels)


def test_links_add_up_to_what_was_sent(made: list[Result]) -> None:
    for result in made:
        links = result.table("links")
        sent = links[links["leads_to"].astype(str).str.startswith("s") & links["node"].astype(str).str.startswith("h")]
        assert sent["tx_bytes"].sum() > 6 * 40_000
        assert (links["busy_ns"] <= links["interval_ns"] * 1.01 + 1000).all()
        assert links["time_ns"].max() == result.summary["end_ns"]


def test_samples_of_links_grow_fewer_and_lose_nothing() -> None:
    places = pd.DataFrame({"node": ["s0"], "port": [1], "leads_to": ["h0"], "rate_bps": [10**11]})
    samples = LinkSamples(places, 10)
    for i in range(1, 5001):
        if samples.is_due(10 * i):
            samples.add(10 * i, {source.name: np.array([i]) for _, source in counted()})
    table = samples.table()
    assert 200 < len(table) <= 512
    assert table["tx_bytes"].sum() == 4992  # the last multiple of an interval that doubled five times
    assert set(table["interval_ns"]) == {160}


def test_a_colour_means_one_variant_in_all_figures(comparison: Comparison) -> None:
    shades = {variant.name: colour(number) for number, variant in enumerate(comparison.variants)}
    for figure in (CompletionTimes(), WorstQueue(), RoundTripTimes()):
        for line in figure.plot(comparison).axes[0].lines:
            assert line.get_color() == shades[str(line.get_label()).partition(":")[0]]
    inside = {line.get_color() for axes in Throughput().plot(comparison).axes for line in axes.lines}
    assert not inside & set(COLOURS)  # lines of flows are of no variant's colour
    for axes, name in zip(Throughput().plot(comparison).axes, shades, strict=True):
        assert (axes.get_title(), axes.title.get_color()) == (name, shades[name])


def test_no_axes_are_empty(comparison: Comparison) -> None:
    """Only HPCC has windows, and they have HPCC's colour of other figures."""
    (axes,) = Windows().plot(comparison).axes
    assert axes.lines
    assert (axes.get_title(), axes.title.get_color()) == ("hpcc", colour(1))


def test_logarithmic_scales_are_named(comparison: Comparison) -> None:
    axes = WorstQueue().plot(comparison).axes[0]
    assert (axes.get_yscale() == "symlog") == axes.get_ylabel().endswith(", logarithmic")
    flows = comparison.results[0].flows
    slow = flows.assign(fct_ns=np.where(flows["flow"] == 0, 1e9, flows["fct_ns"]))
    result = Result(comparison.results[0].folder, comparison.results[0].summary, {"flows": slow})
    drawn = CompletionTimes().plot(replace(comparison, variants=(Variant("x", (result,)),)))
    assert drawn.axes[0].get_xlabel() == "flow completion time (µs), logarithmic"


def test_every_rate_is_inside_its_frame(comparison: Comparison) -> None:
    """The values of a later panel are also shown, and the lowest panel of each column has numbers."""
    figure = Throughput().plot(comparison)
    for axes in figure.axes:
        low, high = axes.get_ylim()
        tops = [float(np.nanmax(line.get_ydata())) for line in axes.lines if len(np.asarray(line.get_ydata()))]
        assert low == 0
        assert max(tops) <= high
    assert len(figure.axes) == 3
    for axes in figure.axes[1:]:
        assert axes.xaxis.get_tick_params()["labelbottom"]


def test_many_flows_are_a_band_with_its_extremes(comparison: Comparison) -> None:
    first = comparison.results[0]
    rates = pd.concat([first.rates.assign(qp=100 * i + first.rates["qp"]) for i in range(1, 5)])
    messages = pd.concat([first.flows.assign(qp=100 * i + first.flows["qp"]) for i in range(1, 5)])
    many = Result(first.folder, first.summary, {"rates": rates, "flows": messages})
    found = Comparison("many", "", (Variant("dcqcn", (many,)),))
    (axes,) = Throughput().plot(found).axes
    assert len(axes.lines) == 3
    assert [str(line.get_label()).partition(":")[0] for line in axes.lines] == ["median of 24", "slowest", "fastest"]
    assert "10% to 90%" in Throughput().caption(found)


def test_limits_are_drawn_where_there_are_any(comparison: Comparison) -> None:
    assert RateLimits().fits(comparison)
    unlimited = comparison.results[0].rates.assign(rate_limit_bps=np.inf)
    result = Result(comparison.results[0].folder, comparison.results[0].summary, {"rates": unlimited})
    assert not RateLimits().fits(replace(comparison, variants=(Variant("x", (result,)),)))


def test_a_legend_hides_nothing(comparison: Comparison) -> None:
    """Check that the legend is outside the axes for any number of variants."""
    for kind in (StartAndFinish, WorstQueue, Fairness):
        figure = kind().plot(comparison)
        draw(figure)
        (axes,) = figure.axes
        assert axes.get_legend() is None
        (legend,) = figure.legends
        assert not legend.get_window_extent().overlaps(axes.get_window_extent())
        assert [text.get_text() for text in legend.get_texts()] == axes.get_legend_handles_labels()[1]


def test_a_window_that_never_closes_is_no_window(comparison: Comparison) -> None:
    """A protocol may start with one, and then use only rates."""
    rates = comparison.results[0].rates
    first = rates["time_ns"] == rates["time_ns"].min()
    result = Result(
        comparison.results[0].folder,
        comparison.results[0].summary,
        {"rates": rates.assign(window_bytes=np.where(first, 10_000.0, UNLIMITED))},
    )
    assert not Windows().fits(replace(comparison, variants=(Variant("x", (result,)),)))


def test_a_heat_map_has_the_middle_link_first(comparison: Comparison) -> None:
    table = figure_table(Links().plot(comparison))
    assert {"dcqcn: utilisation (%)", "none: queue (KB)"} <= set(table["panel"])
    cells = table[table["panel"] == "none: utilisation (%)"]
    assert cells["series"].iloc[0] in ("s0 → s1", "s1 → s0")
    assert cells["y"].between(0, 100).all()


def test_a_heat_map_shows_what_waits_beside_a_hundred_times_as_much(comparison: Comparison) -> None:
    base = comparison.results[0]
    links = base.table("links")
    much = Result(base.folder, base.summary, {"links": links.assign(depth_bytes=links["depth_bytes"] * 100)})
    both = replace(comparison, variants=(Variant("little", (base,)), Variant("much", (much,))))
    axes = {axes.get_label(): axes for axes in Links().plot(both).axes}
    mesh: Any = axes["little: queue (KB)"].collections[0]
    cells = mesh.get_array()
    assert mesh.norm(cells.max()) > 0.3
    other: Any = axes["much: queue (KB)"].collections[0]
    assert other.norm(cells.max() * 100) == pytest.approx(1)


def test_titles_of_a_heat_map_have_room_in_a_column(comparison: Comparison) -> None:
    base = comparison.results[0]
    everything = base.table("links").assign(marked=1, dropped=1, paused_ns=1)
    result = Result(base.folder, base.summary, {"links": everything})
    with for_paper(STYLES["ieee"].file):
        figure = Links().plot(replace(comparison, variants=(Variant("x", (result,)),)))
        figure.set_size_inches(3.3, 7)
        draw(figure)
    titles = [axes.title.get_window_extent() for axes in figure.axes if axes.get_title()]
    assert len(titles) == 5
    for left, right in pairwise(titles):
        assert not left.overlaps(right)


ROW = _Row("time", lambda summary: None, best=min)


def test_only_what_is_apart_leads() -> None:
    apart = [Estimate(1.0, 0.2), Estimate(2.0, 0.5)]
    assert _leads(ROW, apart) is apart[0]
    assert _leads(ROW, [Estimate(1.0, 0.8), Estimate(2.0, 0.5)]) is None
    assert _leads(ROW, [Estimate(1.0, None), Estimate(2.0, None)]) is None  # one seed: nobody knows
    assert _leads(ROW, [None, Estimate(2.0, 0.5)]) is None
    assert _leads(ROW, [Estimate(1.0, 0.2, (2, 3)), Estimate(2.0, 0.5)]) is None  # the third may be worse


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Estimate(15.0, 0.0), "15"),
        (Estimate(15.0, 3.2), "15 ± 3"),
        (Estimate(15.0, 20.0), "15 (0 to 35)"),
        (Estimate(15.0, 0.25), "15.0 ± 0.2"),
        (Estimate(15.0, None), "15"),
        (Estimate(15.0, None, (1, 3)), "15 (1 of 3 seeds)"),
        (Estimate(15.0, 3.2, (2, 3)), "15 ± 3 (2 of 3 seeds)"),
        (None, "–"),
    ],
)
def test_a_figure_has_as_many_digits_as_its_spread(value: Estimate | None, text: str) -> None:
    assert _written(_Row("packets", lambda summary: None, digits=0), value) == text


@pytest.mark.parametrize("extension", ["pdf", "svg"])
def test_figures_for_a_paper_are_as_wide_as_asked(made: list[Result], tmp_path: Path, extension: str) -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="constrained_layout not applied")
        files = list(write_figures(made[:1], tmp_path, extension, STYLES["acm"], 3.0))
    assert len(files) > 4
    assert {path.suffix for path in tmp_path.iterdir()} == {f".{extension}", ".csv"}
    text = (tmp_path / f"dumbbell-queue.{extension}").read_bytes()
    if extension == "svg":
        assert b'width="216pt"' in text
        assert b"<text" not in text  # letters are outlines: no font is needed
    else:
        assert b"/MediaBox [ 0 0 216 " in text
        assert b"/FontFile2" in text
    numbers = pd.read_csv(tmp_path / "dumbbell-queue.csv")
    queues, worst = made[0].queues, made[0].summary["queues"]["worst"][0]
    here = queues[(queues["switch"] == worst["switch"]) & (queues["port"] == worst["port"])]
    assert numbers["y"].max() * 1e3 == pytest.approx(here["depth_bytes"].max())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--format", "pdf", "--width", "wide"], "--width: expected a width with its unit"),
        (["--style", "ieee"], "--style: a page has none"),
    ],
)
def test_a_wrong_request_is_one_line(made: list[Result], arguments: list[str], said: str) -> None:
    done = CliRunner().invoke(command, [str(made[0].folder), *arguments])
    assert said in str(done.exception)


def test_provenance_says_what_made_a_run(made: list[Result]) -> None:
    told = made[0].provenance
    assert told["version"]
    assert re.fullmatch("[0-9a-f]{64}", told["sources"])
    assert re.fullmatch("[0-9a-f]{64}", told["scenario"])
    assert told["seed"] == 1
    assert told["command"]
    assert {result.provenance["scenario"] for result in made} != {told["scenario"]}


def test_a_page_of_two_versions_says_so(made: list[Result], tmp_path: Path) -> None:
    other = Result(made[1].folder, made[1].summary)
    other.__dict__["provenance"] = {**made[1].provenance, "version": "0.0.9"}
    write_report([made[0], other], tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert f"different versions of p4cc: {made[0].provenance['version']}, 0.0.9" in page
    assert differences(result.provenance for result in made) == []
    assert differences([{}, made[0].provenance]) == []


def test_every_claim_of_a_scenario_has_words() -> None:
    named = {claim for path in scenario.built_in().values() for claim in scenario.check(scenario.read(path)).claims}
    assert named <= set(claims())
    assert all(claim.source and claim.text for claim in claims().values())


def test_claims_stand_beside_what_was_measured(made: list[Result], tmp_path: Path) -> None:
    claimed = Result(made[0].folder, made[0].summary)
    claimed.__dict__["claims"] = ["S1"]
    write_report([claimed], tmp_path / "page.html")
    assert claims()["S1"].text.partition(";")[0] in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_a_folder_without_what_older_versions_lacked_is_still_reported(made: list[Result], tmp_path: Path) -> None:
    folder = tmp_path / "old"
    folder.mkdir()
    for path in made[0].folder.iterdir():
        if path.name not in ("links.parquet", "provenance.json"):
            (folder / path.name).write_bytes(path.read_bytes())
    summary = json.loads((folder / "summary.json").read_text())
    del summary["queues"]
    (folder / "summary.json").write_text(json.dumps(summary))
    write_report([results.load(folder)], tmp_path / "page.html")
    assert "busiest link to a host" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_where_two_claims_have_a_number_for_the_same_the_report_has_from_the_least_to_the_most() -> None:
    key = "sizes.all over 1 MB.slowdown.p99_9"
    found = papers_numbers(["C5", "C10"])
    assert found["HPCC"][key].written() == "30 to 45"
    assert found["HPCC 1 Gb/s"][key] == found["HPCC VAI SF"][key] == Number(10, 15)
    assert Number(None, 4).joined(Number(2, 3)) == Number(None, 4)
    assert Number(5, None).joined(Number(2, 3)) == Number(2, None)


def test_classes_by_size_stand_beside_the_papers_numbers(made: list[Result]) -> None:
    numbers = {"p50": 1.0, "p99": 2.0, "p99_9": 3.25}
    summary = {**made[0].summary, "sizes": {"up to 32 KB": {"flows_delivered": 7, "slowdown": numbers}}}
    variant = Variant("1RC", (Result(made[0].folder, summary),))
    rows = dict(table([variant], papers_numbers(["R3"])))
    assert rows["up to 32 KB: flows delivered"] == [Cell("7", False, None)]
    assert rows["up to 32 KB: slowdown p99.9"] == [Cell("3.25", False, "3")]
    assert "up to 32 KB: slowdown times weight, p99.9" not in rows


def test_a_port_whose_queue_was_not_sampled_is_not_drawn(comparison: Comparison) -> None:
    """The longest queues are between the switches, but only those to hosts were sampled."""

    def with_queues(queues: pd.DataFrame) -> Comparison:
        kept = [
            replace(variant, results=tuple(Result(r.folder, r.summary, {"queues": queues}) for r in variant.results))
            for variant in comparison.variants
        ]
        return replace(comparison, variants=tuple(kept))

    queues = comparison.results[0].queues
    bottleneck = comparison.results[0].summary["bottleneck"]
    to_hosts = with_queues(queues.assign(switch=bottleneck["switch"], port=bottleneck["port"]))
    assert WorstQueue().fits(to_hosts)
    assert WorstQueue().caption(comparison) == "Queue at the most congested port"
    assert WorstQueue().caption(to_hosts) == "Queue at the most congested sampled port"
    assert all(np.size(line.get_xdata()) for line in WorstQueue().plot(to_hosts).axes[0].lines)
    assert not WorstQueue().fits(with_queues(queues.assign(port=99)))
