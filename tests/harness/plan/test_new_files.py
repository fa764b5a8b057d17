"""Number of new files for each kind of addition, as docs/adding-a-protocol.md gives it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.plan.run import Run
from harness.worlds.virtual import VirtualWorld
from p4cc.execution.batch import planned
from p4switch import extensions
from p4switch.registry import forget
from reports.figures import REGISTRY
from tests.control_plane.test_own_program import COUNTING, COUNTING_PARAMETERS
from tests.harness.plan.test_extensions import AIMD, FIGURE, LB, TOPOLOGY, WORKLOAD
from tests.p4src.test_load_balancing import FIRST_MEMBER

GUIDE = (Path(__file__).parents[3] / "docs" / "adding-a-protocol.md").read_text(encoding="utf-8")
ROWS = dict(re.findall(r"^\| ([^|]+) \| (\d+)(?: each)? \| [^|]+ \|$", GUIDE, re.MULTILINE))
PROTOCOL, SMALL, BALANCER, PROGRAM, EXAMPLE = ROWS  # the example's files are counted with its programs' tests
SCENARIO = """
cc = "none"
topology = { name = "NETWORK" }
workload = { name = "permutation", size_bytes = 3000 }
"""
# A protocol whose sender says something to the receiver at the start of each message.
GREETING = AIMD.replace("NAME", "greeting").replace('mechanisms=("soft",)', "packets=(HELLO,)")
GREETING = GREETING.replace(
    "    def on_ack(",
    "    def on_post(self, now_ns):\n        self.outlet.send_control(HELLO, HELLO.encode(kind=1))\n\n    def on_ack(",
)
PACKET = """
from p4cc.packets import TO_NOTIFICATION_POINT, Field, Header, Packet

HELLO = Packet("hello", 0xE6, (Header("hello", (Field("kind", 8),)),), to=TO_NOTIFICATION_POINT)
"""


@pytest.fixture(autouse=True)
def _forgotten(tmp_path: Path) -> Iterator[None]:
    """Forget the names that a test registered, because they hold for the whole process."""
    yield
    for file in tmp_path.glob("*.py"):
        forget(str(file))
        extensions._loaded.pop(file, None)


def protocol_of(run: Run) -> str:
    return f"{run.protocol.name}, {', '.join(packet.name for packet in run.protocol.info.packets)}"


@pytest.mark.parametrize(
    ("row", "files", "settings", "found", "name"),
    [
        (PROTOCOL, {"greeting.py": PACKET + GREETING}, ["cc=greeting.py"], protocol_of, "greeting, hello"),
        (SMALL, {"lb.py": LB}, ["lb=lb.py"], lambda run: run.load_balancing.name, "fixed"),
        (
            SMALL,
            {"ring.py": WORKLOAD.replace("import sizes\n", "").replace("sizes.SMALL", "2_000")},
            ["workload.name=ring.py"],
            lambda run: str(sorted((f.source, f.destination) for f in run.traffic().flows)),
            "(0, 1), (1, 2), (2, 3)",
        ),
        (
            SMALL,
            {"net.py": TOPOLOGY},
            [],
            lambda run: run.topology.name,
            "pair",
        ),
        (SMALL, {"sent.py": FIGURE}, ["extensions=['sent.py']"], lambda run: ", ".join(REGISTRY.all()), "sent"),
        (
            BALANCER,
            {"first_member.p4": FIRST_MEMBER},
            ["switch.load_balancing=first_member.p4"],
            lambda run: run.build(run.switch_programs[0]).defines[0][1],
            "first_member",
        ),
        (
            PROGRAM,
            {"counting.p4": COUNTING, "counting.py": COUNTING_PARAMETERS},
            ["program=counting.p4", "programs.counting.step=2"],
            lambda run: f"{run.program_names} {run.switch_programs[0].parameters.step}",
            "counting 2",
        ),
    ],
)  # fmt: skip
def test_so_many_files_are_enough(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    row: str,
    files: dict[str, str],
    settings: list[str],
    found: Callable[[Any], str],
    name: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    for file, text in files.items():
        (tmp_path / file).write_text(text)
    (tmp_path / "own.toml").write_text(SCENARIO.replace("NETWORK", "net.py" if "net.py" in files else "single-switch"))
    (run,) = planned([str(tmp_path / "own.toml")], settings, {})
    assert name in found(run)
    assert VirtualWorld(run).run().ended == "done"
    assert int(ROWS[row]) == len(files)


def test_every_row_is_counted() -> None:
    assert ROWS[EXAMPLE].isdigit()
    assert EXAMPLE.startswith("all of `examples/quell`")
