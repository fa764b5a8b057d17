"""Collectives in the virtual world, through p4src/collective.p4: 16 hosts under 4 leaves and 2 spines, real sums."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from harness.measure.results import Result, load_all
from tests.e2e.runs import forked, p4cc

SCENARIO = """
title = "all-reduce of 16 hosts"
cc = {cc}
limit_ns = 5_000_000

[topology]
name = "leaf-spine"
leaves = 4
spines = 2
hosts_per_leaf = 4
link_rate_bps = 200e9
fabric_rate_bps = 200e9
link_delay_ns = 24

[switch]
latency_ns = 64

[switch.pfc]
priorities = [3, 4]

[nic]
rto_ns = 100_000

[record]
queue_interval_ns = 0
rate_interval_ns = 0

[protocols.collective-window]
window = 2

[workload]
name = "collectives"
spread_cycles = 500
{workload}
"""


def run(folder: Path, cc: list[str], workload: str) -> dict[str, Result]:
    """Return results by protocol."""
    path = folder / "collectives.toml"
    path.write_text(SCENARIO.format(cc=json.dumps(cc), workload=workload))
    done = forked("run", str(path), "--no-report", "--out", str(folder / "out"))
    assert done.returncode == 0, done.stderr
    return {result.summary["protocol"]: result for result in load_all(folder / "out")}


def test_all_reduces_with_every_protocol_are_what_numpy_has(tmp_path: Path) -> None:
    protocols = ["collective-none", "collective-window", "collective-aimd", "3cpo"]
    results = run(tmp_path, protocols, "payload = 'data'\napplications = [{ kind = 'all_reduce', operations = 6 }]")
    for result in results.values():
        told = result.summary["workload"]
        assert (told["wrong_memories"], told["unfinished_hosts"], told["repeats"]) == (0, 0, 0)
        assert all(check["holds"] for check in result.summary["checks"])
        assert told["counts"]["writes_delivered"] == 16 * 6 * 16
        assert told["job_completion_ns"] is not None
        operations = result.table("operations")
        assert sorted(operations["kind"].value_counts().items()) == [("read", 96), ("write", 96)]
        assert (operations["done_ns"] > operations["sent_ns"]).all()
        assert (operations["sent_ns"] >= operations["posted_ns"]).all()
        peaks = result.table("peaks").groupby("what")["entries"]
        assert set(peaks.count()) == {16}  # of each NIC
        assert peaks.max().to_dict() == told["peak_entries"]
        # A host hears each request once, and gets one aggregate for each of its own.
        hosts = result.summary["conservation"]["delivered"]
        assert hosts == 2 * 96 * 16 + 2 * 96
    waited = {name: result.summary["workload"]["latency_cycles"]["waited"] for name, result in results.items()}
    assert waited["collective-none"] < waited["collective-window"]


@pytest.mark.parametrize(
    "workload",
    [
        """
        payload = "data"
        numbers = "float32"
        applications = [
            { kind = "broadcast", operations = 3, initiators = 2, hosts = 5 },
            { kind = "reduce", size_bytes = 1000, initiators = 1, hosts = 4 },
            { kind = "unicast_write", operations = 9, hosts = 3 },
            { kind = "unicast_read", operations = 9 },
        ]""",
        """
        payload = "data"
        applications = [
            { kind = "all_gather", size_bytes = 2500, members = [0, 1, 2, 3, 4, 5, 6, 7] },
            { kind = "barrier", members = [0, 1, 2, 3, 4, 5, 6, 7] },
            { kind = "all_reduce", operator = "max", size_bytes = 1500, members = [0, 7, 3] },
            { kind = "pushed_all_reduce", operations = 20, window = 4, hosts = 8 },
        ]""",
    ],
    ids=["float32", "several groups"],
)
def test_every_kind_moves_what_numpy_has(tmp_path: Path, workload: str) -> None:
    (result,) = run(tmp_path, ["3cpo"], workload).values()
    told = result.summary["workload"]
    for app in told["applications"]:
        if app["kind"] == "broadcast":
            assert app["operations"] == 2 * 3  # of each initiator
    for switch in told["slots"].values():
        assert 0 < max(switch["ports"].values()) <= switch["peak_bytes"] <= switch["reserved_bytes"]
    assert (told["wrong_memories"], told["unfinished_hosts"], told["repeats"]) == (0, 0, 0)
    assert {name: told["counts"][name] for name in ("not_joined", "unasked", "outside_window", "no_memory")} == {
        "not_joined": 0, "unasked": 0, "outside_window": 0, "no_memory": 0,
    }  # fmt: skip


def test_data_takes_the_time_of_zeros(tmp_path: Path) -> None:
    tables = []
    for payload in ("data", "zeros"):
        workload = f"payload = {payload!r}\napplications = [{{ operations = 4 }}, {{ kind = 'barrier', hosts = 5 }}]"
        folder = tmp_path / payload
        folder.mkdir()
        (result,) = run(folder, ["3cpo"], workload).values()
        tables.append(result.table("operations"))
    data, zeros = tables
    assert len(zeros) == 2 * 4 * 11 + 5
    assert data.equals(zeros)


def test_random_sets_beside_an_all_reduce(tmp_path: Path) -> None:
    (result,) = run(
        tmp_path,
        ["3cpo"],
        """
        payload = "zeros"
        placement = "random"
        applications = [
            { kind = "random", hosts = 6, sets = 3, set_operations = [3, 6], idle_cycles = [9, 99], unicast_every = 2 },
            { kind = "all_reduce", operations = 4, hosts = 10 },
        ]""",
    ).values()
    told = result.summary["workload"]
    assert (told["wrong_memories"], told["unfinished_hosts"], told["unanswered"]) == (None, 0, 0)
    operations = result.table("operations")
    own = operations["group"].value_counts()
    assert 6 * 2 * 3 <= own[1] <= 6 * 2 * 6
    assert 6 * 15 <= own[0] <= 6 * 30  # unicast: five times as many
    assert own[2] == 10 * 2 * 4
    assert set(operations.loc[operations["group"] == 1, "kind"]) == {"read", "write"}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["cc=dcqcn"], "the workload has collectives; expected 'collective'"),
        (['cc=["3cpo", "dcqcn"]'], "program 'ecn': the workload has collectives; expected 'collective'"),
        (["cc=dcqcn", "program=collective"], "cc 'dcqcn': the workload has collectives; expected one of: 3cpo, "),
        (["cc=dcqcn", "workload.applications=[{kind='unicast_write',operations=1}]"], "the workload has collectives"),
        (["workload.applications=[{operations=1,window=12}]"], ".applications.0.window: 12: expected a power of two"),
        (["workload.applications=[{operations=1,members=[1,1]}]"], "workload.applications.0.members: host 1 is twice"),
        (["workload.applications=[{operations=1,members=[99]}]"], "host 99 of group 1"),
        (["workload.applications=[{operations=1,size_bytes=1}]"], "should have either operations or size_bytes"),
        (["workload.applications=[{size_bytes=5}]"], "size_bytes 5: should be whole numbers of 4 bytes"),
        (["workload.applications=[{operations=1,operator='mul'}]"], "operator"),
        (["workload.applications=[{operations=1,initiators=17}]"], "initiators: 17; expected at most its 16 hosts"),
        (["workload.payload=data", "workload.applications=[{kind='random'}]"], "random operations have no data"),
        (["workload.applications=[{kind='barrier',operations=1}]"], "neither operations nor size_bytes"),
        (["workload.applications=[{kind='random',size_bytes=4}]"], "neither operations nor size_bytes"),
        (
            ["workload.applications=[{kind='random',set_operations=[256,64]}]"],
            "set_operations [256, 64]: should be the least and the most, from 1 on",
        ),
        (
            ["workload.applications=[{kind='random',idle_cycles=[-1,64]}]"],
            "idle_cycles [-1, 64]: should be the least and the most, from 0 on",
        ),
        (
            ["workload.applications=[{kind='random',hosts=1,unicast_every=1}]"],
            "workload.applications.0.unicast_every: unicast operations of one host; expected two hosts at least",
        ),
        (
            ["workload.applications=[{kind='random',sets=10_000,unicast_every=2}]"],
            "workload.applications: 122880000 operations; expected at most 4000000",
        ),
        (
            ["workload.response_priority=5"],
            "workload.response_priority: should be programs.collective.answer_priority, 4, got 5",
        ),
        (["switch.loss=1.0"], "switch.loss: should be less than 1, got 1.0"),
        (["programs.collective.slots=1024"], "programs.collective.slots: 1024: the groups of switch spine0 need 2048"),
    ],
)
def test_mistakes_are_told_before_the_run(tmp_path: Path, settings: list[str], message: str) -> None:
    path = tmp_path / "mistake.toml"
    path.write_text(SCENARIO.format(cc='["3cpo"]', workload="applications = [{ operations = 1 }]"))
    arguments = [part for setting in settings for part in ("--set", setting)]
    done = forked("run", str(path), *arguments, "--no-report", "--out", str(tmp_path / "out"))
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert message in done.stderr


@pytest.fixture(scope="module")
def lossy(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], Path]:
    """Return the arguments and the folder of a run whose switches lose 5% of arriving and leaving packets."""
    folder = tmp_path_factory.mktemp("lossy")
    workload = """
        payload = "data"
        applications = [
            { kind = "all_reduce", operations = 4, hosts = 8 },
            { kind = "pushed_all_reduce", operations = 8, window = 4, hosts = 4 },
            { kind = "all_gather", operations = 4 },
        ]"""
    path = folder / "lossy.toml"
    path.write_text(SCENARIO.format(cc='["3cpo"]', workload=workload))
    command = ["run", str(path), "--set", "switch.loss=0.05", "--set", "nic.rto_ns=20_000", "--no-report"]
    done = forked(*command, "--out", str(folder / "out"))
    assert done.returncode == 0, done.stderr
    return command, folder / "out"


def test_switches_that_lose_packets_give_the_same_sums(lossy: tuple[list[str], Path]) -> None:
    """Check losses of requests, partial sums and results at each of three switches."""
    (result,) = load_all(lossy[1])
    told, held = result.summary["workload"], result.summary["conservation"]
    assert (told["wrong_memories"], told["unfinished_hosts"]) == (0, 0)
    assert told["repeats"] > 0
    assert min(held["drop_lost_in"], held["drop_lost_out"]) > 0
    assert all(check["holds"] for check in result.summary["checks"])
    assert told["counts"]["writes_delivered"] == 8 * 4 * 8 + 4 * 4 * 4


def test_plain_python_hosts_do_exactly_what_compiled_ones_do(lossy: tuple[list[str], Path], tmp_path: Path) -> None:
    command, compiled = lossy
    environment = {**os.environ, "P4CC_NATIVE": "0"}
    done = p4cc(*command, "--out", str(tmp_path / "plain"), env=environment)
    assert done.returncode == 0, done.stderr
    for first in load_all(compiled):
        for name in ("operations.parquet", "flows.parquet", "summary.json"):
            again = tmp_path / "plain" / first.folder.name / name
            assert again.read_bytes() == (first.folder / name).read_bytes(), name


def test_small_buffers_pause_and_lose_nothing(tmp_path: Path) -> None:
    """Check several groups at once, with 600 flits for each port and class, and links that charge frames as flits."""
    done = forked(
        "run", "collective-buffers", "--cc", "collective-none", *("--seed", "1", "--seed", "2"),
        "--out", str(tmp_path / "out"), "--strict", "--no-report",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    results = load_all(tmp_path / "out")
    assert len(results) == 2
    assert sum(result.summary["conservation"]["pfc_sent"] for result in results) > 0
    for result in results:
        told, held = result.summary["workload"], result.summary["conservation"]
        assert (told["wrong_memories"], told["unfinished_hosts"], told["repeats"]) == (0, 0, 0)
        assert held["pfc_balance"] == held["balance"] == held["drop_buffer"] == held["drop_duplicate"] == 0
        assert result.summary["pfc"]["events"] == []
