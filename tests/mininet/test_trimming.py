"""Trimming by the switches' traffic managers, on real frames as in the virtual world."""

from __future__ import annotations

from tests.mininet.conftest import Both
from tests.mininet.margins import expected, mean_fct_ns
from tests.mininet.networks import needs_mininet

# Six senders at once: what finds the last queue full is trimmed, most of it in the first round trip.
INCAST = (
    "incast", "--cc", "nscc", "--lb", "oblivious", "--set", "program='trim'", "--set", "topology.k=4",
    "--set", "workload.senders=6", "--set", "workload.starts_together=6", "--set", "workload.size_bytes=150000",
    "--set", "switch.pfc.enabled=false", "--set", "programs.trim.trimmed_by='traffic-manager'",
)  # fmt: skip


@needs_mininet
def test_both_worlds_trim_alike(both: Both) -> None:
    """Every packet is accounted for, the same number is retransmitted, and flows take the same time."""
    (model,), (real,) = both(*INCAST)
    for result in (model, real):
        assert result.summary["ended"] == "done"
        assert [check["name"] for check in result.summary["checks"] if not check["holds"]] == []
        assert sum(result.summary["drops"].values()) == 0
        assert result.summary["retransmitted"] > 100
    low, high = expected(INCAST, real, lambda result: result.summary["retransmitted"], resolution=1)
    assert low <= real.summary["retransmitted"] <= high
    low_ns, high_ns = expected(INCAST, real, mean_fct_ns)
    assert low_ns <= mean_fct_ns(real) <= high_ns
