"""Cost of FRPs, and the number of flows whose FRPs fit into alpha of a link (papers/accurate/README.md)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from harness.worlds.virtual import VirtualWorld
from host_agents import wire
from host_agents.cc.accurate import FRP
from p4cc._link import Wire, connect, pair
from papers.accurate.studies.scenarios import ALPHA, PERIOD_NS, planned

FROM_NS, TO_NS = 1_000_000, 4_000_000
FRP_BPS = 28e6
PAPER_FRP_BYTES = 20


def test_a_flow_costs_28_mbps_in_each_direction_and_8_with_the_papers_length_of_an_frp() -> None:
    """Check A6: each period has an FRP and its response."""
    a, b = pair("accurate", {}, line_rate_bps=10_000_000_000)
    qp, _ = connect(a, b, qpn=7)
    link = Wire(a, b)
    qp.post(10_000_000)
    periods = 50
    link.run(periods * PERIOD_NS)
    for side in (0, 1):
        frames = [frame for _, sender, frame in link.sent if sender == side]
        frps = [wire.wire_bytes(frame) for frame in frames if frame[wire.BTH] == FRP.opcode]
        assert sum(frps) * 8e9 / (periods * PERIOD_NS) == pytest.approx(FRP_BPS)
        assert len(frps) * PAPER_FRP_BYTES * 8e9 / (periods * PERIOD_NS) == pytest.approx(8e6)


def growth_bps(flows: int, rate_bps: float) -> float:
    """Return the growth, in bit/s, of the queue to a host to which that number of others send."""
    streams = [{"name": f"f{i}", "source": i, "destination": flows, "stop_ns": 10**9} for i in range(flows)]
    values: dict[str, Any] = {
        "cc": "accurate",
        "limit_ns": TO_NS,
        "topology": {"name": "single-switch", "hosts": flows + 1, "link_rate_bps": rate_bps, "link_delay_ns": 300},
        "workload": {"name": "streams", "flows": streams},
        "switch": {"pfc": {"enabled": False}},
        "record": {"queue_interval_ns": 10_000, "rate_interval_ns": 0, "queues": "hosts"},
    }
    recording = VirtualWorld(planned(values)).run()
    queues = recording.series["queues"]
    steady = queues.times_ns >= FROM_NS
    times, depth = queues.times_ns[steady], queues.at(leads_to=f"h0-0-{flows + 2}")[steady]
    assert depth.min() > 0
    slope, _ = np.polyfit(times, depth, 1)
    return float(slope) * 8e9


@pytest.mark.parametrize(("rate_bps", "fit"), [(10e9, 17), (25e9, 44)])
def test_so_many_flows_fit_into_the_headroom_and_no_more(rate_bps: float, fit: int) -> None:
    """Check that the queue of the first packets drains as long as FRPs take less than alpha of the link.

    With more flows it grows. A tolerance of 10% is less than a quarter of one flow's FRPs.
    """
    assert fit * FRP_BPS < ALPHA * rate_bps < (fit + 1) * FRP_BPS
    for flows in (fit, fit + 3):
        excess_bps = flows * FRP_BPS - ALPHA * rate_bps
        assert growth_bps(flows, rate_bps) == pytest.approx(excess_bps, rel=0.1), flows
