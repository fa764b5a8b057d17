"""Earlier runs are reused only if a new run would give the same result."""

from __future__ import annotations

import errno
import json
import os
import shlex
import shutil
import socket
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import p4cc
from harness.errors import DeadWorkerError
from harness.measure.output_folder import new_folder
from harness.plan.how import How, Tracing
from harness.worlds.virtual import VirtualWorld
from p4cc.execution import pool
from p4cc.execution.execute import execute
from p4cc.execution.folder import ERROR_FILE
from p4cc.execution.request import RunRequest
from p4cc.execution.selection import ScenarioSelection, SweepSelection
from p4switch.errors import UserError
from tests.p4cc.commands.test_commands import call

SCENARIO = """
cc = "none"
program = "mine.p4"
extensions = ["own.py"]
[topology]
name = "single-switch"
hosts = 3
[switch]
load_balancing = "first.p4"
[workload]
name = "ns3"
file = "flows.txt"
"""
PROGRAM = """
#include "include/prelude.p4"
struct headers_t { ethernet_t ethernet; ipv4_t ipv4; udp_t udp; bth_t bth; }
struct metadata_t { common_metadata_t common; }
#include "include/switch.p4"
"""
P4 = Path(__file__).parents[3] / "p4src"
Carry = Callable[..., list[str]]


class _MadeError(Exception):
    """Raised when a run would be made."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("reuse") / "folder"


@pytest.fixture
def folder(place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with only the inputs. It has a fixed place, because compiled programs contain its path."""
    if place.exists():
        shutil.rmtree(place)
    place.mkdir()
    monkeypatch.setenv("P4CC_NATIVE", "0")
    monkeypatch.chdir(place)
    monkeypatch.setattr("p4cc.execution.reports.write_report", lambda *_: None)
    (place / "small.toml").write_text(SCENARIO)
    (place / "flows.txt").write_text("1\n0 1 3 100 5000 0\n")
    (place / "own.py").write_text("")
    (place / "mine.p4").write_text(PROGRAM)
    (place / "mine.entries.json").write_text('{"table_entries": []}')
    (place / "first.p4").write_text((P4 / "load_balancing" / "ecmp.p4").read_text())
    return place


@pytest.fixture
def carry(folder: Path) -> Carry:
    """Return a function that makes missing runs and returns their names.

    With `dry`, it raises _MadeError instead.
    """

    def make_runs(out: str, *reuse: str, how: How | None = None, dry: bool = False) -> list[str]:
        made: list[str] = []
        how = how or How()

        def make(run: Any) -> VirtualWorld:
            if dry:
                raise _MadeError
            made.append(run.label)
            assert how is not None
            return VirtualWorld(run, trace=how.trace, capture=how.pcap, coverage=how.coverage)

        selection = ScenarioSelection(["small.toml"])
        execute(RunRequest(selection, how, out=Path(out), reuse=[Path(one) for one in reuse]), make=make)
        return made

    return make_runs


def test_a_run_is_taken_while_everything_is_as_it_was(folder: Path, carry: Carry) -> None:
    assert carry("out") == ["small-none-seed1"]
    assert carry("again", "out") == []
    files = {Path(path).name for path in json.loads(next(folder.glob("out/*/provenance.json")).read_text())["files"]}
    assert files == {"flows.txt", "own.py", "mine.p4", "mine.entries.json", "first.p4"}
    changes = {"flows.txt": "1\n0 1 3 100 6000 0\n", "own.py": "A = 1\n", "mine.entries.json": "{}"}
    for name in files:
        path = folder / name
        before = path.read_text()
        path.write_text(changes.get(name, f"{before}// another\n"))
        with pytest.raises(_MadeError):
            carry("changed", "out", dry=True)
        path.write_text(before)
    assert carry("last", "out") == []


@pytest.mark.parametrize(
    "how",
    [How(world="mininet", switch="builtin"), How(compiler="p4c"), How(switch="bmv2"), How(dilation=3)],
)
def test_a_run_is_not_taken_that_was_carried_out_otherwise(carry: Carry, how: How) -> None:
    carry("out")
    with pytest.raises(_MadeError):
        carry("again", "out", how=how, dry=True)


@pytest.mark.parametrize("how", [How(pcap=True), How(trace=Tracing(0)), How(coverage=True)])
def test_a_run_is_taken_only_with_the_files_that_are_wanted(folder: Path, carry: Carry, how: How) -> None:
    carry("without")
    assert len(carry("with", "without", how=how)) == 1
    assert carry("again", "without", "with", how=how) == []
    assert carry("plain", "with") == []
    for name in ("hosts.pcapng", "trace.txt", "coverage.json"):
        for path in folder.glob(f"with/*/{name}"):
            path.unlink()
    with pytest.raises(_MadeError):
        carry("removed", "with", how=how, dry=True)


def test_a_run_that_is_taken_is_judged_as_one_that_is_made(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "small.toml").write_text(SCENARIO.replace('cc = "none"', 'cc = "none"\nlimit_ns = 1000'))
    for more in ([], ["--strict"]):
        fresh = call(capsys, "run", "small.toml", "--out", f"fresh{len(more)}", *more)
        taken = call(capsys, "run", "small.toml", "--out", f"taken{len(more)}", "--reuse", "fresh0", *more)
        assert "taken from fresh0" in taken[2]
        assert "0 of 1 flows done" in fresh[2]
        assert (taken[0], taken[2].splitlines()[-1]) == (fresh[0], fresh[2].splitlines()[-1])
    assert fresh[0] == 1
    kept = next(folder.glob("fresh0/*/summary.json"))
    fidelity = {"kept_up": False, "caveats": [], "reasons": ["too slow"], "dilation_to_use": 12}
    kept.write_text(json.dumps({**json.loads(kept.read_text()), "fidelity": fidelity}))
    _, _, told = call(capsys, "run", "small.toml", "--out", "real", "--reuse", "fresh0")
    assert "the machine did not keep up, so that times cannot be trusted: too slow; use --dilation 12\n" in told


@pytest.mark.parametrize(
    ("more", "end", "ends"),
    [
        (["--out", "out"], KeyboardInterrupt(), (1, "p4cc: error: interrupted")),
        ([], DeadWorkerError("worker 2 of 2 was ended"), (1, "p4cc: error: worker 2 of 2 was ended")),
        ([], UserError("out of memory"), (2, "p4cc: error: out of memory")),
    ],
)
def test_what_is_told_after_an_interrupt_or_a_death_makes_the_others(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    more: list[str],
    end: BaseException,
    ends: tuple[int, str],
) -> None:
    monkeypatch.setattr(sys, "argv", ["p4cc", "run", "small.toml", "--seed", "1", "--seed", "2", *more])
    run = VirtualWorld.run

    def interrupted(self: VirtualWorld, progress: Any = None) -> Any:
        if self.run_plan.seed == 2:
            raise end
        return run(self, progress)

    monkeypatch.setattr(VirtualWorld, "run", interrupted)
    status, _, told = call(capsys, *sys.argv[1:])
    assert (status, told.splitlines()[-1]) == ends
    monkeypatch.setattr(VirtualWorld, "run", run)
    (line,) = (line for line in told.splitlines() if "runs are kept" in line)
    assert line.startswith("1 of 2 runs are kept; to make the others: p4cc run ")
    _, *arguments = shlex.split(line.partition("others: ")[2])
    status, out, told = call(capsys, *arguments)
    assert status == 0, told
    assert "taken from" in told
    whole = Path(out.partition(": ")[2].strip()).parent
    assert len(list((folder / whole).glob("*/summary.json"))) == 2


@pytest.mark.parametrize("content", ["{", "[]", "\udcff"])
def test_a_broken_provenance_is_named_in_one_line(
    folder: Path, capsys: pytest.CaptureFixture[str], content: str
) -> None:
    assert call(capsys, "run", "small.toml", "--out", "good")[0] == 0
    shutil.copytree("good", "bad")
    path = next(folder.glob("bad/*/provenance.json"))
    path.write_bytes(content.encode(errors="surrogateescape"))
    for arguments in (("diff", "good", "bad"), ("run", "small.toml", "--reuse", "bad")):
        status, _, err = call(capsys, *arguments)
        assert (status, len(err.splitlines())) == (2, 1), err
        assert "provenance.json: " in err


@pytest.mark.parametrize(("name", "content"), [("summary.json", "{}"), ("flows.parquet", "x")])
def test_diff_of_a_damaged_run_is_one_line(
    folder: Path, capsys: pytest.CaptureFixture[str], name: str, content: str
) -> None:
    assert call(capsys, "run", "small.toml", "--out", "good")[0] == 0
    shutil.copytree("good", "bad")
    next(folder.glob(f"bad/*/{name}")).write_text(content)
    status, _, err = call(capsys, "diff", "good", "bad")
    assert (status, len(err.splitlines())) == (2, 1), err
    assert "bad/" in err


SWEEP = """
scenario = "small.toml"
[axes]
topology.link_delay_ns = [1000, 2000, 3000]
"""


@pytest.fixture
def swept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Run the sweep in this process, up to this number of runs, and return the number made."""
    (folder / "sizes.toml").write_text(SWEEP)
    monkeypatch.setattr("p4cc.execution.reports.write_sweep", lambda *_: None)

    def make_runs(
        out: str,
        *reuse: str,
        most: int = 3,
        end: BaseException | None = None,
        resume: Path | None = None,
        settings: Sequence[str] = (),
    ) -> int:
        made: list[int] = []

        def one_by_one(work: Callable[[Any], Any], items: list[Any], *_: object) -> Iterator[tuple[int, Any]]:
            for i, item in enumerate(items):
                if i == most:
                    raise end or KeyboardInterrupt
                made.append(i)
                yield i, work(item)

        monkeypatch.setattr(pool, "distribute", one_by_one)
        earlier = [Path(one) for one in reuse]
        selection = SweepSelection("sizes.toml", list(settings))
        target = None if resume else Path(out)
        execute(RunRequest(selection, where=2, out=target, reuse=earlier, resume=resume))
        return len(made)

    return make_runs


@pytest.mark.parametrize("end", [KeyboardInterrupt(), DeadWorkerError("process 5 was ended"), UserError("no room")])
def test_a_sweep_goes_on_after_an_interrupt_or_a_death(
    end: BaseException, folder: Path, swept: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(type(end)):
        swept("first", most=1, end=end)
    assert "1 of 3 runs are kept; to make the others: " in (told := capsys.readouterr().err)
    assert "--resume first" in told
    assert [path.name[:24] for path in sorted(folder.glob("first/0*"))] == ["000-link_delay_ns=1000-s"]
    assert swept("second", "first") == 2
    assert swept("third", "second", "first") == 0
    assert [path.name[:3] for path in sorted(folder.glob("third/0*"))] == ["000", "001", "002"]
    for name in ("flows.parquet", "summary.json"):
        ones, others = (sorted(folder.glob(f"{out}/0*/{name}")) for out in ("second", "third"))
        assert [path.read_bytes() for path in ones] == [path.read_bytes() for path in others]


def test_a_sweep_is_resumed_in_its_folder(folder: Path, swept: Callable[..., int]) -> None:
    first = folder / "first"
    with pytest.raises(KeyboardInterrupt):
        swept("first", most=1)
    (first / "notes.txt").write_text("mine")
    (summary,) = first.glob("000-*/summary.json")
    kept = summary.read_bytes()
    with pytest.raises(UserError, match=r"^--resume .*first: its 000-.*seed1 has other inputs or "):
        swept("", resume=first, settings=["switch.cell_bytes=64"])
    with pytest.raises(KeyboardInterrupt):
        swept("", resume=first, most=1)
    assert [path.name[:3] for path in sorted(first.glob("0*"))] == ["000", "001"]
    assert swept("", resume=first) == 1
    assert [path.name[:3] for path in sorted(first.glob("0*"))] == ["000", "001", "002"]
    assert summary.read_bytes() == kept
    assert (first / "notes.txt").read_text() == "mine"
    assert [path.name for path in folder.iterdir() if path.name.startswith(".")] == []
    assert swept("", resume=first) == 0


def test_what_is_resumed_is_the_folder_that_a_link_leads_to_without_old_reports(
    folder: Path, swept: Callable[..., int]
) -> None:
    with pytest.raises(KeyboardInterrupt):
        swept("first", most=1)
    for name in ("sweep.html", ERROR_FILE):
        (folder / "first" / name).write_text("of one run")
    (folder / "elsewhere").mkdir()
    (folder / "elsewhere" / "link").symlink_to(folder / "first")
    assert swept("", resume=folder / "elsewhere" / "link") == 2
    assert (folder / "elsewhere" / "link").is_symlink()
    assert [path.name[:3] for path in sorted((folder / "first").glob("*/"))] == ["000", "001", "002"]


def test_a_folder_with_other_runs_is_not_resumed(folder: Path, swept: Callable[..., int]) -> None:
    swept("first")
    (last,) = (folder / "first").glob("002-*")
    with pytest.raises(UserError, match="it is the folder of one run; expected the one that has it"):
        swept("", resume=last)
    last.rename(last.with_name("003-" + last.name[4:]))
    with pytest.raises(UserError, match=r"its 003-.* has other inputs or options"):
        swept("", resume=folder / "first")


def test_what_is_resumed_is_not_replaced_by_what_is_reused(folder: Path, swept: Callable[..., int]) -> None:
    swept("mine", settings=["switch.cell_bytes=64"])
    swept("others")
    with pytest.raises(UserError, match=r"its 000-.* has other inputs or options"):
        swept("", "others", resume=folder / "mine")


def test_results_are_kept_where_they_cannot_take_their_place(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "first").mkdir()
    (folder / "first" / "notes.txt").write_text("mine")
    rename = os.rename

    def refuse(source: Path, target: Path) -> None:
        if source.name.endswith(".unfinished"):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        rename(source, target)

    monkeypatch.setattr(os, "rename", refuse)
    with pytest.raises(UserError, match="first': Input/output error"), new_folder(folder / "first", instead=True):
        pass
    assert [path.name for path in folder.iterdir() if path.name != "first.p4" and "first" in path.name] == ["first"]
    assert (folder / "first" / "notes.txt").read_text() == "mine"


def test_a_sweep_that_is_interrupted_at_once_leaves_nothing(folder: Path, swept: Callable[..., int]) -> None:
    with pytest.raises(KeyboardInterrupt):
        swept("first", most=0)
    assert not (folder / "first").exists()


@pytest.mark.parametrize("kind", ["pipe", "device", "link", "link to a device", "link to a folder", "socket"])
def test_what_is_in_a_folder_of_others_is_copied_where_it_is_a_file(
    folder: Path, carry: Carry, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    carry("out")
    monkeypatch.chdir(folder / "out" / "small-none-seed1")
    if kind == "pipe":
        os.mkfifo("more")
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as made:
            made.bind("more")
    elif kind == "device":
        if os.geteuid() != 0:
            pytest.skip("devices are root's to make")
        os.mknod("more", stat.S_IFCHR | 0o666, os.makedev(1, 5))
    else:
        links = {"link to a device": Path("/dev/zero"), "link to a folder": Path(".")}
        Path("more").symlink_to(links.get(kind, folder / "small.toml"))
    monkeypatch.chdir(folder)
    with pytest.raises(UserError, match=r"more: (a link; )?expected a regular file"):
        carry("again", "out")
    with pytest.raises(UserError, match=r"more: (a link; )?expected a regular file"):
        p4cc.load("out").save("copy")
    with pytest.raises(UserError, match=r"more: (a link; )?expected a regular file"):
        p4cc.load("out").select(seed=1).save("copy")
    assert not {path.name for path in folder.iterdir()} & {"again", "copy", ".again.unfinished", ".copy.unfinished"}


@pytest.mark.parametrize(
    "found",
    [
        [["{secret}", 1, 1, "statement", "x", "", 1]], [["", 1, 1, "statement", "x", "", -1]],
        [["", 1, 1, "statement", "\x1b[2J", "", 1]], [["", 1, 1, "nothing", "x", "", 1]], [["", "1"]], 3, None,
    ],
)  # fmt: skip
def test_coverage_of_others_shows_no_file_but_those_of_the_program(
    folder: Path, carry: Carry, found: object, capsys: pytest.CaptureFixture[str]
) -> None:
    carry("out", how=How(coverage=True))
    assert (folder / "out" / "coverage" / "index.html").exists()
    (folder / "secret").write_text("what only this user may read")
    file = folder / "out" / "small-none-seed1" / "coverage.json"
    file.write_text(json.dumps(found).replace("{secret}", str(folder / "secret")))
    assert carry("again", "out") == []
    assert not (folder / "again" / "coverage").exists()
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "coverage left out" in line]
    assert "small-none-seed1/coverage.json: " in line
    assert line.isprintable()


def test_a_copy_runs_as_nobody_else_and_nobody_else_writes_to_it(folder: Path, carry: Carry) -> None:
    """Root's copy of a file with set-user-ID would belong to root, and run as root for every user."""
    carry("out")
    run = folder / "out" / "small-none-seed1"
    (run / "more").mkdir()
    (run / "more" / "sh").write_bytes(b"#!/bin/sh")
    (run / "more" / "sh").chmod(0o6777)
    for each in (run, run / "more", run / "flows.parquet"):
        each.chmod(0o7777)
    assert carry("again", "out") == []
    p4cc.load("out").save("copy")
    p4cc.load("out").select(seed=1).save("selected")
    for name in ("again", "copy", "selected"):
        copied = folder / name / run.name
        assert (copied / "more" / "sh").read_bytes() == b"#!/bin/sh"
        for path in (copied, *copied.rglob("*")):
            assert path.stat().st_mode & 0o7022 == 0, path
