"""Forecasts of a run, in comparison with its real cost."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from harness.plan.how import Tracing
from harness.plan.resolve import plan
from harness.plan.run import Run
from harness.plan.scenario import check
from harness.worlds.expected import best_workers, expected, trace_bytes
from harness.worlds.virtual import VirtualWorld
from p4cc.cli import cli

Write = Callable[[str], Path]
NOT_RECORDED = {"queue_interval_ns": 0, "rate_interval_ns": 0}


def planned(workload: dict[str, Any], **tables: Any) -> Run:
    given = {"cc": "hpcc", "topology": {"name": "fat-tree", "k": 4}, "workload": workload, "record": NOT_RECORDED}
    return plan("x", check({**given, **tables}), Path())[0]


@pytest.mark.parametrize(
    ("workload", "tables"),
    [
        ({"name": "incast", "senders": 4, "size_bytes": 20_000}, {}),
        ({"name": "permutation", "size_bytes": 10_000}, {}),
        ({"name": "permutation", "size_bytes": 10_000}, {"nic": {"ack_every_packets": 5}}),
        ({"name": "multicast", "senders": 2, "receivers": 6, "size_bytes": 20_000}, {}),
        ({"name": "multicast", "size_bytes": 20_000}, {}),
        ({"name": "permutation", "size_bytes": 1_000_000}, {"limit_ns": 25_000, "lb": "spray"}),
        ({"name": "incast", "senders": 4, "size_bytes": 1_000_000}, {"limit_ns": 40_000}),
    ],
)
def test_what_is_foreseen_is_what_comes(workload: dict[str, Any], tables: dict[str, Any]) -> None:
    run = planned(workload, **tables)
    foreseen = expected(run)
    recording = VirtualWorld(run).run()
    hops = int(recording.port_stats["tx_packets"].sum())
    assert hops / 1.5 < foreseen.packet_hops < hops * 1.5
    assert foreseen.model_ns <= recording.end_ns < 3 * foreseen.model_ns


@pytest.mark.parametrize("cc", ["hpcc", "eqds", "expresspass", "rcp"])
def test_a_protocol_s_own_packets_are_foreseen(cc: str) -> None:
    run = planned({"name": "permutation", "size_bytes": 300_000}, cc=cc)
    foreseen = expected(run)
    hops = int(VirtualWorld(run).run().port_stats["tx_packets"].sum())
    assert hops / 1.2 < foreseen.packet_hops < hops * 1.2  # without them 1.2 to 1.7 times too few


def test_a_packet_costs_at_its_hosts_whatever_its_path() -> None:
    """A run with twice the number of links takes less than twice the time."""
    workload = {"name": "permutation", "size_bytes": 1_000_000}
    near = expected(planned(workload, topology={"name": "single-switch", "hosts": 16}))
    far = expected(planned(workload))
    assert near.data_packets == far.data_packets
    assert far.packet_hops > 2 * near.packet_hops
    assert far.run_s < 1.7 * near.run_s


def test_a_limit_counts_for_work_and_workers() -> None:
    long = planned({"name": "permutation", "size_bytes": 1_000_000_000})
    short = replace(long, scenario=long.scenario.model_copy(update={"limit_ns": 100_000}))
    assert [best_workers(run, expected(run), 8) for run in (long, short)] == [8, 1]
    assert expected(short).packet_hops < expected(long).packet_hops / 800
    assert expected(short).model_ns == 100_000


@pytest.mark.parametrize(
    "application",
    [
        {"kind": "all_reduce", "operations": 20},
        {"kind": "all_reduce", "operations": 20, "initiators": 2, "hosts": 5},
        {"kind": "reduce", "size_bytes": 4_000},
        {"kind": "broadcast", "size_bytes": 4_000},
        {"kind": "all_gather", "size_bytes": 4_000},
        {"kind": "barrier"},
        {"kind": "random", "sets": 3, "set_operations": (40, 40), "idle_cycles": (10, 10), "unicast_every": 3},
        {"kind": "unicast_read", "size_bytes": 4_000},
        {"kind": "unicast_write", "size_bytes": 4_000, "hosts": 4},
        {"kind": "pushed_all_reduce", "operations": 10},
    ],
)
def test_collectives_are_foreseen(application: dict[str, Any]) -> None:
    topology = {"name": "leaf-spine", "leaves": 3, "spines": 2, "hosts_per_leaf": 2, "links_per_spine": 2}
    workload = {"name": "collectives", "applications": [application]}
    run = planned(workload, cc="collective-none", topology=topology, framing="flits")
    foreseen = expected(run)
    recording = VirtualWorld(run).run()
    assert recording.ended == "done"
    assert foreseen.collectives.operations == len(recording.tables["operations"])
    hops = int(recording.port_stats["tx_packets"].sum())
    assert hops / 1.2 < foreseen.packet_hops < hops * 1.2  # which of reads and writes are drawn makes no difference
    own = recording.port_stats["node"] < len(run.topology.hosts)
    sent = recording.port_stats["tx_bytes"][own].sum() - 58 * recording.port_stats["tx_packets"][own].sum()
    assert sent / 16 / 1.4 < foreseen.collectives.flits < sent / 16 * 1.4
    assert foreseen.model_ns <= recording.end_ns < 4 * foreseen.model_ns


def test_collectives_count_for_workers() -> None:
    def foreseen(operations: int) -> int:
        workload = {"name": "collectives", "applications": [{"operations": operations}]}
        run = planned(workload, cc="3cpo", topology={"name": "leaf-spine", "hosts_per_leaf": 8})
        return best_workers(run, expected(run), 4)

    assert (foreseen(4), foreseen(50_000)) == (1, 4)


def test_the_last_start_is_a_part_of_the_model_time() -> None:
    late = expected(planned({"name": "multicast", "senders": 3, "receivers": 2, "size_bytes": 1, "interval_ns": 10**6}))
    assert 2_000_000 < late.model_ns < 2_100_000


def test_what_ends_by_the_clock_is_foreseen_until_then() -> None:
    workload = {"name": "incasts", "senders": 2, "size_bytes": 1_000, "count": 1, "interval_ns": 10_000, "jitter_ns": 0}
    foreseen = expected(planned(workload, limit_ns=1_000_000))
    assert 20_000 * 12.5 / 1_100 < foreseen.data_packets < 20_000 * 12.5 / 1_000 + 3


COLLECTIVES = """
cc = "3cpo"
[topology]
name = "leaf-spine"
leaves = 2
spines = 2
hosts_per_leaf = 2
[workload]
name = "collectives"
[[workload.applications]]
operations = 4
"""
SMALL = """
cc = "hpcc"
workers = 2
[topology]
name = "single-switch"
hosts = 4
[workload]
name = "permutation"
size_bytes = 10_000
"""


def dry_run(folder: Path, text: str, *arguments: str) -> tuple[int, str]:
    file = folder / "own.toml"
    file.write_text(text)
    done = CliRunner().invoke(cli, ["run", str(file), "--dry-run", *arguments])
    return done.exit_code, done.output + str(done.exception or "")


def test_a_dry_run_tells_of_collectives(tmp_path: Path) -> None:
    status, told = dry_run(tmp_path, COLLECTIVES)
    assert status == 0
    assert "collectives: of 4 hosts, 32 operations, " in told
    assert "workers: 1, as --workers auto gives; some " in told


@pytest.mark.parametrize(("arguments", "workers"), [((), 2), (("--workers", "3"), 3), (("--workers", "auto"), 1)])
def test_a_dry_run_tells_the_workers_of_the_run(tmp_path: Path, arguments: tuple[str, ...], workers: int) -> None:
    status, told = dry_run(tmp_path, SMALL, *arguments)
    assert status == 0
    assert f"workers: {workers}, " in told
    assert ("--workers auto gives 1," in told) == (workers > 1)


def test_a_dry_run_counts_processors_as_the_run_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(9), raising=False)
    asked: list[int] = []
    monkeypatch.setattr("harness.worlds.parallel.MOST_WORKERS", 4)

    def best_workers(run: object, _: object, most: int) -> int:
        asked.append(most)
        return 1

    monkeypatch.setattr("harness.worlds.parallel.best_workers", best_workers)
    assert dry_run(tmp_path, SMALL)[0] == 0
    assert asked == [4]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--workers", "999"), "--workers 999: expected auto, or a number from 1 to 64"),
        (("--trace", "999"), "--trace 999: the run has 4 flows; expected a number from 0 to 3"),
        (("--set", "memory_bytes=100000", "--set", "topology.hosts=200"), "200 hosts and 1 switches take some"),
    ],
)
def test_a_dry_run_refuses_what_the_run_refuses(tmp_path: Path, arguments: tuple[str, ...], words: str) -> None:
    status, told = dry_run(tmp_path, SMALL, *arguments)
    assert status != 0
    assert words in told


@pytest.mark.parametrize("cc", ["dcqcn", "hpcc"])
def test_the_size_of_a_trace_is_foreseen(tmp_path: Path, cc: str) -> None:
    run = planned({"name": "permutation", "size_bytes": 10_000}, cc=cc)
    world = VirtualWorld(run, trace=Tracing(3))
    world.run()
    told: list[float] = []
    world.write_more(tmp_path, told.append)
    assert told[0] == 0
    assert told == sorted(told)
    assert all(share < 1 for share in told)
    written = sum((tmp_path / name).stat().st_size for name in ("trace.txt", "trace.jsonl"))
    assert written / 2 < trace_bytes(run, Tracing(3)) < written * 2
    assert trace_bytes(run, Tracing(999)) == 0


@pytest.mark.parametrize(("size", "warned"), [("100 KB", False), ("10 MB", True)])
def test_a_large_trace_is_told_of_before(tmp_path: Path, size: str, warned: bool) -> None:
    status, told = dry_run(tmp_path, SMALL, "--trace", "1", "--set", f"workload.size_bytes={size}")
    assert status == 0
    assert ("warning: --trace 1 writes some 300 MB; " in told) == warned


@pytest.mark.parametrize("name", ["alltoall", "allreduce"])
def test_flows_that_start_when_others_are_done_are_foreseen(name: str) -> None:
    """The forecast has every flow and packet of the run; its time is that of a network without queueing."""
    workload = {"name": name, "size_bytes": 40_000}
    star = {"name": "single-switch", "hosts": 5}
    (run,) = plan("walk", check({"cc": "none", "topology": star, "workload": workload}), Path())
    foreseen = expected(run)
    assert not foreseen.independent
    recording = VirtualWorld(run).run()
    assert foreseen.flows == len(recording.flows)
    assert foreseen.flow_bytes == sum(record.flow.size_bytes for record in recording.flows)
    sent = {record.qp: record.columns["packets_sent"] for record in recording.flows}  # of a queue pair, so far
    assert foreseen.data_packets == sum(sent.values())
    assert foreseen.model_ns == pytest.approx(recording.end_ns, rel=0.2)


def test_a_walk_that_is_cut_tells_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    star = {"name": "single-switch", "hosts": 9}
    scenario = check({"cc": "none", "topology": star, "workload": {"name": "alltoall"}})
    (run,) = plan("walk", scenario, Path())
    whole = expected(run)
    monkeypatch.setattr("harness.worlds.expected._MOST_WALKED", whole.flows // 2)
    cut = expected(run)
    assert (cut.flows, cut.flow_bytes, cut.data_packets) == (whole.flows, whole.flow_bytes, whole.data_packets)


def many_to_one(cc: str, senders: int, size_bytes: int, interval_ns: int = 0, **tables: Any) -> Run:
    workload = {"name": "incast", "size_bytes": size_bytes, "interval_ns": interval_ns}
    star = {"name": "single-switch", "hosts": senders + 1}
    return planned(workload, cc=cc, topology=star, switch={"buffer_bytes": "none"}, **tables)


@pytest.mark.parametrize(
    ("cc", "protocols"),
    [
        ("none", {}),
        ("udp", {}),
        ("udp", {"udp": {"rate_bps": 20e9}}),
        ("udp", {"udp": {"rate_bps": 2e9}}),
        ("dcqcn", {"dcqcn": {"window_bytes": 20_000}}),
        ("hpcc", {}),
    ],
)
def test_what_waits_without_a_buffer_limit_is_foreseen(cc: str, protocols: dict[str, Any]) -> None:
    run = many_to_one(cc, 20, 100_000, protocols=protocols)
    foreseen = expected(run)
    most = max(VirtualWorld(run).run().queue_stats["max_bytes"]) / run.data_bytes
    assert most / 1.3 < foreseen.waiting.expected + foreseen.in_flight
    assert foreseen.waiting.expected < most * 1.3


def test_many_who_go_by_feedback_are_not_held_back() -> None:
    """Measured with DCQCN: 24 senders of 10 MB had at most 17 MB in the queue, 64 senders of 16 MB had 748 MB."""
    few, many = (
        expected(many_to_one("dcqcn", *of)).waiting.expected * 1_058 for of in ((12, 10_000_000), (64, 16_000_000))
    )
    assert few < 17_000_000
    assert 600_000_000 < many < 900_000_000


def test_each_who_starts_later_sends_until_it_hears_from_behind_the_queue() -> None:
    """Measured: 79 MB with 16 senders, two of which start each 20 us, and 206 MB with 32."""
    for senders, most in ((16, 79_000_000), (32, 206_000_000)):
        foreseen = expected(many_to_one("dcqcn", senders, 8_000_000, interval_ns=20_000))
        assert most / 2 < foreseen.waiting.expected * 1_058 < most * 1.3


@pytest.mark.parametrize(("enabled", "switches"), [(True, 20), (False, 8)])
def test_no_more_waits_than_buffers_hold(enabled: bool, switches: int) -> None:
    """Switches that pause each other fill one after the other; without pauses only those next to receivers fill."""
    workload = {"name": "incast", "size_bytes": 10_000_000}
    run = planned(workload, cc="none", switch={"buffer_bytes": 1_000_000, "pfc": {"enabled": enabled}})
    assert expected(run).waiting.expected == switches * 1_000_000 // 1_058
    assert expected(many_to_one("none", 20, 1_000_000, program="trim")).waiting.expected == 0


def across(spines: int, cc: str = "none", **tables: Any) -> Run:
    """Return a run of 16 hosts on two leaves, each sending 300 packets to the other leaf, without a buffer limit."""
    leaves = {"name": "leaf-spine", "leaves": 2, "hosts_per_leaf": 8, "spines": spines, "fabric_rate_bps": 10**11}
    workload = {"name": "permutation", "size_bytes": 300_000, "across": "racks"}
    return planned(workload, cc=cc, topology=leaves, switch={"buffer_bytes": "none"}, **tables)


@pytest.mark.parametrize(("spines", "waiting"), [(1, 16 * 300 * 7 / 8), (2, 16 * 300 * 3 / 4)])
def test_what_waits_for_links_between_switches_is_foreseen(spines: int, waiting: float) -> None:
    """Eight hosts of a leaf send at eight times the rate of a spine's link, evenly over all spines."""
    run = across(spines, lb="spray")
    foreseen = expected(run)
    assert foreseen.waiting.expected == pytest.approx(waiting, rel=0.01)
    stats = VirtualWorld(run).run().queue_stats
    most = sum(most for most in stats["max_bytes"] if most > 100_000) / run.data_bytes
    assert foreseen.waiting.expected == pytest.approx(most, rel=0.1)


def test_flows_that_ecmp_puts_on_one_link_wait_for_it() -> None:
    assert expected(across(8, lb="spray")).waiting.expected == 0
    assert 0 < expected(across(8)).waiting.expected < 16 * 300
    assert expected(across(1, "hpcc")).waiting.expected == 0


def test_most_packets_wait_if_no_sender_reacts() -> None:
    """Of twelve senders of 10 MB, eleven twelfths of all packets wait; windows and rate limits do not change."""
    foreseen = expected(many_to_one("dcqcn", 12, 10_000_000))
    assert foreseen.waiting.most == pytest.approx(110_000_000 / 1000, rel=0.01)
    assert foreseen.waiting.expected < 0.2 * foreseen.waiting.most
    least_bytes, most_bytes = foreseen.memory_range_bytes
    assert least_bytes < foreseen.memory_bytes < most_bytes
    assert most_bytes - least_bytes == pytest.approx(110_000 * 680, rel=0.01)
    alone = expected(many_to_one("none", 12, 100_000))
    assert alone.waiting.most == alone.waiting.expected > 0
    windows = expected(many_to_one("hpcc", 12, 10_000_000))
    assert windows.memory_range_bytes == (windows.memory_bytes, windows.memory_bytes)


@pytest.mark.parametrize("cc", ["dcqcn", "hpcc"])
def test_a_dry_run_has_the_memory_with_and_without_what_waits(cc: str) -> None:
    options = ("--cc", cc, "--set", "workload.size_bytes=10 MB", "--set", "switch.buffer_bytes=none", "--dry-run")
    done = CliRunner().invoke(cli, ["run", "incast", *options])
    assert done.exit_code == 0, done.output
    line = "memory: 0.3 GB if no packet waits for a link, 0.4 GB if no sender reacts"
    assert (line in done.output) == (cc == "dcqcn")


def test_memory_of_many_to_one_traffic_is_foreseen() -> None:
    """Check 128 flows of 64 MB into one link, which used 4.6 GB."""
    memory_bytes = expected(many_to_one("dcqcn", 128, 64_000_000)).memory_bytes
    assert 4.6e9 / 1.2 < memory_bytes < 4.6e9 * 1.2
