"""Collectives in Mininet: real sums in real frames, on one switch of 4 hosts."""

from __future__ import annotations

from pathlib import Path

from harness.measure.results import load_all
from tests.mininet.networks import alone, needs_mininet, p4cc

pytestmark = needs_mininet


def test_every_member_has_what_numpy_has(tmp_path: Path) -> None:
    with alone():
        p4cc("run", "collective-small", "--world", "mininet", "--set", "variants=[]", "--out", str(tmp_path / "out"))
    (result,) = load_all(tmp_path / "out")
    told = result.summary["workload"]
    assert (told["wrong_memories"], told["unfinished_hosts"], told["unanswered"]) == (0, 0, 0)
    assert told["counts"]["writes_delivered"] == 4 * (4 * 16 + 4 + 4 * 4)
    assert len(result.table("operations")) == 2 * 4 * 16 + 4 + 4 * 4
    assert result.summary["conservation"]["balance"] == 0
