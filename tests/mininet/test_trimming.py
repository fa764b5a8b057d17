"""Trimming by the switches' traffic managers, on real frames as in virtual time."""

from __future__ import annotations

import pytest

from tests.mininet.conftest import Both
from tests.mininet.networks import needs_mininet

# Six senders at once: what finds the last queue full is trimmed, most of it in the first round trip.
INCAST = (
    "incast", "--cc", "nscc", "--lb", "oblivious", "--set", "program='trim'", "--set", "topology.k=4",
    "--set", "workload.senders=6", "--set", "workload.starts_together=6", "--set", "workload.size_bytes=150000",
    "--set", "switch.pfc.enabled=false", "--set", "programs.trim.trimmed_by='traffic-manager'",
)  # fmt: skip


@needs_mininet
def test_both_worlds_trim_alike(both: Both) -> None:
    """Every packet is accounted for, and as many are sent again. Flows take as long within the worlds' usual 15%."""
    (model,), (real,) = both(*INCAST)
    for result in (model, real):
        assert result.summary["ended"] == "done"
        assert [check["name"] for check in result.summary["checks"] if not check["holds"]] == []
        assert sum(result.summary["drops"].values()) == 0
        assert result.summary["retransmitted"] > 100
    assert real.summary["retransmitted"] == pytest.approx(model.summary["retransmitted"], rel=0.15)
    assert real.summary["fct_ns"]["mean"] == pytest.approx(model.summary["fct_ns"]["mean"], rel=0.15)
