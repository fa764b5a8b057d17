"""Collectives in Mininet: real sums in real frames, on one switch of 4 hosts and on a leaf-spine of 8.

The assertions are the same on the built-in switch and, if it is installed, on BMv2.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness.measure.results import Result
from tests.mininet.networks import needs_mininet, run_on

DILATION = {"builtin": "8000", "bmv2": "20000"}

pytestmark = needs_mininet


def carried_out(out: Path, switch: str, *settings: str, options: Sequence[str] = ()) -> Result:
    arguments = [part for setting in ("variants=[]", *settings) for part in ("--set", setting)]
    result = run_on(switch, "collective-small", *arguments, *options, out=out)
    told = result.summary["workload"]
    assert (told["wrong_memories"], told["unfinished_hosts"], told["unanswered"]) == (0, 0, 0)
    assert result.summary["conservation"]["balance"] == 0
    return result


def test_every_member_has_what_numpy_has(tmp_path: Path, switch: str) -> None:
    result = carried_out(tmp_path / "out", switch)
    assert result.summary["workload"]["counts"]["writes_delivered"] == 4 * (4 * 16 + 4 + 4 * 4)
    assert len(result.table("operations")) == 2 * 4 * 16 + 4 + 4 * 4


def test_sums_are_exact_where_every_switch_loses_packets(tmp_path: Path, switch: str) -> None:
    """Two leaves and two spines lose 5% of arriving and of leaving packets; the run is the virtual world's.

    The result does not depend on the lateness of frames, so a smaller dilation than for
    measurements is enough.
    """
    settings = [
        "topology.leaves=2", "topology.spines=2", "switch.loss=0.05", "nic.rto_ns=100_000",
        'workload.applications=[{kind="all_reduce", operations=8}]',
    ]  # fmt: skip
    options = ("--dilation", DILATION[switch])
    result = carried_out(tmp_path / "out", switch, *settings, options=options)
    told, held = result.summary["workload"], result.summary["conservation"]
    assert told["counts"]["writes_delivered"] == 8 * 8 * 8  # each once
    assert told["repeats"] > 0
    assert min(held["drop_lost_in"], held["drop_lost_out"]) > 0
