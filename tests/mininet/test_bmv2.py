"""BMv2 as a Mininet node: tests that do not need it installed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from control_plane import bmv2_process
from harness.plan.resolve import plan
from harness.plan.scenario import check
from harness.worlds.mininet.dilation import Machine, choose
from p4switch.daemon.config import TrafficSettings
from p4switch.errors import UserError
from p4switch.traffic.settings import Trimming
from tests.margins import TWO_DIGITS
from tests.mininet.networks import REASON

if REASON is not None:
    pytest.skip(REASON, allow_module_level=True)

from harness.worlds.mininet import bmv2_switch as node
from harness.worlds.mininet.switches import BuiltinSwitch, PortPlan, SwitchPlan
from harness.worlds.mininet.world import MininetWorld

NET_DEV = """Inter-|   Receive                            |  Transmit
 face |bytes packets errs drop fifo frame compressed multicast|bytes packets errs drop fifo colls carrier compressed
    lo:     0  0 0 0 0 0 0 0     0 0 0 0 0 0 0 0
 s0-eth1: 10000 10 0 0 0 0 0 0 3000 3 0 0 0 0 0 0
 s0-eth2:  3000  3 0 0 0 0 0 0 8000 8 0 0 0 0 0 0
"""


class StandIn(node.Bmv2Switch):
    """Stand-in without a Mininet node behind it."""

    def __init__(self, plan: SwitchPlan) -> None:
        self.name = "s0"
        self.plan = plan
        self._without_delay = ""


@pytest.fixture
def switch(tmp_path: Path) -> StandIn:
    ports = {n: PortPlan(f"s0-eth{n}", 20_000_000, 5_000_000, None, 0, 0) for n in (1, 2)}
    settings = check({"topology": {"name": "single-switch"}, "workload": {"name": "incast"}}).switch
    return StandIn(
        SwitchPlan(
            device_id=7, pipes=1, ports=ports, loops={},
            settings=settings.model_copy(update={"queue_bytes": 100_000}),
            framing_bytes=0, lossless_priorities=(3,), packet_bytes=1000, seed=1, dilation=5000, origin_ns=0,
            sample_interval_ns=0, folder=tmp_path,
        )
    )  # fmt: skip


def stub(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    (folder / "tc").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "tc").chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))


@pytest.fixture
def queues(monkeypatch: pytest.MonkeyPatch) -> dict[int, Mapping[int, bmv2_process.Queue]]:
    """Return the settings of queues, by Thrift port."""
    told: dict[int, Mapping[int, bmv2_process.Queue]] = {}
    monkeypatch.setattr(bmv2_process, "set_queues", told.__setitem__)
    return told


def test_queues_and_delays(
    switch: StandIn, queues: dict[int, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stub(tmp_path, monkeypatch, f'echo "$@" >> {tmp_path}/told')
    switch.configure()
    assert queues == {9097: dict.fromkeys((1, 2), bmv2_process.Queue(depth_packets=100, rate_packets_per_s=2500))}
    told = (tmp_path / "told").read_text().splitlines()
    assert told[1] == "qdisc replace dev s0-eth2 root netem delay 5000.0us limit 1000000"
    assert len(told) == 2
    (only,) = switch.caveats()
    assert "nothing about performance" in only


def test_a_kernel_without_netem_is_told_of(
    switch: StandIn, queues: dict[int, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stub(tmp_path, monkeypatch, "echo 'Error: Specified qdisc kind is unknown.' >&2; exit 2")
    switch.configure()
    assert queues
    assert switch.caveats()[1].endswith("Specified qdisc kind is unknown.")


def test_units_of_the_programs() -> None:
    assert node.Bmv2Switch.tick_ns(5000) == Fraction(1, 5)


def test_what_the_kernel_counted(switch: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "read_text", lambda *_args, **_options: NET_DEV)
    counters = switch.counters()
    counted = [(port["rx_packets"], port["tx_packets"], port["tx_bytes"]) for port in counters["ports"]]
    assert counted == [(10, 3, 3000), (3, 8, 8000)]
    assert counters["drop_in_switch"] == 2
    assert "lag_log2_ns" not in counters


def test_dilation_is_what_bmv2_can_take() -> None:
    tables = {"topology": {"name": "single-switch", "hosts": 3}, "workload": {"name": "incast"}, "cc": "dcqcn"}
    (run,) = plan("x", check(tables), Path())
    fast = Machine(round_trip_ns=1.0, lag_p99_ns=1.0, processors=64)
    packets_per_s = 100e9 / 8 / run.data_bytes
    limit = node.Bmv2Switch.packets_per_s_of_link
    assert packets_per_s / choose(run, fast, limit) == pytest.approx(limit, rel=TWO_DIGITS)
    assert choose(run, fast) < 10


def test_it_runs_no_program_for_another_architecture(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bmv2_process, "require", lambda: None)
    tables = {"topology": {"name": "single-switch"}, "workload": {"name": "incast"}, "cc": "dcqcn"}
    (run,) = plan("star", check({**tables, "switch": {"architecture": "tna"}}), Path())
    error = r"^--switch bmv2: it runs programs for v1model, and ecn\.p4 is for tna; expected --switch builtin$"
    with pytest.raises(UserError, match=error):
        MininetWorld(run, switch="bmv2")


def test_its_traffic_manager_does_not_trim(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bmv2_process, "require", lambda: None)
    tables = {"topology": {"name": "single-switch"}, "workload": {"name": "incast"}, "cc": "smartt"}
    trimming = {"programs": {"trim": {"trimmed_by": "traffic-manager"}}}
    (run,) = plan("star", check({**tables, **trimming}), Path())
    error = r"^--switch bmv2: its traffic manager does not trim; expected --switch builtin$"
    with pytest.raises(UserError, match=error):
        MininetWorld(run, switch="bmv2")


@pytest.mark.parametrize("key", ["yellow_bytes", "red_bytes"])
def test_its_packets_have_no_colour(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bmv2_process, "require", lambda: None)
    tables = {"topology": {"name": "single-switch"}, "workload": {"name": "incast"}, "cc": "dcqcn"}
    (run,) = plan("star", check({**tables, "switch": {key: 100_000}}), Path())
    error = r"^switch\.yellow_bytes, switch\.red_bytes: packets have no colour in switch 'bmv2'; expected none of them"
    with pytest.raises(UserError, match=error):
        MininetWorld(run, switch="bmv2")


def test_it_has_no_loopback_ports(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bmv2_process, "require", lambda: None)
    tables = {"topology": {"name": "single-switch"}, "workload": {"name": "incast"}, "cc": "dcqcn"}
    (run,) = plan("star", check({**tables, "switch": {"loopback": {"ports": [60]}}}), Path())
    with pytest.raises(UserError, match=r"^switch\.loopback\.ports: switch 'bmv2' has no such ports; expected"):
        MininetWorld(run, switch="bmv2")


def test_a_port_is_told_what_to_trim(switch: StandIn) -> None:
    builtin = BuiltinSwitch.__new__(BuiltinSwitch)
    trimming = Trimming(
        priorities=(3,), limit_bytes=1000, trim_priority=6, trim_limit_bytes=None, trim_size_bytes=64, seed=5
    )
    ports = {1: replace(switch.plan.ports[1], trimming=trimming), 2: switch.plan.ports[2]}
    builtin.plan = replace(switch.plan, ports=ports)
    read = TrafficSettings.model_validate_json(json.dumps(builtin._traffic()))
    assert (read.ports[1].trimming, read.ports[2].trimming) == (trimming, None)


def test_programs_of_the_built_in_switch_count_the_models_time(switch: StandIn) -> None:
    """Meters and clocks of chips use nanoseconds of model time at any dilation."""
    builtin = BuiltinSwitch.__new__(BuiltinSwitch)
    builtin.plan = switch.plan
    traffic = builtin._traffic()
    assert (traffic["tick_ns"], traffic["model_tick_ns"]) == (5000, 1)
