"""Further columns of flows: the largest latency, and attributes of reaction points."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from harness.columns import nics
from harness.columns.column import NicCounter, filled_by
from harness.measure.metrics import flows_table, messages_table
from harness.measure.summary import by_size
from harness.plan import resolve, scenario
from harness.plan.run import Run
from harness.worlds.virtual import VirtualWorld
from p4switch.errors import UserError
from topologies.routing import path, transit_ns

STAR: dict[str, Any] = {
    "topology": {"name": "single-switch", "hosts": 3},
    "workload": {"name": "incast", "size_bytes": 50_003},
}


def planned(columns: list[str], **more: Any) -> list[Run]:
    tables = {"cc": "dcqcn", **STAR, "record": {"columns": columns}, **more}
    return resolve.plan("star", scenario.check(tables), Path())


def flows(run: Run) -> pd.DataFrame:
    recording = VirtualWorld(run).run()
    return flows_table(run, recording, messages_table(run, recording))


@pytest.mark.parametrize("cc", ["dcqcn", "hpcc", "sperc"])
def test_a_packet_alone_has_the_latency_of_the_empty_network(cc: str) -> None:
    (run,) = planned(["max_latency_ns"], cc=cc, workload={"name": "incast", "size_bytes": 1000, "senders": 1})
    links = path(run.topology, run.topology.hosts[1], run.topology.hosts[0])
    growth_ns = 8 * 8e9 / links[-1].rate_bps if run.protocol.info.telemetry else 0
    (latency_ns,) = flows(run)["max_latency_ns"]
    assert latency_ns == pytest.approx(transit_ns(links, run.data_bytes) + growth_ns, abs=1)


def test_what_waits_takes_longer() -> None:
    (run,) = planned([], record={"columns": ["max_latency_ns"], "queue_interval_ns": 20})
    recording = VirtualWorld(run).run()
    (port,) = [i for i, p in enumerate(recording.series["queues"].places["leads_to"]) if p == "h0-0-2"]
    deepest_ns = recording.series["queues"].values[:, port].max() * 8 / 100
    latency_ns = messages_table(run, recording)["max_latency_ns"].max()
    sampled_ns = 20 + run.data_bytes * 0.08  # between two samples, and whether a packet is in the queue itself
    assert latency_ns == pytest.approx(2170 + deepest_ns, abs=sampled_ns)


def test_numbers_of_reaction_points_are_those_at_the_end_of_a_flow() -> None:
    run, other = planned(["alpha", "path.line_rate_bps", "max_latency_ns"], cc=["dcqcn", "none"])
    found = flows(run)
    assert list(found.columns[-3:]) == ["alpha", "line_rate_bps", "max_latency_ns"]
    assert (found["alpha"] <= 1).all()
    assert (found["line_rate_bps"] == 100e9).all()
    assert list(flows(other).columns[-2:]) == ["line_rate_bps", "max_latency_ns"]  # it has no alpha


def test_of_pieces_the_largest_latency_the_mean_over_bytes_and_the_sum_of_counts() -> None:
    attack = {"kind": "parallel", "hosts": [1], "piece_bytes": 30_000}
    columns = ["max_latency_ns", "rate_bps", "stats.acks_received", "mean_links", "shortest_links"]
    (run,) = planned(columns, attack=attack, limit_ns=2_000_000)
    recording = VirtualWorld(run).run()
    pieces = messages_table(run, recording)
    whole = flows_table(run, recording, pieces).iloc[0]
    own = pieces[pieces["flow"] == 0]
    assert own["size_bytes"].tolist() == [30_000, 20_003]
    assert whole["max_latency_ns"] == own["max_latency_ns"].max()
    mean = (own["rate_bps"] * own["size_bytes"]).sum() / 50_003
    assert whole["rate_bps"] == pytest.approx(mean)
    assert whole["mean_links"] == whole["shortest_links"] == 2
    assert whole["acks_received"] == own["acks_received"].sum() > 0


def test_links_are_those_of_the_shortest_path_where_nothing_is_deflected() -> None:
    fat_tree = {"topology": {"name": "fat-tree", "k": 4}, "workload": {"name": "permutation", "size_bytes": 20_000}}
    (run,) = planned(["mean_links", "shortest_links"], **fat_tree)
    found = flows(run)
    assert set(found["shortest_links"]) <= {2.0, 4.0, 6.0}
    assert (found["mean_links"] == found["shortest_links"]).all()


def test_what_is_deflected_crosses_more_links() -> None:
    columns = 'record.columns=["mean_links", "shortest_links"]'
    settings = [columns, 'record.sizes=[{ name = "all" }]', "variants=[]"]
    (run,) = resolve.plan("dart-order", *scenario.load("dart-order", settings))
    found = flows(run)
    assert (found["mean_links"] >= found["shortest_links"]).all()
    sizes = by_size(run, found)["all"]
    assert sizes["mean_links"] > 1.2 * sizes["shortest_links"]


def test_without_columns_there_are_none() -> None:
    (run,) = planned([])
    assert "max_latency_ns" not in flows(run).columns


def test_a_column_that_no_run_can_fill_is_a_mistake() -> None:
    with pytest.raises(UserError) as caught:
        planned(["alfa"])
    assert str(caught.value) == "record.columns: no reaction point of 'dcqcn' has 'alfa'; did you mean 'alpha'?"


@pytest.mark.parametrize(
    ("columns", "mistake"),
    [
        (["stats.timeouts"], "'stats.timeouts' would be the column 'timeouts', one that `flows` has anyway"),
        (["parameters.g", "g"], "'g' would be the column 'g', what 'parameters.g' is put into"),
    ],
)
def test_no_column_takes_the_place_of_another(columns: list[str], mistake: str) -> None:
    with pytest.raises(UserError) as caught:
        planned(columns)
    assert str(caught.value) == f"record.columns: {mistake}"


def test_a_count_that_queue_pairs_do_not_keep_is_a_mistake() -> None:
    with pytest.raises(UserError) as caught:
        planned(["stats.marks_herd"])
    assert str(caught.value) == "record.columns: no queue pair counts 'marks_herd'; did you mean 'marks_heard'?"


def test_counts_of_nics_are_sums() -> None:
    attributes = [source.attribute for _, source in filled_by(NicCounter, nics.NICS.columns)]
    one, other = (
        SimpleNamespace(**{name: [number, 1] if name == "paused_ns" else number for name in attributes})
        for number in (3, 4)
    )
    sums = {column.name: 9 if column.name == "paused_ns" else 7 for column in nics.NICS.columns}
    assert nics.counts([one, other]) == sums
    assert list(nics.counts([])) == list(sums)
