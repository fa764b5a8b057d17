"""Commands in a folder with foreign Python files, none of which is run."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from unittest.mock import Mock

import pytest

from p4cc.cli import cli
from p4switch import processes
from p4switch.p4runtime import shell
from p4switch.sources import SOURCE_DIRECTORY
from tests.e2e.runs import MAIN

ROOT = os.geteuid() == 0
STF = Path(__file__).parents[1] / "p4switch" / "stf"
SMALL = ("--set", "topology.hosts=3", "--set", "workload.senders=2", "--set", "workload.size_bytes=20000")
RUN = ("run", "incast-star", "--cc", "none", *SMALL, "--no-report")  # `report` has a use of its own
# For each command a use of it that gets far. None: it is in a test of its own.
USES: dict[str, list[tuple[str, ...]] | None] = {
    "bench": [("bench", "switch-process", "--quick")],
    "clean": [("clean",)],
    "compile": [("compile", str(SOURCE_DIRECTORY / "ecn.p4"), "-o", "ecn.json")],
    "completion": [("completion",)],
    "diff": [("diff", "made", "made")],
    "doctor": [("doctor",)],
    "explain": [("explain", "flows")],
    "fit": [("fit", str(SOURCE_DIRECTORY / "ecn.p4"))],
    "init": [("init", "own.toml")],
    "list": [("list",), ("list", "cc")],
    "packets": [("packets",)],
    "replay": [("replay", "made")],
    "report": [("report", "made"), ("report", "made", "--format", "pdf", "--out", "figures")],
    "run": [
        (*RUN, "--seed", "1", "--seed", "2", "--jobs", "2", "--out", "jobs"),
        (*RUN, "--workers", "2", "--out", "workers"),
    ],
    "shell": None,
    "stf": [("stf", str(STF / "calls.stf"))],
    "sweep": [("sweep", "sweep.toml", "--jobs", "2", "--out", "swept")],
    "switch": None,
    "testgen": [("testgen", str(SOURCE_DIRECTORY / "ecn.p4"), "-o", "generated", "--until", "1")],
    "topology": [("topology", "show", "incast-star"), ("topology", "convert", "incast-star", "links.csv")],
}
SWEEP = """
scenario = "incast-star"
[set]
cc = "none"
topology.hosts = 3
workload.senders = 2
[axes]
workload.size_bytes = [20000, 30000]
"""


def modules() -> set[str]:
    """Return the names by which modules are imported: Python's, those of installed packages, p4cc's."""
    names = {name for name in sys.stdlib_module_names if not name.startswith("_")}
    names |= set(metadata.packages_distributions())
    names |= {"control_plane", "harness", "reports"}
    names |= {"host_agents", "p4cc", "p4src", "p4switch", "topologies", "wireformats", "mininet"}
    return {name for name in names if name.isidentifier()}


@pytest.fixture
def folder(tmp_path: Path, made: Path) -> Path:
    """Return a folder of files that leave a mark when they run."""
    mark = tmp_path / "marks"
    mark.mkdir()
    own = tmp_path / "folder"
    own.mkdir()
    for name in modules():
        (own / f"{name}.py").write_text(f"open({str(mark / name)!r}, 'w').close()\nraise ImportError('of others')\n")
    for name in ("sitecustomize.py", "usercustomize.py", "mypy.ini", "setup.cfg", "matplotlibrc", ".mypy.ini"):
        (own / name).write_text("")
    (own / "matplotlibrc").write_text("text.usetex: True\nfont.size: 40\n")
    (own / "sweep.toml").write_text(SWEEP)
    (own / "made").symlink_to(made)
    return own


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("made") / "runs"
    subprocess.run([*MAIN, *RUN, "--out", str(out)], env=environment(), check=True, capture_output=True, timeout=300)
    return out


def environment(**more: str) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    return {**kept, "P4CC_NATIVE": "0", **more}


def program() -> str:
    """Return the installed command."""
    found = Path(sys.executable).with_name("p4cc")
    if not found.is_file():
        pytest.skip("p4cc is not installed as a command")
    return str(found)


def marks(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder.parent / "marks").iterdir())


def test_every_command_is_here() -> None:
    assert sorted(USES) == cli.list_commands(None)  # type: ignore[arg-type]


@pytest.mark.parametrize("command", [name for name, uses in USES.items() if uses])
def test_no_file_of_the_working_folder_is_run(folder: Path, command: str) -> None:
    for arguments in USES[command] or []:
        done = subprocess.run(
            [program(), *arguments], cwd=folder, env=environment(), capture_output=True, text=True, timeout=400,
            check=False,
        )  # fmt: skip
        assert marks(folder) == [], (arguments, done.stderr[-2000:])
        assert done.returncode in (0, 1, 2), (arguments, done.stderr[-2000:])
        assert "Traceback" not in done.stderr, done.stderr[-2000:]


def test_nor_by_the_shell(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Check the option -I of the shell's Python; a real environment would need a network."""
    ran: list[list[str]] = []
    monkeypatch.setattr(shell, "environment", lambda: Path(sys.executable))
    monkeypatch.setattr("venv.create", lambda *_, **__: None)  # runs pip in the folder that it makes

    def run(command: list[str], **_: object) -> Mock:
        ran.append(command)
        return Mock(returncode=0)

    monkeypatch.setattr("subprocess.run", run)
    shell.run("127.0.0.1:1", 1)
    shell._make(tmp_path, Path(sys.executable))
    assert [command[1:3] for command in ran] == [["-I", "-m"]] * 2


def test_interpreters_are_started_in_one_place() -> None:
    """Check that any other place that names an interpreter isolates it, or is listed here with its reason."""
    root = Path(processes.__file__).parents[1]
    packages = ("control_plane", "harness", "host_agents", "p4cc", "p4switch", "reports", "topologies", "wireformats")
    naming = {
        str(path.relative_to(root)): path.read_text()
        for package in packages
        for path in (root / package).rglob("*.py")
        if "sys.executable" in path.read_text()
    }
    assert set(naming) == {"p4switch/processes.py", "host_agents/native.py"}
    assert naming["host_agents/native.py"].count("sys.executable") == 1
    assert '[sys.executable, "-I", ' in naming["host_agents/native.py"]


def test_nor_by_the_switch(folder: Path) -> None:
    with subprocess.Popen(
        [program(), "switch", str(SOURCE_DIRECTORY / "ecn.p4"), "--grpc-server-addr", "unix:socket"],
        cwd=folder, env=environment(), stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        try:
            for _ in range(600):
                if (folder / "socket").exists() or process.poll() is not None:
                    break
                time.sleep(0.1)
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=60)
    assert marks(folder) == []


@pytest.mark.skipif(not ROOT or shutil.which("mnexec") is None, reason="Mininet is root's")
def test_nor_by_the_mininet_world(folder: Path) -> None:
    done = subprocess.run(
        [program(), *RUN, "--world", "mininet", "--out", "real"], cwd=folder, env=environment(), capture_output=True,
        text=True, timeout=400, check=False,
    )  # fmt: skip
    assert marks(folder) == [], done.stderr[-2000:]
    assert done.returncode in (0, 1), done.stderr[-2000:]


def test_a_matplotlibrc_of_the_working_folder_changes_no_figure(folder: Path, tmp_path: Path) -> None:
    for where in (folder, tmp_path):
        out = tmp_path / where.name
        out.mkdir(exist_ok=True)
        subprocess.run(
            [program(), "report", str(folder / "made"), "--format", "png", "--out", str(out / "figures")], cwd=where,
            env=environment(), check=True, capture_output=True, timeout=300,
        )  # fmt: skip
    ours, theirs = ({path.name: path.read_bytes() for path in (tmp_path / where.name / "figures").iterdir()}
                    for where in (tmp_path, folder))  # fmt: skip
    assert len(ours) > 1
    assert ours == theirs


@pytest.mark.parametrize("made_by", [processes.python, processes.isolated])
def test_a_child_has_the_same_packages_and_nothing_of_the_working_folder(
    folder: Path, tmp_path: Path, made_by: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check the ways of Python 3.10 and of 3.11 and later."""
    own = tmp_path / "own"
    own.mkdir()
    (own / "of_mine.py").write_text("import sys; print('found', sys.argv[1:])")
    monkeypatch.setenv("PYTHONPATH", str(own))
    code = "import sys, json, harness, p4switch, of_mine; assert __name__ == '__main__', __name__; print(sys.argv[1:])"
    for command in (made_by("-c", code, "a", "-b"), made_by("-m", "of_mine", "a", "-b")):
        done = subprocess.run(
            command, cwd=folder, env={**environment(), "PYTHONPATH": str(own)}, capture_output=True, text=True,
            timeout=100, check=False,
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.splitlines()[0] == "found ['a', '-b']"
    assert marks(folder) == []
