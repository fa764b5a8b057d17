"""Dart on real frames: shares within round trips of each other, messages in order, and balanced counts of tokens.

They run on the built-in switch and, if it is installed, on BMv2; only the built-in switch is
checked for times.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from scapy.utils import RawPcapNgReader

from harness.measure.results import Result
from harness.plan.scenario import built_in
from host_agents import wire
from tests.margins import are_dart_limits
from tests.mininet.conftest import Both
from tests.mininet.networks import needs_bmv2, needs_mininet, run_on

START_NS, STOP_NS, END_NS = 40_000, 90_000, 140_000
WHOLE = 10  # Gb/s
COUNTERS = ("deflected", "allocated", "freed", "expired")
SMALL = (
    "topology.tors_per_pod=1", "topology.spines_per_agg=1", "workload.duration_ns=200_000", "nic.rto_ns=2_000_000",
)  # fmt: skip

pytestmark = needs_mininet


def figure_15(folder: Path) -> Path:
    text = built_in()["dart-fig15"].read_text()
    for before, after in {"500_000": START_NS, "1_500_000": STOP_NS, "2_000_000": END_NS}.items():
        assert f" = {before}" in text
        text = text.replace(f" = {before}", f" = {after}")
    path = folder / "fig15.toml"
    path.write_text(text)
    return path


def limits(result: Result, flow: str) -> pd.Series[float]:
    """Return the limits of a flow's rate, in Gb/s, by time in ns."""
    qp = int(result.flows.set_index("group")["qp"][flow])
    return result.rates[result.rates["qp"] == qp].set_index("time_ns")["rate_limit_bps"] / 1e9


def test_a_second_flow_has_its_half_within_round_trips_in_both_worlds(both: Both, tmp_path: Path) -> None:
    for (result,) in both(str(figure_15(tmp_path)), "--cc", "dart"):
        assert all(check["holds"] for check in result.summary["checks"])
        rtt_ns = result.summary["base_rtt_ns"]
        first, second = limits(result, "first"), limits(result, "second")
        assert (first.loc[:START_NS] == WHOLE).all()
        assert are_dart_limits(first.loc[START_NS + 2 * rtt_ns : STOP_NS], WHOLE, 2)
        assert are_dart_limits(second.loc[START_NS + 3 * rtt_ns : STOP_NS], WHOLE, 2)
        over_ns = int(result.flows.set_index("group")["delivered_ns"]["second"])
        assert (first.loc[over_ns + 2 * rtt_ns : END_NS] == WHOLE).all()


@needs_bmv2
def test_flows_have_halves_while_both_send_on_bmv2(tmp_path: Path) -> None:
    result = run_on("bmv2", str(figure_15(tmp_path)), "--cc", "dart", out=tmp_path / "out")
    first, second = limits(result, "first"), limits(result, "second")
    for flow in (first, second):
        assert are_dart_limits(flow.loc[STOP_NS - 20_000 : STOP_NS], WHOLE, 2)
    assert first.loc[END_NS - 20_000 : END_NS].min() == WHOLE


def test_deflected_messages_stay_in_order(switch: str, tmp_path: Path) -> None:
    """Each switch deflects all that it may. Packets stay in order, entries are freed, deflections take tokens."""
    settings = [part for setting in ("variants=[]", *SMALL) for part in ("--set", setting)]
    result = run_on(switch, "dart-order", "--pcap", *settings, out=tmp_path / "out")
    assert result.summary["retransmitted"] == result.flows["naks"].sum() == 0
    counted = {name: int(result.table(name)["packets"].sum()) for name in COUNTERS}
    assert counted["deflected"] > counted["allocated"] > 0
    assert counted["allocated"] == counted["freed"] + counted["expired"]
    sent, received, most_links = tokens(result.folder / "hosts.pcapng")
    assert sent == received + counted["deflected"]
    assert most_links <= 8  # between ToRs, with two lanes


def tokens(capture: Path) -> tuple[int, int, int]:
    """Return (tokens in data packets sent, tokens in those received, links between switches of the longest path)."""
    sent = received = most = 0
    with RawPcapNgReader(str(capture)) as reader:
        for frame, _ in reader:
            if frame[12:14] != b"\x08\x00" or frame[wire.BTH] > wire.SEND_ONLY:
                continue
            held, passed = frame[wire.BECN] >> 3 & 7, wire.INITIAL_TTL - frame[wire.TTL]
            if passed:
                received, most = received + held, max(most, passed - 1)
            else:
                sent += held
    return sent, received, most
