"""Entries that a user's BfRuntime client writes. It runs once for each switch."""

from __future__ import annotations

import shutil
from pathlib import Path

import pandas as pd
import pytest

from control_plane import bfrt_script
from control_plane.pipelines import Build, compiled, pipeline
from control_plane.programs.entries import BfRuntimeScript
from p4switch.compiler import Compiled
from p4switch.engine import build, load
from p4switch.errors import UserError
from p4switch.p4runtime.client import LocalClient
from p4switch.p4runtime.device import Device
from p4switch.p4runtime.messages import Message, p4runtime_pb2
from tests.control_plane.bfrt_client import CLIENT
from tests.e2e.runs import forked, run

EXAMPLE = Path(__file__).parents[2] / "examples" / "tofino"
# 17 hosts behind one switch: host 10.0.0.N on port N - 1.
ROUTES = """
client.insert("queues", {"dscp": b"\\x18"}, "set_queue", queue=b"\\x03")
client.insert("queues", {"dscp": b"\\x30"}, "set_queue", queue=b"\\x06")
for host in range(2, 19):
    client.insert("routes", {"dst_addr": (bytes([10, 0, 0, host]), 32)}, "send", port=bytes([0, host - 1]))
"""
GROUP = """
for member, port in enumerate((3, 4), 1):
    client.member("ports", member, "send", port=bytes([0, port]))
client.group("selector", 1, [1, 2])
client.insert("members", {"group": b"\\0\\x07"}, selector_group=1)
client.insert("routes", {"dst_addr": (bytes([10, 0, 0, 0]), 8)}, "spread", group=b"\\0\\x07")
"""


def script(folder: Path, body: str) -> Path:
    path = folder / "entries.py"
    path.write_text(CLIENT + body)
    return path


@pytest.fixture(scope="module")
def step() -> Compiled:
    return compiled(Build(EXAMPLE / "step.p4"))


def fresh(program: Compiled) -> LocalClient:
    client = LocalClient(Device(lambda _: load().Switch(str(build(program.program))), clock_ns=lambda: 0))
    client.set_pipeline(program.p4info, program.json_bytes)
    return client


def entries(client: LocalClient, kind: str) -> list[Message]:
    query = p4runtime_pb2.Entity()
    getattr(query, kind).SetInParent()
    return list(client.read([query]))


def test_what_a_script_writes_is_written_anew(tmp_path: Path, step: Compiled) -> None:
    """A script writes a member, a group, and entries of tables with and without a group, in a valid order."""
    made = bfrt_script.updates({0: step}, "step", script(tmp_path, GROUP), "leaf0")[0]
    client = fresh(step)
    client.write(made)
    assert len(entries(client, "action_profile_member")) == 2
    (group,) = entries(client, "action_profile_group")
    assert [member.member_id for member in group.action_profile_group.members] == [1, 2]
    assert len(entries(client, "table_entry")) == 2
    assert len(made) == 5


def test_what_a_script_leaves_as_it_was_is_not_written(tmp_path: Path, step: Compiled) -> None:
    assert bfrt_script.updates({0: step}, "step", script(tmp_path, ""), "leaf0") == {0: []}


def test_a_script_imports_what_lies_beside_it(tmp_path: Path, step: Compiled) -> None:
    (tmp_path / "beside.py").write_text("raise SystemExit('here')")
    with pytest.raises(UserError, match=r"entries\.py for switch leaf0: here$"):
        bfrt_script.updates({0: step}, "step", script(tmp_path, "import beside"), "leaf0")


def test_a_script_gets_the_name_of_its_switch(tmp_path: Path, step: Compiled) -> None:
    body = f'from pathlib import Path; Path({str(tmp_path / "told")!r}).write_text(switch)'
    bfrt_script.updates({0: step}, "step", script(tmp_path, body), "spine3")
    assert (tmp_path / "told").read_text() == "spine3"


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("raise SystemExit('no entries for ' + switch)", r"entries\.py for switch leaf0: no entries for leaf0$"),
        ("import os; os.kill(os.getpid(), 9)", r"entries\.py for switch leaf0: was ended by SIGKILL$"),
        ("import time; time.sleep(60)", r"entries\.py for switch leaf0: took over 1 s$"),
    ],
)
def test_a_script_that_fails_is_named(
    tmp_path: Path, step: Compiled, monkeypatch: pytest.MonkeyPatch, body: str, error: str
) -> None:
    monkeypatch.setattr(bfrt_script, "TIMEOUT_S", 1 if "sleep" in body else 60)
    with pytest.raises(UserError, match=error):
        bfrt_script.updates({0: step}, "step", script(tmp_path, body), "leaf0")


def test_a_program_without_bfruntime_is_refused(tmp_path: Path) -> None:
    source = Path(__file__).parents[2] / "p4src" / "ecn.p4"
    with pytest.raises(UserError, match=r"for v1model has no bf-rt\.json"):
        bfrt_script.updates({0: compiled(Build(source))}, "ecn", script(tmp_path, ""), "leaf0")


def test_a_script_runs_once_a_switch(tmp_path: Path) -> None:
    told = tmp_path / "told"
    path = script(tmp_path, f'print(switch, file=open({str(told)!r}, "a"))')
    program = pipeline(Build(EXAMPLE / "step.p4")).program
    for switch in ("leaf0", "leaf1", "leaf0"):
        program.updates(BfRuntimeScript(path, switch))
    assert told.read_text() == "leaf0\nleaf1\n"


def test_a_script_writes_the_entries_of_each_pipe(tmp_path: Path, step: Compiled) -> None:
    """The client writes entries for all pipes, and other entries for each pipe."""
    made = bfrt_script.updates({1: step, 3: step}, "step", script(tmp_path, GROUP), "leaf0")
    assert list(made) == [1, 3]
    assert len(made[1]) == 5
    assert made[1] == made[3]


def test_a_run_with_a_script_is_that_with_the_same_entries_from_python(tmp_path: Path) -> None:
    scripted, plain = tmp_path / "scripted", tmp_path / "plain"
    shutil.copytree(EXAMPLE, plain)
    scripted.mkdir()
    for name in ("step.p4", "incast.toml"):
        shutil.copy(EXAMPLE / name, scripted)
    script(scripted, ROUTES)
    star = ("--set", "topology.name=single-switch", "--set", "topology.hosts=17", "--set", "workload.size_bytes=200000")
    with (scripted / "incast.toml").open("a") as scenario:
        scenario.write('\n[programs.step]\nbfrt_script = "entries.py"\n')
    (ours,), (theirs,) = (run(str(folder / "incast.toml"), *star) for folder in (scripted, plain))
    pd.testing.assert_frame_equal(ours.flows, theirs.flows)


def test_a_script_that_is_edited_runs_again(tmp_path: Path) -> None:
    """Notebooks run a scenario several times in one process."""
    program = pipeline(Build(EXAMPLE / "step.p4")).program
    entry = BfRuntimeScript(script(tmp_path, GROUP), "leaf0")
    assert len(program.updates(entry)) == 5
    script(tmp_path, GROUP.replace("[1, 2]", "[1]") + ROUTES.splitlines()[1] + "\n")
    assert len(program.updates(entry)) == 6


def test_a_script_that_is_not_there_is_named(tmp_path: Path) -> None:
    shutil.copy(EXAMPLE / "step.p4", tmp_path)
    scenario = tmp_path / "incast.toml"
    scenario.write_text((EXAMPLE / "incast.toml").read_text() + '\n[programs.step]\nbfrt_script = "none.py"\n')
    done = forked("run", str(scenario), "--no-report", "--out", str(tmp_path / "out"))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"p4cc: error: programs.step.bfrt_script: no file '{tmp_path / 'none.py'}'\n"
