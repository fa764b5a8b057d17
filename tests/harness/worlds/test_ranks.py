"""Runs of the ranks of an MPI program write the same bytes as one worker, and end when one rank does."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from harness.errors import DeadWorkerError, passed_on
from harness.worlds import ranks
from tests.p4cc.commands.test_commands import call

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
# Of what MPI carries, one network has all there is; random ones are in tests/p4switch/fabric/test_workers.py.
EXAMPLES = os.environ.get("P4CC_WORKER_EXAMPLES", "2")  # more of them, now and then
SCENARIO = """
cc = "dcqcn"
limit_ns = 300_000
[topology]
name = "leaf-spine"
leaves = 2
spines = 2
hosts_per_leaf = 3
[workload]
name = "permutation"
size_bytes = {size_bytes}
"""

P4CC = "from p4cc.cli import main; main()"
# Rank 1 does `what` in the midst of run number `run`, from 1.
DISTURBED = """
import os, signal, sys
from p4cc.cli import main
from harness.worlds import ranks
from p4switch.errors import UserError

at_run, exchange, seen = ranks.Ranks.at_run, ranks.Ranks.exchange, [0, 0]

def what():
    {what}

def begin(self):
    seen[0] += 1
    return at_run(self)

def disturbed(self, notice, parts):
    if self.rank == 1 and seen[0] == {run} and notice:
        seen[1] += 1
        if seen[1] == 9:
            what()
    return exchange(self, notice, parts)

ranks.Ranks.at_run, ranks.Ranks.exchange = begin, disturbed
main()
"""


def _mpiexec() -> str | None:
    beside = Path(sys.executable).parent / "mpiexec"  # of PyPI's wheel
    return str(beside) if beside.exists() else shutil.which("mpiexec")


MPIEXEC = _mpiexec()
WHY_NOT = None
if importlib.util.find_spec("mpi4py") is None:
    WHY_NOT = "mpi4py is not installed"
elif MPIEXEC is None:
    WHY_NOT = "there is no mpiexec"
needs_mpi = pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT))


def environment(**more: str) -> dict[str, str]:
    """Return an environment without variables of an MPI program that runs this test; root is allowed."""
    mine = re.compile(r"PMI|OMPI|MPI_LOCAL")
    kept = {name: value for name, value in os.environ.items() if not mine.match(name)}
    return kept | {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"} | more


def started(*arguments: str, cwd: Path, **more: str) -> subprocess.Popen[str]:
    assert MPIEXEC is not None
    return subprocess.Popen(
        [MPIEXEC, *arguments], cwd=cwd, env=environment(**more), text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def run(*arguments: str, cwd: Path, **more: str) -> tuple[int, str, str]:
    """Return exit status, stdout and stderr."""
    process = started(*arguments, cwd=cwd, **more)
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def p4cc(*options: str, scenario: str = "x.toml", program: str = P4CC) -> list[str]:
    """Return a rank's command."""
    return [sys.executable, "-c", program, "run", scenario, "--workers", "mpi", "--no-report", *options]


def own_lines(err: str) -> list[str]:
    return [line for line in err.splitlines() if line.startswith("p4cc: error: ")]


def left_in(folder: Path) -> tuple[list[str], list[psutil.Process]]:
    """Return the files and processes left, after those that were asked to end have had time to."""
    deadline = time.monotonic() + 60
    while True:
        there = [process for process in psutil.process_iter() if _works_in(process, folder)]
        if not there or time.monotonic() > deadline:
            return sorted(file.name for file in folder.iterdir()), there
        time.sleep(0.05)


def _works_in(process: psutil.Process, folder: Path) -> bool:
    try:
        return process.cwd() == str(folder)
    except psutil.Error:
        return False


def digests(folder: Path) -> dict[str, str]:
    """Return digests of all files that do not depend on the workers of a run."""
    files = [file for file in sorted(folder.rglob("*")) if file.is_file()]
    kept = [file for file in files if file.name not in ("performance.json", "provenance.json")]
    return {str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest() for file in kept}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "x.toml").write_text(SCENARIO.format(size_bytes=9_000))
    return tmp_path


@needs_mpi
def test_ranks_find_what_one_worker_finds() -> None:
    program = [sys.executable, "-m", "mpi4py", str(HERE / "ranks_program.py"), EXAMPLES]
    process = started("-n", "3", *program, cwd=ROOT, PYTHONPATH=str(ROOT))  # the program imports other tests
    out, err = process.communicate(timeout=500)
    assert process.returncode == 0, (out + err)[-3000:]


@needs_mpi
def test_ranks_write_what_one_worker_writes(folder: Path) -> None:
    more = ["--seed", "1", "--seed", "2", "--pcap", "--trace", "1"]
    status, out, err = run("-n", "2", *p4cc(*more, "--out", "many"), cwd=folder)
    assert (status, own_lines(err)) == (0, [])
    assert re.fullmatch(r"2 runs in [\d.]+ s: many\n", out)
    own = [sys.executable, "-c", P4CC, "run", "x.toml", "--no-report", *more, "--out", "one"]
    subprocess.run(own, cwd=folder, check=True, capture_output=True)
    assert digests(folder / "many") == digests(folder / "one")
    assert len(digests(folder / "one")) > 15
    assert left_in(folder) == (["many", "one", "x.toml"], [])


@needs_mpi
@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("os.kill(os.getpid(), signal.SIGKILL)",
         r"p4cc: error: rank 1 of 2 \(process \d+ on .+\) was ended by SIGKILL before the run was done; .*memory\?"),
        ("raise UserError('too much')", r"p4cc: error: rank 1 of 2 \(on .+\): too much"),
    ],
)  # fmt: skip
def test_one_that_ends_early_ends_all_and_leaves_what_was_done(folder: Path, what: str, words: str) -> None:
    program = DISTURBED.format(what=what, run=2)
    status, _, err = run("-n", "2", *p4cc("--seed", "1", "--seed", "2", "--out", "out", program=program), cwd=folder)
    assert status != 0
    [line] = own_lines(err)
    assert re.fullmatch(words, line)
    assert left_in(folder) == (["out", "x.toml"], [])
    assert sorted(file.name for file in (folder / "out").iterdir()) == ["runs.json", "x-dcqcn-seed1"]


@needs_mpi
def test_a_first_rank_that_misses_its_signal_ends_all_the_same(folder: Path) -> None:
    """Otherwise the launcher would wait forever for the process that holds its pipes."""
    killed = DISTURBED.format(what="os.kill(os.getpid(), signal.SIGKILL)", run=1)
    deaf = "        if self.rank == 0:\n            signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    program = killed.replace("    if self.rank == 1", f"    if seen[0] == 1:\n{deaf}    if self.rank == 1")
    status, _, err = run("-n", "2", *p4cc("--out", "out", program=program), cwd=folder)
    assert status != 0
    assert "rank 1 of 2" in own_lines(err)[0]
    assert left_in(folder) == (["x.toml"], [])


@needs_mpi
def test_whoever_kills_the_watchers_leaves_nothing(folder: Path) -> None:
    program = DISTURBED.format(what="os.kill(os.getppid(), signal.SIGKILL)", run=1)
    status, *_ = run("-n", "2", *p4cc("--out", "out", program=program), cwd=folder)
    assert status != 0
    assert left_in(folder) == (["x.toml"], [])


@needs_mpi
def test_ranks_that_are_not_alike_are_refused(folder: Path) -> None:
    (folder / "other").mkdir()
    (folder / "other" / "x.toml").write_text(SCENARIO.format(size_bytes=8_000))
    both = [*p4cc("--out", "out"), ":", "-n", "1", *p4cc(scenario="other/x.toml")]
    status, out, err = run("-n", "1", *both, cwd=folder)
    assert (status, out) == (2, "")
    [line] = own_lines(err)
    digest = r"'\w{40}'"
    words = rf"rank 1 of 2 \(on .+\): scenario: {digest}, at the first rank {digest}; expected the same at all"
    assert re.fullmatch(f"p4cc: error: {words}", line)
    assert left_in(folder) == (["other", "x.toml"], [])


@needs_mpi
def test_what_all_refuse_is_said_once(folder: Path) -> None:
    status, out, err = run("-n", "2", *p4cc("--world", "mininet"), cwd=folder)
    assert (status, out, len(err.splitlines())) == (2, "", 1)
    assert "--workers mpi: hosts and switches of the Mininet world are processes of their own" in err


class LostError(Exception):
    """Stand-in for mpi4py.MPI.Exception."""


class Failures:
    """Reports of failures that arrive while the first rank waits for news that MPI does not have."""

    def __init__(self, told: Exception | None = None, on_look: Callable[[], object] = bool) -> None:
        self.told, self.on_look = told, on_look

    def iprobe(self) -> bool:
        self.on_look()
        return self.told is not None

    def recv(self) -> Exception | None:
        return self.told


def first_of_two(failures: Failures) -> ranks.Ranks:
    """Return the first of two ranks, whose MPI has lost the other one."""

    def lost(*_: object) -> bool:
        raise LostError("process failed\nmore of it")

    nothing = {name: lambda *_: None for name in ("Iallgather", "Barrier", "Free")}
    both = SimpleNamespace(Get_rank=lambda: 0, Get_size=lambda: 2, **nothing)
    dups = iter([both, failures])
    world = SimpleNamespace(Dup=lambda: next(dups), Split_type=lambda _: both)
    requests = SimpleNamespace(Testall=lost)
    return ranks.Ranks(SimpleNamespace(COMM_WORLD=world, COMM_TYPE_SHARED=0, Exception=LostError, Request=requests))


@pytest.mark.parametrize(
    ("failures", "error", "words"),
    [
        (Failures(), DeadWorkerError, r"^MPI has lost another rank before the run was done \(process failed\); .*\?$"),
        (Failures(DeadWorkerError("rank 1 of 2: gone")), DeadWorkerError, "^rank 1 of 2: gone$"),
        (Failures(on_look=lambda: signal.raise_signal(signal.SIGINT)), KeyboardInterrupt, "^$"),  # mpiexec's signal
    ],
)
def test_whom_mpi_misses_is_dead(
    failures: Failures, error: type[BaseException], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ranks, "_NOTICE_S", 0.01)
    monkeypatch.setattr(ranks, "_LOOK_S", 0.01)
    with pytest.raises(error, match=words):
        first_of_two(failures).exchange(b"", [b"", b""])


def test_what_another_rank_says_of_a_death_is_a_death() -> None:
    told = passed_on(DeadWorkerError("gone"), "rank 1 of 2")
    assert (type(told), str(told)) == (DeadWorkerError, "rank 1 of 2: gone")


def test_nobody_else_is_there(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name not in environment():
            monkeypatch.delenv(name)
    status, out, err = call(capsys, "run", "incast", "--workers", "mpi")
    assert (status, out) == (2, "")
    assert err == (
        "p4cc: error: --workers mpi: no other ranks were started; "
        "expected it under mpiexec: mpiexec -n 8 p4cc run SCENARIO --workers mpi\n"
    )


@pytest.mark.parametrize(("rank", "said"), [("0", True), ("1", False)])
def test_without_mpi4py_the_first_one_says_so(
    rank: str, said: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"PMI_RANK": rank, "PMI_SIZE": "2", "MPI_LOCALRANKID": rank, "MPI_LOCALNRANKS": "2"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    status, out, err = call(capsys, "run", "incast", "--workers", "mpi")
    line = "p4cc: error: --workers mpi: mpi4py is not installed; install it with: pip install 'p4cc[mpi]'\n"
    assert (status, out, err) == (2, "", line if said else "")
