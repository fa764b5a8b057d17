"""Checks of a plan. A further check is one function in a list."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.plan import checks
from harness.plan.resolve import plan
from harness.plan.run import Run
from harness.plan.scenario import check
from harness.plan.traffic_summary import TrafficSummary
from p4switch.errors import UserError

TABLES = {
    "cc": ["dcqcn", "hpcc"],
    "topology": {"name": "single-switch", "hosts": 3},
    "workload": {"name": "incast", "senders": 2, "size_bytes": 1000},
}


def test_a_check_in_a_list_is_made_of_every_run(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, int]] = []

    def no_hpcc(run: Run, traffic: TrafficSummary) -> None:
        seen.append((run.protocol.name, traffic.first_start_ns))
        if run.protocol.name == "hpcc":
            raise UserError("cc 'hpcc': not today")

    monkeypatch.setattr(checks, "TRAFFIC", [*checks.TRAFFIC, no_hpcc])
    with pytest.raises(UserError, match="not today"):
        plan("mine", check(TABLES), Path())
    assert seen == [("dcqcn", 0), ("hpcc", 0)]


def test_checks_of_a_network_are_made_once_for_all_protocols(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    monkeypatch.setattr(checks, "NETWORK", [*checks.NETWORK, lambda run: seen.append(run.protocol.name)])
    assert len(plan("mine", check(TABLES), Path())) == 2
    assert seen == ["dcqcn"]


def test_a_loopback_port_has_no_link() -> None:
    with pytest.raises(UserError, match=r"^switch\.loopback\.ports: port 2 of 's0' leads to 'h0-0-3'; expected a port"):
        plan("mine", check({**TABLES, "switch": {"loopback": {"ports": [9, 2]}}}), Path())


def test_a_loopback_port_is_named_once() -> None:
    with pytest.raises(UserError, match=r"^switch\.loopback\.ports: 9 is listed more than once"):
        plan("mine", check({**TABLES, "switch": {"loopback": {"ports": [9, 8, 9]}}}), Path())


def test_a_loopback_port_is_no_port_of_the_front_panel() -> None:
    chip = {"architecture": "t2na", "loopback": {"ports": [9, 6]}}
    (run, _) = plan("mine", check({**TABLES, "switch": chip}), Path())
    assert sorted(run.topology.ports["s0"]) == [8, 10, 11]
