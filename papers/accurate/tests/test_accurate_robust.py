"""ACCurate in case of faults: lost FRPs, flows that end without notice, a hundred flows at once.

Rates have to recover, and no packet may be lost with PFC.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from harness.measure.recording import Recording
from harness.worlds import network
from harness.worlds.virtual import VirtualWorld
from host_agents import wire
from host_agents.cc.accurate import FRP
from host_agents.nic import Nic
from papers.accurate.studies.scenarios import LIMIT_PERIODS, PERIOD_NS, TOLERANCE, oracle, planned

FAULT = 10  # the period of the fault
PERIODS = FAULT + LIMIT_PERIODS + 3

Loses = Callable[[int, bool, bool], bool]
"""Rule for an FRP: time in ns, whether the NIC sends it (or else receives it), and whether it is a response."""


class LossyNic(Nic):
    """NIC that loses the FRPs for which the rule `loses` holds, as a broken link would."""

    loses: Loses
    lost = 0

    def receive(self, now_ns: int, frame: bytes) -> None:
        if not self._is_lost(now_ns, frame, sent=False):
            super().receive(now_ns, frame)

    def next_frame(self, now_ns: int) -> bytes | None:
        frame = super().next_frame(now_ns)
        while frame is not None and self._is_lost(now_ns, frame, sent=True):
            frame = super().next_frame(now_ns)
        return frame

    def _is_lost(self, now_ns: int, frame: bytes, *, sent: bool) -> bool:
        if len(frame) <= wire.AFTER_BTH or frame[wire.BTH] != FRP.opcode:
            return False
        lost = self.loses(now_ns, sent, bool(FRP.get("response", frame, wire.AFTER_BTH)))
        LossyNic.lost += lost
        return lost


@pytest.fixture
def lose(monkeypatch: pytest.MonkeyPatch) -> Callable[[Loses], None]:
    def use(loses: Loses) -> None:
        monkeypatch.setattr(LossyNic, "loses", staticmethod(loses), raising=False)
        monkeypatch.setattr(LossyNic, "lost", 0)
        monkeypatch.setattr(network, "Nic", LossyNic)

    return use


def victim_flow(**accurate: Any) -> dict[str, Any]:
    """Return a scenario with figure 4's network, in which all flows start at the beginning."""
    ends = {"f1": (0, 3), "f2": (1, 5), "f3": (2, 6), "f4": (0, 4)}
    flows = [{"name": n, "source": a, "destination": b, "stop_ns": 10**9} for n, (a, b) in ends.items()]
    return {
        "cc": "accurate",
        "limit_ns": PERIODS * PERIOD_NS,
        "topology": {
            "name": "parking-lot",
            "switches": 2,
            "hosts_per_switch": 4,
            "link_rate_bps": 10e9,
            "bottleneck_rate_bps": 10e9,
            "link_delay_ns": 300,
            "nic_switches": True,
        },
        "workload": {"name": "streams", "flows": flows},
        "nic": {"mtu_bytes": 256},
        "switch": {"buffer_bytes": 64_000, "scheduler": "round_robin"},
        "record": {"queue_interval_ns": 0, "rate_interval_ns": PERIOD_NS},
        "protocols": {"accurate": accurate},
    }


def run(values: dict[str, Any]) -> Recording:
    """Run a scenario, and check that only what the test dropped was lost."""
    recording = VirtualWorld(planned(values)).run()
    assert recording.conservation["balance"] == 0
    assert {k: v for k, v in recording.conservation.items() if k.startswith("drop_") and v} == {}
    assert sum(record.columns["retransmitted"] for record in recording.flows) == 0
    return recording


def errors(recording: Recording, ideal: dict[int, float]) -> list[float]:
    """Return the largest relative error of rate limits in each period, over the flows in `ideal`."""
    flow_of = {record.qp: record.flow.index for record in recording.flows}
    found = [0.0] * PERIODS
    rates = recording.tables["rates"]
    for time_ns, qp, rate_bps in zip(rates["time_ns"], rates["qp"], rates["rate_limit_bps"], strict=True):
        if flow_of[qp] in ideal:
            period = time_ns // PERIOD_NS - 1  # the period that ends at `time_ns`
            found[period] = max(found[period], abs(rate_bps / ideal[flow_of[qp]] - 1))
    return found


def expect_recovery(found: list[float], fault: int, periods: int = LIMIT_PERIODS) -> None:
    """Check that the fault had an effect, and that the effect is over after `periods`."""
    assert max(found[fault : fault + 2]) > TOLERANCE
    assert max(found[fault + periods :]) <= TOLERANCE


def first_in(period: int, *, sent: bool, response: bool) -> Loses:
    """Return a rule that loses the first FRP of this kind in a period."""
    left = [True]

    def loses(now_ns: int, is_sent: bool, is_response: bool) -> bool:
        if (now_ns // PERIOD_NS, is_sent, is_response) != (period, sent, response) or not left:
            return False
        left.clear()
        return True

    return loses


def test_frps_and_their_copies_pass_the_backlog() -> None:
    """Check that FRPs have a queue of higher priority (section III), as have copies of short-circuit notifications."""
    values = victim_flow()
    recording = run(values)
    assert recording.conservation["copied"] > 0
    stats = recording.queue_stats
    most = {int(p): int(stats["max_bytes"][stats["priority"] == p].max()) for p in set(stats["priority"])}
    data, control = 3, 6
    assert set(most) == {data, control}
    assert most[data] > 5_000
    assert most[control] < 1_000


@pytest.mark.parametrize("sent", [True, False])
def test_a_lost_frp(lose: Callable[[Loses], None], sent: bool) -> None:
    """Check recovery from one lost FRP.

    If it is lost at its source, no link knows it, and shares are too large for a period. If it is
    lost before its destination, only its response is missing.
    """
    values = victim_flow()
    ideal = dict(enumerate(oracle(values)))
    lose(first_in(FAULT, sent=sent, response=False))
    found = errors(run(values), ideal)
    assert LossyNic.lost == 1
    assert max(found[4:FAULT]) <= TOLERANCE
    if sent:
        expect_recovery(found, FAULT, periods=4)
    else:
        assert max(found[FAULT:]) <= TOLERANCE  # rates had not changed, so the lost FRP has no effect


def test_lost_responses_when_everything_is_new(lose: Callable[[Loses], None]) -> None:
    """Check flows whose first responses are lost.

    They stay at line rate for a further period, and pauses prevent losses.
    """
    values = victim_flow()
    ideal = dict(enumerate(oracle(values)))
    lose(lambda now_ns, sent, response: not sent and response and now_ns < PERIOD_NS)
    found = errors(run(values), ideal)
    assert LossyNic.lost >= 4
    expect_recovery(found, 0, periods=5)


@pytest.mark.parametrize("seed", range(3))
def test_many_lost_frps_and_responses(lose: Callable[[Loses], None], seed: int) -> None:
    """Check recovery after ten periods in which a third of all FRPs and responses are lost."""
    values = victim_flow()
    ideal = dict(enumerate(oracle(values)))
    rng = random.Random(seed)
    lose(lambda now_ns, sent, response: sent and now_ns < FAULT * PERIOD_NS and rng.random() < 1 / 3)
    found = errors(run(values), ideal)
    assert LossyNic.lost > 15
    expect_recovery(found, FAULT - 5, periods=5 + LIMIT_PERIODS)


@pytest.mark.parametrize("clock_error_ns", [0, 2_000])
def test_a_host_that_stops_without_flow_stop(clock_error_ns: int) -> None:
    """Check that the other flows get f4's rate two periods after its last FRP."""
    values = victim_flow(flow_stop=False, clock_error_ns=clock_error_ns)
    values["programs"] = {"accurate": {"clock_error_ns": clock_error_ns}}
    flows = values["workload"]["flows"]
    flows[3]["stop_ns"] = FAULT * PERIOD_NS
    left = dict(enumerate(oracle({**values, "workload": {"name": "streams", "flows": flows[:3]}})))
    assert left == pytest.approx({0: 9.5e9, 1: 4.75e9, 2: 4.75e9})
    expect_recovery(errors(run(values), left), FAULT, periods=3)


@pytest.mark.parametrize(("hosts", "flows_per_host", "buffer_bytes"), [(100, 1, 32_000_000), (10, 10, 300_000)])
def test_a_hundred_flows_at_100_gbps_in_the_same_microsecond(
    hosts: int, flows_per_host: int, buffer_bytes: int
) -> None:
    rng = random.Random(1)
    values = victim_flow()
    values["topology"] = {"name": "single-switch", "hosts": hosts + 1, "link_delay_ns": 300, "nic_switches": True}
    values["workload"]["flows"] = [
        {"name": f"f{i}", "source": i % hosts, "destination": hosts, "start_ns": rng.randrange(1000), "stop_ns": 10**9}
        for i in range(hosts * flows_per_host)
    ]
    values["nic"], values["switch"] = {}, {"buffer_bytes": buffer_bytes}
    recording = run(values)
    found = errors(recording, dict.fromkeys(range(100), 0.95e9))
    assert len(recording.flows) == 100
    assert max(found[LIMIT_PERIODS:]) <= TOLERANCE
    assert sum(recording.pfc_stats["pauses_sent"]) > 0  # because of pauses no packet is lost in the first microseconds
