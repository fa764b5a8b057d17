"""A command line makes one request: a dry run describes it, and otherwise it is executed."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.plan.how import How, Tracing
from p4cc.cli import cli
from p4cc.execution import dry_run, execute
from p4cc.execution.pool import Cluster
from p4cc.execution.request import RunRequest
from p4cc.execution.selection import ScenarioSelection, SweepSelection

RUN = ("run", "incast", "--cc", "dcqcn", "--seed", "1-2", "--program", "ecn", "--set", "topology.hosts=4",
       "--trace", "1", "--trace-until", "20us", "--pcap", "--strict", "--no-report", "--out", "there")  # fmt: skip
REQUESTED = RunRequest(
    ScenarioSelection(
        ("incast",), ("topology.hosts=4", "program=ecn"), {"cc": ("dcqcn",), "lb": (), "seeds": [1, 2]}
    ),
    How(pcap=True, trace=Tracing(1, until_ns=20_000)),
    out=Path("there"),
    strict=True,
    report=False,
)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (RUN, REQUESTED),
        (
            ("sweep", "sizes.toml", "--jobs", "3", "--set", "k=1"),
            RunRequest(SweepSelection("sizes.toml", ("k=1",)), where=3),
        ),
    ],
    ids=["run", "sweep"],
)
def test_a_dry_run_describes_the_request_that_would_be_executed(
    monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], expected: RunRequest
) -> None:
    monkeypatch.setenv("P4CC_NATIVE", "0")
    executed: list[RunRequest] = []
    described: list[RunRequest] = []
    monkeypatch.setattr(execute, "execute", lambda request, ranks=None: executed.append(request))
    monkeypatch.setattr(dry_run, "describe", lambda request, ranks=None: described.append(request))
    for more in ((), ("--dry-run",)):
        assert CliRunner().invoke(cli, [*arguments, *more], catch_exceptions=False).exit_code == 0
    assert (executed, described) == ([expected], [expected])


def test_a_sweep_has_a_process_for_each_processor_unless_it_is_told_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    described: list[RunRequest] = []
    monkeypatch.setattr(dry_run, "describe", described.append)
    monkeypatch.setattr("p4switch.processes.processors", lambda: 7)
    assert CliRunner().invoke(cli, ["sweep", "sizes.toml", "--dry-run"], catch_exceptions=False).exit_code == 0
    assert described[0].where == 7
    assert not isinstance(described[0].where, Cluster)
