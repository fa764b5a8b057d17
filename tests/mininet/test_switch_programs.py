"""Switches with different programs in Mininet: two architectures, and two programs of v1model on each switch."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from control_plane import bmv2_process
from harness.measure.results import Result, load_all
from harness.plan.resolve import plan
from harness.plan.scenario import check
from harness.worlds.mininet.world import MininetWorld
from p4switch.errors import UserError
from tests.e2e.test_chips import EXAMPLE, TWIN
from tests.mininet.networks import alone, needs_mininet, p4cc

pytestmark = needs_mininet
TABLES = """\
cc = "dcqcn"
topology = { name = "leaf-spine", spines = 1, hosts_per_leaf = 2 }
workload = { name = "permutation", size_bytes = 20_000 }
switch.pfc.enabled = false
nic.rto_ns = 500_000
"""
TWIN_SPINE = '[[switches]]\ntier = "spine"\nprogram = "twin.p4"\n'


def result(folder: Path, text: str, *options: str) -> Result:
    (folder / "twin.p4").write_text(TWIN)
    (folder / "mixed.toml").write_text(text)
    out = folder / "out"
    with alone():
        p4cc("run", str(folder / "mixed.toml"), "--world", "mininet", "--no-report", "--out", str(out), *options)
    (found,) = load_all(out)
    assert all(each["holds"] for each in found.summary["checks"])
    return found


def test_a_network_of_two_architectures(tmp_path: Path) -> None:
    shutil.copytree(EXAMPLE, tmp_path, dirs_exist_ok=True)
    found = result(tmp_path, f'program = "step.p4"\n{TABLES}\n{TWIN_SPINE}')
    assert found.summary["program"] == "step, twin"
    assert found.summary["flows_acknowledged"] == 4


def test_a_loopback_port_leads_back_to_the_switch(tmp_path: Path) -> None:
    """Every packet passes the switch twice, as in the virtual world, with which the run's check compares the times."""
    shutil.copytree(EXAMPLE, tmp_path, dirs_exist_ok=True)
    text, place = (EXAMPLE / "step.p4").read_text(), "spread: { members.apply(); }\n            }\n"
    assert place in text
    again = "if (intrinsic.ingress_port != 68) { tm.ucast_egress_port = 68; }\n"
    (tmp_path / "step.p4").write_text(text.replace(place, place + again))
    star = TABLES.replace('"leaf-spine", spines = 1, hosts_per_leaf = 2', '"single-switch", hosts = 4')
    loop = "switch.loopback = { ports = [68], delay_ns = 20_000 }"
    found = result(tmp_path, f'program = "step.p4"\n{loop}\n{star}')
    assert found.summary["flows_acknowledged"] == 4
    assert found.flows["delivered_ns"].min() > 20_000


def test_each_pipe_of_a_switch_has_its_program(tmp_path: Path) -> None:
    shutil.copytree(EXAMPLE, tmp_path, dirs_exist_ok=True)
    chips = 'program = "step.p4"\nswitch.pipes = 2\nswitch.architecture = "tna"\n'
    leaf = '[[switches]]\nnames = ["leaf0"]\nin_pipes = [1]\nprogram = "ecn"\n'
    found = result(tmp_path, f"{chips}{TABLES}\n{leaf}")
    assert found.summary["program"] == "step, ecn"
    assert found.summary["flows_acknowledged"] == 4


def test_two_programs_on_each_kind_of_switch(switch: str, tmp_path: Path) -> None:
    """A probe reads the counter of the spine's program, which the leaves' program does not have."""
    probe = 'record.probes = [{ kind = "counter", reads = "marked", name = "marks" }]\n'
    found = result(tmp_path, f"{probe}{TABLES}\n{TWIN_SPINE}", "--switch", switch)
    assert found.summary["flows_acknowledged"] == 4
    assert set(found.table("marks")["switch"]) <= {"spine0"}


@pytest.mark.parametrize(
    ("entry", "options", "error"),
    [
        ({"architecture": "tna"}, {"switch": "bmv2"}, r"^--switch bmv2: it runs programs for v1model, and ecn\.p4"),
        (
            {"loopback": {"ports": [60]}},
            {"switch": "bmv2"},
            r"^switches\.0\.loopback\.ports: switch 'bmv2' has no such ports",
        ),
    ],
)
def test_what_one_switch_cannot_do_is_refused(
    monkeypatch: pytest.MonkeyPatch, entry: dict[str, object], options: dict[str, str], error: str
) -> None:
    monkeypatch.setattr(bmv2_process, "require", lambda: None)
    tables = {
        "cc": "dcqcn",
        "topology": {"name": "leaf-spine"},
        "workload": {"name": "permutation"},
        "switches": [{"tier": "tor", "program": "ecn", **entry}],
        "switch": {"pfc": {"enabled": False}},
    }
    (run,) = plan("x", check(tables), Path())
    with pytest.raises(UserError, match=error):
        MininetWorld(run, **options)  # type: ignore[arg-type]


def test_the_packet_generator_lowers_rcps_rates(tmp_path: Path) -> None:
    """Updates of the rate begin after the first packets, so that the flows take over twice as long as the link needs.

    Without them senders keep the link's rate.
    """
    topology = 'topology = { name = "single-switch", hosts = 5 }'
    workload = 'workload = { name = "incast", size_bytes = 300_000 }'
    found = result(tmp_path, f'cc = "rcp"\nswitch.architecture = "tna"\n{topology}\n{workload}\n')
    assert found.summary["flows_acknowledged"] == 4
    assert found.flows["delivered_ns"].max() > 2 * 4 * 300_000 * 8 / 100
