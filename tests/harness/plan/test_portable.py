"""A run that another process plans again is the same run."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

from harness.plan.inputs import resolved_text
from harness.plan.portable import PortableRun
from harness.plan.resolve import plan
from harness.plan.scenario import check, merge

SCENARIO: dict[str, Any] = {
    "topology": {"name": "single-switch", "hosts": 3, "link_rate_bps": "100 Gb/s"},
    "workload": {"name": "incast", "size_bytes": "20 kB"},
    "cc": ["dcqcn", "none"],
    "seeds": [1, 2],
}
PROGRAM = """
#include "include/prelude.p4"
struct headers_t { ethernet_t ethernet; ipv4_t ipv4; udp_t udp; bth_t bth; }
struct metadata_t { common_metadata_t common; }
#include "include/switch.p4"
"""
ALPHA = {"kind": "reaction_point", "name": "alpha", "reads": "alpha", "interval_ns": 1000}


@pytest.mark.parametrize(
    "tables",
    [
        {},
        {"lb": ["ecmp", "spray"], "variants": [{"name": "(slow)", "set": {"topology": {"link_delay_ns": 7000}}}]},
        {"record": {"columns": ["alpha"], "probes": [ALPHA]}},  # which only one of them has
        {"cc": ["dart", "dcqcn"], "switch": {"pfc": {"enabled": True}}},  # lanes
        {"program": "mine.p4", "extensions": ["own.py"], "cc": "none"},  # whose state is read at the end
    ],
)
def test_it_is_planned_as_it_was(tables: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.p4").write_text(PROGRAM)
    (tmp_path / "own.py").write_text("")
    monkeypatch.chdir(tmp_path)
    runs = plan("x", check(merge(SCENARIO, tables)), Path())
    assert len(runs) > 1
    for run in runs:
        portable = pickle.loads(pickle.dumps(PortableRun.of(run)))
        again = portable.run()
        assert (portable.label, portable.seed) == (run.label, run.seed)
        assert portable.names == (again.scenario.cc[0], again.scenario.lb[0])
        assert (again.variant, again.probes, again.columns) == (run.variant, run.probes, run.columns)
        assert resolved_text(again) == resolved_text(run)
