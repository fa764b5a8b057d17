"""Collectives in Mininet: real sums in real frames, on one switch of 4 hosts and on a leaf-spine of 8."""

from __future__ import annotations

from pathlib import Path

from harness.measure.results import load_all
from tests.mininet.networks import alone, needs_mininet, p4cc

pytestmark = needs_mininet


def test_every_member_has_what_numpy_has(tmp_path: Path) -> None:
    with alone():
        options = ("--world", "mininet", "--no-report", "--set", "variants=[]")
        p4cc("run", "collective-small", *options, "--out", str(tmp_path / "out"))
    (result,) = load_all(tmp_path / "out")
    told = result.summary["workload"]
    assert (told["wrong_memories"], told["unfinished_hosts"], told["unanswered"]) == (0, 0, 0)
    assert told["counts"]["writes_delivered"] == 4 * (4 * 16 + 4 + 4 * 4)
    assert len(result.table("operations")) == 2 * 4 * 16 + 4 + 4 * 4
    assert result.summary["conservation"]["balance"] == 0


def test_sums_are_exact_where_every_switch_loses_packets(tmp_path: Path) -> None:
    """2 leaves and 2 spines, 5% of what comes in and of what leaves; the same run as in virtual time.

    Nothing here hangs on how late frames are, so time need not go as slowly as where that is measured.
    """
    settings = [
        "variants=[]", "topology.leaves=2", "topology.spines=2", "switch.loss=0.05", "nic.rto_ns=100_000",
        'workload.applications=[{kind="all_reduce", operations=8}]',
    ]  # fmt: skip
    arguments = [part for setting in settings for part in ("--set", setting)]
    with alone():
        world = ("--world", "mininet", "--dilation", "8000", "--no-report")
        p4cc("run", "collective-small", *world, *arguments, "--out", str(tmp_path / "out"))
    (result,) = load_all(tmp_path / "out")
    told, held = result.summary["workload"], result.summary["conservation"]
    assert (told["wrong_memories"], told["unfinished_hosts"], told["unanswered"]) == (0, 0, 0)
    assert told["counts"]["writes_delivered"] == 8 * 8 * 8  # each once
    assert told["repeats"] > 0
    assert min(held["drop_lost_in"], held["drop_lost_out"]) > 0
    assert held["balance"] == 0
