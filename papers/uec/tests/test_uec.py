"""The validation cases of Ultra Ethernet's reference simulator. README.md has its figures beside ours."""

from __future__ import annotations

import pytest

from harness.measure.results import Result
from tests.e2e.runs import run

ACK_BYTES = 82  # the simulator's has 64
LINKS = 6


def cases() -> dict[str, Result]:
    """The runs of `uec-validation` by variant: complete, every byte arrived, nothing lost unaccounted for."""
    results = {result.summary["variant"]: result for result in run("uec-validation")}
    for result in results.values():
        summary = result.summary
        assert summary["ended"] == "done"
        assert summary["bytes_delivered"] == result.flows["size_bytes"].sum()
        assert all(check["holds"] for check in summary["checks"])
    return results


def ends_us(result: Result) -> tuple[float, float]:
    """When the first and the last flow have their last acknowledgement."""
    acknowledged_us = result.flows["completed_ns"] / 1e3
    return float(acknowledged_us.min()), float(acknowledged_us.max())


@pytest.mark.parametrize(("rate_gbps", "simulator_us"), [(100, 176.200), (200, 94.100), (400, 53.050), (800, 32.525)])
def test_case_1_one_flow(rate_gbps: int, simulator_us: float) -> None:
    """To the ns, but for longer ACKs, and at each of the links for a ns that a packet ends within."""
    result = cases()[f"one flow, {rate_gbps} Gb/s"]
    _, last_us = ends_us(result)
    longer_us = LINKS * (ACK_BYTES - 64) * 8 / rate_gbps / 1e3
    assert last_us == pytest.approx(simulator_us + longer_us, abs=2 * LINKS / 1e3)
    assert result.summary["retransmitted"] == 0


def test_case_4_two_to_one() -> None:
    """The windows start as the simulator's; README.md tells how they go on."""
    result = cases()["2 to 1"]
    _, last_us = ends_us(result)
    assert 40 <= result.summary["retransmitted"] <= 50
    assert 339 <= last_us <= 345
    windows = result.table("windows")
    assert windows[windows["time_ns"] == 20_000]["window_bytes"].tolist() == pytest.approx([262_926, 262_926], rel=1e-3)
